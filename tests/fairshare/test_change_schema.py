"""Changes of budgets in scenario files: every rule, every mistake at once."""

from typing import Any

import pytest

from fairshare.test_schema import mistakes, read, small
from gpuplan.fairshare.file_models import MOST_CHANGES
from gpuplan.fairshare.model import DAY, HOUR, BudgetChange
from gpuplan.fairshare.schema import from_mapping

FILE = """\
kind: fairshare
name: three-programmes
cluster: {nodes: 16, gpus_per_node: 8}
budget:
  - name: language
    weight: 60
    children: [{name: pretraining, weight: 70}, {name: alignment, weight: 30}]
  - {name: robotics, weight: 40}
budget_changes:
  - at: 14d
    weights: {language/pretraining: 40, robotics: 60}
  - {at: 36h, weights: {language: 0}}
workload: {jobs: []}
"""


def with_changes(*rows: Any) -> dict[str, Any]:
    return {**small(), "budget_changes": list(rows)}


def at(when: Any = "1d", **weights: Any) -> dict[str, Any]:
    return {"at": when, "weights": weights}


def test_changes_are_read_in_any_order() -> None:
    assert read(FILE).budget_changes == (
        BudgetChange(36 * HOUR, (("language", 0.0),)),
        BudgetChange(14 * DAY, (("language/pretraining", 40.0), ("robotics", 60.0))),
    )
    for none in ([], None, ()):
        assert from_mapping({**small(), "budget_changes": none}).budget_changes == ()
    assert from_mapping(with_changes(at(0, blue="0.5"))).budget_changes == (
        BudgetChange(0, (("blue", 0.5),)),
    )


@pytest.mark.parametrize(
    ("rows", "mistake"),
    [
        ([at(bleu=1)], "budget_changes.0.weights.bleu: must be the path of a budget; did you mean blue?"),
        ([at(a=1)], "budget_changes.0.weights.a: must be the path of a budget; did you mean red/a?"),
        ([at(**{"red/aa": 1})], "budget_changes.0.weights.red/aa: must be the path of a budget; did you mean red/a?"),
        ([at(**{"": 1})], "budget_changes.0.weights.: must be the path of a budget"),
        ([at(**{"<b>\n": 1})], "budget_changes.0.weights.<b>\\n: must be the path of a budget"),
        ([at(blue=-1)], "budget_changes.0.weights.blue: must be at least 0 (got -1)"),
        ([at(blue="inf")], "budget_changes.0.weights.blue: must be a number (got 'inf')"),
        ([at(blue=float("inf"))], "budget_changes.0.weights.blue: must be a number (got inf)"),
        ([at(blue=float("nan"))], "budget_changes.0.weights.blue: must be a number (got nan)"),
        ([at(blue=None)], "budget_changes.0.weights.blue: must be a number (got nothing)"),
        ([at(blue=True)], "budget_changes.0.weights.blue: must be a number (got True)"),
        ([at(blue=1e10)], "budget_changes.0.weights.blue: must be at most 1,000,000,000 (got 10000000000.0)"),
        ([at()], "budget_changes.0.weights: must name at least one budget"),
        ([{"at": "1d"}], "budget_changes.0.weights: must be given"),
        ([{"at": "1d", "weights": [1]}], "budget_changes.0.weights: must be a mapping (keys with values) (got [1])"),
        ([{"weights": {"blue": 1}}], "budget_changes.0.at: must be given"),
        (
            [at("-1d", blue=1)],
            "budget_changes.0.at: must be a number with s, min, h, d or w (90s, 30min, 8h, 7d) (got '-1d')",
        ),
        ([at(7, blue=1)], "budget_changes.0.at: must name its unit, as in 7d, 8h, 30min or 90s (got 7)"),
        ([at("9999999d", blue=1)], "budget_changes.0.at: must be at most 3660d (got '9999999d')"),
        ([{**at(blue=1), "weigths": 1}], "budget_changes.0.weigths: unknown key; did you mean weights?"),
        ([3], "budget_changes.0: must be a mapping (keys with values) (got 3)"),
        (
            [at("24h", blue=1), at("2d", blue=1), at("1d", red=1)],
            "budget_changes.2.at: must be another instant than that of row 0: budgets change once at an instant "
            "(got '1d')",
        ),
        (
            [at(red=0, blue=0)],
            "budget_changes.0.weights: must leave red or blue a weight above 0: nobody could have a share",
        ),
        (
            [at("2d", **{"red/b": 0}), at("1d", **{"red/a": 0})],  # the second in the file comes first
            "budget_changes.0.weights: must leave red/a or red/b a weight above 0: nobody could have a share",
        ),
    ],
)  # fmt: skip
def test_one_mistake(rows: list[Any], mistake: str) -> None:
    assert mistakes(with_changes(*rows)) == [mistake]


