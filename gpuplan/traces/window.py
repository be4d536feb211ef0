"""GPUs in use within a window of time: jobs clipped to it, idle GPUs in the base."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from gpuplan.forecast.traffic import HOUR_S, MOST_BINS, TrafficHistory, epoch_s
from gpuplan.inputs.account import Account
from gpuplan.inputs.errors import InputError, Mistake

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, slots=True)
class Busy:
    """A job that used GPUs, or a time for which GPUs were away.

    Parameters
    ----------
    start
        When it began; ``None`` if it has not.
    end
        When it ended; ``None`` if it goes on.
    gpus
        Its GPUs.
    """

    start: datetime | None
    end: datetime | None
    gpus: int


@dataclass(frozen=True, slots=True, eq=False)
class WindowUse:
    """Use of GPUs within a window.

    Parameters
    ----------
    start, end
        The window, cut off where the data ends.
    bin_s
        Width of a bin in seconds.
    used_gpu_hours
        GPU-hours of the parts of jobs that lie in the window.
    capacity_gpu_hours
        GPU-hours of the GPUs that were there, idle ones included.
    busy
        Mean of the GPUs in use in each bin.
    peak_busy
        Most GPUs in use at any instant.
    account
        What became of every job.
    """

    start: datetime
    end: datetime
    bin_s: int
    used_gpu_hours: float
    capacity_gpu_hours: float
    busy: npt.NDArray[np.float64]
    peak_busy: int
    account: Account

    @property
    def utilization_percent(self) -> float:
        """Share of the capacity that was used; not-a-number where there was none."""
        return (
            100 * self.used_gpu_hours / self.capacity_gpu_hours if self.capacity_gpu_hours else float("nan")
        )

    def history(self, name: str = "GPUs in use") -> TrafficHistory:
        """The bins as a history in GPUs."""
        return TrafficHistory(name, "GPUs", self.start, self.bin_s, self.busy, self.account)

    def to_frame(self) -> "pd.DataFrame":
        """A row per bin: ``time`` and ``busy_gpus``."""
        return self.history().to_frame().rename(columns={"value": "busy_gpus"})

    def __repr__(self) -> str:
        words = f"{self.used_gpu_hours:,.6g} of {self.capacity_gpu_hours:,.6g} GPU-hours used"
        return f"{words} ({self.utilization_percent:.2f} %), at most {self.peak_busy:,} GPUs at once\n{self.account!r}"


def busy_in_window(
    jobs: Sequence[Busy],
    window: tuple[datetime, datetime],
    *,
    gpus: int,
    as_of: datetime | None = None,
    away: Sequence[Busy] = (),
    bin_s: int = HOUR_S,
    source: str = "jobs",
) -> WindowUse:
    """Count the GPUs in use within a window; each job counts with the part of it that lies inside.

    Parameters
    ----------
    jobs
        Jobs with their times; whole seconds add up exactly.
    window
        From its first instant up to its last, which belongs to the next window.
    gpus
        GPUs of the cluster, those that were idle all the time included.
    as_of
        When the jobs were exported: jobs without an end ran until then, and the window ends there at the
        latest, as nothing is known of later. Without it such jobs ran beyond the window.
    away
        GPUs that were not there for a time: they leave the base.
    bin_s
        Width of a bin in seconds; the window is a whole number of bins.
    source
        Name of the jobs in messages.

    Raises
    ------
    InputError
        With every job that ends before it starts or has no GPUs, and every argument out of range.
    """
    mistakes = _window_mistakes(window, gpus, as_of, bin_s)
    zone = window[0].tzinfo
    for name, rows in (("jobs", jobs), ("away", away)):
        for i, row in enumerate(rows):
            mistakes += _row_mistakes(f"{name}.{i}", row, zone)
    if mistakes:
        raise InputError(source, mistakes)
    first, last = (epoch_s(moment) for moment in window)
    known_until = min(last, epoch_s(as_of)) if as_of is not None else last
    # The end of data may lie within a bin: that bin is not known, and no part of it counts.
    known_until = first + (known_until - first) // bin_s * bin_s
    if known_until <= first:
        rule = "must be at least one bin after the window begins: nothing is known of it yet"
        raise InputError(source, [Mistake("as_of", rule, as_of.isoformat() if as_of else "")])
    edges = np.arange(first, known_until + 1, bin_s, dtype=np.int64)
    use, peak = _integral(jobs, edges)
    gone, most_gone = _integral(away, edges)
    if most_gone > gpus:
        raise InputError(source, [Mistake("away", f"must not be more than the {gpus} GPUs", most_gone)])
    busy = np.diff(use) / bin_s
    busy.flags.writeable = False
    base = gpus * (known_until - first) - int(gone[-1])
    return WindowUse(
        window[0],
        datetime.fromtimestamp(known_until, UTC).astimezone(zone)
        if zone
        else datetime.fromtimestamp(known_until, UTC).replace(tzinfo=None),
        bin_s,
        int(use[-1]) / HOUR_S,
        base / HOUR_S,
        busy,
        peak,
        _account(
            jobs, source, first, known_until, cut=known_until < last, peak=peak, gpus=gpus, away=int(gone[-1])
        ),
    )


def _window_mistakes(
    window: tuple[datetime, datetime], gpus: int, as_of: datetime | None, bin_s: int
) -> list[Mistake]:
    mistakes = []
    if isinstance(gpus, bool) or not isinstance(gpus, int) or gpus < 1:
        mistakes.append(Mistake("gpus", "must be a whole number of at least 1", gpus))
    zone = window[0].tzinfo
    for path, moment in (("window.1", window[1]), ("as_of", as_of)):
        if moment is not None and (moment.tzinfo is None) != (zone is None):
            mistakes.append(Mistake(path, _zone_rule(zone), moment.isoformat()))
    if mistakes:
        return mistakes
    length = epoch_s(window[1]) - epoch_s(window[0])
    if length <= 0:
        mistakes.append(Mistake("window", "must end after it begins", window[1].isoformat()))
    elif bin_s < 1 or length % bin_s or length // bin_s > MOST_BINS:
        mistakes.append(Mistake("bin_s", f"must divide the window of {length:,} s", bin_s))
    return mistakes


def _row_mistakes(path: str, row: Busy, zone: tzinfo | None) -> list[Mistake]:
    mistakes = []
    if isinstance(row.gpus, bool) or not isinstance(row.gpus, (int, np.integer)) or row.gpus < 0:
        mistakes.append(Mistake(f"{path}.gpus", "must be a whole number, 0 or more", row.gpus))
    for name, moment in (("start", row.start), ("end", row.end)):
        if moment is not None and (moment.tzinfo is None) != (zone is None):
            mistakes.append(Mistake(f"{path}.{name}", _zone_rule(zone), moment.isoformat()))
    if not mistakes and row.start is not None and row.end is not None and row.end < row.start:
        mistakes.append(Mistake(f"{path}.end", "must not be before the start", row.end.isoformat()))
    return mistakes


def _zone_rule(zone: tzinfo | None) -> str:
    return f"must have {'no' if zone is None else 'a'} time zone, as the window"


def _integral(rows: Sequence[Busy], edges: npt.NDArray[np.int64]) -> tuple[npt.NDArray[np.int64], int]:
    """GPU-seconds from the first edge up to each edge, and the most GPUs at any instant; exact whole numbers."""
    change: dict[int, int] = {}
    for row in rows:
        if row.start is None or not row.gpus:
            continue
        begins = max(epoch_s(row.start), int(edges[0]))
        ends = int(edges[-1]) if row.end is None else min(epoch_s(row.end), int(edges[-1]))
        if begins < ends:
            change[begins] = change.get(begins, 0) + int(row.gpus)
            change[ends] = change.get(ends, 0) - int(row.gpus)
    if not change:
        return np.zeros(len(edges), np.int64), 0
    at = np.array(sorted(change), np.int64)
    # An end and a start at the same instant are one change, so that a hand-over is no peak.
    level = np.cumsum([change[moment] for moment in at.tolist()])
    so_far = np.concatenate([[0], np.cumsum(level[:-1] * np.diff(at))])
    last = np.searchsorted(at, edges, side="right") - 1
    inside = np.maximum(last, 0)
    found = np.where(last < 0, 0, so_far[inside] + level[inside] * (edges - at[inside]))
    return np.asarray(found, np.int64), int(level.max())


def _account(
    jobs: Sequence[Busy], source: str, first: int, last: int, *, cut: bool, peak: int, gpus: int, away: int
) -> Account:
    waiting = sum(job.start is None for job in jobs)
    started = [job for job in jobs if job.start is not None]
    before = sum(job.end is not None and epoch_s(job.end) <= first for job in started)
    after = sum(
        epoch_s(job.start) >= last and not (job.end is not None and epoch_s(job.end) <= first)
        for job in started
        if job.start is not None
    )
    used = len(jobs) - waiting - before - after
    running = sum(job.end is None and job.start is not None and epoch_s(job.start) < last for job in jobs)
    excluded = (("had not started", waiting), ("ended before the window", before), ("began after it", after))
    rules = [f"The base is the {gpus:,} GPUs of the cluster, idle ones included."]
    if away:
        rules.append(f"{away / HOUR_S:,.6g} GPU-hours of GPUs that were away are not in the base.")
    if running:
        rules.append(f"{running:,} jobs had no end: they count up to the end of the window or of the data.")
    if cut:
        rules.append("The window ends at the last full bin before the export: later use is unknown.")
    if peak > gpus:
        rules.append(f"At its highest, jobs held {peak:,} GPUs, more than the {gpus:,} that are stated.")
    return Account(
        source,
        "jobs",
        len(jobs),
        used,
        tuple(row for row in excluded if row[1]),
        rules=tuple(rules),
        made="window",
    )
