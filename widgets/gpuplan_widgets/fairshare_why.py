"""Why does this job wait? A moment, a job, and what both policies say about it then."""

from collections.abc import Mapping

import ipywidgets as W
import numpy as np

from gpuplan.fairshare.charts.clock import words
from gpuplan.fairshare.charts.live import live_clock
from gpuplan.fairshare.instant import Instant
from gpuplan.fairshare.run import Run
from gpuplan.gantt import safe_text
from gpuplan_widgets.why_fold import OFFERED, WIDE, WhyFold, answer

_NO_JOB = ("choose a waiting job", "")


class Why(WhyFold[Run]):
    """A fold with a moment, the jobs that wait then, and the sentences about the chosen one.

    Attributes
    ----------
    when : FloatSlider
        The moment, in the unit of the charts (hours or days after the start).
    job : Dropdown
        Jobs that wait then under either policy, those that have waited longest first.
    name : Text
        The name of any job; it goes before the choice.
    said : HTML
        What both policies say.
    """

    def __init__(self, runs: Mapping[str, Run]) -> None:
        self.when = W.FloatSlider(
            0.0,
            min=0.0,
            max=1.0,
            step=0.05,
            description="When",
            readout_format=".2f",
            continuous_update=True,
            **WIDE,
        )
        self.when.tooltip = "The moment that is asked about"
        self.job = W.Dropdown(options=[_NO_JOB], description="Waiting job", **WIDE)
        self.job.tooltip = "Jobs that wait at this moment, under either policy"
        self.name = W.Text("", description="or any job's name", continuous_update=False, **WIDE)
        self.name.tooltip = "Any job by its name, whether it waits or not"
        for name in ("when", "job", "name"):
            getattr(self, name).add_class(f"gp-fair-why-{name}")
        super().__init__(runs, self.when, self.job, self.name, _NO_JOB, "gp-fair-why")

    # ------------------------------------------------------------------ what is asked

    def _settle(self) -> None:
        run = self._runs["left"]
        clock = live_clock(run.problem)
        top = max(one.end_s for one in self._runs.values()) / clock.unit_s
        self._quiet = True
        try:
            self.when.description = f"When ({clock.unit})"
            first = self.when.value == 0.0 == self.when.min and self.when.max == 1.0
            self.when.max = max(top, 0.01)
            self.when.step = 1.0 / 24 if clock.unit == "days" else 1.0 / 60
            if first:
                self.when.value = top / 2
        finally:
            self._quiet = False
        self._at_another_moment()

    def _seconds(self) -> int:
        value: float = self.when.value
        return round(value * live_clock(self._runs["left"].problem).unit_s)

    def _waiting(self) -> list[tuple[str, str]]:
        """Jobs that wait at the moment on either side, the longest wait first."""
        t, jobs = self._seconds(), self._runs["left"].problem.jobs
        waits = np.zeros(len(jobs), np.bool_)
        for run in self._runs.values():
            if t <= run.end_s:
                waits |= Instant(run, t).waits
        found = []
        for j in np.flatnonzero(waits)[:OFFERED].tolist():  # jobs are in order of submission
            gpus = "1 GPU" if jobs.gpus[j] == 1 else f"{jobs.gpus[j]:,} GPUs"
            since = words(t - int(jobs.submit_s[j]))
            name = str(jobs.name[j])
            found.append(
                (f"{safe_text(name, 40)}: {gpus}, {safe_text(str(jobs.team[j]), 40)}, came {since} ago", name)
            )
        return found

    # ------------------------------------------------------------------ what is said

    def _lines(self) -> list[str]:
        name = self.name.value or self.job.value
        if not name:
            return []
        return [f"{side} ({run.policy}): {self._why(run, name)}" for side, run in self._runs.items()]

    def _why(self, run: Run, name: str) -> str:
        t = self._seconds()
        if t > run.end_s:
            return f"this run ended {words(t - run.end_s)} earlier."
        return answer(lambda: run.why(name, t))
