"""The rolling explorer without a browser: its controls, the moment it shows, its figures and tables."""

import html
import re
import threading
import time

import pytest

import gpuplan as gp
from gpuplan.allocation.charts.rolling_moment import so_far
from gpuplan.inputs.errors import InputError
from gpuplan_widgets import RollingExplorer, answering
from gpuplan_widgets import rolling as module
from gpuplan_widgets import rolling_tables as tables

OLD = "The picture is old"

ERRORS = {"traffic_bias": -0.2, "traffic_noise": 0.3, "duration_noise": 0.4, "unannounced": 0.3}


@pytest.fixture(autouse=True)
def at_once(monkeypatch):
    """However busy the machine, nothing is slow enough for the background unless a test says so."""
    monkeypatch.setattr(answering, "SLOW_S", 600.0)


@pytest.fixture
def explorer():
    return RollingExplorer("mixed-day", days=2, errors=ERRORS)


def plain(widget):
    """What an HTML widget says, its cells apart."""
    return re.sub(r"[\s|]*\|[\s|]*", " | ", html.unescape(re.sub("<[^>]*>", "|", widget.value)))


def rows(widget):
    """The rows of the table in an HTML widget, cell by cell."""
    return [
        [html.unescape(re.sub("<[^>]*>", "", cell)) for cell in re.findall("<t[hd][^>]*>(.*?)</t[hd]>", row)]
        for row in re.findall("<tr>(.*?)</tr>", widget.value)
    ]


def place(explorer, name):
    """The sentence beside a control."""
    return html.unescape(re.sub("<[^>]*>", "", explorer.controls.messages[name].value))


# ------------------------------------------------------------------ what is on screen


def test_what_is_on_screen_at_first_are_the_runs_of_both_policies_at_their_first_plan(explorer):
    for name in ("fifo", "aware"):
        expected = gp.roll("mixed-day", name, days=2, errors=ERRORS)
        assert explorer.runs[name].fingerprint == expected.fingerprint
    assert explorer.number == 0
    assert explorer.run.policy == "aware"
    assert explorer.message == ""
    assert repr(explorer) == "RollingExplorer('mixed-day', 2 days, fifo | aware)"


def test_first_settings_may_be_times_with_a_unit():
    explorer = RollingExplorer(
        "big-day", days=1, policies=("aware",), horizon_hours="12 h", replan_every="90 min"
    )
    assert explorer.settings["horizon_hours"] == explorer.controls.horizon.value == 12
    assert explorer.settings["replan_every"] == explorer.controls.replan.value == 1.5
    explorer.controls.seed.value = 1
    assert explorer.run.replan_steps == 3
    assert explorer.message == ""


MOVES = [
    ("days", 3, {"days": 3}),
    ("horizon", 12, {"horizon_hours": 12}),
    ("replan", 4, {"replan_every": 4}),
    ("traffic_bias", 35.0, {"traffic_bias": 0.35}),
    ("traffic_noise", 0.8, {"traffic_noise": 0.8}),
    ("duration_bias", 50.0, {"duration_bias": 0.5}),
    ("duration_noise", 0.0, {"duration_noise": 0.0}),
    ("unannounced", 100.0, {"unannounced": 1.0}),
    ("seed", 7, {"seed": 7}),
]


@pytest.mark.parametrize(("control", "value", "changed"), MOVES)
def test_a_control_runs_both_policies_again_with_its_value(explorer, control, value, changed):
    before, rev = explorer.runs, explorer.chart.rev
    getattr(explorer.controls, control).value = value
    errors = ERRORS | {name: changed[name] for name in changed if name in ERRORS or name == "duration_bias"}
    keywords = {name: changed[name] for name in changed if name not in errors}
    for name in ("fifo", "aware"):
        expected = gp.roll("mixed-day", name, **{"days": 2, "errors": errors, **keywords})
        assert explorer.runs[name].fingerprint == expected.fingerprint
    assert explorer.runs["aware"].fingerprint != before["aware"].fingerprint
    assert explorer.chart.rev == rev + 1
    assert explorer.message == ""


def test_controls_are_named_and_say_what_they_do(explorer):
    controls = [*explorer.controls.named().values(), explorer.position.moment, explorer.position.policy]
    assert all(widget.description and widget.tooltip for widget in controls)


# ------------------------------------------------------------------ through the days


