"""What a pair of fair-share runs says, in words: who gets more, who waits longer, what must not be misread."""

import html
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from gpuplan.fairshare.charts.clock import words
from gpuplan.fairshare.charts.heads import amount, workload_words
from gpuplan.fairshare.figures import SERVED, size_class
from gpuplan.fairshare.model import HOUR
from gpuplan.fairshare.run import Run
from gpuplan.gantt import safe_text

#: Teams that a sentence names; the rest are counted.
NAMED = 3

#: Differences that are told: points of delivered / owed, part of the GPUs had, and of a wait that is long enough (s).
_POINTS, _PART, _WAIT_PART, _WAIT_S = 0.01, 0.02, 0.1, 60

#: From so much of the assigned GPU-time on, lost work is a remark.
_LOST = 0.08


@dataclass(frozen=True, slots=True)
class Team:
    """What a team had in a run: delivered / owed, GPUs on average, wait p90 in seconds (`bound`: at least that)."""

    name: str
    share: float
    entitled_gpus: float
    delivered: float | None
    gpus: float
    wait_p90_s: int | None
    bound: bool


@lru_cache(maxsize=8)
def teams_of(run: Run) -> tuple[Team, ...]:
    """The teams of a run in the tree's order."""
    books, team = run.ledger, run.problem.team
    rows: list[dict[Any, Any]] = run.teams.to_dict("records")
    hours = max(run.end_s, 1) / HOUR
    found = []
    for k, row in enumerate(rows):
        wait = None if math.isnan(row["wait_p90_s"]) else int(row["wait_p90_s"])
        open_waits = books.wait_s[books.waits_on & (team == k)]
        found.append(
            Team(
                safe_text(str(row["team"]), 60),
                float(row["share"]),
                float(row["entitlement_gpus"]),
                None if math.isnan(row["delivered_share"]) else float(row["delivered_share"]),
                float(row["delivered_gpu_hours"] + row["unallocated_gpu_hours"]) / hours,
                wait,
                # a wait that has not ended may still pass the percentile
                wait is not None and bool((open_waits <= wait).any()),
            )
        )
    return tuple(found)


def headline(left: Run, right: Run) -> str:
    """The main figures of both sides, goodput beside occupancy."""
    pairs = [
        ("occupancy", "occupancy"),
        ("goodput", "goodput"),
        ("delivered / owed", "delivered_share"),
        ("worst team", "delivered_worst_team"),
    ]
    parts = [
        f"{text} {amount(left.figures[name])} → {amount(right.figures[name])}".replace(" %", "\u00a0%")
        for text, name in pairs
    ]
    for text, name in (("debug wait p90", "debug_wait_p90_s"), ("wait p90", "wait_p90_s")):
        waits = [wait_words(run.figures[name], is_bound(run, name)) for run in (left, right)]
        if waits != ["–", "–"]:
            parts.append(f"{text} {' → '.join(waits)}")
            break
    return f"{left.policy} → {right.policy}: {', '.join(parts)}"


def wait_words(seconds: float | None, bound: bool = False) -> str:
    """A wait with its unit; a dash for none, ``≥`` where it is a lower bound."""
    if seconds is None:
        return "–"
    return ("≥ " if bound else "") + words(seconds).replace(" ", "\u00a0")


def is_bound(run: Run, figure: str) -> bool:
    """Whether a figure of waits is a lower bound: a wait of its jobs has not ended and may still pass it."""
    value = run.figures[figure]
    if value is None or figure == "makespan_s":
        return False
    books, jobs = run.ledger, run.problem.jobs
    which = books.waits_on
    if figure.startswith("debug"):
        which = which & jobs.debug
    elif figure.startswith("largest"):
        sizes = size_class(jobs.gpus)
        which = which & (sizes == sizes[books.counted].max(initial=0))
    return bool(which.any()) if figure == "mean_wait_s" else bool((books.wait_s[which] <= value).any())


