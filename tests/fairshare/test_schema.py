"""Fair-share scenario files: every rule, every mistake at once, with its path, value and line."""

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gpuplan import load
from gpuplan.fairshare.model import (
    DAY,
    HOUR,
    NEVER,
    Behaviour,
    BudgetNode,
    Contract,
    Drain,
    FairshareScenario,
    Generate,
    Pool,
)
from gpuplan.fairshare.schema import from_mapping
from gpuplan.inputs.errors import InputError
from gpuplan.inputs.yaml_file import parse_yaml

#: The example of the contract of files and commands.
EXAMPLE = """\
kind: fairshare
name: three-programmes
cluster: {nodes: 16, gpus_per_node: 8}
pools: null
window: 7d
contract: {max_min_runtime: 8h, checkpoint_every: 30min, restart_cost: 5min}
budget:
  - name: language
    weight: 60
    children: [{name: pretraining, weight: 70}, {name: alignment, weight: 30}]
  - {name: robotics, weight: 40}
workload:
  generate: {days: 28, oversubscription: 2.5, debug_share: 0.2, seed: 1}
behaviour: {inflation: 0, squatting: 0, opt_out: 0, opt_out_limit_gpus: 16}
drains: [{node: 3, from: 2d, repair: 4h}]
"""

LANGUAGE = BudgetNode("language", 60.0, (BudgetNode("pretraining", 70.0), BudgetNode("alignment", 30.0)))

EXPECTED = FairshareScenario(
    name="three-programmes",
    pools=(Pool(16, 8),),
    budget=(LANGUAGE, BudgetNode("robotics", 40.0)),
    window_s=7 * DAY,
    contract=Contract(8 * HOUR, 1800, 300, None),
    generate=Generate(28.0, 2.5, 0.2, 1),
    behaviour=Behaviour(0.0, 0.0, 0.0, 16),
    drains=(Drain(3, 2 * DAY, 4 * HOUR),),
    until_s=28 * DAY,  # a generated run stops at its days
)


def small() -> dict[str, Any]:
    """Two teams on four nodes, two jobs, as a Python mapping."""
    return {
        "kind": "fairshare",
        "name": "small",
        "cluster": {"nodes": 4, "gpus_per_node": 8},
        "budget": [
            {
                "name": "red",
                "weight": 1,
                "children": [{"name": "a", "weight": 2}, {"name": "b", "weight": 1}],
            },
            {"name": "blue", "weight": 1},
        ],
        "workload": {
            "jobs": [
                {"job": "one", "team": "red/a", "submit_s": 0, "gpus": 8, "run_s": 3600},
                {"job": "two", "team": "blue", "submit_s": 60, "gpus": 1, "run_s": 60},
            ]
        },
        "drains": [{"node": 0, "from": "1h", "repair": "1h"}],
    }


def read(text: str) -> FairshareScenario:
    document = parse_yaml(text, "file.yaml")
    return from_mapping(document.data, document.source, document.line, document.mistakes)


def mistakes(source: str | dict[str, Any]) -> list[str]:
    with pytest.raises(InputError) as caught:
        read(source) if isinstance(source, str) else from_mapping(source)
    return [str(mistake) for mistake in caught.value.mistakes]


def edited(edit: Callable[[dict[str, Any]], Any]) -> dict[str, Any]:
    mapping = copy.deepcopy(small())
    edit(mapping)
    return mapping


def test_the_example_of_the_contract() -> None:
    assert read(EXAMPLE) == EXPECTED


def test_defaults_are_stated_and_everything_optional_may_be_left_out() -> None:
    least = {"kind": "fairshare", "name": "x", "cluster": {"gpus": 8}, "workload": {"generate": {}}}
    scenario = from_mapping(least)
    assert scenario == FairshareScenario(
        "x", (Pool(1, 8),), (BudgetNode("everyone"),), generate=Generate(), until_s=28 * DAY
    )
    assert scenario.flat
    nothing = {
        "window": "7d",
        "contract": None,
        "behaviour": None,
        "drains": None,
        "pools": None,
        "until": None,
    }
    assert from_mapping(least | nothing | {"budget": None}) == scenario


