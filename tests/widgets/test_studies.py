"""The folds below an explorer: the gain taken apart, the curves, the proof; and the chart of a proof."""

import threading

import pytest

import gpuplan as gp
from gpuplan.allocation import certify as proofs
from gpuplan.allocation.charts.progress import progress_data
from gpuplan.allocation.policies import Progress, Proof
from gpuplan.inputs.errors import InputError
from gpuplan_widgets import AllocationExplorer
from gpuplan_widgets import studies as looks
from gpuplan_widgets.progress import ProgressChart


@pytest.fixture
def explorer(monkeypatch):
    monkeypatch.setattr(looks, "REST_S", 0.0)
    proofs.forget()
    return AllocationExplorer("training-rush", ("fifo", "search"))


def until(condition, seconds=60.0):
    import time

    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


def test_closed_folds_cost_nothing(explorer):
    explorer.controls.penalty.value = 3
    assert explorer.studies.charts == {}
    assert [said.value for said in explorer.studies.said] == ["", "", ""]


def test_the_gain_is_taken_apart_while_its_fold_is_open_and_follows_the_controls(explorer):
    studies = explorer.studies
    studies.fold.selected_index = looks.GAIN
    assert studies.wait()
    expected = gp.take_apart("training-rush")
    assert expected.sentence("value") in studies.said[looks.GAIN].value
    chart = studies.charts[looks.GAIN]
    before = chart.rev
    explorer.controls.penalty.value = 0
    until(lambda: chart.rev > before)
    assert studies.wait()
    changed = gp.take_apart(gp.load("training-rush").replace({"objective.shortfall_penalty": 0}))
    assert changed.sentence("value") in studies.said[looks.GAIN].value
    studies.figure.value = "objective"
    assert studies.wait()
    assert changed.sentence("objective") in studies.said[looks.GAIN].value
    assert "best possible, at most" in chart.payload["data"]["path_0"]["row"]


def test_the_curves_are_drawn_while_their_fold_is_open(explorer):
    studies = explorer.studies
    studies.fold.selected_index = looks.CURVES
    assert studies.wait()
    assert "Below a penalty of" in studies.said[looks.CURVES].value
    assert studies.charts[looks.CURVES].payload["data"]["now"]["penalty"] == [8.0]


def test_a_proof_stands_beside_the_plans_until_the_scenario_changes(explorer):
    studies = explorer.studies
    quick = explorer.plans["right"].bound
    studies.certify.click()
    until(lambda: not studies.certify.disabled)
    assert (
        studies.said[looks.PROOF].value == "<p>Proven optimal: no legal plan is worth more than 693.06.</p>"
    )
    assert explorer.plans["right"].bound < quick
    assert explorer.plans["right"].bound == pytest.approx(693.063499)
    assert "an objective above 693.1" in explorer.summary.value
    assert studies.stop.disabled
    explorer.controls.penalty.value = 9
    assert studies.said[looks.PROOF].value == ""
    assert explorer.plans["right"].proof is None


@pytest.fixture
def proof(monkeypatch):
    """What every proof says that is asked for, at once and without a report."""
    history = (Progress(0.0, 690.0, None), Progress(0.1, 693.063499, 693.063499))
    made = Proof(693.063499, "optimal", "Proven optimal: made up.", history)
    monkeypatch.setattr(looks, "certify", lambda *_: made)
    return made


def proven(explorer):
    explorer.studies.certify.click()
    until(lambda: not explorer.studies.certify.disabled)


def test_a_proof_stays_while_only_a_policy_changes_and_is_there_again_on_the_way_back(explorer, proof):
    proven(explorer)
    explorer.controls.right.value = "aware"
    assert [plan.proof for plan in explorer.plans.values()] == [proof, proof]
    explorer.controls.penalty.value = 3
    assert [plan.proof for plan in explorer.plans.values()] == [None, None]
    explorer.controls.penalty.value = 8
    assert [plan.proof for plan in explorer.plans.values()] == [proof, proof]
    assert proof.sentence in explorer.studies.said[looks.PROOF].value