def differences(left: Run, right: Run) -> str:
    """Who gets more or less of what it is owed on the right, and who waits longer or shorter."""
    before, after = teams_of(left), teams_of(right)
    gains = [
        (_served(b) - _served(a), f"{b.name} ({amount(a.delivered)} → {amount(b.delivered)})")
        for a, b in zip(before, after, strict=True)
        if abs(_served(b) - _served(a)) >= _POINTS
    ]
    said = [
        _told("more of what they are owed for", [one for one in gains if one[0] > 0]),
        _told("less of it for", [one for one in gains if one[0] < 0]),
        *_waits(before, after),
    ]
    kept = [sentence for sentence in said if sentence]
    if not kept:
        return f"Under {right.policy} no team gets noticeably more or less than under {left.policy}, nor waits longer."
    return f"Under {right.policy} instead of {left.policy}: {'; '.join(kept)}."


def _served(team: Team) -> float:
    """Delivered / owed up to 1: what a team gets beyond that was nobody's."""
    return 1.0 if team.delivered is None else min(1.0, team.delivered)


def moved(given: Run, now: Run) -> str:
    """Who has more or fewer GPUs than in the scenario as given under the same policy, and who waits longer, if any."""
    before, after = teams_of(given), teams_of(now)
    gpus = [
        (b.gpus - a.gpus, f"{b.name} ({a.gpus:,.1f} → {b.gpus:,.1f} GPUs on average)")
        for a, b in zip(before, after, strict=True)
        if abs(b.gpus - a.gpus) >= max(0.05, _PART * max(a.gpus, b.gpus))
    ]
    said = [
        _told("more for", [one for one in gpus if one[0] > 0]),
        _told("less for", [one for one in gpus if one[0] < 0]),
        *_waits(before, after),
    ]
    kept = [sentence for sentence in said if sentence]
    return f"Against the scenario as given, under {now.policy}: {'; '.join(kept)}." if kept else ""


def _waits(before: Sequence[Team], after: Sequence[Team]) -> list[str]:
    """Whose waits (p90) are longer or shorter now."""
    found = []
    for a, b in zip(before, after, strict=True):
        if a.wait_p90_s is None or b.wait_p90_s is None:
            continue
        change = b.wait_p90_s - a.wait_p90_s
        if abs(change) >= max(_WAIT_S, _WAIT_PART * max(a.wait_p90_s, b.wait_p90_s)):
            old, new = wait_words(a.wait_p90_s, a.bound), wait_words(b.wait_p90_s, b.bound)
            found.append((float(change), f"{b.name} ({old} → {new})"))
    return [
        _told("longer waits (p90) for", [one for one in found if one[0] > 0]),
        _told("shorter waits (p90) for", [one for one in found if one[0] < 0]),
    ]


def _told(start: str, entries: Sequence[tuple[float, str]]) -> str:
    """The largest differences as part of a sentence, the rest counted; nothing for none."""
    ordered = [text for _, text in sorted(entries, key=lambda entry: -abs(entry[0]))]
    if not ordered:
        return ""
    more = f" and {len(ordered) - NAMED} more" if len(ordered) > NAMED else ""
    return f"{start} {', '.join(ordered[:NAMED])}{more}"


def notes(runs: Mapping[str, Run], remarks: Sequence[str] = ()) -> list[str]:
    """What a person may misread: teams below what they are owed, open waits, jobs set aside, an invented workload."""
    sides = list({run.policy: run for run in runs.values()}.values())
    told = [*remarks, *(f"{run.policy}: {run.stopped}" for run in sides if run.stopped)]
    for run in sides:
        told += _unserved(run)
    for run in sides:
        told += _open(run)
    for run in sides:
        told += _aside(run)
    told.append(f"{workload_words(sides[0].problem)}.".replace("generated workload", "Generated workload", 1))
    told += [safe_text(note, 300) for note in sides[0].scenario.notes]
    return list(dict.fromkeys(told))


