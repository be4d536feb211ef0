"""What each figure of a run means, in one place: names, units, definitions, and the numbers.

Amounts are added up as whole GPU-seconds and divided once.
"""

import math
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from gpuplan.fairshare.hours import by_team, kinds_of
from gpuplan.fairshare.ledger import (
    S_FINISHED,
    S_SET_ASIDE,
    S_WAITING,
    Ledger,
    gpu_seconds,
    ledger,
    occupied,
)
from gpuplan.fairshare.model import HOUR, NEVER, Bools, Int64
from gpuplan.fairshare.raw import PREEMPTED, SHUT_DOWN
from gpuplan.percentiles import percentiles

if TYPE_CHECKING:
    from gpuplan.fairshare.problem import Problem
    from gpuplan.fairshare.raw import RawRun

Figures = dict[str, float | int | None]

#: Slowdown of work shorter than this counts as if it took this long, seconds.
SLOWDOWN_BOUND_S = 10

#: A team counts as served from this part of what it was owed on (the published figure's line).
SERVED = 0.95

#: Cells of the hourly tables that are held at once.
_CELLS = 1 << 22

#: Unit and definition of each figure, in the order in which figures are listed.
_DEFINED = {
    "mean_wait_s": (
        "seconds",
        "Mean of first start minus submission; a job that never started counts with its wait so far, "
        "one that was set aside does not count.",
    ),
    "wait_p50_s": ("seconds", "Half of the waits are at most this long."),
    "wait_p90_s": ("seconds", "Nine in ten waits are at most this long."),
    "wait_p99_s": ("seconds", "99 in 100 waits are at most this long."),
    "waits_are_lower_bounds": ("jobs", "Jobs that never started: their waits had not ended with the run."),
    "debug_wait_p50_s": (
        "seconds",
        "Half of the debug jobs (few GPUs, a minimum run time of 15 min or less) wait at most this long.",
    ),
    "debug_wait_p90_s": ("seconds", "Nine in ten debug jobs wait at most this long."),
    "debug_wait_p99_s": ("seconds", "99 in 100 debug jobs wait at most this long."),
    "largest_wait_p50_s": (
        "seconds",
        "Half of the jobs of the largest size class (up to the next power of two) wait at most this long.",
    ),
    "largest_wait_p90_s": ("seconds", "Nine in ten jobs of the largest size class wait at most this long."),
    "makespan_s": ("seconds", "Last end minus first submission."),
    "mean_bounded_slowdown": (
        "ratio",
        "Mean of max(1, time from submission to end / max(run time, 10 s)); work that has not ended counts so far.",
    ),
    "availability": ("share of installed GPU-time", "GPU-time outside repairs / installed GPU-time."),
    "occupancy": (
        "share of available GPU-time",
        "GPU-time assigned to jobs / GPU-time available.",
    ),
    "goodput": (
        "share of available GPU-time",
        "GPU-time assigned, minus lost (all restarts included), minus held by no-op jobs, / available.",
    ),
    "impact": (
        "share of assigned GPU-time",
        "Sum over hours and teams of the lower of delivered and owed, / GPU-time assigned.",
    ),
    "delivered_share": (
        "share of owed GPU-hours",
        "Sum over teams of the lower of delivered and owed over the whole run / sum of owed; owed in an hour is "
        "the lower of the entitlement and the hourly mean of running and waiting work with a minimum run time.",
    ),
    "delivered_worst_team": (
        "share of owed GPU-hours",
        "The lowest delivered / owed of a team over the whole run, not capped.",
    ),
    "teams_served": ("teams", "Teams with delivered / owed of 95 % or more (or nothing owed)."),
    "jain": (
        "index",
        "Jain's index of delivered / owed over the teams that were owed anything: 1 where all are treated alike.",
    ),
    "unallocated_share": (
        "share of assigned GPU-time",
        "GPU-time of stretches that were charged to no budget / GPU-time assigned.",
    ),
    "outstanding": (
        "times the installed GPUs",
        "Mean over time of the GPUs of running and waiting jobs / installed GPUs.",
    ),
    "preemptions": ("preemptions", "Stretches that were ended to let other work start."),
    "shut_downs_by_hand": ("shut-downs", "Stretches that a person ended so that a host could be repaired."),
    "lost_gpu_hours": (
        "GPU-hours",
        "GPU-time whose work did not outlive its stretch, restarts included.",
    ),
    "lost_share": ("share of assigned GPU-time", "Lost GPU-time / GPU-time assigned."),
    "idle_gpu_hours": ("GPU-hours", "GPU-time that no-op jobs held for nothing (squatting)."),
    "jobs_submitted": ("jobs", "Jobs submitted before the end: finished + outstanding + set aside."),
    "jobs_started": ("jobs", "Jobs that started at least once."),
    "jobs_finished": ("jobs", "Jobs that finished."),
    "jobs_outstanding": ("jobs", "Jobs that run or wait when the run ends."),
    "jobs_set_aside": ("jobs", "Jobs that can never run here; they are in no wait."),
}

