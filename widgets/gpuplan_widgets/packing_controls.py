"""The controls of the packing explorer, and from what they say to changes of a scenario."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from typing import Any

import ipywidgets as W

from gpuplan.packing.model import SECOND, PackingScenario, Pieces
from gpuplan.packing.policies import EVICTIONS, KINDS, ORDERS, PLACEMENTS
from gpuplan.packing.words import gib
from gpuplan_widgets import messages
from gpuplan_widgets.controls import NONE, box, mark
from gpuplan_widgets.messages import hint
from gpuplan_widgets.packing_gallery import offered
from gpuplan_widgets.packing_spread import Spread

#: Ranges of the sliders, unless the scenario's own value lies outside.
MOST_MARGIN, MOST_TIME_S, MOST_CV, MOST_BETA, MOST_COUNT = 50.0, 20.0, 6.0, 1.0, 200_000

#: Ends of the slider of the size mix: the exponent of the size in the popularity.
MIX = 3.0

#: Keep-alive where it is chosen and the scenario has no time for it, seconds.
KEEP_ALIVE_S = 60

_SLOTS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 64)
_KEEPS_S = (5, 15, 30, 60, 120, 300, 900, 3600)
_WIDE: dict[str, Any] = {
    "style": {"description_width": "150px"},
    "layout": W.Layout(width="410px", max_width="100%"),
}
_LIVE: dict[str, Any] = {"continuous_update": True, "readout_format": ".4", **_WIDE}

#: Controls that only a generated workload has.
GENERATED = ("rate", "burst", "mix", "urgent", "count", "seed")

#: The choices of the two sides.
PIECES = tuple(f"{side}_{kind}" for side in ("left", "right") for kind in KINDS)

#: Where each control's value goes in a scenario; the size mix goes to the popularity of every model.
PATHS = {
    "margin": "admission.margin",
    "admit": "admission.on",
    "context": "admission.count_context",
    "when": "preemption.when",
    "threshold": "preemption.threshold_s",
    "save": "preemption.save_s",
    "restore": "preemption.restore_s",
    "contention": "contention.model",
    "beta": "contention.beta",
    "slots": "gpus.max_tasks",
    "rate": "tasks.generate.rate_per_s",
    "burst": "tasks.generate.arrival_cv",
    "urgent": "tasks.generate.high_priority_share",
    "count": "tasks.generate.count",
    "seed": "tasks.generate.seed",
    "keep_alive": "policy.keep_alive_s",
}

_TIPS = {
    "situation": "Start again from a shipped scenario",
    "left_placement": "Which GPU a task goes to, on the left side",
    "left_order": "Which waiting task comes next, on the left side",
    "left_eviction": "Which idle model goes first, on the left side",
    "right_placement": "Which GPU a task goes to, on the right side",
    "right_order": "Which waiting task comes next, on the right side",
    "right_eviction": "Which idle model goes first, on the right side",
    "keep_alive": "How long an idle model stays, under the eviction keep-alive",
    "margin": "What the scheduler adds to the memory that a model declares",
    "admit": "What the scheduler compares with: what it has reserved, or what the monitor says is free now",
    "context": "Whether the scheduler counts the context of a model's process",
    "when": "Whether a waiting task of higher priority may interrupt others",
    "threshold": "Least predicted remaining time of a task that may be interrupted",
    "save": "Time that it takes to save an interrupted task; it keeps its memory meanwhile",
    "restore": "Time that it takes to bring a saved task back, after its model is loaded",
    "contention": "How tasks that run on one GPU slow each other down",
    "beta": "Slowdown by each further task on the GPU",
    "slots": "Tasks that a GPU takes at once",
    "rate": "Tasks per second, on average",
    "burst": "Coefficient of variation of the gaps between tasks: 1 is Poisson, 0 a fixed beat, above 1 bursts",
    "mix": "Shifts tasks to small or to large models: popularity times size to this power; 0 is as given",
    "urgent": "Share of the tasks that have the higher priority",
    "count": "Number of tasks",
    "seed": "The same seed gives the same tasks",
    "spread_model": "The model whose GPUs the slider beside sets",
    "spread": "Over how many GPUs each copy of the model is spread, with an equal part on each",
    "gantt": "Which task was on which GPU; of many tasks how many there were, over stretches of time",
}


@dataclass
class PackingControls:
    """The controls by name; `messages` holds what each of them has to say."""

    situation: Any
    left_placement: Any
    left_order: Any
    left_eviction: Any
    right_placement: Any
    right_order: Any
    right_eviction: Any
    keep_alive: Any
    margin: Any
    admit: Any
    context: Any
    when: Any
    threshold: Any
    save: Any
    restore: Any
    contention: Any
    beta: Any
    slots: Any
    rate: Any
    burst: Any
    mix: Any
    urgent: Any
    count: Any
    seed: Any
    spread_model: Any
    spread: Any
    gantt: Any
    spreads: Spread
    messages: dict[str, Any] = field(default_factory=dict)
    settled: dict[str, Any] = field(default_factory=dict)
    base: PackingScenario | None = None
    about_work: Any = field(default_factory=hint)

    def named(self) -> dict[str, Any]:
        """The controls proper, by name."""
        others = ("messages", "settled", "base", "spreads", "about_work")
        return {one.name: getattr(self, one.name) for one in fields(self) if one.name not in others}

    def said(self, name: str) -> Any:
        """What a control says, as a scenario file would (of the GPUs of models those that were changed, by row)."""
        if name.startswith("spread"):
            return self.spreads.changed() if name == "spread" else None
        return _said(name, getattr(self, name).value)

    def pieces(self, side: str, own: Pieces) -> Pieces:
        """The pieces of a side's policy, with the numbers of the scenario."""
        named = {kind: getattr(self, f"{side}_{kind}").value for kind in KINDS}
        return Pieces(**named, depth=own.depth, keep_alive_us=own.keep_alive_us)

    def changes(self) -> dict[str, Any]:
        """What they change in the scenario that they were set to, by dotted path; what is untouched is left alone."""
        able = [name for name in PATHS if name not in GENERATED or not getattr(self, name).disabled]
        found = {PATHS[name]: self.said(name) for name in able if self.said(name) != self.settled[name]}
        if self.base is not None and not self.mix.disabled and self.said("mix"):
            found |= mixed(self.base, self.said("mix"))
        return found | {f"models.{k}.gpus": over for k, over in self.said("spread").items()}

    def lacks_time(self, name: str) -> bool:
        """Whether an eviction was set to keep-alive, and for how long is not said."""
        return getattr(self, name).value == "keep-alive" and self.said("keep_alive") is None

    def enable(self) -> None:
        """Let those controls be moved that mean something now."""
        generated = self.base is not None and self.base.generate is not None and self.base.tasks is None
        for name in GENERATED:
            getattr(self, name).disabled = not generated
        messages.say_own(self.about_work, "tasks", generated or self.base is None)
        self.threshold.disabled = self.when.value != "threshold"
        self.save.disabled = self.restore.disabled = self.when.value == "never"
        self.beta.disabled = self.contention.value != "slowdown"
        keeps = "keep-alive" in (self.left_eviction.value, self.right_eviction.value)
        self.keep_alive.disabled = not keeps


