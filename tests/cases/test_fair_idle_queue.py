"""Case `fair-idle-queue`: what a team that is away does not want goes to those who want more."""

from fractions import Fraction
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from cases import front_door
from gpuplan.fairshare.model import BudgetNode
from gpuplan.fairshare.run import Run
from gpuplan.fairshare.shares import partition, share_out, whole_gpus
from gpuplan.fairshare.tree import tree_of

CASE = "fair-idle-queue"


@pytest.fixture(scope="module")
def given(case: Path) -> dict[str, Any]:
    found = YAML(typ="safe").load(case / "input.yaml")
    assert isinstance(found, dict)
    return found


@pytest.fixture(scope="module")
def budget(given: dict[str, Any]) -> tuple[BudgetNode, ...]:
    return tuple(BudgetNode(queue["name"], queue["weight"]) for queue in given["queues"])


def demand_at(given: dict[str, Any], name: str) -> dict[str, int]:
    (moment,) = [moment for moment in given["moments"] if moment["name"] == name]
    return dict(moment["demand"])


def test_away(given: dict[str, Any], budget: tuple[BudgetNode, ...], expected: dict[str, Any]) -> None:
    shares = share_out(budget, demand_at(given, "away"), given["cluster"]["gpus"])
    idle = given["cluster"]["gpus"] - sum(shares.values())
    assert {**shares, "idle": idle} == expected["away"]
    assert whole_gpus(shares) == shares


def test_back(given: dict[str, Any], budget: tuple[BudgetNode, ...], expected: dict[str, Any]) -> None:
    shares = share_out(budget, demand_at(given, "back"), given["cluster"]["gpus"])
    assert shares == expected["back_exact"]
    assert whole_gpus(shares) == expected["back_whole"]


def test_the_nominal_share_is_another_number(
    given: dict[str, Any], budget: tuple[BudgetNode, ...], expected: dict[str, Any]
) -> None:
    tree = tree_of(budget)
    nominal = partition(tree, given["cluster"]["gpus"]).tolist()
    assert dict(zip(tree.teams, nominal, strict=True)) == expected["nominal"]


def test_the_order_in_the_file_does_not_matter(given: dict[str, Any], budget: tuple[BudgetNode, ...]) -> None:
    wants = demand_at(given, "back")
    found = [share_out(order, wants, 100) for order in permutations(budget)]
    assert all(shares == found[0] for shares in found)
    assert all(list(shares) == ["A", "B", "C"] for shares in found)


@pytest.mark.parametrize(("wanted", "got"), [(30, 30), (100, 100), (250, 100)])
def test_one_queue_gets_what_it_wants_of_the_cluster(
    budget: tuple[BudgetNode, ...], wanted: int, got: int
) -> None:
    assert share_out(budget[:1], {"A": wanted}, 100) == {"A": got}
    assert share_out(budget, {"C": wanted}, 100) == {"A": 0, "B": 0, "C": got}


def test_all_away_leaves_all_idle(budget: tuple[BudgetNode, ...]) -> None:
    assert share_out(budget, {}, 100) == {"A": 0, "B": 0, "C": 0}


def test_a_queue_without_demand_for_a_type_is_away_for_it(budget: tuple[BudgetNode, ...]) -> None:
    """C wants other GPUs only: of 80 of this type A and B share 50 : 30."""
    assert share_out(budget, {"A": 80, "B": 80, "C": 0}, 80) == {"A": 50, "B": 30, "C": 0}
    # 50/80 and 30/80 of 7 GPUs are 4.375 and 2.625: the larger remainder is B's
    assert whole_gpus(share_out(budget, {"A": 80, "B": 80}, 7)) == {"A": 4, "B": 3, "C": 0}


def test_equal_remainders_go_by_the_order_of_the_tree() -> None:
    thirds = {name: Fraction(10, 3) for name in ("x", "y", "z")}
    assert whole_gpus(thirds) == {"x": 4, "y": 3, "z": 3}


def run_at(folder: Path, given: dict[str, Any], moment: str, order: int = 1) -> Run:
    """The demand of a moment as jobs of one GPU that come together and declare a minimum; by file and table."""
    rows = [
        {"job": f"{team}-{k}", "team": team, "submit_s": 0, "gpus": 1, "run_s": 600, "min_runtime_s": 600}
        for team, gpus in demand_at(given, moment).items()
        for k in range(gpus)
    ]
    head = {"cluster": given["cluster"], "budget": given["queues"][::order]}
    return front_door.run(front_door.load(folder, head, rows[::order]), "fair-share")


def by_team(run: Run, column: str) -> dict[str, float]:
    table = run.shares_at(1)
    return dict(zip(table.team, table[column].tolist(), strict=True))


@pytest.mark.parametrize("order", [1, -1])
def test_away_by_scenario_file(
    tmp_path: Path, given: dict[str, Any], expected: dict[str, Any], order: int
) -> None:
    """What runs is what the shares say, and 10 GPUs stand idle because nobody wants them."""
    run = run_at(tmp_path, given, "away", order)
    for column in ("now_exact_gpus", "now_gpus", "running_gpus"):
        found = by_team(run, column)
        assert {**found, "idle": run.problem.gpus - sum(found.values())} == expected["away"]
    assert by_team(run, "nominal_gpus") == expected["nominal"]


@pytest.mark.parametrize("order", [1, -1])
def test_back_by_scenario_file(
    tmp_path: Path, given: dict[str, Any], expected: dict[str, Any], order: int
) -> None:
    run = run_at(tmp_path, given, "back", order)
    assert by_team(run, "now_exact_gpus") == expected["back_exact"]
    assert by_team(run, "now_gpus") == expected["back_whole"]
    assert by_team(run, "running_gpus") == expected["back_whole"]
    assert by_team(run, "nominal_gpus") == expected["nominal"]
