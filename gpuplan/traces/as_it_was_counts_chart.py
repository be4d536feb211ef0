"""GPUs in use by team as they were counted, above what runs under policies, with what each team was owed and given."""

from typing import TYPE_CHECKING, Any

import numpy as np

from gpuplan import theme
from gpuplan.fairshare.charts import bars, gantt, heads
from gpuplan.fairshare.charts.account import Account, account, stack_columns
from gpuplan.fairshare.charts.clock import Clock
from gpuplan.fairshare.charts.colours import Palette, palette_of
from gpuplan.fairshare.model import Int64
from gpuplan.fairshare.problem import compile_problem
from gpuplan.gantt import Columns, Spec, field, mark, titles
from gpuplan.traces.as_it_was import AS_IT_WAS
from gpuplan.traces.as_it_was_counts import described

if TYPE_CHECKING:
    from gpuplan.gantt.offline import OfflineChart
    from gpuplan.traces.as_it_was_counts import CountsAsItWas, CountsCompared

#: Bins of an area, and its pixels.
_BINS, _AREA_PX = 240, 120

#: Pixels beside bars for names.
_NAMES_PX = 200

INK = "dark ? '#F2F2F2' : '#1A1A1A'"


def counts_chart(
    compared: "CountsCompared", *, width: int = 980, mode: theme.Mode = "light"
) -> "OfflineChart":
    """Areas of GPUs in use by team, the counts on top, and delivered / owed of each team.

    Parameters
    ----------
    compared
        Counts and at least one run, of one scenario.
    width
        Pixels of the whole.
    mode
        Colours for a ``"light"`` or a ``"dark"`` page.
    """
    from gpuplan.gantt.offline import offline_chart

    record = compared.record
    problem = compile_problem(record.scenario)
    palette = palette_of(problem)
    clock = Clock(max([int(record.by_hour.edges[-1]), *(run.end_s for run in compared.runs.values())]))
    names = list(compared.results)
    inner = max(160, width - gantt.BESIDE)
    found = {name: account(run, palette, _BINS) for name, run in compared.runs.items()}
    of_hours, known_s = _binned(record)
    found[AS_IT_WAS] = _grouped(of_hours, palette)
    sets: dict[str, Columns] = {}
    panels = []
    for k, name in enumerate(names):
        said = described(compared.results[name])
        sets[f"area_{k}"] = stack_columns(found[name], clock)
        if name == AS_IT_WAS:
            _show_gaps(sets[f"area_{k}"], known_s, found[name].length_s)
        sets[f"head_{k}"] = {"gpus": [int(problem.gpus)], "x": [0], "x2": [round(clock.span, 5)]}
        panels.append(_area(k, f"{name}: {said}", palette, clock, inner, last=k == len(names) - 1))
    panels[0]["layer"].append(_legend(palette, width))
    sets["delivered"] = _delivered(compared, palette, found)
    height = bars.bars_height(len(palette), len(names))
    spec: Spec = {
        "vconcat": [
            {"concat": panels, "columns": 1, "spacing": 14, "resolve": {"scale": {"fill": "shared"}}},
            bars.share_panel(
                "delivered",
                names,
                max(200, width - _NAMES_PX),
                height,
                "delivered / owed over the whole time",
            ),
        ],
        "spacing": 18,
        "resolve": {"scale": dict.fromkeys(("fill", "yOffset"), "independent")},
        "title": titles.head(
            "What was done, as it was counted, and what each policy makes of the same demand",
            [
                heads.cluster_words(problem),
                heads.workload_words(problem),
                *record.notes,
                "Areas: GPUs in use by team; pale: work without a minimum run time; dashed: GPUs installed.",
            ],
            width,
        ),
        "params": theme.fill_params(),
    }
    words = " ".join(f"{name}: {described(result)}." for name, result in compared.results.items())
    return offline_chart(
        spec, sets, mode, f"{heads.cluster_words(problem)}. {words} {' '.join(record.notes)}"
    )


def _grouped(by_hour: Account, palette: Palette) -> Account:
    """The account of counts by group of teams."""
    if len(palette) == len(by_hour.allocated):
        return by_hour

    def summed(values: Any) -> Any:
        into = np.zeros((len(palette), *values.shape[1:]), values.dtype)
        np.add.at(into, palette.group, values)
        return into

    rows = (by_hour.allocated, by_hour.unallocated, by_hour.owed, by_hour.entitled)
    return Account(by_hour.edges, *(summed(row) for row in rows))


