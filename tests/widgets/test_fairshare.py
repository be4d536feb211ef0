"""The fair-share explorer without a browser: each control, what is said, what is handed out."""

import html
import re
import threading
import time

import pytest

import gpuplan as gp
from gpuplan.fairshare.keep_jobs import keep_jobs
from gpuplan.fairshare.run import compare
from gpuplan.inputs.errors import InputError
from gpuplan_widgets import FairShareExplorer, answering
from gpuplan_widgets import fairshare as module
from gpuplan_widgets.action_bar import Copied, Saved
from gpuplan_widgets.fairshare_account import ALL_FIGURES, CHARTS, WHY
from gpuplan_widgets.fairshare_controls import FOLLOWS, KEPT

OLD = "The picture is old"

SMALL = {
    "kind": "fairshare",
    "name": "small",
    "cluster": {"nodes": 2, "gpus_per_node": 8},
    "window": "1d",
    "contract": {"max_min_runtime": "2h"},
    "budget": [
        {
            "name": "language",
            "weight": 60,
            "children": [{"name": "a", "weight": 70}, {"name": "b", "weight": 30}],
        },
        {"name": "robotics", "weight": 40},
    ],
    "workload": {"generate": {"days": 2, "oversubscription": 1.5, "debug_share": 0.2, "seed": 1}},
}


@pytest.fixture(autouse=True)
def at_once(monkeypatch):
    """However busy the machine, nothing is slow enough for the background unless a test says so."""
    monkeypatch.setattr(answering, "SLOW_S", 600.0)


@pytest.fixture
def explorer():
    return FairShareExplorer(SMALL)


def plain(widget):
    """What an HTML widget says."""
    return re.sub(r"\s+", " ", html.unescape(re.sub("<[^>]*>", " ", widget.value))).replace("\u00a0", " ")


def place(explorer, name):
    """The sentence beside a control."""
    return html.unescape(re.sub("<[^>]*>", "", explorer.controls.messages[name].value))


def shows(explorer, scenario, left="easy", right="fair-share"):
    """Whether what is on screen is what gpuplan gives for a scenario."""
    runs = explorer.runs
    return (
        explorer.scenario.fingerprint == scenario.fingerprint
        and runs["left"].fingerprint == gp.simulate(scenario, left).fingerprint
        and runs["right"].fingerprint == gp.simulate(scenario, right).fingerprint
    )


# ------------------------------------------------------------------ what is on screen


def test_what_is_on_screen_at_first_is_the_scenario_given(explorer):
    assert shows(explorer, gp.load(SMALL))
    assert explorer.message == ""
    assert explorer.changes == {}
    assert repr(explorer) == "FairShareExplorer('small', easy | fair-share)"
    assert explorer.chart.label.startswith("easy → fair-share: occupancy ")


def test_explore_opens_it_for_a_fair_share_scenario():
    assert isinstance(gp.explore("first-hours"), FairShareExplorer)


MOVES = [
    ("window", 6 * 3600, {"window": "6h"}),
    ("cap", 1800, {"contract.max_min_runtime": "30min"}),
    ("hysteresis", False, {"contract.hysteresis": 0}),
    ("load", 3.0, {"workload.generate.oversubscription": 3.0}),
    ("debug", 45.0, {"workload.generate.debug_share": 0.45}),
    ("days", 3.0, {"workload.generate.days": 3}),
    ("seed", 7, {"workload.generate.seed": 7}),
    ("inflation", 50.0, {"behaviour.inflation": 0.5}),
    ("squatting", 35.0, {"behaviour.squatting": 0.35}),
    ("opt_out", 100.0, {"behaviour.opt_out": 1}),
    ("opt_out_limit", 4, {"behaviour.opt_out_limit_gpus": 4}),
]


@pytest.mark.parametrize(("control", "value", "changes"), MOVES)
def test_a_control_changes_its_value_in_the_scenario_and_the_picture(explorer, control, value, changes):
    rev = explorer.chart.rev
    getattr(explorer.controls, control).value = value
    assert shows(explorer, gp.load(SMALL).replace(changes))
    assert explorer.changes == changes
    assert explorer.chart.rev == rev + 1
    assert explorer.message == ""


