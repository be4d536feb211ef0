"""Exercises of "Your own cluster": a table with mistakes, and from traffic to GPUs."""

import tempfile
from functools import cache
from pathlib import Path
from typing import Any

from gpuplan.lessons.exercise import Build, Exercise, Knob, NumberAsked
from gpuplan.loading import load_allocation

#: The table of the lesson: two rows that can be read, four that cannot.
TABLE = "id,submit_s,gpus,run_s\na,0,4,3600\nb,60,eight,600\nc,120,2,-5\nd,180,2,\ne,240,,60\nf,300,2,600\n"

#: Traffic of a service at its peak, requests a second, and the GPUs that it may have.
_PEAK_PER_S, _MOST = 90.0, 6


@cache
def _gpu_hours() -> float:
    """GPU-hours of the rows of `TABLE` that can be read."""
    from gpuplan.traces.importing import import_file

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "jobs.csv"
        path.write_text(TABLE, encoding="utf-8")
        made: Any = import_file(path, strict=False)
    return float(made.scenario.jobs.gpu_seconds.sum()) / 3600


@cache
def _mistakes() -> float:
    """Rows of `TABLE` that cannot be read."""
    from gpuplan.inputs.errors import InputError
    from gpuplan.traces.importing import import_file

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "jobs.csv"
        path.write_text(TABLE, encoding="utf-8")
        try:
            import_file(path)
        except InputError as error:
            return float(len({mistake.line for mistake in error.mistakes}))
    return 0.0


def _service() -> Any:
    """A day with a service whose peak is to be sized."""
    return load_allocation(
        {
            "kind": "allocation",
            "name": "a-service",
            "cluster": {"gpus": 16},
            "objective": {"half_life_hours": None},
            "realtime": [
                {
                    "name": "chat",
                    "priority": 5,
                    "demand": {"base": 1, "peak": 12, "peak_hour": 14, "width_hours": 10},
                }
            ],
            "batch": [
                {"name": f"tune-{k}", "kind": "training", "gpus": 4, "hours": 8, "priority": 2}
                for k in range(9)
            ],
        }
    )


def _no_gain(scenario: Any) -> list[str]:
    from gpuplan.allocation.plan import compare

    both = compare(scenario, ["fifo", "aware"])
    gained = 100 * (
        float(both["aware"].figures["utilization"] or 0.0) - float(both["fifo"].figures["utilization"] or 0.0)
    )
    return [] if gained <= 5 else [f"Between `fifo` and `aware` there are still {gained:.1f} points."]


EXERCISES: tuple[Exercise, ...] = (
    NumberAsked(
        "6.1",
        "In the table of six rows below, how many rows cannot be read?",
        ("row account",),
        (
            "Look at every row: words in place of numbers, negative times, empty fields.",
            "Rows b, c, d and e; and a, f?",
        ),
        "rows",
        _mistakes,
        lambda n: (
            f"{n:g}, each told with its line and what was found. None is dropped in silence, and none is "
            "guessed."
        ),
        lambda: ((6 - _mistakes(), "These can be read. Asked are the others."),),
        0.01,
        1.0,
    ),
    NumberAsked(
        "6.2",
        "How many GPU-hours do the rows that can be read ask for?",
        ("GPU-hour", "row account"),
        (
            "GPUs times run time of each row that can be read; run times are in seconds.",
            "4 GPUs for an hour, and 2 GPUs for ten minutes.",
        ),
        "GPU-hours",
        _gpu_hours,
        lambda n: f"4 × 3,600 s + 2 × 600 s = {n * 3600:,.0f} GPU-seconds = {n:.2f} GPU-hours.",
        lambda: (
            (_gpu_hours() * 3600, "These are GPU-seconds. An hour has 3,600 of them."),
            ((3600 + 600) / 3600, "These are hours. How many GPUs has each of them?"),
        ),
        0.02,
    ),
    Build(
        "6.3",
        "Build it yourself: a service with a peak of 12 GPUs shares 16 with nine jobs, and `aware` is far "
        "fuller than `fifo`. On "
        "which day is that no longer so? Change the peak so that at most 5 points lie between the two.",
        ("reservation", "utilization", "demand"),
        (
            "What does FIFO reserve? Make the reserved and the used hours alike.",
            "A peak near the base reserves nothing that is not used.",
        ),
        (Knob("peak of chat, GPUs", "realtime.0.demand.peak", "GPUs"),),
        _service,
        _no_gain,
        lambda built: (
            f"With a peak of {max(built.realtime[0].demand)} there is little to gain: no policy helps a "
            "cluster that has nothing idle. "
            "Look for that in your own records first."
        ),
    ),
)
