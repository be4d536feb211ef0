"""A stated synthetic workload: weeks of jobs of the teams of a budget tree, made from a seed.

What it assumes (nobody's trace; after what is published of research clusters: heavy tails, bursts, few large jobs):

- **Teams** are of four kinds, dealt over the leaves in the tree's order by `PATTERN`: *backlogged* ones ask for 4
  times their entitlement, *moderate* ones for 1.2 times, *bursty* ones for 2 times, on three days of ten and within
  four hours of them, *idle* ones for 0.8 times, in every other week. All four are scaled to the load asked for.
- **Sizes** are powers of two (`SIZES`), at most the largest pool, and at most 8 GPUs or 4 times the team's own GPUs.
- **Durations** are log-normal: median 78 min, sigma 1.8, from 1 min to 7 days and to a quarter of the period.
- **Submissions** follow the day and the week (`HOURS`, `WEEKEND`); the period starts at midnight on a Monday.
- **Debug jobs** are `debug_share` of the jobs: 1 to 8 GPUs, log-normal around 10 min, a minimum run time of 5 to
  15 min, a limit of 15 min or more, a higher declared priority than the rest of their leaf.
- **Contracts** of the others: three of ten are unallocated (minimum 0), the rest declare 30 min to 8 h. Limits are 1
  to 3 times the run time. One in five is written without checkpoints; as its owner is rational, its minimum run time
  covers the whole limit where that is allowed (8 h; 15 min for debug jobs), and otherwise it learns to resume.

Every team has a random stream of its own, and a job its own numbers of it: a higher load appends jobs and leaves the
others as they are, so that what is dragged does not jump. The last job of a team is cut so that the work adds up.
"""

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from gpuplan.fairshare.jobs import Jobs, ordered
from gpuplan.fairshare.model import DAY, HOUR, Bools, Floats, Generate, Int64, Pool
from gpuplan.fairshare.tree import Tree

#: How much each kind of team asks for, as a multiple of its entitlement, before scaling to the load.
DEMAND = {"backlogged": 4.0, "moderate": 1.2, "bursty": 2.0, "idle": 0.8}

#: Kinds in the order in which leaves get them, again and again.
PATTERN = tuple(
    {"B": "backlogged", "M": "moderate", "U": "bursty", "I": "idle"}[letter] for letter in "BMBUBIMBBUMIBMU"
)

#: GPUs of a job that is no debug job, and how many of a hundred jobs have them.
SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256)
SIZE_SHARES = (0.26, 0.14, 0.16, 0.22, 0.09, 0.06, 0.04, 0.02, 0.01)

#: Run time of such a job, seconds: median, sigma of its logarithm, least, most.
RUN_S = (78 * 60.0, 1.8, 60.0, 7.0 * DAY)

DEBUG_SIZES = (1, 2, 4, 8)
DEBUG_SIZE_SHARES = (0.4, 0.2, 0.2, 0.2)
DEBUG_RUN_S = (600.0, 1.0, 30.0, 7200.0)

#: No job is cut below this, seconds.
LEAST_RUN_S = 30

#: Share of the jobs (other than debug) that declare no minimum run time; what the rest declares, and how often.
UNALLOCATED = 0.3
MINIMA_S = (1800, 3600, 7200, 14400, 28800)
MINIMA_SHARES = (0.2, 0.25, 0.2, 0.2, 0.15)
DEBUG_MINIMA_S = (300, 600, 900)

#: A declared limit is 1 to this many times the run time; limits of debug jobs are at least `DEBUG_LIMIT_S`.
LIMIT_FACTOR = 3.0
DEBUG_LIMIT_S = 900

#: Share of the jobs that are written to resume from a checkpoint.
RESUMABLE = 0.8

#: Submissions by hour of the day, relative to each other, and of a day of the weekend to a working day.
HOURS = (5, 4, 3, 3, 3, 3, 4, 6, 10, 16, 20, 20, 18, 18, 20, 20, 19, 17, 14, 12, 10, 9, 8, 6)
WEEKEND = 0.4

