"""Why does this task wait? A moment, a task, and what both policies say about it then."""

import html
from collections.abc import Mapping
from typing import Any

import ipywidgets as W
import numpy as np

from gpuplan.gantt import safe_text
from gpuplan.inputs.errors import InputError
from gpuplan.packing.explain import span
from gpuplan.packing.model import SECOND
from gpuplan.packing.raw import RUN
from gpuplan.packing.run import PackRun

#: Waiting tasks that are offered; any other is found by its number.
OFFERED = 40

_NO_TASK = ("choose a waiting task", -1)
_WIDE: dict[str, Any] = {
    "style": {"description_width": "150px"},
    "layout": W.Layout(width="560px", max_width="100%"),
}


class Why:
    """A fold with a moment, the tasks that wait then, and the sentences about the chosen one.

    Attributes
    ----------
    when : FloatSlider
        The moment, seconds after the start.
    task : Dropdown
        Tasks that wait then under either policy, those that have waited longest first.
    number : Text
        The number of any task; it goes before the choice.
    said : HTML
        What both policies say.
    """

    def __init__(self, runs: Mapping[str, PackRun]) -> None:
        self._runs = dict(runs)
        self.when = W.FloatSlider(
            0.0,
            min=0.0,
            max=1.0,
            step=0.01,
            description="When (s)",
            readout_format=".6",
            continuous_update=True,
            **_WIDE,
        )
        self.when.tooltip = "The moment that is asked about, seconds after the start"
        self.task = W.Dropdown(options=[_NO_TASK], description="Waiting task", **_WIDE)
        self.task.tooltip = "Tasks that wait at this moment, under either policy"
        self.number = W.Text("", description="or any number", continuous_update=False, **_WIDE)
        self.number.tooltip = "Any task by its number, whether it waits or not"
        self.said = W.HTML("")
        for name in ("when", "task", "number", "said"):
            getattr(self, name).add_class(f"gp-pack-why-{name}")
        self.said.add_class("gp-why-text")
        self.box = W.VBox([self.when, self.task, self.number, self.said])
        self._open, self._quiet, self._fresh = False, False, True
        self.when.observe(lambda _change: self._at_another_moment(), "value")
        for widget in (self.task, self.number):
            widget.observe(lambda _change: self._explain(), "value")

    def show(self, runs: Mapping[str, PackRun]) -> None:
        """Ask about other runs; moment and task stay as far as they can."""
        self._runs = dict(runs)
        if self._open:
            self._settle()

    def unfold(self, on: bool) -> None:
        """Nothing is worked out while the fold is closed."""
        self._open = on
        if on:
            self._settle()

    # ------------------------------------------------------------------ what is asked

    def _settle(self) -> None:
        top = max(one.end_s for one in self._runs.values())
        self._quiet = True
        try:
            self.when.max = max(top, 0.01)
            self.when.step = _step(top)
            if self._fresh:
                self.when.value = self._busiest()
                self._fresh = False
        finally:
            self._quiet = False
        self._at_another_moment()

    def _busiest(self) -> float:
        """A moment at which many wait: in the middle of the longest wait on the left."""
        run = self._runs["left"]
        waits = np.where(run.ledger.counted, run.ledger.wait, -1)
        if not len(waits) or waits.max() < 0:
            return 0.0
        j = int(waits.argmax())
        return (int(run.problem.tasks.arrival_us[j]) + int(waits[j]) // 2) / SECOND

    def _instant(self) -> int:
        value: float = self.when.value
        return round(value * SECOND)

    def _at_another_moment(self) -> None:
        if self._quiet or not self._open:
            return
        try:
            offered = self._waiting()
        except Exception as error:  # nobody sees the traceback of a callback
            self._say([f"That could not be worked out: {type(error).__name__}: {error}"])
            return
        chosen = self.task.value
        self._quiet = True
        try:
            options = [_NO_TASK, *offered]
            if list(self.task.options) != options:
                self.task.options = options
            self.task.value = chosen if chosen in [number for _, number in options] else -1
        finally:
            self._quiet = False
        self._explain()

    def _waiting(self) -> list[tuple[str, int]]:
        """Tasks that wait at the moment on either side, the longest wait first."""
        t, run = self._instant(), self._runs["left"]
        waits = np.zeros(len(run.problem.tasks), np.bool_)
        for one in self._runs.values():
            if t <= one.raw.end_us:
                waits |= waiting_at(one, t)
        found = []
        tasks = run.problem.tasks
        for j in np.flatnonzero(waits)[:OFFERED].tolist():  # tasks are in order of arrival
            model = safe_text(str(run.model_names[tasks.model[j]]), 40)
            since = span(t - int(tasks.arrival_us[j]))
            urgent = f", priority {tasks.priority[j]}" if tasks.priority[j] else ""
            found.append((f"{j}: {model}{urgent}, came {since} ago", j))
        return found

    # ------------------------------------------------------------------ what is said

    def _explain(self) -> None:
        if self._quiet or not self._open:
            return
        task: int | str = self.number.value.strip() or self.task.value
        if task == -1:
            self._say([])
            return
        lines = [f"{side} ({run.policy}): {self._why(run, task)}" for side, run in self._runs.items()]
        self._say(lines)

    def _why(self, run: PackRun, task: int | str) -> str:
        t = self._instant()
        if t > run.raw.end_us:
            return f"this run ended {span(t - run.raw.end_us)} earlier."
        try:
            return run.why(task, t / SECOND)  # type: ignore[arg-type]  # a number as text is read as one
        except InputError as error:
            return "; ".join(f"{mistake.path}: {mistake.rule}" for mistake in error.mistakes) + "."
        except Exception as error:  # nobody sees the traceback of a callback
            return f"no explanation ({type(error).__name__}: {error})."

    def _say(self, lines: list[str]) -> None:
        text = "".join(f"<p>{html.escape(line)}</p>" for line in lines)
        if self.said.value != text:
            self.said.value = text


def waiting_at(run: PackRun, t: int) -> np.ndarray:
    """Tasks that have arrived by microsecond `t`, have not left, and do not run then, bool[J]."""
    tasks, raw, rows = run.problem.tasks, run.raw, run.raw.stages
    waits = (tasks.arrival_us <= t) & (raw.left_us > t) & run.ledger.counted
    now = (rows.start_us <= t) & (t < rows.end_us) & (rows.kind == RUN)
    waits[rows.task[now]] = False
    return np.asarray(waits, np.bool_)


def _step(top: float) -> float:
    """Steps of a slider that reaches so far: about a thousand of them."""
    return next((step for step in (0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0) if top <= 1000 * step), 60.0)
