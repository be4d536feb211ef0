"""The packing explorer without a browser: each control, the situations, what is said, what is handed out."""

import html
import re
import threading
import time

import pytest

import gpuplan as gp
from gpuplan.inputs.errors import InputError
from gpuplan.packing.run import compare
from gpuplan_widgets import PackingExplorer, answering
from gpuplan_widgets import packing as module
from gpuplan_widgets import packing_gallery as gallery
from gpuplan_widgets.action_bar import Copied, Saved
from gpuplan_widgets.controls import NONE
from gpuplan_widgets.packing_account import ALL_FIGURES, CHARTS, MODELS, WHY
from gpuplan_widgets.packing_controls import GENERATED, mixed
from gpuplan_widgets.packing_words import seconds

OLD = "The picture is old"

SMALL = {
    "kind": "packing",
    "name": "small",
    "gpus": {"count": 2, "memory_gib": 40, "max_tasks": 4},
    "models": [
        {"name": "large", "declared_gib": 24, "actual_gib": 26, "kv_kib_per_token": 128, "popularity": 1},
        {"name": "middle", "declared_gib": 12, "actual_gib": 13.5, "kv_kib_per_token": 64, "popularity": 2},
        {"name": "small", "declared_gib": 6, "actual_gib": 6.5, "kv_kib_per_token": 32, "popularity": 3},
    ],
    "tasks": {
        "generate": {
            "rate_per_s": 0.3,
            "count": 120,
            "service_s": {"mean": 5},
            "tokens_in": 1000,
            "tokens_out": 200,
            "high_priority_share": 0.2,
        }
    },
    "preemption": {"when": "threshold", "threshold_s": 3, "save_s": 2, "restore_s": 2},
    "contention": {"model": "slowdown", "beta": 0.15},
}


@pytest.fixture(autouse=True)
def at_once(monkeypatch):
    """However busy the machine, nothing is slow enough for the background unless a test says so."""
    monkeypatch.setattr(answering, "SLOW_S", 600.0)


@pytest.fixture
def explorer():
    return PackingExplorer(SMALL)


def plain(widget):
    """What an HTML widget says."""
    return re.sub(r"\s+", " ", html.unescape(re.sub("<[^>]*>", " ", widget.value))).replace("\u00a0", " ")


def place(explorer, name):
    """The sentence beside a control."""
    return html.unescape(re.sub("<[^>]*>", "", explorer.controls.messages[name].value))


def shows(explorer, scenario, left="round-robin", right="best-fit+fifo+lru"):
    """Whether what is on screen is what gpuplan gives for a scenario."""
    runs = explorer.runs
    expected = {"left": gp.pack(scenario, left), "right": gp.pack(scenario, right)}
    return explorer.scenario.fingerprint == scenario.fingerprint and all(
        runs[side].pieces == expected[side].pieces
        and runs[side].raw.end_us == expected[side].raw.end_us
        and runs[side].figures == expected[side].figures
        for side in expected
    )


# ------------------------------------------------------------------ what is on screen


def test_what_is_on_screen_at_first_is_the_scenario_given(explorer):
    assert shows(explorer, gp.load(SMALL))
    assert explorer.message == ""
    assert explorer.changes == {}
    assert repr(explorer) == "PackingExplorer('small', round-robin | best-fit)"
    assert explorer.chart.label.startswith("round-robin → best-fit: latency mean ")


def test_explore_opens_it_for_a_packing_scenario():
    assert isinstance(gp.explore("one-gpu-idles"), PackingExplorer)