def test_every_control_is_named_and_says_what_it_does(explorer):
    assert all(widget.description and widget.tooltip for widget in explorer.controls.named().values())


@pytest.mark.parametrize("policy", gp.FAIRSHARE_POLICIES)
def test_every_policy_stands_on_either_side_with_what_it_does(explorer, policy):
    explorer.controls.left.value = policy
    explorer.controls.right.value = policy
    assert [run.policy for run in explorer.runs.values()] == [policy, policy]
    assert explorer.runs["left"] is explorer.runs["right"]  # not run twice
    assert explorer.message == ""
    (about,) = (one.about for one in module.c.ALL if one.name == policy)
    assert plain(explorer._about["left"]).strip() == re.sub(r"\s+", " ", about)


def test_controls_start_where_the_scenario_is_however_far_out_that_is():
    odd = {**SMALL, "window": "5h", "contract": {"max_min_runtime": "7min", "hysteresis": 0}}
    odd["workload"] = {"generate": {"days": 0.5, "oversubscription": 6, "debug_share": 0.07, "seed": 2**53}}
    odd["behaviour"] = {"inflation": 0.07}
    explorer = FairShareExplorer(odd)
    values = {name: widget.value for name, widget in explorer.controls.named().items()}
    assert (values["window"], values["cap"], values["hysteresis"]) == (5 * 3600, 420, False)
    assert (values["load"], values["days"], values["seed"]) == (6.0, 0.5, 2**53)
    assert explorer.changes == {}
    explorer.controls.hysteresis.value = True
    assert explorer.changes == {"contract.hysteresis": None}
    # the cap over the window: 7 min of 5 h
    assert explorer.runs["right"].problem.hysteresis == 7 / 300
    assert "0.0233" in plain(explorer._hysteresis)


def test_a_scenario_with_jobs_of_its_own_has_no_controls_for_generated_ones():
    explorer = FairShareExplorer("first-hours")
    off = {name for name, widget in explorer.controls.named().items() if widget.disabled}
    assert off == {"load", "debug", "days", "seed", "demand"}
    explorer.budget.set_share("blue", 0.75)
    assert shows(explorer, gp.load("first-hours").replace({"budget.1.weight": 3}))


def test_a_page_that_gives_back_a_number_with_another_last_digit_changes_nothing(explorer):
    rev = explorer.chart.rev
    explorer.controls.days.value = 1.9999999999999996
    explorer.controls.load.value = 1.5000000000000002
    assert (explorer.chart.rev, explorer.changes) == (rev, {})
    explorer.budget.set_share("robotics", 0.5)
    assert explorer.changes == {"budget.1.weight": 60.0}
    table = FairShareExplorer("first-hours")
    table.controls.days.value = 27.0  # it cannot be moved by hand: the jobs are those of the scenario
    assert table.scenario.fingerprint == gp.load("first-hours").fingerprint


# ------------------------------------------------------------------ the tree


def test_a_share_that_is_dragged_leaves_the_jobs_as_they_are(explorer):
    before = explorer.runs["right"].problem.jobs
    explorer.budget._handle_custom_msg({"type": "share", "row": 3, "share": 0.7, "seq": 1}, [])
    # 0.7 = w / (w + 60)
    expected = keep_jobs(gp.load(SMALL)).replace({"budget.1.weight": 140})
    assert shows(explorer, expected)
    assert explorer.runs["right"].problem.jobs == before
    assert "The jobs stay as they were generated" in plain(explorer.account.summary)


def test_jobs_may_follow_the_shares_instead(explorer):
    explorer.budget.set_share("robotics", 0.7)
    explorer.controls.demand.value = FOLLOWS
    assert shows(explorer, gp.load(SMALL).replace({"budget.1.weight": 140}))
    assert "The jobs follow the shares" in plain(explorer.account.summary)
    explorer.controls.demand.value = KEPT
    assert shows(explorer, keep_jobs(gp.load(SMALL)).replace({"budget.1.weight": 140}))