def test_buttons_step_through_the_plans_and_stop_at_both_ends(explorer):
    at, last = explorer.position, len(explorer.run.promises) - 1
    seen = []
    for button in (at.back, at.forward, at.forward, at.back, at.last, at.forward, at.first):
        button.click()
        seen.append(explorer.number)
    assert seen == [0, 1, 2, 1, last, last, 0]


def test_each_step_draws_the_next_moment_on_the_same_specification(explorer):
    spec, rev = explorer.chart.spec, explorer.chart.rev
    for number in (1, 2, 3):
        explorer.position.forward.click()
        shown = explorer.chart.payload["data"]
        assert explorer.chart.rev == rev + number
        assert f"plan {number + 1} of 48" in shown["moment_frame"]["title"][0]
        assert f"plan {number + 1} of 48" in plain(explorer.position.where)
        assert f"plan {number + 1} of 48" in explorer.chart.label
    assert explorer.chart.spec == spec


def test_what_plays_moves_the_moment_and_what_moves_the_moment_moves_what_plays(explorer):
    at = explorer.position
    at.play.value = 5
    assert explorer.number == 5
    at.moment.value = 9
    assert at.play.value == 9
    assert at.play.max == len(explorer.run.promises) - 1
    at.speed.value = 1000
    assert at.play.interval == 1000


def test_another_policy_is_shown_at_the_same_moment(explorer):
    explorer.go(6)
    explorer.position.policy.value = "fifo"
    assert explorer.number == 6
    assert explorer.chart.payload["data"]["moment_frame"]["title"][0].startswith("fifo: plan 7 of 48")
    assert "(fifo)" in plain(explorer.account.risk)


def test_other_days_are_shown_at_the_hour_that_was_on_screen_as_far_as_they_have_it(explorer):
    explorer.go(30)
    explorer.controls.replan.value = 4
    assert explorer.number == 7  # hour 28 is the last plan before hour 30
    explorer.controls.days.value = 1
    assert explorer.number == explorer.position.moment.max == explorer.position.play.max == 5


def test_one_plan_is_no_slider(explorer):
    explorer.controls.replan.value = 24
    explorer.controls.days.value = 1
    assert len(explorer.run.promises) == 1
    assert explorer.position.moment.disabled
    assert explorer.position.play.disabled
    explorer.position.forward.click()
    explorer.position.moment.value = 1  # a late message of the page
    assert explorer.number == 0
    assert "plan 1 of 1" in plain(explorer.position.where)
    explorer.controls.days.value = 2
    assert not explorer.position.moment.disabled


# ------------------------------------------------------------------ the picture


def test_days_without_apps_or_jobs_are_drawn():
    empty = HALF_IDLE | {"realtime": []}
    explorer = RollingExplorer(empty, days=1)
    explorer.position.last.click()
    drawn = explorer.chart.payload["data"]
    assert drawn["moment_bars"]["job"] == []
    assert drawn["moment_frame"]["empty"] == ["nothing was committed and nothing is planned"]
    assert len(explorer.chart.spec["concat"]) == 1
    assert explorer.message == ""


def test_another_width_of_the_page_is_another_specification(explorer):
    spec = explorer.chart.spec
    explorer.chart.room = 500
    assert explorer.chart.spec != spec
    assert explorer.chart.spec["concat"][0]["width"] < 500


# ------------------------------------------------------------------ words and figures


def test_before_the_first_hour_shares_are_not_known(explorer):
    table = {row[0]: row[1:] for row in rows(explorer.account.figures)}
    useful = next(cells for words, cells in table.items() if "useful work" in words)
    assert useful[0] == useful[2] == "not known"
    assert useful[3] == f"{100 * explorer.runs['aware'].figures['utilization']:.1f}\N{NO-BREAK SPACE}%"


def test_the_table_has_so_far_and_all_days_of_both_policies(explorer):
    explorer.go(20)
    head, *found = rows(explorer.account.figures)
    assert head == ["figure (unit)", "fifo: so far", "fifo: all days", "aware: so far", "aware: all days"]
    value = next(row for row in found if row[0].startswith("value of"))
    expected = [
        number
        for run in explorer.runs.values()
        for number in (so_far(run, 20)["value"], run.figures["value"])
    ]
    assert value[1:] == [f"{number:,.2f}" for number in expected]
    assert "priority-weighted GPU-hours" in value[0]