def test_pools_of_types_and_of_the_same_type() -> None:
    def edit(mapping: dict[str, Any]) -> None:
        del mapping["cluster"]
        mapping["pools"] = [
            {"gpu": "H100", "nodes": 8, "gpus_per_node": 8},
            {"gpu": "H100", "nodes": 2, "gpus_per_node": 4},
            {"gpu": "T4", "gpus": 6},
        ]

    assert from_mapping(edited(edit)).pools == (Pool(8, 8, "H100"), Pool(2, 4, "H100"), Pool(1, 6, "T4"))


def test_jobs_as_rows() -> None:
    def edit(mapping: dict[str, Any]) -> None:
        mapping["workload"]["jobs"] = [
            {"job": "z", "team": "a", "submit_s": "1h", "gpus": np.int64(2), "run_s": 0.5, "limit_s": -1},
            {"job": "y", "team": "blue", "gpus": 4, "run_s": "2h", "limit_s": "90min", "gpu": "A|B"},
            {
                "job": "x",
                "team": "blue",
                "gpus": 4,
                "run_s": 5,
                "min_runtime_s": 0,
                "resumable": "no",
                "priority": -2,
            },
        ]

    scenario = from_mapping(edited(edit))
    jobs = scenario.jobs
    assert jobs is not None
    assert jobs.name.tolist() == ["x", "y", "z"]
    assert jobs.team.tolist() == ["blue", "blue", "red/a"]
    assert jobs.submit_s.tolist() == [0, 0, 3600]
    assert jobs.run_s.tolist() == [5, 5400, 1]  # y is ended at its limit, half a second of z counts as one
    assert jobs.limit_s.tolist() == [NEVER, 5400, NEVER]
    assert jobs.minimum_s.tolist() == [0, 3600, 3600]
    assert jobs.resumable.tolist() == [False, True, True]
    assert (jobs.priority.tolist(), jobs.gpu.tolist()) == ([-2, 0, 0], ["", "A|B", ""])
    assert scenario.notes == (
        "1 of 3 jobs ended at their limit (the run time is longer).",
        "2 of 3 jobs without a minimum run time: min(limit, 1 h).",
    )


def test_a_job_table_lies_beside_the_scenario_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    head = "kind: fairshare\nname: x\ncluster: {gpus: 8}\nbudget: [{name: a}, {name: b}]\n"
    (tmp_path / "scenario.yaml").write_text(head + "workload: {file: jobs.csv}\n")
    (tmp_path / "jobs.csv").write_text("job,team,submit_s,gpus,run_s,limit_s\n1,a,0,2,60,30\n2,b,0,2,60,\n")
    scenario = load(tmp_path / "scenario.yaml")
    assert scenario.jobs is not None
    assert scenario.jobs.name.tolist() == ["1", "2"]
    assert scenario.until_s is None
    assert scenario.notes[0] == "No weight is given for a, b: 1 is taken."
    assert scenario.notes[1].startswith("jobs.csv: 2 jobs read, 2 used; 1 ended at their limit")
    assert load(tmp_path / "scenario.yaml").fingerprint == scenario.fingerprint
    monkeypatch.chdir(tmp_path)
    scenario.save(tmp_path / "again.yaml")
    assert load("again.yaml") == load(scenario.to_dict()) == scenario.replace({"name": "x"}) == scenario


def test_mistakes_of_the_table_stand_among_those_of_the_file(tmp_path: Path) -> None:
    text = "kind: fairshare\nname: x\ncluster: {gpus: 0}\nbudget: [{name: a}]\nworkload: {file: jobs.csv}\n"
    (tmp_path / "scenario.yaml").write_text(text)
    (tmp_path / "jobs.csv").write_text("job,team,submit_s,gpus,run_s\n1,ghosts,0,0,60\n")
    with pytest.raises(InputError) as caught:
        load(tmp_path / "scenario.yaml")
    assert [str(mistake) for mistake in caught.value.mistakes] == [
        "cluster.gpus: must be at least 1 (got 0)",
        "workload.file: jobs.csv, line 2, team: must be a team of the budget tree (got 'ghosts')",
        "workload.file: jobs.csv, line 2, gpus: must be at least 1 (got 0)",
    ]
    assert [mistake.line for mistake in caught.value.mistakes] == [3, 5, 5]
    (tmp_path / "jobs.csv").unlink()
    with pytest.raises(InputError, match=r"workload.file: jobs.csv: there is no such file"):
        load(tmp_path / "scenario.yaml")


