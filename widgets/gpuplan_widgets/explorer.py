"""The allocation explorer: two policies on one scenario, planned again at every move of a control."""

import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import ipywidgets as W

from gpuplan.allocation import engine
from gpuplan.allocation.charts import describe
from gpuplan.allocation.model import AllocationScenario
from gpuplan.allocation.plan import Plan, plan, policy_named, repeatable
from gpuplan.allocation.policies import Proof
from gpuplan.inputs.errors import InputError, Mistake, shorten
from gpuplan.loading import load_allocation, shipped
from gpuplan_widgets import controls as c
from gpuplan_widgets import hand_outs, messages, reproduce
from gpuplan_widgets.account import Account
from gpuplan_widgets.address import State, only
from gpuplan_widgets.answering import PLANNING, Answering
from gpuplan_widgets.curve_editor import CurveEditor
from gpuplan_widgets.draft import changes_of, jobs_of, place_of
from gpuplan_widgets.job_table import JobTable
from gpuplan_widgets.picture import SIDES, Picture
from gpuplan_widgets.studies import Studies
from gpuplan_widgets.upload import FileOpener

#: Said while the kernels are compiled for the first time on a machine, and how often (seconds) that is asked.
COMPILING = "Compiling (first run only): answers come more slowly until that is done."
ASK_S = 0.5

#: Paths of a scenario that controls change.
_PATHS = (
    r"cluster\.(gpus|gpus_per_node|unavailable)|rules\.within_node|objective\.(shortfall_penalty|half_life_hours)"
    r"|realtime\.\d{1,4}\.(max_swap|demand)|batch"
)


