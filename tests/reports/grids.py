"""Small interactive pages of every kind: a second to make, for tests here and in the browser."""

from pathlib import Path
from typing import Any

from gpuplan.reports.grid import Grid, grid

#: Scenarios and axes of few points; the scenario's own values come on top.
GRIDS: dict[str, tuple[str, dict[str, Any]]] = {
    "allocation": ("two-apps", {"policies": ["fifo", "aware"], "penalties": [0, 2], "gpus": [8, 24]}),
    "fairshare": ("first-hours", {"shares": [20, 80], "windows": ["3h", "2d"]}),
    "packing": ("embedder-evicts-chat", {"margins": [0, 0.1], "loads": [0.5, 2]}),
}


def small(kind: str, **more: Any) -> Grid:
    """A grid of a kind."""
    scenario, axes = GRIDS[kind]
    return grid(scenario, **{**axes, **more})


def pages(folder: Path) -> dict[str, Path]:
    """A page of every kind in a folder."""
    made = {kind: folder / f"{kind}.html" for kind in GRIDS}
    for kind, path in made.items():
        small(kind).save(path)
    return made
