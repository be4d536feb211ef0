"""The fair-share explorer: two policies on weeks of a shared cluster, run again at every move of a control."""

import html
import re
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import ipywidgets as W

from gpuplan.fairshare.charts.colours import palette_of
from gpuplan.fairshare.keep_jobs import keep_jobs
from gpuplan.fairshare.model import FairshareScenario
from gpuplan.fairshare.problem import Problem, compile_problem
from gpuplan.fairshare.run import Run, policy_named, simulate
from gpuplan.inputs.errors import InputError, Mistake, shorten
from gpuplan.loading import load_fairshare
from gpuplan_widgets import fairshare_controls as c
from gpuplan_widgets import fairshare_hand_outs, messages
from gpuplan_widgets.address import Named, State, only
from gpuplan_widgets.answering import PLANNING, Answering
from gpuplan_widgets.fairshare_account import FairShareAccount, set_html
from gpuplan_widgets.fairshare_budget import BudgetEditor
from gpuplan_widgets.fairshare_picture import FairSharePicture
from gpuplan_widgets.fairshare_words import headline
from gpuplan_widgets.picture import SIDES
from gpuplan_widgets.upload import FileOpener

#: Runs that are kept: both sides now, both of the scenario as it was given, and a few from before.
KEPT_RUNS = 8

#: Paths of a scenario that controls change, and whether jobs follow the shares.
_PATHS = "|".join([*map(re.escape, c.PATHS.values()), r"budget\.\d+(\.children\.\d+)*\.weight", "jobs"])


