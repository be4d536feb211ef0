"""What a profile rests on, in sentences."""

import math
from datetime import tzinfo

import numpy as np
import numpy.typing as npt

from gpuplan.forecast.traffic import Period, TrafficHistory


def notes_of(
    history: TrafficHistory,
    period: Period,
    seen: npt.NDArray[np.int64],
    half_life_weeks: float,
    quantile: float | None,
    zone: tzinfo | None,
    n_unknown: int,
    n_out: int,
) -> list[str]:
    """Period, weights, zone and what was left out of a profile."""
    what = "mean" if quantile is None else f"{100 * quantile:g} % quantile"
    least, most = int(seen.min()), int(seen.max())
    times = f"{least}" if least == most else f"{least} to {most}"
    found = {
        "week": f"By hour of the week (168 values); each was seen in {times} weeks.",
        "day": f"By hour of the day (24 values), every weekday alike; each was seen on {times} days.",
        "flat": "One value for all hours: the history is too short to tell them apart.",
    }
    weights = (
        "all count alike" if math.isinf(half_life_weeks) else f"{half_life_weeks:g} weeks older counts half"
    )
    notes = [found[period], f"Weighted {what}: {weights}."]
    notes.append(f"Hours are those of {zone}." if zone else "Times have no zone: hours are taken as written.")
    if n_unknown:
        notes.append(
            f"{n_unknown:,} of {len(history):,} bins are unknown and were left out, not counted as 0."
        )
    if n_out:
        notes.append(f"{n_out:,} bins lie in outages and were left out.")
    if not seen.all():
        notes.append(
            f"{int((seen == 0).sum())} hours of the {period} were never seen: their value is unknown."
        )
    if quantile is not None:
        fewest = fewest_seen(quantile)
        rarely = int(((seen > 0) & (seen < fewest)).sum())
        if rarely:
            notes.append(
                f"A quantile of {100 * quantile:g} % needs {fewest} values; {rarely} hours of the {period} have "
                "fewer, so that theirs is not as safe as it sounds."
            )
    return notes


def fewest_seen(quantile: float) -> int:
    """Values that a quantile must rest on to have any above or below it: 10 for 0.9."""
    return math.ceil(1 / min(quantile, 1 - quantile) - 1e-9)
