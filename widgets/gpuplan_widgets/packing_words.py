"""What a pair of packing runs says, in words: who waits and for what, what runs out, what must not be misread."""

import html
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from gpuplan.gantt import safe_text
from gpuplan.packing.charts.clock import words
from gpuplan.packing.explain import span
from gpuplan.packing.ledger import PARTS
from gpuplan.packing.model import SECOND
from gpuplan.packing.offered import offered_load
from gpuplan.packing.run import PackRun

#: Models and causes that a sentence names; the rest are counted.
NAMED = 3

#: Differences of a mean latency that are told: seconds, and part of the larger one.
_TOLD_S, _TOLD_PART = 0.005, 0.02

#: From so many tasks on it is said that waits grow; by so much the last tenth waits longer than the first half.
_MANY, _GROWS = 100, 3.0

_PART_WORDS = {
    "queue": "queueing",
    "load": "loading",
    "service": "running",
    "save": "being saved",
    "suspended": "suspended",
    "restore": "restoring",
    "retry": "failed attempts",
}


def seconds(value: float | None) -> str:
    """A time for people; a dash for none."""
    return "–" if value is None else words(round(value, 6)).replace(" ", "\u00a0")


def headline(left: PackRun, right: PackRun) -> str:
    """The main figures of both sides; that memory ran out is always among them."""
    a, b = left.figures, right.figures
    parts = [
        f"latency mean {seconds(a['latency_mean_s'])} → {seconds(b['latency_mean_s'])}",
        f"wait p95 {seconds(a['wait_p95_s'])} → {seconds(b['wait_p95_s'])}",
        f"out of memory {a['out_of_memory']:,} → {b['out_of_memory']:,}",
        f"evictions {a['evictions']:,} → {b['evictions']:,}",
        f"preemptions {a['preemptions']:,} → {b['preemptions']:,}",
    ]
    if a["tasks_done"] != a["tasks_arrived"] or b["tasks_done"] != b["tasks_arrived"]:
        parts.insert(0, f"done {a['tasks_done']:,} → {b['tasks_done']:,} of {a['tasks_arrived']:,}")
    return f"{left.policy} → {right.policy}: {', '.join(parts)}"


def overload(run: PackRun) -> str:
    """That the load can never drain, or how far it is from that; empty where tasks are not generated."""
    load = offered_load(run.scenario)
    if load <= 0:
        return ""
    if load >= 1:
        times = f"{load:.2f}" if load < 1e6 else f"{load:.2e}"
        return (
            f"This load can never drain: tasks come at {times} times the rate that the GPUs can serve at most, "
            "so the queue grows without bound under every policy, and every wait depends on how long one looks."
        )
    return f"{load:.0%} of what the GPUs can serve at most, loads of models not counted".replace(
        "%", "\u00a0%"
    )


def differences(left: PackRun, right: PackRun) -> str:
    """Where the mean latency changes from the left policy to the right one."""
    a, b = left.figures, right.figures
    if a["latency_mean_s"] is None or b["latency_mean_s"] is None:
        who = [run.policy for run in (left, right) if run.figures["latency_mean_s"] is None]
        return f"Under {' and '.join(dict.fromkeys(who))} no task was done."
    change = b["latency_mean_s"] - a["latency_mean_s"]
    if not _matters(a["latency_mean_s"], b["latency_mean_s"]):
        return f"Under {right.policy} tasks take as long as under {left.policy} on average."
    parts = []
    for part in PARTS:
        was, now = a[f"{part}_mean_s"] or 0.0, b[f"{part}_mean_s"] or 0.0
        if abs(now - was) >= max(_TOLD_S, 0.05 * abs(change)):
            parts.append((abs(now - was), f"{_PART_WORDS[part]} {_signed(now - was)}"))
    told = ", ".join(text for _, text in sorted(parts, key=lambda one: -one[0]))
    word = "longer" if change > 0 else "shorter"
    was, now = a["tasks_done"] or 0, b["tasks_done"] or 0
    of = ""
    if abs(now - was) > 0.01 * max(was, now):  # the mean of fewer tasks is not the better one
        of = (
            f" Those are the tasks that were done: {was:,} under {left.policy}, {now:,} under {right.policy}."
        )
    return (
        f"Under {right.policy} instead of {left.policy} a task takes {seconds(abs(change))} {word} on average"
        f"{f' ({told})' if told else ''}.{of}"
    )


