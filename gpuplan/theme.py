"""How charts look: kinds of work by colour, pattern and letter; a light and a dark configuration.

The colours are those of Okabe and Ito (https://jfly.uni-koeln.de/color/), which stay apart for people with
a colour-vision deficiency. Every kind also has a pattern and a letter, so that nothing rests on colour alone.
Vega has no portable pattern fill, so a pattern is a gradient with hard stops: one mark per bar, no overlay.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

Mode = Literal["light", "dark"]

#: Page behind a chart that stands alone; a live page brings its own.
PAPER: dict[Mode, str] = {"light": "#FFFFFF", "dark": "#111111"}

#: Colours of policies side by side, each with dashes so that nothing rests on colour alone.
POLICY_LOOKS: tuple[tuple[str, list[int]], ...] = (
    ("#0072B2", [1, 0]),
    ("#E69F00", [6, 3]),
    ("#009E73", [2, 2]),
    ("#CC79A7", [8, 3, 2, 3]),
    ("#D55E00", [10, 3]),
    ("#56B4E9", [4, 2]),
    ("#8C6D5A", [1, 2]),
    ("#9A9A9A", [12, 2, 2, 2]),
)

#: Fonts that are on the machine already; nothing is fetched.
FONT = "DejaVu Sans, Arial, sans-serif"

#: Colour of each kind; also the order of legends and of stacks, from the bottom.
KIND_COLOURS: dict[str, str] = {
    "training": "#0072B2",
    "batch-inference": "#009E73",
    "quantization": "#CC79A7",
    "real-time": "#E69F00",
    "reserved-idle": "#FBE3B5",
    "unmet": "#D55E00",
    "unavailable": "#B0B0B0",
}

#: What differs on a dark page, where a pale reservation would outshine the work.
DARK_COLOURS: dict[str, str] = {"reserved-idle": "#6B5626"}

#: Letter of each kind, written into bars where it fits (empty: no letter).
KIND_CODES: dict[str, str] = {
    "training": "T",
    "batch-inference": "B",
    "quantization": "Q",
    "real-time": "R",
    "reserved-idle": "idle",
    "unmet": "",
    "unavailable": "",
}

#: What the legend says: the letter and the pattern beside the name.
KIND_LABELS: dict[str, str] = {
    "training": "T training (plain)",
    "batch-inference": "B batch inference (upright bands)",
    "quantization": "Q quantization (lower half pale)",
    "real-time": "R real-time, used (middle band)",
    "reserved-idle": "reserved but idle (lined)",
    "unmet": "unmet demand (strip on top)",
    "unavailable": "unavailable (grey, upright lines)",
}

#: Ink of names in bars, and the tone behind the letters that keeps patterns and borders from striking them through.
INKS: dict[str, str] = {kind: "#FFFFFF" if kind == "training" else "#111111" for kind in KIND_COLOURS}
HALOS: dict[str, str] = {
    "training": "#0072B2",
    "batch-inference": "#8FD3BF",
    "quantization": "#F3D3E4",
    "real-time": "#FFF3D6",
    "reserved-idle": "#FBE3B5",
}

DARK_INKS: dict[str, str] = {"reserved-idle": "#F2F2F2"}
DARK_HALOS: dict[str, str] = dict(DARK_COLOURS)

#: Name of the top-level parameter that is true on a dark page.
DARK = "dark"

#: The last entry of the legend, which is no kind of work: the dashed lines between nodes.
NODE_BORDER = "node-border"
NODE_BORDER_LABEL = "border between nodes (dashed)"

#: Bars of a comparison: the first policy, against which changes are counted, and the others.
FIRST_COLOUR, OTHER_COLOUR = "#9A9A9A", "#56B4E9"


@dataclass(frozen=True, slots=True)
class Bands:
    """Bands of `tint` over a fill, each from `first` to `last` in shares of the bar.

    They repeat along the time axis where they are `upright`, from top to bottom otherwise. Slanted ones
    are no choice: on a canvas Vega draws them at the origin of the chart instead of in the bar.
    """

    tint: str
    upright: bool
    edges: tuple[tuple[float, float], ...]


def _regular(count: int, share: float) -> tuple[tuple[float, float], ...]:
    """Edges of `count` equally spaced bands that cover `share` of the bar together."""
    half = share / count / 2
    middles = ((number + 0.5) / count for number in range(count))
    return tuple((round(middle - half, 4), round(middle + half, 4)) for middle in middles)


_BANDS: dict[str, Bands] = {
    "batch-inference": Bands("#8FD3BF", upright=True, edges=_regular(6, 0.3)),
    "quantization": Bands("#F3D3E4", upright=False, edges=((0.55, 1.0),)),
    "real-time": Bands("#FFF3D6", upright=False, edges=((0.42, 0.58),)),
    "reserved-idle": Bands("#B87D00", upright=False, edges=_regular(3, 0.15)),
    # Areas are taller than bars, so they take more lines.
    "reserved-idle-area": Bands("#B87D00", upright=False, edges=_regular(14, 0.2)),
    "unavailable": Bands("#5E5E5E", upright=True, edges=_regular(40, 0.4)),
}

# In the legend only: a line on nothing, in a grey that both pages bear.
_BORDER_LINE = Bands("#7A7A7A", upright=False, edges=((0.42, 0.58),))


def fill(kind: str, mode: Mode = "light") -> str | dict[str, Any]:
    """Fill of a kind: a colour, or a Vega gradient with hard stops that shows its pattern.

    ``"reserved-idle-area"`` is the pattern of idle GPUs for an area that is taller than a bar.
    """
    plain = kind.removesuffix("-area")
    colour = (KIND_COLOURS | DARK_COLOURS if mode == "dark" else KIND_COLOURS)[plain]
    bands = _BANDS.get(kind)
    return colour if bands is None else _gradient(colour, bands)


def _gradient(colour: str, bands: Bands) -> dict[str, Any]:
    stops: list[dict[str, Any]] = [{"offset": 0, "color": colour}]
    for first, last in bands.edges:
        edges = ((first, colour), (first, bands.tint), (last, bands.tint), (last, colour))
        stops += [{"offset": offset, "color": tone} for offset, tone in edges]
    stops.append({"offset": 1, "color": bands.tint if bands.edges[-1][1] == 1 else colour})
    across = int(bands.upright)
    return {"gradient": "linear", "x1": 0, "y1": 0, "x2": across, "y2": 1 - across, "stops": stops}


def fill_params() -> list[dict[str, Any]]:
    """Top-level parameters of a spec: `DARK`, and one per pattern that `fill_of` and `kind_scale` refer to."""
    fills = {kind: _by_mode(_expression(fill(kind)), _expression(fill(kind, "dark"))) for kind in _BANDS}
    fills[NODE_BORDER] = _expression(_gradient("transparent", _BORDER_LINE))
    patterns = [{"name": _param(kind), "expr": found} for kind, found in fills.items()]
    return [{"name": DARK, "value": False}, *patterns]


def in_mode(params: Sequence[dict[str, Any]], mode: Mode) -> list[dict[str, Any]]:
    """Return the parameters of a spec for a page of a mode; those without `fill_params` stay as they are."""
    known = {"name": DARK, "value": mode == "dark"}
    return [known if param["name"] == DARK else param for param in params]


def ink_of(kind: str) -> str:
    """Vega expression for the ink of a name in a bar of a kind (itself an expression)."""
    return _by_mode(lookup(INKS, kind), lookup(INKS | DARK_INKS, kind))


def halo_of(kind: str) -> str:
    """Vega expression for the tone behind a name in a bar of a kind (itself an expression); none without one."""
    return _by_mode(lookup(HALOS, kind), lookup(HALOS | DARK_HALOS, kind))


def _by_mode(light: str, dark: str) -> str:
    return light if light == dark else f"({DARK} ? {dark} : {light})"


def fill_of(kind: str) -> str | dict[str, str]:
    """Fill of a kind inside a spec that has `fill_params`."""
    return {"expr": _param(kind)} if kind in _BANDS else KIND_COLOURS[kind]


def _param(kind: str) -> str:
    return "fill_" + kind.replace("-", "_")


def kind_scale() -> dict[str, Any]:
    """Scale from kind to fill, the same in every chart (the pattern shows in the legend too)."""
    fills = {kind: fill_of(kind) for kind in KIND_COLOURS} | {NODE_BORDER: {"expr": _param(NODE_BORDER)}}
    return {"domain": list(fills), "range": list(fills.values())}


def area_scale(kinds: Sequence[str]) -> dict[str, Any]:
    """Scale of areas: plain colours, as a pattern stretched over an area would read as gaps; idle is lined."""
    fills = {kind: KIND_COLOURS[kind] for kind in kinds} | {"reserved-idle": fill_of("reserved-idle-area")}
    return {"domain": list(kinds), "range": [fills[kind] for kind in kinds]}


def kind_legend(columns: int = 4) -> dict[str, Any]:
    """Legend of the kinds in words, above the charts."""
    return {
        "title": None,
        "orient": "top",
        "direction": "horizontal",
        "columns": columns,
        "symbolType": "square",
        "symbolSize": 260,
        "labelExpr": lookup(KIND_LABELS | {NODE_BORDER: NODE_BORDER_LABEL}, "datum.label"),
        "labelLimit": 320,
    }


def lookup(table: dict[str, str], key: str) -> str:
    """Vega expression that looks up `key` (itself an expression) in a table of our own words."""
    return _expression(table) + f"[{key}]"


def _expression(value: Any) -> str:
    """Literal of a Vega expression for nested dicts, lists, numbers and our own plain texts."""
    if isinstance(value, dict):
        return "{" + ",".join(f"'{key}':{_expression(entry)}" for key, entry in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(_expression(entry) for entry in value) + "]"
    return f"'{value}'" if isinstance(value, str) else repr(value)


@dataclass(frozen=True, slots=True)
class _Ink:
    text: str
    soft: str
    grid: str
    pane: str
    edge: str


_INKS: dict[Mode, _Ink] = {
    "light": _Ink(text="#1A1A1A", soft="#4A4A4A", grid="#E2E2E2", pane="#FAFAFA", edge="#8A8A8A"),
    "dark": _Ink(text="#F2F2F2", soft="#C8C8C8", grid="#3A3A3A", pane="#1B1B1B", edge="#8F8F8F"),
}


def config(mode: Mode = "light") -> dict[str, Any]:
    """Vega-Lite configuration of a mode; the background is left to the page.

    Named styles (``gp-...``) carry whatever must change with the mode, so one spec serves both. Single
    marks have no description of their own (`aria`): a chart has one that states its numbers, and a table
    stands beside it.
    """
    ink = _INKS[mode]
    words = {"labelColor": ink.soft, "titleColor": ink.text, "labelFontSize": 11, "titleFontSize": 11}
    axis = words | {
        "gridColor": ink.grid,
        "domainColor": ink.edge,
        "tickColor": ink.edge,
        "titleFontWeight": "normal",
    }
    return {
        "background": None,
        "font": FONT,
        "axis": axis,
        "mark": {"aria": False},
        "legend": words | {"labelFontSize": 11},
        "title": {"fontSize": 13, "anchor": "start", "color": ink.text, "subtitleColor": ink.soft},
        "view": {"fill": ink.pane, "stroke": ink.edge},
        "text": {"font": FONT},
        "style": {
            "gp-title": {"fontSize": 13, "fontWeight": "bold", "color": ink.text},
            "gp-note": {"fontSize": 11, "color": ink.soft},
            "gp-row": {"fontSize": 10, "color": ink.soft},
            # A solid line in the pane's tone below the dashes: they are seen on every colour of bar.
            "gp-border": {"color": ink.text, "strokeWidth": 1.2, "strokeDash": [6, 4]},
            "gp-border-casing": {"color": ink.pane, "strokeWidth": 2.4, "strokeOpacity": 0.6},
            "gp-demand": {"color": ink.text, "strokeWidth": 1.8},
            "gp-demand-casing": {"color": ink.pane, "strokeWidth": 4},
            "gp-bound": {"color": ink.text},
            "gp-mark": {"color": ink.text},
        },
    }
