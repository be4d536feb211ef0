"""What teams had, were owed and are entitled to, over time: exact sums of hours per bin."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from gpuplan.fairshare.charts.clock import Clock
from gpuplan.fairshare.charts.colours import Palette
from gpuplan.fairshare.hours import kinds_of
from gpuplan.fairshare.model import HOUR, Floats, Int64
from gpuplan.fairshare.ratios import ratios_over
from gpuplan.gantt import Columns

if TYPE_CHECKING:
    from gpuplan.fairshare.run import Run

#: Hours of a bin, as people divide days and weeks.
_HOURS = (1, 2, 3, 4, 6, 8, 12, 24, 48, 96, 168)

#: Up to so many changes of budgets each has a label.
_LABELS = 4


@dataclass(frozen=True, slots=True)
class Account:
    """GPU-seconds per group of teams and bin of time.

    Attributes
    ----------
    edges : int64[B + 1]
        Seconds; the last bin may be shorter.
    allocated, unallocated : int64[G, B]
        Work that ran, with and without a declared minimum run time.
    owed : float64[G, B]
        Sum over teams and hours of the lower of the entitlement and what ran or waited.
    entitled : float64[G]
        GPUs (the mean over the run where budgets change).
    """

    edges: Int64
    allocated: Int64
    unallocated: Int64
    owed: Floats
    entitled: Floats

    @property
    def length_s(self) -> Int64:
        """Seconds of each bin."""
        found: Int64 = np.diff(self.edges)
        return found


def account(run: "Run", palette: Palette, most: int) -> Account:
    """The account of a run in at most `most` bins of whole hours."""
    hours, problem = run.hours, run.problem
    tree, epochs = problem.tree, problem.epochs
    entitled = problem.gpus * epochs.mean_shares(run.end_s)[tree.leaves]
    groups = len(palette)
    by_group: Floats = np.zeros((groups, len(entitled)))
    by_group[palette.group, np.arange(len(entitled))] = 1
    n = len(hours.length_s)
    if n == 0:
        nothing = np.zeros((groups, 1), np.int64)
        return Account(np.array([0, HOUR]), nothing, nothing, np.zeros((groups, 1)), by_group @ entitled)
    each = next((length for length in _HOURS if n <= length * most), -(-n // most))
    first = np.arange(0, n, each)
    kind, seconds = kinds_of(epochs, hours.start_s, hours.length_s)
    shares = np.stack([then.share[tree.leaves] for then in epochs.trees], axis=1)
    held = np.zeros((len(epochs), len(seconds)))
    for column, those in enumerate(seconds):
        held[list(those), column] = list(those.values())
    claims: Floats = (problem.gpus * shares) @ held
    owed: Floats = np.minimum(claims[:, kind], hours.wanted)

    def binned(amounts: Int64) -> Int64:
        return np.add.reduceat(_grouped(amounts, palette), first, axis=1)

    edges = np.append(hours.start_s[first], run.raw.end_s)
    return Account(
        edges,
        binned(hours.allocated),
        binned(hours.unallocated),
        by_group @ np.add.reduceat(owed, first, axis=1),
        by_group @ entitled,
    )


def _grouped(amounts: Int64, palette: Palette) -> Int64:
    """Rows of teams added up by group."""
    if len(palette) == len(amounts):
        return amounts
    found = np.zeros((len(palette), amounts.shape[1]), np.int64)
    np.add.at(found, palette.group, amounts)
    return found


def account_columns(found: Account, clock: Clock, digits: int = 2) -> Columns:
    """Wide columns, a row per bin and one more that ends the steps: GPUs on average.

    ``x, x2``; per group ``a`` (allocated), ``b`` (allocated and unallocated), ``o`` (owed), each with its number.
    """
    columns: Columns = {
        "x": clock.of(found.edges),
        "x2": clock.of(np.append(found.edges[1:], found.edges[-1])),
    }
    both = found.allocated + found.unallocated
    for letter, amounts in (("a", found.allocated), ("b", both), ("o", found.owed)):
        mean = np.round(amounts / found.length_s, digits)
        closed = np.concatenate((mean, mean[:, -1:]), axis=1)
        for g, row in enumerate(closed.tolist()):
            columns[f"{letter}{g}"] = row
    return columns


def stack_columns(found: Account, clock: Clock, digits: int = 1) -> Columns:
    """Wide columns of stacked occupancy: ``c`` and a number is the top of a group's allocated work.

    Allocated work of all groups stands below, unallocated work (``u`` and a number) above it.
    """
    columns: Columns = {
        "x": clock.of(found.edges),
        "x2": clock.of(np.append(found.edges[1:], found.edges[-1])),
    }
    tops = np.cumsum(np.concatenate((found.allocated, found.unallocated)), axis=0) / found.length_s
    closed = np.round(np.concatenate((tops, tops[:, -1:]), axis=1), digits)
    groups = len(found.allocated)
    for g, row in enumerate(closed.tolist()):
        columns[f"c{g}" if g < groups else f"u{g - groups}"] = row
    return columns


def changes_of(run: "Run") -> Int64:
    """Instants at which budgets change in the run, seconds."""
    found = run.problem.epochs.start_s[1:]
    return found[found < run.end_s]


def change_columns(run: "Run", clock: Clock) -> Columns:
    """A row per change of the budgets: when, a label (of the first where there are many), what it says."""
    instants = changes_of(run)
    n = len(instants)
    labels = ["new budgets"] * n if n <= _LABELS else [f"{n} changes of budgets", *[""] * (n - 1)]
    says = [f"budgets change after {value:g} {clock.unit}" for value in clock.of(instants)]
    return {"x": clock.of(instants), "label": labels, "says": says}


def entitled_columns(run: "Run", palette: Palette, clock: Clock) -> Columns:
    """Wide columns of steps: ``e`` and the number of a group, GPUs to which it is entitled from each change on."""
    epochs, tree = run.problem.epochs, run.problem.tree
    n = len(changes_of(run)) + 1
    steps = np.zeros((len(palette), n))
    shares = np.stack([then.share[tree.leaves] for then in epochs.trees[:n]], axis=1)
    np.add.at(steps, palette.group, run.problem.gpus * shares)
    columns: Columns = {"x": clock.of(np.append(epochs.start_s[:n], run.end_s))}
    closed = np.round(np.concatenate((steps, steps[:, -1:]), axis=1), 3)
    for g, row in enumerate(closed.tolist()):
        columns[f"e{g}"] = row
    return columns


def ratio_columns(run: "Run", palette: Palette, edges: Int64, clock: Clock) -> Columns:
    """Wide columns of the number that sorts the queue, at the edges of bins: ``r`` and the number of a group.

    A group of several teams has none, nor has a team whose share is 0 (missing). Where budgets change within the edges
    a row just before and one at the change make the step.
    """
    tree = run.problem.tree
    instants = changes_of(run)
    edges = np.union1d(edges, np.concatenate((instants - 1, instants))) if len(instants) else edges
    found = ratios_over(run, edges)[tree.leaves]
    columns: Columns = {"x": clock.of(edges), "x2": clock.of(np.append(edges[1:], edges[-1]))}
    for g, members in enumerate(palette.members):
        row = (
            found[int(np.flatnonzero(palette.group == g)[0])] if members == 1 else np.full(len(edges), np.inf)
        )
        columns[f"r{g}"] = [value if value < np.inf else None for value in np.round(row, 3).tolist()]
    return columns