MOVES = [
    ("margin", 5.0, {"admission.margin": 0.05}),
    ("admit", "free", {"admission.on": "free"}),
    ("context", False, {"admission.count_context": False}),
    ("when", "always", {"preemption.when": "always"}),
    ("when", "never", {"preemption.when": "never"}),
    ("threshold", 1.25, {"preemption.threshold_s": 1.25}),
    ("save", 5.0, {"preemption.save_s": 5}),
    ("restore", 0.5, {"preemption.restore_s": 0.5}),
    ("contention", "sharing", {"contention.model": "sharing"}),
    ("beta", 0.4, {"contention.beta": 0.4}),
    ("slots", 1, {"gpus.max_tasks": 1}),
    ("slots", NONE, {"gpus.max_tasks": None}),
    ("rate", 0.6, {"tasks.generate.rate_per_s": 0.6}),
    ("burst", 3.0, {"tasks.generate.arrival_cv": 3}),
    ("urgent", 50.0, {"tasks.generate.high_priority_share": 0.5}),
    ("count", 60, {"tasks.generate.count": 60}),
    ("seed", 7, {"tasks.generate.seed": 7}),
    ("spread", 2, {"models.0.gpus": 2}),
]


@pytest.mark.parametrize(("control", "value", "changes"), MOVES)
def test_a_control_changes_its_value_in_the_scenario_and_the_picture(explorer, control, value, changes):
    rev = explorer.chart.rev
    getattr(explorer.controls, control).value = value
    assert explorer.message == ""
    assert explorer.changes == changes
    assert shows(explorer, gp.load(SMALL).replace(changes))
    assert explorer.chart.rev == rev + 1


@pytest.mark.parametrize(
    ("control", "value", "left", "right"),
    [
        ("left_placement", "fgd", "fgd", "best-fit"),
        ("right_placement", "predicted-fit", "round-robin", "predicted-fit"),
        ("left_order", "backfill", "round-robin+backfill", "best-fit+fifo"),
        ("right_order", "by-model", "round-robin+fifo", "best-fit+by-model"),
        ("left_eviction", "cost", "round-robin+cost", "best-fit+lru"),
        ("right_eviction", "lfu", "round-robin+lru", "best-fit+lfu"),
    ],
)
def test_each_piece_of_each_side_is_chosen_alone(explorer, control, value, left, right):
    getattr(explorer.controls, control).value = value
    assert [run.policy for run in explorer.runs.values()] == [left, right]
    assert shows(explorer, gp.load(SMALL), left, right)
    (about,) = (one.about for pieces in gp.PACKING_PIECES.values() for one in pieces if one.name == value)
    assert plain(explorer._hints[control]).strip() == re.sub(r"\s+", " ", about)


def test_keep_alive_brings_a_time_to_keep_alive_for(explorer):
    explorer.controls.right_eviction.value = "keep-alive"
    assert explorer.message == ""
    assert explorer.changes == {"policy.keep_alive_s": 60}
    explorer.controls.keep_alive.value = 5
    scenario = gp.load(SMALL).replace({"policy.keep_alive_s": 5})
    assert shows(explorer, scenario, "round-robin+lru", "best-fit+keep-alive")
    explorer.controls.keep_alive.value = NONE
    assert "must be given" in place(explorer, "keep_alive")
    explorer.controls.right_eviction.value = "lru"
    assert explorer.message == ""
    assert shows(explorer, gp.load(SMALL))


def test_the_gpus_of_each_model_are_set_one_after_the_other(explorer):
    controls = explorer.controls
    offered = [name for name, _ in controls.spread_model.options]
    assert offered == ["large", "middle", "small"]  # by size
    # 1.2 x 24 + 0.5
    assert plain(controls.spreads.hint) == " reserves 29.3 GiB "
    controls.spread.value = 2
    assert plain(controls.spreads.hint) == " reserves 14.9 GiB on each of 2 GPUs "
    rev = explorer.chart.rev
    controls.spread_model.value = 1
    assert controls.spread.value == 1
    assert explorer.chart.rev == rev  # nothing is asked yet
    controls.spread.value = 2
    assert explorer.changes == {"models.0.gpus": 2, "models.1.gpus": 2}
    assert [model.gpus for model in explorer.scenario.models] == [2, 2, 1]
    assert "left_joins" in explorer.chart.payload["data"]
    controls.spread_model.value = 0
    assert controls.spread.value == 2
    controls.spread.value = 1
    assert explorer.changes == {"models.1.gpus": 2}
    explorer.reset()
    assert explorer.changes == {}
    assert (controls.spread_model.value, controls.spread.value) == (0, 1)
    assert "left_joins" not in explorer.chart.payload["data"]


