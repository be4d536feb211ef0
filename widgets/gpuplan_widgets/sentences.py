"""What a pair of plans says, in words: the change, and what a control does that a chart does not explain."""

import html
from collections.abc import Iterable, Sequence

import numpy as np

from gpuplan.allocation.charts.figures import VALUE_UNIT, amount, below_bound
from gpuplan.allocation.figures import UNITS
from gpuplan.allocation.plan import Plan, shown

#: Longest job or app name inside a sentence.
_NAME = 60

#: Each figure in words.
_WORDS = {
    "utilization": "GPU time that does useful work",
    "held": "GPU time that is occupied, idle reservations included",
    "value": "value of the batch work done",
    "value_undecayed": "value of the batch work done, without decay",
    "penalty": "penalty for unserved traffic",
    "objective": "objective: value less penalty",
    "coverage": "traffic that is served",
    "shortfall_gpu_hours": "unserved traffic",
    "swaps": "swaps over the horizon",
    "jobs_placed": "batch jobs with a place",
    "jobs_finished": "batch jobs that finish",
    "jobs_unplaced": "batch jobs without a place",
    "jobs_set_aside": "batch jobs that fit nowhere, set aside",
    "jobs_late": "batch jobs that miss their deadline",
    "wait_p50_hours": "half of the jobs wait at most",
    "wait_p90_hours": "nine of ten jobs wait at most",
    "bound": "bound: no plan has a larger objective",
    "gap": "gap between objective and bound",
    "cost": "cost of all available GPUs",
    "cost_useful": "cost of GPU time that does useful work",
    "cost_idle": "cost of GPU time that does none",
}


def change(left: Plan, right: Plan) -> str:
    """Utilization and value of the left and the right plan, and what changes.

    ``"utilization 53.6 % → 87.0 %, +33.4 points; value 182.0 → 374.0 priority-weighted GPU-hours, +105 %"``
    """
    used = [float(plan.figures["utilization"] or 0.0) for plan in (left, right)]
    value = [float(plan.figures["value"] or 0.0) for plan in (left, right)]
    points = _signed(100 * (used[1] - used[0]), ".1f")
    first = f"utilization {100 * used[0]:.1f} % → {100 * used[1]:.1f} %, {points} points"
    second = f"value {value[0]:,.1f} → {value[1]:,.1f} {VALUE_UNIT}"
    if value[0] > 0:
        second += f", {_signed(100 * (value[1] / value[0] - 1), '.0f')} %"
    return f"{first}; {second}"


def bound(left: Plan, right: Plan) -> str:
    """How far both plans are at most from the best possible, for the scenario as the controls set it.

    ``"No plan of this scenario as set (penalty 8) can have an objective above 1,203.3; fifo: at most 80.7 %
    below the best possible; aware: at most 8.3 % below the best possible."``
    """
    penalty = left.scenario.objective.shortfall_penalty
    sides = dict.fromkeys(f"{one.policy}: {below_bound(one.figures)}" for one in (left, right))
    return (
        f"No plan of this scenario as set (penalty {penalty:g}) can have an objective above "
        f"{amount(left.figures['bound'], False)}; {'; '.join(sides)}."
    )


def _signed(number: float, form: str) -> str:
    """A change with its sign; what rounds to nothing has none."""
    text = format(abs(number), form)
    if float(text) == 0.0:
        return "±" + text
    return ("+" if number > 0 else "−") + text


def notes(plan: Plan) -> list[str]:
    """What the plan does on purpose and a person may take for a fault.

    Traffic that stays unserved (because a block earns more, because it costs nothing, because the swap cap or
    the cluster's size forbids more), and GPUs held ahead of a peak.
    """
    return [*_unserved(plan), *_ramps(plan)]


def _unserved(plan: Plan) -> list[str]:
    unmet = plan.demand - plan.served
    hours = plan.scenario.horizon.step_hours
    if not unmet.any():
        return []
    penalty = plan.scenario.objective.shortfall_penalty
    batch = len(plan.scenario.batch)
    free = (plan.grid == -1).sum(axis=0)
    short = unmet.sum(axis=0)
    working = ((plan.grid >= 0) & (plan.grid < batch)).sum(axis=0)
    # With as many GPUs free as are missing it is the cap (or a maximum) that holds the app back.
    capped = (short > 0) & (free >= short)
    outbid = (short > 0) & ~capped & (working > 0)
    told = []
    for steps, reason in (
        (outbid, _outbid_reason(plan, outbid, penalty)),
        (capped, _held_back(plan, unmet[:, capped].sum(axis=1) > 0)),
        ((short > 0) & ~capped & ~outbid, "all available GPUs serve traffic already"),
    ):
        amount = float(short[steps].sum()) * hours
        if amount > 0:
            who = _list(app.name for r, app in enumerate(plan.scenario.realtime) if unmet[r][steps].any())
            told.append(
                f"{plan.policy}: {amount:,.4g} GPU-hours of traffic ({who}, {_spans(steps, hours)}) stay unserved: "
                f"{reason}."
            )
    return told


def _held_back(plan: Plan, short: np.ndarray) -> str:
    """What keeps the apps that fall short from GPUs that are free."""
    if plan.reservation:
        return "GPUs are free, but the reservation is smaller than the demand"
    limits = []
    for app in (app for app, missing in zip(plan.scenario.realtime, short, strict=True) if missing):
        known = (
            (app.max_swap, f"its swap cap is {app.max_swap} per step"),
            (app.swap_budget, f"its swap budget is {app.swap_budget}"),
            (app.max_gpus, f"it may hold {app.max_gpus} at most"),
        )
        limits += [f"{_cut(app.name)}: {words}" for limit, words in known if limit is not None]
    return "GPUs are free" + (f", but limits hold it back ({'; '.join(limits[:3])})" if limits else "")


