"""Why does this task wait? A moment, a task, and what both policies say about it then."""

from collections.abc import Mapping

import ipywidgets as W
import numpy as np

from gpuplan.gantt import safe_text
from gpuplan.packing.explain import span
from gpuplan.packing.model import SECOND
from gpuplan.packing.raw import RUN
from gpuplan.packing.run import PackRun
from gpuplan_widgets.why_fold import OFFERED, WIDE, WhyFold, answer

_NO_TASK = ("choose a waiting task", -1)


class Why(WhyFold[PackRun]):
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
        self.when = W.FloatSlider(
            0.0,
            min=0.0,
            max=1.0,
            step=0.01,
            description="When (s)",
            readout_format=".6",
            continuous_update=True,
            **WIDE,
        )
        self.when.tooltip = "The moment that is asked about, seconds after the start"
        self.task = W.Dropdown(options=[_NO_TASK], description="Waiting task", **WIDE)
        self.task.tooltip = "Tasks that wait at this moment, under either policy"
        self.number = W.Text("", description="or any number", continuous_update=False, **WIDE)
        self.number.tooltip = "Any task by its number, whether it waits or not"
        for name in ("when", "task", "number"):
            getattr(self, name).add_class(f"gp-pack-why-{name}")
        self._fresh = True
        super().__init__(runs, self.when, self.task, self.number, _NO_TASK, "gp-pack-why")

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

    def _lines(self) -> list[str]:
        task: int | str = self.number.value.strip() or self.task.value
        if task == -1:
            return []
        return [f"{side} ({run.policy}): {self._why(run, task)}" for side, run in self._runs.items()]

    def _why(self, run: PackRun, task: int | str) -> str:
        t = self._instant()
        if t > run.raw.end_us:
            return f"this run ended {span(t - run.raw.end_us)} earlier."
        return answer(lambda: run.why(task, t / SECOND))  # type: ignore[arg-type]  # a number as text is read as one


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