def test_the_gpus_of_models_start_where_the_scenario_is():
    explorer = PackingExplorer("no-two-gpus-free")
    controls = explorer.controls
    assert (controls.spread_model.label, controls.spread.value, controls.spread.max) == ("large-70b", 2, 4)
    controls.situation.value = "embedder-evicts-chat"  # one GPU
    assert controls.spread.disabled
    assert controls.spread_model.disabled
    assert explorer.message == ""
    assert plain(controls.spreads.hint) == ""
    resident = {**SMALL, "models": [{**SMALL["models"][0], "resident": [0]}, *SMALL["models"][1:]]}
    explorer = PackingExplorer(resident)
    explorer.controls.spread.value = 2
    assert "models.0.resident: must name 2 GPUs for each copy" in place(explorer, "spread")
    assert explorer.chart.old


def test_a_gantt_is_drawn_where_tasks_are_few_or_where_it_is_asked_for(explorer):
    spec = explorer.chart.spec
    assert "left_bars" in explorer.chart.payload["data"]
    explorer.controls.margin.value = 10
    assert explorer.chart.spec is spec  # zoom and scroll position stay
    explorer.controls.gantt.value = "areas"
    assert "left_bars" not in explorer.chart.payload["data"]
    assert explorer.chart.spec != spec
    explorer.controls.count.value = 1000
    explorer.controls.gantt.value = "gantt"
    assert "left_bars" in explorer.chart.payload["data"]
    explorer.controls.gantt.value = "auto"
    assert "left_bars" not in explorer.chart.payload["data"]


def test_every_control_is_named_and_says_what_it_does(explorer):
    assert all(widget.description and widget.tooltip for widget in explorer.controls.named().values())


def test_the_same_policy_on_both_sides_is_run_once(explorer):
    explorer.controls.left_placement.value = "best-fit"
    assert explorer.runs["left"] is explorer.runs["right"]
    assert explorer.message == ""


def test_controls_that_mean_nothing_now_cannot_be_moved(explorer):
    controls = explorer.controls
    assert controls.keep_alive.disabled
    assert not controls.threshold.disabled
    controls.when.value = "always"
    assert controls.threshold.disabled
    assert not controls.save.disabled
    controls.when.value = "never"
    assert controls.save.disabled
    assert controls.restore.disabled
    controls.contention.value = "none"
    assert controls.beta.disabled


def test_controls_start_where_the_scenario_is_however_far_out_that_is():
    odd = {
        **SMALL,
        "gpus": {"count": 2, "memory_gib": 400, "max_tasks": 77},
        "admission": {"margin": 3.125},
        "preemption": {"when": "always", "save_s": 100, "threshold_s": 0.001},
        "contention": {"model": "slowdown", "beta": 7},
        "policy": {"eviction": "keep-alive", "keep_alive_s": 17.5},
        "tasks": {
            "generate": {"rate_per_s": 777, "count": 9, "service_s": 1, "arrival_cv": 9, "seed": 2**53}
        },
    }
    explorer = PackingExplorer(odd)
    values = {name: widget.value for name, widget in explorer.controls.named().items()}
    assert (values["margin"], values["save"], values["threshold"], values["beta"]) == (312.5, 100, 0.001, 7)
    assert (values["slots"], values["keep_alive"], values["right_eviction"]) == (77, 17.5, "keep-alive")
    assert (values["rate"], values["burst"], values["seed"]) == (777, 9, 2**53)
    assert explorer.changes == {}
    assert explorer.message == ""


