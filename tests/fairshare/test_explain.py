"""Sentences that say what a job waits for, on runs written by hand."""

from typing import Any

import pytest

from fairshare.by_hand import FINISHED, problem_of, raw_of, run_of, two_teams
from gpuplan.fairshare.jobs import jobs
from gpuplan.fairshare.model import DAY, NEVER, BudgetNode, Drain, Pool
from gpuplan.fairshare.run import Run
from gpuplan.fairshare.words import ordinal, span
from gpuplan.inputs.errors import InputError


@pytest.fixture
def run() -> Run:
    return run_of(*two_teams())


def test_each_state(run: Run) -> None:
    assert run.why("late", 100) == "late is not submitted yet; it comes in 10 min."
    assert run.why("long", 40) == "long runs on node 0 for 40 s so far and is protected for 60 s more."
    assert run.why("long", 200) == "long runs on node 0 for 3 min so far."
    assert run.why("fill", 100) == (
        "fill runs on node 1 for 50 s so far, on GPUs that nobody with a budget wanted; any allocated request may "
        "take them."
    )
    assert run.why("quick", 560) == "quick finished 60 s ago, after 3 min in all."


def test_a_waiting_job_with_a_claim(run: Run) -> None:
    """At 900 s late (a) wants two whole nodes; node 0 is free, on node 1 is unallocated work."""
    said = run.why("late", 900)
    assert said == (
        "late (8 GPUs) has waited 3 min. It is first of 1 in a. a has used 0.105 of its share of the window; none of "
        "its siblings waits. It may preempt work past its minimum run time of budgets whose ratio is more than 0.010 "
        "higher; 0 GPUs of 8 run inside their minimum. 4 GPUs are free, the largest free block on one node is 4, it "
        "wants 2 whole nodes of 4, 1 is empty. Declared limits do not tell when it will fit."
    )
    # a has used 1,200 + 580 + 1,240 = 3,020 of 28,800
    assert f"{3020 / 28800:.3f}" == "0.105"


def test_a_preempted_job_without_a_claim(run: Run) -> None:
    assert run.why("fill", 350) == (
        "fill (4 GPUs) was preempted 40 s ago and waits to go on. Its declared minimum is 0, so it has no claim and "
        "takes free GPUs only. It is first of 1 in b. The team runs 0 GPUs of such work; the least of it by share goes "
        "first. 2 GPUs are free, the largest free block on one node is 2, it wants 4 on one node. "
        "Declared limits do not tell when it will fit."
    )


def test_ranks_among_siblings() -> None:
    """Two levels: x (lang/pre) holds all 8 GPUs; y, z (lang/pre) and r (robots) wait."""
    tree = (BudgetNode("lang", 3, (BudgetNode("pre"), BudgetNode("align"))), BudgetNode("robots", 1))
    made = jobs(
        ["x", "y", "z", "r"], [0, 10, 20, 30], [8, 2, 2, 2], [1000, 10, 10, 10],
        team=["lang/pre", "lang/pre", "lang/pre", "robots"], minimum_s=600, priority=[0, 0, 5, 0],
    )  # fmt: skip
    problem = problem_of(made, (Pool(1, 8),), budget=tree, until_s=900)
    run = run_of(problem, raw_of(problem, [(0, 0, 900, 3, {0: 8}, 0, 900, True, 600)], 900))
    said = run.why("y", 100)
    assert "It is 2nd of 2 in lang/pre; first is z (2 GPUs)." in said
    # protected to 600 s: 8 x 600 of .75 x 8 x 7,200 for lang, of .375 x 8 x 7,200 for lang/pre
    assert (
        f"lang has used {600 / (0.75 * 7200):.3f} of its share of the window: 2nd of 2 that wait, "
        "after robots with 0.000." in said
    )
    assert (
        f"lang/pre has used {600 / (0.375 * 7200):.3f} of its share of the window; none of its siblings waits."
        in said
    )
    assert "8 GPUs of 8 run inside their minimum. 0 GPUs are free, it wants 2." in said
    said = run.why("r", 100)
    assert (
        "robots has used 0.000 of its share of the window, the least of 2 that wait "
        f"(next: lang with {600 / 5400:.3f})." in said
    )


