"""The controls of the allocation explorer: ipywidgets with units in their labels, and a place for messages."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

import ipywidgets as W

from gpuplan.allocation.model import AllocationScenario
from gpuplan.allocation.policies import ALL
from gpuplan_widgets import messages

#: The usual choice of the penalty factor (that of Dharma-AI), marked on the slider.
BAND = (5.0, 10.0)

#: Upper end of the penalty slider, unless the scenario's own penalty is higher.
PENALTY_MAX = 20.0

#: Stands for ``None`` among the choices (ipywidgets takes None for "nothing chosen").
NONE = "none"

#: Value of the swap-cap control while "all apps" is chosen and their caps differ.
VARIOUS = "various"

_HALF_LIVES = (3.0, 6.0, 12.0, 24.0, 48.0, 96.0, 168.0)
_NODES = (1, 2, 4, 8, 16, 32, 64)
_DESCRIPTION = {"description_width": "150px"}

#: Choices of a control as (text, value).
Options = list[tuple[str, Any]]


@dataclass
class Controls:
    """The controls by name; `messages` holds what each of them has to say."""

    preset: Any
    left: Any
    right: Any
    gpus: Any
    node: Any
    within_node: Any
    penalty: Any
    half_life: Any
    swap_app: Any
    swap: Any
    messages: dict[str, Any] = field(default_factory=dict)

    def named(self) -> dict[str, Any]:
        """The controls proper, by name."""
        return {one.name: getattr(self, one.name) for one in fields(self) if one.name != "messages"}


def make(shipped: Sequence[str]) -> Controls:
    """Make the controls, not yet set to any scenario."""
    slider = {"continuous_update": True, "style": _DESCRIPTION, "layout": W.Layout(width="410px")}
    choice = {"style": _DESCRIPTION, "layout": W.Layout(width="350px")}
    policies = [policy.name for policy in ALL if policy.live]
    shipped_options = [("the scenario given", ""), *((name, name) for name in shipped)]
    controls = Controls(
        preset=W.Dropdown(options=shipped_options, value="", description="Scenario", **choice),
        left=W.Dropdown(options=policies, description="Left policy", **choice),
        right=W.Dropdown(options=policies, description="Right policy", **choice),
        gpus=W.IntSlider(1, 1, 64, description="Cluster size (GPUs)", **slider),
        node=W.Dropdown(options=[("all on one node", NONE)], description="GPUs per node", **choice),
        within_node=W.Checkbox(False, description="blocks stay within nodes", indent=False),
        penalty=W.FloatSlider(
            8.0,
            min=0.0,
            max=PENALTY_MAX,
            step=0.25,
            readout_format=".2f",
            description="Penalty (× priority)",
            **slider,
        ),
        half_life=W.SelectionSlider(options=[("none", NONE)], description="Half-life of value (h)", **slider),
        swap_app=W.Dropdown(options=[("all apps", -1)], description="Swap cap for", **choice),
        swap=W.SelectionSlider(options=[("no cap", NONE)], description="Swap cap (GPUs/step)", **slider),
    )
    for name, widget in controls.named().items():
        mark(widget, f"gp-{_CLASSES.get(name, name)}")
        widget.tooltip = _TIPS[name]
        controls.messages[name] = messages.place(f"gp-message-{_CLASSES.get(name, name)}")
    for name in ("curve", "jobs"):
        controls.messages[name] = messages.place(f"gp-message-{_CLASSES.get(name, name)}")
    return controls


_CLASSES = {
    "gpus": "cluster-size",
    "node": "gpus-per-node",
    "within_node": "within-node",
    "half_life": "half-life",
    "left": "policy-left",
    "right": "policy-right",
    "swap_app": "swap-app",
    "swap": "swap-cap",
}

_TIPS = {
    "preset": "Start again from a shipped scenario",
    "left": "Policy on the left side",
    "right": "Policy on the right side",
    "gpus": "Number of GPUs of the cluster",
    "node": "GPUs of a server; the last one may be smaller",
    "within_node": "A block of up to one node does not straddle nodes, a larger one takes whole nodes",
    "penalty": "Cost of a GPU-step of unmet demand, in GPU-steps of batch work of equal priority; "
    "the band is that of Dharma-AI, below it traffic is left unserved on purpose",
    "half_life": "Hours after which a GPU-hour of batch work is worth half; none: no decay",
    "swap_app": "Which real-time app the swap cap is for",
    "swap": "GPUs that an app may acquire, and may release, per step",
}


def layout(controls: Controls) -> Any:
    """The controls in rows of what belongs together, each control with its message below it; rows wrap."""
    band = W.HTML(
        '<span class="gp-hint gp-band"><span class="gp-band-sample" aria-hidden="true"></span>'
        f"{BAND[0]:g}–{BAND[1]:g}: the usual band. Below it traffic is left unserved on purpose.</span>"
    )

    def control(*names: str, hint: Any = None) -> Any:
        parts = [getattr(controls, name) for name in names] + ([hint] if hint else [])
        return box("gp-control", [*parts, *(controls.messages[name] for name in names)])

    rows = (
        [control("preset")],
        [control("left"), control("right")],
        [control("penalty", hint=band), control("gpus"), control("half_life")],
        [control("swap_app"), control("swap"), control("node", "within_node")],
    )
    return box("gp-controls", [box("gp-control-row", row) for row in rows])


def mark(widget: Any, css: str) -> None:
    """Give a control its CSS class; one whose value cannot be typed gets another, which the page heeds."""
    widget.add_class(css)
    if isinstance(widget, W.SelectionSlider):
        widget.add_class("gp-choices")


def box(css: str, children: Iterable[Any]) -> Any:
    """Stack widgets in a box of a CSS class."""
    box = W.VBox(list(children))
    box.add_class(css)
    return box


def settle(controls: Controls, scenario: AllocationScenario) -> None:
    """Set all controls (but the policies and the preset) to what a scenario says.

    Ranges grow to hold the scenario's own values; nothing is rounded.
    """
    gpus = scenario.cluster.gpus
    controls.gpus.max = max(64, 2 * gpus, gpus if gpus > 8192 else 0)
    controls.gpus.value = gpus
    node = scenario.cluster.gpus_per_node
    nodes = [("all on one node", NONE), *_numbers({*_NODES, *_given(node)}, "")]
    _choose(controls.node, nodes, NONE if node is None else node)
    controls.within_node.value = scenario.rules.within_node
    penalty = scenario.objective.shortfall_penalty
    controls.penalty.max = max(PENALTY_MAX, penalty)
    controls.penalty.value = penalty
    half_life = scenario.objective.half_life_hours
    _choose(
        controls.half_life,
        [*_numbers({*_HALF_LIVES, *_given(half_life)}, " h"), ("none", NONE)],
        NONE if half_life is None else half_life,
    )
    caps = [app.max_swap for app in scenario.realtime]
    names: Options = [("all apps", -1), *((short(app.name), i) for i, app in enumerate(scenario.realtime))]
    _choose(controls.swap_app, names, -1 if len(set(caps)) <= 1 else 0)
    show_cap(controls, caps)
    for widget in (controls.swap_app, controls.swap):
        widget.disabled = not caps


def show_cap(controls: Controls, caps: Sequence[int | None]) -> None:
    """Set the swap cap to that of the chosen app, or of all; ``"various"`` where they differ."""
    chosen = controls.swap_app.value
    shown = list(caps) if chosen == -1 else [caps[chosen]]
    options: Options = [
        *_numbers({*range(0, 9), 12, 16, 24, 32, 48, 64, *(cap for cap in caps if cap is not None)}, ""),
        ("no cap", NONE),
    ]
    if len(set(shown)) > 1:
        options.append(("various", VARIOUS))
    value = shown[0] if len(set(shown)) == 1 else (VARIOUS if shown else None)
    _choose(controls.swap, options, NONE if value is None else value)


def meant(value: Any) -> Any:
    """What a choice stands for in a scenario."""
    return None if value == NONE else value


def _choose(widget: Any, options: Options, value: Any) -> None:
    """Give a control its choices and its value, touching only what differs."""
    if list(widget.options) != options:
        widget.options = options  # this chooses the first one; the caller ignores what that says
    if widget.value != value:
        widget.value = value


def _given(value: Any) -> tuple[Any, ...]:
    return () if value is None else (value,)


def _numbers(values: Iterable[float], unit: str) -> Options:
    return [(f"{value:g}{unit}", value) for value in sorted(values)]


def short(name: str) -> str:
    """A name as one line of a list of choices."""
    line = "".join(character if character.isprintable() else " " for character in name)
    return line if len(line) <= 48 else line[:47] + "…"
