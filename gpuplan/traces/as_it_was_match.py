"""The stretches of a record that are of a scenario's jobs, in its time and on its nodes, with an account of all."""

from dataclasses import dataclass, replace

import numpy as np

from gpuplan.fairshare.jobs import Jobs
from gpuplan.fairshare.ledger import gpu_seconds
from gpuplan.fairshare.model import HOUR, NEVER, Bools, FairshareScenario, Int64, Pool
from gpuplan.fairshare.problem import Problem, compile_problem
from gpuplan.inputs.account import Account
from gpuplan.inputs.errors import InputError, Mistake, shorten
from gpuplan.traces.as_it_was_places import Places, peak, places
from gpuplan.traces.names import safe_names
from gpuplan.traces.recorded import UNSAID, Recorded, Strings

#: Of the jobs whose submission is known, at least this part must agree on where second 0 of the scenario lies.
_AGREE = 0.5

#: Columns of stretches.
_COLUMNS = ("job", "team", "state", "gpus", "submit_s", "start_s", "end_s")


@dataclass(frozen=True, slots=True, eq=False)
class Matched:
    """Stretches of a scenario's jobs, cut to its time, by start.

    Attributes
    ----------
    rows
        Seconds after the start of the scenario.
    job : int64[S]
        Row of the scenario's jobs.
    gpus : int64[S]
        GPUs that the job has in the scenario.
    zero_s
        Second 0 of the scenario on the clock of the record.
    read, excluded, changed
        For the account.
    elsewhere_s
        GPU-seconds held in the time of the scenario by jobs of the record that are not in it.
    """

    rows: Recorded
    job: Int64
    gpus: Int64
    zero_s: str
    read: int
    excluded: tuple[tuple[str, int], ...]
    changed: tuple[tuple[str, int], ...]
    elsewhere_s: int

    @property
    def held_s(self) -> int:
        """GPU-seconds of the stretches."""
        return gpu_seconds(self.gpus, self.rows.end_s - self.rows.start_s)

    @property
    def account(self) -> Account:
        """What became of every stretch of the record."""
        return Account(
            self.rows.source,
            "stretches",
            self.read,
            len(self.job),
            tuple(row for row in self.excluded if row[1]),
            tuple(row for row in self.changed if row[1]),
            (
                ("held by the jobs of the scenario", self.held_s / HOUR, "GPU-hours"),
                ("held meanwhile by other jobs of the record", self.elsewhere_s / HOUR, "GPU-hours"),
            ),
            (f"Second 0 of the scenario is {self.zero_s} of the record.",),
            made="record",
        )

    def of(self, kept: Bools, reason: str) -> "Matched":
        """Some of the stretches; why the others are left out."""
        if kept.all():
            return self
        rows = replace(self.rows, **{name: getattr(self.rows, name)[kept] for name in _COLUMNS})
        excluded = (*self.excluded, (reason, int((~kept).sum())))
        return replace(self, rows=rows, job=self.job[kept], gpus=self.gpus[kept], excluded=excluded)

    def notes(self, jobs: Jobs) -> tuple[str, ...]:
        """What is known and not known of this record, a sentence each."""
        known = int((jobs.limit_s < NEVER).sum())
        limits = f"Limits are known of {known:,} of {len(jobs):,} jobs; " + (
            "to policies that plan by them the others are endless."
            if known < len(jobs)
            else "what people asked for, they asked of the scheduler of that time."
        )
        found = [limits]
        if self.elsewhere_s:
            more = 100 * self.elsewhere_s / max(1, self.held_s)
            found.append(
                f"Jobs of the record that are not in the scenario held {self.elsewhere_s / HOUR:,.1f} GPU-hours in its "
                f"time, {more:.1f} % on top of its own: no policy runs them, and no figure has them."
            )
        missing = len(jobs) - len(np.unique(self.job))
        if missing:
            found.append(
                f"{missing:,} of {len(jobs):,} jobs of the scenario have no stretch in its time: as it was, they wait."
            )
        last = np.zeros(len(jobs), np.int64)
        last[self.job] = np.arange(len(self.job))
        again = last[self.job] != np.arange(len(self.job))
        if again.any():
            hours = gpu_seconds(self.gpus[again], (self.rows.end_s - self.rows.start_s)[again]) / HOUR
            found.append(
                f"{int(again.sum()):,} stretches ({hours:,.1f} GPU-hours) were followed by another of their job. From "
                "what of it that one went on is not recorded: it is work as far as the run time has room for it."
            )
        running = int((self.rows.state == "running").sum())
        if running:
            found.append(
                f"{running:,} stretches still ran at the export; jobs have the run time they had by then."
            )
        return tuple(found)


