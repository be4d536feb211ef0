"""GPUs held over time: changes within a cap, and what following the traffic saves against its peak."""

import math
from dataclasses import dataclass
from typing import TypeGuard

import numpy as np
import numpy.typing as npt

from gpuplan.forecast.traffic import HOUR_S
from gpuplan.inputs.errors import InputError, Mistake


@dataclass(frozen=True, slots=True)
class PeakComparison:
    """What following the traffic takes, against holding its peak.

    Parameters
    ----------
    gpu_hours
        GPU-hours when the number of GPUs follows.
    peak_gpu_hours
        GPU-hours when the highest number is held all the time.
    peak_gpus
        The highest number of GPUs.
    """

    gpu_hours: float
    peak_gpu_hours: float
    peak_gpus: int

    @property
    def saved_percent(self) -> float:
        """Share of the GPU-hours of the peak that is saved; not-a-number where the peak is 0."""
        if not self.peak_gpu_hours:
            return math.nan
        return 100 * (self.peak_gpu_hours - self.gpu_hours) / self.peak_gpu_hours

    def __str__(self) -> str:
        return (
            f"{self.gpu_hours:,.6g} GPU-hours, {self.peak_gpu_hours:,.6g} if the peak of {self.peak_gpus:,} GPUs "
            f"is held: {self.saved_percent:.1f} % saved"
        )


def smooth_to_cap(gpus: npt.ArrayLike, max_swap: int, *, whole: int = 1) -> npt.NDArray[np.int64]:
    """Find the smallest holding that covers the demand and changes by at most `max_swap` GPUs a step.

    The holding is ``h(t) = max over s of d(s) - max_swap * |t - s|``: every smaller one misses some demand or
    changes faster. It rises before a peak and falls after it, so it must be known what comes.

    Parameters
    ----------
    gpus
        GPUs that each step demands.
    max_swap
        GPUs by which the holding may change from one step to the next.
    whole
        GPUs of a replica, where only whole replicas are held: demands must be multiples of it, and the cap is
        rounded down to one.

    Returns
    -------
    numpy.ndarray
        int64 GPUs held in each step.

    Raises
    ------
    InputError
        If a demand is no whole number of at least 0 or no multiple of `whole`, or an argument is out of range.
    """
    given = np.asarray(gpus)
    mistakes = [
        Mistake(path, f"must be a whole number of at least {least}", value)
        for path, value, least in (("max_swap", max_swap, 0), ("whole", whole, 1))
        if not is_whole(value, least)
    ]
    if given.ndim != 1 or not np.issubdtype(given.dtype, np.integer):
        mistakes.append(Mistake("gpus", "must be a row of whole numbers", f"{given.dtype} {given.shape}"))
    elif not mistakes:
        wrong = np.flatnonzero((given < 0) | (given % whole != 0))
        rule = "must be 0 or more" + (f" and a multiple of {whole}" if whole > 1 else "")
        mistakes = [Mistake(f"gpus.{i}", rule, int(given[i])) for i in wrong]
    if mistakes:
        raise InputError("holding", mistakes)
    steps = np.arange(len(given), dtype=np.int64) * (max_swap // whole * whole)
    demand = given.astype(np.int64)
    # d(s) + cap * s, highest so far, less cap * t: the demands before t; and the same from the other end.
    from_before = np.maximum.accumulate(demand + steps) - steps
    from_after = np.maximum.accumulate((demand - steps)[::-1])[::-1] + steps
    return np.maximum(from_before, from_after)


def against_peak(gpus: npt.ArrayLike, step_s: int = HOUR_S) -> PeakComparison:
    """GPU-hours of a holding, against its highest step held all the time."""
    held = np.asarray(gpus, np.int64)
    if held.ndim != 1 or not held.size:
        raise InputError("holding", [Mistake("gpus", "must be a row of at least one number", held.shape)])
    peak = int(held.max())
    return PeakComparison(int(held.sum()) * step_s / HOUR_S, peak * held.size * step_s / HOUR_S, peak)


def is_whole(value: object, least: int) -> TypeGuard[int]:
    """Whether a value is a whole number (no bool) of at least `least`."""
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool) and int(value) >= least
