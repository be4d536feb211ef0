"""Work in the background of which only the newest request counts."""

import threading
from collections.abc import Callable


class Latest:
    """Call a function on another thread; while it runs, any number of requests make one further call.

    Parameters
    ----------
    work
        Called without arguments; it reads the newest state itself and must catch its own errors.

    Notes
    -----
    The thread ends when nothing is left to do, so an idle explorer costs none.
    """

    def __init__(self, work: Callable[[], None]) -> None:
        self._work = work
        self._condition = threading.Condition()
        self._wanted = False
        self._running = False

    def ask(self) -> None:
        """Have the work done after this moment, once for all requests that wait."""
        with self._condition:
            self._wanted = True
            if not self._running:
                self._running = True
                threading.Thread(target=self._loop, daemon=True, name="gpuplan-latest").start()

    @property
    def busy(self) -> bool:
        """Whether a call runs or waits."""
        with self._condition:
            return self._running

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until nothing runs or waits; return whether that came about within `timeout` seconds."""
        with self._condition:
            return self._condition.wait_for(lambda: not self._running, timeout)

    def _loop(self) -> None:
        while True:
            with self._condition:
                if not self._wanted:
                    self._running = False
                    self._condition.notify_all()
                    return
                self._wanted = False
            try:
                self._work()
            except BaseException:
                with self._condition:
                    self._running = False
                    self._condition.notify_all()
                raise
