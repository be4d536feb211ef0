"""The slow simulator against answers worked out by hand; the engine gives the same ones."""

from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from fairshare.reference import FINISHED, PREEMPTED, RUNNING, SHUT_DOWN, Outcome, reference
from gpuplan.fairshare.jobs import jobs
from gpuplan.fairshare.model import (
    Behaviour,
    BudgetNode,
    Contract,
    Drain,
    FairshareScenario,
    Pool,
)

MINUTE = 60
EVERYONE = (BudgetNode("everyone"),)
AB = (BudgetNode("a"), BudgetNode("b"))

Simulate = Callable[[FairshareScenario, str], Outcome]


@pytest.fixture(params=["reference", "engine"])
def simulate(request: pytest.FixtureRequest) -> Simulate:
    if request.param == "reference":
        return reference
    from fairshare.engine_answers import engine

    return engine


def starts(outcome: Outcome, unit: int = 1) -> dict[str, Fraction]:
    """First start of every job."""
    first: dict[str, Fraction] = {}
    for s in outcome.stretches:
        first.setdefault(s.name, Fraction(s.start, unit))
    return first


def told(outcome: Outcome) -> list[tuple[str, int, int, int]]:
    """(job, start, end, outcome) of every stretch, by start."""
    rows = [(s.name, s.start, s.end, s.outcome) for s in outcome.stretches]
    return sorted(rows, key=lambda row: (row[1], row[0], row[2]))


def read(shared: Path, case: str) -> tuple[Any, Any]:
    import json

    folder = shared / "cases" / case
    text = (folder / "case.md").read_text(encoding="utf-8")
    given = YAML(typ="safe").load((folder / "input.yaml").read_text(encoding="utf-8"))
    return given, json.loads(text.split("```json")[1].split("```")[0])


# ---------------------------------------------------------------- the cases


@pytest.mark.parametrize(
    ("policy", "key"),
    [
        ("fifo", "strict"),
        ("fifo-skip", "skip_whoever_fits"),
        ("easy", "backfill_with_reservation"),
        # Nobody behind H holds a reservation that S4 could hurt more than H's: both kinds agree here.
        ("conservative", "backfill_with_reservation"),
    ],
)
def test_backfill_large_job(simulate: Simulate, shared: Path, policy: str, key: str) -> None:
    given, expected = read(shared, "backfill-large-job")
    rows = given["jobs"]
    table = jobs(
        ["R"] + [row["id"] for row in rows],
        [0] + [row["submit"] * MINUTE for row in rows],
        [4] + [row["gpus"] for row in rows],
        [240 * MINUTE] + [row["run"] * MINUTE for row in rows],
        limit_s=[240 * MINUTE] + [row["limit"] * MINUTE for row in rows],
    )
    scenario = FairshareScenario("case", (Pool(1, given["pool"]["gpus"]),), EVERYONE, jobs=table)
    outcome = simulate(scenario, policy)
    found = starts(outcome, MINUTE)
    assert found.pop("R") == 0
    waits = [found[row["id"]] - row["submit"] for row in rows]
    assert found.pop("H") == expected[key]["H_start_min"]
    assert found == expected[key]["starts_min"]
    assert outcome.end == expected[key]["makespan_min"] * MINUTE
    assert float(sum(waits) / len(waits)) == pytest.approx(expected[key]["mean_wait_min"], abs=1e-6)


@pytest.mark.parametrize(("policy", "key"), [("fifo", "strict"), ("fifo-per-type", "per_type")])
def test_fifo_gpu_type_block(simulate: Simulate, shared: Path, policy: str, key: str) -> None:
    given, expected = read(shared, "fifo-gpu-type-block")
    nodes, rows = given["nodes"], given["jobs"]
    table = jobs(
        [row["id"] for row in rows],
        [row["submit"] * MINUTE for row in rows],
        [row["gpus"] for row in rows],
        [row["run"] * MINUTE for row in rows],
        gpu=[row["type"] for row in rows],
    )
    scenario = FairshareScenario(
        "case",
        tuple(Pool(1, node["gpus"], node["type"]) for node in nodes),
        EVERYONE,
        drains=(Drain(0, 0, nodes[0]["busy_until_min"] * MINUTE),),
        jobs=table,
    )
    outcome = simulate(scenario, policy)
    found = starts(outcome, MINUTE)
    assert found == expected[key]["start_min"]
    waits = [found[row["id"]] - row["submit"] for row in rows]
    assert sum(waits) / len(waits) == expected[key]["mean_wait_min"]
    if policy == "fifo":
        busy = sum(
            s.nodes.get(1, 0) * (min(s.end, 300 * MINUTE) - min(s.start, 300 * MINUTE))
            for s in outcome.stretches
        )
        idle = (4 * 300 * MINUTE - busy) / 3600
        assert idle == expected["idle_t4_gpu_hours_until_300_under_strict"]