def _losses(run: Run) -> list[str]:
    """That GPUs are busy and the work is lost, and whose."""
    found = run.figures
    lost, idle = found["lost_share"] or 0.0, found["idle_gpu_hours"] or 0.0
    said = []
    if lost >= _LOST:
        said.append(
            f"{run.policy}: occupancy {amount(found['occupancy'])} looks full, but goodput is "
            f"{amount(found['goodput'])}: "
            f"{amount(lost)} of the assigned GPU-time is lost to {found['preemptions']:,} preemptions{_why_lost(run)}."
        )
    if idle:
        said.append(f"{run.policy}: jobs that do nothing held GPUs for {idle:,.0f} GPU-hours (squatting).")
    return said


def _why_lost(run: Run) -> str:
    """What makes so much of it get lost: no hysteresis, work that starts over."""
    books, jobs = run.ledger, run.problem.jobs
    lost = jobs.gpus * books.lost_s
    stuck = float(lost[~jobs.resumable].sum()) / max(1.0, float(lost.sum()))
    reasons = []
    if run.policy == "fair-share" and run.problem.hysteresis == 0:
        reasons.append("without hysteresis budgets in balance preempt each other over and over")
    if stuck >= 0.25:
        reasons.append(f"{stuck:.0%} of it is work that cannot resume and starts over")
    return f" ({'; '.join(reasons)})" if reasons else ""


def _unserved(run: Run) -> list[str]:
    """Teams that do not get what they are owed."""
    late = [one for one in teams_of(run) if one.delivered is not None and one.delivered < SERVED]
    if not late:
        return []
    late.sort(key=lambda one: one.delivered or 0.0)
    names = ", ".join(f"{one.name} {amount(one.delivered)}" for one in late[:NAMED])
    more = f" and {len(late) - NAMED} more" if len(late) > NAMED else ""
    return [
        f"{run.policy}: {len(late)} of {len(run.problem.tree.leaves)} teams get less than 95 % of what they are "
        f"owed: {names}{more}."
    ]


def _open(run: Run) -> list[str]:
    """Waits that are lower bounds."""
    count = run.figures["waits_are_lower_bounds"] or 0
    if not count:
        return []
    who = "1 job has" if count == 1 else f"{count:,} jobs have"
    return [
        f"{run.policy}: {who} not started when the run ends; such waits count as waited so far (≥: at least that)."
    ]


def _aside(run: Run) -> list[str]:
    """Jobs that can never run, and why the first of them cannot."""
    reasons = run.reasons
    if not reasons:
        return []
    first = min(reasons)
    name = safe_text(str(run.problem.jobs.name[first]), 60)
    count = "1 job is" if len(reasons) == 1 else f"{len(reasons):,} jobs are"
    more = "" if len(reasons) == 1 else ", for example"
    return [
        f"{run.policy}: {count} set aside, for nothing can run them{more} {name}: {safe_text(reasons[first], 160)}."
    ]


def summary_html(runs: Mapping[str, Run], given: Mapping[str, Run], remarks: Sequence[str] = ()) -> str:
    """All of it as HTML in which names stay text.

    Parameters
    ----------
    runs
        Under ``"left"`` and ``"right"``.
    given
        Runs of the scenario as it was given under the same policies; nothing where it is that one.
    remarks
        First among the notes.
    """
    left, right = runs["left"], runs["right"]
    told = [*_losses(left), *(_losses(right) if right.policy != left.policy else ())]
    if left.policy != right.policy:
        told.append(differences(left, right))
    sides = [side for side in ("right", "left") if side in given and _first(runs, side)]
    against = [moved(given[side], runs[side]) for side in sides]
    if given and not any(against):
        against = [
            "Against the scenario as given no team has noticeably more or fewer GPUs, nor waits longer."
        ]
    told += [sentence for sentence in against if sentence]
    items = "".join(f"<li>{html.escape(note)}</li>" for note in notes(runs, remarks))
    sentences = "".join(f"<p>{html.escape(sentence)}</p>" for sentence in told)
    return (
        f'<div><span class="gp-headline">{html.escape(headline(left, right))}</span>'
        f'<div class="gp-told gp-fair-summary" tabindex="0">{sentences}<ul class="gp-notes">{items}</ul></div></div>'
    )


def _first(runs: Mapping[str, Run], side: str) -> bool:
    """Whether a side is not the same policy as the other, told already."""
    return side == "right" or runs["left"].policy != runs["right"].policy
