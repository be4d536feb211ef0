"""From a history to a scenario: the span, the cluster and the priorities, each with a sentence on how it was chosen."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from gpuplan.fairshare.job_limits import MOST_GPUS, MOST_PRIORITY
from gpuplan.fairshare.model import HOUR
from gpuplan.inputs.account import Account
from gpuplan.inputs.errors import InputError, Mistake, did_you_mean, shorten
from gpuplan.traces.days import DAY_S, busiest_day, day_named, day_of, midnight_s, moment_named, text_of
from gpuplan.traces.grid import FIRST_S
from gpuplan.traces.history import UNKNOWN, History, Strings
from gpuplan.traces.names import counted
from gpuplan.traces.wish import UNRANKED, Wish
from gpuplan.traces.work import Work, at_once

#: What a replay cannot tell.
HONESTY = (
    "A replay is open loop: submissions do not react to the policy. Who waits less would submit more, who waits longer "
    "gives up or asks for less; run times are those of the past, on the GPUs of the past."
)

#: Names that a mistake lists; the rest are counted.
_LISTED = 12


@dataclass(slots=True)
class Choices:
    """How the scenario was made, a sentence per topic, in the order in which it was decided."""

    said: dict[str, str] = field(default_factory=dict)

    def say(self, topic: str, sentence: str) -> None:
        """Add a sentence to what is said about a topic."""
        self.said[topic] = f"{self.said[topic]} {sentence}" if topic in self.said else sentence

    def lines(self) -> tuple[str, ...]:
        """``Cluster: ...``, a line per topic."""
        return tuple(f"{topic}: {sentence}" for topic, sentence in self.said.items())


@dataclass(frozen=True, slots=True)
class Size:
    """A cluster: so many GPUs, in nodes of so many where that is told."""

    gpus: int
    gpus_per_node: int | None


def span_of(history: History, wish: Wish, choices: Choices) -> tuple[int, int]:
    """The span in seconds of the history, its end not in it.

    Raises
    ------
    InputError
        If no row tells when it was submitted, or the span is empty.
    """
    zone = history.zone
    clock = f"clock of {zone}" if zone else "clock on the wall (no zone is known)"
    moments = np.where(history.submit_s != UNKNOWN, history.submit_s, history.start_s)
    moments = moments[history.used & (moments != UNKNOWN)]
    if not len(moments):
        raise InputError(history.source, [Mistake("", "must have a job whose submission or start is known")])
    if not zone and int(moments.min()) < FIRST_S:
        clock = "count of the file, which names no date: its second 0 is shown as 1970-01-01"
    if wish.kind == "allocation" or wish.day is not None:
        day, how = None if wish.day is None else day_named(wish.day), "as asked"
        if day is None:
            day = busiest_day(history)
            how = "the day on which the most GPU time was submitted"
        if day is None:
            raise InputError(history.source, [Mistake("", "must have a job with a run time and GPUs")])
        first, last = midnight_s(day, zone), midnight_s(type(day).fromordinal(day.toordinal() + 1), zone)
        hours = (last - first) / HOUR
        long = "" if hours == 24 else f" (a day of {hours:g} h: clocks changed)"
        choices.say("Day", f"{day.isoformat()}{long}, {how}, by the {clock}.")
        return first, last
    origin = midnight_s(day_of(int(moments.min()), zone), zone)
    first = origin if wish.first is None else moment_named(wish.first, "from", origin, zone)
    end = day_of(int(moments.max()), zone)
    whole = midnight_s(type(end).fromordinal(end.toordinal() + 1), zone)
    last = whole if wish.last is None else moment_named(wish.last, "to", origin, zone)
    if last <= first:
        rule = f"must be later than the beginning of the span, {text_of(first, zone)}"
        raise InputError("import", [Mistake("to", rule, wish.last or text_of(last, zone))])
    how = "all days of the file" if wish.first is wish.last is None else "as asked"
    choices.say(
        "Span",
        f"from {text_of(first, zone)} to {text_of(last, zone)}, its end not included "
        f"({_days(last - first)}), {how}, by the {clock}.",
    )
    return first, last


def _days(seconds: int) -> str:
    days = seconds / DAY_S
    return "1 day" if days == 1 else f"{days:,.4g} days"


def size_of(work: Work, wish: Wish, hint: int | None, choices: Choices) -> Size:
    """The cluster: as asked, as the file tells, or inferred.

    Raises
    ------
    InputError
        If it would have more GPUs than a scenario may.
    """
    node = wish.gpus_per_node
    if node is None and wish.nodes and wish.gpus:
        node = wish.gpus // wish.nodes
    if wish.gpus is not None or (wish.nodes is not None and node is not None):
        gpus = wish.gpus if wish.gpus is not None else (wish.nodes or 1) * (node or 1)
        how = "as asked"
    elif hint is not None:
        gpus, how = hint, "as the header of the file tells"
    else:
        gpus, how = _inferred(work, cut=wish.kind == "allocation")
    if node and gpus % node:
        gpus, how = -(-gpus // node) * node, f"{how}, rounded up to whole nodes"
    if gpus > MOST_GPUS:
        raise InputError(work.history.source, [Mistake("gpus", f"must be at most {MOST_GPUS:,}", gpus)])
    layout = (
        f"in nodes of {node:,}"
        if node
        else "not divided into nodes (say how many GPUs a node has where they are)"
    )
    choices.say("Cluster", f"{gpus:,} GPUs, {how}; {layout}.")
    largest = int(work.gpus.max()) if len(work) else 0
    if largest > gpus:
        count = int((work.gpus > gpus).sum())
        choices.say("Cluster", f"More is wanted by {counted(count, 'job')} (up to {largest:,}): set aside.")
    return Size(gpus, node)


def _inferred(work: Work, *, cut: bool) -> tuple[int, str]:
    """GPUs of a cluster about whose size the file says nothing; `cut`: work beyond the span does not count."""
    most = at_once(work.history)
    largest = int(work.gpus.max()) if len(work) else 1
    if most:
        return max(most, largest), "inferred: the most that were held at once in the file (there may be more)"
    seconds = max(1, work.last_s - work.first_s)
    run = np.minimum(work.run_s, seconds - work.submit_s) if cut else work.run_s
    load = -(-int((work.gpus * run).sum()) // seconds)
    if load >= largest:
        return max(1, load), "inferred: so many that all of them work all the time (starts are not recorded)"
    return largest, "inferred: those of the largest job (starts are not recorded)"


def priorities_of(history: History, wish: Wish, choices: Choices) -> npt.NDArray[np.float64]:
    """Priority of each row of the history, float64[R]; what is not ranked has `UNRANKED`.

    Raises
    ------
    InputError
        If names are to be ranked and no rank is given, or ranks are given for names that do not occur.
    """
    by = wish.priority
    if by == "none":
        choices.say("Priority", "the same for all jobs: nobody says how important they are.")
        return np.full(len(history), UNRANKED)
    if by == "recorded":
        known = history.priority != UNKNOWN
        missing = int((history.used & ~known).sum())
        rest = f"; {missing:,} rows have none: {UNRANKED:g}" if missing else ""
        choices.say("Priority", f"as recorded{rest}.")
        recorded = np.clip(history.priority, 0, MOST_PRIORITY)
        return np.where(known, recorded.astype(np.float64), UNRANKED)
    column: Strings = getattr(history, by)
    names = _counted(column[history.used])
    if not wish.ranks:
        rule = f"must say how important each {by} is, as in {_shown(names, wish)}"
        raise InputError(history.source, [Mistake("rank", rule)])
    absent = [name for name in wish.ranks if name not in names]
    if absent:
        rule = f"must be a {by} of the file"
        raise InputError(
            history.source,
            [
                Mistake("rank", rule + ("" if wish.anonymise else did_you_mean(name, names)), name)
                for name in absent
            ],
        )
    others = len(names) - len(wish.ranks)
    rest = f"; {others:,} others have {UNRANKED:g}" if others else ""
    ranked = sorted({f"{rank:g}" for rank in wish.ranks.values()}, key=float, reverse=True)
    choices.say(
        "Priority", f"by {by}: {len(wish.ranks):,} names ranked ({', '.join(ranked[:_LISTED])}){rest}."
    )
    return _ranked(column, wish.ranks)


def _ranked(column: Strings, ranks: Mapping[str, float]) -> npt.NDArray[np.float64]:
    import pandas as pd

    codes, values = pd.factorize(column)
    return (
        np.array([ranks.get(name, UNRANKED) for name in values], np.float64)[codes]
        if len(column)
        else np.empty(0)
    )


def _counted(column: Strings) -> dict[str, int]:
    """Names and how many rows have each, the most frequent first."""
    names = Counter(column.tolist())
    return dict(sorted(((n, c) for n, c in names.items() if n), key=lambda pair: (-pair[1], pair[0])))


def _shown(names: Mapping[str, int], wish: Wish) -> str:
    """Names as an example of ranks; without names where they are to stay unknown."""
    if wish.anonymise:
        return f"high=3,low=1 ({len(names):,} names occur)"
    listed = ",".join(f"{shorten(name, 40)}=..." for name in list(names)[:_LISTED])
    more = f" and {len(names) - _LISTED:,} more" if len(names) > _LISTED else ""
    return (listed or "high=3,low=1 (no name occurs)") + more


def account_of(work: Work, choices: Choices, made: str = "scenario") -> Account:
    """What became of every row of the file."""
    told = work.history.account
    used = int(work.attempts.sum())
    known = {reason for reason, _ in work.excluded}
    outside = [row for row in told.excluded if row[0] not in known]  # records that no row stands for
    changed = [
        *told.changed,
        ("further attempts of a job: they are one job", used - len(work)),
        ("submitted before: the rest of their time, at the start of the span", int(work.carried.sum())),
        ("still ran when the file was written: their run time so far", int(work.open.sum())),
    ]
    return Account(
        told.source,
        told.rows,
        told.read,
        used,
        (*outside, *work.excluded),
        tuple(row for row in changed if row[1]),
        (
            ("jobs", len(work), "jobs"),
            *told.amounts[:1],
            ("in the span: GPUs x run time", work.gpu_seconds / HOUR, "GPU-hours"),
            *told.amounts[1:],
        ),
        (*told.rules, *choices.lines(), HONESTY),
        made=made,
    )
