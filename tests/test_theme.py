"""Colours and patterns: apart for everybody, readable on light and dark pages, nothing fetched."""

import itertools
import json
from typing import Any

import numpy as np
import pytest

from gpuplan import theme

WORK = ("training", "batch-inference", "quantization", "real-time")

# Machado, Oliveira, Fernandes (2009), severity 1.0, on linear RGB.
VISION = {
    "full": np.eye(3),
    "protan": np.array([
        [0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]),
    "deutan": np.array([
        [0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]]),
    "tritan": np.array([
        [1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]]),
}  # fmt: skip


def linear(colour: str) -> Any:
    values = np.array([int(colour[at : at + 2], 16) for at in (1, 3, 5)]) / 255
    return np.where(values <= 0.04045, values / 12.92, ((values + 0.055) / 1.055) ** 2.4)


def luminance(colour: str) -> float:
    return float(linear(colour) @ [0.2126, 0.7152, 0.0722])


def contrast(one: str, other: str) -> float:
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def lab(rgb: Any) -> Any:
    xyz = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]) @ rgb
    ratio = np.clip(xyz / [0.9505, 1.0, 1.089], 0, None)
    f = np.where(ratio > 0.008856, np.cbrt(ratio), 7.787 * ratio + 16 / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


def test_contrast_is_that_of_the_guidelines() -> None:
    assert contrast("#000000", "#FFFFFF") == pytest.approx(21)
    assert contrast("#777777", "#FFFFFF") == pytest.approx(4.48, abs=0.01)


@pytest.mark.parametrize("vision", VISION)
def test_kinds_of_work_stay_apart_for_every_kind_of_vision(vision: str) -> None:
    seen = {kind: lab(np.clip(VISION[vision] @ linear(theme.KIND_COLOURS[kind]), 0, 1)) for kind in WORK}
    # A difference of 2.3 is just noticeable; patterns and letters come on top.
    apart = {pair: np.linalg.norm(seen[pair[0]] - seen[pair[1]]) for pair in itertools.combinations(WORK, 2)}
    assert min(apart.values()) > 12, apart


def test_kinds_differ_without_colour_too() -> None:
    patterns = [json.dumps(theme.fill(kind)).replace(theme.KIND_COLOURS[kind], "X") for kind in WORK]
    assert len(set(patterns)) == len(WORK)
    assert len({theme.KIND_CODES[kind] for kind in WORK}) == len(WORK)
    for kind in WORK:
        assert theme.KIND_LABELS[kind].startswith(theme.KIND_CODES[kind] + " ")
    assert set(theme.KIND_LABELS) == set(theme.KIND_CODES) == set(theme.KIND_COLOURS)


@pytest.mark.parametrize("kind", [*theme.KIND_COLOURS, "reserved-idle-area"])
def test_patterns_are_upright_or_level_gradients_with_rising_stops(kind: str) -> None:
    fill = theme.fill(kind)
    if isinstance(fill, str):
        assert fill == theme.KIND_COLOURS[kind]
        return
    # Vega draws a slanted gradient of a bar at the origin of a canvas, so the bar would be invisible.
    assert (fill["x1"], fill["y1"], fill["x2"], fill["y2"]) in {(0, 0, 1, 0), (0, 0, 0, 1)}
    offsets = [stop["offset"] for stop in fill["stops"]]
    assert offsets == sorted(offsets)
    assert (offsets[0], offsets[-1]) == (0, 1)
    assert len({stop["color"] for stop in fill["stops"]}) == 2


@pytest.mark.parametrize("kind", WORK)
def test_names_in_bars_can_be_read(kind: str) -> None:
    fill = theme.fill(kind)
    tones = {fill} if isinstance(fill, str) else {stop["color"] for stop in fill["stops"]}
    ink = theme.INKS[kind]
    assert min(contrast(ink, tone) for tone in tones) > 4.5


def tones_of(kind: str, mode: theme.Mode) -> list[str]:
    """Colours of a fill, that of the larger area first."""
    fill = theme.fill(kind, mode)
    return [fill] if isinstance(fill, str) else list(dict.fromkeys(stop["color"] for stop in fill["stops"]))


@pytest.mark.parametrize("mode", ["light", "dark"])
@pytest.mark.parametrize("kind", ["reserved-idle", "reserved-idle-area"])
def test_idle_reservations_stay_apart_from_used_gpus_and_free_ones(mode: theme.Mode, kind: str) -> None:
    body, line = tones_of(kind, mode)
    used, _ = tones_of("real-time", mode)
    pane = theme.config(mode)["view"]["fill"]
    assert contrast(body, used) > 1.7
    assert contrast(body, line) > 1.7
    # On a light page it is the lines that set them off from free GPUs, on a dark one the body as well.
    assert contrast(line, pane) > 3
    assert mode == "light" or contrast(body, pane) > 2


def test_on_a_dark_page_idle_reservations_are_not_the_brightest() -> None:
    idle = max(luminance(tone) for tone in tones_of("reserved-idle", "dark"))
    assert idle < luminance(theme.KIND_COLOURS["real-time"])


def test_a_page_knows_its_mode_by_a_parameter_that_patterns_inks_and_halos_ask_for() -> None:
    params = theme.fill_params()
    assert params[0] == {"name": "dark", "value": False}
    (idle,) = (param["expr"] for param in params if param["name"] == "fill_reserved_idle")
    assert idle.startswith("(dark ? ")
    assert theme.DARK_COLOURS["reserved-idle"] in idle
    for expression in (theme.ink_of("kind"), theme.halo_of("kind")):
        assert expression.startswith("(dark ? ")
    assert theme.in_mode(params, "dark") == [{"name": "dark", "value": True}, *params[1:]]
    assert theme.in_mode(params[1:], "dark") == params[1:]


def test_the_halo_behind_a_name_sets_it_off_from_every_pattern() -> None:
    # Whatever carries names, idle reservations included.
    assert set(theme.HALOS) == {*WORK, "reserved-idle"}
    inks, halos = theme.INKS | theme.DARK_INKS, theme.HALOS | theme.DARK_HALOS
    assert min(contrast(theme.INKS[kind], halo) for kind, halo in theme.HALOS.items()) > 4.5
    assert min(contrast(inks[kind], halo) for kind, halo in halos.items()) > 4.5


def test_the_legend_explains_the_border_between_nodes_last() -> None:
    scale = theme.kind_scale()
    assert scale["domain"] == [*theme.KIND_COLOURS, theme.NODE_BORDER]
    assert len(scale["range"]) == len(scale["domain"])
    named = {param["name"] for param in theme.fill_params()}
    assert {fill["expr"] for fill in scale["range"] if isinstance(fill, dict)} <= named
    assert "border between nodes (dashed)" in theme.kind_legend()["labelExpr"]


@pytest.mark.parametrize("mode", ["light", "dark"])
def test_text_of_a_mode_can_be_read_on_its_page_and_pane(mode: theme.Mode) -> None:
    config = theme.config(mode)
    pages = (theme.PAPER[mode], config["view"]["fill"])
    inks = {
        config["axis"]["labelColor"],
        config["axis"]["titleColor"],
        config["title"]["color"],
        *(style["color"] for name, style in config["style"].items() if not name.endswith("-casing")),
    }
    assert min(contrast(ink, page) for ink in inks for page in pages) > 4.5
    assert min(contrast(theme.KIND_COLOURS["unmet"], page) for page in pages) > 3


@pytest.mark.parametrize("mode", ["light", "dark"])
def test_lines_over_areas_are_cased_in_the_opposite_tone(mode: theme.Mode) -> None:
    style = theme.config(mode)["style"]
    for name in ("gp-demand", "gp-border"):
        line, casing = style[name], style[name + "-casing"]
        assert casing["strokeWidth"] > line["strokeWidth"]
        assert contrast(line["color"], casing["color"]) > 7


def test_the_two_modes_style_the_same_things() -> None:
    light, dark = theme.config("light"), theme.config("dark")
    assert set(light) == set(dark)
    assert set(light["style"]) == set(dark["style"])
    assert light != dark


def test_nothing_is_fetched() -> None:
    text = json.dumps([theme.config("light"), theme.fill_params(), theme.kind_scale(), theme.kind_legend()])
    assert "://" not in text
    assert theme.config("light")["font"] == "DejaVu Sans, Arial, sans-serif"