@pytest.mark.parametrize("rate", [0.001, 0.3, 0.7, 1.2, 5, 123.456, 99_999])
def test_the_rate_is_exact_and_has_room_on_both_sides(rate):
    tasks = {"generate": {**SMALL["tasks"]["generate"], "rate_per_s": rate, "count": 3}}
    slider = PackingExplorer({**SMALL, "tasks": tasks}).controls.rate
    assert slider.value == rate
    assert 0 < slider.min <= rate / 5
    assert slider.max >= 2 * rate
    steps = (rate - slider.min) / slider.step
    assert steps == pytest.approx(round(steps), abs=1e-6)  # a step of the slider leads back to the rate


def test_a_scenario_with_tasks_of_its_own_has_no_controls_for_generated_ones():
    explorer = PackingExplorer("one-gpu-idles")
    off = {name for name in GENERATED if getattr(explorer.controls, name).disabled}
    assert off == set(GENERATED)
    assert "the tasks are the scenario's own" in plain(explorer._hints["rate"])
    explorer.controls.margin.value = 100 * 0.3
    scenario = gp.load("one-gpu-idles").replace({"admission.margin": 0.3})
    assert shows(explorer, scenario, "best-fit", "worst-fit")


def test_a_page_that_gives_back_a_number_with_another_last_digit_changes_nothing(explorer):
    rev = explorer.chart.rev
    explorer.controls.margin.value = 20.000000000000004
    explorer.controls.rate.value = 0.30000000000000004
    assert (explorer.chart.rev, explorer.changes) == (rev, {})


# ------------------------------------------------------------------ the mix of sizes


def test_the_mix_shifts_tasks_to_small_or_large_models(explorer):
    explorer.controls.mix.value = 1.0
    # popularity times size: 1 x 24, 2 x 12, 3 x 6 of 66, times the sum of 6
    expected = {
        "models.0.popularity": 144 / 66,
        "models.1.popularity": 144 / 66,
        "models.2.popularity": 108 / 66,
    }
    assert explorer.changes == pytest.approx(expected, rel=1e-5)
    large = (explorer.runs["left"].problem.tasks.model == 0).sum()
    explorer.controls.mix.value = -1.0
    # 1 / 24, 2 / 12, 3 / 6 of 17 / 24
    expected = {"models.0.popularity": 6 / 17, "models.1.popularity": 24 / 17, "models.2.popularity": 72 / 17}
    assert explorer.changes == pytest.approx(expected, rel=1e-5)
    assert (explorer.runs["left"].problem.tasks.model == 0).sum() < large
    # (6 x 24 + 24 x 12 + 72 x 6) / 102 = 864 / 102
    assert "asks for a model of 8.47 GiB" in plain(explorer._hints["mix"])
    explorer.controls.mix.value = 0.0
    assert explorer.changes == {}


def test_a_model_that_nobody_asks_for_stays_without_tasks():
    models = [dict(model) for model in SMALL["models"]]
    models[0]["popularity"] = 0
    assert set(mixed(gp.load({**SMALL, "models": models}), 2.0)) == {
        "models.1.popularity",
        "models.2.popularity",
    }


# ------------------------------------------------------------------ the situations


def test_every_shipped_packing_scenario_can_be_chosen_with_its_explanation():
    explorer = PackingExplorer(SMALL)
    shipped = [one for one in gp.shipped() if one.kind == "packing"]
    offered = dict((name, title) for title, name in explorer.controls.situation.options)
    assert set(offered) == {"", *(one.name for one in shipped)}
    assert set(gallery.SITUATIONS) == {one.name for one in shipped}
    for one in shipped:
        explorer.controls.situation.value = one.name
        assert explorer.message == ""
        assert explorer.scenario.fingerprint == gp.load(one.name).fingerprint
        assert " ".join(one.about.split()) in plain(explorer._about)
        assert f"Try: {gallery.SITUATIONS[one.name].hint}" in plain(explorer._about).replace(" :", ":")
        own = explorer.scenario.policy
        expected = [gallery.chosen(policy, own) for policy in gallery.SITUATIONS[one.name].policies]
        assert [run.pieces for run in explorer.runs.values()] == expected
        assert explorer.changes == {}
    explorer.controls.situation.value = ""
    assert shows(explorer, gp.load(SMALL))


