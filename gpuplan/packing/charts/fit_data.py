"""The data of what still fits: unreserved memory over time, and what models need."""

from typing import TYPE_CHECKING

import numpy as np

from gpuplan.gantt import Columns, safe_text
from gpuplan.packing.charts import heads
from gpuplan.packing.charts.clock import Clock, bin_of, edges_of
from gpuplan.packing.model import GIB, Floats, Int64
from gpuplan.packing.progress import distinct

if TYPE_CHECKING:
    from gpuplan.packing.problem import Problem
    from gpuplan.packing.run import PackRun

#: Changes that are drawn singly, and bins of time beyond them.
EXACT, BINS = 300, 240

#: Pixels between two names.
_NAME_GAP_PX = 13


def free_columns(
    run: "PackRun", clock: Clock, exact: int = EXACT, bin_us: int | None = None
) -> tuple[Columns, int]:
    """Columns over time, GiB, and the length of bins (0: every change, where they are at most `exact`).

    ``x, x2``, and the levels of `free_levels`; two rows per stretch, with straight lines between them.
    """
    time_us, levels, bin_us = free_levels(run, exact, bin_us)
    x = clock.of(np.stack([time_us[:-1], time_us[1:]], 1).ravel())
    columns: Columns = {"x": x, "x2": [*x[1:], x[-1]]}
    for name, found in levels.items():
        columns[name] = np.round(np.repeat(found, 2) / GIB, 3).tolist()
    return columns, bin_us


def free_levels(run: "PackRun", exact: int, bin_us: int | None) -> tuple[Int64, dict[str, Floats], int]:
    """Unreserved memory over time: instants (the end of the run last), bytes from each to the next, length of bins.

    ``free`` (the largest of one GPU), ``low, high`` (least and most of it in a bin), ``usable`` and ``all``: of the
    whole node, what fits a model drawn by popularity, and all. ``free2``: what two GPUs have each, and so on for every
    number of GPUs that a model has.
    """
    memory = run.memory
    when, free = memory.free_over_time()
    end_us = max(1, run.raw.end_us)
    each = np.maximum(np.array(free), 0).astype(float)
    largest, total = each.max(axis=0), each.sum(axis=0)
    usable = total - sum(memory.fragments(of_gpu) for of_gpu in free)
    ordered = -np.sort(-each, axis=0)
    several = {f"free{k}": ordered[k - 1] for k in spreads_of(run.problem)}
    if len(when) <= exact:
        levels = {"free": largest, "low": largest, "high": largest, "usable": usable, "all": total} | several
        return np.append(when, end_us), levels, 0
    bin_us = bin_of(end_us, BINS) if bin_us is None else bin_us
    edges = edges_of(end_us, bin_us)
    mean, low, high = _binned(when, largest, edges)
    usable, total = (_binned(when, level, edges)[0] for level in (usable, total))
    several = {name: _binned(when, level, edges)[0] for name, level in several.items()}
    levels = {"free": mean, "low": low, "high": high, "usable": usable, "all": total} | several
    return edges, levels, bin_us


def spreads_of(problem: "Problem") -> list[int]:
    """Numbers of GPUs over which models are spread, beyond one."""
    found: list[int] = np.unique(problem.spread[problem.spread > 1]).tolist()
    return found


def _binned(when: Int64, level: Floats, edges: Int64) -> tuple[Floats, Floats, Floats]:
    """Mean, least and most over bins of a level that holds from instants on (0 first)."""
    t = distinct(np.concatenate([when, edges[:-1]]))
    values = level[np.searchsorted(when, t, "right") - 1]
    at = np.searchsorted(t, edges[:-1])
    length = np.diff(np.append(t, edges[-1]))
    mean = np.add.reduceat(values * length, at) / np.diff(edges)
    return mean, np.minimum.reduceat(values, at), np.maximum.reduceat(values, at)


def need_columns(problem: "Problem", height: int) -> Columns:
    """What the scheduler reserves for each model: ``need`` (GiB), ``label``, ``at`` (GiB: where its name stands).

    Models of equal needs share a rule; names keep clear of each other. Where models are spread over several GPUs,
    ``over`` is the number of them, and the need that of each.
    """
    needs, wide = problem.needed / GIB, heads.has_wide(problem.scenario)
    top = problem.scenario.gpus.memory_bytes / GIB
    gap = _NAME_GAP_PX * top / height
    columns: Columns = {"need": [], "label": [], "at": []} | ({"over": []} if wide else {})
    pairs = np.stack((np.round(needs, 4), problem.spread), 1)
    for need, over in np.unique(pairs, axis=0)[::-1].tolist():
        mine = np.flatnonzero((pairs == (need, over)).all(axis=1)).tolist()
        name = safe_text(problem.scenario.models[mine[0]].name, 40)
        label = name if len(mine) == 1 else f"{name} and {len(mine) - 1:,} more"
        columns["need"].append(need)
        columns["label"].append(f"{label} ({need:.4g}{f' on each of {over:g}' if over > 1 else ''})")
        columns["at"].append(need)
        if wide:
            columns["over"].append(int(over))
    # names are pushed down from above, and those that would leave the panel are not written
    place = top + gap
    for k, need in enumerate(columns["need"]):
        place = min(need, place - gap)
        fits = place >= 0 and need <= top
        columns["at"][k] = round(place, 4) if fits else 0.0
        if not fits:
            columns["label"][k] = ""
    return columns


def fit_sets(
    run: "PackRun", columns: Columns, clock: Clock, side: str, height: int, span: float = 0.0
) -> dict[str, Columns]:
    """Data sets ``<side>_free``, ``<side>_needs`` and ``<side>_fit`` (the frame).

    Where models are spread over several GPUs also ``<side>_wide``, with a row per number of GPUs and instant.
    """
    gpus = run.scenario.gpus
    over = spreads_of(run.problem)
    one = {name: values for name, values in columns.items() if name not in {f"free{k}" for k in over}}
    wide = {f"{side}_wide": _wide_columns(columns, over)} if over else {}
    return {
        **wide,
        f"{side}_free": one,
        f"{side}_needs": need_columns(run.problem, height),
        f"{side}_fit": {
            "x": [0],
            "x2": [max(span, clock.of(np.array([max(1, run.raw.end_us)]))[0])],
            "cap": [round(gpus.memory_bytes / GIB, 4)],
            "node": [round(gpus.count * gpus.memory_bytes / GIB, 4)],
            "empty": [heads.empty_words(run)],
        },
    }


def _wide_columns(columns: Columns, over: list[int]) -> Columns:
    """``x, free, over, label``: what so many GPUs have each; a line has its name at its end."""
    n = len(columns["x"])
    found: Columns = {"x": [], "free": [], "over": [], "label": []}
    for k in over:
        found["x"] += columns["x"]
        found["free"] += columns[f"free{k}"]
        found["over"] += [k] * n
        found["label"] += [""] * (n - 1) + [f"{k:,} GPUs, each"]
    return found
