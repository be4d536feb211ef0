"""The command ``gpuplan pack``: many models on a few GPUs under several policies, as a table, JSON or CSV."""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from gpuplan.cli import Refusal
from gpuplan.text import aligned, printable, to_csv

if TYPE_CHECKING:
    from gpuplan.packing.run import Comparison

#: Reasons of rejected tasks that a table names; the rest are counted.
_NAMED = 10


def pack(options: argparse.Namespace) -> int:
    """Run the policies that the options name and print what they did; the exit code.

    Parameters
    ----------
    options
        ``scenario``, ``policies`` (comma-separated), ``json``, ``tasks`` (a folder).
    """
    from gpuplan.loading import load_packing
    from gpuplan.packing.policies import pieces_named
    from gpuplan.packing.run import compare

    names = [name.strip() for name in options.policies.split(",") if name.strip()]
    for name in names:  # before a large file is read
        pieces_named(name)
    comparison = compare(load_packing(options.scenario), names)
    if options.tasks is not None:
        _write(comparison, options.tasks)
    print(_as_json(comparison) if options.json else _as_text(comparison))
    broken = {name: run.violations for name, run in comparison.runs.items() if run.violations}
    for name, count in broken.items():
        text = f"gpuplan: the run of {name} breaks {count} rules: a fault of gpuplan, please report it"
        print(printable(text), file=sys.stderr)
    return 1 if broken else 0


def _write(comparison: Comparison, folder: Path) -> None:
    from gpuplan.packing.tables import TASK_COLUMNS

    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, run in comparison.runs.items():
            table = run.tasks[list(TASK_COLUMNS)]
            (folder / f"{name}.csv").write_text(to_csv(table), encoding="utf-8", newline="")
    except OSError as error:
        raise Refusal(f"cannot write tasks to {folder}: {error.strerror}") from error


def _as_json(comparison: Comparison) -> str:
    scenario = comparison.scenario
    whole = {
        "scenario": scenario.name,
        "fingerprint": scenario.fingerprint,
        "policies": {name: run.report() for name, run in comparison.runs.items()},
    }
    return json.dumps(whole, indent=2, allow_nan=False)


def _as_text(comparison: Comparison) -> str:
    from gpuplan.packing.figures import UNITS
    from gpuplan.packing.run import shown

    runs = comparison.runs.values()
    rows = [
        (figure, *(shown(figure, run.figures[figure]) for run in runs), unit)
        for figure, unit in UNITS.items()
    ]
    rows.append(("violations", *(str(run.violations) for run in runs), "broken rules"))
    table = aligned(("figure", *comparison.runs, "unit"), rows, right=range(1, len(runs) + 1))
    lines = [*_rejected(comparison), *comparison.scenario.notes]
    below = "\n" + "\n".join(map(printable, lines)) if lines else ""
    return f"{printable(comparison.scenario.name)}\n\n{table}{below}"


def _rejected(comparison: Comparison) -> list[str]:
    """The reasons for which tasks can never be served, each with its tasks counted; they hold for every policy."""
    reasons = Counter(next(iter(comparison.runs.values())).problem.rejected.values())
    lines = [
        f"rejected: {count:,} task{'s' * (count != 1)}: {why}" for why, count in reasons.most_common(_NAMED)
    ]
    if len(reasons) > _NAMED:
        lines.append(
            f"rejected for other reasons: {reasons.total() - sum(c for _, c in reasons.most_common(_NAMED)):,}"
        )
    return lines
