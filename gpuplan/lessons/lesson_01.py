"""Exercises of "Why order is capacity": four jobs on paper, then a day of sixteen."""

from functools import cache
from typing import TYPE_CHECKING, Any

from gpuplan.lessons.exercise import Build, Choice, Exercise, Guess, Knob, NumberAsked
from gpuplan.loading import load_allocation, plan

if TYPE_CHECKING:
    from gpuplan.allocation.model import AllocationScenario
    from gpuplan.allocation.plan import Plan

RESERVATION, ORDER = "giving up the reservation", "changing the order"

#: The largest cluster that is tried where it is asked how many GPUs something needs.
_MOST_GPUS = 64


@cache
def day(name: str) -> "AllocationScenario":
    """A shipped scenario."""
    return load_allocation(name)


@cache
def planned(name: str, policy: str, gpus: int | None = None) -> "Plan":
    """A plan of a shipped scenario, of its own size or another one."""
    scenario = day(name)
    return plan(scenario if gpus is None else scenario.replace({"cluster.gpus": gpus}), policy)


def gpu_hours(name: str) -> int:
    """GPU-hours that a scenario's cluster has."""
    scenario = day(name)
    return round(scenario.cluster.gpus * scenario.horizon.steps * scenario.horizon.step_hours)


def useful(name: str, policy: str) -> float:
    """GPU-hours that do useful work under a policy."""
    return float(planned(name, policy).figures["utilization"] or 0.0) * gpu_hours(name)


def points(name: str, before: str, after: str) -> float:
    """Points of utilization that a policy has more than another."""
    return 100 * (useful(name, after) - useful(name, before)) / gpu_hours(name)


def value(name: str, policy: str) -> float:
    """Value of a policy's plan, priority-weighted GPU-hours."""
    return float(planned(name, policy).figures["value"] or 0.0)


def needs(name: str, policy: str, goal: float) -> int:
    """The least GPUs with which a policy reaches a value."""
    least = day(name).cluster.gpus
    reached = (
        n for n in range(least, _MOST_GPUS + 1) if (planned(name, policy, n).figures["value"] or 0) >= goal
    )
    return next(reached)


def _idle() -> float:
    """GPU-hours that the reservation of `training-rush` leaves unused."""
    app = day("training-rush").realtime[0]
    return float(max(app.demand) * len(app.demand) - sum(app.demand))


def _more(figure: str) -> str:
    """Which of the two changes gives more of a figure, each made alone."""
    alone = {RESERVATION: "curve-fifo", ORDER: "peak-priority"}
    gained = {
        words: float(planned("training-rush", policy).figures[figure] or 0.0)
        for words, policy in alone.items()
    }
    return max(gained, key=lambda words: gained[words])


