"""What a plan shows before it comes: hours without slack, and windows in which GPUs stand idle."""

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from gpuplan.allocation.problem import Int64, Words, compile_problem
from gpuplan.inputs.errors import InputError, Mistake

if TYPE_CHECKING:
    import pandas as pd

    from gpuplan.allocation.plan import Plan
    from gpuplan.allocation.rolling_run import RollingRun

Grid = npt.NDArray[np.integer]

#: Idle windows of fewer GPU-hours are not listed.
LEAST_GPU_HOURS = 2.0

#: So many windows are listed at most.
MOST_WINDOWS = 200


def coverage_risk(plan: "Plan", margin: float = 0.0) -> "pd.DataFrame":
    """Steps of a plan with the slack that real-time apps have in them.

    Parameters
    ----------
    plan
    margin
        How much higher than expected traffic may come: 0.2 for 20 %.

    Returns
    -------
    DataFrame
        ``step, hour, demand, held, free, slack, missing, risk``: GPUs that all apps want (with the margin,
        rounded up for each app), that they hold, that nobody holds. Every app takes what it lacks from the free
        ones; ``missing`` is what is then missing, ``slack`` by how much any one app could want more before
        something is (what is still free, and the least that an app holds idle). ``risk`` is "short" where GPUs
        are missing, "no slack" where no app could want one more, else "none". That caps may forbid to take free
        GPUs at once is not counted.

    Raises
    ------
    InputError
        For a margin that is not a number from 0 to 10.
    """
    return risk_table(plan.grid, plan.demand, plan.held, plan.scenario.horizon.step_hours, margin)


def risk_table(
    grid: Grid, demand: Int64, held: Int64, step_hours: float, margin: float = 0.0, first_step: int = 0
) -> "pd.DataFrame":
    """The table of `coverage_risk` from arrays: int[G, T] (-1: free), int64[R, T] twice."""
    import pandas as pd

    if not isinstance(margin, (int, float)) or isinstance(margin, bool) or not 0 <= margin <= 10:
        raise InputError("lookahead", [Mistake("margin", "must be a number from 0 to 10", margin)])
    wanted = np.ceil(demand * (1 + margin) - 1e-9).astype(np.int64)
    free = (grid == -1).sum(axis=0)
    lacking = np.maximum(0, wanted - held).sum(axis=0)
    missing = np.maximum(0, lacking - free)
    # what an app holds idle helps that app alone: the slack is that of the one that holds least
    idle = np.where(wanted > 0, np.maximum(0, held - wanted), np.iinfo(np.int64).max)
    least = idle.min(axis=0, initial=np.iinfo(np.int64).max)
    least = np.where(least == np.iinfo(np.int64).max, 0, least)
    slack = np.where(missing > 0, 0, free - lacking + least)
    step = np.arange(demand.shape[1]) + first_step
    risk = np.where(
        missing > 0, "short", np.where((slack == 0) & (wanted.sum(axis=0) > 0), "no slack", "none")
    )
    return pd.DataFrame(
        {
            "step": step,
            "hour": step * step_hours,
            "demand": wanted.sum(axis=0),
            "held": held.sum(axis=0),
            "free": free,
            "slack": slack,
            "missing": missing,
            "risk": risk,
        }
    )


def idle_windows(plan: "Plan", least_gpu_hours: float = LEAST_GPU_HOURS) -> "pd.DataFrame":
    """Windows in which a block stands idle: when, how long, how large.

    The window of most GPU-hours first, then the largest in what is left, and so on: no cell is in two windows.
    Blocks are legal ones: powers of two, contiguous, under the node rule.

    Parameters
    ----------
    plan
    least_gpu_hours
        Smaller windows are not listed.

    Returns
    -------
    DataFrame
        ``start_step, end_step`` (exclusive), ``start_hour, hours, gpus, first_gpu, gpu_hours``, by start.

    Raises
    ------
    InputError
        For an amount that is not a number of at least 0.
    """
    problem = compile_problem(plan.scenario)
    return windows_table(plan.grid, problem.allowed, plan.scenario.horizon.step_hours, least_gpu_hours)


