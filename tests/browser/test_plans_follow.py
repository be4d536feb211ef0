"""Controls move, and both Gantts follow: what is on screen is what gpuplan plans in this process."""

import pytest
from playwright.sync_api import expect

import gpuplan as gp
from browser.desk import Desk
from browser.screen import Screen, picture_of
from gpuplan.allocation.model import AllocationScenario


@pytest.fixture(scope="module")
def base() -> AllocationScenario:
    return gp.load("two-apps")


def moves_the_right_bars(base: AllocationScenario, changed: AllocationScenario) -> bool:
    """Whether the change is one that a person can see on the right."""
    return picture_of(gp.plan(base, "aware")) != picture_of(gp.plan(changed, "aware"))


def pixels(screen: Screen) -> str:
    """The picture as it is painted."""
    return str(screen.page.evaluate("() => document.querySelector('.gp-chart canvas').toDataURL()"))


def test_the_first_picture_is_the_scenarios(screen: Screen, base: AllocationScenario) -> None:
    screen.await_scenario(base)
    assert screen.page.locator(".gp-penalty .widget-readout").inner_text() == "8.00"
    assert screen.jobs.count() == len(base.batch)


def test_the_penalty_slider_moves_the_right_bars(screen: Screen, base: AllocationScenario) -> None:
    free = base.replace({"objective.shortfall_penalty": 0})
    assert moves_the_right_bars(base, free)
    rev, painted = screen.rev, pixels(screen)
    screen.slide("penalty", ["Home"])
    screen.await_scenario(free)
    assert screen.rev > rev
    assert pixels(screen) != painted
    screen.slide("penalty", ["ArrowRight"] * 3)
    screen.await_scenario(base.replace({"objective.shortfall_penalty": 0.75}))
    assert screen.page.locator(".gp-penalty .widget-readout").inner_text() == "0.75"
    expect(screen.handle("penalty")).to_have_attribute("aria-valuetext", "0.75")


def test_the_picture_follows_while_a_slider_is_dragged(screen: Screen, base: AllocationScenario) -> None:
    handle = screen.handle("penalty")
    handle.scroll_into_view_if_needed()
    box = handle.bounding_box()
    track = screen.page.locator(".gp-penalty .noUi-base").bounding_box()
    assert box is not None
    assert track is not None
    mouse = screen.page.mouse
    y = box["y"] + box["height"] / 2
    mouse.move(box["x"] + box["width"] / 2, y)
    mouse.down()
    mouse.move(track["x"] - 30, y, steps=12)
    screen.await_scenario(base.replace({"objective.shortfall_penalty": 0}))  # the button is still down
    mouse.move(track["x"] + track["width"] + 30, y, steps=12)
    screen.await_scenario(base.replace({"objective.shortfall_penalty": 20}))
    mouse.up()
    screen.await_scenario(base.replace({"objective.shortfall_penalty": 20}))


def test_a_dragged_point_of_the_curve_moves_the_bars_of_its_app(
    screen: Screen, base: AllocationScenario
) -> None:
    demand = list(base.realtime[0].demand)
    assert (demand[4], demand[16]) == (1, 6)
    points = [screen.point(step) for step in (4, 16)]
    points[0].scroll_into_view_if_needed()
    low, high = (point.bounding_box() for point in points)
    assert low is not None
    assert high is not None
    per_gpu = (low["y"] - high["y"]) / 5
    x, y = low["x"] + low["width"] / 2, low["y"] + low["height"] / 2
    mouse = screen.page.mouse
    place = screen.page.locator(".gp-curve-svg")
    before = place.bounding_box()
    mouse.move(x, y)
    mouse.down()
    mouse.move(x, y - 4 * per_gpu, steps=6)
    demand[4] = 5
    higher = base.replace({"realtime.0.demand": demand})
    assert moves_the_right_bars(base, higher)
    screen.await_scenario(higher)  # the button is still down
    assert place.bounding_box() == before  # what is said meanwhile pushes nothing from under the pointer
    mouse.move(x, y - 2 * per_gpu, steps=3)
    mouse.up()
    demand[4] = 3
    screen.await_scenario(base.replace({"realtime.0.demand": demand}))
    assert screen.point(4).get_attribute("aria-valuenow") == "3"


def test_a_sweep_draws_a_stretch_of_the_curve(screen: Screen, base: AllocationScenario) -> None:
    screen.point(2).scroll_into_view_if_needed()
    first, last = (screen.point(step).bounding_box() for step in (2, 5))
    assert first is not None
    assert last is not None
    mouse = screen.page.mouse
    mouse.move(first["x"] + first["width"] / 2, first["y"] + first["height"] / 2)
    mouse.down()
    peak = screen.point(16).bounding_box()
    assert peak is not None
    mouse.move(first["x"] + first["width"] / 2, peak["y"] + peak["height"] / 2)
    mouse.move(last["x"] + last["width"] / 2, peak["y"] + peak["height"] / 2)  # in one leap
    mouse.up()
    demand = list(base.realtime[0].demand)
    demand[2:6] = [6] * 4
    screen.await_scenario(base.replace({"realtime.0.demand": demand}))


