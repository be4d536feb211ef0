"""The kernels compiled, or as plain Python while another process compiles them for the first time.

Compiling takes a minute or two of one core, once per machine and version (numba keeps the result on disk).
Nobody should wait for that with a small scenario in front of them: plain Python plans it in a
fraction of a second, with the same numbers.
"""

import hashlib
import json
import os
import platform
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import ModuleType

from gpuplan import jit
from gpuplan.allocation import bound_kernels, kernels, search_kernels

#: Jobs and apps x steps x words of GPUs up to which plain Python plans within a second or two.
SMALL = 5_000

#: A compilation that another process began this long ago (seconds) is taken for dead.
STALE_S = 300.0

#: Everything that is compiled, each module for itself.
MODULES = (kernels, bound_kernels, search_kernels)

_lock = threading.Lock()
_ready = False
_plain: dict[str, ModuleType] = {}
_compiler: subprocess.Popen[bytes] | None = None


def kernels_for(work: int, module: ModuleType = kernels) -> ModuleType:
    """The module whose kernels to call for so much work.

    Parameters
    ----------
    work
        Jobs and apps x steps x words of GPUs.
    module
        One of `MODULES`.

    Returns
    -------
    module
        ``module`` where its kernels are compiled, or where compiling them pays (larger
        work); else a plain copy of it: while another process compiles, and for good where nothing
        that is compiled could be kept.
    """
    global _ready
    if _ready:
        return module
    with _lock:
        if work > SMALL:
            return module
        mark = _mark()
        if mark is None or (not mark.exists() and _compiling(mark)):
            return _plain_kernels(module)
        _ready = True
        return module


def compiled() -> bool:
    """Whether kernels run compiled from now on, whatever the work."""
    return kernels_for(0) is kernels


def on_disk() -> bool:
    """Whether compiled kernels for this Python, numba and machine are on disk."""
    mark = _mark()
    return mark is not None and mark.exists()


def compile_here() -> None:
    """Use the compiled kernels of this process from now on; it compiles what is not on disk."""
    global _ready
    _ready = True


def note_compiled() -> None:
    """Leave a mark for other processes that everything is compiled and on disk."""
    mark = _mark()
    if mark is not None:
        try:
            mark.touch()
            mark.with_suffix(".busy").unlink(missing_ok=True)
        except OSError:  # a cache that cannot be written any more: others compile for themselves
            return


def _plain_kernels(module: ModuleType = kernels) -> ModuleType:
    if module.__name__ not in _plain:
        _plain[module.__name__] = jit.plain_copy(module)
    return _plain[module.__name__]


def _mark() -> Path | None:
    """The file that says that these kernels are compiled for this Python and numba on this machine."""
    folder = jit.cache_folder(kernels.allocate)
    if folder is None:
        return None
    import numba

    sources = [Path(str(module.__file__)).stat() for module in MODULES]
    stamp = (
        numba.__version__,
        sys.version,
        platform.machine(),
        platform.node(),
        *((source.st_mtime_ns, source.st_size) for source in sources),
    )
    name = hashlib.sha256(repr(stamp).encode()).hexdigest()[:16]
    return folder / f"gpuplan-{name}.compiled"


def _compiling(mark: Path) -> bool:
    """Whether another process compiles; one is started where none does. False if that cannot be."""
    global _compiler
    if _compiler is not None:
        return _compiler.poll() is None
    busy = mark.with_suffix(".busy")
    try:
        mark.parent.mkdir(parents=True, exist_ok=True)
        if busy.exists() and time.time() - busy.stat().st_mtime < STALE_S:
            return True
        busy.touch()
        program = "import json, sys; sys.path[:] = json.loads(sys.argv[1]); "
        program += "from gpuplan.allocation.plan import warm_up; warm_up()"
        _compiler = subprocess.Popen(
            [sys.executable, "-c", program, json.dumps(sys.path)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=dict(os.environ),
        )
    except (OSError, ValueError):
        return False
    return True
