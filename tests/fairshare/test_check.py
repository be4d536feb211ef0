"""A legal run has no violations, and every mutation of one is found."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from fairshare.by_hand import (
    FINISHED,
    PREEMPTED,
    RUNNING,
    changed,
    problem_of,
    raw_of,
    two_teams,
)
from gpuplan.fairshare.check import SHOWN, check, peaks, sentences
from gpuplan.fairshare.jobs import jobs
from gpuplan.fairshare.model import NEVER, Drain, Pool
from gpuplan.fairshare.problem import Problem
from gpuplan.fairshare.raw import SHUT_DOWN, RawRun


def put(row: int, value: int) -> Callable[[Any], Any]:
    """A change of one row of a column."""

    def changes(column: Any) -> Any:
        column[row] = value
        return column

    return changes


def test_the_run_by_hand_is_legal() -> None:
    assert check(two_teams()[0], "fair-share", two_teams()[1]) == []


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ({"start_s": put(2, 299)}, "'quick' from 299 to 500 s starts before its submission at 300 s"),
        ({"end_s": put(3, 309)}, "'next' from 310 to 309 s ends before it starts"),
        ({"end_s": put(5, 1001)}, "'fill' from 600 to 1001 s ends after the run, which ends at 1000 s"),
        ({"start_s": put(1, 0)}, "'fill' from 0 to 310 s starts before its submission"),
        ({"place_gpus": put(3, 1)}, "'next' from 310 to 600 s holds 1 GPUs and wants 2"),
        ({"place_node": put(2, 1)}, "Node 1 has 8 GPUs in use at 300 s; it has 4"),
        (
            {"start_s": put(4, 300)},
            "'long' from 300 to 810 s starts again at the instant of its interruption",
        ),
        ({"end_s": put(0, 501)}, "'long' from 500 to 810 s starts while an earlier stretch of it still runs"),
        ({"overhead_s": put(4, 0)}, "'long' from 500 to 810 s pays 0 s for its start; it costs 10 s"),
        ({"overhead_s": put(0, 10)}, "'long' from 0 to 300 s pays 10 s for its start; it costs 0 s"),
        ({"kept_s": put(1, 260)}, "'fill' from 50 to 310 s keeps 260 s of its work, where 240 s are kept"),
        ({"kept_s": put(5, 389)}, "'fill' from 600 to 1000 s keeps 389 s of its work, where 390 s are kept"),
        ({"end_s": put(4, 800)}, "'long' from 500 to 800 s finishes with 590 s of work done, of 600 s"),
        ({"outcome": put(4, RUNNING)}, "'long' from 500 to 810 s is said to run still"),
        (
            {"outcome": put(5, FINISHED)},
            "'fill' from 600 to 1000 s finishes with 630 s of work done, of 1000 s",
        ),
        (
            {"outcome": put(2, PREEMPTED)},
            "'quick' from 300 to 500 s is preempted, and nothing that started then",
        ),
        ({"outcome": put(1, SHUT_DOWN)}, "'fill' from 50 to 310 s is shut down, but no host of it"),
        ({"protected_until_s": put(2, 350)}, "'quick' from 300 to 500 s is protected until 350 s"),
        ({"protected_until_s": put(2, 300)}, "'quick' from 300 to 500 s is charged and not protected"),
        ({"allocated": put(1, True)}, "'fill' from 50 to 310 s is charged to its budget"),
        ({"allocated": put(2, False)}, "'quick' from 300 to 500 s is not charged to its budget"),
        ({"job": put(0, 2)}, "'quick' from 300 to 500 s starts again at the instant"),
        ({"job": put(0, 7)}, "A stretch is of no job."),
        ({"place_node": put(0, 2)}, "A place is of no stretch, or on no node."),
        ({"start_s": put(3, 305)}, "'fill' from 50 to 310 s is preempted, and nothing that started then"),
    ],
)
def test_every_mutation_of_it_is_found(columns: dict[str, Any], said: str) -> None:
    problem, raw = two_teams()
    found = check(problem, "fair-share", changed(raw, **columns))
    assert any(said in sentence for sentence in found), found


def test_work_beyond_the_end_of_a_job_is_found() -> None:
    """A job of 100 s that is said to have been preempted after 150 s."""
    made = jobs(["x", "y"], [0, 0], [8, 8], [100, 100], team=["a", "b"], minimum_s=0)
    problem = problem_of(made, until_s=300)
    rows = [(0, 0, 150, PREEMPTED, {0: 4, 1: 4}, 0, 120), (1, 150, 250, FINISHED, {0: 4, 1: 4})]
    found = check(problem, "priority-tiers", raw_of(problem, rows, 300))
    assert found == ["Job 'x' from 0 to 150 s has done 150 s of work, more than its 100 s."]


def test_preemption_inside_the_minimum_is_found() -> None:
    """`quick` starts at 90 s on the GPUs of `long`, which is protected until 100 s."""
    problem, raw = two_teams()
    problem = replace(problem, jobs=problem.jobs.changed(submit_s=np.array([0, 50, 90, 305, 700])))
    moved = changed(raw, end_s=put(0, 90), kept_s=put(0, 60), start_s=put(2, 90))
    found = check(problem, "fair-share", moved)
    assert any("'long' from 0 to 90 s is preempted inside its minimum run time" in s for s in found)


# --------------------------------------------------------------------------------- claims


def claims(hysteresis: float, **columns: Any) -> tuple[Problem, RawRun]:
    """8 GPUs in one pool, W 7,200 s, claims of 28,800: a has used 8 x 1,000 when b asks for 8: ratio .278 against 0."""
    made = jobs(
        ["x", "y"], [0, 0], [8, 8], [2000, 500], team=["a", "b"], minimum_s=[100, 100], priority=[0, 0]
    )
    made = made.changed(**columns)
    problem = replace(problem_of(made, (Pool(1, 8),)), hysteresis=hysteresis)
    rows = [
        (0, 0, 1000, PREEMPTED, {0: 8}, 0, 960, True, 100),
        (1, 1000, 1500, FINISHED, {0: 8}, 0, 500, True, 1100),
        (0, 1500, 2550, FINISHED, {0: 8}, 10, 1040, True, 1600),
    ]
    return problem, raw_of(problem, rows, 2550)


def test_a_claim_beyond_the_hysteresis() -> None:
    problem, raw = claims(0.25)
    assert check(problem, "fair-share", raw) == []
    problem, raw = claims(0.28)
    assert check(problem, "fair-share", raw) == [
        "Job 'x' from 0 to 1000 s is preempted, and nothing that started then in its place had the better claim."
    ]


def test_a_claim_must_be_made_by_what_starts_there() -> None:
    problem, raw = claims(0.25)
    assert check(problem, "fair-share", changed(raw, start_s=put(1, 1001)))[-1].startswith(
        "Job 'x' from 0 to 1000 s"
    )


def test_claims_inside_a_leaf() -> None:
    """Earlier by priority and with a shorter minimum: a claim; with the same minimum or later: none."""
    both = np.array(["a", "a"], object)
    for priority, minimum, legal in (
        ([0, 1], [100, 50], True),
        ([0, 1], [100, 100], False),
        ([0, 0], [100, 50], False),
    ):
        problem, raw = claims(0.25, team=both, priority=np.array(priority), minimum_s=np.array(minimum))
        raw = changed(raw, protected_until_s=put(1, 1000 + minimum[1]))
        assert (check(problem, "fair-share", raw) == []) == legal


def test_ratios_count_what_started_before_at_the_same_instant() -> None:
    """b starts 4 + 4 GPUs with 1,500 s of protection each, a has used 8 x 1,000 = .278.

    First b has 0 and a claim (h = .15); then 4 x 1,500 / 28,800 = .208: .208 + .15 > .278, no claim.
    """
    made = jobs(
        ["x1", "x2", "y1", "y2"], [0, 0, 1000, 1000], [4] * 4, [1500] * 4, team=["a", "a", "b", "b"],
        minimum_s=[100, 100, 1500, 1500],
    )  # fmt: skip
    problem = replace(problem_of(made, (Pool(2, 4),)), hysteresis=0.15)
    rows = [
        (0, 0, 1000, PREEMPTED, {0: 4}, 0, 960, True, 100),
        (1, 0, 1000, PREEMPTED, {1: 4}, 0, 960, True, 100),
        (2, 1000, 2500, FINISHED, {0: 4}, 0, 1500, True, 2500),
        (3, 1000, 2500, FINISHED, {1: 4}, 0, 1500, True, 2500),
        (0, 2500, 3050, FINISHED, {0: 4}, 10, 540, True, 2600),
        (1, 2500, 3050, FINISHED, {1: 4}, 10, 540, True, 2600),
    ]
    found = check(problem, "fair-share", raw_of(problem, rows, 3050))
    assert len(found) == 1
    assert found[0].startswith("Job 'x2' from 0 to 1000 s is preempted")


# --------------------------------------------------------------------------------- places, drains, lines


def gang(places: dict[int, int], gpus: int = 10, **columns: Any) -> list[str]:
    """One job on two nodes of 4 T4 (0, 1) and three of 4 A100 (2-4)."""
    made = jobs(["x"], [0], [gpus], [100], team="a", minimum_s=50, **columns)
    problem = problem_of(made, (Pool(2, 4, "T4"), Pool(3, 4, "A100")))
    return check(problem, "fifo", raw_of(problem, [(0, 0, 100, FINISHED, places)], 100))


def test_gangs() -> None:
    assert gang({2: 4, 3: 4, 4: 2}) == []
    assert gang({2: 2, 3: 4, 4: 4}) == []
    assert gang({2: 4, 3: 4}, 8) == []
    assert gang({4: 3}, 3) == []
    assert "10 GPUs on 3 nodes of 4, 1 of them whole" in gang({2: 4, 3: 3, 4: 3})[0]
    assert "3 GPUs on 2 nodes of 4" in gang({2: 2, 3: 1}, 3)[0]
    assert "spread over two pools" in gang({1: 4, 2: 4}, 8)[0]
    assert "holds 12 GPUs and wants 10" in gang({2: 4, 3: 4, 4: 4})[0]
    assert any("holds no GPU" in sentence for sentence in gang({2: 4, 3: 0}, 4))


def test_types_and_one_node() -> None:
    assert gang({0: 4}, 4, gpu="T4") == gang({0: 4}, 4, gpu="A100|T4") == []
    assert "runs on 'T4' and wants 'A100'" in gang({0: 4}, 4, gpu="A100")[0]
    # a job that cannot run at all is set aside; here it runs all the same
    assert any("refuses to be spread" in sentence for sentence in gang({2: 4, 3: 4}, 8, one_node=True))


def drained(rows: list[tuple[Any, ...]], repairs: tuple[tuple[int, int], ...]) -> list[str]:
    """Two nodes of 4; node 0 drains from 100 s on and its repair takes 50 s."""
    made = jobs(["x", "y"], [0, 0], [4, 4], [150, 60], team="a", minimum_s=50)
    problem = problem_of(made, drains=(Drain(0, 100, 50),))
    return check(problem, "fifo", raw_of(problem, rows, max(row[2] for row in rows), repairs=repairs))


def test_drains() -> None:
    x = (0, 0, 150, FINISHED, {0: 4})
    assert drained([x, (1, 0, 60, FINISHED, {1: 4})], ((150, NEVER),)) == []
    assert drained([x, (1, 200, 260, FINISHED, {0: 4})], ((150, 200),)) == []
    found = drained([x, (1, 199, 259, FINISHED, {0: 4})], ((150, 200),))
    assert "'y' from 199 to 259 s starts on node 0, which drains since 100 s" in found[0]
    found = drained([x, (1, 0, 60, FINISHED, {1: 4})], ((140, NEVER),))
    assert "'x' from 0 to 150 s is on node 0, whose repair began at 140 s" in found[0]
    found = drained([x, (1, 200, 260, FINISHED, {1: 4})], ((150, 190),))
    assert "The repair of node 0 takes 40 s instead of 50 s." in found
    found = drained([(0, 0, 150, FINISHED, {1: 4}), (1, 0, 60, FINISHED, {0: 4})], ((90, 140),))
    assert "The repair of node 0 begins at 90 s, before its drain at 100 s." in found


def test_a_shut_down_needs_a_host_to_be_repaired() -> None:
    rows = [
        (0, 0, 120, SHUT_DOWN, {0: 4}, 0, 120),
        (0, 121, 161, FINISHED, {1: 4}, 10, 30),
        (1, 0, 60, FINISHED, {1: 4}),
    ]
    assert drained(rows, ((120, NEVER),)) == []
    rows[0] = (0, 0, 120, SHUT_DOWN, {1: 4}, 0, 120)
    rows[2] = (1, 0, 60, FINISHED, {0: 4})
    assert "'x' from 0 to 120 s is shut down, but no host" in drained(rows, ((120, NEVER),))[0]


def line(policy: str, starts: tuple[int, int, int]) -> list[str]:
    """One node of 8: x (a), y (b) and z (a) of 4 GPUs and 10 s, submitted in this order at 0."""
    made = jobs(["x", "y", "z"], [0] * 3, [4] * 3, [10] * 3, team=["a", "b", "a"])
    problem = problem_of(made, (Pool(1, 8),))
    rows = [(j, start, start + 10, FINISHED, {0: 4}) for j, start in enumerate(starts)]
    return check(problem, policy, raw_of(problem, rows, max(starts) + 10))


def test_strict_lines() -> None:
    assert line("fifo", (0, 0, 10)) == line("easy", (0, 10, 0)) == []
    assert line("fifo", (0, 10, 0)) == ["Job 'z' starts at 0 s, before one that came earlier."]
    assert line("fifo-per-type", (10, 0, 20)) == ["Job 'y' starts at 0 s, before one that came earlier."]
    assert line("static-partitions", (0, 30, 10)) == []
    assert line("static-partitions", (10, 30, 0)) == ["Job 'z' starts at 0 s, before one that came earlier."]


def test_partitions() -> None:
    """Each team's part is 4 GPUs of 8: x and z of team a at once are 8."""
    assert (
        line("static-partitions", (0, 0, 0))
        == [
            "Team 'a' has 8 GPUs in use at 0 s; its part is 4.",
            "Node 0 has 12 GPUs in use at 0 s; it has 8.",
        ][::-1]
    )
    assert line("static-partitions", (0, 10, 5))[0] == "Team 'a' has 8 GPUs in use at 5 s; its part is 4."