def test_all_mistakes_at_once() -> None:
    text = EXAMPLE.replace("name: alignment", "name: pretraining").replace("window: 7d", "windo: 7d")
    text = text.replace("{name: robotics, weight: 40}", "{name: a/b, weight: nan, colour: red}")
    text = text.replace("oversubscription: 2.5", "oversubscription: 11").replace("node: 3", "node: 16")
    assert mistakes(text) == [
        "budget.0.children.1.name: must be unique among its siblings, but row 0 has it too (got 'pretraining')",
        "budget.1.name: must not hold /, which joins the names of a path (got 'a/b')",
        "budget.1.weight: must be a number (got 'nan')",
        "budget.1.colour: unknown key",
        "workload.generate.oversubscription: must be at most 10 (got 11)",
        "windo: unknown key; did you mean window?",
        "drains.0.node: must be the number of a node, 0 to 15 (got 16)",
    ]


@pytest.mark.parametrize(
    ("edit", "mistake"),
    [
        # cluster and pools
        (lambda m: m.pop("cluster"), "cluster: must be given, or pools"),
        (
            lambda m: m["cluster"].update(gpus=8),
            "cluster.nodes: must be left out where gpus (one flat pool) is given",
        ),
        (lambda m: m["cluster"].pop("nodes"), "cluster.nodes: must be given"),
        (
            lambda m: m.update(cluster={}),
            "cluster: must say nodes and gpus_per_node, or gpus for one flat pool",
        ),
        (lambda m: m["cluster"].update(nodes=0), "cluster.nodes: must be at least 1 (got 0)"),
        (
            lambda m: m["cluster"].update(nodes=1_000_000),
            "cluster: must have at most 1,000,000 GPUs (got 8000000)",
        ),
        (
            lambda m: m.update(cluster={"gpus": 10**6 + 1}),
            "cluster.gpus: must be at most 1,000,000 (got 1000001)",
        ),
        (
            lambda m: m["cluster"].update(gpu_per_node=1),
            "cluster.gpu_per_node: unknown key; did you mean gpus_per_node?",
        ),
        (
            lambda m: m.update(pools=[{"gpu": "A", "gpus": 1}]),
            "pools: must be left out where cluster is given (or cluster: null)",
        ),
        (lambda m: m.update(cluster=None, pools=[{"gpus": 64}]), "pools.0.gpu: must be given"),
        (
            lambda m: m.update(cluster=None, pools=[{"gpu": "A|B", "nodes": 9, "gpus_per_node": 1}]),
            "pools.0.gpu: must not hold |, with which jobs name several types, nor blanks at its ends (got 'A|B')",
        ),
        (
            lambda m: m.update(cluster=None, pools=[{"gpu": "A", "gpus": 1}] * 61),
            "pools: must have at most 60 rows",
        ),
        # window, contract, until
        (lambda m: m.update(window=0), "window: must be at least 1s (got 0)"),
        (
            lambda m: m.update(window="-1d"),
            "window: must be a number with s, min, h, d or w (90s, 30min, 8h, 7d) (got '-1d')",
        ),
        (lambda m: m.update(window=-5), "window: must name its unit, as in 7d, 8h, 30min or 90s (got -5)"),
        (lambda m: m.update(window=7), "window: must name its unit, as in 7d, 8h, 30min or 90s (got 7)"),
        (
            lambda m: m.update(window="20y"),
            "window: must be a number with s, min, h, d or w (90s, 30min, 8h, 7d) (got '20y')",
        ),
        (lambda m: m.update(window="9999d"), "window: must be at most 3660d (got '9999d')"),
        (
            lambda m: m.update(window="1:30"),
            "window: must name its unit, as in 90min, 90s or 1.5h: with colons",
        ),
        (lambda m: m.update(window="1h"), "contract.max_min_runtime: must not exceed window, 1h (got '8h')"),
        (
            lambda m: m.update(contract={"checkpoint_every": 0}),
            "contract.checkpoint_every: must be at least 1s (got 0)",
        ),
        (
            lambda m: m.update(contract={"hysteresis": -0.1}),
            "contract.hysteresis: must be at least 0 (got -0.1)",
        ),
        (
            lambda m: m.update(contract={"restart_costs": 0}),
            "contract.restart_costs: unknown key; did you mean restart_cost?",
        ),
        (lambda m: m.update(until=0), "until: must be at least 1s (got 0)"),
        # budget
        (lambda m: m["budget"][1].update(weight=-1), "budget.1.weight: must be at least 0 (got -1)"),
        (lambda m: m["budget"][1].update(weight=float("inf")), "budget.1.weight: must be a number (got inf)"),
        (lambda m: m["budget"][1].update(weight=float("nan")), "budget.1.weight: must be a number (got nan)"),
        (lambda m: m["budget"][1].update(weight="heavy"), "budget.1.weight: must be a number (got 'heavy')"),
        (lambda m: m["budget"][1].update(name=""), "budget.1.name: must not be empty (got '')"),
        (
            lambda m: m["budget"][1].update(name="a\x1b[2J"),
            "budget.1.name: must not hold the control character U+001B",
        ),
        (
            lambda m: m["budget"][1].update(name="x" * 201),
            "budget.1.name: must have at most 200 characters, but has 201",
        ),
        (lambda m: m["budget"][1].pop("name"), "budget.1.name: must be given"),
        (lambda m: m["budget"][1].update(wieght=1), "budget.1.wieght: unknown key; did you mean weight?"),
        (
            lambda m: m["budget"][0]["children"][0].update(name="red"),
            "budget.0.children.0.name: must not be the name of a budget in which it lies: red/red (got 'red')",
        ),
        (
            lambda m: [row.update(weight=0) for row in m["budget"]],
            "budget: must hold a weight above 0: nobody could have a share",
        ),
        (
            lambda m: [row.update(weight="0.0") for row in m["budget"][0]["children"]],
            "budget.0.children: must hold a weight above 0: nobody could have a share",
        ),
        (lambda m: m.update(budget={"red": 1}), "budget: must be a list (got a mapping of 1 key)"),
        (
            lambda m: m["budget"].append("green"),
            "budget.2: must be a mapping (keys with values) (got 'green')",
        ),
        (lambda m: m["budget"][1].update(children=3), "budget.1.children: must be a list (got 3)"),
        # workload
        (lambda m: m.pop("workload"), "workload: must be given"),
        (lambda m: m.update(workload={}), "workload: must say one of file, generate or jobs"),
        (
            lambda m: m["workload"].update(generate={}),
            "workload.jobs: must be left out where generate is given",
        ),
        (
            lambda m: m.update(workload={"generate": {"days": 0}}),
            "workload.generate.days: must be at least 1min (got 0)",
        ),
        (
            lambda m: m.update(workload={"generate": {"oversubscription": -1}}),
            "workload.generate.oversubscription: must be at least 0 (got -1)",
        ),
        (
            lambda m: m.update(workload={"generate": {"debug_share": 2}}),
            "workload.generate.debug_share: must be at most 1",
        ),
        (
            lambda m: m.update(workload={"file": "jobs.txt"}),
            "workload.file: jobs.txt: must be a CSV file, .csv or .csv.gz",
        ),
        (
            lambda m: m["workload"]["jobs"][0].update(gpus=0),
            "workload.jobs.0.gpus: must be at least 1 (got 0)",
        ),
        (
            lambda m: m["workload"]["jobs"][0].update(gpus=-8),
            "workload.jobs.0.gpus: must be at least 1 (got -8)",
        ),
        (
            lambda m: m["workload"]["jobs"][0].update(gpus=2.5),
            "workload.jobs.0.gpus: must be a whole number (got 2.5)",
        ),
        (
            lambda m: m["workload"]["jobs"][0].update(submit_s=-1),
            "workload.jobs.0.submit_s: must not be negative (got -1)",
        ),
        (
            lambda m: m["workload"]["jobs"][0].update(limit_s=0),
            "workload.jobs.0.limit_s: must be more than 0 for work that",
        ),
        (
            lambda m: m["workload"]["jobs"][0].update(limit_s=-2),
            "workload.jobs.0.limit_s: must not be negative (got -2)",
        ),
        (
            lambda m: m["workload"]["jobs"][1].update(job="one"),
            "workload.jobs.1.job: must be unique, but row 0 has the same id",
        ),
        (
            lambda m: m["workload"]["jobs"][1].update(team="blu"),
            "workload.jobs.1.team: must be a team of the budget tree; did you mean blue? (got 'blu')",
        ),
        (
            lambda m: m["workload"]["jobs"][1].update(team="red"),
            "workload.jobs.1.team: must be a team, but this budget is divided into red/a, red/b (got 'red')",
        ),
        (
            lambda m: m["workload"]["jobs"][1].pop("team"),
            "workload.jobs.1.team: must be given: the budget tree has several teams",
        ),
        (
            lambda m: m["workload"]["jobs"][0].update(gpu="A||B"),
            "workload.jobs.0.gpu: must be a GPU type, or several joined",
        ),
        (
            lambda m: m["workload"]["jobs"][0].update(runs=1),
            "workload.jobs.0.runs: unknown key; did you mean run_s?",
        ),
        # behaviour and drains
        (
            lambda m: m.update(behaviour={"inflation": 1.5}),
            "behaviour.inflation: must be at most 1 (got 1.5)",
        ),
        (
            lambda m: m["drains"][0].update(node=4),
            "drains.0.node: must be the number of a node, 0 to 3 (got 4)",
        ),
        (lambda m: m["drains"][0].update(frm=4), "drains.0.frm: unknown key; did you mean from?"),
        (lambda m: m["drains"][0].pop("from"), "drains.0.from: must be given"),
        (
            lambda m: m["drains"].append({"node": 0, "from": "90min", "repair": 0}),
            "drains.1.from: must not lie within the drain of row 0, which repairs node 0 until 2h (got '90min')",
        ),
        # the whole
        (lambda m: m.update(kind="packing"), "kind: must be fairshare (got 'packing')"),
        (
            lambda m: m.update(kind="fair-share"),
            "kind: must be fairshare; did you mean fairshare? (got 'fair-share')",
        ),
        (lambda m: m.pop("kind"), "kind: must be given"),
        (lambda m: m.update({3: 4}), "must have words as keys, not a int"),
    ],
)
def test_one_mistake(edit: Callable[[dict[str, Any]], Any], mistake: str) -> None:
    (found, *_) = mistakes(edited(edit))
    assert found.startswith(mistake)


