"""What explorers share: controls ask, the newest question counts, and its answer or its mistake is shown."""

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from gpuplan_widgets import messages
from gpuplan_widgets.guest import limited
from gpuplan_widgets.latest import Latest

#: Work that takes longer than this (seconds) is handed to a thread, and the page says so.
SLOW_S = 0.15


class Turn:
    """A turn to compute: one at a time, and no longer than a guest may."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._now = ExitStack()

    def __enter__(self) -> None:
        """Wait for the turn."""
        self._lock.acquire()
        self._now.enter_context(limited())

    def __exit__(self, *error: object) -> None:
        """Let the next one have it."""
        try:
            self._now.close()
        finally:
            self._lock.release()


# JupyterLab with ipykernel 7 runs callbacks beside the cell that runs: one plan at a time, in all explorers.
PLANNING = Turn()


class Answering:
    """The part of an explorer that answers its controls; it has a `chart` and `controls`.

    An explorer says what it is asked (`_question`), finds the answer (`_find`) and shows it (`_publish`), or says
    beside the control what is wrong (`_fail`).
    """

    chart: Any
    controls: Any

    def _prepare(self, cause: str) -> None:
        """Begin without a question; ``cause`` names the control that a first mistake belongs to."""
        self._state = threading.RLock()
        self._quiet = self._slow = False
        self._asked = self._published = 0
        self._cause = cause
        self._worker = Latest(self._run)
        self._hearers: list[Callable[[], None]] = []

    def heard_by(self, hear: Callable[[], None]) -> None:
        """Call a function whenever what the controls say has come on screen."""
        self._hearers.append(hear)

    @property
    def message(self) -> str:
        """The sentence that a control shows at present, as text; empty while all is well."""
        shown = (messages.said(widget) for widget in self.controls.messages.values())
        return next((text for text in shown if text), "")

    def wait(self, timeout: float = 60.0) -> bool:
        """Wait until nothing runs in the background; return whether that came about in time."""
        return self._worker.wait(timeout)

    @contextmanager
    def _silently(self) -> Iterator[None]:
        """Set controls without an answer to each of them."""
        with self._state:
            before, self._quiet = self._quiet, True
            try:
                yield
            finally:
                self._quiet = before

    def _moved(self, name: str) -> None:
        """Answer a control; nothing that goes wrong may leave this callback."""
        with self._state:
            if self._quiet or not self._concerns(name):
                return
            self._cause = name
            self._asked += 1
            try:
                self._follow(name)
            except Exception as error:
                self._published = self._asked
                self._fail(name, error)
                return
            slow = self._slow
            if slow:
                self.chart.busy = True
        if slow:
            self._worker.ask()
        else:
            self._run()

    def _run(self) -> None:
        """Answer what the controls say now, and show it unless something newer is on screen already."""
        with self._state:
            ticket, cause = self._asked, self._cause
            question = self._question()
        seconds = 0.0
        answer: tuple[Any, ...] | Exception
        try:
            answer, seconds = self._find(question, ticket)
        except Exception as error:  # nobody sees the traceback of a callback
            answer = error
        with self._state:
            self._slow = seconds > SLOW_S
            if ticket < self._published:
                return
            self._published = ticket
            if ticket == self._asked:
                self.chart.busy = False
            try:
                if isinstance(answer, Exception):
                    raise answer
                self._publish(*answer)
                self._remind()
                for hear in self._hearers if ticket == self._asked else ():
                    hear()
            except Exception as error:
                self._fail(cause, error)

    def _remind(self) -> None:
        """Mark the picture as old while a person's file waits that is not in it."""
        opener = getattr(self, "file", None)
        if opener is not None:
            opener.remind()

    @contextmanager
    def _saying_busy(self, ticket: int) -> Iterator[None]:
        """Say that an answer is computed, from the moment on at which it takes long."""
        timer = threading.Timer(SLOW_S, self._say_busy, (ticket,))
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()

    def _say_busy(self, ticket: int) -> None:
        with self._state:
            if ticket > self._published:
                self.chart.busy = True

    def _concerns(self, name: str) -> bool:
        """Whether a control changes what is asked."""
        return True

    def _follow(self, name: str) -> None:
        """Let other controls follow the one that moved."""

    def _question(self) -> Any:
        """What the controls ask."""
        raise NotImplementedError

    def _find(self, question: Any, ticket: int) -> tuple[tuple[Any, ...], float]:
        """The answer, as what `_publish` takes, and the seconds that it took."""
        raise NotImplementedError

    def _publish(self, *answer: Any) -> None:
        """Show an answer."""
        raise NotImplementedError

    def _fail(self, cause: str, error: Exception) -> None:
        """Say what is wrong beside the control."""
        raise NotImplementedError
