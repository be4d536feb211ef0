"""Notebooks written by hand for tests of their reports, and runs that no kernel made."""

import json
from pathlib import Path
from typing import Any

from gpuplan.reports.notebook_file import Cell, Notebook
from gpuplan.reports.notebook_run import Ran

#: A day that can be planned in one's head, as a scenario of each kind of notebook below.
SCENARIO = {
    "kind": "allocation",
    "name": "small",
    "cluster": {"gpus": 4},
    "horizon": {"steps": 4},
    "realtime": [{"name": "chat", "priority": 2, "demand": [0, 1, 2, 1]}],
    "batch": [{"name": "tune", "kind": "training", "gpus": 2, "hours": 2, "priority": 1}],
}

PARAMETERS = 'gpus = 4  # of the cluster\nname = "small"\npolicies = ["fifo", "aware"]\n'


def write(path: Path, *cells: tuple[str, ...], **changes: Any) -> Path:
    """A notebook of cells: kind, source, tags."""
    made = [
        {
            "cell_type": kind,
            "id": f"cell-{number}",
            "metadata": {"tags": tags},
            "source": source,
            **({"execution_count": 7, "outputs": []} if kind == "code" else {}),
        }
        for number, (kind, source, *tags) in enumerate(cells)
    ]
    whole = {
        "cells": made,
        "metadata": {"kernelspec": {"name": "elsewhere", "display_name": "E", "language": "python"}},
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    path.write_text(json.dumps(whole | changes), encoding="utf-8")
    return path


def shown(*bundles: dict[str, Any]) -> tuple[Notebook, Ran]:
    """A notebook of one cell, and a run of it that showed these forms of outputs."""
    outputs = [{"output_type": "display_data", "data": bundle, "metadata": {}} for bundle in bundles]
    return Notebook("made", (Cell("code", "show()"),)), Ran((outputs,), [], 0, ())