#: Share of the days on which a bursty team submits; how long, and the first and last hour at which it may begin.
BURST_DAYS = 0.3
BURST_HOURS, BURST_FROM, BURST_TO = 4, 8, 14

#: A job has at most 8 GPUs, or at most this many times what its team is entitled to.
SENSIBLE = 4.0

#: Declared priority of a debug job; the others have 0.
DEBUG_PRIORITY = 1

#: A name is the number of the team in the tree's order, then the job's own number with this many digits.
_DIGITS = 7

# Places of a job's uniform numbers in its row.
_TIME, _DEBUG, _SIZE, _ANGLE, _RADIUS, _MINIMUM, _LIMIT, _RESUMES, _NUMBERS = range(9)


@dataclass(slots=True)
class _Rows:
    """Jobs of one team in the order in which they were drawn."""

    submit_s: Int64
    gpus: Int64
    run_s: Int64
    limit_s: Int64
    minimum_s: Int64
    resumable: Bools
    debug: Bools


def team_kinds(tree: Tree) -> tuple[str, ...]:
    """The kind of each team, in the tree's order: ``backlogged``, ``moderate``, ``bursty`` or ``idle``."""
    return tuple(PATTERN[k % len(PATTERN)] for k in range(len(tree.leaves)))


def demand_gpus(spec: Generate, gpus: int, tree: Tree) -> Floats:
    """GPUs that each team asks for on average over the period, float64[L]; their sum is the load x the GPUs."""
    share = tree.share[tree.leaves]
    asked = np.array([DEMAND[kind] for kind in team_kinds(tree)]) * share
    total = asked.sum()
    return asked / total * spec.oversubscription * gpus if total > 0 else asked


def sizes_of(entitled_gpus: float, largest: int) -> tuple[Int64, Floats]:
    """Sizes that jobs of a team have, and their shares; ``largest``: GPUs of the largest pool."""
    sizes = np.array(SIZES, np.int64)
    fits = (sizes <= largest) & ((sizes <= SIZES[3]) | (sizes <= SENSIBLE * entitled_gpus))
    shares = np.array(SIZE_SHARES)[fits]
    return sizes[fits], shares / shares.sum()


def generate(spec: Generate, pools: Sequence[Pool], tree: Tree) -> Jobs:
    """Jobs of all teams over the period, as the module states them.

    The work submitted is ``oversubscription`` x GPUs x days, to within half a minute of each team's last job. Same
    arguments, same jobs; another load or debug share keeps the random numbers of every job.

    Parameters
    ----------
    spec
        Days (above 0), load, share of debug jobs, seed.
    pools
        Their GPUs are the capacity; a job fits into the largest.
    tree
        Its leaves are the teams. A team without a share submits nothing.
    """
    gpus = sum(pool.gpus for pool in pools)
    largest = max(pool.gpus for pool in pools)
    asked = demand_gpus(spec, gpus, tree) * spec.days * DAY
    share = tree.share[tree.leaves]
    parts = []
    for k, (path, kind) in enumerate(zip(tree.teams, team_kinds(tree), strict=True)):
        rng = stream(spec.seed, path)
        when = _submissions(kind, spec.days, stream(spec.seed, f"days of {path}"))
        parts.append(_team(float(asked[k]), spec, sizes_of(share[k] * gpus, largest), when, rng))
    return _together(parts, tree.teams)


def stream(seed: int, name: str) -> np.random.Generator:
    """A random stream that depends on a seed and a name alone, not on what else there is."""
    words = np.frombuffer(hashlib.sha256(name.encode("utf-8", "surrogatepass")).digest(), "<u4")
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence([seed % 2**64, *words.tolist()])))


