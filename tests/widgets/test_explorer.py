import html
import re
import threading
import time

import pytest

import gpuplan as gp
from gpuplan.inputs.errors import InputError
from gpuplan_widgets import AllocationExplorer, answering
from gpuplan_widgets import explorer as module
from gpuplan_widgets.controls import NONE, VARIOUS

OLD = "The picture is old"


@pytest.fixture(autouse=True)
def at_once(monkeypatch):
    """However busy the machine, nothing is slow enough for the background unless a test says so."""
    monkeypatch.setattr(answering, "SLOW_S", 600.0)


@pytest.fixture
def explorer():
    return AllocationExplorer("two-apps")


def place(explorer, name):
    """The text beside a control."""
    return html.unescape(re.sub("<[^>]*>", "", explorer.controls.messages[name].value))


def cell(explorer, job, field, value):
    """Type into a cell of the job table, as the page reports it."""
    row = next(row for row in explorer.table.rows if row["name"] == job)
    message = {
        "type": "edit",
        "seq": explorer.table.seen + 1,
        "id": row["id"],
        "field": field,
        "value": value,
    }
    explorer.table._handle_custom_msg(message, [])


MOVES = [
    ("gpus", 24, "cluster.gpus"),
    ("node", 4, "cluster.gpus_per_node"),
    ("node", NONE, "cluster.gpus_per_node"),
    ("within_node", True, "rules.within_node"),
    ("penalty", 0.0, "objective.shortfall_penalty"),
    ("half_life", 6.0, "objective.half_life_hours"),
    ("half_life", NONE, "objective.half_life_hours"),
]


@pytest.mark.parametrize(("control", "value", "path"), MOVES)
def test_a_control_changes_its_value_in_the_scenario_and_the_picture(explorer, control, value, path):
    before = explorer.chart.rev
    getattr(explorer.controls, control).value = value
    expected = gp.load("two-apps").replace({path: None if value == NONE else value})
    assert explorer.scenario.fingerprint == expected.fingerprint
    for side, policy in (("left", "fifo"), ("right", "aware")):
        assert explorer.plans[side].fingerprint == gp.plan(expected, policy).fingerprint
    assert explorer.chart.rev == before + 1
    assert explorer.message == ""


def test_what_is_on_screen_at_first_is_the_scenario_given(explorer):
    assert explorer.scenario.fingerprint == gp.load("two-apps").fingerprint
    assert explorer.controls.preset.value == "two-apps"
    assert list(explorer.plans) == ["left", "right"]
    assert repr(explorer) == "AllocationExplorer('two-apps', fifo | aware)"


def test_policies_stand_on_either_side(explorer):
    explorer.controls.left.value = "curve-fifo"
    explorer.controls.right.value = "peak-priority"
    assert [plan.policy for plan in explorer.plans.values()] == ["curve-fifo", "peak-priority"]
    assert explorer.controls.left.options == tuple(name for name in gp.POLICIES if name != "exact")
    explorer.controls.right.value = "curve-fifo"
    assert explorer.plans["left"].fingerprint == explorer.plans["right"].fingerprint


def test_the_swap_cap_is_for_one_app_or_for_all(explorer):
    caps = lambda: [app.max_swap for app in explorer.scenario.realtime]  # noqa: E731
    controls = explorer.controls
    assert caps() == [2, 1]
    assert (controls.swap_app.value, controls.swap.value) == (0, 2)  # they differ, so the first is shown
    controls.swap.value = 4
    assert caps() == [4, 1]
    before = explorer.chart.rev
    controls.swap_app.value = 1
    assert controls.swap.value == 1
    assert explorer.chart.rev == before  # only another app's cap is shown
    controls.swap_app.value = -1
    assert controls.swap.value == VARIOUS
    controls.swap.value = NONE
    assert caps() == [None, None]


def test_a_dragged_point_of_the_curve_changes_the_demand(explorer):
    curves = [list(curve) for curve in explorer.curve.curves]
    curves[1][3] = 6
    explorer.curve.set_state({"curves": curves})
    assert explorer.scenario.realtime[1].demand[3] == 6
    assert explorer.scenario.realtime[0] == gp.load("two-apps").realtime[0]  # its shape is kept
    assert explorer.plans["right"].demand[1, 3] == 6


def test_the_curves_scale_follows_the_cluster(explorer):
    explorer.controls.gpus.value = 40
    assert explorer.curve.vmax == 40