class FairShareExplorer(Answering, W.VBox):
    """Two policies side by side on one scenario, its budget tree, and a control for whatever decides.

    Parameters
    ----------
    scenario
        A fair-share scenario, the name of a shipped one, the path of a scenario file, or a mapping.
    policies
        Policies on the left and on the right.
    picture
        Whether a re-opened notebook and an exported page show a picture of the charts; it takes one to three
        seconds to make before the explorer appears. Without it they show the figures.

    Attributes
    ----------
    scenario : FairshareScenario
        What is on screen.
    runs : dict of str to Run
        What is on screen, under ``"left"`` and ``"right"``.
    budget : BudgetEditor
        The shares.
    controls : FairShareControls
        The sliders and choices by name; `chart` and `account` show what comes of them.

    Raises
    ------
    InputError
        If the scenario has mistakes, or a policy is unknown. Later mistakes are sentences on the page.

    Examples
    --------
    >>> explorer = FairShareExplorer("first-hours")
    >>> explorer.budget.set_share("blue", 0.75)
    >>> explorer.scenario.budget[1].weight
    3.0
    """

    def __init__(
        self,
        scenario: FairshareScenario | str | Path | Mapping[str, Any] = "three-programmes",
        policies: tuple[str, str] = ("easy", "fair-share"),
        *,
        picture: bool = False,
    ) -> None:
        self._given: FairshareScenario = load_fairshare(scenario)
        self._scenario = self._given
        for name in policies:
            policy_named(name)
        self._policies = policies
        self._prepare("right")
        self._with_picture = picture
        self._named = Named("fairshare")
        self._memory: dict[tuple[FairshareScenario, str], Run] = {}
        self._before: dict[str, Run] = {}
        with PLANNING:
            self._runs = self._simulated(self._given, policies)
        self._build()
        super().__init__(self._parts())
        self.add_class("gp-explorer")
        with self._silently():
            self.controls.left.value, self.controls.right.value = policies
            self._settle()
        self._publish(self._given, self._runs, {})
        self._listen()

    # ------------------------------------------------------------------ what is on screen

    @property
    def scenario(self) -> FairshareScenario:
        """The scenario on screen (the last one that could be run)."""
        return self._scenario

    @property
    def runs(self) -> dict[str, Run]:
        """The runs on screen, under ``"left"`` and ``"right"``."""
        return dict(self._runs)

    @property
    def kept(self) -> bool:
        """Whether generated jobs stay as they are while shares move."""
        return bool(self.controls.demand.value == c.KEPT and self._generated)

    @property
    def changes(self) -> dict[str, Any]:
        """What the controls change in the scenario that was given, by dotted path; shares come last."""
        return {**self.controls.changes(), **self.budget.changes}

    def state(self) -> State:
        """What is on screen, for the address of a page; `jobs` is among the changes where they follow the shares."""
        with self._state:
            policies = tuple(run.policy for run in self._runs.values())
            follows = {"jobs": c.FOLLOWS} if self.controls.demand.value == c.FOLLOWS else {}
            name, changes = self._named.of(self._given), {**self.changes, **follows}
        return State(name, policies, changes, shown=self._scenario)

    def restore(self, changes: Mapping[str, Any]) -> None:
        """Set the controls to changes of the scenario that was given, as `state` tells them.

        Raises
        ------
        InputError
            For paths that no control changes, and values that cannot be.
        """
        only(changes, _PATHS)
        demand = changes.get("jobs", c.KEPT)
        plain = {path: value for path, value in changes.items() if path in c.PATHS.values()}
        weights = {path: value for path, value in changes.items() if path.startswith("budget.")}
        if demand not in (c.KEPT, c.FOLLOWS):
            raise InputError("this link", [Mistake("jobs", f"must be {c.KEPT} or {c.FOLLOWS}", demand)])
        wanted = self._given.replace({**plain, **weights}) if plain or weights else self._given
        with self._silently():
            settled = self.controls.settled
            c.settle(self.controls, wanted)
            self._said, self.controls.settled = dict(self.controls.settled), settled
            self.controls.demand.value = self._said["demand"] = demand
            self.budget.restore(weights)
        self._moved("budget")

    def code(self) -> str:
        """Python that makes again what is on screen."""
        names = [run.policy for run in self._runs.values()]
        changes, weights = self.controls.changes(), self.budget.changes
        return fairshare_hand_outs.python(self._given, self._scenario, names, changes, weights, self.kept)

    def reset(self) -> None:
        """Back to the scenario and the policies as they were given."""
        with self._silently():
            self.controls.left.value, self.controls.right.value = self._policies
            self._settle()
        self._moved("budget")

    def __repr__(self) -> str:
        left, right = (self._runs[side].policy for side in SIDES)
        return f"FairShareExplorer({shorten(self._scenario.name)!r}, {left} | {right})"

    def _repr_mimebundle_(self, **kwargs: Any) -> Any:
        bundle = super()._repr_mimebundle_(**kwargs)
        if bundle is None:
            return None
        page = {"text/html": self.account.page()}
        return {**bundle, **(self.chart.stand_in() if self._with_picture else page)}

    # ------------------------------------------------------------------ parts

    def _build(self) -> None:
        self.controls = c.make()
        self.budget = BudgetEditor()
        self._about = {side: W.HTML("") for side in SIDES}
        self._hysteresis = W.HTML("")
        self._picture = FairSharePicture(self._runs)
        self.chart = self._picture.chart
        self.chart.file_name = f"gpuplan-{self._given.name}"
        self.account = FairShareAccount(self._runs, self.chart.html_table)
        self.actions = fairshare_hand_outs.bar(self)
        self.file = FileOpener(self, "fairshare", self._take)

    def _parts(self) -> list[Any]:
        account = self.account
        return [
            c.layout(self.controls, self.budget, self._hysteresis, self._about),
            self.file.fold,
            account.summary,
            self.chart,
            account.teams,
            account.figures,
            account.fold,
            self.actions,
        ]

    def _listen(self) -> None:
        """One observer per control, for as long as the explorer lives."""
        for name, widget in self.controls.named().items():
            widget.observe(lambda _change, name=name: self._moved(name), "value")
        self.budget.observe(lambda _change: self._moved("budget"), "edits")
        self.chart.observe(lambda _change: self._fit(), "room")

    @property
    def _generated(self) -> bool:
        return self._given.generate is not None and self._given.jobs is None

    def _take(self, scenario: FairshareScenario) -> None:
        """Show another scenario in place of the one that was given."""
        self._given = scenario
        self.chart.file_name = f"gpuplan-{scenario.name}"
        with self._silently():
            self._settle()
        self._moved("budget")

    def _settle(self) -> None:
        """Set every control to what the scenario says."""
        c.settle(self.controls, self._given)
        self._said = dict(self.controls.settled)
        self.budget.show(self._given.budget, self._given.gpus, _colours(compile_problem(self._given)))

    # ------------------------------------------------------------------ a control moves

    def _concerns(self, name: str) -> bool:
        """Whether a control says something new; a page gives numbers back that differ in their last digit."""
        if name == "budget":
            return True
        said = self.controls.said(name)
        new = bool(said != self._said.get(name))
        self._said[name] = said
        return new

    def _question(self) -> tuple[dict[str, Any], dict[str, float], bool, tuple[str, str]]:
        policies = (self.controls.left.value, self.controls.right.value)
        return self.controls.changes(), self.budget.changes, self.kept, policies

    def _find(self, question: Any, ticket: int) -> tuple[tuple[Any, ...], float]:
        changes, weights, kept, policies = question
        with self._saying_busy(ticket):
            scenario = self._given.replace(changes) if changes else self._given
            if weights:
                scenario = (keep_jobs(scenario) if kept else scenario).replace(weights)
            with PLANNING:
                began = time.perf_counter()
                given = self._simulated(self._given, policies) if changes or weights else {}
                runs = self._simulated(scenario, policies)
                return (scenario, runs, given), time.perf_counter() - began

    def _simulated(self, scenario: FairshareScenario, policies: Sequence[str]) -> dict[str, Run]:
        """The runs of a scenario by side; what was run a moment ago is not run again."""
        found = {}
        for side, name in zip(SIDES, policies, strict=True):
            run = self._memory.pop((scenario, name), None)
            if run is None:
                run = simulate(scenario, name)
                _ = run.figures, run.teams, run.hours  # counted here, where the time is taken
            self._memory[scenario, name] = run  # the newest is last
            found[side] = run
        while len(self._memory) > KEPT_RUNS:
            del self._memory[next(iter(self._memory))]
        return found

    # ------------------------------------------------------------------ showing

    def _publish(self, scenario: FairshareScenario, runs: dict[str, Run], given: Mapping[str, Run]) -> None:
        self._picture.show(runs)
        self.chart.label = headline(runs["left"], runs["right"])
        self._scenario, self._runs = scenario, runs
        self.account.show(runs, given, self._remarks())
        for message in self.controls.messages.values():
            messages.say(message, "")
        for side in SIDES:
            set_html(self._about[side], c.about_html(runs[side].policy))
        set_html(self._hysteresis, self._hysteresis_html(runs["left"].problem))

    def _hysteresis_html(self, problem: Problem) -> str:
        number = f"{problem.hysteresis:.3g} of a share"
        words = (
            f"a claim must be better by {number}"
            if problem.hysteresis
            else "off: any better claim preempts, over and over where the queue is long"
        )
        return f'<span class="gp-hint">{html.escape(words)}</span>'

    def _remarks(self) -> list[str]:
        """What was done here that a person has to know."""
        said = []
        muted = self.budget.muted
        if muted:
            names = ", ".join(shorten(path, 60) for path in muted[:3])
            more = f" and {len(muted) - 3} more" if len(muted) > 3 else ""
            said.append(f"Muted: {names}{more}; what has no share is owed nothing and comes last.")
        if self.budget.changes and self._generated:
            said.append(
                "The jobs stay as they were generated for the shares as given."
                if self.kept
                else "The jobs follow the shares: a team with more of them submits more."
            )
        return said

    def _fail(self, cause: str, error: Exception) -> None:
        """Say what is wrong beside the control, and mark the picture as old."""
        text = messages.sentence(error)
        for name, path in c.PATHS.items():  # as people see it
            text = text.replace(f"{path}: must", f"{getattr(self.controls, name).description} ({path}) must")
        for name, message in self.controls.messages.items():
            messages.say(message, text if name == cause else "")
        self.chart.old = True
        self.chart.busy = False
        self.account.mark(old=True)

    def _fit(self) -> None:
        """Draw what is on screen for another width of the page."""
        with self._state:
            if not self._picture.fits(self._runs):
                self._picture.show(self._runs, old=self.chart.old)


def _colours(problem: Problem) -> dict[str, str]:
    """Colours of the teams in the charts, by path."""
    palette = palette_of(problem)
    groups = palette.group.tolist()
    return {path: palette.colours[group] for path, group in zip(problem.tree.teams, groups, strict=True)}
