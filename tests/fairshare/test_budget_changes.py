"""Budgets that change while a run goes on: worked cases, what must not change, what figures make of it."""

from collections import Counter
from dataclasses import astuple, replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from fairshare.by_hand import changed, run_of
from fairshare.engine_answers import engine
from fairshare.reference import reference
from fairshare.strategies import scenarios, weights_of
from fairshare.test_against_reference import tidy
from gpuplan.fairshare import charts
from gpuplan.fairshare import engine as engines
from gpuplan.fairshare.charts import clock, colours
from gpuplan.fairshare.charts.account import account, change_columns, entitled_columns, ratio_columns
from gpuplan.fairshare.check import check
from gpuplan.fairshare.epochs import epochs_of, reweighted
from gpuplan.fairshare.jobs import jobs
from gpuplan.fairshare.model import (
    HOUR,
    NEVER,
    BudgetChange,
    BudgetNode,
    Contract,
    FairshareScenario,
    Pool,
)
from gpuplan.fairshare.policies import POLICIES
from gpuplan.fairshare.ratios import ratios_over
from gpuplan.fairshare.run import Run, simulate

SHARING = ("fair-share", "fair-tree", "static-partitions")
HALVES = (BudgetNode("a"), BudgetNode("b"))


def change(at_s: int, **weights: float) -> BudgetChange:
    return BudgetChange(at_s, tuple(sorted(weights.items())))


