"""Exercises of "Budgets, not priorities": entitlements, hysteresis, goodput, a morning followed with a pencil."""

from functools import cache
from typing import TYPE_CHECKING, Any

from gpuplan.lessons.exercise import Build, Exercise, Guess, Knob, NumberAsked
from gpuplan.loading import load_fairshare, simulate

if TYPE_CHECKING:
    from gpuplan.fairshare.run import Run

#: How long blue may wait in the exercise of building, seconds.
_SOON_S = 15 * 60


@cache
def _run(name: str, policy: str) -> "Run":
    return simulate(name, policy)


def _share(name: str, policy: str, figure: str) -> float:
    return 100 * float(_run(name, policy).figures[figure] or 0.0)


def _entitled() -> float:
    """GPUs that `language/pretraining` may claim."""
    teams = _run("three-programmes", "fair-share").teams.set_index("team")
    return float(teams["entitlement_gpus"]["language/pretraining"])


def _margin() -> float:
    scenario = load_fairshare("three-programmes")
    return 100 * scenario.contract.max_min_runtime_s / scenario.window_s


def _blue_waits(run: "Run") -> float:
    """Seconds that ``blue-1`` waits."""
    return float(run.jobs.set_index("job")["wait_s"]["blue-1"])


def _unprotected(scenario: Any) -> list[str]:
    run = simulate(scenario, "fair-share")
    waits = _blue_waits(run)
    lost = float(run.figures["lost_gpu_hours"] or 0.0)
    unmet = [f"blue-1 still waits {waits / 60:.0f} min."] if waits > _SOON_S else []
    if lost > 1:
        unmet.append(f"{lost:.1f} GPU-hours of work are lost to preemption; at most 1 is allowed.")
    return unmet


EXERCISES: tuple[Exercise, ...] = (
    Guess(
        "4.a",
        "Each team has GPUs of its own, and together they want two and a half times what there is. How full "
        "is the cluster?",
        ("monopoly", "occupancy"),
        (),
        "%",
        lambda: _share("three-programmes", "static-partitions", "occupancy"),
        lambda n: (
            "GPUs idle whenever their own team has nothing that fits, however long the queue next door."
        ),
    ),
    Guess(
        "4.b",
        "Under budgets nearly every GPU is assigned all the time. How much of the GPU-time outlives "
        "preemption, as goodput?",
        ("goodput", "occupancy", "preemption"),
        (),
        "%",
        lambda: _share("three-programmes", "fair-share", "goodput"),
        lambda n: "What lies between it and occupancy was computed, preempted, and computed again.",
    ),
    NumberAsked(
        "4.1",
        "`language` has a weight of 60 of 100; of it `pretraining` has 70 of 100. The cluster has 128 GPUs. "
        "How many GPUs is "
        "`language/pretraining` entitled to?",
        ("entitlement", "weight"),
        (
            "Go down the tree: first the share of the programme, then the share in it.",
            "0.6 times 0.7 times 128.",
        ),
        "GPUs",
        _entitled,
        lambda n: (
            f"0.6 × 0.7 = 0.42 of 128: {n:.2f} GPUs. A share of the time, so that a fraction of a GPU is no "
            "trouble."
        ),
        lambda: (
            (128 * 0.7, "This is its share of the whole cluster. It has a share of its programme's share."),
            (128 * 0.6, "This is the programme's. Pretraining has a part of it."),
            (42.0, "This is its share in per cent. How many GPUs of 128?"),
        ),
        0.3,
    ),
    NumberAsked(
        "4.2",
        "A claim must be better by the cap of the minimum run time over the window: 8 hours over 7 days. How "
        "many per cent is that?",
        ("hysteresis", "minimum run time", "window"),
        ("Bring both to the same unit first.", "8 hours over 7 times 24 hours."),
        "%",
        _margin,
        lambda n: (
            f"8 / 168 = {n:.1f} %. A margin of nothing would let two equal teams preempt each other in turn."
        ),
        lambda: (
            (100 * 8 / 7, "These are hours over days. How many hours has the window?"),
            (100 * 8 / 24, "This is 8 hours of one day. The window has seven."),
        ),
        0.1,
    ),
    NumberAsked(
        "4.3",
        "Occupancy and goodput of the run under budgets stand in the table. How many points of GPU-time are "
        "lost between them?",
        ("occupancy", "goodput", "point"),
        (
            "Both are shares of the same GPU-time; take the one from the other.",
            "Occupancy less goodput, in the column of budgets.",
        ),
        "points",
        lambda: (
            _share("three-programmes", "fair-share", "occupancy")
            - _share("three-programmes", "fair-share", "goodput")
        ),
        lambda n: f"{n:.1f} points: what sharing by budget costs. Occupancy alone does not show it.",
        within=0.1,
    ),
    Build(
        "4.4",
        "Build it yourself: in `first-hours` blue comes after half an hour and waits, because red's work is "
        "protected for an hour. "
        "Choose the cap of the minimum run time (minutes) so that blue-1 waits at most 15 min and at most 1 "
        "GPU-hour is lost.",
        ("minimum run time", "preemption"),
        (
            "Red started at 0 and blue comes at 30 min. When does red's protection have to end?",
            "Any cap of up to 45 min lets blue in at 45 min or before. Checkpoints every 15 min decide what "
            "is lost.",
        ),
        (Knob("cap of the minimum run time, minutes", "contract.max_min_runtime", "min", "min"),),
        lambda: load_fairshare("first-hours"),
        _unprotected,
        lambda built: (
            f"With {built.contract.max_min_runtime_s / 60:g} min blue-1 waits "
            f"{_blue_waits(simulate(built, 'fair-share')) / 60:.0f} min. Protection is "
            "a price that others pay in waiting."
        ),
    ),
)
