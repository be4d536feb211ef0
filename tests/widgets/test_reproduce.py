import csv
import io

import pytest

import gpuplan as gp
from gpuplan_widgets import reproduce

NAMES = [
    "=1+1",
    "<b>x</b>",
    "../x",
    '"; import os; "',
    "{braces}",
    "\u202eabc",
    "🚀",
    "\\",
    "'''",
]


def hostile():
    jobs = [
        {"name": name, "kind": "training", "gpus": 1, "hours": 1, "priority": 1 + place}
        for place, name in enumerate(NAMES)
    ]
    app = {"name": "@SUM(A1)", "priority": 2, "demand": [0, 1, 2, 1]}
    return gp.load(
        {"kind": "allocation", "name": "</pre>", "cluster": {"gpus": 4}, "horizon": {"steps": 4},
         "realtime": [app], "batch": jobs}
    )  # fmt: skip


def run(code: str) -> dict[str, object]:
    found: dict[str, object] = {}
    exec(code, found)
    return found


def test_three_lines_make_a_scenario_of_ones_own_again_whatever_its_names():
    scenario = hostile()
    code = reproduce.python(scenario, ["fifo", "aware"])
    assert len(code.splitlines()) == 3
    found = run(code)
    assert found["scenario"] == scenario
    for policy in ("fifo", "aware"):
        assert found["both"][policy].fingerprint == gp.plan(scenario, policy).fingerprint


def test_a_changed_shipped_scenario_is_named_with_its_changes():
    changes = {"objective.shortfall_penalty": 3.0, "cluster.gpus": 12}
    scenario = gp.load("training-rush").replace(changes)
    code = reproduce.python(scenario, ["fifo", "aware"], shipped="training-rush", changes=changes)
    assert "gp.load('training-rush').replace(" in code
    assert run(code)["scenario"].fingerprint == scenario.fingerprint


@pytest.mark.parametrize("changes", [{}, {"cluster.gpus": 9}, {"cluster.gpus": -1}])
def test_the_name_is_not_used_where_it_would_give_another_scenario(changes):
    scenario = gp.load("training-rush").replace({"cluster.gpus": 12})
    code = reproduce.python(scenario, ["aware"], shipped="training-rush", changes=changes)
    assert "gp.load({" in code
    assert run(code)["scenario"].fingerprint == scenario.fingerprint


def test_one_policy_on_both_sides_is_planned_once():
    assert reproduce.python(hostile(), ["aware", "aware"]).endswith("gp.compare(scenario, ['aware'])\n")


def test_tables_are_safe_in_a_spreadsheet():
    scenario = hostile()
    plans = {"left": gp.plan(scenario, "fifo"), "right": gp.plan(scenario, "aware")}
    rows = list(csv.DictReader(io.StringIO(reproduce.jobs_csv(plans), newline="")))
    assert [row["side"] for row in rows] == ["left"] * len(NAMES) + ["right"] * len(NAMES)
    # What a spreadsheet would run gets an apostrophe, and what has one already gets one more.
    safe = ["'" + name if name.startswith(("=", "'")) else name for name in NAMES]
    assert safe[0] == "'=1+1"
    assert [row["job"] for row in rows[: len(NAMES)]] == safe
    figures = list(csv.DictReader(io.StringIO(reproduce.figures_csv(plans))))
    assert [row["policy"] for row in figures] == ["fifo"] * len(plans["left"].figures) + ["aware"] * len(
        plans["left"].figures
    )
    assert figures[0].keys() == {"side", "policy", "figure", "value", "unit"}