def test_cells_of_the_job_table_change_the_job(explorer):
    cell(explorer, "lora-7b-contracts", "priority", "9.5")
    cell(explorer, "lora-7b-contracts", "hours", "90min")
    cell(explorer, "lora-7b-contracts", "gpus", "2")
    cell(explorer, "lora-7b-contracts", "kind", "quantization")
    cell(explorer, "lora-7b-contracts", "name", "<b>lora</b>")
    job = explorer.scenario.batch[1]
    assert (job.name, job.kind, job.gpus, job.hours, job.priority) == (
        "<b>lora</b>",
        "quantization",
        2,
        1.5,
        9.5,
    )
    assert explorer.message == ""


def test_jobs_are_added_deleted_and_moved(explorer):
    names = lambda: [job.name for job in explorer.scenario.batch]  # noqa: E731
    before = names()
    rows = explorer.table.rows
    explorer.table.move(rows[1]["id"], -1)
    assert names() == [before[1], before[0], *before[2:]]
    explorer.table.delete(rows[0]["id"])
    explorer.table.add()
    assert names() == [before[1], *before[2:], "new-job-1"]
    deadline = {job.name: job.deadline_hour for job in explorer.scenario.batch}
    assert deadline["awq-70b-chat"] == 9.0  # what the table does not show stays with its job


def test_all_jobs_may_go(explorer):
    for row in explorer.table.rows:
        explorer.table.delete(row["id"])
    assert explorer.scenario.batch == ()
    assert explorer.message == ""


def test_a_mistake_stands_beside_its_cell_while_the_old_picture_is_marked(explorer):
    before = explorer.scenario
    cell(explorer, "cpt-7b-domain", "gpus", "eight")
    (mistake,) = explorer.table.mistakes
    assert mistake["field"] == "gpus"
    assert "'eight'" in mistake["text"]
    assert place(explorer, "jobs").startswith("This cannot be planned: cpt-7b-domain: gpus ")
    assert "'eight'" in place(explorer, "jobs")
    assert OLD in explorer.message
    assert explorer.chart.old
    assert "gp-old" in explorer.summary._dom_classes
    assert explorer.scenario is before
    cell(explorer, "cpt-7b-domain", "gpus", "8")
    assert explorer.table.mistakes == []
    assert explorer.message == ""
    assert not explorer.chart.old
    assert "gp-old" not in explorer.summary._dom_classes


def test_every_mistake_of_the_table_is_marked_at_once(explorer):
    cell(explorer, "cpt-7b-domain", "gpus", "3")
    cell(explorer, "sft-13b-support", "hours", "-5")
    cell(explorer, "qlora-34b-sql", "name", "cpt-7b-domain")
    marked = {(mistake["id"], mistake["field"]) for mistake in explorer.table.mistakes}
    assert len(marked) == 3
    assert {field for _, field in marked} == {"gpus", "hours", "name"}


def test_the_sentence_about_a_wrong_cell_stays_at_the_table_when_something_else_moves(explorer):
    cell(explorer, "cpt-7b-domain", "gpus", "3")
    said = place(explorer, "jobs")
    assert "must be a power of two (got 3)" in said
    explorer.controls.penalty.value = 1.0
    assert place(explorer, "jobs") == said
    assert place(explorer, "penalty") == ""


def test_a_slider_on_an_impossible_value_says_so_and_can_be_moved_back():
    explorer = AllocationExplorer("big-day")  # work runs on GPUs above 8 at its start
    rev = explorer.chart.rev
    explorer.controls.gpus.value = 8
    assert "the last GPU is 7" in place(explorer, "gpus")
    assert OLD in place(explorer, "gpus")
    assert [place(explorer, name) for name in ("penalty", "node", "jobs")] == ["", "", ""]
    assert explorer.chart.old
    assert explorer.chart.rev == rev
    assert explorer.scenario.cluster.gpus == 64
    explorer.controls.gpus.value = 64
    assert explorer.message == ""
    assert not explorer.chart.old


def test_a_smaller_cluster_loses_the_unavailable_gpus_at_its_end_and_says_so():
    scenario = gp.load({"kind": "allocation", "name": "s", "cluster": {"gpus": 8, "unavailable": [1, 6]}})
    explorer = AllocationExplorer(scenario)
    explorer.controls.gpus.value = 4
    assert explorer.scenario.cluster.unavailable == (1,)
    assert "1 GPU that is marked unavailable is not part of a cluster of this size" in explorer.summary.value
    explorer.controls.gpus.value = 8
    assert explorer.scenario.cluster.unavailable == (1, 6)