def test_all_figures_are_written_when_their_fold_is_opened_and_follow(explorer):
    account = explorer.account
    assert account.all_figures.value == ""
    account.fold.selected_index = 0
    assert len(rows(account.all_figures)) == 1 + len(explorer.run.figures)
    before = account.all_figures.value
    explorer.controls.traffic_noise.value = 0.9
    assert account.all_figures.value != before


def test_the_chart_is_written_as_tables_when_their_fold_is_opened_and_follows(explorer):
    account = explorer.account
    account.fold.selected_index = 1
    for number in (0, 7):
        explorer.go(number)
        drawn = explorer.chart.payload["data"]
        text = plain(account.table)
        assert len(rows(account.table)) == 3 - (number == 0) + sum(
            len(drawn[name]["x"]) - (name != "moment_bars")
            for name in ("moment_bars", "done_0", "plan_0")
            if drawn[name]["x"]
        )
        assert "Traffic of chat-assistant that is expected, in GPUs" in text
        assert (", committed" in text) == (number > 0)
    assert account.all_figures.value == ""


def test_what_a_plan_promised_stands_beside_what_came(explorer):
    explorer.go(10)
    row = explorer.run.promises_frame().iloc[10]
    _, batch, served = rows(explorer.account.promised)
    for cells, name in ((batch, "batch"), (served, "served")):
        said, came = row[f"{name}_promised_gpu_hours"], row[f"{name}_come_gpu_hours"]
        assert cells[1:3] == [f"{said:,.2f}", f"{came:,.2f}"]
        difference = float(cells[3].replace("−", "-").replace(",", ""))
        assert difference == pytest.approx(came - said)


#: Two GPUs, one of which the only app wants all day: the other is idle, or the slack of traffic twice as high.
HALF_IDLE = {
    "kind": "allocation",
    "name": "half idle",
    "cluster": {"gpus": 2},
    "horizon": {"steps": 24, "step_hours": 1},
    "realtime": [{"name": "chat", "priority": 3, "demand": [1] * 24}],
    "batch": [],
}


def test_risk_follows_the_margin_and_idle_windows_are_listed():
    explorer = RollingExplorer(HALF_IDLE, days=2, policies=("aware",))
    assert "in 24 hours no GPU is missing; no hour is without slack" in plain(explorer.account.risk)
    windows = rows(explorer.account.idle)
    assert windows[1][1:] == ["24", "1 (from GPU 0)", "24"]
    assert windows[1][0] == "day 1, hour 0 to day 2, hour 0"
    explorer.position.margin.value = 100
    assert "if traffic comes 100 % higher than expected" in plain(explorer.account.risk)
    assert "no GPU is missing; 24 hours are without slack" in plain(explorer.account.risk)
    assert rows(explorer.account.risk)[1] == ["day 1, hour 0 to day 2, hour 0", "no slack", "0", "2", "1"]


def test_missing_gpus_are_counted_and_what_is_not_listed_is_said():
    demand = [3, 0] * 12
    busy = HALF_IDLE | {"realtime": [{"name": "chat", "priority": 3, "demand": demand}]}
    explorer = RollingExplorer(busy, days=1, policies=("aware",))
    said = plain(explorer.account.risk)
    assert "in 12 of 24 hours GPUs are missing (12 GPU-hours)" in said
    assert len(rows(explorer.account.risk)) == 1 + 8
    assert "4 later stretches are not listed." in said
    assert "4 smaller windows, 8 GPU-hours together, are not listed." in plain(explorer.account.idle)


def test_the_largest_idle_windows_are_listed_by_their_start():
    # nine hours apart in which both GPUs stand idle, then five hours together
    demand = [2, 0] * 9 + [2] + [0] * 5
    day = HALF_IDLE | {"realtime": [{"name": "chat", "priority": 3, "demand": demand}]}
    explorer = RollingExplorer(day, days=1, policies=("aware",))
    listed = rows(explorer.account.idle)[1:]
    assert [float(row[3]) for row in listed] == [2.0] * 7 + [10.0]
    assert listed[-1] == ["day 1, hour 19 to day 2, hour 0", "5", "2 (from GPU 0)", "10"]
    assert "10 of at least 2 GPU-hours, 28 GPU-hours together" in plain(explorer.account.idle)
    assert "2 smaller windows, 4 GPU-hours together, are not listed." in plain(explorer.account.idle)