def matched(scenario: FairshareScenario, record: Recorded, start_s: int | None) -> Matched:
    """The stretches of the scenario's jobs in its time (see `gpuplan.traces.as_it_was.as_it_was`)."""
    problem = compile_problem(scenario)
    jobs, until = problem.jobs, problem.until_s
    job = rows_of(jobs.name, record.job)
    if not (job >= 0).any():
        rule = "must name jobs of the scenario; none of its names is one"
        raise InputError(record.source, [Mistake("job", rule, str(record.job[0]) if len(record) else "")])
    zero = second_0(record, job, jobs.submit_s) if start_s is None else start_s
    moved = record.after(zero)
    tests = (
        ("of no job of the scenario", job < 0),
        ("ended before the scenario begins", (moved.start_s < 0) & (moved.end_s <= 0)),
        ("began after the scenario ends", moved.start_s >= until),
    )
    left, excluded = np.ones(len(record), np.bool_), list(record.left_out)
    for reason, fails in tests:
        excluded.append((reason, int((left & fails).sum())))
        left &= ~fails
    if not left.any():
        said = "; ".join(f"{count:,} {reason}" for reason, count in excluded if count)
        raise InputError(
            record.source, [Mistake("", f"no stretch of the record lies in the scenario: {said}")]
        )
    begin, end = np.maximum(moved.start_s, 0), np.minimum(moved.end_s, until)
    early = left & (begin < jobs.submit_s[job])
    begin = np.where(early, np.minimum(jobs.submit_s[job], end), begin)
    order = np.flatnonzero(left)
    order = order[np.lexsort((job[order], begin[order]))]
    changed = (
        ("cut at the start of the scenario", int((left & (moved.start_s < 0)).sum())),
        ("cut at its end", int((left & (moved.end_s > until)).sum())),
        ("began before the submission that the scenario has: begin with it", int(early.sum())),
        (
            "GPUs differ from those of the scenario, which count",
            int((left & (record.gpus != jobs.gpus[job])).sum()),
        ),
    )
    rows = replace(
        moved,
        **{name: getattr(moved, name)[order] for name in _COLUMNS[:5]},
        start_s=begin[order],
        end_s=end[order],
    )
    last = until if until < NEVER else int(end[left].max())
    return Matched(
        rows,
        job[order],
        jobs.gpus[job[order]],
        record.moment(zero),
        len(record) + sum(count for _, count in record.left_out),
        tuple(excluded),
        changed,
        _held_within(moved, job < 0, last),
    )


def _held_within(record: Recorded, which: Bools, last: int) -> int:
    """GPU-seconds of some stretches from second 0 to the last one."""
    seconds = np.minimum(record.end_s, last) - np.maximum(record.start_s, 0)
    return gpu_seconds(record.gpus[which], np.maximum(seconds[which], 0))


def rows_of(names: Strings, wanted: Strings) -> Int64:
    """Row of each wanted name among different names, int64[S]; -1: it is none of them.

    A name that an import wrote in a safer form (see `gpuplan.traces.names`) is found by that.
    """
    row = {name: j for j, name in enumerate(names.tolist())}
    texts = wanted.tolist()
    if not row.keys() >= set(texts):
        safe = safe_names(texts)
        row = {name: row[safe[name]] for name in reversed(safe) if safe[name] in row} | row
    return np.fromiter((row.get(name, -1) for name in texts), np.int64, len(wanted))