def test_any_other_error_is_a_sentence_too(explorer, monkeypatch):
    def broken(scenario, policy, **_):
        raise ZeroDivisionError("<b>boom</b>\nsecond line")

    monkeypatch.setattr(module, "plan", broken)
    explorer.controls.penalty.value = 1.0
    assert "Planning failed: ZeroDivisionError: <b>boom</b>\\nsecond line." in place_raw(explorer, "penalty")
    assert "<b>" not in explorer.controls.messages["penalty"].value
    assert explorer.chart.old
    monkeypatch.undo()
    explorer.controls.penalty.value = 2.0
    assert explorer.message == ""


def place_raw(explorer, name):
    """The text beside a control, tags that are text included."""
    value = explorer.controls.messages[name].value
    return html.unescape(value.removeprefix('<span role="alert">').removesuffix("</span>"))


def test_a_preset_that_cannot_be_read_says_so(explorer, monkeypatch):
    def unreadable(name):
        raise OSError(f"no such file: {name}")

    monkeypatch.setattr(module, "load_allocation", unreadable)
    explorer.controls.preset.value = "mixed-day"
    assert "no such file: mixed-day" in place(explorer, "preset")
    assert explorer.scenario.name == "two-apps"


def test_a_preset_sets_every_control(explorer):
    explorer.controls.penalty.value = 1.0
    explorer.controls.preset.value = "big-day"
    scenario = gp.load("big-day")
    assert explorer.scenario.fingerprint == scenario.fingerprint
    assert explorer.controls.gpus.value == 64
    assert explorer.controls.penalty.value == scenario.objective.shortfall_penalty
    assert len(explorer.table.rows) == len(scenario.batch)
    assert explorer.curve.names == [app.name for app in scenario.realtime]
    assert explorer.changes == {}


def test_reset_brings_back_scenario_and_policies(explorer):
    given = explorer.scenario.fingerprint
    explorer.controls.gpus.value = 12
    explorer.controls.right.value = "fifo"
    cell(explorer, "cpt-7b-domain", "gpus", "eight")
    explorer.actions.press("reset")
    assert explorer.scenario.fingerprint == given
    assert [plan.policy for plan in explorer.plans.values()] == ["fifo", "aware"]
    assert explorer.message == ""
    assert explorer.controls.gpus.value == 16


def test_values_outside_the_usual_ranges_are_kept_exactly():
    scenario = gp.load("mixed-day").replace(
        {
            "objective.shortfall_penalty": 1000.125,
            "objective.half_life_hours": 7.77,
            "cluster.gpus_per_node": 3,
        }
    )
    explorer = AllocationExplorer(scenario)
    assert explorer.scenario.fingerprint == scenario.fingerprint
    assert explorer.changes == {}
    assert explorer.controls.penalty.value == 1000.125
    # the band 5-10 is a smaller part of the longer slider
    assert explorer.actions.band == pytest.approx([100 * 5 / 1000.125, 100 * 10 / 1000.125])


def test_the_specification_is_sent_only_when_the_frame_changes(explorer):
    sent = []
    explorer.chart.observe(lambda change: sent.append(change["name"]), "spec")
    explorer.controls.penalty.value = 3.0
    cell(explorer, "cpt-7b-domain", "priority", "9")
    explorer.controls.left.value = "curve-fifo"
    assert sent == []  # zoom and selection live in the specification on screen
    explorer.controls.gpus.value = 64
    assert sent == ["spec"]


def test_a_narrow_page_has_the_sides_below_each_other(explorer):
    wide = explorer.chart.spec
    explorer.controls.penalty.value = 3.0
    explorer.chart.set_state({"room": 500})
    assert explorer.chart.spec != wide
    rev = explorer.chart.rev
    explorer.chart.set_state({"room": 500})
    assert explorer.chart.rev == rev
    explorer.chart.set_state({"room": 980})
    assert explorer.chart.spec == wide


def test_another_width_keeps_the_mark_of_an_old_picture(explorer):
    cell(explorer, "cpt-7b-domain", "gpus", "eight")
    explorer.chart.set_state({"room": 500})
    assert explorer.chart.old


def test_why_is_told_for_both_sides(explorer):
    place_of_job = next(j for j, job in enumerate(explorer.scenario.batch) if job.name == "rlhf-13b-policy")
    explorer.why.value = place_of_job
    text = html.unescape(explorer.why_text.value)
    assert explorer.plans["left"].why("rlhf-13b-policy") in text
    assert explorer.plans["right"].why("rlhf-13b-policy") in text
    explorer.table.delete(explorer.table.rows[0]["id"])
    assert explorer.why.label == "rlhf-13b-policy"  # the same job, now at another place
    explorer.table.delete(next(row["id"] for row in explorer.table.rows if row["name"] == "rlhf-13b-policy"))
    assert explorer.why_text.value == ""