def moved(given: PackRun, now: PackRun) -> str:
    """What the controls changed against the scenario as given, under the same policy."""
    told = []
    for name, text in (("latency_mean_s", "mean latency"), ("wait_p95_s", "wait p95")):
        was, new = given.figures[name], now.figures[name]
        if was is not None and new is not None and _matters(float(was), float(new)):
            told.append(f"{text} {seconds(float(was))} → {seconds(float(new))}")
    for name in ("out_of_memory", "evictions", "preemptions", "tasks_failed", "tasks_rejected"):
        was, new = given.figures[name], now.figures[name]
        if was != new:
            told.append(f"{name.removeprefix('tasks_').replace('_', ' ')} {was:,} → {new:,}")
    return f"Against the scenario as given, under {now.policy}: {', '.join(told)}." if told else ""


def _matters(was: float, now: float) -> bool:
    return abs(now - was) >= max(_TOLD_S, _TOLD_PART * max(was, now))


def _signed(change: float) -> str:
    return ("+" if change > 0 else "−") + seconds(abs(change))


def notes(runs: Mapping[str, PackRun], remarks: Sequence[str] = ()) -> list[str]:
    """What a person may misread: what was given up, waits that grow or did not end, what is assumed."""
    first = runs["left"]
    told = [*remarks, *(note for tell in (_lost, _growing, _open) for note in of_sides(runs, tell))]
    told += _rejected(first)
    told.append(_assumed(first))
    # the one about the load stands above
    told += [safe_text(note, 300) for note in first.scenario.notes if not note.startswith("Load ")]
    return list(dict.fromkeys(told))


def of_sides(runs: Mapping[str, PackRun], tell: Callable[[PackRun], list[str]]) -> list[str]:
    """What is to be said about each policy, with its name; once where it is the same."""
    left, right = tell(runs["left"]), tell(runs["right"])
    if left == right:
        who = "both policies" if runs["left"].policy != runs["right"].policy else runs["left"].policy
        return [f"{who}: {sentence}" for sentence in left]
    return [
        f"{runs[side].policy}: {told}"
        for side, found in zip(("left", "right"), (left, right), strict=True)
        for told in found
    ]


def out_of_memory(run: PackRun) -> list[str]:
    """How often memory ran out, when, and which models it hit; nothing where it never did."""
    count = run.figures["out_of_memory"]
    if not count:
        return []
    rows = run.breaches
    loads = int((rows.task < 0).sum())
    names, counts = np.unique(rows.model, return_counts=True)
    most = [
        f"{safe_text(str(run.model_names[m]), 60)} ({n:,})"
        for n, m in sorted(
            zip(counts.tolist(), names.tolist(), strict=True), key=lambda pair: (-pair[0], pair[1])
        )
    ]
    more = f" and {len(most) - NAMED} more" if len(most) > NAMED else ""
    what = [f"{loads:,} while a model loaded"] if loads else []
    what += [f"{len(rows) - loads:,} while tasks ran"] if len(rows) > loads else []
    times = "once" if count == 1 else f"{count:,} times"
    return [
        f"memory ran out {times} ({', '.join(what)}); it hit tasks and loads of {', '.join(most[:NAMED])}{more}."
    ]


def _lost(run: PackRun) -> list[str]:
    found, said = run.figures, []
    if found["tasks_failed"]:
        most = run.scenario.retry.most
        again = "retry" if most == 1 else "retries"
        said.append(f"{_tasks(found['tasks_failed'])} given up after {most} {again}.")
    if found["tasks_timed_out"]:
        said.append(f"{_tasks(found['tasks_timed_out'])} left at the deadline, never served.")
    if found["tasks_in_system"]:
        said.append(
            f"{_tasks(found['tasks_in_system'])} still wait or run when the run ends; latencies "
            "are those of the tasks that were done."
        )
    return said