def second_0(record: Recorded, job: Int64, submit_s: Int64) -> int:
    """Second 0 of a scenario on the clock of a record: as most of the submissions have it.

    Raises
    ------
    InputError
        If no submission is known, or they do not agree.
    """
    known = (job >= 0) & (record.submit_s != UNSAID)
    once = np.unique(job[known], return_index=True)[1]
    apart = record.submit_s[known][once] - submit_s[job[known][once]]
    if not len(apart):
        rule = "must be given: the record tells no submission that says when the scenario begins"
        raise InputError(record.source, [Mistake("start_s", rule)])
    offsets, counts = np.unique(apart, return_counts=True)
    best = int(counts.argmax())
    if counts[best] < _AGREE * len(apart):
        rule = (
            f"must be given: submissions agree on second 0 for only {counts[best]:,} of {len(apart):,} jobs"
        )
        raise InputError(record.source, [Mistake("start_s", rule)])
    return int(offsets[best])


def on_nodes(
    scenario: FairshareScenario, found: Matched, *, widen: bool
) -> tuple[Problem, Places, tuple[str, ...]]:
    """The scenario as arrays and the places of the stretches, on more nodes where need be and may be.

    Raises
    ------
    InputError
        If the cluster is too small for what was held at once, and must not be widened.
    """
    given = scenario.gpus
    rows, job = found.rows, found.job
    while True:
        problem = compile_problem(scenario)
        mask = problem.mask[job]
        can = mask != 0
        placed = places(rows.start_s[can], rows.end_s[can], found.gpus[can], mask[can], scenario.pools)
        most, when = peak(rows.start_s, rows.end_s, found.gpus)
        if most <= scenario.gpus and not len(placed.homeless):
            break
        if not widen:
            raise InputError(scenario.name, [_too_small(problem, found, placed, (most, when), can)])
        scenario = replace(scenario, pools=_wider(scenario.pools, found, placed, most, mask, can))
    if scenario.gpus == given:
        return problem, placed, ()
    said = (
        f"The cluster was stated with {given:,} GPUs, and the record held up to {most:,} at once: it has "
        f"{scenario.gpus:,} here, for the record and for every policy."
    )
    return problem, placed, (said,)


def _too_small(problem: Problem, found: Matched, placed: Places, top: tuple[int, int], can: Bools) -> Mistake:
    most, when = top
    if most > problem.gpus:
        rule = (
            f"must have at least {most:,} GPUs: the record held so many at once, {when:,} s after the start; or let it "
            "be widened"
        )
        return Mistake("cluster", rule, problem.gpus)
    s = int(np.flatnonzero(can)[placed.homeless[0]])
    kind = problem.jobs.gpu[found.job[s]]
    rule = (
        f"must have room for {shorten(str(found.rows.job[s]))!r} of the record, {found.gpus[s]:,} GPUs"
        f"{f' of type {kind}' if kind else ''} {found.rows.start_s[s]:,} s after the start; or let it be widened"
    )
    return Mistake("cluster", rule, f"{problem.gpus:,} GPUs")


def _wider(
    pools: tuple[Pool, ...], found: Matched, placed: Places, most: int, mask: Int64, can: Bools
) -> tuple[Pool, ...]:
    """Pools with nodes added for what was held at once (a flat pool becomes larger)."""
    gpus = sum(pool.gpus for pool in pools)
    if most > gpus:
        which, short = 0, most - gpus
        if len(placed.homeless):
            which = _lowest(mask[can][placed.homeless[0]])
    else:
        s = placed.homeless[0]
        which = _lowest(mask[can][s])
        alike = mask == mask[can][s]
        held, _ = peak(found.rows.start_s[alike], found.rows.end_s[alike], found.gpus[alike])
        allowed = sum(pool.gpus for p, pool in enumerate(pools) if int(mask[can][s]) >> p & 1)
        short = max(1, held - allowed)
    pool = pools[which]
    if pool.nodes == 1:
        wider = replace(pool, gpus_per_node=pool.gpus_per_node + short)
    else:
        wider = replace(pool, nodes=pool.nodes + -(-short // pool.gpus_per_node))
    return (*pools[:which], wider, *pools[which + 1 :])


def _lowest(bits: int) -> int:
    """Place of the lowest bit that is set."""
    number = int(bits)
    return (number & -number).bit_length() - 1
