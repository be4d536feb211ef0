"""A day of ServeGen traffic as demand: hand-made files anywhere, exact counts where the real file is present."""

import csv
import math
from pathlib import Path

import pytest

from gpuplan.allocation.plan import plan
from gpuplan.allocation.policies import POLICIES
from gpuplan.inputs.errors import InputError
from gpuplan.traces import philly, servegen


def write(path: Path, rates: dict[int, str], days: int = 1) -> Path:
    """A file with a rate of 10 in every bin, except for those given."""
    rows = [f"{600 * i},{rates.get(i, '10')}" for i in range(144 * days)]
    path.write_text("\n".join(["t_s,small", *rows]) + "\n", encoding="utf-8")
    return path


def test_a_step_has_the_gpus_for_its_highest_rate(tmp_path: Path) -> None:
    """At 4 requests/s a GPU: 10 needs 3 GPUs, 12.0 exactly 3, 12.1 already 4."""
    path = write(tmp_path / "rates.csv", {0: "12.0", 4: "12.1", 143: "40"})
    app = servegen.app(path, "small", day=0, requests_per_s_per_gpu=4).app
    assert app.demand == (3, 4, *[3] * 45, 10)
    assert (app.name, app.priority, app.max_swap) == ("servegen-small", 1, None)


def test_a_zero_is_a_gap_and_never_lowers_the_demand(tmp_path: Path) -> None:
    """Bin 0 unknown: its step has two others. Bins 3-8 unknown: steps 1, 2 lie between 10 and 30 and take 30."""
    gaps = {0: "0", 3: "0", 4: "", 5: "0.0", 6: "nan", 7: "0", 8: "-1", 9: "30"}
    made = servegen.app(write(tmp_path / "rates.csv", gaps), "small", day=0, requests_per_s_per_gpu=5)
    assert made.app.demand == (2, 6, 6, 6, *[2] * 44)
    assert made.account.excluded == (("no rate above 0: a gap in the recording, unknown", 7),)
    assert (made.account.read, made.account.used) == (144, 137)
    assert made.account.amounts[0] == ("steps without a known rate, filled from their neighbours", 2, "steps")


def test_a_gap_at_an_end_of_the_day_takes_its_only_neighbour(tmp_path: Path) -> None:
    gaps = {i: "0" for i in (0, 1, 2, 141, 142, 143)} | {3: "20", 140: "35"}
    path = write(tmp_path / "rates.csv", gaps)
    demand = servegen.app(path, "small", day=0, requests_per_s_per_gpu=5).app.demand
    assert (demand[0], demand[1], demand[2], demand[46], demand[47]) == (4, 4, 2, 7, 7)


def test_one_day_of_several_is_taken(tmp_path: Path) -> None:
    path = write(tmp_path / "rates.csv", {144: "90"}, days=3)
    made = servegen.app(path, "small", day=1, requests_per_s_per_gpu=10, priority=5.0, max_swap=2)
    assert made.app.demand == (9, *[1] * 47)
    assert (made.app.priority, made.app.max_swap) == (5, 2)
    assert made.account.excluded == (("not on day 1", 288),)


@pytest.mark.parametrize("minutes", [10, 20, 30, 60])
def test_steps_of_other_lengths_cover_the_day(tmp_path: Path, minutes: int) -> None:
    path = write(tmp_path / "rates.csv", {5: "15"})
    demand = servegen.app(path, "small", day=0, requests_per_s_per_gpu=5, step_minutes=minutes).app.demand
    assert len(demand) == 1440 // minutes
    assert [step for step, gpus in enumerate(demand) if gpus == 3] == [50 // minutes]


def test_what_cannot_be_used_is_refused_in_a_sentence(tmp_path: Path) -> None:
    path = write(tmp_path / "rates.csv", {})
    with pytest.raises(InputError, match="144 bins"):
        servegen.app(path, "small", day=1, requests_per_s_per_gpu=5)
    with pytest.raises(InputError, match="did you mean small"):
        servegen.app(path, "smal", day=0, requests_per_s_per_gpu=5)
    with pytest.raises(InputError, match="2 mistakes"):
        servegen.app(path, "small", day=0, requests_per_s_per_gpu=0, step_minutes=25)
    silent = write(tmp_path / "silent.csv", dict.fromkeys(range(144), "0"))
    with pytest.raises(InputError, match="known rate"):
        servegen.app(silent, "small", day=0, requests_per_s_per_gpu=5)


# ---------------------------------------------------------------------- the real file


@pytest.fixture(scope="module")
def rates(shared: Path) -> Path:
    return shared / "traces" / "servegen" / "total_rate_10min.csv"


@pytest.mark.parametrize(("day", "gaps", "unknown_steps"), [(0, 0, 0), (7, 1, 0), (9, 5, 1)])
def test_the_real_days_counted_without_numpy(rates: Path, day: int, gaps: int, unknown_steps: int) -> None:
    with rates.open(encoding="utf-8", newline="") as file:
        column = [float(row["m-small"]) for row in csv.DictReader(file)][144 * day : 144 * (day + 1)]
    made = servegen.app(rates, day=day, requests_per_s_per_gpu=80)
    steps = [column[i : i + 3] for i in range(0, 144, 3)]
    assert column.count(0) == gaps
    assert sum(not any(step) for step in steps) == unknown_steps
    for step, gpus in zip(steps, made.app.demand, strict=True):
        assert gpus >= 1
        if any(step):
            assert gpus == math.ceil(max(step) / 80)
    assert (made.account.read, made.account.used) == (1440, 144 - gaps)
    assert made.account.amounts[0][1] == unknown_steps


@pytest.mark.parametrize("policy", POLICIES)
def test_real_jobs_beside_real_traffic_are_planned_legally(shared: Path, rates: Path, policy: str) -> None:
    app = servegen.app(rates, day=7, requests_per_s_per_gpu=80, max_swap=4).app
    trace = shared / "traces" / "philly" / "philly_jobs.csv.gz"
    made = plan(philly.day(trace, gpus=64, every=8, realtime=[app]).scenario, policy, time_limit_s=1)
    assert made.check() == []
    assert made.figures["coverage"] == 1  # 8 units of penalty against 1 of value: nobody goes unserved