#: Unit of each figure.
UNITS = {name: unit for name, (unit, _) in _DEFINED.items()}

#: What each figure is, as a sentence.
MEANINGS = {name: meaning for name, (_, meaning) in _DEFINED.items()}

#: The quantiles of waits: p50, p90, p99.
QUANTILES = (0.5, 0.9, 0.99)


def size_class(gpus: Int64) -> Int64:
    """The next power of two, int64[J]: 1, 2, 4 (3 to 4), 8 (5 to 8)..."""
    powers = np.left_shift(np.int64(1), np.arange(62, dtype=np.int64))
    return powers[np.searchsorted(powers, gpus)]


class Owed:
    """What each team was owed and got over the whole run, exact.

    Work counts where its declared minimum run time is above 0, under every policy, so that worlds
    with and without budgets compare. The entitlement of an hour in which budgets change is its mean over the hour.

    Attributes
    ----------
    owed, delivered : list
        GPU-seconds of each team (fractions, whole numbers).
    served : Fraction
        GPU-seconds, over hours and teams, of the lower of delivered and owed.
    """

    def __init__(self, problem: "Problem", raw: "RawRun", books: Ledger) -> None:
        self.owed: list[Fraction] = []
        self.delivered: list[int] = []
        self.served = Fraction(0)
        tree, n = problem.tree, len(problem.tree.leaves)
        kinds: tuple[Int64, list[dict[int, int]]] | None = None
        at_once = max(1, _CELLS // (-(-raw.end_s // HOUR) + 1))
        for begin in range(0, n, at_once):
            teams = range(begin, min(n, begin + at_once))
            hours = by_team(problem, raw, books, teams=teams)
            kinds = kinds or kinds_of(problem.epochs, hours.start_s, hours.length_s)
            for row, team in enumerate(teams):
                leaf = int(tree.leaves[team])
                shares = [problem.gpus * then.exact[leaf] for then in problem.epochs.trees]
                entitled = [
                    sum((shares[k] * n for k, n in seconds.items()), Fraction(0)) for seconds in kinds[1]
                ]
                owed, served = _owed(entitled, kinds[0], hours.wanted[row], hours.allocated[row])
                self.owed.append(owed)
                self.delivered.append(int(hours.allocated[row].sum()))
                self.served += served

    @property
    def ratios(self) -> list[float | None]:
        """Delivered / owed of each team; None where nothing was owed."""
        pairs = zip(self.delivered, self.owed, strict=True)
        return [float(delivered / owed) if owed else None for delivered, owed in pairs]


def _owed(
    entitled: list[Fraction], kind: Int64, wanted: Int64, delivered: Int64
) -> tuple[Fraction, Fraction]:
    """GPU-seconds owed, and of them delivered hour by hour, exact; ``entitled``: of an hour of each kind."""
    # whole numbers rounded down: n <= x exactly where n <= floor(x)
    cap = np.array([math.floor(amount) for amount in entitled], np.int64)[kind]

    def lower(amount: Int64) -> Fraction:
        below = amount <= cap
        above = np.bincount(kind[~below], minlength=len(entitled)).tolist()
        capped = sum((n * most for n, most in zip(above, entitled, strict=True) if n), Fraction(0))
        return int(amount[below].sum()) + capped

    # what was delivered was wanted: min(delivered, entitlement, wanted) = min(delivered, entitlement)
    return lower(wanted), lower(delivered)


def repaired_gpu_seconds(problem: "Problem", raw: "RawRun") -> int:
    """GPU-seconds of nodes in repair, before the end of the run (a node twice in repair counts once)."""
    total = 0
    spans: dict[int, list[tuple[int, int]]] = {}
    for k, drain in enumerate(problem.scenario.drains):
        start, end = int(raw.repair_start_s[k]), int(raw.repair_end_s[k])
        if start < NEVER:
            spans.setdefault(drain.node, []).append((start, min(end, raw.end_s)))
    for node, repairs in spans.items():
        reached = 0
        for start, end in sorted(repairs):
            total += int(problem.node_gpus[node]) * max(0, end - max(start, reached))
            reached = max(reached, end)
    return total


def figures(
    problem: "Problem", raw: "RawRun", books: Ledger | None = None, owed: Owed | None = None
) -> Figures:
    """All figures of a run; names, units and meanings as in `UNITS` and `MEANINGS`.

    Parameters
    ----------
    problem, raw
        The scenario as arrays, and what a policy did.
    books, owed
        Taken from them where they are not given.

    Returns
    -------
    dict
        None stands where there is nothing to measure (no such jobs, no time).
    """
    books = ledger(problem, raw) if books is None else books
    owed = Owed(problem, raw, books) if owed is None else owed
    jobs, stretches = problem.jobs, raw.stretches
    counted = books.counted
    waits = books.wait_s[counted]
    sizes = size_class(jobs.gpus)
    found: Figures = dict.fromkeys(UNITS)
    found["mean_wait_s"] = int(waits.sum()) / len(waits) if len(waits) else None
    found["waits_are_lower_bounds"] = int(books.waits_on.sum())
    largest = sizes == sizes[counted].max(initial=0)
    for name, which in (
        ("wait", counted),
        ("debug_wait", counted & jobs.debug),
        ("largest_wait", counted & largest),
    ):
        for q, value in zip(QUANTILES, percentiles(books.wait_s[which], QUANTILES), strict=True):
            key = f"{name}_p{q * 100:.0f}_s"
            if key in found:
                found[key] = value
    if len(stretches):
        found["makespan_s"] = int(stretches.end_s.max()) - int(jobs.submit_s[counted].min())
    if len(waits):
        whole = books.gone_s[counted] - jobs.submit_s[counted]
        slowdown = whole / np.maximum(jobs.run_s[counted], SLOWDOWN_BOUND_S)
        above = slowdown[slowdown > 1.0]  # all others count as 1
        found["mean_bounded_slowdown"] = (math.fsum(above.tolist()) + len(waits) - len(above)) / len(waits)
    found.update(_of_time(problem, raw, books, owed))
    found.update(_of_teams(owed))
    found["preemptions"] = int((stretches.outcome == PREEMPTED).sum())
    found["shut_downs_by_hand"] = int((stretches.outcome == SHUT_DOWN).sum())
    found["jobs_set_aside"] = int((books.state == S_SET_ASIDE).sum())
    found["jobs_submitted"] = int((books.state <= S_SET_ASIDE).sum())
    found["jobs_started"] = int((books.first_start_s >= 0).sum())
    found["jobs_finished"] = int((books.state == S_FINISHED).sum())
    found["jobs_outstanding"] = int(((books.state > S_FINISHED) & (books.state <= S_WAITING)).sum())
    return found


def _of_time(problem: "Problem", raw: "RawRun", books: Ledger, owed: Owed) -> Figures:
    """Figures that are shares of GPU-time, and GPU-hours."""
    jobs, stretches = problem.jobs, raw.stretches
    installed = problem.gpus * raw.end_s
    available = installed - repaired_gpu_seconds(problem, raw)
    held = occupied(problem, raw, books)
    assigned, lost = held["occupied"], held["lost"]
    # a no-op job idles first and works then
    idle = gpu_seconds(jobs.gpus, np.minimum(jobs.idle_s, books.kept_s))
    charged: Bools = stretches.allocated
    free = gpu_seconds(
        jobs.gpus[stretches.job[~charged]], stretches.end_s[~charged] - stretches.start_s[~charged]
    )
    stock = gpu_seconds(jobs.gpus[books.counted], books.gone_s[books.counted] - jobs.submit_s[books.counted])
    return {
        "availability": _ratio(available, installed),
        "occupancy": _ratio(assigned, available),
        "goodput": _ratio(assigned - lost - idle, available),
        "impact": _ratio(owed.served, assigned),
        "unallocated_share": _ratio(free, assigned),
        "outstanding": _ratio(stock, installed),
        "lost_gpu_hours": lost / HOUR,
        "lost_share": _ratio(lost, assigned),
        "idle_gpu_hours": idle / HOUR,
    }


def _of_teams(owed: Owed) -> Figures:
    """Figures of delivered against owed."""
    ratios = owed.ratios
    known = [ratio for ratio in ratios if ratio is not None]
    total = sum(owed.owed, Fraction(0))
    got = sum((min(Fraction(d), o) for d, o in zip(owed.delivered, owed.owed, strict=True)), Fraction(0))
    squares = math.fsum(ratio * ratio for ratio in known)
    return {
        "delivered_share": float(got / total) if total else 1.0,
        "delivered_worst_team": min(known, default=1.0),
        "teams_served": sum(ratio is None or ratio >= SERVED for ratio in ratios),
        "jain": math.fsum(known) ** 2 / (len(known) * squares) if squares else 1.0,
    }


def _ratio(part: int | Fraction, whole: int | Fraction) -> float | None:
    return float(Fraction(part) / Fraction(whole)) if whole else None