@pytest.mark.parametrize("policy", ["fifo", "easy", "conservative", "static-partitions"])
def test_sim_same_instant(simulate: Simulate, shared: Path, policy: str) -> None:
    _, expected = read(shared, "sim-same-instant")
    lines = (shared / "cases" / "sim-same-instant" / "input.csv").read_text(encoding="utf-8").split()
    rows = [dict(zip(lines[0].split(","), line.split(","), strict=True)) for line in lines[1:]]
    outcomes = []
    for some in (rows, rows[::-1], rows[2:] + rows[:2]):
        table = jobs(
            [row["id"] for row in some],
            [int(row["submit_s"]) for row in some],
            [int(row["gpus"]) for row in some],
            [int(row["run_s"]) for row in some],
            limit_s=[int(row["run_s"]) for row in some],
        )
        scenario = FairshareScenario("case", (Pool(1, 4),), EVERYONE, jobs=table)
        outcomes.append(simulate(scenario, policy))
    outcome = outcomes[0]
    assert outcomes[1] == outcome
    assert outcomes[2] == outcome
    assert starts(outcome) == expected["start_s"]
    assert {s.name: s.end for s in outcome.stretches} == expected["end_s"]
    instants = {s.start for s in outcome.stretches}
    busy = [
        sum(4 if s.name != "12" else 2 for s in outcome.stretches if s.start <= t < s.end) for t in instants
    ]
    assert max(busy) == expected["peak_busy"]
    gpu_seconds = sum(sum(s.nodes.values()) * (s.end - s.start) for s in outcome.stretches)
    assert gpu_seconds == expected["gpu_seconds"]
    assert 100 * gpu_seconds / (4 * outcome.end) == expected["utilisation_percent"]


def test_impossible_request(simulate: Simulate, shared: Path) -> None:
    given, expected = read(shared, "impossible-request")
    rows = given["jobs"]
    table = jobs(
        [row["id"] for row in rows],
        [0] * len(rows),
        [row["gpus"] for row in rows],
        [60 * MINUTE] * len(rows),
        gpu=[row["type"] for row in rows],
        one_node=[not row["several_nodes"] for row in rows],
    )
    scenario = FairshareScenario(
        "case",
        (Pool(2, 4, "A100"), Pool(1, 8, "T4")),
        EVERYONE,
        drains=(Drain(2, 0, given["nodes"][2]["available_from_min"] * MINUTE),),
        jobs=table,
    )
    outcome = simulate(scenario, "fifo")
    assert {str(table.name[k]) for k in outcome.set_aside} == set(expected["rejected"])
    assert starts(outcome, MINUTE) == expected["start_min"]
    assert outcome.end == expected["end_of_simulation_min"] * MINUTE


# ---------------------------------------------------------------- fair share by hand

#: No cap worth the name, no restart cost, a checkpoint every second.
PLAIN = Contract(max_min_runtime_s=100, checkpoint_every_s=1, restart_cost_s=0)


def test_protected_time_ahead_counts_so_two_teams_share_an_empty_cluster(simulate: Simulate) -> None:
    # 2 GPUs, a and b have two jobs of 1 GPU each, all at 0. a1 starts (ties: a first); its 10 protected seconds
    # put a's ratio above b's 0, so b1 follows. At 20 all ratios are equal again: a2, then b2.
    table = jobs(
        ["a1", "a2", "b1", "b2"],
        [0] * 4,
        [1] * 4,
        [20] * 4,
        team=["a", "a", "b", "b"],
        limit_s=20,
        minimum_s=10,
    )
    outcome = simulate(FairshareScenario("hand", (Pool(1, 2),), AB, 1000, PLAIN, jobs=table), "fair-share")
    assert starts(outcome) == {"a1": 0, "b1": 0, "a2": 20, "b2": 20}