def test_keys_move_a_point_and_walk_along_the_curve(screen: Screen, base: AllocationScenario) -> None:
    screen.page.locator(".gp-curve-app").select_option(label="code-completion")
    demand = list(base.realtime[1].demand)
    assert demand[3] == demand[4] == 0
    screen.point(3).focus()
    for key in ("ArrowUp", "ArrowUp", "ArrowRight", "ArrowUp", "ArrowDown", "End"):
        screen.page.keyboard.press(key)
    demand[3], demand[4] = 2, base.cluster.gpus
    screen.await_scenario(base.replace({"realtime.1.demand": demand}))
    assert screen.page.evaluate("() => document.activeElement.getAttribute('aria-valuetext')") == "16 GPUs"


def test_a_higher_priority_finds_a_place_for_a_job(screen: Screen, base: AllocationScenario) -> None:
    name = base.batch[0].name
    raised = base.replace({"batch.0.priority": 20})
    assert gp.plan(base, "aware").start[0] == -1
    assert gp.plan(raised, "aware").start[0] == 0
    assert name not in {bar["job"] for bar in screen.bars("right")}
    cell = screen.cell(name, "priority")
    cell.fill("20")
    cell.press("Enter")
    screen.await_scenario(raised)
    assert [bar["x"] for bar in screen.bars("right") if bar["job"] == name] == [0]
    cell.press("ArrowDown")
    screen.await_scenario(base.replace({"batch.0.priority": 19}))


def test_jobs_are_added_changed_moved_and_deleted(screen: Screen, base: AllocationScenario) -> None:
    jobs = base.to_dict()["batch"]
    screen.page.locator(".gp-jobs-add").click()
    added = {"name": "new-job-1", "kind": "training", "gpus": 1, "hours": 1, "priority": 1}
    screen.await_scenario(base.replace({"batch": [*jobs, added]}))
    screen.cell("new-job-1", "kind").select_option("quantization")
    for field, text in (("priority", "50"), ("gpus", "8"), ("hours", "150min")):
        screen.cell("new-job-1", field).fill(text)
        screen.cell("new-job-1", field).press("Enter")
    added |= {"kind": "quantization", "priority": 50, "gpus": 8, "hours": 2.5}
    screen.await_scenario(base.replace({"batch": [*jobs, added]}))
    assert "new-job-1" in {bar["job"] for bar in screen.bars("right") if bar["kind"] == "quantization"}
    first, second, *rest = jobs
    screen.page.get_by_role("button", name=f"Move {second['name']} up").click()
    screen.await_scenario(base.replace({"batch": [second, first, *rest, added]}))
    screen.page.get_by_role("button", name=f"Delete {second['name']}").click()
    screen.await_scenario(base.replace({"batch": [first, *rest, added]}))
    assert screen.jobs.count() == len(jobs)


def test_another_scenario_brings_its_controls_along(screen: Screen) -> None:
    screen.slide("penalty", ["Home"])
    screen.choose("preset", "mixed-day")
    mixed = gp.load("mixed-day")
    screen.await_scenario(mixed)
    readout = screen.page.locator(".gp-cluster-size .widget-readout")
    assert readout.inner_text() == str(mixed.cluster.gpus)
    assert screen.jobs.count() == len(mixed.batch)
    assert screen.points.count() == mixed.horizon.steps
    screen.slide("cluster-size", ["ArrowRight"])
    screen.await_scenario(mixed.replace({"cluster.gpus": mixed.cluster.gpus + 1}))


def test_a_policy_changes_on_its_side_only(screen: Screen, base: AllocationScenario) -> None:
    screen.choose("policy-right", "curve-priority")
    screen.await_scenario(base, "fifo", "curve-priority")
    screen.choose("policy-left", "peak-priority")
    screen.await_scenario(base, "peak-priority", "curve-priority")


def test_goals_and_limits_have_controls(screen: Screen, base: AllocationScenario) -> None:
    screen.slide("half-life", ["Home"])
    changes: dict[str, object] = {"objective.half_life_hours": 3}
    screen.await_scenario(base.replace(changes))
    # The slider itself only knows that this is the first of its choices.
    expect(screen.handle("half-life")).to_have_attribute("aria-valuetext", "3 h")
    screen.choose("swap-app", "code-completion")
    screen.slide("swap-cap", ["End"])
    changes["realtime.1.max_swap"] = None
    screen.await_scenario(base.replace(changes))
    screen.choose("gpus-per-node", "4")
    screen.page.locator(".gp-within-node input").check()
    changes |= {"cluster.gpus_per_node": 4, "rules.within_node": True}
    screen.await_scenario(base.replace(changes))


def test_why_a_job_has_no_place_is_said_for_both_sides(
    desk: Desk, screen: Screen, base: AllocationScenario
) -> None:
    name = base.batch[0].name
    screen.choose("why", name)
    told = desk.page.locator(".gp-why-text")
    for side, policy in (("left", "fifo"), ("right", "aware")):
        sentence = f"{side} ({policy}): {gp.plan(base, policy).why(name)}"
        told.get_by_text(sentence, exact=True).wait_for()
