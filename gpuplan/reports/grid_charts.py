"""The charts of an interactive page in which one figure stands over both axes, a mark for every computed point."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gpuplan import theme
from gpuplan.gantt import SCHEMA, safe_text

if TYPE_CHECKING:
    from gpuplan.gantt import Spec
    from gpuplan.reports.grid import Grid
    from gpuplan.reports.grid_axes import Axis

#: Pixels of a panel by layout, and its height; the layouts are those of `gpuplan.reports.grid_pictures`.
_WIDTHS, _HEIGHT = {"wide": 410, "medium": 250, "narrow": 232}, 240

_SHAPES = (
    *("circle", "square", "triangle-up", "diamond"),
    *("cross", "triangle-down", "triangle-left", "triangle-right"),
)

#: Axes whose stops are multiples of each other.
_LOGARITHMIC = ("windows",)


def figure_charts(found: Grid) -> dict[str, Spec]:
    """Vega-Lite by layout, over the data sets ``over_0`` and ``over_1``."""
    names = [safe_text(name) for name in found.choices.policies]
    made = {}
    for layout, width in _WIDTHS.items():
        panels = [_panel(f"over_{number}", axis, names, width) for number, axis in enumerate(found.axes)]
        made[layout] = {"$schema": SCHEMA, "vconcat" if layout == "narrow" else "hconcat": panels}
    return made


def _panel(data: str, axis: Axis, names: list[str], width: int) -> dict[str, Any]:
    looks = [theme.POLICY_LOOKS[k % len(theme.POLICY_LOOKS)][0] for k in range(len(names))]
    shapes = [_SHAPES[k % len(_SHAPES)] for k in range(len(names))]
    legend = {"orient": "top", "title": None, "columns": max(1, width // 110)}

    def by_policy(looks_of: list[str]) -> dict[str, Any]:
        scale = {"domain": names, "range": looks_of}
        return {"field": "policy", "type": "nominal", "scale": scale, "legend": legend}

    kind = {"type": "log"} if axis.name in _LOGARITHMIC else {"type": "linear", "zero": False}
    scale = {**kind, "nice": False, "padding": 12}
    x = {"field": "x", "type": "quantitative", "title": axis.short, "scale": scale}
    x["axis"] = {"format": "~r", "tickCount": 8, "grid": False, "labelOverlap": "parity"}
    return {
        "data": {"name": data},
        "width": width,
        "height": _HEIGHT,
        "mark": {"type": "point", "filled": True, "opacity": 0.85, "cursor": "pointer"},
        "encoding": {
            "x": x,
            "y": {
                "field": "value",
                "type": "quantitative",
                "title": None,
                "scale": {"zero": False, "nice": True},
                "axis": {"format": "~r", "tickCount": 6},
            },
            "color": by_policy(looks),
            "shape": by_policy(shapes),
            "size": {"condition": {"test": "datum.here", "value": 230}, "value": 45},
            "stroke": {"condition": {"test": "datum.here", "value": "#777777"}, "value": None},
            "tooltip": [
                {"field": "policy", "type": "nominal"},
                {"field": "where", "type": "nominal", "title": "at"},
                {"field": "says", "type": "nominal", "title": "figure"},
            ],
        },
    }