def make() -> PackingControls:
    """Make the controls, not yet set to any scenario."""
    sides = {
        f"{side}_{kind}": W.Dropdown(
            options=[piece.name for piece in pieces], description=f"{side.title()} {word}", **_WIDE
        )
        for side in ("left", "right")
        for kind, pieces, word in (
            ("placement", PLACEMENTS, "placement"),
            ("order", ORDERS, "queue order"),
            ("eviction", EVICTIONS, "eviction"),
        )
    }
    spreads = Spread(**_WIDE)
    made = PackingControls(
        situation=W.Dropdown(
            options=[("the scenario given", ""), *offered()], value="", description="Situation", **_WIDE
        ),
        **sides,
        keep_alive=W.SelectionSlider(options=[("none", NONE)], description="Keep alive", **_without_format()),
        margin=_slider("Margin (%)", MOST_MARGIN, 1.0, 20.0),
        admit=W.Dropdown(
            options=[("declared memory", "declared"), ("free memory", "free")],
            description="Admission looks at",
            **_WIDE,
        ),
        context=W.Checkbox(True, description="the scheduler counts the context", indent=False),
        when=W.Dropdown(options=["never", "always", "threshold"], description="Preemption", **_WIDE),
        threshold=_slider("Threshold (s)", MOST_TIME_S, 0.25, 3.0),
        save=_slider("Save cost (s)", MOST_TIME_S, 0.25, 3.0),
        restore=_slider("Restore cost (s)", MOST_TIME_S, 0.25, 3.0),
        contention=W.Dropdown(options=["none", "sharing", "slowdown"], description="Contention", **_WIDE),
        beta=_slider("Slowdown (beta)", MOST_BETA, 0.01, 0.15),
        slots=W.SelectionSlider(
            options=[("no bound", NONE)], description="Tasks per GPU", **_without_format()
        ),
        rate=_slider("Load (tasks/s)", 4.0, 0.01, 1.0),
        burst=_slider("Burstiness (CV)", MOST_CV, 0.1, 1.0),
        mix=W.FloatSlider(0.0, min=-MIX, max=MIX, step=0.25, description="Mix (small ↔ large)", **_LIVE),
        urgent=_slider("Urgent tasks (%)", 100.0, 5.0, 0.0),
        count=W.BoundedIntText(1, min=0, max=MOST_COUNT, description="Tasks", **_WIDE),
        seed=W.BoundedIntText(1, min=0, max=2**53, description="Seed", **_WIDE),
        spread_model=spreads.model,
        spread=spreads.over,
        spreads=spreads,
        gantt=W.Dropdown(
            options=[("where tasks are few", "auto"), ("always", "gantt"), ("never", "areas")],
            description="Gantt of tasks",
            **_WIDE,
        ),
    )
    for name, widget in made.named().items():
        css = name.replace("_", "-")
        mark(widget, f"gp-pack-{css}")
        widget.tooltip = _TIPS[name]
        made.messages[name] = messages.place(f"gp-message-pack-{css}")
    return made