def test_the_small_scenario_has_no_mistake() -> None:
    """Otherwise the test above would show less than it seems to."""
    assert from_mapping(small()).gpus == 32
    assert from_mapping(edited(lambda m: m["drains"].append({"node": 0, "from": "2h", "repair": 0}))).drains


def test_the_same_leaf_name_in_two_programmes_is_fine_and_jobs_name_a_path() -> None:
    def edit(mapping: dict[str, Any]) -> None:
        mapping["budget"][1]["children"] = [{"name": "a", "weight": 1}]
        mapping["workload"]["jobs"][1]["team"] = "a"

    assert mistakes(edited(edit)) == [
        "workload.jobs.1.team: must be a path, for there are blue/a, red/a (got 'a')",
    ]


def test_a_budget_that_holds_itself_is_a_sentence() -> None:
    loop: dict[str, Any] = {"name": "loop", "weight": 1}
    loop["children"] = [{"name": "inner", "weight": 1, "children": [loop]}]
    found = mistakes(edited(lambda m: m.update(budget=[loop])))
    assert found[0] == "budget.0.children.0.children.0.children: must not hold the budget itself"
    alias = EXAMPLE.replace(
        "- {name: robotics, weight: 40}", "- &r {name: robotics, weight: 40, children: [*r]}"
    )
    assert mistakes(alias) == ["line 11: must not hold itself, but *r lies inside &r"]


