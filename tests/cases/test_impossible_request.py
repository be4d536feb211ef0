"""Case `impossible-request`: what can never run is set aside with its reason, by scenario file and table of jobs."""

from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from cases import front_door
from gpuplan.fairshare.model import FairshareScenario
from gpuplan.fairshare.policies import POLICIES
from gpuplan.inputs.errors import InputError

CASE = "impossible-request"

MINUTE = 60


@pytest.fixture(scope="module")
def given(case: Path) -> dict[str, Any]:
    found = YAML(typ="safe").load(case / "input.yaml")
    assert isinstance(found, dict)
    return found


def rows_of(given: dict[str, Any]) -> list[dict[str, object]]:
    return [
        {"job": one["id"], "submit_s": 0, "gpus": one["gpus"], "run_s": 60 * MINUTE, "gpu": one["type"]}
        | {"one_node": "no" if one["several_nodes"] else "yes"}
        for one in given["jobs"]
    ]


def written(folder: Path, given: dict[str, Any]) -> FairshareScenario:
    """Pools of equal nodes; a node that comes later is one in repair until then."""
    nodes = given["nodes"]
    sizes: dict[tuple[str, int], list[dict[str, Any]]] = {}
    for node in nodes:
        sizes.setdefault((node["type"], node["gpus"]), []).append(node)
    later = [
        {"node": at, "from": 0, "repair": f"{node['available_from_min']}min"}
        for at, node in enumerate(nodes)
        if "available_from_min" in node
    ]
    pools = [{"gpu": gpu, "nodes": len(mine), "gpus_per_node": gpus} for (gpu, gpus), mine in sizes.items()]
    return front_door.load(folder, {"pools": pools, "drains": later}, rows_of(given))


def test_expected_values(tmp_path: Path, given: dict[str, Any], expected: dict[str, Any]) -> None:
    run = front_door.run(written(tmp_path, given), "fifo")
    assert run.set_aside == expected["rejected"]
    assert front_door.starts(run, MINUTE) == expected["start_min"]
    assert run.end_s == expected["end_of_simulation_min"] * MINUTE
    # J3 0, J5 0, J6 120, J7 180 min: the jobs set aside are in no mean
    assert run.figures["mean_wait_s"] == 75 * MINUTE
    assert run.figures["jobs_finished"] == len(expected["start_min"])


@pytest.mark.parametrize("policy", POLICIES)
def test_every_policy_ends_and_gives_the_reasons(
    tmp_path: Path, given: dict[str, Any], expected: dict[str, Any], policy: str
) -> None:
    run = front_door.run(written(tmp_path, given), policy)
    assert run.set_aside == expected["rejected"]
    assert set(front_door.starts(run)) == set(expected["start_min"])
    assert run.end_s >= expected["end_of_simulation_min"] * MINUTE


def test_reasons_are_texts_for_people(
    tmp_path: Path, given: dict[str, Any], expected: dict[str, Any]
) -> None:
    run = front_door.run(written(tmp_path, given), "fifo")
    said = {job: reason in run.why(job, 0) for job, reason in expected["rejected"].items()}
    assert all(said.values()) == expected["reasons_are_texts_for_people"]


@pytest.mark.parametrize("wrong", ["0", "-1", "2.5", "many"])
def test_numbers_of_gpus_that_are_none(tmp_path: Path, given: dict[str, Any], wrong: str) -> None:
    """Refused with line, column and value, not simulated."""
    rows = rows_of(given)
    rows[2]["gpus"] = wrong
    head = {"cluster": {"nodes": 2, "gpus_per_node": 8}}
    with pytest.raises(InputError) as error:
        front_door.load(tmp_path, head, rows)
    assert wrong in str(error.value)
    assert "4" in str(error.value)  # the line of J3, the header being the first
    assert "gpus" in str(error.value)