def figures(explorer, name):
    return [run.figures[name] for run in explorer.runs.values()]


def test_what_the_situations_say_to_try_does_what_they_say():
    explorer = PackingExplorer("embedder-evicts-chat")
    assert min(figures(explorer, "evictions")) > 0
    explorer.controls.margin.value = 10
    assert figures(explorer, "evictions") == [0, 0]

    explorer.controls.situation.value = "asleep-but-heavy"
    assert figures(explorer, "out_of_memory") == [4, 4]
    explorer.controls.admit.value = "free"
    assert figures(explorer, "out_of_memory") == [1, 1]

    explorer.controls.situation.value = "behind-a-large-load"
    assert min(figures(explorer, "wait_p95_s")) > 13
    short = explorer.runs["right"].tasks.set_index("task").wait_s
    explorer.controls.slots.value = 2
    assert short[1] > 13
    assert explorer.runs["right"].tasks.set_index("task").wait_s[1] == 0

    explorer.controls.situation.value = "one-gpu-idles"
    before = figures(explorer, "service_mean_s")
    assert before[0] > before[1]
    explorer.controls.contention.value = "none"
    after = figures(explorer, "service_mean_s")
    assert after[0] == after[1]

    explorer.controls.situation.value = "evicted-but-wanted"
    code = [run.tasks.set_index("task").wait_s[3] for run in explorer.runs.values()]
    assert code[0] > 200 > 20 > code[1]

    explorer.controls.situation.value = "spread-too-thin"
    waits = figures(explorer, "queue_mean_s")
    assert waits[0] > waits[1]
    explorer.controls.left_placement.value = "fgd"
    assert figures(explorer, "queue_mean_s") == [waits[1], waits[1]]

    explorer.controls.situation.value = "no-two-gpus-free"
    waits = figures(explorer, "queue_mean_s")
    assert waits[0] > 100
    assert waits[1] == 0
    explorer.controls.spread.value = 4
    waits = figures(explorer, "queue_mean_s")
    assert waits[0] == 0
    assert waits[1] > 100

    explorer.controls.situation.value = "context-too-long"
    assert figures(explorer, "tasks_rejected") == [1, 1]

    explorer.controls.situation.value = "four-gpus"
    assert figures(explorer, "out_of_memory") == [0, 0]
    explorer.controls.margin.value = 0
    assert min(figures(explorer, "out_of_memory")) > 0


# ------------------------------------------------------------------ what is said


def test_the_headline_counts_out_of_memory_and_marks_it_where_there_is_any(explorer):
    assert "out of memory 0 → 0" in plain(explorer.account.summary)
    assert "gp-pack-oom" not in explorer.account.summary.value
    explorer.controls.margin.value = 0
    explorer.controls.context.value = False
    left, right = figures(explorer, "out_of_memory")
    assert left + right > 0
    mark = f'<strong class="gp-pack-oom">out of memory {left:,} → {right:,}</strong>'
    assert mark in explorer.account.summary.value
    assert "memory ran out" in plain(explorer.account.summary)
    assert 'class="gp-pack-oom-row"' in explorer.account.figures.value


def test_a_load_that_can_never_drain_is_said_and_one_that_can_is_measured(explorer):
    # 0.3 per s of 5 s each on two GPUs of up to 4 tasks at 4 / (1 + 3 x 0.15) = 2.759 times: 1.5 / 5.517 = 27 %
    assert "27 % of what the GPUs can serve at most" in plain(explorer._hints["rate"])
    assert "can never drain" not in plain(explorer.account.summary)
    explorer.controls.contention.value = "sharing"
    explorer.controls.rate.value = 0.6
    # 0.6 x 5 / 2 = 1.5
    words = "This load can never drain: tasks come at 1.50 times the rate that the GPUs can serve at most"
    assert words in plain(explorer.account.summary)
    assert words in plain(explorer._hints["rate"])
    assert 'class="gp-pack-alert"' in explorer.account.summary.value


