"""The controls of the rolling explorer: where in the days one stands, and what the days are like."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

import ipywidgets as W

from gpuplan.allocation.rolling_run import RollingRun
from gpuplan_widgets import messages
from gpuplan_widgets.controls import box, mark

#: Most days that the slider offers, and the largest number of a seed.
MOST_DAYS, MOST_SEED = 28, 9999

#: Milliseconds between two moments while the days play, by what the choice says.
SPEEDS = (("slow (1 a second)", 1000), ("medium (3 a second)", 333), ("fast (8 a second)", 125))

_HORIZONS = (1, 2, 3, 4, 6, 8, 12, 18, 24, 36, 48, 72, 168)
_REPLANS = (0.25, 0.5, 1, 2, 3, 4, 6, 8, 12, 24)
_WIDE: dict[str, Any] = {
    "continuous_update": True,
    "style": {"description_width": "170px"},
    "layout": W.Layout(width="410px", max_width="100%"),
}
_CHOICE: dict[str, Any] = {
    "style": {"description_width": "170px"},
    "layout": W.Layout(width="410px", max_width="100%"),
}

#: Names of the errors in `Errors`, and by how much their control counts more (per cent).
ERRORS = {
    "traffic_bias": 100,
    "traffic_noise": 1,
    "duration_bias": 100,
    "duration_noise": 1,
    "unannounced": 100,
}


@dataclass
class DaysControls:
    """What decides the days; a move of one of them runs the policies again. `messages` is what each has to say."""

    days: Any
    horizon: Any
    replan: Any
    traffic_bias: Any
    traffic_noise: Any
    duration_bias: Any
    duration_noise: Any
    unannounced: Any
    seed: Any
    messages: dict[str, Any] = field(default_factory=dict)

    def named(self) -> dict[str, Any]:
        """The controls proper, by name."""
        return {one.name: getattr(self, one.name) for one in fields(self) if one.name != "messages"}

    def asked(self) -> dict[str, Any]:
        """What they say, as keywords of `roll`."""
        errors = {name: getattr(self, name).value / scale for name, scale in ERRORS.items()}
        return {
            "days": self.days.value,
            "horizon_hours": self.horizon.value,
            "replan_every": self.replan.value,
            "errors": errors,
            "seed": self.seed.value,
        }

    def settle(self, asked: Mapping[str, Any]) -> None:
        """Set every control to keywords of `roll`; ranges grow to hold them, nothing is rounded."""
        self.days.max = max(MOST_DAYS, asked["days"])
        self.days.value = asked["days"]
        for widget, known, value in (
            (self.horizon, _HORIZONS, asked["horizon_hours"]),
            (self.replan, _REPLANS, asked["replan_every"]),
        ):
            options = [(f"{hours:g} h", hours) for hours in sorted({*known, value})]
            if list(widget.options) != options:
                widget.options = options
            widget.value = value
        for name, scale in ERRORS.items():
            widget, value = getattr(self, name), asked["errors"].get(name, 0.0) * scale
            widget.max, widget.min = max(widget.max, value), min(widget.min, value)
            widget.value = value
        self.seed.max = max(MOST_SEED, asked["seed"])
        self.seed.value = asked["seed"]


@dataclass
class MomentControls:
    """Where in the days one stands: the number of a plan, how to move to others, and what is shown of it."""

    policy: Any
    moment: Any
    where: Any
    play: Any
    speed: Any
    first: Any
    back: Any
    forward: Any
    last: Any
    margin: Any


def make_days() -> DaysControls:
    """Make the controls of the days, not yet set to anything."""
    percent = {"step": 5.0, "readout_format": ".0f", **_WIDE}
    factor = {"min": 0.0, "max": 1.0, "step": 0.05, "readout_format": ".2f", **_WIDE}
    made = DaysControls(
        days=W.IntSlider(1, 1, MOST_DAYS, description="Days", **_WIDE),
        horizon=W.SelectionSlider(options=[("24 h", 24)], description="Horizon of a plan", **_WIDE),
        replan=W.SelectionSlider(options=[("1 h", 1)], description="Time between plans", **_WIDE),
        traffic_bias=W.FloatSlider(0.0, min=-50.0, max=100.0, description="Traffic bias (%)", **percent),
        traffic_noise=W.FloatSlider(0.0, description="Traffic noise (σ of log)", **factor),
        duration_bias=W.FloatSlider(0.0, min=-50.0, max=100.0, description="Duration bias (%)", **percent),
        duration_noise=W.FloatSlider(0.0, description="Duration noise (σ of log)", **factor),
        unannounced=W.FloatSlider(0.0, min=0.0, max=100.0, description="Unannounced jobs (%)", **percent),
        seed=W.BoundedIntText(0, min=0, max=MOST_SEED, description="Seed of the errors", **_CHOICE),
    )
    for name, widget in made.named().items():
        css = f"gp-roll-{name.replace('_', '-')}"
        mark(widget, css)
        widget.tooltip = _TIPS[name]
        made.messages[name] = messages.place(f"gp-message-roll-{name.replace('_', '-')}")
    return made


def make_moment(policies: Sequence[str]) -> MomentControls:
    """Make the controls of the moment; the buttons and the slider are linked by the explorer."""

    def button(words: str, tip: str) -> Any:
        return W.Button(description=words, tooltip=tip, layout=W.Layout(width="auto"))

    made = MomentControls(
        policy=W.Dropdown(options=list(policies), value=policies[-1], description="Policy shown", **_CHOICE),
        moment=W.IntSlider(
            0,
            0,
            1,
            description="Moment (plan number)",
            continuous_update=True,
            style={"description_width": "170px"},
            layout=W.Layout(width="560px", max_width="100%"),
        ),
        where=W.HTML(""),
        play=W.Play(
            0, 0, 1, interval=SPEEDS[1][1], show_repeat=False, tooltip="Play, pause, back to the start"
        ),
        speed=W.Dropdown(
            options=SPEEDS,
            value=SPEEDS[1][1],
            description="Speed",
            style={"description_width": "auto"},
            layout=W.Layout(width="210px"),
            tooltip="Plans a second while the days play",
        ),
        first=button("To the start", "The first plan of the days"),
        back=button("One back", "The plan before"),
        forward=button("One forward", "The next plan"),
        last=button("To the end", "The last plan of the days"),
        margin=W.IntSlider(0, 0, 100, step=5, description="Traffic margin (%)", **_WIDE),
    )
    made.policy.tooltip = "Whose days the chart shows; the table has all of them"
    made.moment.tooltip = "Which plan: what was committed before it, and what it says of the hours to come"
    made.margin.tooltip = "Coverage risk is told for traffic that comes so much higher than expected"
    for one in fields(made):
        getattr(made, one.name).add_class(f"gp-roll-{one.name}")
    return made


_TIPS = {
    "days": "The scenario's day comes so many times",
    "horizon": "How far each plan sees",
    "replan": "After so long a new plan is made; until then the old one is committed",
    "traffic_bias": "The forecast of traffic is so much too high, or too low",
    "traffic_noise": "Standard deviation of the logarithm of a random factor on the forecast: 0.2 is about 20 %",
    "duration_bias": "Jobs run so much longer, or shorter, than announced",
    "duration_noise": "Standard deviation of the logarithm of a random factor on durations: 0.2 is about 20 %",
    "unannounced": "Share of jobs that nobody knows of before they arrive",
    "seed": "The same seed gives the same random factors",
}


def layout_days(controls: DaysControls) -> Any:
    """The controls of the days in rows that wrap, each with its message below it."""

    def control(name: str) -> Any:
        return box("gp-control", [getattr(controls, name), controls.messages[name]])

    pairs = ("days", "horizon", "replan", "unannounced", "traffic_bias", "traffic_noise")
    names = (*pairs, "duration_bias", "duration_noise", "seed")
    return box("gp-controls", [box("gp-control-row", [control(name) for name in names])])


def layout_moment(controls: MomentControls) -> Any:
    """The controls of the moment: the policy, the slider, its buttons."""
    wrap = {"flex_flow": "row wrap", "align_items": "center", "width": "100%"}
    steps = [controls.play, controls.first, controls.back, controls.forward, controls.last, controls.speed]
    hint = W.HTML(
        '<span class="gp-hint">Left of the strong line: what was committed. Right of it: the plan of this moment, of '
        "which only the hours up to the dashed line are committed before the next plan is made.</span>"
    )
    rows = (
        [controls.policy],
        [controls.moment, controls.where],
        steps,
        [hint],
    )
    return box("gp-controls", [W.HBox(row, layout=W.Layout(**wrap)) for row in rows])


def settings_of(run: RollingRun, asked: Mapping[str, Any]) -> dict[str, Any]:
    """Keywords of `roll` as a run took them: times as hours, whatever they were given as."""
    step_hours = run.days.span.horizon.step_hours
    return {
        "days": asked["days"],
        "horizon_hours": run.days.horizon * step_hours,
        "replan_every": run.replan_steps * step_hours,
        "errors": dict(asked["errors"] or {}),
        "seed": asked["seed"],
    }