def test_a_tree_of_50_levels_is_read_and_one_of_51_or_5000_is_a_sentence() -> None:
    def chain(levels: int) -> dict[str, Any]:
        node: dict[str, Any] = {"name": f"level-{levels}"}
        for level in range(levels - 1, 0, -1):
            node = {"name": f"level-{level}", "children": [node]}
        return node

    def scenario(levels: int) -> dict[str, Any]:
        head = {"kind": "fairshare", "name": "deep", "cluster": {"gpus": 8}}
        return {**head, "budget": [chain(levels)], "workload": {"jobs": []}}

    deep = from_mapping(scenario(50))
    assert read(deep.to_yaml()) == deep  # as a file too
    for levels in (51, 5000):
        (mistake,) = mistakes(scenario(levels))
        assert mistake.endswith("must not be more than 50 levels deep")


def test_jobs_larger_than_any_pool_are_for_the_simulator_to_set_aside() -> None:
    scenario = from_mapping(edited(lambda m: m["workload"]["jobs"][0].update(gpus=100_000, gpu="V100")))
    assert scenario.jobs is not None
    assert scenario.jobs.gpus.max() == 100_000


def test_a_hundred_thousand_identical_rows_are_sentences_soon() -> None:
    def edit(mapping: dict[str, Any]) -> None:
        mapping["workload"]["jobs"] = [mapping["workload"]["jobs"][0]] * 20_000

    assert len(mistakes(edited(edit))) == 19_999


