"""Case `backfill-large-job`: a large job behind a stream of small ones, by scenario file and table of jobs."""

from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from cases import front_door
from gpuplan.fairshare.model import FairshareScenario

CASE = "backfill-large-job"

MINUTE = 60


@pytest.fixture(scope="module")
def given(case: Path) -> dict[str, Any]:
    found = YAML(typ="safe").load(case / "input.yaml")
    assert isinstance(found, dict)
    return found


def rows_of(given: dict[str, Any], r_runs_min: int = 240) -> list[dict[str, object]]:
    """What runs at the start as a job that comes first."""
    running = [
        {"job": one["id"], "submit_s": 0, "gpus": one["gpus"], "run_s": r_runs_min * MINUTE}
        | {"limit_s": one["limit_ends_min"] * MINUTE}
        for one in given["running"]
    ]
    return running + [
        {"job": one["id"], "submit_s": one["submit"] * MINUTE, "gpus": one["gpus"]}
        | {"run_s": one["run"] * MINUTE, "limit_s": one["limit"] * MINUTE}
        for one in given["jobs"]
    ]


def written(folder: Path, given: dict[str, Any], **how: int) -> FairshareScenario:
    return front_door.load(folder, {"cluster": {"gpus": given["pool"]["gpus"]}}, rows_of(given, **how))


@pytest.mark.parametrize(
    ("policy", "key"),
    [
        ("fifo", "strict"),
        ("fifo-skip", "skip_whoever_fits"),
        ("easy", "backfill_with_reservation"),
        ("conservative", "backfill_with_reservation"),
    ],
)
def test_expected_values(
    tmp_path: Path, given: dict[str, Any], expected: dict[str, Any], policy: str, key: str
) -> None:
    run, right = front_door.run(written(tmp_path, given), policy), expected[key]
    found = front_door.starts(run, MINUTE)
    assert found.pop("R") == 0
    waits = [found[one["id"]] - one["submit"] for one in given["jobs"]]
    assert sum(waits) / len(waits) == pytest.approx(right["mean_wait_min"], abs=1e-6)
    assert found.pop("H") == right["H_start_min"]
    assert found == right["starts_min"]
    assert run.end_s == run.figures["makespan_s"] == right["makespan_min"] * MINUTE
    # the figure counts R, which does not wait
    assert run.figures["mean_wait_s"] == pytest.approx(MINUTE * sum(waits) / (len(waits) + 1))


@pytest.mark.parametrize("r_runs_min", [0, 30, 119, 239])
def test_a_promise_never_moves_back(tmp_path: Path, given: dict[str, Any], r_runs_min: int) -> None:
    """R ends earlier than its limit said: H, promised 4:00, starts then or sooner."""
    run = front_door.run(written(tmp_path, given, r_runs_min=r_runs_min), "easy")
    assert front_door.starts(run, MINUTE)["H"] <= 240


def test_under_skip_the_wait_grows_with_the_stream(tmp_path: Path, given: dict[str, Any]) -> None:
    """Twice as many small jobs (one every 20 min, 3 h each; nine would fill more than the pool): H waits for all."""
    small = [
        {"job": f"S{k}", "submit_s": 20 * k * MINUTE, "gpus": 1, "run_s": 10800, "limit_s": 10800}
        for k in range(1, 41)
    ]
    rows = [row for row in rows_of(given) if row["job"] in ("R", "H")] + small
    scenario = front_door.load(tmp_path, {"cluster": {"gpus": given["pool"]["gpus"]}}, rows)
    skip = front_door.run(scenario, "fifo-skip")
    # the last small job comes at 13:20 and finds a free GPU; all eight are free only once it has ended
    assert front_door.starts(skip, MINUTE)["H"] == max(
        end / MINUTE for name, end in front_door.ends(skip).items() if name.startswith("S")
    )
    assert front_door.starts(front_door.run(scenario, "easy"), MINUTE)["H"] == 240
    assert "H" not in skip.set_aside