_PAPER = (
    NumberAsked(
        "1.1",
        "On paper, first in, first out: chat reserves 2 GPUs all day; A, B, C, D come in this order, and each "
        "takes the "
        "earliest place. How many of the 24 GPU-hours are useful?",
        ("GPU-hour", "first in, first out", "reservation", "useful"),
        (
            "Beside the reservation 2 GPUs are left. Place A there first, then ask of B, C and D whether they "
            "still fit; "
            "count the app only in the hours in which it is used.",
            "Count three things: the squares of A, those of C, and the app's own hours 4 and 5.",
        ),
        "GPU-hours",
        lambda: useful("on-paper", "fifo"),
        lambda n: (
            f"A 8, C 2 and chat 4: {n:g} of {gpu_hours('on-paper')}. B comes too late to end in time, D never "
            "fits."
        ),
        lambda: (
            (
                float(planned("on-paper", "fifo").figures["held"] or 0) * gpu_hours("on-paper"),
                "That is what is held. What chat reserves and nobody uses is not useful: leave it out.",
            ),
            (
                useful("on-paper", "fifo") - sum(day("on-paper").realtime[0].demand),
                "The jobs are right. Chat's own hours of use count too.",
            ),
        ),
        0.01,
        1.0,
    ),
    NumberAsked(
        "1.2",
        "Now chat holds only what it uses; the order stays A, B, C, D. By how many points of utilization is "
        "the day fuller?",
        ("utilization", "point", "curve"),
        (
            "Draw it again: which job fits now that did not fit before? A point is a hundredth of all 24 "
            "GPU-hours.",
            "B runs beside A now, 2 GPUs times 4 hours. What share of 24 is that?",
        ),
        "points",
        lambda: points("on-paper", "fifo", "curve-fifo"),
        lambda n: (
            f"B fits beside A: 8 of 24 GPU-hours, {n:.1f} points. Nothing was bought, and the order is the "
            "same."
        ),
        lambda: (
            (
                useful("on-paper", "curve-fifo") - useful("on-paper", "fifo"),
                "These are the GPU-hours. How many hundredths of all 24 are they?",
            ),
            (
                100 * useful("on-paper", "curve-fifo") / gpu_hours("on-paper"),
                "This is how full it is now. Asked is by how much it is fuller than before.",
            ),
            (
                100 * (useful("on-paper", "curve-fifo") / useful("on-paper", "fifo") - 1),
                "This is growth, compared with before. Points compare with all 24 GPU-hours.",
            ),
        ),
        0.5,
    ),
    NumberAsked(
        "1.3",
        "Last, the order: the most important job first (D has priority 4, C 3, B 2, A 1). What is the value "
        "of the jobs that run?",
        ("value", "priority", "order"),
        (
            "Place D first, then see what fits in the last two hours. Value is GPU-hours times priority, of "
            "jobs only.",
            "D and C run. Take GPUs times hours times priority of each, and add.",
        ),
        "of value",
        lambda: value("on-paper", "curve-priority"),
        lambda n: (
            f"D 16 × 4 and C 2 × 3: {n:g}, instead of {value('on-paper', 'curve-fifo'):g}. The day is exactly "
            "as full as "
            "before; it is full of something else."
        ),
        lambda: (
            (value("on-paper", "curve-fifo"), "This is the value in order of arrival. Now D goes first."),
            (
                useful("on-paper", "curve-priority") - sum(day("on-paper").realtime[0].demand),
                "These are GPU-hours. Take each job's GPU-hours times its priority.",
            ),
            (
                value("on-paper", "curve-priority") + sum(day("on-paper").realtime[0].demand),
                "Only jobs earn value. Leave chat out.",
            ),
        ),
        0.01,
    ),
)

_GUESSES = (
    Guess(
        "1.a",
        "A day of sixteen jobs, far more than fits, first in, first out. What share of the GPU-hours does "
        "useful work?",
        ("utilization", "first in, first out"),
        (),
        "%",
        lambda: 100 * useful("training-rush", "fifo") / gpu_hours("training-rush"),
        lambda n: "So much work waits, and so much stands idle: the next picture shows where.",
    ),
    Choice(
        "1.b",
        "Each change made alone: which one makes the day fuller?",
        ("utilization", "reservation", "order"),
        (),
        (RESERVATION, ORDER),
        lambda: _more("utilization"),
        lambda: (
            f"Giving up the reservation {points('training-rush', 'fifo', 'curve-fifo'):+.1f} points, "
            f"changing the order {points('training-rush', 'fifo', 'peak-priority'):+.1f}."
        ),
    ),
    Guess(
        "1.c",
        "Nobody changes the order; GPUs are bought instead. How many GPUs are needed until the jobs in order "
        "of arrival "
        "are worth what the same 8 GPUs give in order of priority?",
        ("value", "order", "capacity"),
        (),
        "GPUs",
        lambda: float(needs("training-rush", "curve-fifo", value("training-rush", "curve-priority"))),
        lambda n: (
            "Changing the order costs nothing, and here it is worth as much as "
            f"{n - day('training-rush').cluster.gpus:g} GPUs more. That is the title of this lesson."
        ),
    ),
    Guess(
        "1.d",
        "In the explorer below, chat's peak is about to grow from 5 GPUs to 7. How full will the right plan "
        "be?",
        ("utilization", "demand"),
        (),
        "%",
        lambda: 100 * float(plan(_peak_of_seven()).figures["utilization"] or 0.0),
        lambda n: "Now drag the highest points of the curve up and look which block goes.",
    ),
)