def _binned(record: "CountsAsItWas") -> tuple[Account, Int64]:
    """The account of counts in at most `_BINS` bins of whole hours, and the seconds of each that are known."""
    hours = record.by_hour
    each = -(-len(record.known_s) // _BINS)
    first = np.arange(0, len(record.known_s), each)
    ran, rest, owed = (
        np.add.reduceat(row, first, axis=1) for row in (hours.allocated, hours.unallocated, hours.owed)
    )
    edges = np.append(hours.edges[first], hours.edges[-1])
    return Account(edges, ran, rest, owed, hours.entitled), np.add.reduceat(record.known_s, first)


def _show_gaps(columns: Columns, known_s: Int64, length_s: Int64) -> None:
    """Means over what is known of each bin; nothing where nothing is (the last row ends the steps)."""
    known, length = known_s.tolist(), length_s.tolist()
    scale = [whole / part if part else None for whole, part in zip(length, known, strict=True)]
    for name, values in columns.items():
        if name[0] in "cu":
            of = [*scale, scale[-1]]
            columns[name] = [
                None if factor is None else round(value * factor, 1)
                for value, factor in zip(values, of, strict=True)
            ]


def _delivered(compared: "CountsCompared", palette: Palette, found: dict[str, Account]) -> Columns:
    """Rows as of `gpuplan.fairshare.charts.bars.delivered_columns`, the counts first."""
    runs = compared.runs
    columns: Columns = {key: [] for key in ("policy", "team", "owed", "delivered", "share", "says")}
    mine = found[AS_IT_WAS]
    for g, label in enumerate(palette.labels):
        owed, got = float(mine.owed[g].sum()) / 3600, float(mine.allocated[g].sum()) / 3600
        share = got / owed if owed else None
        columns["policy"].append(AS_IT_WAS)
        columns["team"].append(label)
        columns["owed"].append(round(owed, 2))
        columns["delivered"].append(round(got, 2))
        columns["share"].append(None if share is None else round(share, 4))
        columns["says"].append("nothing owed" if share is None else f"{share:.2f}")
    for name, cells in bars.delivered_columns(list(runs.values()), list(runs)).items():
        columns[name] += cells
    return columns


def _area(k: int, title: str, palette: Palette, clock: Clock, width: int, *, last: bool) -> Spec:
    """Stacked areas of GPUs in use, with a line at the GPUs installed."""
    data, head = f"area_{k}", f"head_{k}"
    x = field("x", scale={"nice": False, "zero": False}, axis=clock.axis(title=last, labels=last))
    axis = {"title": "GPUs", "tickCount": 4, "minExtent": 38, "maxExtent": 38, "format": ",~r"}

    def y(name: str) -> Spec:
        return field(name, scale={"zero": True, "nice": False}, axis=axis)

    layers = [mark(head, {"type": "rect", "fill": "transparent"}, {"x": x, "x2": {"field": "x2"}})]
    below: Spec = {"datum": 0}
    for letter, opacity in (("c", 1.0), ("u", 0.4)):
        for g, colour in enumerate(palette.colours):
            area = {"type": "area", "interpolate": "step-after", "fill": colour, "fillOpacity": opacity}
            layers.append(mark(data, area, {"x": x, "y": y(f"{letter}{g}"), "y2": below}))
            below = {"field": f"{letter}{g}"}
    rule = {"type": "rule", "stroke": {"expr": INK}, "strokeDash": [5, 3]}
    layers.append(mark(head, rule, {"y": y("gpus")}))
    return {"width": width, "height": _AREA_PX, "title": titles.panel_title(title, width), "layer": layers}


def _legend(palette: Palette, page_width: int) -> Spec:
    """Marks that nobody sees, for the legend of the teams."""
    fill = field("team", "nominal", scale=gantt.team_scale(palette), legend=gantt.team_legend(page_width))
    return {
        "data": {"values": [{"team": label} for label in palette.labels]},
        "mark": {"type": "point", "opacity": 0, "strokeWidth": 0},
        "encoding": {"fill": fill},
    }
