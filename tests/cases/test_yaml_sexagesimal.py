"""Case `yaml-sexagesimal`: what is written with colons keeps its text, and names stay names.

In a scenario file a limit with colons is refused (quotes make no difference) and the message says how to write it; in
an exported table of jobs the notation of batch systems is read where it is stated.
"""

from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

import gpuplan as gp
from gpuplan.inputs.errors import InputError
from gpuplan.traces.jobs_table import read_jobs

CASE = "yaml-sexagesimal"


@pytest.fixture(scope="module")
def given(case: Path) -> dict[str, Any]:
    """The case's file with every scalar as the text that was written."""
    found = YAML(typ="base").load(case / "input.yaml")
    assert isinstance(found, dict)
    return found


def _scenario(folder: Path, limits: dict[str, str], queues: str = "name: q, weight: 1") -> Path:
    """A scenario file whose jobs have limits, written as they are given (with quotes or without)."""
    path = folder / "scenario.yaml"
    jobs = "".join(
        f"    - {{job: {job}, submit_s: 0, gpus: 1, run_s: 60, limit_s: {limit}}}\n"
        for job, limit in limits.items()
    )
    path.write_text(
        f"kind: fairshare\nname: case\ncluster: {{gpus: 4}}\nbudget:\n  - {{{queues}}}\nworkload:\n  jobs:\n{jobs}",
        encoding="utf-8",
    )
    return path


def test_colons_are_refused_with_and_without_quotes(
    given: dict[str, Any], expected: dict[str, Any], tmp_path: Path
) -> None:
    assert expected["refusing_b_e_f_with_a_clear_message_is_also_right"]
    colons = {job["id"]: job["limit"] for job in given["jobs"] if ":" in job["limit"]}
    assert set(colons) == {"b", "c", "d", "e", "f", "g"}
    for quote in ("", '"', "'"):
        path = _scenario(tmp_path, {job: f"{quote}{limit}{quote}" for job, limit in colons.items()})
        with pytest.raises(InputError) as found:
            gp.load(path)
        assert [mistake.path for mistake in found.value.mistakes] == [
            f"workload.jobs.{k}.limit_s" for k in range(6)
        ]
        assert [mistake.value for mistake in found.value.mistakes] == list(colons.values())
        assert all("must name its unit" in mistake.rule for mistake in found.value.mistakes)
        assert [mistake.line for mistake in found.value.mistakes] == list(range(8, 14))


def test_days_and_hours_are_no_date_and_no_subtraction(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="1-12"):
        gp.load(_scenario(tmp_path, {"h": "1-12"}))


def test_limits_with_units_are_what_was_meant(expected: dict[str, Any], tmp_path: Path) -> None:
    units = {
        "a": "90min",
        "b": "90s",
        "c": '"90s"',
        "d": "510",
        "e": "8.5min",
        "f": "12h",
        "g": '"12h"',
        "h": "36h",
    }
    scenario: Any = gp.load(_scenario(tmp_path, units))
    found = dict(zip(scenario.jobs.name.tolist(), scenario.jobs.limit_s.tolist(), strict=True))
    assert found == expected["limit_seconds"]


def test_the_notation_of_batch_systems_in_a_table(
    given: dict[str, Any], expected: dict[str, Any], tmp_path: Path
) -> None:
    path = tmp_path / "jobs.csv"
    rows = [f"{job['id']},{job['queue']},{job['limit']},0,60,1" for job in given["jobs"]]
    path.write_text("\n".join(["id,queue,limit,submit_s,run_s,gpus", *rows]) + "\n")
    with pytest.raises(InputError, match="must be confirmed"):
        read_jobs(path)  # 90 seconds or 90 minutes?
    found = read_jobs(path, {"limit": ("limit", "batch"), "partition": "queue"})
    assert dict(zip(found.job.tolist(), found.limit_s.tolist(), strict=True)) == expected["limit_seconds"]
    queues = found.partition.tolist()
    assert list(dict.fromkeys(queues)) == expected["queues"]
    assert {queue: queues.count(queue) for queue in queues} == expected["jobs_per_queue"]


def test_queues_are_texts(given: dict[str, Any], expected: dict[str, Any], tmp_path: Path) -> None:
    """The budgets of a scenario file: prod, on, no and 0123, not true, false and 83."""
    path = tmp_path / "queues.yaml"
    budgets = "".join(f"  - {{name: {name}, weight: {q['weight']}}}\n" for name, q in given["queues"].items())
    jobs = "".join(
        f"    - {{job: {job['id']}, team: {team}, submit_s: 0, gpus: 1, run_s: 60}}\n"
        for job in given["jobs"]
        for team in [f'"{job["queue"]}"' if job["id"] == "g" else job["queue"]]
    )
    path.write_text(
        f"kind: fairshare\nname: case\ncluster: {{gpus: 4}}\nbudget:\n{budgets}workload:\n  jobs:\n{jobs}",
        encoding="utf-8",
    )
    scenario: Any = gp.load(path)
    assert [node.name for node in scenario.budget] == expected["queues"]
    teams = scenario.jobs.team.tolist()
    assert {team: teams.count(team) for team in expected["queues"]} == expected["jobs_per_queue"]


@pytest.mark.parametrize("name", ["1e3", "0x10", "8_0", "3.10", "2026-05-04", "yes", "1:30"])
def test_names_that_look_like_something_else(tmp_path: Path, name: str) -> None:
    scenario: Any = gp.load(_scenario(tmp_path, {"x": "60"}, f"name: {name}, weight: 1"))
    assert [node.name for node in scenario.budget] == [name]


def test_a_key_that_stands_twice_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="weight"):
        gp.load(_scenario(tmp_path, {"x": "60"}, "name: q, weight: 1, weight: 2"))