def test_shares_and_other_controls_go_together(explorer):
    explorer.controls.load.value = 2.0
    explorer.budget.set_share("language/b", 0.5)
    changed = gp.load(SMALL).replace({"workload.generate.oversubscription": 2})
    assert shows(explorer, keep_jobs(changed).replace({"budget.0.children.1.weight": 70}))
    explorer.controls.load.value = 1.5
    assert shows(explorer, keep_jobs(gp.load(SMALL)).replace({"budget.0.children.1.weight": 70}))


def test_a_muted_team_is_named_and_served_last(explorer):
    given = next(
        row for row in explorer.runs["right"].teams.to_dict("records") if row["team"] == "language/b"
    )
    explorer.budget.mute("language/b")
    assert "Muted: language/b; what has no share is owed nothing" in plain(explorer.account.summary)
    now = next(row for row in explorer.runs["right"].teams.to_dict("records") if row["team"] == "language/b")
    assert (now["entitlement_gpus"], now["owed_gpu_hours"]) == (0, 0)
    assert now["jobs"] == given["jobs"]
    assert explorer.message == ""


def test_generated_jobs_are_kept_and_jobs_of_a_file_are_left_alone():
    generated = gp.load(SMALL)
    kept = keep_jobs(generated)
    assert kept.jobs == gp.simulate(generated).problem.jobs
    assert kept.until_s == generated.until_s
    assert keep_jobs(kept) is kept
    assert gp.load(kept.to_dict()).fingerprint == kept.fingerprint
    assert "1.5" in kept.notes[-1]


# ------------------------------------------------------------------ what is said


def test_the_headline_has_goodput_beside_occupancy(explorer):
    left, right = (run.figures for run in explorer.runs.values())
    both = [f"{100 * left[name]:.1f} % → {100 * right[name]:.1f} %" for name in ("occupancy", "goodput")]
    assert (
        plain(explorer.account.summary)
        .strip()
        .startswith(f"easy → fair-share: occupancy {both[0]}, goodput {both[1]}")
    )


def test_who_gets_more_of_what_it_is_owed_under_the_other_policy_is_said():
    explorer = FairShareExplorer("three-programmes")
    left, right = (run.teams.set_index("team")["delivered_share"] for run in explorer.runs.values())
    team = "language/pretraining"
    assert right[team] > left[team] + 0.1
    said = plain(explorer.account.summary)
    assert "Under fair-share instead of easy: more of what they are owed for language/pretraining (" in said
    assert f"{team} ({100 * left[team]:.1f} % → {100 * right[team]:.1f} %)" in said


def test_the_half_that_is_lost_without_hysteresis_is_said(explorer):
    # No protection and no hysteresis: whoever runs has the worse claim at once.
    explorer.controls.load.value = 3.0
    explorer.controls.cap.value = 300
    explorer.controls.hysteresis.value = False
    figures = explorer.runs["right"].figures
    assert figures["lost_share"] > 0.1
    words = plain(explorer.account.summary)
    assert f"occupancy {100 * figures['occupancy']:.1f} % looks full, but goodput is" in words
    assert "without hysteresis budgets in balance preempt each other over and over" in words
    explorer.controls.hysteresis.value = True
    assert "without hysteresis" not in plain(explorer.account.summary)


def test_who_gets_more_and_who_waits_longer_against_the_scenario_as_given(explorer):
    assert "Against the scenario as given" not in plain(explorer.account.summary)
    explorer.controls.opt_out_limit.value = 4  # nobody opts out
    assert "Against the scenario as given no team has noticeably more or fewer GPUs" in plain(
        explorer.account.summary
    )
    before = explorer.runs["right"].teams.set_index("team")
    explorer.controls.load.value = 3.0
    explorer.budget.set_share("robotics", 0.9)
    said = plain(explorer.account.summary)
    assert "Against the scenario as given, under fair-share:" in said
    after = explorer.runs["right"].teams.set_index("team")
    columns = ["delivered_gpu_hours", "unallocated_gpu_hours"]
    was, now = (table.loc["robotics", columns].sum() / 48 for table in (before, after))
    assert f"robotics ({was:,.1f} → {now:,.1f} GPUs on average)" in said


