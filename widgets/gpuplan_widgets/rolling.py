"""The rolling explorer: days as they unfold, one plan after the other, for policies beside each other."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import ipywidgets as W

from gpuplan.allocation.charts.rolling_columns import demand_tops, moment_data
from gpuplan.allocation.charts.rolling_live import moment_spec
from gpuplan.allocation.charts.rolling_moment import describe_moment, moment_words
from gpuplan.allocation.days import Errors
from gpuplan.allocation.model import AllocationScenario
from gpuplan.allocation.plan import policy_named
from gpuplan.allocation.rolling import roll
from gpuplan.allocation.rolling_run import RollingRun
from gpuplan.inputs.errors import InputError, Mistake, shorten
from gpuplan.loading import load_allocation
from gpuplan_widgets import messages, rolling_hand_outs
from gpuplan_widgets import rolling_controls as c
from gpuplan_widgets.address import Named, State, only
from gpuplan_widgets.answering import PLANNING, Answering
from gpuplan_widgets.live_chart import ROOM, LiveChart
from gpuplan_widgets.rolling_account import RollingAccount

#: Widths (pixels) that the chart is drawn for, and what it leaves of the page's.
_NARROWEST, _WIDEST, _SPARE = 320, 1500, 20

#: Keywords of `gpuplan.roll` that controls change.
_PATHS = "days|horizon_hours|replan_every|seed|" + "|".join(rf"errors\.{name}" for name in c.ERRORS)


class RollingExplorer(Answering, W.VBox):
    """Days as they unfold: what each policy commits step by step, and what its plans say of the hours to come.

    Parameters
    ----------
    scenario
        A day that comes again and again: a scenario, the name of a shipped one, the path of a file, or a mapping.
    days
        How many.
    policies
        Policies that are run; the last is shown at first, the others can be chosen.
    horizon_hours, replan_every, errors, seed
        As in `gpuplan.roll`, to begin with.
    picture
        Whether a re-opened notebook and an exported page show a picture of the chart (one to three seconds of
        work); without it they show the figures.

    Attributes
    ----------
    runs : dict of str to RollingRun
        What is on screen, by policy.
    number : int
        The plan on screen, from 0.
    controls : DaysControls
        What decides the days; `position` holds the controls of the moment, `chart` and `account` show it.

    Raises
    ------
    InputError
        If the scenario or a setting has mistakes, or a policy is unknown. Later mistakes are sentences on the page.

    Examples
    --------
    >>> explorer = RollingExplorer("mixed-day", days=2)
    >>> explorer.position.forward.click()
    >>> explorer.number
    1
    """

    def __init__(
        self,
        scenario: AllocationScenario | str | Path | Mapping[str, Any] = "mixed-day",
        days: int = 7,
        policies: Sequence[str] = ("fifo", "aware"),
        *,
        horizon_hours: float | str | None = None,
        replan_every: float | str | None = None,
        errors: Errors | Mapping[str, float] | None = None,
        seed: int = 0,
        picture: bool = False,
    ) -> None:
        self._day: AllocationScenario = load_allocation(scenario)
        self._policies = _known(policies)
        if isinstance(seed, bool) or not isinstance(seed, int) or seed < 0:
            rule = "must be a whole number of at least 0"
            raise InputError(self._day.name, [Mistake("seed", rule, seed)])
        asked: dict[str, Any] = {
            "days": days,
            "horizon_hours": horizon_hours,
            "replan_every": replan_every,
            "errors": asdict(errors) if isinstance(errors, Errors) else errors,
            "seed": seed,
        }
        self._prepare("days")
        self._with_picture = picture
        self._named = Named("allocation")
        self._runs = self._run_with(asked)  # mistakes are told before anything is shown
        self._given = self._settings = c.settings_of(next(iter(self._runs.values())), asked)
        self._build()
        super().__init__(self._parts())
        self.add_class("gp-explorer")
        with self._silently():
            self.controls.settle(self._given)
        self._publish(self._runs, self._given)
        self._listen()

    # ------------------------------------------------------------------ what is on screen

    @property
    def runs(self) -> dict[str, RollingRun]:
        """The runs on screen (of the last settings that could be run), by policy."""
        return dict(self._runs)

    @property
    def run(self) -> RollingRun:
        """The run that the chart shows."""
        return self._runs[self.position.policy.value]

    @property
    def number(self) -> int:
        """Number of the plan on screen, from 0."""
        return min(int(self.position.moment.value), len(self.run.promises) - 1)

    @property
    def settings(self) -> dict[str, Any]:
        """What is on screen as keywords of `gpuplan.roll`."""
        return {**self._settings, "errors": dict(self._settings["errors"])}

    def state(self) -> State:
        """What is on screen, for the address of a page."""
        with self._state:
            plain = {name: value for name, value in self._settings.items() if name != "errors"}
            errors = {f"errors.{name}": value for name, value in self._settings["errors"].items() if value}
        return State(self._named.of(self._day), tuple(self._runs), {**plain, **errors}, shown=self._day)

    def restore(self, changes: Mapping[str, Any]) -> None:
        """Set the controls to keywords of `gpuplan.roll`, as `state` tells them.

        Raises
        ------
        InputError
            For what no control changes, and values that cannot be.
        """
        only(changes, _PATHS)
        errors = {k.removeprefix("errors."): v for k, v in changes.items() if k.startswith("errors.")}
        plain = {k: v for k, v in changes.items() if not k.startswith("errors.")}
        asked = {**self._given, **plain, "errors": errors}
        if isinstance(asked["days"], int) and asked["days"] > c.MOST_DAYS:
            raise InputError("this link", [Mistake("days", f"must be at most {c.MOST_DAYS}", asked["days"])])
        runs = self._run_with(asked)  # mistakes are told before a control moves
        with self._silently():
            self.controls.settle(c.settings_of(next(iter(runs.values())), asked))
        self._publish(runs, c.settings_of(next(iter(runs.values())), asked))

    def code(self) -> str:
        """Python that makes again what is on screen."""
        return rolling_hand_outs.python(self._day, list(self._runs), self._settings)

    def reset(self) -> None:
        """Back to the settings as they were given, and to the first plan."""
        with self._silently():
            self.controls.settle(self._given)
            self.position.moment.value = 0
        self._moved("days")

    def __repr__(self) -> str:
        days = self._settings["days"]
        count = f"{days} day" if days == 1 else f"{days} days"
        return f"RollingExplorer({shorten(self._day.name)!r}, {count}, {' | '.join(self._runs)})"

    def _repr_mimebundle_(self, **kwargs: Any) -> Any:
        bundle = super()._repr_mimebundle_(**kwargs)
        if bundle is None:
            return None
        page = {"text/html": self.account.page()}
        return {**bundle, **(self.chart.stand_in() if self._with_picture else page)}

    # ------------------------------------------------------------------ parts

    def _build(self) -> None:
        self.controls = c.make_days()
        self.position = c.make_moment(list(self._runs))
        self._tops = demand_tops(list(self._runs.values()))
        self.account = RollingAccount()
        self.chart = LiveChart(
            moment_spec(self.run.days, width=_width(ROOM)),
            moment_data(self.run, 0, self._tops, width=_width(ROOM)),
            label="Days of a policy",
            file_name=f"gpuplan-{self._day.name}-days",
        )
        self.chart.adapts = True
        self.actions = rolling_hand_outs.bar(self)

    def _parts(self) -> list[Any]:
        return [
            c.layout_days(self.controls),
            c.layout_moment(self.position),
            self.chart,
            self.account.parts(self.position.margin),
            self.account.fold,
            self.actions,
        ]

    def _listen(self) -> None:
        """One observer per control, for as long as the explorer lives."""
        for name, widget in self.controls.named().items():
            widget.observe(lambda _change, name=name: self._moved(name), "value")
        at = self.position
        for widget in (at.moment, at.policy, at.margin):
            widget.observe(lambda _change: self._stepped(), "value")
        W.link((at.play, "value"), (at.moment, "value"))
        W.link((at.speed, "value"), (at.play, "interval"))
        at.first.on_click(lambda _button: self.go(0))
        at.back.on_click(lambda _button: self.go(self.number - 1))
        at.forward.on_click(lambda _button: self.go(self.number + 1))
        at.last.on_click(lambda _button: self.go(at.moment.max))
        self.chart.observe(lambda _change: self._stepped(), "room")

    # ------------------------------------------------------------------ through the days

    def go(self, number: int) -> None:
        """Show a plan by its number, the first or the last where there is none of that number."""
        self.position.moment.value = min(max(0, number), self.position.moment.max)

    def _stepped(self) -> None:
        """Show another moment, policy, margin or width; nothing that goes wrong may leave this callback."""
        with self._state:
            if self._quiet:
                return
            try:
                self._show()
            except Exception as error:
                messages.say(self.position.where, f"This moment cannot be shown: {shorten(str(error), 300)}")

    def _show(self) -> None:
        run, number, width = self.run, self.number, _width(self.chart.room)
        step = run.promises[number].step
        drawn = moment_data(run, number, self._tops, width=width)
        self.chart.show(drawn, spec=moment_spec(run.days, width=width), old=self.chart.old)
        self.chart.label = describe_moment(run, number)
        words = f"{moment_words(run.days, step)}: plan {number + 1:,} of {len(run.promises):,}"
        self.position.where.value = f"<b>{words}</b>"
        margin = self.position.margin.value / 100
        self.account.show(self._runs, run.policy, number, margin, drawn)

    # ------------------------------------------------------------------ other days

    def _question(self) -> dict[str, Any]:
        asked: dict[str, Any] = self.controls.asked()
        return asked

    def _find(self, question: dict[str, Any], ticket: int) -> tuple[tuple[Any, ...], float]:
        began = time.perf_counter()
        with self._saying_busy(ticket):
            return (self._run_with(question), question), time.perf_counter() - began

    def _run_with(self, asked: Mapping[str, Any]) -> dict[str, RollingRun]:
        with PLANNING:
            runs = {name: roll(self._day, name, **asked) for name in self._policies}
            for run in runs.values():
                _ = run.figures  # counted here, where the time is taken
        return runs

    def _publish(self, runs: dict[str, RollingRun], settings: Mapping[str, Any]) -> None:
        """Show other runs at the hour that was on screen, as far as they have it."""
        before = self.run.promises[self.number].step
        first = next(iter(runs.values()))
        number = min(before // first.replan_steps, len(first.promises) - 1)
        self._runs, self._settings = runs, dict(settings)
        self._tops = demand_tops(list(runs.values()))
        with self._silently():
            for widget in (self.position.moment, self.position.play):
                widget.max = max(1, len(first.promises) - 1)
                widget.disabled = len(first.promises) == 1
                widget.value = number
        self.chart.old = False
        for message in self.controls.messages.values():
            messages.say(message, "")
        self._show()

    def _fail(self, cause: str, error: Exception) -> None:
        """Say what is wrong beside the control, and mark the picture as old."""
        text = messages.sentence(error)
        for name, message in self.controls.messages.items():
            messages.say(message, text if name == cause else "")
        self.chart.old = True
        self.chart.busy = False


def _width(room: int) -> int:
    """Pixels of the chart on a page of so many."""
    return min(max(room - _SPARE, _NARROWEST), _WIDEST)


def _known(policies: Sequence[str]) -> tuple[str, ...]:
    """Policies without repetitions; an `InputError` where one is unknown, too slow, or none is named."""
    names = (policies,) if isinstance(policies, str) else tuple(dict.fromkeys(policies))
    mistakes = [] if names else [Mistake("policies", "must name at least one policy", policies)]
    for name in names:
        if not policy_named(name).live:
            rule = "is too slow to plan every hour of several days at every move of a control"
            mistakes.append(Mistake("policies", rule, name))
    if mistakes:
        raise InputError("rolling explorer", mistakes)
    return names
