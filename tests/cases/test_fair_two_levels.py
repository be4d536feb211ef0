"""Case `fair-two-levels`: a weight compares siblings only; unused share stays with siblings first."""

from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from cases import front_door
from gpuplan.fairshare.model import BudgetNode
from gpuplan.fairshare.shares import share_out

CASE = "fair-two-levels"


@pytest.fixture(scope="module")
def given(case: Path) -> dict[str, Any]:
    found = YAML(typ="safe").load(case / "input.yaml")
    assert isinstance(found, dict)
    return found


def organisations(given: dict[str, Any], above: float = 1, below: float = 1) -> tuple[BudgetNode, ...]:
    """The tree of the case, all weights of one level multiplied by a number."""
    return tuple(
        BudgetNode(
            name,
            above * node["weight"],
            tuple(BudgetNode(team, below * leaf["weight"]) for team, leaf in node["teams"].items()),
        )
        for name, node in given["tree"].items()
    )


def shares_at(
    tree: tuple[BudgetNode, ...], given: dict[str, Any], moment: dict[str, Any]
) -> dict[str, float]:
    paths = {team: f"{name}/{team}" for name, node in given["tree"].items() for team in node["teams"]}
    wants = {paths[team]: gpus for team, gpus in moment["demand"].items()}
    got = share_out(tree, wants, given["cluster"]["gpus"])
    return {team: float(got[path]) for team, path in paths.items()}


@pytest.mark.parametrize(("above", "below"), [(1, 1), (2, 1), (1, 0.5), (10, 3)])
def test_every_moment(given: dict[str, Any], expected: dict[str, Any], above: float, below: float) -> None:
    tree = organisations(given, above, below)
    found = {moment["name"]: shares_at(tree, given, moment) for moment in given["moments"]}
    assert found == expected


def test_three_levels_and_a_single_child() -> None:
    """x: 60 of 120 through a single child to p and q (1 : 2): 20 and 40; y: 60. With p away q has 60."""
    inner = BudgetNode("only", 7, (BudgetNode("p", 1), BudgetNode("q", 2)))
    tree = (BudgetNode("x", 1, (inner,)), BudgetNode("y", 1))
    wants = {"x/only/p": 200, "x/only/q": 200, "y": 200}
    assert share_out(tree, wants, 120) == {"x/only/p": 20, "x/only/q": 40, "y": 60}
    assert share_out(tree, {**wants, "x/only/p": 0}, 120) == {"x/only/p": 0, "x/only/q": 60, "y": 60}


def test_a_weight_that_is_missing_counts_as_one() -> None:
    assert share_out((BudgetNode("x"), BudgetNode("y", 3)), {"x": 99, "y": 99}, 40) == {"x": 10, "y": 30}


def test_the_same_team_name_in_two_organisations() -> None:
    tree = (BudgetNode("one", 1, (BudgetNode("a"),)), BudgetNode("two", 3, (BudgetNode("a"),)))
    assert share_out(tree, {"one/a": 99, "two/a": 99}, 40) == {"one/a": 10, "two/a": 30}


@pytest.mark.parametrize("moment", ["all_want_all", "two_is_idle", "a_is_modest", "one_is_modest"])
def test_by_scenario_file(
    tmp_path: Path, given: dict[str, Any], expected: dict[str, Any], moment: str
) -> None:
    """The demand as jobs of one GPU that come together: what the shares say is also what runs."""
    (wants,) = [one["demand"] for one in given["moments"] if one["name"] == moment]
    rows = [
        {"job": f"{team}-{k}", "team": team, "submit_s": 0, "gpus": 1, "run_s": 600, "min_runtime_s": 600}
        for team, gpus in wants.items()
        for k in range(gpus)
    ]
    budget = [
        {"name": name, "weight": node["weight"]}
        | {"children": [{"name": team, "weight": leaf["weight"]} for team, leaf in node["teams"].items()]}
        for name, node in given["tree"].items()
    ]
    scenario = front_door.load(tmp_path, {"cluster": given["cluster"], "budget": budget}, rows)
    table = front_door.run(scenario, "fair-share").shares_at(1)
    teams = [path.rpartition("/")[2] for path in table.team]
    for column in ("now_exact_gpus", "running_gpus"):
        assert dict(zip(teams, table[column].tolist(), strict=True)) == expected[moment]