def test_the_table_of_teams_has_both_sides(explorer):
    rows = re.findall("<tr>(.*?)</tr>", explorer.account.teams.value)
    assert len(rows) == 1 + 3
    teams = explorer.runs["right"].teams
    for row, team in zip(rows[1:], teams.to_dict("records"), strict=True):
        cells = [html.unescape(re.sub("<[^>]*>", "", cell)) for cell in re.findall("<t[hd].*?</t[hd]>", row)]
        assert cells[0] == team["team"]
        assert cells[1] == f"{100 * team['share']:.1f}\u00a0%"
        assert cells[6] == f"{100 * team['delivered_share']:.1f}\u00a0%"


def test_open_waits_and_jobs_that_can_never_run_are_said():
    scenario = gp.load("two-types").replace({"until": "4h"})
    explorer = FairShareExplorer(scenario)
    said = plain(explorer.account.summary)
    assert "set aside, for nothing can run them old-model: no V100." in said
    count = explorer.runs["right"].figures["waits_are_lower_bounds"]
    assert count == 1
    assert "fair-share: 1 job has not started when the run ends; such waits count as waited so far" in said
    assert "≥" in plain(explorer.account.teams)


def test_main_figures_have_units_and_all_figures_their_meaning(explorer):
    main = plain(explorer.account.figures)
    assert main.index("occupancy") < main.index("goodput") < main.index("lost_share")
    assert "(per cent of available GPU-time)" in main
    assert explorer.account.all_figures.value == ""  # folded away, not written
    explorer.account.fold.selected_index = ALL_FIGURES
    whole = plain(explorer.account.all_figures)
    assert all(name in whole for name in explorer.runs["left"].figures)
    explorer.account.fold.selected_index = CHARTS
    assert "left_areas" in explorer.account.charts.value


def test_a_page_without_a_kernel_shows_the_change_the_teams_and_the_figures(explorer):
    page = explorer._repr_mimebundle_()["text/html"]
    assert "occupancy" in page
    assert "robotics" in page
    assert "Run the cell to move the controls." in page


def test_with_picture_it_shows_the_charts():
    bundle = FairShareExplorer(SMALL, picture=True)._repr_mimebundle_()
    assert "image/png" in bundle or "text/html" in bundle


# ------------------------------------------------------------------ why does this job wait?


def test_why_a_job_waits_is_said_for_both_sides(explorer):
    explorer.controls.load.value = 3.0
    why = explorer.account.why
    explorer.account.fold.selected_index = WHY
    assert why.when.max == 48  # hours of two days
    why.when.value = 30.0
    names = [name for _, name in why.job.options[1:]]
    assert names
    why.job.value = names[0]
    said = plain(why.said)
    for side, run in explorer.runs.items():
        assert f"{side} ({run.policy}): {run.why(names[0], 30 * 3600)}" in said
    explorer.controls.left.value = "fifo"
    assert why.job.value == names[0]
    assert f"left (fifo): {explorer.runs['left'].why(names[0], 30 * 3600)}" in plain(why.said)


def test_any_job_may_be_named_and_an_unknown_one_is_a_sentence(explorer):
    why = explorer.account.why
    explorer.account.fold.selected_index = WHY
    first = str(explorer.runs["left"].problem.jobs.name[0])
    why.name.value = first
    t = round(why.when.value * 3600)
    assert explorer.runs["right"].why(first, t) in plain(why.said)
    why.name.value = "<img src=x onerror=alert(1)>"
    assert "job: no such job" in plain(why.said)
    assert "<img" not in why.said.value
    why.name.value = ""
    assert plain(why.said) == ""


def test_a_closed_fold_works_nothing_out(explorer, monkeypatch):
    asked = []
    monkeypatch.setattr("gpuplan_widgets.fairshare_why.Instant", lambda *args: asked.append(args))
    explorer.controls.seed.value = 3
    explorer.account.why.when.value = 0.5
    assert asked == []