def _slider(description: str, most: float, step: float, value: float) -> Any:
    return W.FloatSlider(value, min=0.0, max=most, step=step, description=description, **_LIVE)


def _without_format() -> dict[str, Any]:
    return {key: value for key, value in _LIVE.items() if key != "readout_format"}


def settle(controls: PackingControls, scenario: PackingScenario) -> None:
    """Set all controls (but situation and pieces) to a scenario; ranges grow to hold it, nothing is rounded."""
    controls.base = scenario
    admission, preemption, contention = scenario.admission, scenario.preemption, scenario.contention
    _reach(controls.margin, admission.margin * 100 / SECOND)
    controls.admit.value, controls.context.value = admission.on, admission.count_context
    controls.when.value = preemption.when
    _reach(controls.threshold, preemption.threshold_us / SECOND)
    _reach(controls.save, preemption.save_us / SECOND)
    _reach(controls.restore, preemption.restore_us / SECOND)
    controls.contention.value = contention.model
    _reach(controls.beta, contention.beta)
    slots, keeps = scenario.gpus.max_tasks, scenario.policy.keep_alive_us
    _choose(controls.slots, [(f"{n}", n) for n in sorted({*_SLOTS, *_known(slots)})], "no bound", slots)
    keep = None if keeps is None else _plain(keeps / SECOND)
    times = [(f"{s:g} s", s) for s in sorted({*_KEEPS_S, *_known(keep)})]
    _choose(controls.keep_alive, times, "none", keep)
    asked = scenario.generate
    if asked is not None and scenario.tasks is None:
        _scale(controls.rate, asked.rate_per_s)
        _reach(controls.burst, asked.arrival_cv)
        _reach(controls.urgent, 100 * asked.high_priority_share)
        _reach(controls.count, asked.count)
        _reach(controls.seed, asked.seed)
    controls.mix.value = 0.0
    controls.spreads.settle(scenario)
    controls.settled = {name: controls.said(name) for name in controls.named()}
    controls.enable()


def restore(controls: PackingControls, base: PackingScenario, wanted: PackingScenario, mix: float) -> None:
    """Set all controls so that they change one scenario into another, and its mix of sizes."""
    settle(controls, base)
    settled = controls.settled
    settle(controls, wanted)
    controls.base, controls.settled = base, settled
    over = {k: model.gpus for k, model in enumerate(wanted.models) if model.gpus != base.models[k].gpus}
    controls.spreads.settle(base, over)
    controls.mix.value = mix


def set_pieces(controls: PackingControls, side: str, pieces: Pieces) -> None:
    """Set the choices of a side."""
    for kind in KINDS:
        getattr(controls, f"{side}_{kind}").value = getattr(pieces, kind)