# --------------------------------------------------------------------- changes


def changes_refused(scenario: FairshareScenario, changes: dict[str, Any]) -> list[str]:
    with pytest.raises(InputError) as caught:
        scenario.replace(changes)
    return [str(mistake) for mistake in caught.value.mistakes]


def test_values_change_by_path_and_the_rest_stays() -> None:
    changed = EXPECTED.replace(
        {
            "window": "1d",
            "budget.0.children.1.weight": 0,
            "contract.hysteresis": 0.1,
            "workload.generate.days": 7,
            "drains.0.from": "3d",
            "cluster.nodes": np.int64(32),
        }
    )
    assert (changed.window_s, changed.contract.hysteresis, changed.until_s) == (DAY, 0.1, 7 * DAY)
    assert changed.budget[0].children[1] == BudgetNode("alignment", 0.0)
    assert (changed.drains[0].from_s, changed.pools) == (3 * DAY, (Pool(32, 8),))
    back = {
        "window": "7d",
        "budget.0.children.1.weight": 30,
        "contract.hysteresis": None,
        "cluster.nodes": 16,
    }
    assert changed.replace(back | {"workload.generate.days": 28, "drains.0.from": "2d"}) == EXPECTED


def test_a_workload_and_a_cluster_of_another_form_take_the_place_of_the_one_there_is() -> None:
    scenario = from_mapping(small())
    generated = scenario.replace({"workload.generate.oversubscription": 2})
    assert (generated.jobs, generated.generate) == (None, Generate(oversubscription=2.0))
    assert scenario.replace({"cluster.gpus": 64}).pools == (Pool(1, 64),)
    assert scenario.replace({"pools": [{"gpu": "A", "gpus": 4}]}).pools == (Pool(1, 4, "A"),)


def test_jobs_are_kept_and_their_teams_are_looked_for_in_a_changed_tree() -> None:
    scenario = from_mapping(small())
    assert scenario.replace({"budget.0.weight": 3}).jobs is scenario.jobs
    assert changes_refused(scenario, {"budget.1.name": "green"}) == [
        "budget: must hold the team of 1 job (got 'blue')"
    ]
    assert scenario.replace({"workload.jobs.0.gpus": 3}).jobs.gpus.tolist() == [3, 1]  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("path", "rule"),
    [
        ("windo", "unknown path; did you mean window?"),
        ("budget.2.weight", "unknown path: budget has 2 entries, counted from 0"),
        ("budget.0.children.0.wait", "unknown path; did you mean weight?"),
        ("window.days", "unknown path: window has no parts"),
        ("contract.max_min_runtime.hours", "unknown path: contract.max_min_runtime has no parts"),
        ("drains.0.since", "unknown path"),
        ("", "unknown path"),
    ],
)
def test_unknown_paths(path: str, rule: str) -> None:
    (mistake,) = changes_refused(EXPECTED, {path: 1})
    assert mistake == (f"{path}: {rule}" if path else rule)


def test_changes_obey_the_rules_of_files() -> None:
    assert changes_refused(EXPECTED, {"window": "1h", "budget.1.weight": -1}) == [
        "budget.1.weight: must be at least 0 (got -1)",
        "contract.max_min_runtime: must not exceed window, 1h (got '8h')",
    ]


def test_a_note_about_weights_goes_when_weights_are_changed() -> None:
    scenario = read(EXAMPLE.replace("{name: robotics, weight: 40}", "{name: robotics}"))
    assert scenario.notes == ("No weight is given for robotics: 1 is taken.",)
    assert scenario.replace({"window": "1d"}).notes == scenario.notes
    assert scenario.replace({"budget.1.weight": 5}).notes == ()