# ------------------------------------------------------------------ mistakes, speed


def test_what_cannot_be_is_a_sentence_beside_the_control_and_the_last_picture_stays(explorer, monkeypatch):
    before = explorer.runs["right"].fingerprint
    explorer.controls.window.value = 3600
    said = "Cap of protection (contract.max_min_runtime) must not exceed window, 1h (got '2h')"
    assert said in place(explorer, "window")
    assert OLD in explorer.message
    explorer.controls.cap.value = 1800
    assert explorer.message == ""
    explorer.reset()

    def refuse(*_args):
        raise RuntimeError("no")

    monkeypatch.setattr(module, "simulate", refuse)
    explorer.controls.window.value = 6 * 3600
    assert "Planning failed: RuntimeError: no" in place(explorer, "window")
    assert OLD in explorer.message
    assert explorer.chart.old
    assert explorer.runs["right"].fingerprint == before
    monkeypatch.undo()
    explorer.controls.window.value = 3 * 3600
    assert explorer.message == ""
    assert not explorer.chart.old


def test_a_weight_that_is_too_large_is_said_beside_the_tree():
    budget = [{"name": "a", "weight": 1e9}, {"name": "b", "weight": 1e9}]
    explorer = FairShareExplorer({**SMALL, "budget": budget})
    explorer.budget.set_share("a", 0.9)
    assert "budget.0.weight: must be at most" in place(explorer, "budget")
    explorer.budget.set_share("a", 0.2)
    assert explorer.message == ""


def test_mistakes_of_a_scenario_and_unknown_policies_are_errors_at_once():
    with pytest.raises(InputError, match="window: must be at least"):
        FairShareExplorer({**SMALL, "window": "0s"})
    with pytest.raises(InputError, match="fair-share"):
        FairShareExplorer(SMALL, ("easy", "fairshare"))
    with pytest.raises(InputError, match="must be fairshare here"):
        FairShareExplorer("training-rush")


def test_slow_answers_are_worked_out_in_the_background_and_the_newest_counts(explorer, monkeypatch):
    monkeypatch.setattr(answering, "SLOW_S", 0.0)
    explorer.controls.load.value = 1.6
    assert explorer._slow
    gate, begun, asked = threading.Event(), threading.Event(), []

    def slowly(scenario, policy):
        asked.append((scenario.generate.oversubscription, policy))
        begun.set()
        assert gate.wait(20)
        return gp.simulate(scenario, policy)

    monkeypatch.setattr(module, "simulate", slowly)
    began = time.perf_counter()
    for load in (1.7, 1.8, 1.9, 2.0):
        explorer.controls.load.value = load
    assert begun.wait(20)
    assert time.perf_counter() - began < 10  # the controls do not wait
    assert explorer.chart.busy
    gate.set()
    assert explorer.wait(30)
    assert explorer.scenario.generate.oversubscription == 2.0
    assert not explorer.chart.busy
    assert len({load for load, _ in asked}) <= 2  # one that ran, and the newest


def test_another_policy_on_one_side_runs_that_side_alone(explorer, monkeypatch):
    ran = []
    monkeypatch.setattr(module, "simulate", lambda s, policy: ran.append(policy) or gp.simulate(s, policy))
    explorer.controls.left.value = "fifo"
    assert ran == ["fifo"]
    explorer.controls.left.value = "easy"  # run a moment ago
    assert ran == ["fifo"]


def test_the_specification_is_sent_again_only_for_another_frame(explorer):
    sent = []
    explorer.chart.observe(lambda change: sent.append(change["name"]), ["spec", "payload"])
    explorer.budget.set_share("robotics", 0.5)
    explorer.controls.window.value = 6 * 3600
    explorer.controls.right.value = "fifo"
    assert sent == ["payload"] * 3
    explorer.controls.days.value = 4.0
    assert sorted(sent[3:]) == ["payload", "spec"]


