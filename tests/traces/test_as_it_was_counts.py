"""Counts as they were: the figures of runs where counts tell them, none elsewhere; Helios; the chart."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gpuplan.fairshare.jobs import jobs as make_jobs
from gpuplan.fairshare.model import DAY, BudgetNode, FairshareScenario, Pool
from gpuplan.fairshare.run import simulate
from gpuplan.inputs.account import Account
from gpuplan.inputs.errors import InputError
from gpuplan.traces.as_it_was import AS_IT_WAS, HONESTY
from gpuplan.traces.as_it_was_counts import Counts, compare_counts, counts_as_it_was
from gpuplan.traces.as_it_was_counts_chart import counts_chart
from gpuplan.traces.helios_counts import helios_as_it_was, read_counts

#: Two teams of equal weight on 8 GPUs; two jobs that both start at once.
SCENARIO = FairshareScenario(
    "two",
    (Pool(1, 8),),
    (BudgetNode("x"), BudgetNode("y")),
    jobs=make_jobs(["a", "b"], [0, 1800], [6, 2], [5400, 5400], team=["x", "y"], minimum_s=60),
    until_s=7200,
)


def counted(running: Any, waiting: Any, step_s: int = 1800) -> Counts:
    ran, waited = np.array(running, np.int64), np.array(waiting, np.int64)
    return Counts("counts.csv", step_s, ran, waited, Account("counts.csv", "counts", ran.size, ran.size))


def test_the_figures_of_small_counts() -> None:
    """Half hours; x runs 6, 6, 6, 0 and y 0, 2, 2, 2 while 0, 2, 0, 0 more wait for y.

    Ran: 18 + 6 = 24 half hours of 8 x 4 = 32. Each is entitled to 4. Owed to x: hour 1 min(6, 4) = 4 x 2, hour 2 on
    average 3 = 6 half hours: 14; given 18. Owed to y: hour 1 wants (0 + 4) of 8: 4; hour 2: 4; given 6 of 8.
    """
    found = counts_as_it_was(SCENARIO, counted([[6, 6, 6, 0], [0, 2, 2, 2]], [[0] * 4, [0, 2, 0, 0]]))
    assert found.figures["occupancy"] == 24 / 32
    assert found.figures["outstanding"] == 26 / 32
    assert found.team_shares == {"x": 18 / 14, "y": 6 / 8}
    assert found.figures["delivered_share"] == (14 + 6) / (14 + 8)
    assert found.figures["delivered_worst_team"] == 0.75
    assert found.figures["teams_served"] == 1
    for name in ("mean_wait_s", "goodput", "impact", "jobs_finished", "preemptions"):
        assert found.figures[name] is None


def test_counts_of_a_run_have_its_figures() -> None:
    """What easy does, counted: 6 x 3 half hours of x, 2 x 3 of y (submitted at half past, at once started)."""
    run = simulate(SCENARIO, "easy")
    found = counts_as_it_was(SCENARIO, counted([[6, 6, 6, 0], [0, 2, 2, 2]], np.zeros((2, 4))))
    for name in (
        "occupancy",
        "delivered_share",
        "delivered_worst_team",
        "teams_served",
        "jain",
        "outstanding",
    ):
        assert found.figures[name] == pytest.approx(run.figures[name]), name


def test_unknown_steps_are_in_no_figure_and_drawn_as_a_gap() -> None:
    """The second hour is known by its first half: 8 of 8 GPUs; in all (8 + 8 + 8) / (3 x 8)."""
    found = counts_as_it_was(SCENARIO, counted([[6, 6, 6, -1], [2, 2, 2, 5]], np.zeros((2, 4))))
    assert found.figures["occupancy"] == 1
    assert found.known_s.tolist() == [3600, 1800]
    assert any("1 of 4 steps are not known" in note for note in found.notes)
    area = counts_chart(compare_counts(found, ["easy"])).to_dict()["datasets"]["area_0"]
    assert [row["c0"] for row in area] == [6, 6, 6]  # of the half that is known, not half of it
    lost = counts_as_it_was(SCENARIO, counted([[6, 6, -1, -1], [2, 2, 2, 5]], np.zeros((2, 4))))
    gap = counts_chart(compare_counts(lost, ["easy"])).to_dict()["datasets"]["area_0"]
    assert [row["c1"] for row in gap] == [8, None, None]


@pytest.mark.parametrize(
    ("counts", "rule"),
    [
        (counted([[1, 2]], [[0, 0]]), "must have a row for each of the 2 teams"),
        (counted([[1], [2]], [[0], [0]], 7000), "must divide an hour"),
        (counted([[-1], [2]], [[0], [0]]), "no step is known for all teams"),
    ],
)
def test_counts_that_do_not_fit(counts: Counts, rule: str) -> None:
    with pytest.raises(InputError, match=rule):
        counts_as_it_was(SCENARIO, counts)


def test_the_comparison_and_the_chart_say_what_cannot_be_said() -> None:
    found = counts_as_it_was(SCENARIO, counted([[6, 6, 6, 0], [0, 2, 2, 2]], np.zeros((2, 4))))
    both = compare_counts(found, ["easy", "fair-share"])
    assert set(HONESTY) <= set(both.remarks)
    line = next(line for line in repr(both).splitlines() if line.startswith("mean_wait_s"))
    assert line.split()[1] == "none"
    chart = counts_chart(both)
    spec = chart.to_dict()
    assert {row["policy"] for row in spec["datasets"]["delivered"]} == {AS_IT_WAS, "easy", "fair-share"}
    assert all(sentence in spec["description"] for sentence in HONESTY)
    vl_convert = pytest.importorskip("vl_convert")
    for mode in ("light", "dark"):
        assert AS_IT_WAS in vl_convert.vegalite_to_svg(counts_chart(both, mode=mode).to_dict())  # type: ignore[arg-type]
    assert len(json.dumps(spec)) < 100_000


ROWS = """time,vc,running_gpu_num,pending_gpu_num
2020-05-01 00:00:00,x,4,1
2020-05-01 00:00:00,y,2,0
2020-05-01 00:10:00,x,0,0
2020-05-01 00:10:00,y,0,3
2020-05-01 00:20:00,x,4,?
2020-05-01 00:25:00,x,4,0
2020-05-01 00:00:00,x,9,9
2020-05-02 00:00:00,x,1,1
2020-05-01 00:30:00,z,1,1
soon,x,1,1
"""


def test_every_row_of_counts_is_accounted_for(tmp_path: Path) -> None:
    path = tmp_path / "counts.csv"
    path.write_text(ROWS)
    found = read_counts(path, ("x", "y"), "2020-05-01", 1)
    assert (found.account.read, found.account.used) == (10, 2)
    assert sum(count for _, count in found.account.excluded) == 8
    assert found.running[:, :3].tolist() == [[4, -1, -1], [2, -1, -1]]
    assert found.waiting[:, 0].tolist() == [1, 0]
    assert found.known.sum() == 1
    with pytest.raises(InputError, match="must begin days with a count"):
        read_counts(path, ("x", "y"), "2021-05-01", 1)
    with pytest.raises(InputError, match="first_day: must be a day"):
        read_counts(path, ("x", "y"), "then", 1)


def test_helios_as_it_was(shared: Path) -> None:
    """Of 856 GPUs 564 run and 56 are waited for over all steps (README), maintenance with nothing running included."""
    folder = shared / "traces" / "helios"
    table = read_counts(folder / "earth_vc_sequence_10min.csv.gz", TEAMS, "2020-05-01", 24)
    known = table.known
    assert known.sum() == 3456 - 157
    assert table.running[:, known].sum() / 3456 == pytest.approx(564, abs=0.5)
    budget = tuple(BudgetNode(team) for team in TEAMS)
    plan = FairshareScenario(
        "earth", (Pool(107, 8),), budget, jobs=make_jobs([], [], [], []), until_s=24 * DAY
    )
    found = helios_as_it_was(folder, plan)
    assert found.figures["occupancy"] == pytest.approx(564 * 3456 / (3456 - 157) / 856, abs=1e-3)
    with pytest.raises(InputError, match="must have an end after whole days"):
        helios_as_it_was(folder, FairshareScenario("earth", plan.pools, budget, jobs=plan.jobs))


TEAMS = (
    "vc3sl", "vc6YE", "vc8Sj", "vcJLV", "vcJkd", "vcLJZ", "vcMod", "vcSoL",
    "vcTJs", "vccaA", "vcdI0", "vcgkz", "vchbv", "vcira", "vcpDC", "vcvlY",
)  # fmt: skip