def test_where_the_latency_changes_is_said(explorer):
    left, right = (run.figures for run in explorer.runs.values())
    assert left["latency_mean_s"] > right["latency_mean_s"] + 0.5
    said = plain(explorer.account.summary)
    change = seconds(left["latency_mean_s"] - right["latency_mean_s"]).replace("\u00a0", " ")
    assert f"Under best-fit instead of round-robin a task takes {change} shorter on average (" in said


def test_what_changed_against_the_scenario_as_given_is_said(explorer):
    assert "Against the scenario as given" not in plain(explorer.account.summary)
    was = explorer.runs["right"].figures["latency_mean_s"]
    explorer.controls.burst.value = 5.0
    now = explorer.runs["right"].figures["latency_mean_s"]
    told = f"mean latency {seconds(was)} → {seconds(now)}".replace("\u00a0", " ")
    assert f"Against the scenario as given, under best-fit: {told}" in plain(explorer.account.summary)


def test_rejected_tasks_and_tasks_given_up_are_said():
    explorer = PackingExplorer("context-too-long")
    assert "1 task rejected at once, for example 1 (chat-8b): chat-8b takes" in plain(
        explorer.account.summary
    )
    explorer.controls.situation.value = "asleep-but-heavy"
    assert "both policies: 1 task given up after 3 retries." in plain(explorer.account.summary)


def test_contention_and_costs_are_always_said(explorer):
    assert "contention slowdown: n tasks on a GPU each run at 1 / (1 + 0.15 (n − 1)) of the speed" in plain(
        explorer.account.summary
    )
    explorer.controls.contention.value = "none"
    explorer.controls.when.value = "never"
    said = plain(explorer.account.summary)
    assert "contention none: tasks on one GPU do not slow each other down; preemption never" in said


def test_main_figures_have_units_all_figures_their_meaning_and_models_a_row(explorer):
    main = plain(explorer.account.figures)
    assert main.index("latency_mean_s") < main.index("throughput_per_s") < main.index("out_of_memory")
    assert "(tasks per second)" in main
    assert "(per cent of GPU memory)" in main
    assert explorer.account.all_figures.value == ""  # folded away, not written
    explorer.account.fold.selected_index = ALL_FIGURES
    whole = plain(explorer.account.all_figures)
    assert all(name in whole for name in explorer.runs["left"].figures)
    explorer.account.fold.selected_index = CHARTS
    assert "left_gpu0" in explorer.account.charts.value
    explorer.account.fold.selected_index = MODELS
    assert len(re.findall("<tr>", explorer.account.models.value)) == 1 + 3


def test_names_stay_text():
    evil = "<img src=x onerror=alert(1)>"
    models = [{**SMALL["models"][0], "name": evil}, *SMALL["models"][1:]]
    explorer = PackingExplorer({**SMALL, "name": evil, "about": evil, "models": models})
    explorer.controls.margin.value = 0
    for opened in (WHY, MODELS, ALL_FIGURES, CHARTS):
        explorer.account.fold.selected_index = opened
    account = explorer.account
    written = [
        account.summary,
        account.figures,
        account.models,
        account.charts,
        account.why.said,
        explorer._about,
    ]
    assert all("<img" not in widget.value for widget in written)
    assert "<img" not in explorer._repr_mimebundle_()["text/html"]


def test_a_page_without_a_kernel_shows_the_change_the_figures_and_the_models(explorer):
    page = explorer._repr_mimebundle_()["text/html"]
    assert "latency mean" in page
    assert "middle" in page
    assert "Run the cell to move the controls." in page


def test_with_picture_it_shows_the_charts():
    bundle = PackingExplorer("one-gpu-idles", picture=True)._repr_mimebundle_()
    assert "image/png" in bundle or "text/html" in bundle