def test_another_width_of_the_page_draws_the_same_runs(explorer):
    rev = explorer.chart.rev
    explorer.chart.room = 480
    assert explorer.chart.rev == rev + 1
    explorer.chart.room = 485 - 5
    assert explorer.chart.rev == rev + 1


# ------------------------------------------------------------------ what is handed out


def run_code(text):
    names = {}
    exec(text, names)
    return names


def test_the_python_gives_what_is_on_screen_for_a_shipped_scenario():
    explorer = FairShareExplorer("three-programmes", ("fifo", "fair-share"))
    explorer.controls.days.value = 2.0
    explorer.controls.load.value = 1.25
    explorer.budget.set_share("robotics", 0.5)
    code = explorer.code()
    assert "gp.load('three-programmes')" in code
    assert len(code.splitlines()) == 6
    names = run_code(code)
    assert names["scenario"].fingerprint == explorer.scenario.fingerprint
    for side, policy in (("left", "fifo"), ("right", "fair-share")):
        assert names["both"][policy].fingerprint == explorer.runs[side].fingerprint


def test_the_python_of_another_scenario_holds_all_of_it(explorer):
    explorer.controls.demand.value = FOLLOWS
    explorer.budget.mute("language/a")
    names = run_code(explorer.code())
    assert names["scenario"].fingerprint == explorer.scenario.fingerprint


def test_the_yaml_reads_back_to_what_is_on_screen(explorer, tmp_path):
    explorer.controls.squatting.value = 50.0
    explorer.budget.set_share("robotics", 0.6)
    answer = explorer.actions.press("copy-yaml")
    assert isinstance(answer, Copied)
    jobs = explorer.scenario.jobs
    assert f"Its {len(jobs):,} jobs stand in it" in answer.say
    file = tmp_path / "again.yaml"
    file.write_text(answer.text, encoding="utf-8")
    again = gp.load(file)
    assert again.fingerprint == explorer.scenario.fingerprint
    assert gp.simulate(again).fingerprint == explorer.runs["right"].fingerprint


@pytest.mark.parametrize("button", ["save-jobs", "save-teams", "save-figures"])
def test_tables_are_saved_with_side_and_policy(explorer, button):
    answer = explorer.actions.press(button)
    assert isinstance(answer, Saved)
    head, *rows = answer.text.splitlines()
    assert head.startswith("side,policy,")
    assert {row.split(",")[1] for row in rows} == {"easy", "fair-share"}


def test_reset_goes_back_to_the_scenario_and_the_policies_as_given(explorer):
    explorer.controls.left.value = "fifo"
    explorer.controls.window.value = 3600
    assert explorer.message != ""
    explorer.budget.mute("robotics")
    explorer.actions.press("reset")
    assert explorer.message == ""
    assert shows(explorer, gp.load(SMALL))
    assert explorer.changes == {}
    assert explorer.budget.muted == []


def test_names_are_text_wherever_they_are_said():
    evil = "<img src=x onerror=alert(1)>"
    budget = [{"name": evil, "weight": 1}, {"name": "=1+1", "weight": 1}]
    explorer = FairShareExplorer({**SMALL, "name": "<svg onload=alert(2)>", "budget": budget})
    explorer.budget.set_share(evil, 0.9)
    explorer.budget.mute("=1+1")
    explorer.account.fold.selected_index = ALL_FIGURES
    account = explorer.account
    written = [account.summary, account.teams, account.figures, account.all_figures, account.why.said]
    written += explorer.controls.messages.values()
    assert not any("<img" in widget.value or "<svg" in widget.value for widget in written)
    assert evil in plain_text(account.teams)
    assert "<img" not in account.page()
    assert ",'=1+1" in explorer.actions.press("save-teams").text


def plain_text(widget):
    return html.unescape(re.sub("<[^>]*>", "", widget.value))


def test_compare_in_the_handed_out_python_is_the_same_comparison(explorer):
    both = compare(gp.load(SMALL), ["easy", "fair-share"])
    assert both["fair-share"].fingerprint == explorer.runs["right"].fingerprint