def _outbid_reason(plan: Plan, steps: np.ndarray, penalty: float) -> str:
    """Which block stands where traffic is missing, and what the two are worth."""
    if plan.reservation:
        return "the reservation is smaller than the demand and batch work holds the rest"
    if penalty == 0:
        return "at penalty 0 that costs nothing"
    present = {int(j) for j in np.unique(plan.grid[:, steps]) if 0 <= j < len(plan.scenario.batch)}
    if not present:
        return ""
    jobs = plan.scenario.batch
    movable = [j for j in present if jobs[j].running_on is None] or sorted(present)
    largest = max(sorted(movable), key=lambda j: jobs[j].gpu_hours * jobs[j].priority)
    job, gpus = jobs[largest], int(plan.size[largest])
    if job.running_on is not None:
        return f"work that was running already ({_cut(job.name)}) keeps its GPUs"
    worth = f"{gpus} GPUs × {job.hours_on(gpus):.4g} h × priority {job.priority:g}"
    if job.scaling != 1:  # it earns for its work, not for the GPUs it holds
        worth = f"{job.gpu_hours:g} GPU-hours of work × priority {job.priority:g}"
    return (
        f"although the penalty is {penalty:g}, a block outbids it; the largest there, {_cut(job.name)}, is worth "
        f"{worth} = {job.gpu_hours * job.priority:,.4g} before decay"
    )


def _ramps(plan: Plan) -> list[str]:
    if plan.reservation:
        return []
    told = []
    hours = plan.scenario.horizon.step_hours
    for r, app in enumerate(plan.scenario.realtime):
        held, demand = plan.held[r], plan.demand[r]
        if app.max_swap is None or held.size < 2:
            continue
        spare = held - np.maximum(demand, app.min_gpus)
        # Ahead of a peak: more than needed now, and the next step needs (or holds) at least as much.
        ahead = np.zeros(held.size, dtype=bool)
        ahead[:-1] = (spare[:-1] > 0) & (np.maximum(demand[1:], held[1:]) > held[:-1])
        if ahead.any():
            told.append(
                f"{plan.policy}: {_cut(app.name)} holds up to {_gpus(int(spare[ahead].max()))} more than it needs "
                f"({_spans(ahead, hours)}) to be ready for a peak, because it may acquire only "
                f"{_gpus(app.max_swap)} per step."
            )
    return told


def _gpus(count: int) -> str:
    return f"{count} GPU" if count == 1 else f"{count} GPUs"


def _spans(steps: np.ndarray, hours: float) -> str:
    """Hours of the marked steps: ``"hours 9–11 and 14–15"``, at most three stretches."""
    edges = np.flatnonzero(np.diff(np.concatenate(([0], steps.astype(np.int8), [0]))))
    stretches = [f"{a * hours:.4g}–{b * hours:.4g}" for a, b in zip(edges[::2], edges[1::2], strict=True)]
    more = f" and {len(stretches) - 3} more stretches" if len(stretches) > 3 else ""
    return "hours " + ", ".join(stretches[:3]) + more


def _list(names: Iterable[str]) -> str:
    cut = [_cut(name) for name in names]
    return ", ".join(cut[:3]) + (f" and {len(cut) - 3} more" if len(cut) > 3 else "")


def _cut(name: str) -> str:
    """A name inside a sentence: one line, not too long."""
    line = "".join(character if character.isprintable() else " " for character in name)
    return line if len(line) <= _NAME else line[: _NAME - 1] + "…"


def summary_html(left: Plan, right: Plan, extra: Sequence[str] = ()) -> str:
    """The change, the distance from the bound and the notes of both plans, as HTML in which names stay text."""
    told = list(dict.fromkeys([*extra, *notes(left), *notes(right)]))
    items = "".join(f"<li>{html.escape(note)}</li>" for note in told)
    listed = f'<ul class="gp-notes">{items}</ul>' if items else ""
    sides = f"{left.policy} → {right.policy}: "
    # A line never breaks between a number and its per cent sign, nor inside a unit.
    headline = html.escape(sides + change(left, right)).replace(" %", "&nbsp;%")
    headline = headline.replace("GPU-hours", '<span style="white-space:nowrap">GPU-hours</span>')
    return (
        f'<div><span class="gp-headline">{headline}</span>'
        f'<div class="gp-told" tabindex="0"><div class="gp-bound">{html.escape(bound(left, right))}</div>'
        f"{listed}</div></div>"
    )


def figures_html(left: Plan, right: Plan) -> str:
    """All figures of both plans in words with their units, as a table for eyes and screen readers.

    The name that a figure has in `Plan.figures` stands below its words.
    """
    rows = "".join(
        f'<tr><th scope="row">{_figure(name)}</th><td>{_cell(name, left)}</td><td>{_cell(name, right)}</td></tr>'
        for name in left.figures
    )
    head = "".join(
        f'<th scope="col">{html.escape(text)}</th>'
        for text in ("figure (unit)", f"left: {left.policy}", f"right: {right.policy}")
    )
    return f'<table class="gp-figures"><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>'


def _figure(name: str) -> str:
    """A figure in words with its unit, and its name."""
    unit = UNITS[name]
    # Shares are shown in per cent, with the sign at the number.
    unit = unit.replace("share of", "per cent of", 1) if unit.startswith("share") else unit
    words = _WORDS[name] if unit == "jobs" else f"{_WORDS[name]} ({unit})"
    return f"{html.escape(words)}<br><small>{html.escape(name)}</small>"


def _cell(name: str, plan: Plan) -> str:
    """A figure's value, its per cent sign set off as in the charts and never on another line."""
    return html.escape(shown(name, plan.figures[name])).replace("%", "&nbsp;%")
