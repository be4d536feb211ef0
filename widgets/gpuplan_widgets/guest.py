"""What an explorer may do for a guest: limits of a server that serves people it does not know.

In a notebook there are none. In the app (`gpuplan app`) a kernel calls `receive` before it makes a page.
"""

import ctypes
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Guest:
    """Limits of a page: bytes of an upload, seconds of one computation."""

    upload_bytes: int
    seconds: float


#: Beyond its time by this factor, a computation that does not listen ends with its process.
PATIENCE = 1.5

_here: Guest | None = None


class TooLong(Exception):
    """A computation has taken longer than is allowed here."""


def receive(guest: Guest | None) -> None:
    """Keep these limits from now on, or none."""
    global _here
    _here = guest


def guest() -> Guest | None:
    """The limits; None in a notebook."""
    return _here


class _Watch:
    """Stops one computation of a thread when its time is over, unless it has ended by itself."""

    def __init__(self, seconds: float) -> None:
        self._thread = threading.get_ident()
        self._lock, self._over = threading.Lock(), False
        self._timer = threading.Timer(seconds, self._stop)
        self._timer.daemon = True
        self._timer.start()

    def _stop(self) -> None:
        with self._lock:
            if not self._over:
                _raise(self._thread, TooLong)

    def end(self) -> None:
        """Stop nothing any more."""
        with self._lock:
            self._over = True
        self._timer.cancel()


def _raise(thread: int, error: type[Exception]) -> None:
    """Raise an exception in another thread, at its next step of Python."""
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), ctypes.py_object(error))


@contextmanager
def limited() -> Iterator[None]:
    """Let what is computed inside take no longer than a guest may.

    Raises
    ------
    TooLong
        After that time. What runs in a kernel of numba does not hear it; the process then ends by an alarm.
    """
    limits = _here
    if limits is None:
        yield
        return
    watch = _Watch(limits.seconds)
    signal.setitimer(signal.ITIMER_REAL, PATIENCE * limits.seconds)
    try:
        yield
    except TooLong:
        raise TooLong(f"takes longer than {limits.seconds:g} seconds, the limit on this server") from None
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        watch.end()