def _peak_of_seven() -> Any:
    scenario = day("training-rush")
    demand = scenario.realtime[0].demand
    return scenario.replace({f"realtime.0.demand.{t}": 7 for t, n in enumerate(demand) if n == max(demand)})


def _not_built(scenario: Any) -> list[str]:
    """What a day lacks in which `cpt-1b-portuguese` starts first and nobody who chats is left waiting."""
    made = plan(scenario)
    place = [job.name for job in scenario.batch].index("cpt-1b-portuguese")
    begins = int(made.start[place])
    unmet = []
    if begins != 0:
        found = "has no place" if begins < 0 else f"starts in hour {begins}"
        unmet.append(f"With this priority the job {found}.")
    if (made.figures["coverage"] or 0.0) < 1:
        unmet.append(f"Only {made.figures['coverage']:.1%} of the demand is served.")
    return unmet


_AFTER = (
    NumberAsked(
        "1.4",
        "Under first in, first out 76 GPU-hours are reserved and never used. How many points of utilization "
        "is that, of "
        "8 GPUs over 24 hours?",
        ("point", "reservation", "GPU-hour"),
        (
            "How many GPU-hours does the whole day have? A point is a hundredth of them.",
            "8 times 24 is 192. What share of 192 is 76?",
        ),
        "points",
        lambda: 100 * _idle() / gpu_hours("training-rush"),
        lambda n: (
            f"{_idle():g} of {gpu_hours('training-rush')}: {n:.1f} points, the most that giving it up can "
            "bring."
        ),
        lambda: (
            (100 * _idle() / 24, "You divided by 24 hours. The day has 24 hours of each of the 8 GPUs."),
            (100 - 100 * _idle() / gpu_hours("training-rush"), "This is the rest. Asked is the idle part."),
        ),
        0.5,
    ),
    NumberAsked(
        "1.5",
        "In the table of steps in section 5, how many points does `aware` have more than `fifo`? Add up the "
        "steps.",
        ("point", "utilization", "whole horizon"),
        (
            "The column of points has a line for each step; one of them is negative.",
            "Add: reservation, then order, then whole horizon. The sum is the last line less the first.",
        ),
        "points",
        lambda: points("training-rush", "fifo", "aware"),
        lambda n: (
            f"{n:.1f} points are {useful('training-rush', 'aware') - useful('training-rush', 'fifo'):g} "
            "GPU-hours of "
            f"{gpu_hours('training-rush')}. The reservation alone explains most of them; the order decides "
            "what they are worth."
        ),
        lambda: (
            (
                useful("training-rush", "aware") - useful("training-rush", "fifo"),
                "These are GPU-hours. Of all 192, how many hundredths?",
            ),
            (
                points("training-rush", "fifo", "curve-fifo"),
                "This is the first step alone. The order and the whole horizon come on top.",
            ),
            (
                points("training-rush", "fifo", "aware")
                - 2 * points("training-rush", "curve-fifo", "curve-priority"),
                "One of the steps is negative: it is taken off, not added.",
            ),
        ),
        0.2,
    ),
    Build(
        "1.6",
        "Build it yourself: `cpt-1b-portuguese` never runs under `aware`. Give it a priority with which it "
        "starts in hour 0, "
        "while everybody who chats is served.",
        ("priority", "coverage"),
        (
            "It needs 4 GPUs for 6 hours at the start. Whose place would it take, and what priority has that "
            "job?",
            "Compare with the jobs of 4 GPUs that start first: it must be worth more per GPU-hour than what "
            "stands there.",
        ),
        (Knob("priority of cpt-1b-portuguese", "batch.2.priority", "of priority"),),
        lambda: day("training-rush"),
        _not_built,
        lambda built: (
            f"With priority {built.batch[2].priority:g} it starts in hour 0, and jobs that stood there give way. "
            "Look in the explorer which ones: an order is a choice."
        ),
    ),
)

EXERCISES: tuple[Exercise, ...] = (*_PAPER, *_GUESSES, *_AFTER)
