"""Case `nb-nbval-stable`: the same text in every fresh process; nothing but a stated rule decides between equals.

That the committed notebooks say the same in fresh kernels is tested in `tests/notebooks`.
"""

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from cases import front_door
from gpuplan.fairshare.model import BudgetNode
from gpuplan.fairshare.shares import share_out, whole_gpus

CASE = "nb-nbval-stable"

PROBE = """
import sys
import gpuplan as gp

run = gp.simulate(gp.load(sys.argv[1]), "fair-share")
print(run)
print({name: f"{value:.6f}" for name, value in run.figures.items() if isinstance(value, float)})
print(run.to_frame().to_string())
print(run.scenario.fingerprint)
"""


@pytest.fixture(scope="module")
def given(case: Path) -> dict[str, Any]:
    found = YAML(typ="safe").load(case / "input.yaml")
    assert isinstance(found, dict)
    return found


@pytest.fixture(scope="module")
def scenario(given: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Each queue wants nine jobs of one GPU for an hour."""
    budget = [{"name": queue["name"], "weight": queue["weight"]} for queue in given["queues"]]
    rows = [
        {"job": f"{queue['name']}-{k}", "team": queue["name"], "submit_s": 0, "gpus": 1, "run_s": 3600}
        for queue in given["queues"]
        for k in range(queue["demand"])
    ]
    folder = tmp_path_factory.mktemp("stable")
    return front_door.load(
        folder, {"cluster": given["cluster"], "budget": budget}, rows
    ), folder / "case.yaml"


def test_exact_and_whole_shares(given: dict[str, Any], expected: dict[str, Any]) -> None:
    """7/3 each; the odd GPU goes to the first of the shares as they are handed over, here in the order of the file."""
    budget = [BudgetNode(queue["name"], float(queue["weight"])) for queue in given["queues"]]
    demand = {queue["name"]: queue["demand"] for queue in given["queues"]}
    shares = share_out(budget, demand, given["cluster"]["gpus"])
    assert {round(float(share), 6) for share in shares.values()} == {expected["exact_share"]}
    in_file_order = {queue["name"]: shares[queue["name"]] for queue in given["queues"]}
    assert whole_gpus(in_file_order) == expected["whole_shares"]
    assert (
        whole_gpus(dict(reversed(in_file_order.items())))["mid"] == 3
    )  # the rule, and nothing else, decides


def test_the_policy_starts_as_many(scenario: Any, expected: dict[str, Any]) -> None:
    """3, 2 and 2 as well; between equal teams the policy's rule is the natural order of their names."""
    ran = front_door.run(scenario[0], "fair-share").to_frame()
    started = ran[ran.start_s == 0].groupby("team").size().to_dict()
    assert started == {"alpha": 3, "mid": 2, "zeta": 2}
    assert sorted(started.values()) == sorted(expected["whole_shares"].values())


def test_two_fresh_processes_say_the_same(scenario: Any, expected: dict[str, Any]) -> None:
    """Other seeds of text hashing, one processor or several, a narrow terminal, another locale."""
    settings = [
        {"PYTHONHASHSEED": "0", "NUMBA_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "COLUMNS": "60"},
        {"PYTHONHASHSEED": "4242", "LC_ALL": "de_DE.UTF-8", "TZ": "Asia/Tokyo"},
    ]
    started = [
        subprocess.Popen(
            [sys.executable, "-P", "-c", PROBE, str(scenario[1])],
            env={**os.environ, **words},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for words in settings
    ]
    said = [process.communicate(timeout=300) for process in started]
    assert [process.returncode for process in started] == [0, 0], said
    assert [len(err.splitlines()) for _, err in said] == [expected["stderr_lines"]] * 2
    assert (said[0][0] == said[1][0]) is expected["text_outputs_identical_in_two_fresh_runs"]
    assert re.search(r"at 0x|altair-viz|/tmp/|[Ee]lapsed|\d\.\d{10,}", said[0][0]) is None
