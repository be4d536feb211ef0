"""Exercises of "When forecasts are wrong": caps, errors on either side, what a plan shows before it comes."""

from functools import cache
from typing import Any

from gpuplan.lessons.exercise import Build, Choice, Exercise, Guess, Knob, NumberAsked
from gpuplan.loading import end_of_world, load_allocation, plan, roll

TOO_LITTLE, TOO_MUCH = "30 % too little", "30 % too much"

#: Demand of the exercise on paper, GPUs hour by hour.
_DEMAND = (0, 0, 0, 4, 4, 0)

#: Traffic of a peak that was forecast too low: GPUs wanted, GPUs planned for, hours.
_WANTED, _PLANNED, _HOURS = 10, 7, 4


def _early() -> float:
    """GPU-hours held beyond the demand, with a swap cap of 1."""
    from gpuplan.forecast.holding import smooth_to_cap

    return float(smooth_to_cap(_DEMAND, 1).sum() - sum(_DEMAND))


@cache
def _short() -> float:
    """Penalty of a peak of 10 GPUs for which 7 are there."""
    peak = {"name": "chat", "priority": 1, "demand": [_WANTED] * _HOURS, "max_gpus": _PLANNED}
    scenario = {
        "kind": "allocation",
        "name": "too-low",
        "cluster": {"gpus": 16},
        "horizon": {"steps": _HOURS},
        "realtime": [peak],
        "batch": [{"name": "later", "kind": "training", "gpus": 1, "hours": 1, "priority": 1}],
    }
    return float(plan(scenario).figures["penalty"] or 0.0)


@cache
def _with_bias(bias: float) -> float:
    from gpuplan.allocation.days import Errors

    run = roll("two-apps", "aware", days=5, errors=Errors(traffic_bias=bias))
    return float(run.figures["objective"] or 0.0)


def _dearer() -> str:
    return TOO_LITTLE if _with_bias(-0.3) < _with_bias(0.3) else TOO_MUCH


@cache
def _blind() -> float:
    """Per cent of its objective that `aware` loses when it sees one hour instead of 48."""
    table = end_of_world("two-apps", ("aware",), days=5, horizons_hours=(1, 48)).table
    objective = table[table["figure"] == "objective"].set_index("horizon_hours")["value"]
    return float(100 * (1 - objective[1] / objective[48]))


def _hours_short() -> float:
    from gpuplan.allocation.lookahead import coverage_risk

    risk = coverage_risk(plan("two-apps"), margin=0.2)
    return float((risk["risk"] == "short").sum())


def _jumping() -> Any:
    """A service whose traffic jumps from 1 GPU to 6, beside more batch work than fits."""
    return load_allocation(
        {
            "kind": "allocation",
            "name": "a-jump",
            "cluster": {"gpus": 8},
            "horizon": {"steps": 12},
            "objective": {"half_life_hours": None},
            "realtime": [
                {
                    "name": "chat",
                    "priority": 5,
                    "demand": [1] * 5 + [6] * 3 + [1] * 4,
                    "max_swap": 1,
                    "held": [7],
                }
            ],
            "batch": [
                {"name": f"tune-{name}", "kind": "training", "gpus": 4, "hours": 4, "priority": 3}
                for name in "abcd"
            ],
        }
    )


def _wasteful(scenario: Any) -> list[str]:
    made = plan(scenario)
    held = int((made.held[0] - made.demand[0]).clip(min=0).sum())
    unmet = []
    if (made.figures["coverage"] or 0.0) < 1:
        unmet.append(f"Only {made.figures['coverage']:.1%} of the traffic is served.")
    if held > 3:
        unmet.append(f"{held} GPU-hours are held before or after they are needed.")
    return unmet


EXERCISES: tuple[Exercise, ...] = (
    Guess(
        "3.a",
        "A plan that sees only one hour ahead, every hour: how many per cent of the objective does `aware` "
        "lose, against one "
        "that sees 48 hours?",
        ("horizon", "objective"),
        (),
        "%",
        _blind,
        lambda n: (
            "One who sees an hour cannot climb to a peak in time, and starts blocks that stand in its way."
        ),
    ),
    Choice(
        "3.b",
        "Which forecast of the traffic costs more?",
        ("forecast bias", "penalty"),
        (),
        (TOO_LITTLE, TOO_MUCH),
        _dearer,
        lambda: (
            f"The objective is {_with_bias(-0.3):,.0f} with 30 % too little and {_with_bias(0.3):,.0f} with 30 "
            "% too much: "
            "what is not served costs the penalty, what is held for nothing only what a job would have earned."
        ),
    ),
    NumberAsked(
        "3.1",
        "Hour by hour a service wants 0 0 0 4 4 0 GPUs, and may acquire or release 1 GPU an hour. At least "
        "how many "
        "GPU-hours does it hold beyond what it wants?",
        ("swap cap", "GPU-hour"),
        (
            "To hold 4 in hour 3 it must hold 3 in hour 2. Go back from there to the beginning, and down "
            "after hour 4.",
            "It holds 1 2 3 4 4 3. Take off what it wants.",
        ),
        "GPU-hours",
        _early,
        lambda n: f"It holds 1 2 3 4 4 3, {n:g} GPU-hours more than it wants: the price of the cap.",
        lambda: (
            (_early() + sum(_DEMAND), "This is all that it holds. Take off what it wants."),
            (6.0, "The climb is right. It cannot drop to 0 at once either."),
        ),
        0.01,
    ),
    NumberAsked(
        "3.2",
        "For a peak of 10 GPUs over 4 hours only 7 are there. The penalty is 8, the service has priority 1. "
        "What does it cost?",
        ("penalty", "shortfall"),
        (
            "How many GPUs are missing, for how many hours?",
            "Missing GPU-hours, times penalty, times priority.",
        ),
        "of value",
        _short,
        lambda n: (
            f"3 × 4 = 12 GPU-hours are missing, × 8 × 1 = {n:g}: as much as {n:g} GPU-hours of such a job earn."
        ),
        lambda: (
            (12.0, "These are the missing GPU-hours. Each of them costs the penalty."),
            (_WANTED * _HOURS * 8.0, "Only what is missing costs, not the whole peak."),
        ),
        0.01,
    ),
    NumberAsked(
        "3.3",
        "In the table of slack: if traffic comes 20 % higher, in how many of the 24 hours are GPUs missing?",
        ("slack",),
        (
            "The sentence above the table counts hours of each kind; `none` has slack to spare.",
            "`short` is where GPUs are missing; `no slack` is just enough.",
        ),
        "h",
        _hours_short,
        lambda n: (
            f"In {n:g} hours. The plan says so a day ahead: time to keep a block free, or to tell somebody."
        ),
        step=1.0,
        within=0.01,
    ),
    Build(
        "3.4",
        "Build it yourself: traffic jumps from 1 GPU to 6 and back. Choose a swap cap with which all of it is "
        "served and at most "
        "3 GPU-hours are held outside the jump.",
        ("swap cap", "coverage"),
        (
            "With a cap of 1 it climbs for four hours. How high must a step be, so that one hour of climbing "
            "is enough?",
            "With a cap of 3 it holds 3 GPUs an hour before and an hour after: 2 × 2 GPU-hours. A little more?",
        ),
        (Knob("swap cap of chat, GPUs per hour", "realtime.0.max_swap", "GPUs"),),
        _jumping,
        _wasteful,
        lambda built: (
            f"With a cap of {built.realtime[0].max_swap} it is there in time and holds little beyond. A small "
            "cap spares moving "
            "replicas, and costs GPU-hours."
        ),
    ),
)
