"""Weeks of the Philly trace by virtual cluster: hand-made files anywhere, exact counts where the real file is."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gpuplan.fairshare.model import DAY, NEVER, Pool
from gpuplan.fairshare.tree import tree_of
from gpuplan.inputs.errors import InputError
from gpuplan.traces.philly_weeks import philly_weeks

JOBS = """\
timestamp,duration,num_gpus,gpu_time,cluster
2017-10-02 00:00:10,86400.0,12,1036800.0,aaa
2017-10-01 10:00:00,43200.4,8,345600.0,bbb
2017-09-30 23:59:59,60.0,1,60.0,aaa
2017-10-01 10:00:00,0.4,1,0.4,aaa
2017-10-01 10:00:00,7200.0,1,7200.0,ccc
never,60.0,1,60.0,aaa
2017-10-01 11:00:00,-60.0,1,60.0,aaa
2017-10-01 11:00:00,60.0,1.5,60.0,aaa
2017-10-03 00:00:00,60.0,1,60.0,aaa
"""
QUOTAS = "vc,node num\naaa,3\nbbb,1\nzzz,4\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    import gzip

    (tmp_path / "philly_jobs.csv.gz").write_bytes(gzip.compress(JOBS.encode()))
    (tmp_path / "philly_vc_nodes.csv").write_text(QUOTAS, encoding="utf-8")
    return tmp_path


def test_by_hand(folder: Path) -> None:
    """Two days: 12 x 24 h + 8 x 12 h + 1 s = 384 GPU-hours; a mean load of 1/2 is 384 / (48 x 8 / 2) = 2 nodes."""
    scenario, account = philly_weeks(folder, "2017-10-01", 2, load=0.5)
    jobs = scenario.jobs
    assert jobs is not None
    assert jobs.name.tolist() == ["philly-row-00002", "philly-row-00004", "philly-row-00001"]
    assert jobs.team.tolist() == ["bbb", "aaa", "aaa"]
    assert jobs.submit_s.tolist() == [36000, 36000, DAY + 10]
    assert jobs.gpus.tolist() == [8, 1, 12]
    assert jobs.run_s.tolist() == [43200, 1, 86400]
    assert (jobs.limit_s == NEVER).all()
    assert (jobs.minimum_s == 3600).all()
    assert scenario.pools == (Pool(2, 8),)
    assert scenario.until_s == 2 * DAY
    tree = tree_of(scenario.budget)
    assert dict(zip(tree.teams, tree.share[tree.leaves].tolist(), strict=True)) == {
        "aaa": 3 / 8,
        "bbb": 1 / 8,
        "zzz": 1 / 2,
    }
    assert (account.read, account.used) == (9, 3)
    assert dict(account.excluded) == {
        "no submission time that can be read": 1,
        "submitted on none of the 2 days from 2017-10-01 on": 2,
        "no positive run time": 1,
        "no positive whole number of GPUs": 1,
        "of a virtual cluster without a quota": 1,
    }
    assert dict(account.changed) == {"run time rounded to whole seconds": 2}
    assert any("has 16 GPUs, not 64, so that the mean load is 0.500" in rule for rule in scenario.notes)


def test_what_the_trace_does_not_say_can_be_set(folder: Path) -> None:
    settings: dict[str, Any] = {
        "powers_of_two": True,
        "limit_factor": 1.5,
        "minimum_s": 600,
        "resumable": False,
    }
    scenario, account = philly_weeks(folder, "2017-10-01", 2, gpus=24, **settings)
    jobs = scenario.jobs
    assert jobs is not None
    assert jobs.gpus.tolist() == [8, 1, 16]
    assert jobs.limit_s.tolist() == [64800, 2, 129600]
    assert jobs.minimum_s.tolist() == [600, 2, 600]
    assert not jobs.resumable.any()
    assert scenario.gpus == 24
    assert dict(account.changed)["GPUs rounded up to a power of two"] == 1
    assert any("1.5 times the recorded run time" in rule for rule in scenario.notes)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"first_day": "2017-09-23"}, "first_day: must be 2017-09-24 or later"),
        ({"first_day": "1 October"}, "first_day: must be a day written as YYYY-MM-DD"),
        ({"days": 0}, "days: must be a whole number from 1 to 366"),
        ({"days": 4}, "days: must end with the trace: its last job was submitted on 2017-10-03, 3 days from"),
        ({"first_day": "2018-01-01"}, "days: must end with the trace: .* 0 days from 2018-01-01 on"),
        ({"load": 0.0}, "load: must be a number above 0"),
        ({"load": float("nan")}, "load: must be a number above 0"),
        ({"gpus": 12}, "gpus: must be a multiple of 8"),
        ({"limit_factor": 0.5}, "limit_factor: must be at least 1"),
        ({"minimum_s": -1}, "minimum_s: must be whole seconds"),
        ({"first_day": "2017-09-29", "days": 1}, "first_day: must begin days with at least one usable job"),
    ],
)
def test_arguments_out_of_range(folder: Path, arguments: dict[str, Any], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        philly_weeks(folder, **{"first_day": "2017-10-01", "days": 2, **arguments})


@pytest.mark.parametrize(
    ("quotas", "sentence"),
    [
        ("vc,node num\naaa,3\naaa,1\n", "line 3: names a virtual cluster again"),
        ("vc,node num\naaa,-3\n", "line 2: must have a whole number of nodes above 0"),
        ("vc,node num\na/b,3\n", "line 2: must name a virtual cluster, without a slash"),
        ("vc,node num\n", "must have a row about a virtual cluster"),
        ("vc,nodes\naaa,3\n", "node num: is a column that the file must have"),
    ],
)
def test_quotas_that_are_none(folder: Path, quotas: str, sentence: str) -> None:
    (folder / "philly_vc_nodes.csv").write_text(quotas, encoding="utf-8")
    with pytest.raises(InputError, match=sentence):
        philly_weeks(folder, "2017-10-01", 2)


def test_a_missing_file_is_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file"):
        philly_weeks(tmp_path)


def test_the_real_trace(shared: Path) -> None:
    """Counted with another program (see the README of the traces for the totals)."""
    scenario, account = philly_weeks(shared / "traces" / "philly", "2017-09-24", 56)
    jobs = scenario.jobs
    assert jobs is not None
    assert account.read == 71_570
    assert account.read == account.used + sum(count for _, count in account.excluded)
    assert dict(account.excluded)["of a virtual cluster without a quota"] == 13
    assert len(scenario.budget) == 11
    assert set(jobs.gpus.tolist()) == {1, 2, 4, 8, 12, 16, 24, 32}
    load = jobs.gpu_seconds.sum() / (scenario.gpus * 56 * DAY)
    assert load == pytest.approx(1.1, abs=0.01)  # half a node of 59 is 0.8 %
    assert set(jobs.team.tolist()) <= {node.name for node in scenario.budget}
    assert 0.9 < np.mean(jobs.gpus == 1) < 0.96  # "94 % of the jobs ask for one GPU"