def _tasks(count: float | int | None) -> str:
    return "1 task" if count == 1 else f"{count:,} tasks"


def _growing(run: PackRun) -> list[str]:
    """That tasks wait longer and longer, which no mean of a run says."""
    books = run.ledger
    waits = books.wait[books.counted]  # in order of arrival
    n = len(waits)
    if n < _MANY:
        return []
    first, last = float(waits[: n // 2].mean()) / SECOND, float(waits[-(n // 10) :].mean()) / SECOND
    service = float(run.problem.tasks.service_us[books.counted].mean()) / SECOND
    if last <= _GROWS * max(first, service):
        return []
    return [
        f"waits grow during the run (the first half waits {seconds(first)} on average, the last tenth "
        f"{seconds(last)}): this policy does not keep up with the load, or a burst came at the end."
    ]


def _open(run: PackRun) -> list[str]:
    count = run.figures["waits_are_lower_bounds"]
    if not count:
        return []
    return [f"{_tasks(count)} never came to run; such waits count as waited so far (at least that)."]


def _rejected(run: PackRun) -> list[str]:
    reasons = run.problem.rejected
    if not reasons:
        return []
    first = min(reasons)
    name = safe_text(str(run.model_names[run.problem.tasks.model[first]]), 60)
    return [
        f"{_tasks(len(reasons))} rejected at once, for example {first} ({name}): {safe_text(reasons[first], 200)}."
    ]


def _assumed(run: PackRun) -> str:
    """Contention and costs, which turn conclusions round."""
    contention, preemption = run.scenario.contention, run.scenario.preemption
    slows = {
        "none": "tasks on one GPU do not slow each other down",
        "sharing": "n tasks on a GPU each run at 1/n of the speed",
        "slowdown": f"n tasks on a GPU each run at 1 / (1 + {contention.beta:g} (n − 1)) of the speed",
    }[contention.model]
    stops = "nobody is interrupted"
    if preemption.when != "never":
        costs = f"saving takes {span(preemption.save_us)}, restoring {span(preemption.restore_us)}"
        least = (
            f" with {span(preemption.threshold_us)} or more to go" if preemption.when == "threshold" else ""
        )
        stops = f"tasks of lower priority{least} may be interrupted, {costs}"
    source = "Generated tasks" if run.scenario.tasks is None else "The scenario's own tasks"
    return f"{source}; contention {contention.model}: {slows}; preemption {preemption.when}: {stops}."


def summary_html(
    runs: Mapping[str, PackRun], given: Mapping[str, PackRun], remarks: Sequence[str] = ()
) -> str:
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
    told = [differences(left, right)] if left.policy != right.policy else []
    sides = ("right", "left") if left.policy != right.policy else ("right",)
    told += of_sides(runs, out_of_memory)
    told += [moved(given[side], runs[side]) for side in sides if side in given]
    never = overload(left) if offered_load(left.scenario) >= 1 else ""
    alert = f'<p class="gp-pack-alert">{html.escape(never)}</p>' if never else ""
    items = "".join(f"<li>{html.escape(note)}</li>" for note in notes(runs, remarks))
    sentences = "".join(f"<p>{html.escape(sentence)}</p>" for sentence in told if sentence)
    return (
        f'<div><span class="gp-headline">{_marked(headline(left, right))}</span>'
        f'<div class="gp-told gp-pack-told" tabindex="0">{alert}{sentences}<ul class="gp-notes">{items}</ul></div>'
        "</div>"
    )


def _marked(text: str) -> str:
    """The headline, the count of events in which memory ran out set off where there are any."""
    start = text.find("out of memory ")
    end = text.find(",", start) if start >= 0 else -1
    # thousands are separated by commas too: the end is a comma and a space
    end = text.find(", ", start) if start >= 0 else end
    counted = text[start:end] if end > start else ""
    if not counted or counted == "out of memory 0 → 0":
        return html.escape(text)
    mark = f'<strong class="gp-pack-oom">{html.escape(counted)}</strong>'
    return f"{html.escape(text[:start])}{mark}{html.escape(text[end:])}"