def lines(policy: str, **columns: Any) -> Run:
    """8 GPUs: r holds 4 for ever, h wants 8, s wants 2, t (team b) wants 4."""
    made = jobs(
        ["r", "h", "s", "t"], [0, 10, 20, 30], [4, 8, 2, 4], [500, 10, 10, 10], team=["a", "a", "a", "b"],
        limit_s=[500, 300, 200, 100],
    )  # fmt: skip
    problem = problem_of(made, (Pool(1, 8),), until_s=100)
    return run_of(problem, raw_of(problem, [(0, 0, 100, 3, {0: 4})], 100), policy)


def test_lines_of_the_policies() -> None:
    head = "s (2 GPUs) has waited 30 s."
    behind = "first is h (8 GPUs), which does not fit, and nobody may pass it."
    free = "4 GPUs are free, it wants 2. It would fit; it is not its turn."
    assert lines("fifo").why("s", 50) == f"{head} It is 2nd of 3 in line; {behind} {free}"
    assert (
        lines("fifo-per-type").why("s", 50)
        == f"{head} It is 2nd of 3 in line for these GPUs; {behind} {free}"
    )
    assert lines("static-partitions").why("s", 50) == (
        f"{head} It is 2nd of 2 in its team's line; {behind} Its team holds 4 of its 4 GPUs. {free}"
    )
    assert "It is 2nd of 3 by declared limit, the shortest first; first is t (4 GPUs)." in lines("sjf").why(
        "s", 50
    )
    said = lines("easy").why("s", 50)
    assert "It is 2nd of 3 in line; first is h (8 GPUs)." in said
    assert said.endswith("4 GPUs are free, it wants 2. It would fit; it might delay what waits before it.")
    assert lines("fifo").why("h", 50) == (
        "h (8 GPUs) has waited 40 s. It is first of 3 in line. 4 GPUs are free, it wants 8. "
        "By declared limits it fits in 8 min at the latest, if nobody else starts."  # 500 - 50 s
    )


def test_when_declared_limits_make_room() -> None:
    """Nodes of 4: x (4) on 0 to 300 s, y (2) on 1 to 100 s, on 2 z (1) without a limit and v (1) to 200 s."""
    made = jobs(
        ["x", "y", "z", "v", "one", "gang", "all"],
        [0] * 7,
        [4, 2, 1, 1, 4, 6, 12],
        [90] * 7,
        limit_s=[300, 100, -1, 200, -1, -1, -1],
        team="a",
    )
    problem = problem_of(made, (Pool(3, 4),), until_s=80)
    row = problem.jobs.name.tolist().index  # ties of submission are in order of their names
    rows = [(row("x"), 0, 80, 3, {0: 4}), (row("y"), 0, 80, 3, {1: 2})]
    rows += [(row("z"), 0, 80, 3, {2: 1}), (row("v"), 0, 80, 3, {2: 1})]
    run = run_of(problem, raw_of(problem, rows, 80), "fifo")
    # a node of its own: node 1 after 100 s, that is in 50 s
    assert run.why("one", 50).endswith(
        "By declared limits it fits in 50 s at the latest, if nobody else starts."
    )
    # one node whole and 2 GPUs more: node 1 after 100 s, and node 2 has 2 free
    assert run.why("gang", 50).endswith(
        "By declared limits it fits in 50 s at the latest, if nobody else starts."
    )
    # all three nodes whole: z has no limit
    assert run.why("all", 50).endswith("Declared limits do not tell when it will fit.")


def test_a_job_that_goes_on_has_part_of_its_limit_behind_it() -> None:
    """x: limit 1,000 s, 600 s kept; from 700 s on 10 s of restart and at most 400 s more: until 1,110 s."""
    made = jobs(["x", "y"], [0, 0], [8, 8], [1000, 5], limit_s=[1000, 5], team=["a", "b"], minimum_s=10)
    problem = problem_of(made, (Pool(1, 8),), until_s=800)
    rows = [(0, 0, 600, 1, {0: 8}, 0, 600), (0, 700, 800, 3, {0: 8}, 10, 90)]
    said = run_of(problem, raw_of(problem, rows, 800), "fifo").why("y", 790)
    assert "By declared limits it fits in 5 min at the latest" in said  # 1,110 - 790 = 320 s