def _submissions(kind: str, days: float, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """The distribution of a team's submission times: edges of the hours, seconds, and the share before each."""
    edges = np.minimum(np.arange(int(np.ceil(days * 24)) + 1) * float(HOUR), days * DAY)
    hour = np.arange(len(edges) - 1)
    day = hour // 24
    rate = np.array(HOURS, np.float64)[hour % 24] * np.where(day % 7 >= 5, WEEKEND, 1.0)
    # Every team draws the same numbers, so that a team that changes its kind keeps its jobs.
    phase, draws = rng.random(), rng.random((int(day[-1]) + 1, 2))
    active = np.ones(len(hour), np.bool_)
    if kind == "bursty":
        begins = BURST_FROM + np.floor(draws[:, 1] * (BURST_TO - BURST_FROM + 1))
        on = draws[:, 0] <= max(BURST_DAYS, draws[:, 0].min())
        since = hour % 24 - begins[day]
        active = on[day] & (since >= 0) & (since < BURST_HOURS)
    elif kind == "idle":
        length = min(7 * 24, max(1, len(hour) // 2))
        active = hour // length % 2 == int(phase >= 0.5)
    weight = np.diff(edges) * np.where(active, rate, 0.0)
    if not weight.sum() > 0:  # a period that ends before the only burst begins
        weight = np.diff(edges)
    before = np.concatenate([[0.0], np.cumsum(weight)])
    return edges, before / before[-1]


def _team(
    work: float,
    spec: Generate,
    sizes: tuple[Int64, Floats],
    when: tuple[Floats, Floats],
    rng: np.random.Generator,
) -> _Rows:
    """Jobs of a team until they make up ``work`` GPU-seconds; the last one is cut to what is left."""
    most = min(RUN_S[3], max(HOUR, spec.days * DAY / 4))
    mean = _mean_work(spec.debug_share, sizes, most)
    drawn = np.empty((0, _NUMBERS))
    gpus, run, debug = _sizes_and_runs(drawn, spec.debug_share, sizes, most)
    total = np.zeros(0, np.int64)
    while work > 0 and not (len(total) and total[-1] >= work):
        left = work - (int(total[-1]) if len(total) else 0)
        drawn = np.concatenate([drawn, rng.random((int(left / mean * 1.1) + 32, _NUMBERS))])
        gpus, run, debug = _sizes_and_runs(drawn, spec.debug_share, sizes, most)
        total = np.cumsum(gpus * run)
    count = int(np.searchsorted(total, work)) + 1 if len(total) else 0
    if count:
        last = count - 1
        left = work - (int(total[last - 1]) if last else 0)
        kept = max(LEAST_RUN_S, round(left / int(gpus[last])))
        if last and left < kept * int(gpus[last]) / 2:  # nearer without it
            count = last
        else:
            run[last] = min(kept, int(run[last]))
    return _rows(drawn[:count], gpus[:count], run[:count], debug[:count], when)


def _mean_work(debug_share: float, sizes: tuple[Int64, Floats], most: float) -> float:
    """About the mean GPU-seconds of a job, for how many to draw at first."""
    usual = float((sizes[0] * sizes[1]).sum()) * min(RUN_S[0] * math.exp(RUN_S[1] ** 2 / 2) * 0.8, most)
    debug = float(np.dot(DEBUG_SIZES, DEBUG_SIZE_SHARES)) * DEBUG_RUN_S[0] * math.exp(DEBUG_RUN_S[1] ** 2 / 2)
    return max(60.0, (1 - debug_share) * usual + debug_share * debug)


def _sizes_and_runs(
    drawn: Floats, debug_share: float, sizes: tuple[Int64, Floats], most: float
) -> tuple[Int64, Int64, Bools]:
    """GPUs, run time and whether it is a debug job, of each row of uniform numbers."""
    debug = drawn[:, _DEBUG] < debug_share
    small = np.array([size for size in DEBUG_SIZES if size <= sizes[0][-1]], np.int64)
    few = _choice(drawn[:, _SIZE], small, np.array(DEBUG_SIZE_SHARES[: len(small)]))
    gpus = np.where(debug, few, _choice(drawn[:, _SIZE], *sizes))
    # Box and Muller's normal numbers ("A note on the generation of random normal deviates", 1958).
    normal = np.sqrt(-2 * np.log1p(-drawn[:, _RADIUS])) * np.cos(2 * np.pi * drawn[:, _ANGLE])
    usual = np.clip(RUN_S[0] * np.exp(RUN_S[1] * normal), RUN_S[2], most)
    short = np.clip(DEBUG_RUN_S[0] * np.exp(DEBUG_RUN_S[1] * normal), DEBUG_RUN_S[2], DEBUG_RUN_S[3])
    return gpus, np.where(debug, short, usual).astype(np.int64), debug


def _choice(uniform: Floats, values: Int64, shares: Floats) -> Int64:
    """A value per uniform number, with the shares given."""
    edges = np.cumsum(shares / shares.sum())[:-1]
    chosen: Int64 = values[np.searchsorted(edges, uniform, side="right")]
    return chosen


def _rows(drawn: Floats, gpus: Int64, run: Int64, debug: Bools, when: tuple[Floats, Floats]) -> _Rows:
    """Jobs of rows of uniform numbers, with the size and run time that were made of them."""
    edges, before = when
    latest = int(np.ceil(edges[-1])) - 1
    submit = np.minimum(np.interp(drawn[:, _TIME], before, edges).astype(np.int64), latest)
    limit, minimum, resumable = contracts(drawn[:, [_LIMIT, _MINIMUM, _RESUMES]], run, debug)
    return _Rows(submit, gpus, run, limit, minimum, resumable, debug)


def contracts(uniform: Floats, run: Int64, debug: Bools) -> tuple[Int64, Int64, Bools]:
    """Limits, declared minimum run times and what can resume, of jobs with these run times.

    Parameters
    ----------
    uniform : float64[J, 3]
        Numbers from 0 to 1 that decide on the limit, the minimum, and whether the job is written to resume.
    run : int64[J]
        Seconds.
    debug : bool[J]
    """
    limit = (run * (1 + (LIMIT_FACTOR - 1) * uniform[:, 0])).astype(np.int64)
    limit = np.where(debug, np.maximum(limit, DEBUG_LIMIT_S), limit)
    minimum = _minima(uniform[:, 1], debug)
    stuck = uniform[:, 2] >= RESUMABLE
    covered = stuck & (minimum > 0) & (limit <= np.where(debug, DEBUG_MINIMA_S[-1], MINIMA_S[-1]))
    # Work that cannot resume asks for all of its time; half an hour at least, as all work that is no debug job.
    whole = np.where(debug, limit, np.maximum(limit, MINIMA_S[0]))
    return limit, np.where(covered, whole, minimum), ~covered


def _minima(uniform: Floats, debug: Bools) -> Int64:
    """Declared minimum run times."""
    rest = np.maximum(uniform - UNALLOCATED, 0) / (1 - UNALLOCATED)
    usual = np.where(uniform < UNALLOCATED, 0, _choice(rest, np.array(MINIMA_S), np.array(MINIMA_SHARES)))
    short = np.array(DEBUG_MINIMA_S)[np.minimum((uniform * len(DEBUG_MINIMA_S)).astype(np.int64), 2)]
    return np.where(debug, short, usual)


def _together(parts: list[_Rows], teams: tuple[str, ...]) -> Jobs:
    """The jobs of all teams, in order."""

    def column(name: str) -> npt.NDArray[np.int64]:
        return np.concatenate([getattr(part, name) for part in parts])

    counts = [len(part.gpus) for part in parts]
    number = np.concatenate([np.arange(1, n + 1) + (k + 1) * 10**_DIGITS for k, n in enumerate(counts)])
    n = len(number)
    any_type = np.empty(n, object)
    any_type[:] = ""
    name = np.empty(n, object)
    name[:] = list(map(str, number.tolist()))
    paths = np.empty(len(teams), object)
    paths[:] = teams
    return ordered(
        Jobs(
            name,
            np.repeat(paths, counts),
            column("submit_s"),
            column("gpus"),
            column("run_s"),
            column("limit_s"),
            column("minimum_s"),
            column("resumable").astype(np.bool_),
            np.where(column("debug").astype(np.bool_), DEBUG_PRIORITY, 0).astype(np.int64),
            any_type,
            np.zeros(n, np.bool_),
            np.zeros(n, np.int64),
            np.zeros(n, np.bool_),
        )
    )
