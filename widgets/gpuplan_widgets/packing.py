"""The packing explorer: two policies on a node with a few GPUs, run again at every move of a control."""

import html
import re
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import ipywidgets as W

from gpuplan.inputs.errors import InputError, Mistake, shorten
from gpuplan.loading import load_packing
from gpuplan.packing.model import PackingScenario
from gpuplan.packing.policies import KINDS, pieces_named
from gpuplan.packing.run import PackRun, compare
from gpuplan_widgets import messages, packing_hand_outs
from gpuplan_widgets import packing_controls as c
from gpuplan_widgets import packing_gallery as gallery
from gpuplan_widgets.address import State, only
from gpuplan_widgets.answering import PLANNING, Answering
from gpuplan_widgets.packing_account import PackingAccount, set_html
from gpuplan_widgets.packing_picture import PackingPicture
from gpuplan_widgets.packing_words import headline, overload
from gpuplan_widgets.picture import SIDES
from gpuplan_widgets.upload import FileOpener

#: Runs that are kept: both sides now, both of the scenario as it was given, and a few from before.
KEPT_RUNS = 8

#: Paths of a scenario that controls change, and the mix of sizes.
_PATHS = "|".join([*map(re.escape, c.PATHS.values()), r"models\.\d{1,4}\.gpus", "mix"])


