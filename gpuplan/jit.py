"""One decorator for all kernels: numba with an on-disk cache where one can be written.

Without numba (or with ``NUMBA_DISABLE_JIT=1``) the same functions run as plain Python and give
the same numbers, slower. Without a writable cache they are compiled once per process.
"""

from collections.abc import Callable
from typing import Any, TypeVar

Function = TypeVar("Function", bound=Callable[..., Any])

try:
    from numba import njit as _njit
except ImportError:  # plain Python is the documented way without a compiler
    _njit = None

#: Whether kernels are compiled with a cache on disk; ``None`` before the first kernel is seen.
cached: bool | None = None


def njit(function: Function) -> Function:
    """Compile a function with numba's ``njit``, cached on disk where numba finds a place for it."""
    return _compile(function)


def njit_inline(function: Function) -> Function:
    """Compile a small helper that is written into its callers (no call, no own cache entry)."""
    if _njit is None:
        return function
    compiled: Function = _njit(function, inline="always")
    return compiled


def _compile(function: Function) -> Function:
    global cached
    if _njit is None:
        return function
    compiled: Function
    try:
        compiled = _njit(function, cache=True)
        cached = True
    except RuntimeError:  # numba: "no locator available" - read-only package and no home
        compiled = _njit(function)
        cached = False
    return compiled
