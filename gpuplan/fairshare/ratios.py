"""The number that sorts the queue under ``fair-share``: a budget's use of its share over a sliding window, exact."""

from typing import TYPE_CHECKING

import numpy as np

from gpuplan.fairshare.model import Floats, Int64

if TYPE_CHECKING:
    from gpuplan.fairshare.problem import Problem
    from gpuplan.fairshare.raw import RawRun
    from gpuplan.fairshare.run import Run


class Ratios:
    """Window integrals and protected time ahead of each budget, at any instants.

    ``ratio = (GPU-seconds of allocated work over the last W + GPUs x protected time still to run)
    / (share x installed GPUs x W)``, with W the window from the first instant on and the share that holds then. A
    parent's numerator is the sum of its leaves'.
    """

    def __init__(self, problem: "Problem", raw: "RawRun") -> None:
        self.problem = problem
        self.window_s = problem.scenario.window_s
        rows = raw.stretches
        mine = np.flatnonzero(rows.allocated & (rows.end_s > rows.start_s))
        leaf = problem.team[rows.job[mine]]
        gpus = problem.jobs.gpus[rows.job[mine]]
        start, end = rows.start_s[mine], rows.end_s[mine]
        protected = rows.protected_until_s[mine]
        guarded = np.minimum(protected, end)
        self._leaves = []
        for k in range(len(problem.tree.leaves)):
            its = leaf == k
            held = guarded[its] > start[its]
            self._leaves.append(
                (
                    _Sums(start[its], gpus[its], start[its]),
                    _Sums(end[its], gpus[its], end[its]),
                    _Sums(start[its][held], gpus[its][held], protected[its][held]),
                    _Sums(guarded[its][held], gpus[its][held], protected[its][held]),
                )
            )

    def of_leaves(self, times: Int64, *, before: bool = False) -> Int64:
        """Numerators of the leaves in GPU-seconds, int64[L, T].

        Parameters
        ----------
        times : int64[T]
            Instants, seconds.
        before
            As decisions at the instant begin: with what ends then, without what starts then.
        """
        found = np.empty((len(self._leaves), len(times)), np.int64)
        side = "left" if before else "right"
        back = times - self.window_s
        for k, (starts, ends, guards, freed) in enumerate(self._leaves):
            used = starts.area(times) - ends.area(times) - starts.area(back) + ends.area(back)
            # GPUs x (end of protection - t) of what started and has not ended nor outlived its protection
            g_in, p_in = guards.upto(times, side)
            g_out, p_out = freed.upto(times, "right")
            found[k] = used + (p_in - p_out) - (g_in - g_out) * times
        return found

    def of_budgets(self, times: Int64, *, before: bool = False) -> Int64:
        """Numerators of all budgets in GPU-seconds, int64[B, T]; a parent's is the sum of its leaves'."""
        tree = self.problem.tree
        found = np.zeros((len(tree.path), len(times)), np.int64)
        found[tree.leaves] = self.of_leaves(times, before=before)
        for b in range(len(tree.path) - 1, 0, -1):
            found[tree.parent[b]] += found[b]
        return found

    def at(self, times: Int64, *, before: bool = False) -> Floats:
        """Ratios of all budgets to the shares that hold then, float64[B, T]; infinite for a share of 0."""
        share = self.problem.epochs.shares(times)
        claim = share * self.problem.gpus * self.window_s
        with np.errstate(divide="ignore", invalid="ignore"):
            found = self.of_budgets(times, before=before) / claim
        found[share == 0] = np.inf
        return found


class _Sums:
    """Sums of GPUs, and of GPUs x an amount, over instants up to any time.

    Products may exceed 64 bits; they wrap, and wrap back where two of them are subtracted.
    """

    def __init__(self, at: Int64, gpus: Int64, amount: Int64) -> None:
        order = np.argsort(at, kind="stable")
        self._at = at[order]
        self._gpus = np.concatenate([[0], np.cumsum(gpus[order])])
        self._sum = np.concatenate([[0], np.cumsum(gpus[order] * amount[order])])

    def upto(self, times: Int64, side: str = "right") -> tuple[Int64, Int64]:
        """Sums over instants at or before (``"left"``: before) each time."""
        k = self._at.searchsorted(times, side)  # type: ignore[call-overload]
        return self._gpus[k], self._sum[k]

    def area(self, times: Int64) -> Int64:
        """Sum of GPUs x (time - amount) over instants up to each time."""
        gpus, sums = self.upto(times)
        return gpus * times - sums


def ratios_at(run: "Run", t: int) -> dict[str, float]:
    """Ratio of every budget at an instant, by path (``""``: the whole tree)."""
    found = Ratios(run.problem, run.raw).at(np.array([t], np.int64))[:, 0]
    return dict(zip(run.problem.tree.path, found.tolist(), strict=True))


def ratios_over(run: "Run", times: Int64) -> Floats:
    """Ratios of all budgets at instants, float64[B, T], in the tree's order."""
    return Ratios(run.problem, run.raw).at(np.asarray(times, np.int64))