def test_whatever_stands_in_a_table_is_text():
    table = tables._table("<b>c</b>", ["<b>h</b>"], [["<b>r</b>", "<b>d</b>"]])
    assert "<b>" not in table
    assert table.count("&lt;b&gt;") == 4
    assert "<b>" not in tables._table("<b>c</b>", [], [])


# ------------------------------------------------------------------ what cannot be, and other people's names


def test_what_cannot_be_run_is_a_sentence_beside_its_control_and_goes_away(explorer):
    explorer.controls.replan.value = 24
    runs = explorer.runs
    explorer.controls.horizon.value = 8
    said = place(explorer, "horizon")
    assert "must not be longer than the horizon" in said
    assert OLD in said
    assert explorer.message == said
    assert explorer.chart.old
    assert explorer.runs == runs
    explorer.position.forward.click()  # the old runs can still be looked at
    assert explorer.number == 1
    assert explorer.chart.old
    explorer.controls.replan.value = 2
    assert explorer.message == ""
    assert not explorer.chart.old
    assert explorer.settings["horizon_hours"] == 8


def test_what_goes_wrong_by_itself_is_a_sentence_too(explorer, monkeypatch):
    def fail(*_args, **_keywords):
        raise RuntimeError("<b>no</b>")

    monkeypatch.setattr(module, "roll", fail)
    explorer.controls.seed.value = 5
    assert "RuntimeError: <b>no</b>" in place(explorer, "seed")
    assert "<b>no" not in explorer.controls.messages["seed"].value
    monkeypatch.setattr(module, "moment_data", fail)
    explorer.position.forward.click()
    assert "This moment cannot be shown: <b>no</b>" in plain(explorer.position.where).replace(" | ", "")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"days": 0}, "days"),
        ({"policies": ("fifo", "exact")}, "too slow"),
        ({"policies": ("fifo", "nobody")}, "nobody"),
        ({"policies": ()}, "at least one policy"),
        ({"errors": {"traffic": 1}}, "errors.traffic"),
        ({"replan_every": 48}, "replan_every"),
        ({"seed": -1}, "seed"),
    ],
)
def test_mistakes_of_the_first_settings_are_told_at_once(options, words):
    with pytest.raises(InputError, match=words):
        RollingExplorer("mixed-day", **options)


HOSTILE = "<img src=x onerror=alert(1)>"


def test_hostile_names_stay_text():
    day = HALF_IDLE | {
        "name": f"{HOSTILE} day",
        "realtime": [{"name": HOSTILE, "priority": 3, "demand": [1, 2] * 12}],
        "batch": [{"name": f"</script>{HOSTILE}", "kind": "training", "gpus": 1, "hours": 3, "priority": 2}],
    }
    explorer = RollingExplorer(day, days=2)
    account = explorer.account
    account.fold.selected_index = 0
    account.fold.selected_index = 1
    explorer.go(4)
    shown = [
        account.figures,
        account.promised,
        account.risk,
        account.idle,
        account.all_figures,
        account.table,
    ]
    assert HOSTILE in html.unescape(account.table.value)
    for text in (*(widget.value for widget in shown), explorer._repr_mimebundle_()["text/html"]):
        assert "<img" not in text
    assert HOSTILE in explorer.chart.payload["data"]["moment_bars"]["job"]
    names = {}
    exec(explorer.code(), names)
    assert names["runs"]["aware"].fingerprint == explorer.runs["aware"].fingerprint


# ------------------------------------------------------------------ several at once, slow ones, what is left behind