def test_who_never_preempts() -> None:
    problem, raw = claims(0.25)
    assert "Job 'x' from 0 to 1000 s is preempted, which easy never does." in check(problem, "easy", raw)


def test_what_is_left_without_a_horizon() -> None:
    made = jobs(["x", "y"], [0, 0], [4, 4], [10, 10], team="a")
    problem = problem_of(made)
    raw = raw_of(problem, [(0, 0, 10, FINISHED, {0: 4})], 10)
    assert check(problem, "fifo", raw) == ["Job 'y' has not finished, and the run is over."]
    stopped = replace(raw, stopped="Stopped here.")
    assert check(problem, "fifo", stopped) == [
        "The run was stopped, and only 0 interruptions in a row kept nothing."
    ]
    assert check(problem, "fifo", replace(raw, set_aside={1: "a reason"})) == []
    found = check(problem, "fifo", replace(raw, set_aside={0: "a reason"}))
    assert "Job 'x' from 0 to 10 s runs and was set aside." in found


def test_a_horizon_is_the_end() -> None:
    made = jobs(["x"], [0], [4], [10], team="a")
    problem = problem_of(made, until_s=5)
    raw = raw_of(problem, [(0, 0, 10, FINISHED, {0: 4})], 10)
    assert check(problem, "fifo", raw) == ["The run ends at 10 s, after its horizon of 5 s."]


def test_nothing_to_check() -> None:
    problem = problem_of(jobs([], [], [], []))
    for policy in ("fifo", "fifo-per-type", "static-partitions", "fair-share"):
        assert check(problem, policy, raw_of(problem, [], 0)) == []


def test_the_first_violations_are_spelled_out_and_the_others_counted() -> None:
    assert sentences(range(3), str) == ["0", "1", "2"]
    assert sentences(range(SHOWN + 2), str)[-1] == "... and 2 more like the last one."


def test_peaks_let_ends_go_first() -> None:
    """4 until 10 and 4 from 10 on are 4 at once; with one more from 9 it is 5, at 9."""
    zero = np.zeros(3, np.int64)
    high, when = peaks(zero, np.array([0, 10, 9]), np.array([10, 20, 20]), np.array([4, 4, 1]), 2)
    assert high.tolist() == [5, 0]
    assert when.tolist() == [9, 0]
