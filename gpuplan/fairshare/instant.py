"""A run at an instant: what runs, waits and is free, and what each team's share is then."""

from typing import TYPE_CHECKING

import numpy as np

from gpuplan.fairshare.ledger import S_SET_ASIDE
from gpuplan.fairshare.model import Bools, Int64
from gpuplan.fairshare.raw import FINISHED, RUNNING
from gpuplan.fairshare.shares import partition, share_out, whole_gpus

if TYPE_CHECKING:
    import pandas as pd

    from gpuplan.fairshare.run import Run


class Instant:
    """What runs, waits and is free at an instant, after everything that happened at it.

    Attributes
    ----------
    running : int64[R]
        Stretches that run.
    runs, waits : bool[J]
        Jobs that run; jobs that were submitted, do not run and are not done.
    closed : bool[N]
        Nodes that drain or are repaired.
    free : int64[N]
        Free GPUs of nodes that take work.
    """

    def __init__(self, run: "Run", t: int) -> None:
        self.run, self.t = run, t
        problem, rows = run.problem, run.stretches
        n = len(problem.jobs)
        last = int(np.searchsorted(rows.start_s, t, "right"))
        here = (rows.end_s[:last] > t) | ((rows.end_s[:last] == run.end_s) & (rows.outcome[:last] == RUNNING))
        self.running: Int64 = np.flatnonzero(here)
        self.runs: Bools = np.zeros(n, bool)
        self.runs[rows.job[self.running]] = True
        over = np.flatnonzero((rows.end_s <= t) & (rows.outcome == FINISHED))
        done = np.zeros(n, bool)
        done[rows.job[over]] = True
        submitted = problem.jobs.submit_s <= t
        self.waits: Bools = submitted & ~self.runs & ~done & (run.ledger.state != S_SET_ASIDE)
        self.closed: Bools = np.zeros(len(problem.node_gpus), bool)
        for k, drain in enumerate(run.scenario.drains):
            if drain.from_s <= t < int(run.raw.repair_end_s[k]):
                self.closed[drain.node] = True
        used = np.zeros(len(problem.node_gpus), np.int64)
        on = np.isin(rows.place_stretch, self.running)
        np.add.at(used, rows.place_node[on], rows.place_gpus[on])
        self.free: Int64 = np.where(self.closed, 0, problem.node_gpus - used)

    def order(self, of: Int64) -> Int64:
        """Waiting jobs in the order of a leaf: declared priority, submission, id."""
        return of[np.lexsort((of, -self.run.problem.jobs.priority[of]))]


def shares_at(run: "Run", t: int) -> "pd.DataFrame":
    """A row per team: nominal and present shares in GPUs, GPUs wanted (running and waiting) and running."""
    import pandas as pd

    now, problem = Instant(run, t), run.problem
    tree, team, gpus, n = problem.epochs.at(t), problem.team, problem.jobs.gpus, len(problem.tree.leaves)
    running, wanted = np.zeros(n, np.int64), np.zeros(n, np.int64)
    np.add.at(running, team[now.runs], gpus[now.runs])
    asks = now.runs | now.waits
    np.add.at(wanted, team[asks], gpus[asks])
    demand = dict(zip(tree.teams, wanted.tolist(), strict=True))
    exact = share_out(problem.epochs.budgets[int(problem.epochs.index(t))], demand, problem.gpus)
    whole = whole_gpus(exact)
    return pd.DataFrame(
        {
            "team": list(tree.teams),
            "share": tree.share[tree.leaves],
            "nominal_gpus": partition(tree, problem.gpus),
            "wanted_gpus": wanted,
            "running_gpus": running,
            "now_exact_gpus": [float(exact[path]) for path in tree.teams],
            "now_gpus": [whole[path] for path in tree.teams],
        }
    )
