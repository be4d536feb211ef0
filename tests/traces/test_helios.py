"""A generated workload that follows Helios' counts: exactly at each ten minutes, to 1 % over each day."""

import gzip
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuplan.fairshare.jobs import Jobs
from gpuplan.fairshare.model import DAY, FairshareScenario, Pool
from gpuplan.inputs.account import Account
from gpuplan.inputs.errors import InputError
from gpuplan.traces.helios import helios_weeks
from gpuplan.traces.helios_jobs import STEP_S, jobs_that_hold

COUNTS_HEAD = (
    "time,vc,total_gpu_num,running_gpu_num_noless_8,running_gpu_num_less_8,"
    "pending_gpu_num_noless_8,pending_gpu_num_less_8\n"
)
QUOTAS = "date,aa,bb,idle,total\n2020-05-01,16,8,0,24\n2020-05-02,16,8,0,24\n2020-05-03,0,0,24,24\n"


def _held(jobs: Jobs, at_s: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """GPUs of jobs that have come and not ended, at each moment, were each started when it came."""
    come = np.sort(jobs.submit_s)
    order = np.argsort(jobs.submit_s, kind="stable")
    gpus_come = np.concatenate([[0], np.cumsum(jobs.gpus[order])])
    end = jobs.submit_s + jobs.run_s
    gone = np.argsort(end, kind="stable")
    gpus_gone = np.concatenate([[0], np.cumsum(jobs.gpus[gone])])
    return np.asarray(
        gpus_come[np.searchsorted(come, at_s, side="right")]
        - gpus_gone[np.searchsorted(end[gone], at_s, side="right")]
    )


def _of(jobs: Jobs, team: str, large: bool) -> Jobs:
    rows = (jobs.team == team) & ((jobs.gpus >= 8) == large)
    return Jobs(**{name: getattr(jobs, name)[rows] for name in Jobs.__slots__})


# ---------------------------------------------------------------------- jobs that hold a demand


def _levels(demand: list[int], large: bool, seed: int = 1) -> tuple[list[int], Any]:
    made = jobs_that_hold(np.array(demand, np.int64), large, np.random.default_rng(seed))
    at = np.arange(len(demand)) * STEP_S
    inside = (made.submit_s[:, None] <= at) & (at < (made.submit_s + made.run_s)[:, None])
    return (made.gpus[:, None] * inside).sum(axis=0).tolist(), made


@given(
    st.lists(st.integers(0, 7) | st.integers(8, 300), min_size=1, max_size=40),
    st.booleans(),
    st.integers(0, 2**32),
)
def test_the_demand_is_held_exactly_at_each_step(demand: list[int], large: bool, seed: int) -> None:
    """Large jobs cannot hold 1 to 7 GPUs."""
    found, made = _levels(demand, large, seed)
    assert found == [0 if large and gpus < 8 else gpus for gpus in demand]
    assert ((made.gpus >= 8) == large).all()
    assert (made.submit_s >= 0).all()
    assert (made.run_s >= STEP_S).all()
    assert (made.run_s % STEP_S == 0).all()
    assert (made.limit_s >= made.run_s).all()


def test_a_step_without_demand_ends_every_job_and_a_constant_demand_has_turnover() -> None:
    _, made = _levels([16, 0, 16], True)
    assert set(made.run_s[made.submit_s < STEP_S].tolist()) == {STEP_S}
    _, steady = _levels([64] * 1008, True)  # a week
    assert 20 < len(steady.gpus) < 500
    assert set(steady.gpus.tolist()) >= {8, 16, 32}  # sizes do not crumble into the smallest


# ---------------------------------------------------------------------- a hand-made folder


def _counts(rows: list[str]) -> str:
    return COUNTS_HEAD + "".join(row + "\n" for row in rows)


ROWS = [
    "2020-05-01 00:00:00,aa,16,8,2,0,0",
    "2020-05-01 00:10:00,aa,16,8,2,16,1",
    "2020-05-01 00:20:00,aa,16,0,0,0,0",
    "2020-05-01 00:30:00,aa,16,0,3,0,0",
    "2020-05-01 00:00:00,bb,8,8,0,0,0",
    "2020-05-01 00:10:00,bb,8,0,1,0,0",
    "2020-05-01 00:20:00,bb,8,0,0,0,0",
    "2020-05-01 00:30:00,bb,8,x,0,0,0",
    "2020-05-01 00:30:00,aa,16,0,5,0,0",
    "2020-05-01 00:35:00,aa,16,0,5,0,0",
    "2020-05-01 00:10:00,cc,16,0,5,0,0",
    "2020-06-01 00:10:00,aa,16,0,5,0,0",
    "later,aa,16,0,5,0,0",
]


def _folder(tmp_path: Path, rows: list[str], quotas: str = QUOTAS) -> Path:
    (tmp_path / "earth_vc_sequence_10min.csv.gz").write_bytes(gzip.compress(_counts(rows).encode()))
    (tmp_path / "earth_vc_quota_daily.csv").write_text(quotas, encoding="utf-8")
    return tmp_path


def test_by_hand(tmp_path: Path) -> None:
    """At 00:20 nothing runs anywhere: unknown, as the step before. So is all after 00:30, and bb at 00:30."""
    scenario, account = helios_weeks(_folder(tmp_path, ROWS), "2020-05-01", 1)
    jobs = scenario.jobs
    assert jobs is not None
    at = np.arange(5) * STEP_S
    assert _held(_of(jobs, "aa", True), at).tolist() == [8, 24, 24, 0, 0]
    assert _held(_of(jobs, "aa", False), at).tolist() == [2, 3, 3, 3, 3]
    assert _held(_of(jobs, "bb", True), at).tolist() == [8, 0, 0, 0, 0]
    assert _held(_of(jobs, "bb", False), at).tolist() == [0, 1, 1, 1, 1]
    assert scenario.pools == (Pool(3, 8),)
    assert [(node.name, node.weight) for node in scenario.budget] == [("aa", 16.0), ("bb", 8.0)]
    assert (account.read, account.used) == (13, 5)
    assert dict(account.excluded) == {
        "no time that can be read": 1,
        "on none of the 1 days from 2020-05-01 on": 1,
        "not at a full ten minutes": 1,
        "of a virtual cluster without a quota": 1,
        "a count that is no whole number of GPUs: unknown": 1,
        "nothing ran in the whole cluster: taken for maintenance, demand unknown": 2,
        "of a virtual cluster and a time that were there before": 1,
    }
    assert "generated" in scenario.name
    assert scenario.notes[0] == "The jobs are generated: the excerpt holds counts of GPUs, not jobs."
    # Of 2 x 144 points 5 are known: aa at 0, 10 and 30 min, bb at 0 and 10.
    assert any("unknown at 283 points (142 steps" in note for note in scenario.notes)


def test_quotas_that_change_count_by_their_median(tmp_path: Path) -> None:
    scenario, _ = helios_weeks(_folder(tmp_path, ROWS), "2020-05-01", 3)
    assert [(node.name, node.weight) for node in scenario.budget] == [("aa", 16.0), ("bb", 8.0)]
    assert any("quotas differ on 2020-05-03" in note for note in scenario.notes)


def test_a_smaller_cluster_has_the_same_jobs(tmp_path: Path) -> None:
    folder = _folder(tmp_path, ROWS)
    usual, small = (helios_weeks(folder, "2020-05-01", 1, gpus=gpus)[0] for gpus in (None, 8))
    assert (usual.gpus, small.gpus) == (24, 8)
    assert usual.jobs is not None
    assert small.jobs is not None
    assert usual.jobs.gpu_seconds.tolist() == small.jobs.gpu_seconds.tolist()
    assert any("has 8 GPUs in nodes of 8, the quotas add up to 24" in note for note in small.notes)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"first_day": "May"}, "first_day: must be a day written as YYYY-MM-DD"),
        ({"days": 0}, "days: must be a whole number from 1 to 366"),
        ({"gpus": 12}, "gpus: must be a multiple of 8"),
        ({"days": 4}, "days: must all have a quota; 2020-05-04 has none"),
        ({"first_day": "2020-05-02"}, "first_day: must begin days with a count that can be used"),
    ],
)
def test_arguments_out_of_range(tmp_path: Path, arguments: dict[str, Any], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        helios_weeks(_folder(tmp_path, ROWS), **{"first_day": "2020-05-01", "days": 1, **arguments})


@pytest.mark.parametrize(
    ("quotas", "sentence"),
    [
        ("date,aa\n2020-05-01,many\n", "line 2: aa must be a whole number of GPUs"),
        ("date,a/a\n2020-05-01,8\n", "without a slash"),
        ("date,aa\n2020-05-01,0\n", "must have a virtual cluster with GPUs"),
        ("day,aa\n2020-05-01,8\n", "date: is a column that the file must have"),
    ],
)
def test_quotas_that_are_none(tmp_path: Path, quotas: str, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        helios_weeks(_folder(tmp_path, ROWS, quotas), "2020-05-01", 1)


def test_missing_files_are_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file"):
        helios_weeks(tmp_path)


# ---------------------------------------------------------------------- the real counts


@pytest.fixture(scope="module")
def real(shared: Path) -> tuple[FairshareScenario, Account]:
    return helios_weeks(shared / "traces" / "helios", "2020-05-01", 14)


def test_the_real_demand_is_tracked(shared: Path, real: tuple[FairshareScenario, Account]) -> None:
    """Known steps exactly, day by day to 1 % of the GPU-hours (jobs come and go within a step, counts do not)."""
    import pandas as pd

    jobs = real[0].jobs
    assert jobs is not None
    table = pd.read_csv(shared / "traces" / "helios" / "earth_vc_sequence_10min.csv.gz")
    table["demand"] = table["running_gpu_num_noless_8"] + table["running_gpu_num_less_8"]
    busy = table.groupby("time")["demand"].sum() > 0
    table["demand"] += table["pending_gpu_num_noless_8"] + table["pending_gpu_num_less_8"]
    measured = table.pivot(index="time", columns="vc", values="demand").iloc[: 14 * 144]
    known = busy.loc[measured.index].to_numpy()
    assert known.sum() == 14 * 144 - 157
    at = np.arange(14 * 144) * STEP_S
    total = np.zeros(len(at))
    for team in measured.columns:
        mine = _held(Jobs(**{name: getattr(jobs, name)[jobs.team == team] for name in Jobs.__slots__}), at)
        assert mine[known].tolist() == measured[team].to_numpy()[known].tolist()
        total += mine
    assert np.corrcoef(total[known], measured.sum(axis=1).to_numpy()[known])[0, 1] > 0.9999
    minutes = _held(jobs, np.arange(14 * DAY // 60) * 60)
    for day in (k for k in range(14) if known[k * 144 : (k + 1) * 144].all()):
        hours = minutes[day * 1440 : (day + 1) * 1440].sum() / 60
        assert hours == pytest.approx(
            measured.iloc[day * 144 : (day + 1) * 144].to_numpy().sum() / 6, rel=0.01
        )


def test_the_real_scenario(real: tuple[FairshareScenario, Account]) -> None:
    scenario, account = real
    assert (scenario.gpus, len(scenario.budget)) == (856, 16)
    assert account.read == 55_296
    assert account.read == account.used + sum(count for _, count in account.excluded)
    assert (
        dict(account.excluded)["nothing ran in the whole cluster: taken for maintenance, demand unknown"]
        == 157 * 16
    )
    jobs = scenario.jobs
    assert jobs is not None
    assert not jobs.debug.any()
    assert (jobs.minimum_s == 0).mean() == pytest.approx(0.3, abs=0.02)


def test_the_same_seed_gives_the_same_jobs(tmp_path: Path) -> None:
    folder = _folder(tmp_path, [f"2020-05-01 00:{k}0:00,aa,16,{8 * k},{k},0,0" for k in range(6)])
    one, again, other = (helios_weeks(folder, "2020-05-01", 1, seed)[0].jobs for seed in (1, 1, 2))
    assert one is not None
    assert again is not None
    assert other is not None
    assert one.limit_s.tolist() == again.limit_s.tolist()
    assert one.limit_s.tolist() != other.limit_s.tolist()