def test_preemption_waits_for_the_minimum_and_for_the_hysteresis(simulate: Simulate) -> None:
    # One GPU, W = 100 s, h = 0.125. a runs from 0 for 60 s, minimum 5. b (minimum 8, 10 s of work) comes at 2.
    # A share is half of 1 x 100 GPU-s: r(a) = 5/50 at 5, not above 0 + 0.125. c comes at 7 only to make an instant:
    # r(a) = 7/50 = 0.14 > 0.125: b evicts a there. a kept 6 of 7 s (checkpoints every 3), loses 1; b runs 7-17,
    # then a from 17 with 2 s of restart: 17 + 2 + 54 = 73. c (unallocated, 1 s) takes what is left at 73.
    contract = Contract(max_min_runtime_s=100, checkpoint_every_s=3, restart_cost_s=2, hysteresis=0.125)
    table = jobs(
        ["a", "b", "c"],
        [0, 2, 7],
        [1, 1, 1],
        [60, 10, 1],
        team=["a", "b", "b"],
        limit_s=[60, 10, 1],
        minimum_s=[5, 8, 0],
    )
    outcome = simulate(FairshareScenario("hand", (Pool(1, 1),), AB, 100, contract, jobs=table), "fair-share")
    assert told(outcome) == [
        ("a", 0, 7, PREEMPTED),
        ("b", 7, 17, FINISHED),
        ("a", 17, 73, FINISHED),
        ("c", 73, 74, FINISHED),
    ]
    again = next(s for s in outcome.stretches if s.start == 17)
    assert (outcome.stretches[0].kept, again.overhead, again.kept, again.protected_until) == (6, 2, 54, 22)


def test_work_that_cannot_resume_starts_over(simulate: Simulate) -> None:
    # As above without checkpoints: a runs 7 s for nothing and needs 2 + 60 s from 17 on.
    contract = Contract(max_min_runtime_s=100, checkpoint_every_s=3, restart_cost_s=2, hysteresis=0.125)
    table = jobs(
        ["a", "b", "c"],
        [0, 2, 7],
        [1, 1, 1],
        [60, 10, 1],
        team=["a", "b", "b"],
        limit_s=[60, 10, 1],
        minimum_s=[5, 8, 0],
        resumable=False,
    )
    outcome = simulate(FairshareScenario("hand", (Pool(1, 1),), AB, 100, contract, jobs=table), "fair-share")
    assert told(outcome)[2] == ("a", 17, 79, FINISHED)


def test_unallocated_work_gives_way_at_once_and_is_charged_to_nobody(simulate: Simulate) -> None:
    # u1 and u2 (minimum 0) fill both GPUs of two nodes from 0. At 4 the allocated a1 comes: u1 has lost nothing
    # (checkpoints every second) as u2, so the lower node gives way. u1 goes on at 6, when a1 ends: 6 + 6 = 12.
    table = jobs(
        ["u1", "u2", "z1"],
        [0, 0, 4],
        [1, 1, 1],
        [10, 10, 2],
        team=["a", "b", "a"],
        limit_s=10,
        minimum_s=[0, 0, 1],
    )
    outcome = simulate(FairshareScenario("hand", (Pool(2, 1),), AB, 100, PLAIN, jobs=table), "fair-share")
    assert told(outcome) == [
        ("u1", 0, 4, PREEMPTED),
        ("u2", 0, 10, FINISHED),
        ("z1", 4, 6, FINISHED),
        ("u1", 6, 12, FINISHED),
    ]
    assert [s.allocated for s in sorted(outcome.stretches, key=lambda s: s.start)] == [
        False,
        False,
        True,
        False,
    ]


