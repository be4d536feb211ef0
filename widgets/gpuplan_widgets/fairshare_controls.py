"""The controls of the fair-share explorer, and from what they say to changes of a scenario."""

from collections.abc import Iterable
from dataclasses import dataclass, field, fields
from typing import Any

import ipywidgets as W

from gpuplan.fairshare.model import DAY, HOUR, FairshareScenario
from gpuplan.fairshare.policies import ALL, POLICIES
from gpuplan.inputs.spans import span_text
from gpuplan_widgets import messages
from gpuplan_widgets.controls import box, mark
from gpuplan_widgets.messages import hint

#: Choices of the control over who asks for what when a share moves.
KEPT, FOLLOWS = "kept", "follows"

#: Ranges of the sliders, unless the scenario's own value lies outside.
LEAST_LOAD, MOST_LOAD, MOST_DAYS, MOST_SEED = 0.5, 4.0, 60.0, 2**53

_WINDOWS_H = (1, 3, 6, 12, 24, 48, 72, 168, 336, 672)
_CAPS_H = (0, 1 / 12, 0.25, 0.5, 1, 2, 4, 8, 12, 24, 48)
_WIDE: dict[str, Any] = {
    "style": {"description_width": "150px"},
    "layout": W.Layout(width="410px", max_width="100%"),
}
_LIVE: dict[str, Any] = {"continuous_update": True, **_WIDE}

#: Controls that only a generated workload has.
GENERATED = ("load", "debug", "days", "seed", "demand")

#: Where each control's value goes in a scenario.
PATHS = {
    "window": "window",
    "cap": "contract.max_min_runtime",
    "hysteresis": "contract.hysteresis",
    "load": "workload.generate.oversubscription",
    "debug": "workload.generate.debug_share",
    "days": "workload.generate.days",
    "seed": "workload.generate.seed",
    "inflation": "behaviour.inflation",
    "squatting": "behaviour.squatting",
    "opt_out": "behaviour.opt_out",
    "opt_out_limit": "behaviour.opt_out_limit_gpus",
}

_TIPS = {
    "left": "Policy on the left side",
    "right": "Policy on the right side",
    "window": "How far back the time that a budget has used counts",
    "cap": "The longest time for which work may ask not to be preempted",
    "hysteresis": "How much better a claim must be to preempt another budget's work: the cap over the window, or what "
    "the scenario says. Off: budgets in balance preempt each other over and over",
    "load": "GPU-hours submitted per GPU-hour available over the days",
    "debug": "Share of the jobs that are short debug runs",
    "days": "Length of the generated workload",
    "seed": "The same seed gives the same jobs",
    "demand": "A generated team asks for a multiple of its share. Kept: moving a share leaves jobs as they are",
    "inflation": "Share of jobs that declare the highest priority, whatever they are worth",
    "squatting": "Share of debug jobs whose owner holds the GPUs for a working day with a job that does nothing",
    "opt_out": "Share of jobs that opt out of preemption (under priority-tiers)",
    "opt_out_limit": "GPUs that a team may hold at once with jobs that opted out",
}


@dataclass
class FairShareControls:
    """The controls by name; `messages` holds what each of them has to say, the budget tree included."""

    left: Any
    right: Any
    window: Any
    cap: Any
    hysteresis: Any
    load: Any
    debug: Any
    days: Any
    seed: Any
    demand: Any
    inflation: Any
    squatting: Any
    opt_out: Any
    opt_out_limit: Any
    messages: dict[str, Any] = field(default_factory=dict)
    settled: dict[str, Any] = field(default_factory=dict)
    about_work: Any = field(default_factory=hint)

    def named(self) -> dict[str, Any]:
        """The controls proper, by name."""
        return {
            one.name: getattr(self, one.name)
            for one in fields(self)
            if one.name not in ("messages", "settled", "about_work")
        }

    def said(self, name: str) -> Any:
        """What a control says, as a scenario file would."""
        return _said(name, getattr(self, name).value)

    def changes(self) -> dict[str, Any]:
        """What they change in the scenario that they were set to, by dotted path; what is untouched is left alone."""
        able = [name for name in PATHS if not getattr(self, name).disabled]
        return {PATHS[name]: self.said(name) for name in able if self.said(name) != self.settled[name]}