def windows_table(
    grid: Grid,
    allowed: Words,
    step_hours: float,
    least_gpu_hours: float = LEAST_GPU_HOURS,
    first_step: int = 0,
) -> "pd.DataFrame":
    """The table of `idle_windows` from arrays: int[G, T] (-1: free), first GPUs of blocks as in a `Problem`."""
    import pandas as pd

    number = isinstance(least_gpu_hours, (int, float)) and not isinstance(least_gpu_hours, bool)
    if not number or not least_gpu_hours >= 0:
        rule = "must be a number of at least 0"
        raise InputError("lookahead", [Mistake("least_gpu_hours", rule, least_gpu_hours)])
    free = grid == -1
    bits = np.unpackbits(
        np.ascontiguousarray(allowed).astype("<u8", copy=False).view(np.uint8), axis=1, bitorder="little"
    ).astype(bool)
    least_cells = max(1, int(np.ceil(least_gpu_hours / step_hours - 1e-9)))
    rows: list[tuple[int, int, int, int, int]] = []
    while len(rows) < MOST_WINDOWS:
        best = _largest(free, bits)
        if best is None or best[0] < least_cells:
            break
        cells, n, first, start, end = best
        free[first : first + n, start:end] = False
        rows.append((start, end, n, first, cells))
    rows.sort(key=lambda row: (row[0], row[3]))
    table = np.array(rows, np.int64).reshape(-1, 5)
    begins, ends, sizes, lowest, areas = table.T
    return pd.DataFrame(
        {
            "start_step": begins + first_step,
            "end_step": ends + first_step,
            "start_hour": (begins + first_step) * step_hours,
            "hours": (ends - begins) * step_hours,
            "gpus": sizes,
            "first_gpu": lowest,
            "gpu_hours": areas * step_hours,
        }
    )


def _largest(
    free: npt.NDArray[np.bool_], allowed: npt.NDArray[np.bool_]
) -> tuple[int, int, int, int, int] | None:
    """The free legal block of most cells: cells, GPUs, first GPU, first step, step after the last.

    Of equal ones the larger block, then the earlier, then the lower.
    """
    gpus, steps = free.shape
    below = np.zeros((gpus + 1, steps), np.int64)
    np.cumsum(free, axis=0, out=below[1:])
    best: Any = None
    for c in range(len(allowed)):
        n = 1 << c
        if n > gpus:
            break
        whole = (below[n:] - below[:-n] == n) & allowed[c, : gpus - n + 1, None]
        if not whole.any():
            break  # no larger block is free either
        run = np.zeros(len(whole), np.int64)
        longest, end = np.zeros(len(whole), np.int64), np.zeros(len(whole), np.int64)
        for step in range(steps):
            run = np.where(whole[:, step], run + 1, 0)
            longer = run > longest
            longest, end = np.where(longer, run, longest), np.where(longer, step + 1, end)
        most = int(longest.max())
        rows = np.flatnonzero(longest == most)
        start = end[rows] - most
        pick = rows[np.lexsort((rows, start))[0]]
        found = (most * n, n, -int(end[pick] - most), -int(pick))
        if best is None or found > best:
            best = found
    if best is None:
        return None
    cells, n, start, first = best
    return cells, n, -first, -start, -start + cells // n


def outlook(run: "RollingRun", number: int, margin: float = 0.0) -> tuple["pd.DataFrame", "pd.DataFrame"]:
    """Coverage risk and idle windows of a plan of a run, with steps counted from the first day.

    Parameters
    ----------
    run
    number
        Which plan, from 0.
    margin
        As in `coverage_risk`.
    """
    promise = run.promises[number]
    days = run.days
    grid = run.grid_of(promise)
    expected = days.forecast[:, promise.step : promise.step + days.horizon]
    held = np.bitwise_count(promise.hold).sum(axis=2, dtype=np.int64)
    hours = days.span.horizon.step_hours
    allowed = compile_problem(days.span).allowed
    return (
        risk_table(grid, expected, held, hours, margin, promise.step),
        windows_table(grid, allowed, hours, first_step=promise.step),
    )