# ------------------------------------------------------------------ why does this task wait?


def test_why_a_task_waits_is_said_for_both_sides(explorer):
    why = explorer.account.why
    assert len(why.task.options) == 1
    explorer.account.fold.selected_index = WHY
    assert why.when.max == max(run.end_s for run in explorer.runs.values())
    numbers = [number for _, number in why.task.options[1:]]
    assert numbers  # it opens where somebody waits
    why.task.value = numbers[0]
    said = plain(why.said)
    for side, run in explorer.runs.items():
        if why.when.value <= run.end_s:
            assert f"{side} ({run.policy}): {run.why(numbers[0], why.when.value)}" in said
    why.number.value = str(numbers[0])
    explorer.controls.left_placement.value = "worst-fit"
    assert "left (worst-fit): " in plain(why.said)


def test_any_task_can_be_asked_about_by_its_number(explorer):
    why = explorer.account.why
    explorer.account.fold.selected_index = WHY
    why.when.value = 1.0
    why.number.value = " 3 "
    assert f"right (best-fit): {explorer.runs['right'].why(3, 1.0)}" in plain(why.said)
    why.number.value = "120"
    assert "must be the number of a task, from 0 to 119" in plain(why.said)
    why.number.value = "<b>"
    assert "must be the number of a task" in plain(why.said)
    why.number.value = "3"
    why.when.value = why.when.max
    assert "earlier." in plain(why.said) or "done" in plain(why.said)


# ------------------------------------------------------------------ mistakes


def test_a_mistake_is_a_sentence_beside_its_control_and_the_picture_stays_old(explorer):
    before = explorer.runs
    explorer.controls.margin.max = 5000
    explorer.controls.margin.value = 1100
    assert "Margin (%) (admission.margin) must be" in place(explorer, "margin")
    assert OLD in place(explorer, "margin")
    assert explorer.chart.old
    assert explorer.runs == before
    assert "gp-old" in explorer.account.summary._dom_classes
    explorer.controls.margin.value = 10
    assert explorer.message == ""
    assert not explorer.chart.old
    assert "gp-old" not in explorer.account.summary._dom_classes


def test_whatever_goes_wrong_is_said_beside_the_control_that_moved(explorer, monkeypatch):
    def fails(*_args, **_kwargs):
        raise RuntimeError("no luck <b>")

    monkeypatch.setattr(module, "compare", fails)
    explorer.controls.save.value = 9.0
    assert "Planning failed: RuntimeError: no luck <b>" in place(explorer, "save")
    monkeypatch.undo()
    explorer.controls.save.value = 2.0
    assert explorer.message == ""


@pytest.mark.parametrize(
    ("scenario", "policies"),
    [(SMALL, ("best-fit", "nearest")), ({**SMALL, "gpus": {"count": 0}}, None), ("three-programmes", None)],
)
def test_mistakes_at_the_start_are_raised(scenario, policies):
    with pytest.raises(InputError):
        PackingExplorer(scenario, policies)


@pytest.mark.parametrize(
    "tasks",
    [
        {"rows": []},
        {"generate": {"rate_per_s": 1, "count": 0, "service_s": 1}},
        {"generate": {"rate_per_s": 1, "count": 5, "service_s": 0}},
    ],
)
def test_nothing_to_do_is_shown_as_that(tasks):
    explorer = PackingExplorer({**SMALL, "tasks": tasks})
    for opened in (WHY, MODELS, ALL_FIGURES, CHARTS):
        explorer.account.fold.selected_index = opened
    explorer.controls.margin.value = 30
    assert explorer.message == ""


def test_a_model_larger_than_every_gpu_is_said_and_its_tasks_are_rejected(explorer):
    models = [{**SMALL["models"][0], "declared_gib": 60}, *SMALL["models"][1:]]
    explorer = PackingExplorer({**SMALL, "models": models})
    said = plain(explorer.account.summary)
    assert "large needs 72.5 GiB and no GPU has more than 40 GiB: its tasks are rejected." in said
    assert figures(explorer, "tasks_rejected")[0] > 0


