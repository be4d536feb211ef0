"""Options that are passed on to the reader of a format: those that it does not have are refused by name."""

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from gpuplan.inputs.errors import InputError, Mistake, did_you_mean

#: What readers are told by arguments of their own.
_OURS = frozenset(("path", "tasks", "zone", "as_of", "snapshot", "strict", "progress"))


def fitting(reader: Callable[..., Any] | None, options: Mapping[str, Any], source: str) -> dict[str, Any]:
    """The options, if the reader has all of them.

    Parameters
    ----------
    reader
        A function that reads a file; None: of a format without options.
    options
        By name.
    source
        The name of the file, for messages.

    Raises
    ------
    InputError
        With every option that the reader does not have.
    """
    known = [] if reader is None else [k for k in inspect.signature(reader).parameters if k not in _OURS]
    has = f"it has {', '.join(known)}" if known else "it has none"
    mistakes = [
        Mistake(str(name), f"is no option of this format ({has}){did_you_mean(name, known)}")
        for name in options
        if name not in known
    ]
    if mistakes:
        raise InputError(source, mistakes)
    return dict(options)
