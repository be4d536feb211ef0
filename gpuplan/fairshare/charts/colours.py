"""Colours of teams: a hue per programme (top-level budget), a lightness per team within it."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from gpuplan.fairshare.model import Int64
from gpuplan.gantt import safe_text

if TYPE_CHECKING:
    from gpuplan.fairshare.problem import Problem

#: Hues of Okabe and Ito, which stay apart for everybody, in the order in which programmes take them.
HUES = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E6B800", "#56B4E9", "#8C6D5A")

#: More teams than this are drawn as the busiest ones, and all others together in grey.
MAX_TEAMS = 20

#: Colour of the other teams together, and of repairs.
OTHERS, REPAIR = "#9A9A9A", "#8A8A8A"


@dataclass(frozen=True, slots=True)
class Palette:
    """How the teams of a scenario are drawn.

    Attributes
    ----------
    labels : tuple of str
        One line of visible text per group, all different.
    colours, inks : tuple of str
        Colour of each group, and of a text written on it.
    group : int64[L]
        Group of each team; several teams share the last one where there are too many.
    members : tuple of int
        Teams in each group.
    """

    labels: tuple[str, ...]
    colours: tuple[str, ...]
    inks: tuple[str, ...]
    group: Int64
    members: tuple[int, ...]

    def __len__(self) -> int:
        return len(self.labels)


def palette_of(problem: "Problem", most: int = MAX_TEAMS) -> Palette:
    """Groups and colours of the teams of a problem, the same for every policy.

    Parameters
    ----------
    problem
    most
        Teams that get a colour of their own; with more, those that asked for the most GPU-time get one.
    """
    teams = problem.tree.teams
    group = np.arange(len(teams), dtype=np.int64)
    chosen = list(range(len(teams)))
    if len(teams) > most:
        asked = np.bincount(
            problem.team, weights=problem.jobs.gpu_seconds.astype(np.float64), minlength=len(teams)
        )
        chosen = sorted(np.argsort(-asked, kind="stable")[: most - 1].tolist())
        group[:] = most - 1
        group[chosen] = np.arange(most - 1)
    labels = _told_apart([safe_text(teams[t], 60) for t in chosen])
    colours = _colours([teams[t] for t in chosen])
    if len(teams) > most:
        labels += _told_apart([f"{len(teams) - most + 1:,} other teams"])
        colours.append(OTHERS)
    members = np.bincount(group, minlength=len(labels))
    return Palette(tuple(labels), tuple(colours), tuple(map(ink_on, colours)), group, tuple(members.tolist()))


def _told_apart(labels: list[str]) -> list[str]:
    """Labels that are all different: what safe text made equal gets a number."""
    seen: dict[str, int] = {}
    told = []
    for label in labels:
        seen[label] = seen.get(label, 0) + 1
        told.append(label if seen[label] == 1 else f"{label} ({seen[label]})")
    return told


def _colours(paths: list[str]) -> list[str]:
    """A colour per team: programmes take hues in order, its teams run from dark to light."""
    programmes: dict[str, list[int]] = {}
    for row, path in enumerate(paths):
        programmes.setdefault(path.partition("/")[0], []).append(row)
    colours = [""] * len(paths)
    # Beyond the hues there are, programmes share one, at another lightness.
    for place, rows in enumerate(programmes.values()):
        hue, again = HUES[place % len(HUES)], place // len(HUES)
        for row, mix in zip(rows, _mixes(len(rows)), strict=True):
            colours[row] = mixed(hue, mix if not again else (-0.4 if again % 2 else 0.5) / ((again + 1) // 2))
    return colours


def _mixes(count: int) -> list[float]:
    """Shares of black (negative) or white for so many teams of one hue."""
    if count == 1:
        return [0.0]
    reach = {2: (-0.05, 0.5), 3: (-0.15, 0.58)}.get(count, (-0.28, 0.68))
    return [float(mix) for mix in np.linspace(*reach, count)]


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