def mixed(scenario: PackingScenario, power: float) -> dict[str, float]:
    """Popularities with which tasks go to small (`power` below 0) or large models, by dotted path.

    Each is its own times the declared size to a power; their sum stays what it is.
    """
    weights = [model.popularity for model in scenario.models]
    sizes = [max(1, model.declared_bytes) for model in scenario.models]
    mean = math.exp(sum(map(math.log, sizes)) / len(sizes))
    shifted = [
        weight * (size / mean) ** power if weight else 0.0
        for weight, size in zip(weights, sizes, strict=True)
    ]
    whole = sum(shifted)
    if not whole or not math.isfinite(whole):
        return {}
    scale = sum(weights) / whole
    return {
        f"models.{k}.popularity": float(f"{weight * scale:.6g}")
        for k, weight in enumerate(shifted)
        if weights[k]
    }


def mean_size(scenario: PackingScenario) -> str:
    """What a task asks for on average, in words."""
    whole = sum(model.popularity for model in scenario.models)
    if not whole:
        return ""
    mean = sum(model.popularity * model.declared_bytes for model in scenario.models) / whole
    return f"a task asks for a model of {gib(round(mean))} on average"


def layout(controls: PackingControls, about: Any, hints: dict[str, Any]) -> Any:
    """The controls in rows of what belongs together, each with its message below it; rows wrap.

    Parameters
    ----------
    controls
    about
        What is said about the situation.
    hints
        What is said below the controls of these names.
    """
    hints = {**hints, "spread": controls.spreads.hint}

    def control(name: str) -> Any:
        hint = [hints[name]] if name in hints else []
        return box("gp-control", [getattr(controls, name), *hint, controls.messages[name]])

    def row(*names: str) -> Any:
        return box("gp-control-row", [control(name) for name in names])

    more = W.Accordion(
        [row("count", "seed", "keep_alive", "admit", "context", "gantt", "spread_model", "spread")],
        titles=("More controls",),
        selected_index=None,
    )
    return box(
        "gp-controls",
        [
            row("situation"),
            about,
            # pair by pair, so that what stands beside each other is of one kind
            *(row(f"left_{kind}", f"right_{kind}") for kind in KINDS),
            row("margin", "slots", "rate", "burst", "mix", "urgent"),
            controls.about_work,
            row("when", "threshold", "save", "restore", "contention", "beta"),
            more,
        ],
    )


def about_html(placement: str, order: str, eviction: str) -> dict[str, str]:
    """What the pieces of a policy do, by kind."""
    chosen = {"placement": placement, "order": order, "eviction": eviction}
    return {
        kind: f'<div class="gp-hint">{next(one.about for one in KINDS[kind] if one.name == name)}</div>'
        for kind, name in chosen.items()
    }


def _choose(widget: Any, known: Sequence[tuple[str, Any]], none: str, value: Any) -> None:
    """Give a slider of choices what it offers, the scenario's own value among it, and set it."""
    options = [*known, (none, NONE)]
    if list(widget.options) != options:
        widget.options = options
    widget.value = NONE if value is None else value


def _known(value: Any) -> tuple[Any, ...]:
    return () if value is None else (value,)


def _plain(value: float) -> float | int:
    return int(value) if value == int(value) else value


def _reach(widget: Any, value: float) -> None:
    """Set a control, its range widened where the value lies outside."""
    if value > widget.max:
        widget.max = value
    if value < widget.min:
        widget.min = value
    widget.value = value


def _scale(widget: Any, rate: float) -> None:
    """A slider from a fortieth to the threefold of a rate, whose step is a round number that leads through it."""
    step = 10.0 ** math.floor(math.log10(rate / 10))
    step = next(step * part for part in (5, 2, 1) if step * part <= rate / 10 or part == 1) / 2
    step = step if abs(rate / step - round(rate / step)) < 1e-6 else rate / 20
    widget.min, widget.max = 0.0, max(3 * rate, widget.max)  # never the wrong way round
    widget.step = step
    widget.value = rate
    widget.min, widget.max = step, 3 * rate


def _said(name: str, value: Any) -> Any:
    """A control's value as a scenario file says it."""
    if value == NONE and name in ("slots", "keep_alive"):
        return None
    if name in ("margin", "urgent"):
        return round(value / 100, 8)
    # a page gives back 27.999999999999996 where it was told 28
    return float(f"{value:.10g}") if isinstance(value, float) else value