def test_the_figures_are_written_when_they_are_opened(explorer):
    assert explorer.figures.value == ""
    explorer.fold.selected_index = 0
    assert "shortfall_gpu_hours" in explorer.figures.value
    before = explorer.figures.value
    explorer.controls.penalty.value = 0.0
    assert explorer.figures.value != before
    assert explorer.tables.value == ""
    explorer.fold.selected_index = 1
    assert "rlhf-13b-policy" in explorer.tables.value


def test_the_picture_is_described_with_the_numbers_on_screen(explorer):
    before = explorer.chart.label
    explorer.controls.penalty.value = 0.0
    value = explorer.plans["right"].figures["value"]
    assert explorer.chart.label != before
    assert f"value {value:,.1f}" in explorer.chart.label


def test_the_scenario_is_copied_as_yaml_that_reads_back(explorer, tmp_path):
    explorer.controls.penalty.value = 3.25
    path = tmp_path / "copied.yaml"
    path.write_text(explorer.actions.press("copy-yaml").text, encoding="utf-8")
    assert gp.load(path).fingerprint == explorer.scenario.fingerprint


def test_the_python_makes_again_what_is_on_screen(explorer):
    explorer.controls.penalty.value = 3.25
    explorer.controls.swap.value = 3
    cell(explorer, "cpt-7b-domain", "hours", "90min")
    cell(explorer, "cpt-7b-domain", "gpus", "wrong")  # not on screen
    code = explorer.actions.press("copy-python").text
    found = {}
    exec(code, found)
    assert found["scenario"].fingerprint == explorer.scenario.fingerprint
    assert found["both"]["aware"].fingerprint == explorer.plans["right"].fingerprint


def test_tables_are_saved(explorer):
    assert explorer.actions.press("save-jobs").text.startswith("side,policy,job,")
    assert explorer.actions.press("save-figures").text.startswith("side,policy,figure,")


def test_a_button_that_fails_says_so(explorer, monkeypatch):
    monkeypatch.setattr(module.reproduce, "jobs_csv", lambda plans: 1 / 0)
    said = []
    monkeypatch.setattr(explorer.actions, "send", said.append)
    explorer.actions._handle_custom_msg({"do": "save-jobs"}, [])
    explorer.actions._handle_custom_msg({"do": "no-such-button"}, [])
    assert said == [{"say": "That did not work (ZeroDivisionError: division by zero)."}]


@pytest.mark.parametrize("name", ["<img src=x onerror=alert(1)>", "=1+1", "../x", "\u202eabc", "🚀", "$x$"])
def test_hostile_names_are_text_everywhere(name):
    scenario = gp.load(
        {
            "kind": "allocation", "name": name, "cluster": {"gpus": 2}, "horizon": {"steps": 4},
            "realtime": [{"name": name + " app", "priority": 1, "demand": [1, 1, 1, 1]}],
            "batch": [{"name": name, "kind": "training", "gpus": 2, "hours": 4, "priority": 10}],
        }
    )  # fmt: skip
    explorer = AllocationExplorer(scenario)
    explorer.fold.selected_index = 0
    explorer.why.value = 0
    cell(explorer, name, "gpus", name)
    pages = [
        explorer.summary.value, explorer.figures.value, explorer.why_text.value,
        explorer._repr_mimebundle_()["text/html"],
        *(message.value for message in explorer.controls.messages.values()),
    ]  # fmt: skip
    assert not any("<img" in page for page in pages)
    assert explorer.scenario == scenario
    code = {}
    exec(explorer.code(), code)
    assert code["scenario"] == scenario


def test_a_scenario_without_apps_or_jobs_can_be_explored():
    explorer = AllocationExplorer({"kind": "allocation", "name": "empty", "cluster": {"gpus": 3}})
    assert explorer.controls.swap.disabled
    explorer.controls.penalty.value = 1.0
    explorer.table.add()
    assert [job.name for job in explorer.scenario.batch] == ["new-job-1"]


@pytest.mark.parametrize(
    ("scenario", "policies"), [("no-such", ("fifo", "aware")), ("two-apps", ("fifo", "awrae"))]
)
def test_what_cannot_be_explored_is_refused_at_once(scenario, policies):
    with pytest.raises(InputError):
        AllocationExplorer(scenario, policies)


def test_a_re_opened_notebook_shows_the_figures_or_a_picture(explorer):
    bundle = explorer._repr_mimebundle_()
    assert "utilization" in bundle["text/html"]
    assert "image/png" not in bundle
    pictured = AllocationExplorer("mixed-day", picture=True)._repr_mimebundle_()
    assert "image/png" in pictured