def test_a_shorter_minimum_goes_before_a_longer_one_of_the_same_team(simulate: Simulate) -> None:
    # One GPU, one team: `long` (minimum 6) runs at 0. `short` (minimum 2) comes at 1 with a higher priority, so it
    # is earlier in the leaf's order, and starts at 6 when long's minimum is over; long goes on at 9 with 24 s left.
    table = jobs(
        ["long", "short"], [0, 1], [1, 1], [30, 3], limit_s=[30, 3], minimum_s=[6, 2], priority=[0, 1]
    )
    outcome = simulate(
        FairshareScenario("hand", (Pool(1, 1),), EVERYONE, 1000, PLAIN, jobs=table), "fair-share"
    )
    assert told(outcome) == [("long", 0, 6, PREEMPTED), ("short", 6, 9, FINISHED), ("long", 9, 33, FINISHED)]


def test_the_reservation_lets_a_gang_start_behind_protected_small_work(simulate: Simulate) -> None:
    # Two nodes of 2 GPUs. s1 and s2 (2 GPUs each, limits 10 and 20) run from 0; the gang (4 GPUs) waits from 1.
    # It is promised 20. s3 (from 2, higher priority, 2 GPUs, minimum and limit 15) would be protected to 25 if it
    # started at 10: it waits; s4 (from 3, minimum and limit 5) fits in before. Gang 20-30, s3 30-45.
    # Only s2's claimants matter: one team, and s2's minimum is the shortest, so nobody may evict.
    table = jobs(
        ["s1", "s2", "gang", "s3", "s4"],
        [0, 0, 1, 2, 3],
        [2, 2, 4, 2, 2],
        [10, 20, 10, 15, 5],
        limit_s=[10, 20, 10, 15, 5],
        minimum_s=[10, 20, 10, 15, 5],
        priority=[1, 1, 1, 0, 0],
    )
    outcome = simulate(
        FairshareScenario("hand", (Pool(2, 2),), EVERYONE, 1000, PLAIN, jobs=table), "fair-share"
    )
    assert starts(outcome) == {"s1": 0, "s2": 0, "s4": 10, "gang": 20, "s3": 30}


def test_unused_share_stays_with_siblings_first(simulate: Simulate) -> None:
    # x has p and q, y stands beside it, all even. q is away. 4 GPUs, jobs of 1 GPU and 10 s protected: x and y take
    # turns (p1, y1, p2, y2): p gets q's quarter, not y.
    tree = (BudgetNode("x", 1, (BudgetNode("p"), BudgetNode("q"))), BudgetNode("y"))
    table = jobs(
        ["p1", "p2", "p3", "y1", "y2", "y3"],
        [0] * 6,
        [1] * 6,
        [10] * 6,
        team=["x/p"] * 3 + ["y"] * 3,
        limit_s=10,
        minimum_s=10,
    )
    outcome = simulate(FairshareScenario("hand", (Pool(1, 4),), tree, 1000, PLAIN, jobs=table), "fair-share")
    assert starts(outcome) == {"p1": 0, "p2": 0, "y1": 0, "y2": 0, "p3": 10, "y3": 10}


def test_a_drained_node_waits_for_the_last_minimum_then_is_repaired(simulate: Simulate) -> None:
    # `other` fills node 0 until 40; `kept` (minimum 8, from 1) and `loose` (unallocated) share node 1, which drains
    # from 3: loose is evicted at 3, kept at 9; repair 9-13. Both go on at 13: kept 12 s left, loose 18 s left.
    table = jobs(
        ["other", "kept", "loose"],
        [0, 1, 1],
        [2, 1, 1],
        [40, 20, 20],
        limit_s=[40, 20, 20],
        minimum_s=[40, 8, 0],
    )
    scenario = FairshareScenario(
        "hand", (Pool(2, 2),), EVERYONE, 1000, PLAIN, jobs=table, drains=(Drain(1, 3, 4),)
    )
    outcome = simulate(scenario, "fair-share")
    assert told(outcome) == [
        ("other", 0, 40, FINISHED),
        ("kept", 1, 9, PREEMPTED),
        ("loose", 1, 3, PREEMPTED),
        ("kept", 13, 25, FINISHED),
        ("loose", 13, 31, FINISHED),
    ]
    assert outcome.repairs == [(9, 13)]


# ---------------------------------------------------------------- the others by hand


