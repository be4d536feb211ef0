"""Case `fifo-gpu-type-block`: one strict line and a line per GPU type, by scenario file and table of jobs."""

from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from cases import front_door
from gpuplan.fairshare.model import FairshareScenario

CASE = "fifo-gpu-type-block"

MINUTE = 60


@pytest.fixture(scope="module")
def given(case: Path) -> dict[str, Any]:
    found = YAML(typ="safe").load(case / "input.yaml")
    assert isinstance(found, dict)
    return found


def written(folder: Path, given: dict[str, Any], **types: str) -> FairshareScenario:
    """A node that is busy until some minute is one in repair until then; `types` replace those of jobs."""
    nodes = given["nodes"]
    head = {
        "pools": [{"gpu": node["type"], "nodes": 1, "gpus_per_node": node["gpus"]} for node in nodes],
        "drains": [
            {"node": at, "from": 0, "repair": f"{node['busy_until_min']}min"}
            for at, node in enumerate(nodes)
            if "busy_until_min" in node
        ],
    }
    rows = [
        {"job": one["id"], "submit_s": one["submit"] * MINUTE, "gpus": one["gpus"]}
        | {"run_s": one["run"] * MINUTE, "gpu": types.get(one["id"], one["type"])}
        for one in given["jobs"]
    ]
    return front_door.load(folder, head, rows)


@pytest.mark.parametrize(("policy", "key"), [("fifo", "strict"), ("fifo-per-type", "per_type")])
def test_expected_values(
    tmp_path: Path, given: dict[str, Any], expected: dict[str, Any], policy: str, key: str
) -> None:
    run, right = front_door.run(written(tmp_path, given), policy), expected[key]
    assert front_door.starts(run, MINUTE) == right["start_min"]
    assert run.figures["mean_wait_s"] == right["mean_wait_min"] * MINUTE


def test_t4_stand_idle_under_the_strict_line(
    tmp_path: Path, given: dict[str, Any], expected: dict[str, Any]
) -> None:
    """Four T4 for 300 min less what ran on them by then."""
    run = front_door.run(written(tmp_path, given), "fifo")
    t4 = [at for at, node in enumerate(given["nodes"]) if node["type"] == "T4"]
    rows, until = run.stretches, 300 * MINUTE
    mine = [node in t4 for node in rows.place_node.tolist()]
    of = rows.place_stretch
    lasted = rows.end_s[of].clip(max=until) - rows.start_s[of].clip(max=until)
    used = int((lasted * rows.place_gpus)[mine].sum())
    gpus = sum(given["nodes"][at]["gpus"] for at in t4)
    idle = gpus * until - used
    assert idle / 3600 == expected["idle_t4_gpu_hours_until_300_under_strict"]


def test_nobody_is_later_in_a_line_per_type(tmp_path: Path, given: dict[str, Any]) -> None:
    scenario = written(tmp_path, given)
    one, each = (front_door.starts(front_door.run(scenario, policy)) for policy in ("fifo", "fifo-per-type"))
    assert all(each[job] <= one[job] for job in one)


@pytest.mark.parametrize("policy", ["fifo", "fifo-per-type"])
def test_a_job_that_accepts_both_takes_what_is_free(
    tmp_path: Path, given: dict[str, Any], policy: str
) -> None:
    """J1 takes the four T4 at 0:00 and leaves both lines: J2, which wants two of them, starts when it ends, 3:00."""
    run = front_door.run(written(tmp_path, given, J1="A100|T4"), policy)
    found = front_door.starts(run, MINUTE)
    assert (found["J1"], found["J2"]) == (0, 180)
    assert len(run.stretches.start_s) == len(given["jobs"])