def starts_by_hour(run: Run) -> list[list[int]]:
    """Starts of the teams a and b in every hour."""
    team, hour = run.problem.team[run.stretches.job], run.stretches.start_s // HOUR
    return [[int(((hour == h) & (team == k)).sum()) for k in (0, 1)] for h in range(-(-run.end_s // HOUR))]


def crowd(*changes: BudgetChange, hours: int = 11, until: int | None = None) -> FairshareScenario:
    """10 GPUs in one pool, teams a and b with 110 jobs each of 1 GPU and 1 h (all of it protected), window 10 h."""
    made = jobs(
        [f"{team}{k}" for team in "ab" for k in range(10 * hours)],
        [0] * 20 * hours,
        [1] * 20 * hours,
        [HOUR] * 20 * hours,
        team=[team for team in "ab" for _ in range(10 * hours)],
        minimum_s=[HOUR] * 20 * hours,
    )
    return FairshareScenario(
        "crowd", (Pool(1, 10),), HALVES, window_s=10 * HOUR, contract=Contract(HOUR, 600, 0, 0.0), jobs=made,
        until_s=hours * HOUR if until is None else until, budget_changes=changes,
    )  # fmt: skip


# ----------------------------------------------------------------------------- worked cases


def test_from_halves_to_nine_parts_and_one() -> None:
    """50 / 50, from 2 h on 90 / 10; ratios in GPU-hours over share x 10 GPUs x 10 h.

    0 h and 1 h: a and b take turns, 5 each. At 2 h both have had 10: a 10 / 90 = .11, b 10 / 10 = 1. Each start of a
    adds 1 / 90, so all ten GPUs go to a, and again each hour: 20 / 90 at 3 h ... at 9 h (80 + 9) / 90 < 1 at the last
    start. At 10 h both stand at 1 (90 / 90, 10 / 10; nothing has left the window): the name decides, a 91 / 90; b
    11 / 10; then a up to (90 + 9) / 90 = 1.1: 9 to a, 1 to b, as budgeted.
    """
    run = simulate(crowd(change(2 * HOUR, a=90, b=10)))
    assert starts_by_hour(run) == [[5, 5], [5, 5], *[[10, 0]] * 8, [9, 1]]
    assert run.check() == []
    ratios = ratios_over(run, np.array([2 * HOUR - 1, 10 * HOUR]))[run.problem.tree.leaves]
    # just before the change (5 x 2 h) / (.5 x 100); from then on b has had 10 of 10, then one more is protected
    assert ratios[:, 0] == pytest.approx([10 / 50, 10 / 50])
    assert ratios[:, 1] == pytest.approx([99 / 90, 11 / 10])


def test_the_change_is_an_event_and_protection_holds() -> None:
    """4 GPUs, window 100 s; b weighs nothing until 50 s, so that x of team a runs and y of team b waits.

    At 50 s a has had 4 x 50 of .5 x 400, that is 1, and b 0 of as much: y takes the place of x, unless the minimum run
    time of x lasts to 80 s: (4 x 50 + 4 x 30) / 200 is even more, but x is protected; y starts at 80 s.
    """
    budget = (BudgetNode("a"), BudgetNode("b", 0.0))
    for minimum, start in ((10, 50), (80, 80)):
        made = jobs(["x", "y"], [0, 5], [4, 4], [200, 10], team=["a", "b"], minimum_s=[minimum, 10])
        scenario = FairshareScenario(
            "event", (Pool(1, 4),), budget, window_s=100, contract=Contract(100, 1, 0, 0.0), jobs=made,
            budget_changes=(change(50, b=1),),
        )  # fmt: skip
        run = simulate(scenario)
        rows = [(str(made.name[j]), int(s), int(e)) for j, s, e in zip(
            run.stretches.job, run.stretches.start_s, run.stretches.end_s, strict=True)]  # fmt: skip
        assert rows == [("x", 0, start), ("y", start, start + 10), ("x", start + 10, 210)]
        assert run.check() == []
        assert "b has used infinitely much of its 0.0%" in run.why("y", 49)
        # y would have waited for the end of x
        assert int(simulate(replace(scenario, budget_changes=())).stretches.start_s[1]) == 200


def test_the_hysteresis_follows_the_shares() -> None:
    """8 GPUs, window 100 s, h = .25; a 1 : b 1, at 20 s b becomes 3 : x (a, 4 GPUs) and z (b, 4 GPUs) run since 0 s.

    y (a, 4 GPUs) waits. At 20 s a has had 80 of .25 x 800 = .4 and b 80 of .75 x 800 = .133. a has no claim; its own x
    is not later. v (b, 4 GPUs, from 10 s on) may take the place of x once .133 + .25 < .4: at 20 s by .0167. With equal
    shares both stand at 80 / 400 = .2 for as long as both run, and v waits for z.
    """
    made = jobs(
        ["x", "z", "v"], [0, 0, 10], [4, 4, 4], [60, 60, 10], team=["a", "b", "b"], minimum_s=[10, 10, 10]
    )
    still = FairshareScenario(
        "gap", (Pool(1, 8),), HALVES, window_s=100, contract=Contract(100, 1, 0, 0.25), jobs=made
    )
    start = {}
    for name, changes in (("still", ()), ("three", (change(20, b=3),)), ("less", (change(20, b=2),))):
        run = simulate(replace(still, budget_changes=changes))
        row = {str(made.name[j]): int(s) for j, s in zip(
            run.stretches.job[::-1], run.stretches.start_s[::-1], strict=True)}  # fmt: skip
        start[name] = row["v"]
        assert run.check() == []
    # b 2 : 80 of 266.7 = .3 and 80 of 533.3 = .15: .15 + .25 is not below .3, nor at any later event before 60 s
    assert start == {"still": 60, "three": 20, "less": 60}


def test_parts_of_a_cluster_grow_and_shrink() -> None:
    """8 GPUs, 1 : 1 (4 and 4), from 100 s on 3 : 1 (6 and 2).

    a: a1 has 3 GPUs to 300 s. a2 wants 6 from 60 s on: larger than the part, so a3 (1 GPU, 70 s) passes it. After the
    change 6 is the part: a2 is in the way of a4 (1 GPU, 120 s), starts at 300 s, and a4 after it at 310 s.
    b: b1 has 4 GPUs to 200 s, above its part of 2 from 100 s on. b2 (4 GPUs, 20 s) is never small enough again; b3
    (2 GPUs, 50 s) passes it at 200 s, when b holds nothing. b4 (4 GPUs, from 150 s on) was never possible: set aside.
    """
    made = jobs(
        ["a1", "a2", "a3", "a4", "b1", "b2", "b3", "b4"],
        [0, 60, 70, 120, 0, 20, 50, 150],
        [3, 6, 1, 1, 4, 4, 2, 4],
        [300, 10, 10, 10, 200, 10, 10, 10],
        team=["a"] * 4 + ["b"] * 4,
    )
    run = simulate(
        FairshareScenario("parts", (Pool(1, 8),), HALVES, jobs=made, budget_changes=(change(100, a=3),)),
        "static-partitions",
    )
    rows = run.stretches
    assert {str(made.name[j]): int(s) for j, s in zip(rows.job, rows.start_s, strict=True)} == {
        "a1": 0, "b1": 0, "a3": 70, "b3": 200, "a2": 300, "a4": 310,
    }  # fmt: skip
    assert {str(made.name[j]): why for j, why in run.reasons.items()} == {
        "b4": "4 GPUs wanted, the team's part is 2"
    }
    assert run.check() == []
    assert run.figures["waits_are_lower_bounds"] == 1
    assert "It is larger than its team's part, and others may pass it until that grows." in run.why("b2", 150)
    assert "Its team holds 4 of its 2 GPUs (since the change 50 s ago)." in run.why("b2", 150)
    assert "Its team holds 4 of its 4 GPUs (as at the start)." in run.why("b2", 99)
    assert run.shares_at(99).nominal_gpus.tolist() == [4, 4]
    assert run.shares_at(100).nominal_gpus.tolist() == [6, 2]


def test_fair_tree_takes_turns_until_shares_change() -> None:
    """Jobs that fill the cluster for 300 s: a, b, a, b ... for the one before last has decayed more.

    From 700 s on b weighs 9: at 900 s a has had nearly 2 x 3000 and b 3000, 1 / 6000 against 9 / 3000: b, then again.
    """
    made = jobs(
        [f"{team}{k}" for team in "ab" for k in range(4)], [0] * 8, [10] * 8, [300] * 8, team=["a"] * 4 + ["b"] * 4
    )  # fmt: skip
    scenario = FairshareScenario("turns", (Pool(1, 10),), HALVES, jobs=made)

    def order(*changes: BudgetChange) -> str:
        run = simulate(replace(scenario, budget_changes=changes), "fair-tree")
        return "".join(str(name)[0] for name in made.name[run.stretches.job])

    assert order() == "abababab"
    assert order(change(700, b=9)) == "ababbbaa"


def test_what_is_owed_follows_the_shares_within_an_hour() -> None:
    """50 / 50, after 1.5 h 90 / 10, of 10 GPUs with work for all: a is owed 5, then 7 in the second hour, then 9."""
    run = simulate(crowd(change(3 * HOUR // 2, a=90, b=10), until=3 * HOUR))
    assert run.owed.owed == [(5 + 7 + 9) * HOUR, (5 + 3 + 1) * HOUR]
    assert run.teams.share.tolist() == pytest.approx([0.7, 0.3])
    assert run.teams.entitlement_gpus.tolist() == pytest.approx([7, 3])
    palette, axis = colours.palette_of(run.problem), clock.clock_of(run)
    found = account(run, palette, 100)
    assert found.owed.tolist() == pytest.approx(np.array([[5, 7, 9], [5, 3, 1]]) * HOUR)
    assert found.entitled.tolist() == pytest.approx([7, 3])
    assert entitled_columns(run, palette, axis) == {
        "x": [0, 1.5, 3], "e0": [5, 9, 9], "e1": [5, 1, 1],
    }  # fmt: skip
    assert change_columns(run, axis) == {
        "x": [1.5], "label": ["new budgets"], "says": ["budgets change after 1.5 hours"],
    }  # fmt: skip
    # the ratio of b steps from .13 to .65 GPU-shares at the change: its used GPU-hours over 50, then over 10
    ratios = ratio_columns(run, palette, found.edges, axis)
    assert 1.5 in ratios["x"]
    at = ratios["x"].index(1.5)
    assert ratios["r1"][at] == pytest.approx(5 * ratios["r1"][at - 1], rel=0.01)


def test_charts_show_the_step_and_the_rule() -> None:
    run = simulate(crowd(change(2 * HOUR, a=90, b=10)))
    still = simulate(crowd())
    for made in (charts.allocation_chart(run).to_dict(), charts.live_spec(run.problem)):
        text = str(made)
        assert all(name in text for name in ("_entitled", "_changes'"))
    assert "a: entitled to 5 → 9 GPUs" in str(charts.allocation_chart(run).to_dict())
    assert "_changes'" not in str(charts.live_spec(still.problem)) + str(
        charts.allocation_chart(still).to_dict()
    )
    data = charts.live_data(run, run)
    assert data["left_changes"]["x"] == [2.0]
    assert data["right_entitled"]["e1"] == [5.0, 1.0, 1.0]
    assert "left_changes" not in charts.live_data(still, still)


def test_why_names_the_share_that_holds() -> None:
    run = simulate(crowd(change(2 * HOUR, a=90, b=10)))
    # at 1 h + 1 s: 5 x (1 h + 1 h) of .5 x 100; at 3 h: 10 of .1 x 100
    assert "b has used 0.200 of its 50.0% of the window (as at the start)" in run.why("b99", HOUR + 1)
    assert "b has used 1.000 of its 10.0% of the window (since the change 60 min ago): 2nd of 2" in run.why(
        "b99", 3 * HOUR
    )
    assert "of its share of the window" in simulate(crowd()).why("b99", 3 * HOUR)
    assert run.shares_at(3 * HOUR).share.tolist() == pytest.approx([0.9, 0.1])
    assert run.shares_at(3 * HOUR).now_gpus.tolist() == [9, 1]


# ----------------------------------------------------------------------------- the check


def test_the_check_knows_which_shares_hold() -> None:
    """A legal run of one scenario is illegal where the change comes later, or not at all."""
    legal = crowd(change(2 * HOUR, a=90, b=10), until=4 * HOUR)
    raw = simulate(legal, "static-partitions").raw
    for changes in ((), (change(3 * HOUR, a=90, b=10),)):
        other = simulate(replace(legal, budget_changes=changes), "static-partitions").problem
        (sentence,) = check(other, "static-partitions", raw)
        assert sentence.startswith("Team 'a' has 9 GPUs in use at 7200 s; its part is 5.")

    made = jobs(["x", "y"], [0, 5], [4, 4], [200, 10], team=["a", "b"], minimum_s=[10, 10])
    scenario = FairshareScenario(
        "event", (Pool(1, 4),), (BudgetNode("a"), BudgetNode("b", 0.0)), window_s=100,
        contract=Contract(100, 1, 0, 0.0), jobs=made, budget_changes=(change(50, b=1),),
    )  # fmt: skip
    raw = simulate(scenario).raw
    assert check(simulate(scenario).problem, "fair-share", raw) == []
    late = simulate(replace(scenario, budget_changes=(change(51, b=1),))).problem
    (sentence,) = check(late, "fair-share", raw)
    assert "is preempted, and nothing that started then in its place had the better claim" in sentence


def test_the_check_sees_who_is_passed_in_a_line() -> None:
    """Part 4, then 6 of 8 GPUs: a3 (1 GPU) may pass a2 (6 GPUs) until 100 s, not after."""
    made = jobs(["a2", "a3"], [10, 20], [6, 1], [10, 10], team=["a", "a"])
    scenario = FairshareScenario(
        "parts", (Pool(1, 8),), HALVES, jobs=made, budget_changes=(change(100, a=3),)
    )
    run = simulate(scenario, "static-partitions")
    assert run.stretches.start_s.tolist() == [20, 100]
    assert run.check() == []
    later = changed(run.raw, start_s=[100, 110], end_s=[110, 120], protected_until_s=[100, 110])
    broken = run_of(run.problem, replace(later, end_s=120), "static-partitions").check()
    assert broken == ["Job 'a3' starts at 100 s, before one that came earlier."]


# ----------------------------------------------------------------------------- laws


def rows_of(scenario: FairshareScenario, policy: str) -> list[tuple[Any, ...]]:
    return [astuple(stretch) for stretch in engine(scenario, policy).stretches]


SOME = settings(deadline=None, max_examples=40, suppress_health_check=list(HealthCheck))


@given(scenarios(), st.sampled_from(SHARING), st.sampled_from([1.0, 2.0, 0.5]), st.data())
@SOME
def test_the_same_shares_change_nothing(
    scenario: FairshareScenario, policy: str, times: float, data: st.DataObject
) -> None:
    """A change to the weights that hold, or to all of them so many times as large, is none: not even an event."""
    still = replace(scenario, budget_changes=())
    present = weights_of(still.budget)
    instants = data.draw(st.lists(st.integers(0, 40), unique=True, min_size=1, max_size=4))
    new = tuple((path, weight * times) for path, weight in sorted(present.items()))
    same = replace(still, budget_changes=tuple(BudgetChange(at, new) for at in sorted(instants)))
    assert tidy(engine(same, policy)) == tidy(engine(still, policy))


@given(scenarios(), st.sampled_from(SHARING))
@SOME
def test_a_change_at_the_start_is_another_budget(scenario: FairshareScenario, policy: str) -> None:
    assume(scenario.budget_changes)
    first = scenario.budget_changes[0]
    at_once = replace(scenario, budget_changes=(replace(first, at_s=0),))
    other = replace(scenario, budget=reweighted(scenario.budget, dict(first.weights)), budget_changes=())
    assert tidy(engine(at_once, policy)) == tidy(engine(other, policy))


@given(scenarios(), st.sampled_from(SHARING))
@SOME
def test_nothing_happens_before_its_cause(scenario: FairshareScenario, policy: str) -> None:
    """Up to the first change everything starts as if there were none (but for what static parts set aside for good)."""
    assume(scenario.budget_changes)
    still = replace(scenario, budget_changes=())
    if policy == "static-partitions":
        assume(engine(still, policy).set_aside == engine(scenario, policy).set_aside)
    at = scenario.budget_changes[0].at_s
    both = (rows_of(one, policy) for one in (scenario, still))
    before, without = ([(row[0], row[2], row[7]) for row in rows if row[2] < at] for rows in both)
    assert Counter(map(str, before)) == Counter(map(str, without))


@given(scenarios(), st.sampled_from(sorted({*POLICIES} - {*SHARING})))
@SOME
def test_other_policies_ignore_it(scenario: FairshareScenario, policy: str) -> None:
    still = replace(scenario, budget_changes=())
    assert rows_of(scenario, policy) == rows_of(still, policy)


@given(scenarios(), st.sampled_from(SHARING))
@SOME
def test_what_is_owed_is_what_seconds_add_up_to(scenario: FairshareScenario, policy: str) -> None:
    """The entitlement of an hour is the mean of that of its seconds."""
    run = simulate(scenario, policy)
    epochs, problem = run.problem.epochs, run.problem
    for k, leaf in enumerate(problem.tree.leaves.tolist()):
        owed = Fraction(0)
        for h, (start, length) in enumerate(
            zip(run.hours.start_s.tolist(), run.hours.length_s.tolist(), strict=True)
        ):
            held = sum((epochs.at(t).exact[leaf] for t in range(start, start + length)), Fraction(0))
            owed += min(problem.gpus * held, int(run.hours.wanted[k, h]))
        assert run.owed.owed[k] == owed
    assert run.check() == []


def test_a_pause_to_make_tables_longer_keeps_the_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables that begin short are made longer again and again: between, before and after the changes."""
    scenario = crowd(change(2 * HOUR, a=90, b=10), change(4 * HOUR, a=1, b=3), change(6 * HOUR, b=1))
    usual = {policy: rows_of(scenario, policy) for policy in SHARING}
    pauses = []

    class Short(engines.Tables):
        def __init__(self, *arguments: Any) -> None:
            super().__init__(*arguments)
            self.log, self.heap = self.log[:1], self.heap[:1]
            self.points, self.shields = self.points[: self.n_lines], self.shields[:1]

        def grow(self) -> None:
            pauses.append(int(self.state[0]))
            for name in ("heap", "log", "places", "shields", "points"):
                table = getattr(self, name)
                setattr(self, name, np.concatenate((table, np.full((12, table.shape[1]), -1, np.int64))))

    monkeypatch.setattr(engines, "Tables", Short)
    for policy in SHARING:
        pauses.clear()
        assert rows_of(scenario, policy) == usual[policy]
        assert len({time // HOUR for time in pauses}) >= 5
        assert min(pauses) < 2 * HOUR < 6 * HOUR <= max(pauses)


def test_changes_after_the_last_work_prolong_nothing() -> None:
    scenario = crowd(change(1000 * HOUR, a=9), hours=2, until=0)
    scenario = replace(scenario, until_s=None)
    run = simulate(scenario)
    assert run.end_s == 4 * HOUR
    assert tidy(engine(scenario, "fair-share")) == tidy(reference(scenario, "fair-share"))
    assert change_columns(run, clock.clock_of(run))["x"] == []
    assert run.teams.share.tolist() == [0.5, 0.5]


# ----------------------------------------------------------------------------- the trees over time


def test_trees_over_time() -> None:
    """a 60 (p 70, q 30), b 40. 10 s: p 40 of 70, a 1 : b 3. 20 s: a 2 and b 6, no change. 30 s: b 0."""
    budget = (BudgetNode("b", 40), BudgetNode("a", 60, (BudgetNode("p", 70), BudgetNode("q", 30))))
    changes = (
        BudgetChange(30, (("b", 0.0),)),
        BudgetChange(10, (("a", 1.0), ("a/p", 40.0), ("b", 3.0))),
        BudgetChange(20, (("a", 2.0), ("b", 6.0))),
    )
    epochs = epochs_of(budget, changes)
    assert epochs.start_s.tolist() == [0, 10, 30]
    assert [tree.path for tree in epochs.trees] == [("", "a", "a/p", "a/q", "b")] * 3
    exact = [[str(share) for share in tree.exact[1:]] for tree in epochs.trees]
    assert exact == [["3/5", "21/50", "9/50", "2/5"], ["1/4", "1/7", "3/28", "3/4"], ["1", "4/7", "3/7", "0"]]
    assert epochs.index(np.array([0, 9, 10, 29, 30, 99])).tolist() == [0, 0, 1, 1, 2, 2]
    assert [epochs.at(t).exact[4] for t in (9, 10)] == [Fraction(2, 5), Fraction(3, 4)]
    assert epochs.seconds(5, 35) == {0: 5, 1: 20, 2: 5}
    assert epochs.seconds(12, 15) == {1: 3}
    assert epochs.seconds(10, 30) == {1: 20}
    assert epochs.seconds(40, 41) == {2: 1}
    # b: 10 s of .4, 20 s of .75 and 10 s of 0
    assert epochs.mean_shares(40)[4] == pytest.approx((4 + 15) / 40)
    assert epochs.mean_shares(10).tolist() == epochs.trees[0].share.tolist()
    assert epochs.mean_shares(0).tolist() == epochs.trees[0].share.tolist()
    assert epochs.shares(np.array([0, 10, 30]))[4].tolist() == [0.4, 0.75, 0.0]


def test_no_limit_and_far_instants_do_not_wrap() -> None:
    made = jobs(
        ["x", "y"], [0, 0], [1, 1], [10**9, 10], team=["a", "b"], limit_s=[NEVER, 10], minimum_s=[0, 5]
    )
    scenario = FairshareScenario(
        "far", (Pool(1, 1),), HALVES, jobs=made, budget_changes=(change(3 * 10**8, a=1e9, b=0.001),)
    )
    for policy in SHARING:
        assert simulate(scenario, policy).check() == []