def test_a_proof_that_comes_while_another_scenario_is_shown_is_not_taken_for_one_of_it(
    explorer, proof, monkeypatch
):
    studies, before, show = explorer.studies, explorer.scenario, explorer.studies.show
    proven(explorer)
    arrived = []

    def show_as_a_proof_comes(scenario):
        late = threading.Thread(target=studies._prove, args=(before, threading.Event()))
        late.start()
        late.join(0.5)  # it waits for the plans on screen, or is done
        arrived.append(late)
        show(scenario)

    monkeypatch.setattr(studies, "show", show_as_a_proof_comes)
    explorer.controls.penalty.value = 0
    for late in arrived:
        late.join(30)
    plan = explorer.plans["right"]
    assert arrived
    assert plan.proof is None
    assert plan.bound >= plan.figures["objective"] > 900  # far above what was proven at a penalty of 8
    assert studies.said[looks.PROOF].value == f"<p>{looks.CHANGED}</p>"


def test_a_proof_known_already_is_drawn_as_it_went(explorer, proof):
    proven(explorer)
    drawn = explorer.studies.charts[looks.PROOF].payload["data"]["progress"]
    assert drawn == progress_data(proof.history)["progress"]


def test_a_proof_does_not_make_an_old_picture_a_new_one(explorer, proof):
    explorer.chart.old = True
    proven(explorer)
    assert explorer.plans["right"].proof is proof
    assert explorer.chart.old
    assert "gp-old" in explorer.summary._dom_classes


def test_stop_ends_a_proof_at_the_next_report_and_keeps_what_is_proven(explorer, monkeypatch):
    begun = threading.Event()
    half = Proof(700.0, "bounded", "At most 1.00% from the best possible: made up.")

    def endless(_scenario, _limit, report):
        number = 0
        while True:
            try:
                report(Progress(0.1 * number, 690.0, 700.0))
            except KeyboardInterrupt:
                return half
            number += 1
            begun.set()

    monkeypatch.setattr(looks, "certify", endless)
    explorer.studies.certify.click()
    assert begun.wait(30)
    assert explorer.studies.certify.disabled
    explorer.studies.stop.click()
    until(lambda: not explorer.studies.certify.disabled)
    assert explorer.studies.stop.disabled
    assert half.sentence in explorer.studies.said[looks.PROOF].value
    assert explorer.plans["right"].proof is half


def test_without_ortools_the_fold_says_what_to_install(explorer, monkeypatch):
    def refuse(*_):
        raise InputError("training-rush", [looks_mistake()])

    monkeypatch.setattr(looks, "certify", refuse)
    explorer.studies.certify.click()
    until(lambda: not explorer.studies.certify.disabled)
    assert "pip install" in explorer.studies.said[looks.PROOF].value


def looks_mistake():
    from gpuplan.allocation.exact.solve import MISSING
    from gpuplan.inputs.errors import Mistake

    return Mistake("policy", f"exact {MISSING}")


def test_what_goes_wrong_in_a_study_is_a_sentence(explorer, monkeypatch):
    def fail(*_):
        raise RuntimeError("<b>no</b>")

    monkeypatch.setattr(looks, "take_apart", fail)
    explorer.studies.fold.selected_index = looks.GAIN
    assert explorer.studies.wait()
    assert "RuntimeError: &lt;b&gt;no&lt;/b&gt;" in explorer.studies.said[looks.GAIN].value


def test_the_search_on_screen_repeats_exactly_from_the_python_that_is_handed_out(explorer):
    code = explorer.code()
    assert "iterations=" in code
    names = {}
    exec(code, names)
    assert names["both"]["search"].fingerprint == explorer.plans["right"].fingerprint


def test_a_policy_that_is_too_slow_to_drag_is_refused_with_what_to_do_instead():
    with pytest.raises(InputError, match="the explorer proves on request"):
        AllocationExplorer("mixed-day", ("fifo", "exact"))


def test_the_chart_of_a_proof_shows_both_lines_and_begins_anew():
    chart = ProgressChart()
    made = gp.plan("mixed-day", "exact", time_limit_s=60, report=chart)
    data = chart.payload["data"]["progress"]
    assert set(data["line"]) == {"best plan", "bound"}
    assert data["value"][-1] == pytest.approx(made.bound, abs=1e-3)
    assert data["seconds"] == sorted(data["seconds"][: data["line"].count("best plan")]) + sorted(
        data["seconds"][data["line"].count("best plan") :]
    )
    chart.restart()
    assert chart.payload["data"]["progress"]["seconds"] == []


def test_a_first_bound_far_away_does_not_flatten_the_chart():
    history = (Progress(0.0, 100.0, None), Progress(0.1, 100.0, 9000.0), Progress(0.2, 101.0, 110.0))
    assert progress_data(history)["progress"]["value"] == [100.0, 100.0, 101.0, 110.0]