def test_a_name_that_several_budgets_have_is_no_path() -> None:
    mapping = with_changes(at(a=1))
    mapping["budget"][1] = {"name": "blue", "weight": 1, "children": [{"name": "a", "weight": 1}]}
    mapping["workload"]["jobs"] = []
    assert mistakes(mapping) == [
        "budget_changes.0.weights.a: must be the path of a budget, for there are red/a or blue/a"
    ]


def test_a_weight_that_comes_back_in_time_is_fine() -> None:
    rows = [at("1d", blue=0), at("2d", blue=1, red=0), at("3d", red=1)]
    assert len(from_mapping(with_changes(*rows)).budget_changes) == 3


def test_the_team_of_a_file_without_budgets_has_a_path() -> None:
    mapping = with_changes(at(everyone=2))
    del mapping["budget"]
    mapping["workload"]["jobs"] = []
    assert from_mapping(mapping).budget_changes[0].weights == (("everyone", 2.0),)


def test_all_mistakes_at_once_with_those_of_the_rest() -> None:
    mapping = with_changes(
        at("1d", bleu=-1, blue="x"), at("1d", red=0, blue=0), 5, {"at": "x", "weights": {}, "colour": 1}
    )
    mapping["window"] = 7
    mapping["budget"][0]["children"][0]["weight"] = -1
    found = mistakes(mapping)
    assert sorted(mistake.split(": ")[0] for mistake in found) == [
        "budget.0.children.0.weight",
        "budget_changes.0.weights.bleu",
        "budget_changes.0.weights.bleu",
        "budget_changes.0.weights.blue",
        "budget_changes.1.at",
        "budget_changes.1.weights",
        "budget_changes.2",
        "budget_changes.3.at",
        "budget_changes.3.colour",
        "budget_changes.3.weights",
        "window",
    ]


def test_mistakes_know_their_line_and_keys_that_stand_twice_are_told() -> None:
    with pytest.raises(ValueError, match="robotic") as caught:
        read(FILE.replace("robotics: 60", "robotic: 60, language: 1, language: 2"))
    found = {m.path: m.line for m in caught.value.mistakes}  # type: ignore[attr-defined]
    assert found["budget_changes.0.weights.robotic"] == 11
    assert any("language" in path for path in found)


def test_a_changed_tree_must_still_have_the_budgets_that_change() -> None:
    scenario = read(FILE)
    with pytest.raises(ValueError, match=r"did you mean robotic\?"):
        scenario.replace({"budget.1.name": "robotic"})
    assert scenario.replace({"budget.1.name": "robotic", "budget_changes": []}).budget_changes == ()
    with pytest.raises(ValueError, match="unknown path"):
        scenario.replace({"budget_changes.2.at": "1d"})
    with pytest.raises(ValueError, match=r"weights.language.x: must be the path of a budget"):
        scenario.replace({"budget_changes.0.weights.language.x": 1})


def test_many_changes_and_many_unknown_paths_are_sentences_soon() -> None:
    rows = [at(f"{k}h", blue=k) for k in range(1, MOST_CHANGES + 1)]
    assert len(from_mapping(with_changes(*rows)).budget_changes) == MOST_CHANGES
    (mistake,) = mistakes(with_changes(*rows, at("9999h", blue=1)))
    assert mistake == "budget_changes: must have at most 1,000 rows"
    found = mistakes(with_changes(at(**{f"x{k}": 1 for k in range(20_000)})))
    assert len(found) == 20_000