# ------------------------------------------------------------------ what is handed out


def run_code(text):
    names = {}
    exec(compile(text, "handed out", "exec"), names)
    return names


def test_python_makes_again_what_is_on_screen(explorer):
    explorer.controls.margin.value = 7
    explorer.controls.mix.value = 0.75
    explorer.controls.right_order.value = "backfill"
    names = run_code(explorer.code())
    assert names["scenario"].fingerprint == explorer.scenario.fingerprint
    for run in explorer.runs.values():
        assert names["both"][run.policy].fingerprint == run.fingerprint


def test_python_of_a_shipped_scenario_names_it():
    explorer = PackingExplorer(SMALL)
    explorer.controls.situation.value = "embedder-evicts-chat"
    explorer.controls.margin.value = 10
    assert explorer.code() == (
        "import gpuplan as gp\n"
        "from gpuplan.packing.run import compare\n"
        "scenario = gp.load('embedder-evicts-chat').replace({'admission.margin': 0.1})\n"
        "both = compare(scenario, ['round-robin', 'best-fit'])\n"
    )


def test_python_is_of_the_screen_where_the_controls_stand_on_a_mistake(explorer):
    explorer.controls.margin.max = 5000
    explorer.controls.margin.value = 1100
    assert run_code(explorer.code())["scenario"].fingerprint == explorer.scenario.fingerprint


def test_the_buttons_hand_out_yaml_python_and_tables(explorer, tmp_path):
    explorer.controls.margin.value = 7
    yaml = explorer.actions.press("copy-yaml")
    assert isinstance(yaml, Copied)
    path = tmp_path / "scenario.yaml"
    path.write_text(yaml.text)
    assert gp.load(path).fingerprint == explorer.scenario.fingerprint
    assert explorer.actions.press("copy-python").text == explorer.code()
    tasks = explorer.actions.press("save-tasks")
    assert isinstance(tasks, Saved)
    assert tasks.text.startswith("side,policy,task,model,")
    assert tasks.text.count("\n") == 1 + 2 * 120
    assert explorer.actions.press("save-models").text.count("\n") == 1 + 2 * 3
    both = compare(explorer.scenario, [run.policy for run in explorer.runs.values()])
    figures_text = explorer.actions.press("save-figures").text
    assert figures_text.count("\n") == 1 + 2 * len(both["best-fit"].figures)
    assert "right,best-fit,out_of_memory," in figures_text


def test_reset_goes_back_to_what_was_given(explorer):
    explorer.controls.margin.value = 0
    explorer.controls.left_order.value = "shortest"
    explorer.controls.situation.value = "one-gpu-idles"
    explorer.controls.contention.value = "none"
    explorer.actions.press("reset")
    assert explorer.controls.situation.value == ""
    assert explorer.changes == {}
    assert shows(explorer, gp.load(SMALL))


# ------------------------------------------------------------------ in the background


def test_slow_work_is_done_in_the_background_and_only_the_newest_counts(explorer, monkeypatch):
    gate, ran = threading.Event(), []
    real = module.compare

    def slow(scenario, policies):
        ran.append(scenario.admission.margin)
        gate.wait(20)
        return real(scenario, policies)

    monkeypatch.setattr(answering, "SLOW_S", 0.0)
    explorer._slow = True
    monkeypatch.setattr(module, "compare", slow)
    for margin in (1, 2, 3, 4):
        explorer.controls.margin.value = margin
    until = time.monotonic() + 20
    while not ran and time.monotonic() < until:
        time.sleep(0.01)
    assert explorer.chart.busy
    gate.set()
    assert explorer.wait(30)
    assert ran[-1] == 40_000
    assert len(ran) < 4
    assert shows(explorer, gp.load(SMALL).replace({"admission.margin": 0.04}))
    assert not explorer.chart.busy