def make() -> FairShareControls:
    """Make the controls, not yet set to any scenario."""
    percent = {"min": 0.0, "max": 100.0, "step": 5.0, "readout_format": ".0f", **_LIVE}
    made = FairShareControls(
        left=W.Dropdown(options=POLICIES, description="Left policy", **_WIDE),
        right=W.Dropdown(options=POLICIES, description="Right policy", **_WIDE),
        window=W.SelectionSlider(options=_times((), 7 * DAY), description="Window", **_LIVE),
        cap=W.SelectionSlider(options=_times((), 8 * HOUR), description="Cap of protection", **_LIVE),
        hysteresis=W.Checkbox(True, description="hysteresis", indent=False),
        load=W.FloatSlider(
            1.0, min=LEAST_LOAD, max=MOST_LOAD, step=0.05, description="Submitted / available", **_LIVE
        ),
        debug=W.FloatSlider(20.0, description="Debug jobs (%)", **percent),
        days=W.FloatSlider(
            28.0, min=1.0, max=MOST_DAYS, step=1.0, description="Days", readout_format=".4", **_LIVE
        ),
        seed=W.BoundedIntText(1, min=0, max=MOST_SEED, description="Seed", **_WIDE),
        demand=W.Dropdown(
            options=[("stay as they are", KEPT), ("follow the shares", FOLLOWS)],
            description="Jobs, if shares move",
            **_WIDE,
        ),
        inflation=W.FloatSlider(0.0, description="Inflation (% of jobs)", **percent),
        squatting=W.FloatSlider(0.0, description="Squatting (% debug)", **percent),
        opt_out=W.FloatSlider(0.0, description="Opt-out (% of jobs)", **percent),
        opt_out_limit=W.BoundedIntText(16, min=0, max=10**9, description="Opt-out limit (GPUs)", **_WIDE),
    )
    for name, widget in made.named().items():
        mark(widget, f"gp-fair-{name.replace('_', '-')}")
        widget.tooltip = _TIPS[name]
    for name in (*made.named(), "budget"):
        made.messages[name] = messages.place(f"gp-message-fair-{name.replace('_', '-')}")
    return made


def settle(controls: FairShareControls, scenario: FairshareScenario) -> None:
    """Set all controls (but the policies) to what a scenario says; ranges grow to hold it, nothing is rounded."""
    contract, habits, asked = scenario.contract, scenario.behaviour, scenario.generate
    for widget, known, value in (
        (controls.window, _WINDOWS_H, scenario.window_s),
        (controls.cap, _CAPS_H, contract.max_min_runtime_s),
    ):
        options = _times(known, value)
        if list(widget.options) != options:
            widget.options = options
        widget.value = value
    controls.hysteresis.value = contract.hysteresis != 0
    controls.demand.value = KEPT
    generated = asked is not None and scenario.jobs is None
    if asked is not None and generated:
        _reach(controls.load, asked.oversubscription)
        _reach(controls.debug, 100 * asked.debug_share)
        _reach(controls.days, asked.days)
        _reach(controls.seed, asked.seed)
    for name in GENERATED:
        getattr(controls, name).disabled = not generated
    messages.say_own(controls.about_work, "jobs", generated)
    for name in ("inflation", "squatting", "opt_out"):
        _reach(getattr(controls, name), 100 * getattr(habits, name))
    _reach(controls.opt_out_limit, habits.opt_out_limit_gpus)
    controls.settled = {name: controls.said(name) for name in controls.named()}


def layout(controls: FairShareControls, budget: Any, hysteresis: Any, about: dict[str, Any]) -> Any:
    """The controls in rows of what belongs together, each with its message below it; rows wrap.

    Parameters
    ----------
    controls
    budget
        The editor of the tree.
    hysteresis
        What is said below its checkbox.
    about
        What is said below each policy.
    """

    def control(*names: str, hint: Any = None) -> Any:
        parts = [getattr(controls, name) for name in names] + ([hint] if hint else [])
        return box("gp-control", [*parts, *(controls.messages[name] for name in names)])

    contract = [control("window"), control("cap"), control("hysteresis", hint=hysteresis)]
    work = [control(name) for name in GENERATED]
    habits = [control(name) for name in ("inflation", "squatting", "opt_out", "opt_out_limit")]
    fold = W.Accordion(
        [box("gp-control-row", habits)], titles=("Habits of the old world",), selected_index=None
    )
    return box(
        "gp-controls",
        [
            box("gp-control-row", [control(side, hint=about[side]) for side in ("left", "right")]),
            budget,
            controls.messages["budget"],
            box("gp-control-row", contract),
            box("gp-control-row", work),
            controls.about_work,
            fold,
        ],
    )


def about_html(policy: str) -> str:
    """What a policy does, for below its name."""
    known = {one.name: one.about for one in ALL}
    return f'<div class="gp-fair-policy-about">{known[policy]}</div>'


def _times(hours: Iterable[float], value: int) -> list[tuple[str, int]]:
    """Times by what they are called, the scenario's own among them."""
    return [(span_text(s) if s else "0", s) for s in sorted({*(round(h * HOUR) for h in hours), value})]


def _reach(widget: Any, value: float) -> None:
    """Set a control, its range widened where the value lies outside."""
    if value > widget.max:
        widget.max = value
    if value < widget.min:
        widget.min = value
    widget.value = value


def _said(name: str, value: Any) -> Any:
    """A control's value as a scenario file says it."""
    if name in ("window", "cap"):
        return span_text(value)
    if name == "hysteresis":
        return None if value else 0
    if name in ("debug", "inflation", "squatting", "opt_out"):
        return round(value / 100, 6)
    # a page gives back 27.999999999999996 where it was told 28
    return round(value, 6) if isinstance(value, float) else value
