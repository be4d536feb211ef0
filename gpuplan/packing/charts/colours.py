"""Colours of models, looks of stages and of what else fills memory: hues of Okabe and Ito, patterns, letters."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from gpuplan.gantt import Spec, safe_text
from gpuplan.packing.model import Int64

if TYPE_CHECKING:
    from gpuplan.packing.problem import Problem

#: Hues of Okabe and Ito, which stay apart for everybody, in the order in which models take them. Vermilion is kept
#: for out-of-memory.
HUES = ("#0072B2", "#009E73", "#E69F00", "#CC79A7", "#56B4E9", "#E6CF00", "#8C6D5A")

#: More models than this are drawn as the largest ones, and all others together in grey.
MAX_MODELS = 14

#: Colour of the other models together, of leftovers of evicted models, and of what ran out of memory.
OTHERS, ASLEEP, FAILED = "#9A9A9A", "#6E6E6E", "#D55E00"

INK = "dark ? '#F2F2F2' : '#1A1A1A'"
PANE = "dark ? '#1B1B1B' : '#FFFFFF'"


@dataclass(frozen=True, slots=True)
class Palette:
    """How the models of a scenario are drawn.

    Attributes
    ----------
    labels : tuple of str
        One line of visible text per group, all different.
    colours, inks : tuple of str
        Colour of each group, and of a text written on it.
    group : int64[M]
        Group of each model; several models share the last one where there are too many.
    """

    labels: tuple[str, ...]
    colours: tuple[str, ...]
    inks: tuple[str, ...]
    group: Int64

    def __len__(self) -> int:
        return len(self.labels)


def palette_of(problem: "Problem", most: int = MAX_MODELS) -> Palette:
    """Groups and colours of the models of a problem, the same for every policy.

    Parameters
    ----------
    problem
    most
        Models that get a colour of their own; with more, those that take most memory get one.
    """
    models = problem.scenario.models
    group = np.arange(len(models), dtype=np.int64)
    chosen = list(range(len(models)))
    if len(models) > most:
        chosen = sorted(np.argsort(-problem.taken * problem.spread, kind="stable")[: most - 1].tolist())
        group[:] = most - 1
        group[chosen] = np.arange(most - 1)
    labels = [safe_text(models[m].name, 60) for m in chosen]
    colours = [_colour(place) for place in range(len(chosen))]
    if len(models) > most:
        labels.append(f"{len(models) - most + 1:,} other models")
        colours.append(OTHERS)
    return Palette(tuple(told_apart(labels)), tuple(colours), tuple(map(ink_on, colours)), group)


def told_apart(labels: list[str]) -> list[str]:
    """Labels that are all different, also from the words of a legend: what safe text made equal gets a number."""
    seen: dict[str, int] = dict.fromkeys(LEGEND_WORDS, 1)
    told = []
    for label in labels:
        seen[label] = seen.get(label, 0) + 1
        told.append(label if seen[label] == 1 else f"{label} ({seen[label]})")
    return told


def _colour(place: int) -> str:
    """Hues in order; beyond them again, paler."""
    hue, again = HUES[place % len(HUES)], place // len(HUES)
    return hue if not again else mixed(hue, 0.55)


def mixed(colour: str, mix: float) -> str:
    """A colour with a share of black (negative) or white (positive) in it."""
    towards = 255 if mix > 0 else 0
    parts = (int(colour[at : at + 2], 16) for at in (1, 3, 5))
    return "#" + "".join(f"{round(part + (towards - part) * abs(mix)):02X}" for part in parts)


def ink_on(colour: str) -> str:
    """Black or white, whichever has the higher contrast on a colour (relative luminance of WCAG 2)."""
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    )
    luminance = 0.2126 * red + 0.7152 * green + 0.0722 * blue
    return "#FFFFFF" if 1.05 / (luminance + 0.05) > (luminance + 0.05) / 0.0574 else "#111111"


# ------------------------------------------------------------------------- patterns and letters

#: Stages by their code: letter in a bar, words of the legend.
STAGE_LETTERS = ("L", "R", "S", "Re")
STAGE_WORDS = ("L load (upright bands)", "R run (plain)", "S save (lower half pale)", "Re restore (lines)")

#: What else the legends explain.
FAILED_WORDS = "× failed: out of memory"
KV_WORDS = "KV caches (lined)"
ASLEEP_WORDS = "left asleep (bands)"
RESERVED_WORDS = "reserved by the scheduler (line)"
OUT_WORDS = "▼ out of memory"

LEGEND_WORDS = (*STAGE_WORDS, FAILED_WORDS, KV_WORDS, ASLEEP_WORDS, RESERVED_WORDS, OUT_WORDS)

#: Bands of a pattern from top to bottom, or along time where they are upright: shares of the mark.
_UPRIGHT = tuple((round((k + 0.25) / 6, 3), round((k + 0.75) / 6, 3)) for k in range(6))
_PATTERNS: dict[str, tuple[bool, tuple[tuple[float, float], ...]]] = {
    "load": (True, _UPRIGHT),
    "run": (False, ()),
    "save": (False, ((0.5, 1.0),)),
    "restore": (False, ((0.2, 0.38), (0.62, 0.8))),
}

#: Opacity of what a pattern lays over a bar.
_VEIL = {"light": "rgba(255,255,255,0.72)", "dark": "rgba(17,17,17,0.68)"}

_GREY = "#5E6B78"


def look_params() -> list[Spec]:
    """Top-level parameters: ``veil_<stage>`` over a bar, ``look_<stage>`` and the others for legends and areas."""
    veil = f"(dark ? '{_VEIL['dark']}' : '{_VEIL['light']}')"
    params: list[Spec] = []
    for stage, (upright, edges) in _PATTERNS.items():
        params.append({"name": f"veil_{stage}", "expr": _gradient("'transparent'", veil, upright, edges)})
        tint = "(dark ? '#2A2F34' : '#DDE1E4')"
        params.append({"name": f"look_{stage}", "expr": _gradient(f"'{_GREY}'", tint, upright, edges)})
    # a long load has more bands, so that they do not look like bars of their own
    long = tuple((round((k + 0.25) / 40, 4), round((k + 0.75) / 40, 4)) for k in range(40))
    params.append({"name": "veil_load_long", "expr": _gradient("'transparent'", veil, True, long)})
    lines = tuple((round((k + 0.35) / 5, 3), round((k + 0.65) / 5, 3)) for k in range(5))
    many = tuple((round((k + 0.3) / 24, 3), round((k + 0.7) / 24, 3)) for k in range(24))
    base, line = "(dark ? '#4A4A4A' : '#E4E4E4')", "(dark ? '#CFCFCF' : '#6A6A6A')"
    params += [
        {"name": "look_kv", "expr": _gradient(base, line, False, lines)},
        {"name": "look_kv_area", "expr": _gradient(base, line, False, many)},
        {"name": "look_asleep", "expr": _gradient(f"'{ASLEEP}'", "'#BDBDBD'", True, _UPRIGHT)},
        {"name": "look_reserved", "expr": _gradient("'transparent'", f"({INK})", False, ((0.42, 0.58),))},
    ]
    return params


def _gradient(base: str, tint: str, upright: bool, edges: tuple[tuple[float, float], ...]) -> str:
    """Vega expression of a gradient with hard stops (both tones are expressions)."""
    stops = [(0.0, base)]
    for first, last in edges:
        stops += [(first, base), (first, tint), (last, tint), (last, base)]
    stops.append((1.0, tint if edges and edges[-1][1] == 1 else base))
    told = ",".join(f"{{offset:{offset},color:{tone}}}" for offset, tone in stops)
    across = int(upright)
    return f"{{gradient:'linear',x1:0,y1:0,x2:{across},y2:{1 - across},stops:[{told}]}}"


#: Fill of each entry of a legend beyond the models.
_LEGEND_FILLS: dict[str, str | Spec] = {
    **{word: {"expr": f"look_{stage}"} for word, stage in zip(STAGE_WORDS, _PATTERNS, strict=True)},
    FAILED_WORDS: FAILED,
    KV_WORDS: {"expr": "look_kv"},
    ASLEEP_WORDS: {"expr": "look_asleep"},
    RESERVED_WORDS: {"expr": "look_reserved"},
    OUT_WORDS: FAILED,
}


def model_scale(palette: Palette, extra: tuple[str, ...] = ()) -> Spec:
    """Scale from the label of a model (and of what else a legend names) to its fill."""
    return {
        "domain": [*palette.labels, *extra],
        "range": [*palette.colours, *(_LEGEND_FILLS[word] for word in extra)],
    }


#: Pixels of a column of a legend.
_LEGEND_PX = 215


def legend(page_width: int) -> Spec:
    """Legend above a chart, in as many columns as fit."""
    return {
        "title": None,
        "orient": "top",
        "direction": "horizontal",
        "columns": max(1, min(5, page_width // _LEGEND_PX)),
        "symbolType": "square",
        "symbolSize": 170,
        "symbolOpacity": 1,
        "symbolStrokeWidth": 0,
        "labelLimit": _LEGEND_PX - 26,
        "rowPadding": 3,
        "offset": 8,
    }


def legend_layer(palette: Palette, page_width: int, extra: tuple[str, ...]) -> Spec:
    """Marks that nobody sees, for the legend."""
    scale = model_scale(palette, extra)
    fill = {"field": "model", "type": "nominal", "scale": scale, "legend": legend(page_width)}
    return {
        "data": {"values": [{"model": label} for label in (*palette.labels, *extra)]},
        "mark": {"type": "point", "opacity": 0, "strokeWidth": 0},
        "encoding": {"fill": fill},
    }
