"""The frame of all benchmarks: a measure, its outcome, and the table of outcomes."""

import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from typing import Any

from gpuplan.text import aligned

#: Units of a second, the largest first.
SECOND_UNITS = (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6))


@dataclass(frozen=True, slots=True)
class Finding:
    """A figure and what stands beside it; a figure of None was not reached."""

    figure: float | None
    note: str = ""


@dataclass(frozen=True, slots=True)
class Measure:
    """One line of the benchmark table.

    Parameters
    ----------
    name
        What is measured, as a reader of the table would say it.
    run
        Measures, in `unit`, and asserts that the answer was right (``AssertionError`` otherwise).
    target
        The aim; ``None`` where there is none (a line of a growth table).
    unit
        ``s``: seconds, at most the target. ``share``: a share of 1, at least the target.
    """

    name: str
    run: Callable[[], "float | Finding"]
    target: float | None = None
    unit: str = "s"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a measure found: the figure (``None``: the answer was wrong, or not reached), target, ratio.

    Of seconds the ratio is measured over target, of shares what lacks over what may lack: below 1 is inside.
    """

    name: str
    figure: float | None
    target: float | None
    unit: str
    ratio: float | None
    wrong: str | None
    note: str = ""


def fastest(call: Callable[[], Any], *, budget_s: float = 0.5, at_least: int = 5) -> float:
    """Seconds of the fastest of many calls: on a shared machine the one least disturbed.

    The first call is not counted (it may compile). Short calls are timed in batches of a millisecond
    or more, so that reading the clock does not weigh.
    """
    call()
    started = time.perf_counter()
    call()
    repeat = max(1, int(1e-3 / max(time.perf_counter() - started, 1e-9)))
    best = float("inf")
    rounds = 0
    while rounds < at_least or time.perf_counter() - started < budget_s:
        before = time.perf_counter()
        for _ in range(repeat):
            call()
        best = min(best, (time.perf_counter() - before) / repeat)
        rounds += 1
    return best


def measured(entries: Iterable[Measure]) -> list[Outcome]:
    """Run all measures; a wrong answer is an outcome too and does not stop the others."""
    return [_measured(entry) for entry in entries]


def _measured(entry: Measure) -> Outcome:
    try:
        found = entry.run()
    except AssertionError as error:
        wrong = str(error) or "the answer is wrong"
        return Outcome(entry.name, None, entry.target, entry.unit, None, wrong)
    if not isinstance(found, Finding):
        found = Finding(found)
    ratio = _ratio(found.figure, entry.target, entry.unit)
    return Outcome(entry.name, found.figure, entry.target, entry.unit, ratio, None, found.note)


def _ratio(figure: float | None, target: float | None, unit: str) -> float | None:
    if figure is None or target is None:
        return None
    return figure / target if unit == "s" else (1 - figure) / (1 - target)


def as_records(outcomes: Iterable[Outcome]) -> list[dict[str, Any]]:
    """The outcomes as plain mappings, for JSON."""
    return [asdict(outcome) for outcome in outcomes]


def as_table(outcomes: Iterable[Outcome]) -> str:
    """The outcomes as an aligned table; a ratio below 1 is inside the target."""
    rows = [
        (
            outcome.name,
            _shown(outcome.figure, outcome.unit) if outcome.wrong is None else "WRONG",
            _shown(outcome.target, outcome.unit),
            "" if outcome.ratio is None else f"{outcome.ratio:.2f}",
            outcome.wrong or outcome.note,
        )
        for outcome in outcomes
    ]
    return aligned(("measure", "measured", "target", "ratio", ""), rows, right=(1, 2, 3))


def _shown(figure: float | None, unit: str) -> str:
    if unit == "s" or figure is None:
        return duration(figure)
    return f"{figure:.2%}"


def duration(seconds: float | None) -> str:
    """Seconds in the unit that reads best (``0.0000153`` is ``15.3 µs``), empty for ``None``."""
    if seconds is None:
        return ""
    unit, size = next(((u, s) for u, s in SECOND_UNITS if seconds >= s), SECOND_UNITS[-1])
    return f"{seconds / size:.3g} {unit}"