class PackingExplorer(Answering, W.VBox):
    """Two policies side by side on one scenario, and a control for whatever decides.

    Parameters
    ----------
    scenario
        A packing scenario, the name of a shipped one, the path of a scenario file, or a mapping.
    policies
        Policies on the left and on the right, like ``"best-fit+backfill+lfu"``; pieces that they do not name are the
        scenario's own. None: those that show what the scenario is about.
    picture
        Whether a re-opened notebook and an exported page show a picture of the charts; it takes one to three
        seconds to make before the explorer appears. Without it they show the figures.

    Attributes
    ----------
    scenario : PackingScenario
        What is on screen.
    runs : dict of str to PackRun
        What is on screen, under ``"left"`` and ``"right"``.
    controls : PackingControls
        The sliders and choices by name; `chart` and `account` show what comes of them.

    Raises
    ------
    InputError
        If the scenario has mistakes, or a policy is unknown. Later mistakes are sentences on the page.

    Examples
    --------
    >>> explorer = PackingExplorer("embedder-evicts-chat")
    >>> explorer.controls.margin.value = 10
    >>> explorer.runs["right"].figures["evictions"]
    0
    """

    def __init__(
        self,
        scenario: PackingScenario | str | Path | Mapping[str, Any] = "four-gpus",
        policies: tuple[str, str] | None = None,
        *,
        picture: bool = False,
    ) -> None:
        self._given: PackingScenario = load_packing(scenario)
        self._base = self._scenario = self._given
        self._name = gallery.name_of_shipped(self._given)
        asked = policies or gallery.policies_of(self._given, self._name)
        self._policies = _shortened(self._given, asked)
        self._prepare("right_placement")
        self._with_picture = picture
        self._memory: dict[tuple[PackingScenario, str], PackRun] = {}
        with PLANNING:
            self._runs = self._packed(self._given, self._policies)
        self._build()
        super().__init__(self._parts())
        self.add_class("gp-explorer")
        with self._silently():
            self.controls.situation.value = self._name
            self._start_from(self._given, self._name, self._policies)
        self._publish(self._given, self._runs, {})
        self._listen()

    # ------------------------------------------------------------------ what is on screen

    @property
    def scenario(self) -> PackingScenario:
        """The scenario on screen (the last one that could be run)."""
        return self._scenario

    @property
    def runs(self) -> dict[str, PackRun]:
        """The runs on screen, under ``"left"`` and ``"right"``."""
        return dict(self._runs)

    @property
    def changes(self) -> dict[str, Any]:
        """What the controls change in the scenario that they started from, by dotted path."""
        found: dict[str, Any] = self.controls.changes()
        return found

    def state(self) -> State:
        """What is on screen, for the address of a page; the mix of sizes is told by its exponent."""
        with self._state:
            policies = tuple(run.policy for run in self._runs.values())
            changes = {
                path: value for path, value in self.changes.items() if not path.endswith(".popularity")
            }
            mix = self.controls.said("mix")
            more = {"mix": mix} if mix and not self.controls.mix.disabled else {}
        return State(self._situation or None, policies, {**changes, **more}, shown=self._scenario)

    def restore(self, changes: Mapping[str, Any]) -> None:
        """Set the controls to changes of the scenario that was loaded, as `state` tells them.

        Raises
        ------
        InputError
            For paths that no control changes, and values that cannot be.
        """
        only(changes, _PATHS)
        mix = changes.get("mix", 0.0)
        if isinstance(mix, bool) or not isinstance(mix, int | float) or abs(mix) > c.MIX:
            raise InputError("this link", [Mistake("mix", f"must be from {-c.MIX:g} to {c.MIX:g}", mix)])
        plain = {path: value for path, value in changes.items() if path != "mix"}
        base = self._base
        wanted = base.replace(plain) if plain else base
        with self._silently():
            c.restore(self.controls, base, wanted, float(mix))
            self._said = {name: self.controls.said(name) for name in self.controls.named()}
        self._moved("")

    def code(self) -> str:
        """Python that makes again what is on screen."""
        names = [run.policy for run in self._runs.values()]
        return packing_hand_outs.python(self._base, self._scenario, names, self.changes)

    def reset(self) -> None:
        """Back to the scenario and the policies as they were given."""
        with self._silently():
            self.controls.situation.value = self._name
            self._start_from(self._given, self._name, self._policies)
        self._moved("")

    def __repr__(self) -> str:
        left, right = (self._runs[side].policy for side in SIDES)
        return f"PackingExplorer({shorten(self._scenario.name)!r}, {left} | {right})"

    def _repr_mimebundle_(self, **kwargs: Any) -> Any:
        bundle = super()._repr_mimebundle_(**kwargs)
        if bundle is None:
            return None
        page = {"text/html": self.account.page()}
        return {**bundle, **(self.chart.stand_in() if self._with_picture else page)}

    # ------------------------------------------------------------------ parts

    def _build(self) -> None:
        self.controls = c.make()
        self._about = W.HTML("")
        self._about.add_class("gp-pack-about")
        self._hints = {name: W.HTML("") for name in (*c.PIECES, "rate", "mix")}
        self._picture = PackingPicture(self._runs)
        self.chart = self._picture.chart
        self.account = PackingAccount(self._runs, self.chart.html_table)
        self.actions = packing_hand_outs.bar(self)
        self.file = FileOpener(self, "packing", self._take)

    def _parts(self) -> list[Any]:
        account = self.account
        return [
            c.layout(self.controls, self._about, self._hints),
            self.file.fold,
            account.summary,
            self.chart,
            account.figures,
            account.fold,
            self.actions,
        ]

    def _listen(self) -> None:
        """One observer per control, for as long as the explorer lives."""
        for name, widget in self.controls.named().items():
            widget.observe(lambda _change, name=name: self._moved(name), "value")
        self.chart.observe(lambda _change: self._fit(), "room")

    def _take(self, scenario: PackingScenario) -> None:
        """Show another scenario in place of the one that was given."""
        self._given, self._name = scenario, ""
        self._policies = _shortened(scenario, gallery.policies_of(scenario, ""))
        self.reset()

    def _start_from(self, scenario: PackingScenario, name: str, policies: tuple[str, str]) -> None:
        """Set every control to what a scenario (of a shipped name, if any) and two policies say."""
        self._base, self._situation = scenario, name
        self.chart.file_name = f"gpuplan-{scenario.name}"
        for side, policy in zip(SIDES, policies, strict=True):
            c.set_pieces(self.controls, side, gallery.chosen(policy, scenario.policy))
        c.settle(self.controls, scenario)
        self._said = dict(self.controls.settled)

    # ------------------------------------------------------------------ a control moves

    def _concerns(self, name: str) -> bool:
        """Whether a control says something new; a page gives numbers back that differ in their last digit."""
        if not name:
            return True
        said = self.controls.said(name)
        new = bool(said != self._said.get(name))
        self._said[name] = said
        return new

    def _follow(self, name: str) -> None:
        with self._silently():
            if name == "situation":
                chosen = self.controls.situation.value
                if chosen in ("", self._name):
                    self._start_from(self._given, self._name, self._policies)
                else:
                    scenario = load_packing(chosen)
                    self._start_from(scenario, chosen, gallery.policies_of(scenario, chosen))
            elif name.endswith("_eviction") and self.controls.lacks_time(name):
                self.controls.keep_alive.value = self._said["keep_alive"] = c.KEEP_ALIVE_S
            self.controls.enable()

    def _question(self) -> tuple[PackingScenario, dict[str, Any], tuple[str, str]]:
        own = self._base.policy
        left, right = (self.controls.pieces(side, own) for side in SIDES)
        return self._base, self.controls.changes(), gallery.short_names(left, right, own)

    def _find(self, question: Any, ticket: int) -> tuple[tuple[Any, ...], float]:
        base, changes, policies = question
        with self._saying_busy(ticket):
            scenario = base.replace(changes) if changes else base
            with PLANNING:
                began = time.perf_counter()
                runs = self._packed(scenario, policies)
                given = self._packed(base, policies) if changes and _runs_as_given(base, policies) else {}
                return (scenario, runs, given), time.perf_counter() - began

    def _packed(self, scenario: PackingScenario, policies: Sequence[str]) -> dict[str, PackRun]:
        """The runs of a scenario by side; what was run a moment ago is not run again."""
        missing = [name for name in dict.fromkeys(policies) if (scenario, name) not in self._memory]
        made = compare(scenario, missing).runs if missing else {}
        found = {}
        for side, name in zip(SIDES, policies, strict=True):
            run = self._memory.pop((scenario, name), None) or made[name]
            _ = run.figures  # counted here, where the time is taken
            self._memory[scenario, name] = run  # the newest is last
            found[side] = run
        while len(self._memory) > KEPT_RUNS:
            del self._memory[next(iter(self._memory))]
        return found

    # ------------------------------------------------------------------ showing

    def _publish(
        self, scenario: PackingScenario, runs: dict[str, PackRun], given: Mapping[str, PackRun]
    ) -> None:
        self._picture.kind = self.controls.gantt.value
        self._picture.show(runs)
        self.chart.label = headline(runs["left"], runs["right"])
        self._scenario, self._runs = scenario, runs
        self.account.show(runs, given)
        for message in self.controls.messages.values():
            messages.say(message, "")
        set_html(self._about, self._about_html())
        for side in SIDES:
            pieces = runs[side].pieces
            about = c.about_html(pieces.placement, pieces.order, pieces.eviction)
            for kind in KINDS:
                set_html(self._hints[f"{side}_{kind}"], about[kind])
        self.controls.spreads.show(scenario)
        own = "not generated: the tasks are the scenario's own" if scenario.tasks is not None else ""
        hints = {"rate": own or overload(runs["left"]), "mix": "" if own else c.mean_size(scenario)}
        for name, words in hints.items():
            set_html(self._hints[name], f'<div class="gp-hint">{html.escape(words)}</div>' if words else "")

    def _about_html(self) -> str:
        """What the situation is about, and what to try."""
        known = gallery.SITUATIONS.get(self._situation)
        hint = f"<p><b>Try:</b> {html.escape(known.hint)}</p>" if known else ""
        about = html.escape(" ".join(self._base.about.split()))
        return f"<p>{about}</p>{hint}" if about or hint else ""

    def _fail(self, cause: str, error: Exception) -> None:
        """Say what is wrong beside the control, and mark the picture as old."""
        text = messages.sentence(error)
        for name, path in c.PATHS.items():  # as people see it
            text = text.replace(f"{path}: must", f"{getattr(self.controls, name).description} ({path}) must")
        beside = cause if cause in self.controls.messages else "situation"
        for name, message in self.controls.messages.items():
            messages.say(message, text if name == beside else "")
        self.chart.old = True
        self.chart.busy = False
        self.account.mark(old=True)

    def _fit(self) -> None:
        """Draw what is on screen for another width of the page."""
        with self._state:
            if not self._picture.fits(self._runs):
                self._picture.show(self._runs, old=self.chart.old)


def _shortened(scenario: PackingScenario, policies: tuple[str, str]) -> tuple[str, str]:
    """Policies as the explorer names them; an `InputError` for one that cannot be run."""
    left, right = (pieces_named(policy, scenario.policy) for policy in policies)
    return gallery.short_names(left, right, scenario.policy)


def _runs_as_given(base: PackingScenario, policies: Sequence[str]) -> bool:
    """Whether policies can be run on the scenario as it was given: keep-alive may lack its time there."""
    return base.policy.keep_alive_us is not None or not any("keep-alive" in name for name in policies)