def test_two_explorers_move_at_once_and_each_shows_its_own():
    explorers = [RollingExplorer("mixed-day", days=2, seed=seed, errors=ERRORS) for seed in (1, 2)]

    def move(explorer):
        for noise in (0.1, 0.2, 0.5):
            explorer.controls.traffic_noise.value = noise
            explorer.position.forward.click()

    threads = [threading.Thread(target=move, args=(one,)) for one in explorers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    for seed, explorer in zip((1, 2), explorers, strict=True):
        expected = gp.roll("mixed-day", "aware", days=2, seed=seed, errors=ERRORS | {"traffic_noise": 0.5})
        assert explorer.runs["aware"].fingerprint == expected.fingerprint
        assert explorer.number == 3
        assert explorer.message == ""


def test_slow_runs_say_so_and_the_newest_settings_win(explorer, monkeypatch):
    monkeypatch.setattr(answering, "SLOW_S", 0.0)
    begun, free = threading.Event(), threading.Event()
    busy, real = [], module.roll

    def slow(*args, **keywords):
        begun.set()
        assert free.wait(30)
        return real(*args, **keywords)

    explorer.chart.observe(lambda change: busy.append(change["new"]), "busy")
    explorer.controls.seed.value = 1  # the first slow one is waited for, and says so meanwhile
    assert explorer.wait()
    monkeypatch.setattr(module, "roll", slow)
    explorer.controls.seed.value = 2
    assert begun.wait(30)
    assert explorer.chart.busy
    for seed in (3, 4, 5):
        explorer.controls.seed.value = seed
    free.set()
    assert explorer.wait()
    assert not explorer.chart.busy
    expected = gp.roll("mixed-day", "aware", days=2, seed=5, errors=ERRORS)
    assert explorer.runs["aware"].fingerprint == expected.fingerprint
    assert explorer.settings["seed"] == 5
    assert busy[-1] is False


def test_what_was_asked_for_earlier_and_comes_later_is_not_shown(explorer, monkeypatch):
    begun, free = threading.Event(), threading.Event()
    real = explorer._run_with

    def held_back(asked):
        if asked["seed"] == 1:
            begun.set()
            assert free.wait(30)
        return real(asked)

    monkeypatch.setattr(explorer, "_run_with", held_back)
    late = threading.Thread(target=lambda: setattr(explorer.controls.seed, "value", 1))
    late.start()
    assert begun.wait(30)
    explorer.controls.seed.value = 2
    newest = explorer.runs["aware"].fingerprint
    free.set()
    late.join(30)
    assert explorer.settings["seed"] == 2
    assert explorer.runs["aware"].fingerprint == newest


def test_it_runs_while_no_other_explorer_plans(explorer, monkeypatch):
    begun, real = threading.Event(), module.roll

    def noted(*args, **keywords):
        begun.set()
        return real(*args, **keywords)

    monkeypatch.setattr(module, "roll", noted)
    with answering.PLANNING:
        mover = threading.Thread(target=lambda: setattr(explorer.controls.seed, "value", 1))
        mover.start()
        assert not begun.wait(0.3)
    mover.join(30)
    assert begun.is_set()
    assert explorer.settings["seed"] == 1


def test_a_run_that_turns_out_slow_says_so_before_it_is_done(explorer, monkeypatch):
    monkeypatch.setattr(answering, "SLOW_S", 0.01)
    real, seen = module.roll, []

    def slow(*args, **keywords):
        end = time.monotonic() + 30
        while not explorer.chart.busy and time.monotonic() < end:
            time.sleep(0.01)
        seen.append(explorer.chart.busy)
        return real(*args, **keywords)

    monkeypatch.setattr(module, "roll", slow)
    explorer.controls.seed.value = 3
    assert explorer.wait()
    assert seen[0] is True
    assert not explorer.chart.busy
    explorer._say_busy(explorer._published)  # an alarm that comes when all is done
    assert not explorer.chart.busy


def test_a_page_without_a_kernel_shows_the_figures_or_a_picture():
    explorer = RollingExplorer("mixed-day", days=1)
    bundle = explorer._repr_mimebundle_()
    assert "RollingExplorer('mixed-day', 1 day, fifo | aware)" in bundle["text/plain"]
    assert f"{explorer.run.figures['value']:,.2f}" in bundle["text/html"]
    pytest.importorskip("vl_convert")
    pictured = RollingExplorer("mixed-day", days=1, policies=("aware",), picture=True)
    assert pictured._repr_mimebundle_()["image/png"].startswith("iVBOR")


def test_the_python_that_is_handed_out_makes_the_runs_again_and_reset_goes_back(explorer):
    given = explorer.runs["aware"].fingerprint
    explorer.controls.duration_bias.value = 30.0
    explorer.controls.replan.value = 2
    names = {}
    exec(explorer.code(), names)
    assert "gp.load('mixed-day')" in explorer.code()
    for name, run in names["runs"].items():
        assert run.fingerprint == explorer.runs[name].fingerprint
    assert explorer.actions.press("save-figures").text.count("\n") == 1 + 2 * len(explorer.run.figures)
    explorer.go(4)
    explorer.actions.press("reset")
    assert explorer.runs["aware"].fingerprint == given
    assert explorer.number == 0


def test_nothing_is_printed(explorer, capsys):
    explorer.controls.horizon.value = 1
    explorer.controls.replan.value = 8
    explorer.position.last.click()
    assert capsys.readouterr() == ("", "")
