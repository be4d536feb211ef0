"""Exercises of "How good is good?": bounds, gaps, and a gain taken apart."""

from functools import cache
from typing import TYPE_CHECKING, Any

from gpuplan.lessons.exercise import Build, Choice, Exercise, Guess, Knob, NumberAsked
from gpuplan.lessons.lesson_01 import day, planned, value
from gpuplan.loading import plan, take_apart

if TYPE_CHECKING:
    from gpuplan.allocation.gain import GainApart

BEFORE, AFTER = "before the order has changed", "after the order has changed"

_NAME = "training-rush"

#: A plan within this share of the bound is called good in the exercise of building.
_GOOD = 0.2


@cache
def _apart() -> "GainApart":
    return take_apart(day(_NAME), iterations=2000)


def _bound() -> float:
    return float(planned(_NAME, "fifo").bound)


def _objective(policy: str) -> float:
    return float(planned(_NAME, policy).figures["objective"] or 0.0)


def _alone(words: str) -> float:
    policy = {"reservation": "curve-fifo", "order": "peak-priority", "both": "curve-priority"}[words]
    return value(_NAME, policy) - value(_NAME, "fifo")


def _earlier_or_later() -> str:
    first = value(_NAME, "curve-fifo") - value(_NAME, "fifo")
    then = value(_NAME, "curve-priority") - value(_NAME, "peak-priority")
    return AFTER if then > first else BEFORE


def _not_good(scenario: Any) -> list[str]:
    least = day(_NAME).cluster.gpus
    if scenario.cluster.gpus < least:
        return [f"The cluster must not become smaller than {least} GPUs."]
    made = plan(scenario, "fifo")
    if made.gap is not None and made.gap <= _GOOD:
        return []
    return [f"With {scenario.cluster.gpus} GPUs FIFO is {made.gap:.1%} below the bound."]


EXERCISES: tuple[Exercise, ...] = (
    Guess(
        "2.a",
        "By how many per cent is the plan of `aware` below the bound, which no plan can pass?",
        ("bound", "gap"),
        (),
        "%",
        lambda: 100 * float(planned(_NAME, "aware").gap or 0.0),
        lambda n: "The best plan there is lies somewhere in between: at most that much is left to gain.",
    ),
    Choice(
        "2.b",
        "Giving up the reservation: does it gain more value before or after the order has changed?",
        ("value", "reservation", "order"),
        (),
        (BEFORE, AFTER),
        _earlier_or_later,
        lambda: (
            f"{_alone('reservation'):+.1f} before, {_alone('both') - _alone('order'):+.1f} after: room is "
            "worth more "
            "to those who know what to put there."
        ),
    ),
    NumberAsked(
        "2.1",
        "FIFO's objective and the bound stand in the table. By how many per cent of the bound is FIFO below "
        "it?",
        ("bound", "gap", "objective"),
        (
            "The gap is a share of the bound: take the difference first.",
            "Divide (bound - objective) by the bound.",
        ),
        "%",
        lambda: 100 * (_bound() - _objective("fifo")) / _bound(),
        lambda n: f"({_bound():.1f} - {_objective('fifo'):.1f}) / {_bound():.1f} = {n:.1f} %.",
        lambda: (
            (100 * _objective("fifo") / _bound(), "This is what FIFO reaches. Asked is what it lacks."),
            (
                100 * (_bound() - _objective("fifo")) / _objective("fifo"),
                "You divided by FIFO's objective. A gap is a share of the bound.",
            ),
            (_bound() - _objective("fifo"), "This is the difference. What share of the bound is it?"),
        ),
        0.3,
    ),
    NumberAsked(
        "2.2",
        "Alone, the reservation and the order give what 1 and 2 of the steps say; together they give more. "
        "How much value "
        "do they give together beyond the sum of each alone?",
        ("value", "interaction"),
        (
            "Take what both give together, and take off what each gives alone.",
            "From both paths: (reservation first: steps 1 + 2) - (its step 1) - (order first: step 1).",
        ),
        "of value",
        lambda: _apart().interaction("value"),
        lambda n: f"{_alone('both'):.1f} - {_alone('reservation'):.1f} - {_alone('order'):.1f} = {n:.1f}.",
        lambda: (
            (_alone("both"), "This is both together. Take off what each gives alone."),
            (
                _alone("reservation") + _alone("order"),
                "This is the sum of each alone. What do both give beyond it?",
            ),
        ),
        1.0,
    ),
    NumberAsked(
        "2.3",
        "Of all the objective that the bound lets one gain over FIFO, how many per cent does `aware` gain?",
        ("bound", "objective"),
        (
            "All that can be gained is bound less FIFO; what `aware` gains is its objective less FIFO's.",
            "Divide the second by the first.",
        ),
        "%",
        lambda: 100 * (_objective("aware") - _objective("fifo")) / (_bound() - _objective("fifo")),
        lambda n: f"{n:.1f} %: the rest is for `search`, or for nobody.",
        lambda: (
            (
                100 * _objective("aware") / _bound(),
                "This is its share of the bound. Asked is its share of the gain: take FIFO off both.",
            ),
            (
                100 * (_objective("aware") / _objective("fifo") - 1),
                "This is the gain compared with FIFO. Compare it with the largest gain that there can be.",
            ),
        ),
        0.3,
    ),
    Build(
        "2.4",
        "Build it yourself: give the cluster so many GPUs that plain FIFO is at most 20 % below the bound.",
        ("bound", "gap", "first in, first out"),
        (
            "Try twice as many, then look which way it goes. It does not get better with every GPU.",
            "When nearly all jobs fit at once, their order no longer matters.",
        ),
        (Knob("GPUs", "cluster.gpus", "GPUs"),),
        lambda: day(_NAME),
        _not_good,
        lambda built: (
            f"With {built.cluster.gpus} GPUs FIFO is near the bound: where all is plenty, no order is needed. "
            f"`aware` is near it with {day(_NAME).cluster.gpus}."
        ),
    ),
)
