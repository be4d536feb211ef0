"""The article's claims as charts, each with a caption that says what the claim needs in order to hold."""

import math
from typing import TYPE_CHECKING

from gpuplan import theme
from gpuplan.gantt import Columns, Spec, field, mark, titles
from gpuplan.packing.charts import claims_words as words
from gpuplan.packing.charts.claims_memory import margin_chart, stair_chart
from gpuplan.packing.charts.claims_panels import (
    COLOURS,
    columns_of,
    crossings,
    finished,
    line_panel,
    map_panel,
)
from gpuplan.packing.studies import (
    PUBLISHED_SAVING,
    ROUND_ROBINS,
    MixStudy,
    ThresholdStudy,
    WaitStudy,
)

if TYPE_CHECKING:
    import pandas as pd

    from gpuplan.gantt.offline import OfflineChart

__all__ = ["margin_chart", "mix_chart", "stair_chart", "threshold_chart", "wait_map"]

_WORKLOADS = {"queueing": "nothing to load", "models": "8 models"}
_AGAINST = {"round-robin": "blind round-robin", "round-robin-skip": "round-robin that skips"}


def wait_map(found: WaitStudy, *, width: int = 980, mode: theme.Mode = "light") -> "OfflineChart":
    """Wait saved by packing over load and length of the burst, with the contour of the published 23 %.

    Parameters
    ----------
    found
        From `gpuplan.packing.studies.wait_study`.
    width
        Pixels of the whole.
    mode
        Colours for a ``"light"`` or a ``"dark"`` page.
    """
    panels: list[Spec] = []
    sets: dict[str, Columns] = {}
    said, nothing = [], []
    for against in ROUND_ROBINS:
        saved = found.saved(against)
        for workload, part in saved.groupby("workload", sort=False):
            name = f"map_{len(panels)}"
            title = f"against {_AGAINST[against]}, {_WORKLOADS[str(workload)]}"
            said.append(
                f"{title}: {part['saved_percent'].min():.1f} % to {part['saved_percent'].max():.1f} %"
            )
            if (part["saved_percent"] == 0).all():  # a map without a difference: said, not drawn
                nothing.append(title)
                continue
            cells, lines = _map_data(part)
            sets |= {name: cells, f"{name}_line": lines}
            loads, bursts = (sorted(set(part[key])) for key in ("load", "tasks"))
            labels = [f"{x:g}" for x in loads], [f"{x:,}" for x in bursts]
            panels.append(map_panel(name, title, *labels, (width - 180) // 2))
    notes = words.of_waits(found, nothing)
    return finished(panels, 2, "How much wait does packing save?", notes, width, sets, mode, "; ".join(said))


def _map_data(part: "pd.DataFrame") -> tuple[Columns, Columns]:
    """Cells of a map, and the segments of its contour."""
    wide = part.pivot(index="tasks", columns="load", values="saved_percent").sort_index()
    wide = wide[sorted(wide.columns)]
    values = wide.to_numpy(float)
    bounds = part.set_index(["tasks", "load"])[["low", "high"]].to_dict("index")
    cells: Columns = {key: [] for key in ("x", "y", "value", "text", "says")}
    for y, tasks in enumerate(wide.index):
        for x, load in enumerate(wide.columns):
            value = float(values[y, x])
            low, high = (float(bounds[tasks, load][end]) for end in ("low", "high"))
            between = "" if math.isnan(low) else f" ({low:.1f} to {high:.1f})"
            cells["x"].append(x)
            cells["y"].append(y)
            cells["value"].append(round(value, 2))
            cells["text"].append(f"{value:.0f}".replace("-0", "0"))
            cells["says"].append(f"{value:.1f} %{between} of the wait, load {load:g}, {tasks:,} tasks")
    lines = crossings(values, PUBLISHED_SAVING)
    names = ("x", "y", "x2", "y2")
    return cells, {name: [round(line[k], 3) for line in lines] for k, name in enumerate(names)}


def threshold_chart(found: ThresholdStudy, *, width: int = 980, mode: theme.Mode = "light") -> "OfflineChart":
    """Wait of urgent tasks, latency of the others and their sum over the threshold, the cost of a save marked.

    Dotted lines stand at the cost of a save; diamonds at the right edge are the same without preemption.
    """
    figures = {
        "urgent_wait_s": "urgent: wait (s)",
        "other_latency_s": "others: latency (s)",
        "sum_s": "sum of both (s)",
    }
    costs = list(dict.fromkeys(found.table["cost_s"]))
    lines = [f"a save costs {cost:g} s" for cost in costs]
    named = dict(zip(costs, lines, strict=True))
    finite = found.table.loc[found.table["threshold_s"] < math.inf, "threshold_s"].max()
    scale_x = {"type": "sqrt", "zero": True, "domain": [0, 1.3 * finite]}
    colour = {"domain": lines, "range": list(COLOURS[: len(lines)])}
    sets: dict[str, Columns] = {"costs": {"line": lines, "x": costs}}
    panels, said = [], []
    for gpus in dict.fromkeys(found.table["gpus"]):
        for name, title in figures.items():
            means = found.means(name)
            mine = means[means["gpus"] == gpus].assign(line=lambda t: t["cost_s"].map(named))
            data = f"{name}_{gpus}"
            sets[data] = columns_of(mine, "line", "threshold_s", name)
            never = mine[mine["threshold_s"] == math.inf]
            sets[f"{data}_never"] = {
                "line": never["line"].tolist(),
                "x": [1.25 * finite] * len(never),
                "mean": [round(float(value), 3) for value in never[name]],
            }
            panels.append(_threshold_panel(data, lines, title, gpus, scale_x, colour, (width - 190) // 3))
        best = found.best("urgent_wait_s")
        for row in best[best["gpus"] == gpus].itertuples():
            at = "without preemption" if math.isinf(row.threshold_s) else f"at {row.threshold_s:g} s"
            of = f"{_gpus(int(row.gpus))}, a save of {row.cost_s:g} s"
            said.append(f"{of}: least wait of urgent tasks {row.urgent_wait_s:.1f} s {at}")
    notes = words.of_thresholds(found)
    return finished(
        panels,
        3,
        "When is it worth to interrupt somebody?",
        notes,
        width,
        sets,
        mode,
        "; ".join(said),
    )


def _threshold_panel(
    data: str, lines: list[str], title: str, gpus: int, scale_x: Spec, colour: Spec, width: int
) -> Spec:
    x = field("x", scale=scale_x | {"nice": False})
    stroke = field("line", "nominal", scale=colour, legend=None)
    diamonds = {"type": "point", "shape": "diamond", "filled": True, "size": 80, "opacity": 1}
    return line_panel(
        data,
        lines,
        f"{_gpus(gpus)}: {title}",
        "threshold (s)",
        width,
        scale_x=scale_x,
        ticks=(0, 1, 2, 5, 10, 20, 30),
        extra=[
            mark(
                "costs",
                {"type": "rule", "strokeWidth": 1.3, "strokeDash": [2, 3]},
                {"x": x, "stroke": stroke},
            ),
            mark(f"{data}_never", diamonds, {"x": x, "y": field("mean"), "fill": stroke}),
        ],
    )


def _gpus(count: int) -> str:
    return "1 GPU" if count == 1 else f"{count} GPUs"


def mix_chart(found: MixStudy, *, width: int = 980, mode: theme.Mode = "light") -> "OfflineChart":
    """Mean wait by placement, models of one size beside small and large ones of the same sum; a panel per load."""
    means = found.means()
    policies = list(dict.fromkeys(means["policy"]))
    mixes = {"uniform": "uniform: 12 of 20 GiB", "mixed": "mixed: 8, 8, 44 GiB in turn"}
    sets: dict[str, Columns] = {}
    panels, said = [], []
    for number, load in enumerate(dict.fromkeys(means["load"])):
        part = means[means["load"] == load]
        sets[f"mix_{number}"] = {
            "policy": part["policy"].tolist(),
            "mix": [mixes[name] for name in part["mix"]],
            **{
                key: [round(max(0.0, float(value)), 3) for value in part[column]]
                for key, column in (("mean", "wait_s"), ("low", "low"), ("high", "high"))
            },
        }
        panels.append(
            _mix_panel(f"mix_{number}", policies, list(mixes.values()), f"load {load:g}", (width - 260) // 2)
        )
        said += [
            f"load {load:g}, {row.mix}, {row.policy}: {row.wait_s:.2f} ({max(0, row.low):.2f} to {row.high:.2f})"
            for row in part.itertuples()
        ]
    notes = words.of_mixes(found)
    return finished(
        panels, 2, "One size, or small and large models?", notes, width, sets, mode, "; ".join(said)
    )


def _mix_panel(data: str, policies: list[str], mixes: list[str], title: str, width: int) -> Spec:
    y = field("policy", "nominal", sort=policies, title=None, axis={"labelLimit": 150})
    off = field("mix", "nominal", scale={"domain": mixes})
    colours = {"domain": mixes, "range": [COLOURS[0], COLOURS[1]]}
    legend = {"title": None, "orient": "bottom"}
    x = field("mean", title="mean wait (s)", scale={"zero": True})
    ends = {"x": x | {"field": "low"}, "x2": {"field": "high"}, "y": y, "yOffset": off}
    fill = field("mix", "nominal", scale=colours, legend=legend)
    return {
        "width": width,
        "height": 30 * len(policies),
        "title": titles.panel_title(title, width),
        "layer": [
            mark(
                data,
                {"type": "rule", "strokeWidth": 2},
                {**ends, "stroke": field("mix", "nominal", scale=colours, legend=legend)},
            ),
            mark(
                data,
                {"type": "circle", "size": 70, "opacity": 1},
                {"x": x, "y": y, "yOffset": off, "fill": fill},
            ),
        ],
    }