def test_two_explorers_do_not_disturb_each_other(explorer):
    other = AllocationExplorer("two-apps")
    before = (other.chart.rev, other.scenario, other.plans)
    explorer.controls.penalty.value = 0.0
    cell(explorer, "cpt-7b-domain", "gpus", "eight")
    assert (other.chart.rev, other.scenario, other.plans) == before
    assert other.message == ""
    assert other.chart.runtime is explorer.chart.runtime


def observers(explorer):
    """Observers registered on all parts of an explorer."""
    parts = [*explorer.controls.named().values(), explorer.chart, explorer.curve, explorer.table, explorer.why,
             explorer.fold, explorer.summary, explorer.actions]  # fmt: skip
    return sum(
        len(found) for part in parts for kinds in part._trait_notifiers.values() for found in kinds.values()
    )


def test_six_hundred_changes_leave_no_observers_behind(explorer):
    before = observers(explorer)
    rev = explorer.chart.rev
    presets = ["mixed-day", "two-apps"]
    for change in range(600):
        if change % 100 == 0:
            explorer.controls.preset.value = presets[change // 100 % 2]
        else:
            explorer.controls.penalty.value = (change % 40) / 2
    assert explorer.chart.rev == rev + 600
    assert observers(explorer) == before
    assert len(explorer._picture._specs) <= 64


def slow_plan(calls, seconds):
    def planned(scenario, policy, **_):
        calls.append(scenario.objective.shortfall_penalty)
        time.sleep(seconds)
        return gp.plan(scenario, policy)

    return planned


def test_slow_plans_run_in_the_background_and_the_last_value_wins(explorer, monkeypatch):
    calls = []
    monkeypatch.setattr(module, "plan", slow_plan(calls, 0.1))
    monkeypatch.setattr(answering, "SLOW_S", 0.15)
    explorer.controls.penalty.value = 1.0  # two plans of 0.1 s: from here on it is slow
    began = time.monotonic()
    for step in range(60):
        explorer.controls.penalty.value = 2.0 + step / 10
    assert time.monotonic() - began < 2.0  # sixty moves are not waited for
    assert explorer.chart.busy
    assert explorer.wait(10)
    assert explorer.scenario.objective.shortfall_penalty == pytest.approx(7.9)
    assert explorer.plans["right"].scenario is explorer.scenario
    assert not explorer.chart.busy
    assert len(set(calls)) < 30  # what was overtaken is never planned


def test_the_first_run_says_that_kernels_are_compiled_and_answers_meanwhile(monkeypatch, capfd):
    done = threading.Event()
    monkeypatch.setattr(module.engine, "compiled", done.is_set)
    monkeypatch.setattr(module, "ASK_S", 0.01)
    explorer = AllocationExplorer("mixed-day")
    assert explorer.chart.status == module.COMPILING
    assert "first run only" in explorer.chart.status
    explorer.controls.penalty.value = 1.0
    assert explorer.wait(10)
    assert explorer.scenario.objective.shortfall_penalty == 1.0
    assert explorer.chart.status == module.COMPILING  # still, and in no output that a notebook keeps
    assert "Compiling" not in str(explorer._repr_mimebundle_())
    done.set()
    (thread,) = [one for one in threading.enumerate() if one.name == "gpuplan-compiling"]
    thread.join(10)
    assert explorer.chart.status == ""
    assert capfd.readouterr() == ("", "")
    assert AllocationExplorer("mixed-day").chart.status == ""  # compiled: nothing to say


def test_an_error_in_the_background_is_said_as_well(explorer, monkeypatch):
    monkeypatch.setattr(explorer, "_slow", True)
    cell(explorer, "cpt-7b-domain", "gpus", "eight")
    assert explorer.wait(10)
    assert "'eight'" in place(explorer, "jobs")
    assert explorer.chart.old
    assert not explorer.chart.busy


def test_moves_from_several_threads_end_in_one_consistent_picture(explorer):
    def drag(start):
        for step in range(20):
            explorer.controls.penalty.value = start + step / 10
            explorer.controls.gpus.value = 12 + step % 4

    threads = [threading.Thread(target=drag, args=(start,)) for start in (0.0, 5.0, 10.0)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert explorer.message == ""
    assert {plan.scenario.fingerprint for plan in explorer.plans.values()} == {explorer.scenario.fingerprint}
    assert explorer.scenario.objective.shortfall_penalty == explorer.controls.penalty.value
    assert explorer.scenario.cluster.gpus == explorer.controls.gpus.value
