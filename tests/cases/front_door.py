"""What a person writes: a scenario file (YAML) with a table of jobs (CSV) beside it, loaded as they load it."""

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

import gpuplan as gp
from gpuplan.fairshare.model import FairshareScenario
from gpuplan.fairshare.run import Run

#: A budget tree of one.
EVERYONE = [{"name": "everyone", "weight": 1}]


def load(
    folder: Path, head: Mapping[str, Any], rows: Sequence[Mapping[str, object]], name: str = "case"
) -> FairshareScenario:
    """Write ``<name>.yaml`` and ``<name>.csv`` into a folder, and load the scenario.

    Parameters
    ----------
    folder
    head
        Keys of the scenario file; `kind`, `name`, `workload` and a budget of one are added where they are absent.
    rows
        Jobs by column; the first row names the columns.
    """
    table = folder / f"{name}.csv"
    with table.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    path = folder / f"{name}.yaml"
    written = {
        "kind": "fairshare",
        "name": name,
        "budget": EVERYONE,
        "workload": {"file": table.name},
        **head,
    }
    with path.open("w", encoding="utf-8") as file:
        YAML(typ="safe").dump(written, file)
    found = gp.load(path)
    assert isinstance(found, FairshareScenario)
    return found


def run(scenario: FairshareScenario, policy: str) -> Run:
    """Simulate; no rule may be broken."""
    found: Run = gp.simulate(scenario, policy)
    assert found.check() == []
    return found


def starts(run: Run, unit_s: int = 1) -> dict[str, float]:
    """First start of every job that started, by name."""
    table = run.jobs.set_index("job").first_start_s.dropna()
    return {str(name): float(start) / unit_s for name, start in table.items()}


def ends(run: Run) -> dict[str, int]:
    """Last end of every job, by name."""
    table = run.jobs.set_index("job").end_s.dropna()
    return {str(name): int(end) for name, end in table.items()}
