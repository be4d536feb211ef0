"""One decorator for all kernels: numba with an on-disk cache where one can be written.

Without numba (or with ``NUMBA_DISABLE_JIT=1``) the same functions run as plain Python and give
the same numbers, slower. Without a writable cache nothing that is compiled outlives its process.
"""

import importlib.util
import threading
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

#: What `njit` takes and gives; the arguments of a kernel are in its docstring (shape, dtype, unit).
Kernel = Callable[..., Any]

_njit: Any
try:
    from numba import njit as _njit
except ImportError:  # plain Python is the documented way without a compiler
    _njit = None

#: Whether the last kernel was given a cache on disk; ``None`` where nothing is compiled.
cached: bool | None = None


# set while this thread makes a plain copy of a module
_copying = threading.local()


def njit(function: Kernel) -> Kernel:
    """Compile a function with numba's ``njit``, cached on disk where numba finds a place for it."""
    return _kept(function)


def njit_kernel(function: Kernel) -> Kernel:
    """The same for a kernel that allocates nothing (see `njit_step`)."""
    return _kept(function, _nrt=False)


def _kept(function: Kernel, **options: Any) -> Kernel:
    global cached
    if _njit is None or getattr(_copying, "plain", False):
        return function
    compiled: Kernel
    # Inside a zip numba takes any home for a place and fails when it writes there: no cache then.
    cached = Path(function.__code__.co_filename).is_file()
    try:
        compiled = _njit(function, cache=cached, **options)
    except RuntimeError:  # numba's "no locator available": read-only package and no home
        compiled = _njit(function, **options)
        cached = False
    return compiled


def njit_inline(function: Kernel) -> Kernel:
    """Compile a function into its callers: for inner steps whose many array arguments make a call dear."""
    if _njit is None or getattr(_copying, "plain", False):
        return function
    inlined: Kernel = _njit(function, inline="always")
    return inlined


def njit_step(function: Kernel) -> Kernel:
    """Compile an inner step that allocates nothing: without counting references to its arrays.

    Each count is an atomic operation per array and call: a third of the time of a kernel with many small steps.
    """
    if _njit is None or getattr(_copying, "plain", False):
        return function
    step: Kernel = _njit(function, _nrt=False)
    return step


def njit_forced(function: Kernel) -> Kernel:
    """Like `njit_inline`, but compiled once and put into its callers as machine code: compiles twice as fast.

    For what is called from many places. Deep nests of large functions compile faster with `njit_inline`.
    """
    if _njit is None or getattr(_copying, "plain", False):
        return function
    forced: Kernel = _njit(function, forceinline=True)
    return forced


def njit_leaf(function: Kernel) -> Kernel:
    """The same for a step that calls little: its machine code goes into its callers."""
    if _njit is None or getattr(_copying, "plain", False):
        return function
    leaf: Kernel = _njit(function, _nrt=False, forceinline=True)
    return leaf


def plain_copy(module: ModuleType) -> ModuleType:
    """A second copy of a module of kernels in which they are plain Python: same numbers, no compiler."""
    spec = importlib.util.find_spec(module.__name__)
    if spec is None or spec.loader is None:
        raise ImportError(f"no source for {module.__name__}")
    copy = importlib.util.module_from_spec(spec)
    _copying.plain = True
    try:
        spec.loader.exec_module(copy)
    finally:
        _copying.plain = False
    return copy


def cache_folder(kernel: Kernel) -> Path | None:
    """Where numba keeps a kernel's compiled code; None where it keeps none or compiles nothing."""
    stats = getattr(kernel, "stats", None)
    path = getattr(stats, "cache_path", None)
    return Path(path) if cached and path else None