class AllocationExplorer(Answering, W.VBox):
    """Two policies side by side on one scenario, with a control for whatever decides.

    Parameters
    ----------
    scenario
        A scenario, the name of a shipped one, the path of a scenario file, or a mapping.
    policies
        Policies on the left and on the right.
    picture
        Whether a re-opened notebook and an exported page show a picture of the charts; it takes one to three
        seconds to make before the explorer appears. Without it they show the figures.

    Attributes
    ----------
    scenario : AllocationScenario
        What is on screen.
    plans : dict of str to Plan
        What is on screen, under ``"left"`` and ``"right"``.
    controls : Controls
        The sliders and choices by name; `table`, `curve` and `chart` are the other parts.

    Raises
    ------
    InputError
        If the scenario has mistakes, or a policy is unknown. Later mistakes are sentences on the page.

    Examples
    --------
    >>> explorer = AllocationExplorer("training-rush")
    >>> explorer.controls.penalty.value = 0
    >>> explorer.scenario.objective.shortfall_penalty
    0.0
    """

    def __init__(
        self,
        scenario: AllocationScenario | str | Path | Mapping[str, Any] = "training-rush",
        policies: tuple[str, str] = ("fifo", "aware"),
        *,
        picture: bool = False,
    ) -> None:
        self._given: AllocationScenario = load_allocation(scenario)
        self._base = self._given
        self._prepare("preset")
        self._caps: list[int | None] = []
        self._loaded_jobs: list[dict[str, Any]] = []
        self._scenario = self._given
        for name in policies:
            if not policy_named(name).live:
                rule = (
                    "is too slow to plan at every move of a control; the explorer proves on request (Certify)"
                )
                raise InputError("explorer", [Mistake("policies", rule, name)])
        self._plans = self._plan(self._given, policies)
        self._policies = policies
        self._with_picture = picture
        self._build()
        super().__init__(self._parts())
        self.add_class("gp-explorer")
        with self._silently():
            self.controls.left.value, self.controls.right.value = policies
            self.controls.preset.value = self._shipped_name()
            self._settle()
        self._publish(self._given, self._plans)
        self._listen()
        if not engine.compiled():
            self.chart.status = COMPILING
            threading.Thread(target=self._until_compiled, daemon=True, name="gpuplan-compiling").start()

    # ------------------------------------------------------------------ what is on screen

    @property
    def scenario(self) -> AllocationScenario:
        """The scenario on screen (the last one that could be planned)."""
        return self._scenario

    @property
    def plans(self) -> dict[str, Plan]:
        """The plans on screen, under ``"left"`` and ``"right"``."""
        return dict(self._plans)

    def _until_compiled(self) -> None:
        while not engine.compiled():
            time.sleep(ASK_S)
        self.chart.status = ""

    def __repr__(self) -> str:
        left, right = (self._plans[side].policy for side in SIDES)
        return f"AllocationExplorer({shorten(self._scenario.name)!r}, {left} | {right})"

    def _repr_mimebundle_(self, **kwargs: Any) -> Any:
        bundle = super()._repr_mimebundle_(**kwargs)
        if bundle is None:
            return None
        page = {"text/html": self.account.page(self._remarks())}
        return {**bundle, **(self.chart.stand_in() if self._with_picture else page)}

    # ------------------------------------------------------------------ parts

    def _build(self) -> None:
        self.controls = c.make([one.name for one in shipped() if one.kind == "allocation"])
        self.curve = CurveEditor()
        self.table = JobTable()
        self._picture = Picture(self._plans)
        self.chart = self._picture.chart
        self.chart.file_name = f"gpuplan-{self._given.name}"
        self.account = account = Account(self._plans)
        self.summary, self.figures, self.tables = account.summary, account.figures, account.tables
        self.why, self.why_text, self.fold = account.why, account.why_text, account.fold
        self.studies = Studies(self._given, self._proven, lambda: self.chart.room)
        self.actions = hand_outs.bar(self)
        self.file = FileOpener(self, "allocation", self._take)

    def _parts(self) -> list[Any]:
        places = self.controls.messages
        editors = c.box(
            "gp-editors",
            [
                c.box("gp-editor-curve", [self.curve, places["curve"]]),
                c.box("gp-editor-jobs", [self.table, places["jobs"]]),
            ],
        )
        return [
            c.layout(self.controls),
            self.file.fold,
            self.summary,
            self.chart,
            editors,
            self.account.question,
            self.why_text,
            self.fold,
            self.studies.fold,
            self.actions,
        ]

    def _listen(self) -> None:
        """One observer per control, for as long as the explorer lives."""
        for name, widget in self.controls.named().items():
            widget.observe(lambda _change, name=name: self._moved(name), "value")
        self.curve.observe(lambda _change: self._moved("curve"), "curves")
        self.table.observe(lambda _change: self._moved("jobs"), "edits")
        self.account.listen()
        self.chart.observe(lambda _change: self._fit(), "room")

    # ------------------------------------------------------------------ a control moves

    def _concerns(self, name: str) -> bool:
        if name != "swap_app":
            return True
        with self._silently():  # another app's cap comes into view; nothing changes
            c.show_cap(self.controls, self._caps)
        return False

    def _follow(self, name: str) -> None:
        if name == "preset":
            self._start_from(self._chosen())
        elif name == "swap":
            self._set_cap()

    def _question(self) -> tuple[str, str]:
        return self.controls.left.value, self.controls.right.value

    def _find(self, question: tuple[str, str], ticket: int) -> tuple[tuple[Any, ...], float]:
        scenario = self._draft()
        with PLANNING:
            began = time.perf_counter()
            plans = self._plan(scenario, question)
            return (scenario, plans), time.perf_counter() - began

    def _plan(self, scenario: AllocationScenario, policies: tuple[str, str]) -> dict[str, Plan]:
        # a number of moves, not a time: the same settings give the same picture
        effort = repeatable(scenario)
        plans = [plan(scenario, name, **effort) for name in policies]
        for one in plans:
            _ = one.figures  # counted here, where the time is taken
        return dict(zip(SIDES, plans, strict=True))

    def _draft(self) -> AllocationScenario:
        """The scenario that the controls describe.

        Raises
        ------
        InputError
            If there is no such scenario.
        """
        with self._state:
            base, changes = self._base, self.changes
        return base.replace(changes) if changes else base

    @property
    def changes(self) -> dict[str, Any]:
        """What the controls change in the scenario that was loaded, by dotted path."""
        return changes_of(self._base, self.controls, self._caps, self.curve.curves, self._table_changes())

    def _table_changes(self) -> list[dict[str, Any]] | None:
        jobs = self.table.jobs
        return None if jobs == self._loaded_jobs else jobs

    def _set_cap(self) -> None:
        value, chosen = self.controls.swap.value, self.controls.swap_app.value
        if value != c.VARIOUS:
            cap_now = c.meant(value)
            self._caps = [cap_now if chosen in (-1, i) else cap for i, cap in enumerate(self._caps)]

    # ------------------------------------------------------------------ showing

    def _publish(self, scenario: AllocationScenario, plans: dict[str, Plan]) -> None:
        proof = self.studies.proof_of(scenario)
        if proof is not None:
            plans = {side: one.with_proof(proof) for side, one in plans.items()}
        self._picture.show(plans)
        self.chart.label = describe(*plans.values())
        self._scenario, self._plans = scenario, plans
        self.account.show(plans, self._remarks())
        self.studies.show(scenario)
        for message in self.controls.messages.values():
            messages.say(message, "")
        self.table.show_mistakes([])
        with self._silently():
            top = max([scenario.cluster.gpus, *(max(curve, default=0) for curve in self.curve.curves)])
            if self.curve.vmax != top:
                self.curve.vmax = top

    def _proven(self, scenario: AllocationScenario, proof: Proof) -> None:
        """Show what was proven beside the plans, unless they are of another scenario by now."""
        with self._state:
            if scenario != self._scenario:
                return
            self._plans = {side: one.with_proof(proof) for side, one in self._plans.items()}
            self._picture.show(self._plans, old=self.chart.old)
            self.account.show(self._plans, self._remarks())
            self.account.mark(old=self.chart.old)

    def _remarks(self) -> list[str]:
        gone = [gpu for gpu in self._base.cluster.unavailable if gpu >= self._scenario.cluster.gpus]
        if not gone:
            return []
        which = "1 GPU that is" if len(gone) == 1 else f"{len(gone)} GPUs that are"
        verb = "is" if len(gone) == 1 else "are"
        return [f"{which} marked unavailable {verb} not part of a cluster of this size."]

    def _fail(self, cause: str, error: Exception) -> None:
        """Say what is wrong beside the control or the table of jobs, and mark the picture as old."""
        mistakes = error.mistakes if isinstance(error, InputError) else ()
        told = [(place_of(mistake.path), mistake) for mistake in mistakes]
        in_table = [
            (row, field, messages.rule(mistake)) for (part, row, field), mistake in told if part == "jobs"
        ]
        self.table.show_mistakes(in_table)
        text = messages.sentence(error, self._names(), in_table=bool(in_table))
        # A wrong cell is what has to be changed, whichever control was moved since.
        place = "jobs" if any(field for _, field, _ in in_table) else cause
        for name, message in self.controls.messages.items():
            messages.say(message, text if name == place else "")
        self.chart.old = True
        self.chart.busy = False
        self.account.mark(old=True)

    def _names(self) -> dict[str, list[str]]:
        return {"batch": [job["name"] for job in self.table.jobs], "realtime": list(self.curve.names)}

    def _fit(self) -> None:
        """Draw what is on screen for another width of the page."""
        with self._state:
            if not self._picture.fits(self._plans):
                self._picture.show(self._plans, old=self.chart.old)

    # ------------------------------------------------------------------ presets, reset, what is handed out

    def _shipped_name(self) -> str:
        """Name of the shipped scenario that the given one is, if any."""
        name = self._given.name
        known = [value for _, value in self.controls.preset.options]
        same = name in known and load_allocation(name).fingerprint == self._given.fingerprint
        return name if same else ""

    def _chosen(self) -> AllocationScenario:
        name = self.controls.preset.value
        return load_allocation(name) if name else self._given

    def _take(self, scenario: AllocationScenario) -> None:
        """Show another scenario in place of the one that was given."""
        self._given = scenario
        with self._silently():
            self.controls.preset.value = ""
        self._moved("preset")

    def _start_from(self, scenario: AllocationScenario) -> None:
        self._base = scenario
        self.chart.file_name = f"gpuplan-{scenario.name}"
        self._settle()

    def _settle(self, shown: AllocationScenario | None = None) -> None:
        """Set every control to what a scenario says: the loaded one, or the loaded one with changes."""
        base = self._base if shown is None else shown
        with self._silently():
            self._caps = [app.max_swap for app in base.realtime]
            c.settle(self.controls, base)
            self.actions.band = [100 * edge / self.controls.penalty.max for edge in c.BAND]
            demand = {app.name: app.demand for app in base.realtime}
            self.curve.show(demand, vmax=base.cluster.gpus, step_hours=base.horizon.step_hours)
            self.table.show(jobs_of(base), taken=demand)
            if shown is None:
                self._loaded_jobs = self.table.jobs

    def reset(self) -> None:
        """Back to the scenario and the policies as they were given."""
        with self._silently():
            self.controls.left.value, self.controls.right.value = self._policies
        self._moved("preset")

    def state(self) -> State:
        """What is on screen, for the address of a page."""
        with self._state:
            policies = tuple(plan.policy for plan in self._plans.values())
            name, changes = self.controls.preset.value or None, self.changes
        return State(name, policies, changes, shown=self._scenario)

    def restore(self, changes: Mapping[str, Any]) -> None:
        """Set the controls to changes of the scenario that was loaded.

        Raises
        ------
        InputError
            For paths that no control changes, and values that cannot be.
        """
        only(changes, _PATHS)
        base = self._base
        wanted = base.replace(changes)
        with self._silently():
            self._settle(wanted)
        again = base.replace(self.changes) if self.changes else base
        if again.fingerprint != wanted.fingerprint:
            self.reset()
            raise InputError(
                "this link", [Mistake("changes", "must be such that the controls can show them")]
            )
        self._moved("penalty")

    def code(self, policies: list[str] | None = None) -> str:
        """Three lines of Python that make again what is on screen."""
        names = policies or [one.policy for one in self._plans.values()]
        chosen = self.controls.preset.value or None
        return reproduce.python(self._scenario, names, shipped=chosen, changes=self.changes)
