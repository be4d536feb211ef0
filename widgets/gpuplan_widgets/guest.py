"""What an explorer may do for a guest: limits of a server that serves people it does not know.

In a notebook there are none. In the app (`gpuplan app`) a kernel calls `receive` before it makes a page.
"""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Guest:
    """Limits of a page: bytes of what is uploaded, seconds of one computation."""

    upload_bytes: int
    seconds: float


_here: Guest | None = None


def receive(guest: Guest | None) -> None:
    """Keep these limits from now on, or none."""
    global _here
    _here = guest


def guest() -> Guest | None:
    """The limits; None in a notebook."""
    return _here


@contextmanager
def limited() -> Iterator[None]:
    """Let what is computed inside take no longer than a guest may; after that an alarm ends the process.

    An exception from outside would leave compiled code (numba, the readers of pandas) in a state that crashes later,
    or would not be heard at all. The app tells the page why its kernel has ended.
    """
    if _here is None:
        yield
        return
    signal.setitimer(signal.ITIMER_REAL, _here.seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
