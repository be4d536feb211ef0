"""Request rates of a real LLM service as the demand of a real-time app.

Reads ``total_rate_10min.csv``: ``t_s`` (seconds after a midnight, in tens of minutes) and a column of
requests per second for each model. Source of the data: `alibaba/ServeGen`, Apache-2.0 ("ServeGen",
arXiv 2505.09999).
"""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpuplan.allocation.model import RealtimeApp
from gpuplan.inputs.account import Account
from gpuplan.inputs.errors import InputError, Mistake
from gpuplan.traces.table import read_table

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

DAY_S = 86_400

#: Width of a bin of the file, in seconds.
BIN_S = 600

ATTRIBUTION = "Data: ServeGen (Alibaba, arXiv 2505.09999), Apache-2.0."


@dataclass(frozen=True, slots=True)
class ServedDay:
    """A day of a model's traffic: the app, and the account of every row of the file."""

    app: RealtimeApp
    account: Account


def app(
    path: str | Path,
    model: str = "m-small",
    *,
    day: int,
    requests_per_s_per_gpu: float,
    step_minutes: int = 30,
    **settings: Any,
) -> ServedDay:
    """Build a real-time app from one day of a model's request rate.

    The demand of a step is its highest known rate divided by the capacity of a GPU, rounded up. A rate of
    0 is a gap in the recording, not silence: it is unknown. A step without a known rate takes the higher of
    the nearest known steps before and after it on the same day.

    Parameters
    ----------
    path
        ``total_rate_10min.csv``, or a file with the same columns.
    model
        Column of the model.
    day
        Day of the file, from 0.
    requests_per_s_per_gpu
        Capacity of one GPU, in requests per second. The trace does not say it: state your own.
    step_minutes
        Length of a step: a multiple of 10 that divides the day.
    **settings
        Further fields of `RealtimeApp`, such as ``priority`` (1 where it is left out) and ``max_swap``.

    Raises
    ------
    InputError
        If the file cannot be used, the day is not complete, or an argument is out of range.
    """
    import numpy as np
    import pandas as pd

    source = Path(path).name
    _require_arguments(requests_per_s_per_gpu, step_minutes)
    table = read_table(path, ("t_s", model))
    at_s = pd.to_numeric(table["t_s"], errors="coerce").to_numpy(np.float64)
    rate = pd.to_numeric(table[model], errors="coerce").to_numpy(np.float64)
    mine = (at_s >= day * DAY_S) & (at_s < (day + 1) * DAY_S)
    if not np.array_equal(at_s[mine], day * DAY_S + np.arange(0, DAY_S, BIN_S)):
        raise InputError(source, [Mistake("day", "must be a day with all of its 144 bins, in order", day)])
    known = np.isfinite(rate[mine]) & (rate[mine] > 0)
    if not known.any():
        raise InputError(source, [Mistake("day", "must be a day with a known rate", day)])
    peak, unknown_steps = _peaks(np.where(known, rate[mine], -1.0), step_minutes * 60 // BIN_S)
    demand = tuple(int(gpus) for gpus in np.ceil(peak / requests_per_s_per_gpu - 1e-9))
    account = Account(
        source=source,
        rows="bins",
        read=len(table),
        used=int(known.sum()),
        excluded=tuple(
            (reason, count)
            for reason, count in (
                (f"not on day {day}", int((~mine).sum())),
                ("no rate above 0: a gap in the recording, unknown", int((~known).sum())),
            )
            if count
        ),
        amounts=(
            ("steps without a known rate, filled from their neighbours", unknown_steps, "steps"),
            ("highest rate of the day", float(peak.max()), "requests/s"),
            ("highest demand", max(demand), "GPUs"),
            ("demand over the day", sum(demand) * step_minutes / 60, "GPU-hours"),
        ),
        rules=(
            f"One GPU is taken to serve {requests_per_s_per_gpu:g} requests/s; the trace does not say.",
            f"Demand of a step of {step_minutes} min: its highest known rate, rounded up to whole GPUs.",
            "The clients were sampled by the service's owners: the shape is real, the level may be scaled.",
            "The file names neither the date nor the weekday of a day.",
        ),
    )
    plain = RealtimeApp(f"servegen-{model}", 1.0, demand)
    return ServedDay(replace(plain, **settings), account)


def _require_arguments(requests_per_s_per_gpu: float, step_minutes: int) -> None:
    mistakes = []
    if not 0 < requests_per_s_per_gpu < float("inf"):
        mistakes.append(Mistake("requests_per_s_per_gpu", "must be a number above 0", requests_per_s_per_gpu))
    if step_minutes < 10 or step_minutes % 10 or 1440 % step_minutes:
        mistakes.append(
            Mistake("step_minutes", "must be a multiple of 10 that divides the day", step_minutes)
        )
    if mistakes:
        raise InputError("servegen", mistakes)


def _peaks(rate: "npt.NDArray[np.float64]", bins: int) -> tuple["npt.NDArray[np.float64]", int]:
    """Highest known rate of each step (unknown bins are negative), and how many steps had none."""
    import numpy as np

    peak = rate.reshape(-1, bins).max(axis=1)
    known = np.flatnonzero(peak > 0)
    steps = np.arange(len(peak))
    after = np.searchsorted(known, steps)
    before = np.maximum(np.searchsorted(known, steps, side="right") - 1, 0)
    nearest = (peak[known[before]], peak[known[np.minimum(after, len(known) - 1)]])
    return np.maximum(*nearest), len(peak) - len(known)