def test_never_says_why() -> None:
    made = jobs(["j1", "j2"], [0, 0], [16, 8], [10, 10], team="a", gpu="A100", one_node=[False, True])
    problem = problem_of(made, (Pool(2, 4, "A100"), Pool(1, 8, "T4")))
    run = run_of(problem, raw_of(problem, [], 0), "fifo")
    assert run.why("j1", 0) == "j1 never runs: 16 A100 wanted, 8 exist."
    assert run.why("j2", 0) == "j2 never runs: 8 on one node wanted, largest node 4."


def test_only_the_gpus_that_it_accepts_count() -> None:
    """4 + 2 of the A100 are free and all 8 T4; one A100 node drains."""
    made = jobs(["x", "y"], [0, 0], [2, 4], [50, 10], team="a", gpu=["A100", "A100"])
    problem = problem_of(made, (Pool(2, 4, "A100"), Pool(1, 8, "T4")), drains=(Drain(1, 5, 500),), until_s=50)
    raw = raw_of(problem, [(0, 0, 50, FINISHED, {0: 2})], 50, repairs=((5, 505),))
    assert (
        run_of(problem, raw, "fifo")
        .why("y", 10)
        .endswith(
            "2 A100 are free, the largest free block on one node is 2, it wants 4 on one node; "
            "1 node takes no work (drain or repair). Declared limits do not tell when it will fit."
        )
    )


def test_hostile_names_stay_on_one_line() -> None:
    made = jobs(["<b>x</b>\n\x1b[2J"], [5], [2], [50], team="a")
    problem = problem_of(made)
    said = run_of(problem, raw_of(problem, [], 9), "fifo").why("<b>x</b>\n\x1b[2J", 7)
    assert said.isprintable()
    assert said.startswith("<b>x</b>\\n\\x1b[2J (2 GPUs) has waited 2 s.")


def test_times_with_units_and_mistakes(run: Run) -> None:
    assert run.why("late", "15min") == run.why("late", 900)
    for t in ("soon", -1, 1001, float("nan"), None, "2h"):
        with pytest.raises(InputError):
            run.why("late", t)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="no such job; did you mean late"):
        run.why("Late", 5)


def test_shares_at(run: Run) -> None:
    """At 350 s: a wants 4 (long, preempted) + 2 (next); b 4 + 4. Of 8: a 4, b 4; a's own want is 6."""
    table = run.shares_at(350).set_index("team")
    assert table.nominal_gpus.tolist() == [4, 4]
    assert table.wanted_gpus.tolist() == [6, 8]
    assert table.running_gpus.tolist() == [2, 4]
    assert table.now_gpus.tolist() == [4, 4]
    # at 290 s b wants 4 and a 4; at 850 s: a 8 (late), b 4 (fill)
    assert run.shares_at(850).set_index("team").running_gpus.tolist() == [0, 4]


def test_unused_share_goes_to_who_wants_more(run: Run) -> None:
    """At 40 s only a wants anything: 4 of its own 4; at 5 s too."""
    table = run.shares_at(40).set_index("team")
    assert table.wanted_gpus.tolist() == [4, 0]
    assert table.now_exact_gpus.tolist() == [4.0, 0.0]


def test_words() -> None:
    assert [ordinal(n) for n in (1, 2, 3, 4, 11, 12, 13, 21, 112, 1002)] == [
        "1st", "2nd", "3rd", "4th", "11th", "12th", "13th", "21st", "112th", "1,002nd",
    ]  # fmt: skip
    assert [span(s) for s in (0, 119, 120, 7199, 7200, 2 * DAY - 1, 2 * DAY, NEVER)] == [
        "0 s", "119 s", "2 min", "120 min", "2.0 h", "48.0 h", "2.0 d", "ever",
    ]  # fmt: skip
