"""Where the time of tasks goes: mean latency by part, stacked, a bar per policy and priority."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from gpuplan import theme
from gpuplan.gantt import Columns, Spec, field, mark, titles
from gpuplan.packing.charts import heads
from gpuplan.packing.charts.clock import words
from gpuplan.packing.charts.colours import FAILED, INK, PANE
from gpuplan.packing.ledger import PARTS
from gpuplan.packing.model import SECOND

if TYPE_CHECKING:
    from gpuplan.gantt.offline import OfflineChart
    from gpuplan.packing.problem import Problem
    from gpuplan.packing.run import PackRun

#: Colour (Okabe and Ito), letter and words of each part of a latency.
PART_LOOKS: dict[str, tuple[str, str, str]] = {
    "queue": ("#9A9A9A", "Q", "Q queue"),
    "load": ("#E69F00", "L", "L load"),
    "service": ("#0072B2", "R", "R service (running)"),
    "save": ("#56B4E9", "S", "S save"),
    "suspended": ("#CC79A7", "W", "W suspended (saved, waits)"),
    "restore": ("#009E73", "Re", "Re restore"),
    "retry": (FAILED, "×", "× retry (failed attempts)"),
}

#: Parts that are waiting or overhead are lined, so that service stands out without colour too.
_LINED = ("queue", "suspended")

#: Up to so many priorities have a row each; beyond that the lowest share one.
_PRIORITIES = 6

#: Pixels of a bar, between groups, for names, and for what stands at the end of a bar.
_BAR_PX, _GAP_PX, _NAMES_PX, _END_PX = 17, 12, 100, 250


def split_chart(
    runs: "Sequence[PackRun] | PackRun", *, width: int = 980, mode: theme.Mode = "light"
) -> "OfflineChart":
    """Mean latency of the tasks that were done, split into its parts, by priority and policy.

    Parameters
    ----------
    runs
        Of one scenario, under several policies.
    width
        Pixels of the whole.
    mode
        Colours for a ``"light"`` or a ``"dark"`` page.
    """
    from gpuplan.gantt.offline import offline_chart

    found = heads.listed(runs)
    names = heads.policy_labels(found)
    columns = split_columns(found, names)
    spec = split_panel("split", names, max(220, width - _NAMES_PX - 30), groups_of(found))
    spec["title"] = titles.head(
        "Where the time goes: mean latency of the tasks done (seconds)",
        [
            *heads.about(found[0].problem),
            "The parts add up to the latency, for every task. W: saved until placed again; ×: attempts that failed for "
            "memory, from their first placement.",
            *dict.fromkeys(heads.empty_words(run) or heads.aside_words(run) for run in found),
        ],
        width,
    )
    spec["params"] = [*part_params(), *theme.fill_params()]
    return offline_chart(spec, columns, mode, describe_split(found, names))


def groups_of(runs: "Sequence[PackRun]") -> list[str]:
    """Rows of the chart: all tasks, then priorities, the most important first."""
    return groups_of_problem(runs[0].problem)


def groups_of_problem(problem: "Problem") -> list[str]:
    """The same for the tasks of a problem."""
    return ["all tasks", *(label for label, _, _ in _priorities(problem))]


def _priorities(problem: "Problem") -> list[tuple[str, int, int]]:
    """Label, lowest and highest of each row of priorities; none where all are equal."""
    values = np.unique(problem.tasks.priority)[::-1].tolist()
    if len(values) < 2:
        return []
    found = [(f"priority {value}", value, value) for value in values[:_PRIORITIES]]
    if len(values) > _PRIORITIES:
        low, high = values[-1], values[_PRIORITIES - 1]
        found[-1] = (f"priority {low} to {high}", low, high)
    return found


def split_columns(
    runs: "Sequence[PackRun]", names: Sequence[str], said: Sequence[str] = ()
) -> dict[str, Columns]:
    """Data sets ``split`` (a row per group, policy and part, stacked) and ``totals`` (a row per group and policy).

    `said` are names of the policies for people, where `names` are not.
    """
    parts: Columns = {key: [] for key in ("group", "policy", "part", "mean", "x", "x2")}
    totals: Columns = {key: [] for key in ("group", "policy", "x", "says")}
    groups = _priorities(runs[0].problem)
    for run, name, label_of in zip(runs, names, said or names, strict=True):
        books, priority = run.ledger, run.problem.tasks.priority
        masks = [("all tasks", books.done)]
        masks += [(label, books.done & (priority >= a) & (priority <= b)) for label, a, b in groups]
        for label, mask in masks:
            n, at = int(mask.sum()), 0
            for part, values in zip(PARTS, books.parts, strict=True):
                mine = int(values[mask].sum())
                parts["group"].append(label)
                parts["policy"].append(name)
                parts["part"].append(PART_LOOKS[part][2])
                parts["mean"].append(round(mine / n / SECOND, 5) if n else 0)
                parts["x"].append(round(at / n / SECOND, 5) if n else 0)
                at += mine
                parts["x2"].append(round(at / n / SECOND, 5) if n else 0)
            totals["group"].append(label)
            totals["policy"].append(name)
            totals["x"].append(round(at / n / SECOND, 5) if n else 0)
            end = f"{words(at / n / SECOND)} ({n:,} tasks)" if n else "none done"
            totals["says"].append(f"{label_of}: {end}")
    return {"split": parts, "totals": totals}


def split_height(groups: int, policies: int) -> int:
    """Pixels of the panel."""
    return max(40, groups * (_GAP_PX + _BAR_PX * policies))


def split_panel(
    data: str, names: Sequence[str], width: int, groups: Sequence[str], page_width: int = 0
) -> Spec:
    """Stacked bars over the data sets of `split_columns`, from zero; `part_params` must stand at the top."""
    words_of = [look[2] for look in PART_LOOKS.values()]
    fills = [{"expr": f"part_{part}"} for part in PART_LOOKS]
    legend = {
        **{"title": None, "orient": "top", "direction": "horizontal", "symbolType": "square"},
        **{
            "columns": max(1, min(7, (page_width or width) // 190)),
            "symbolSize": 170,
            "symbolStrokeWidth": 0,
        },
        **{"labelLimit": 180, "rowPadding": 3, "offset": 8},
    }
    fill = field("part", "nominal", scale={"domain": words_of, "range": fills}, legend=legend)
    axis = {"labelLimit": _NAMES_PX - 10, "ticks": False, "domain": False}
    rows = {
        "y": field(
            "group", "nominal", sort=None, title=None, axis=axis,
            scale={"domain": list(groups), "paddingInner": 0.16},
        ),
        "yOffset": field("policy", "nominal", sort=None, scale={"domain": list(names)}),
    }  # fmt: skip
    # Room to the right for what stands at the end of the longest bar.
    scale = {"zero": True, "nice": False, "range": [0, max(80, width - _END_PX)]}
    x = field("x", title="mean latency (seconds)", scale=scale, axis={"format": "~r", "tickCount": 6})
    bar = {"type": "bar", "stroke": {"expr": PANE}, "strokeWidth": 0.6}
    tips = [field(name, "nominal") for name in ("group", "policy", "part")]
    tips.append(field("mean", title="mean (s)", format=",.3f"))
    codes = theme.lookup({look[2]: look[1] for look in PART_LOOKS.values()}, "datum.part")
    inks = theme.lookup(
        {
            look[2]: "#FFFFFF" if part in ("service", "retry") else "#111111"
            for part, look in PART_LOOKS.items()
        },
        "datum.part",
    )
    letter = {
        "type": "text",
        "fontSize": 10,
        "fontWeight": "bold",
        "fill": {"expr": inks},
        "text": {"expr": codes},
    }
    wide = f"datum.x2 - datum.x > datum.most * 16 / {max(80, width - _END_PX)}"
    most = {"joinaggregate": [{"op": "max", "field": "x2", "as": "most"}]}
    end = {"type": "text", "align": "left", "dx": 5, "fontSize": 11, "fill": {"expr": INK}, "clip": False}
    return {
        "width": width,
        "height": split_height(len(groups), len(names)),
        "layer": [
            mark(data, bar, {"x": x, "x2": {"field": "x2"}, **rows, "fill": fill, "tooltip": tips}),
            mark(
                data,
                letter,
                {"x": x | {"field": "mid"}, **rows},
                transform=[most, {"filter": wide}, {"calculate": "(datum.x + datum.x2) / 2", "as": "mid"}],
            ),
            mark("totals", end | {"limit": _END_PX}, {"x": x, **rows, "text": field("says", "nominal")}),
        ],
    }


def part_params() -> list[Spec]:
    """Top-level parameters ``part_<name>``: the fill of each part, lined where it is waiting."""
    params = []
    for part, (colour, _, _) in PART_LOOKS.items():
        fill = f"'{colour}'"
        if part in _LINED:
            stops = [(0.0, colour)]
            for first, last in ((0.18, 0.28), (0.72, 0.82)):
                stops += [(first, colour), (first, "#FFFFFF"), (last, "#FFFFFF"), (last, colour)]
            told = ",".join(f"{{offset:{at},color:'{tone}'}}" for at, tone in [*stops, (1.0, colour)])
            fill = f"{{gradient:'linear',x1:0,y1:0,x2:0,y2:1,stops:[{told}]}}"
        params.append({"name": f"part_{part}", "expr": fill})
    return params


def describe_split(runs: "Sequence[PackRun]", names: Sequence[str]) -> str:
    """The split in words."""
    said = [f"Mean latency by part on {heads.node_words(runs[0].scenario)}."]
    said.append(f"{heads.contention_words(runs[0].scenario)}.")
    for run, name in zip(runs, names, strict=True):
        found = run.figures
        if found["latency_mean_s"] is None:
            said.append(f"{name}: none done.")
            continue
        parts = ", ".join(f"{part} {words(float(found[f'{part}_mean_s'] or 0))}" for part in PARTS)
        said.append(f"{name}: {words(found['latency_mean_s'])} = {parts}.")
    return " ".join(said)
