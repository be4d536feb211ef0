"""The command ``gpuplan simulate``: a scenario or a workload log under several policies, as a table, JSON or CSV."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from gpuplan.cli import Refusal
from gpuplan.text import aligned, printable, to_csv

if TYPE_CHECKING:
    from gpuplan.fairshare.model import FairshareScenario
    from gpuplan.fairshare.run import Comparison

#: Columns of the files that ``--jobs`` writes.
COLUMNS = ("job", "team", "gpus", "submit_s", "start_s", "end_s", "state")

#: Jobs set aside that a table names; the rest are counted.
_NAMED = 10


def simulate(options: argparse.Namespace) -> int:
    """Run the policies that the options name and print what they did; the exit code.

    Parameters
    ----------
    options
        ``file``, ``policies`` (comma-separated), ``gpus``, ``json``, ``jobs`` (a folder).
    """
    from gpuplan.fairshare.run import compare, policy_named

    names = [name.strip() for name in options.policies.split(",") if name.strip()]
    for name in names:  # before a large file is read
        policy_named(name)
    comparison = compare(_scenario(options.file, options.gpus), names)
    if options.jobs is not None:
        _write(comparison, options.jobs)
    print(_as_json(comparison) if options.json else _as_text(comparison))
    broken = {name: run.violations for name, run in comparison.runs.items() if run.violations}
    for name, count in broken.items():
        text = f"gpuplan: the run of {name} breaks {count} rules: a fault of gpuplan, please report it"
        print(printable(text), file=sys.stderr)
    return 1 if broken else 0


def _scenario(file: str, gpus: int | None) -> FairshareScenario:
    from gpuplan.loading import load_fairshare, load_swf

    if file.lower().endswith((".swf", ".swf.gz")):
        return load_swf(file, gpus)
    if gpus is not None:
        raise Refusal("--gpus is for workload logs (.swf): a scenario says its cluster itself")
    return load_fairshare(file)


def _write(comparison: Comparison, folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, run in comparison.runs.items():
            table = run.to_frame()[list(COLUMNS)]
            (folder / f"{name}.csv").write_text(to_csv(table), encoding="utf-8", newline="")
    except OSError as error:
        raise Refusal(f"cannot write jobs to {folder}: {error.strerror}") from error


def _as_json(comparison: Comparison) -> str:
    scenario = comparison.scenario
    whole = {
        "scenario": scenario.name,
        "fingerprint": scenario.fingerprint,
        "policies": {name: run.report() for name, run in comparison.runs.items()},
    }
    return json.dumps(whole, indent=2, allow_nan=False)


def _as_text(comparison: Comparison) -> str:
    from gpuplan.fairshare.figures import UNITS
    from gpuplan.fairshare.run import shown

    runs = comparison.runs.values()
    rows = [
        (figure, *(shown(figure, run.figures[figure]) for run in runs), unit)
        for figure, unit in UNITS.items()
    ]
    rows.append(("violations", *(str(run.violations) for run in runs), "broken rules"))
    table = aligned(("figure", *comparison.runs, "unit"), rows, right=range(1, len(runs) + 1))
    lines = [*_aside(comparison), *comparison.remarks, *comparison.scenario.notes]
    below = "\n" + "\n".join(map(printable, lines)) if lines else ""
    return f"{printable(comparison.scenario.name)}\n\n{table}{below}"


def _aside(comparison: Comparison) -> list[str]:
    """The jobs that can never run, with the reason; by policy those that only some policies set aside."""
    runs = comparison.runs
    shared = set.intersection(*(set(run.set_aside.items()) for run in runs.values()))
    lists = {"": [one for one in next(iter(runs.values())).set_aside.items() if one in shared]}
    lists |= {
        f" by {name}": [one for one in run.set_aside.items() if one not in shared]
        for name, run in runs.items()
    }
    lines = []
    for whose, jobs in lists.items():
        lines += [f"set aside{whose}: {job}: {why}" for job, why in jobs[:_NAMED]]
        if len(jobs) > _NAMED:
            lines.append(f"set aside{whose}: {len(jobs) - _NAMED:,} more")
    return lines