def test_tiers_preempt_lower_priorities_that_have_not_opted_out(simulate: Simulate) -> None:
    # Three nodes of 1 GPU. Declared priority first: mid (1) on node 0, low1 (0, opted out) on 1, low2 (0) on 2.
    # At 2 top (2) may evict mid or low2: each costs 1 GPU and 0 GPU-seconds, so the lower node gives way: mid's.
    table = jobs(
        ["low1", "mid", "low2", "top"],
        [0, 0, 0, 2],
        [1, 1, 1, 1],
        [10, 10, 10, 5],
        limit_s=10,
        priority=[0, 1, 0, 2],
        opted_out=[True, False, False, False],
    )
    scenario = FairshareScenario(
        "hand", (Pool(3, 1),), EVERYONE, 1000, PLAIN, jobs=table, behaviour=Behaviour(opt_out_limit_gpus=1)
    )
    outcome = simulate(scenario, "priority-tiers")
    assert told(outcome) == [
        ("low1", 0, 10, FINISHED),
        ("low2", 0, 10, FINISHED),
        ("mid", 0, 2, PREEMPTED),
        ("top", 2, 7, FINISHED),
        ("mid", 7, 15, FINISHED),
    ]


def test_a_draining_node_is_cleared_by_hand_where_nothing_is_preempted(simulate: Simulate) -> None:
    # The node drains from 2; its job may go on for 6 s (the cap), is shut down at 8 and starts again at 11: 11 + 1 + 4
    # (6 of 10 s were saved: checkpoints every 3).
    contract = Contract(max_min_runtime_s=6, checkpoint_every_s=3, restart_cost_s=1)
    table = jobs(["one"], [0], [1], [10], limit_s=10)
    scenario = FairshareScenario(
        "hand", (Pool(1, 1),), EVERYONE, 1000, contract, jobs=table, drains=(Drain(0, 2, 3),)
    )
    outcome = simulate(scenario, "fifo")
    assert told(outcome) == [("one", 0, 8, SHUT_DOWN), ("one", 11, 16, FINISHED)]
    assert outcome.repairs == [(8, 11)]


def test_quotas_are_whole_gpus_by_largest_remainder_and_lines_are_strict(simulate: Simulate) -> None:
    # 4 GPUs for a, b, c at 1:1:1: 1 1/3 each, so a (first of the tie) gets 2, b and c 1.
    tree = (BudgetNode("a"), BudgetNode("b"), BudgetNode("c"))
    table = jobs(
        ["a1", "a2", "a3", "b1", "b2"],
        [0] * 5,
        [1, 2, 1, 1, 2],
        [5, 5, 5, 5, 5],
        team=["a", "a", "a", "b", "b"],
        limit_s=5,
    )
    scenario = FairshareScenario("hand", (Pool(1, 4),), tree, 1000, PLAIN, jobs=table)
    outcome = simulate(scenario, "static-partitions")
    assert starts(outcome) == {"a1": 0, "b1": 0, "a2": 5, "a3": 10}
    assert outcome.set_aside == {4}


def test_fair_tree_turns_to_the_team_that_used_less(simulate: Simulate) -> None:
    # One GPU. a1 runs 0-100: a has used, b has not, so b1 goes before a2. At 200 both used 100 (no decay before 300):
    # tie, a first. a2 200-400: at 300 everything used is halved (window = 300): a 100, b 50; at 400 a 200, b 50: b2.
    table = jobs(
        ["a1", "a2", "a3", "b1", "b2"],
        [0] * 5,
        [1] * 5,
        [100, 200, 10, 100, 10],
        team=["a", "a", "a", "b", "b"],
        limit_s=200,
    )
    scenario = FairshareScenario("hand", (Pool(1, 1),), AB, 300, PLAIN, jobs=table)
    outcome = simulate(scenario, "fair-tree")
    assert starts(outcome) == {"a1": 0, "b1": 100, "a2": 200, "b2": 400, "a3": 410}


def test_the_horizon_cuts_what_runs(simulate: Simulate) -> None:
    table = jobs(["one", "two"], [0, 1], [1, 1], [10, 10], limit_s=10)
    scenario = FairshareScenario("hand", (Pool(1, 1),), EVERYONE, 1000, PLAIN, jobs=table, until_s=10)
    # At 10 nothing happens any more: not even the end of a job.
    outcome = simulate(scenario, "fifo")
    assert told(outcome) == [("one", 0, 10, RUNNING)]
    assert (outcome.end, outcome.stretches[0].kept) == (10, 10)
