"""A day of the Philly trace: hand-made files anywhere, exact counts where the real file is present."""

import csv
import gzip
import math
from collections import Counter
from datetime import datetime
from pathlib import Path

import pytest

from gpuplan import cli
from gpuplan.allocation.model import AllocationScenario, BatchJob
from gpuplan.allocation.plan import plan
from gpuplan.allocation.policies import POLICIES
from gpuplan.inputs.errors import InputError
from gpuplan.loading import load
from gpuplan.traces import philly

TINY = """\
timestamp,duration,num_gpus,gpu_time,cluster
2017-10-12 10:40:00,5400.0,3,16200.0,aaa
2017-10-11 23:59:59,60.0,1,60.0,aaa
2017-10-12 00:00:00,200000.0,1,200000.0,bbb
2017-10-12 23:59:59,7200.0,12,86400.0,aaa
yesterday,60.0,1,60.0,aaa
2017-10-12 10:00:00,-5.0,1,-5.0,aaa
2017-10-12 10:00:00,60.0,1.5,90.0,aaa
2017-10-12 10:40:00,1800.0,8,14400.0,aaa
2017-10-12 10:40:00,,1,,aaa
2017-10-13 00:00:00,60.0,1,60.0,aaa
"""


@pytest.fixture
def tiny(tmp_path: Path) -> Path:
    path = tmp_path / "jobs.csv"
    path.write_text(TINY, encoding="utf-8")
    return path


def test_each_job_of_a_hand_made_day(tiny: Path) -> None:
    """By submission: row 3 (00:00, 24 h left of 55.6), 1 (10:40, from 10:30), 8 (same time), 4 (23:30, 30 min left)."""
    scenario = philly.day(tiny, gpus=16).scenario
    assert scenario.batch == (
        BatchJob("philly-row-00003", "training", 1, 24.0, 1.0, 0.0),
        BatchJob("philly-row-00001", "training", 4, 1.5, 1.0, 10.5),
        BatchJob("philly-row-00008", "training", 8, 0.5, 1.0, 10.5),
        BatchJob("philly-row-00004", "training", 16, 0.5, 1.0, 23.5),
    )
    assert (scenario.horizon.steps, scenario.horizon.step_s) == (48, 1800)
    assert (scenario.cluster.gpus, scenario.cluster.gpus_per_node) == (16, 8)
    assert (scenario.rules.must_finish, scenario.rules.within_node) == (False, True)


def test_several_days_keep_the_hours_of_the_trace(tiny: Path) -> None:
    """From 11 October, two days: rows 2 (23:00 of the first), 3, 1, 8 and 4, with nothing cut."""
    found = philly.span(tiny, "2017-10-11", days=2, gpus=16)
    names = [(job.name[-1], job.gpus, round(job.hours, 4), job.earliest_hour) for job in found.scenario.batch]
    assert names == [
        ("2", 1, 0.0167, 23.0),
        ("3", 1, 55.5556, 24.0),
        ("1", 4, 1.5, 34.0),
        ("8", 8, 0.5, 34.0),
        ("4", 16, 2.0, 47.0),
    ]
    assert found.scenario.horizon.steps == 48
    account = found.account
    assert (account.read, account.used) == (10, 5)
    assert account.read == account.used + sum(count for _, count in account.excluded)
    assert ("submitted on none of the 2 days from 2017-10-11 on", 1) in account.excluded
    assert not any("cut" in what for what, _ in account.changed)


@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        ({"days": 0}, "days: must be a whole number of at least 1 (got 0)"),
        ({"days": 50}, "step_minutes: must divide the 50 days into at most 1,008 steps (got 60)"),
        ({"days": 2, "date": "2018-01-01"}, "date: must begin days with at least one usable job"),
    ],
)
def test_several_days_that_cannot_be_are_refused(
    tiny: Path, more: dict[str, int | str], sentence: str
) -> None:
    with pytest.raises(InputError) as caught:
        philly.span(tiny, gpus=16, **more)  # type: ignore[arg-type]
    assert sentence in str(caught.value)


def test_every_row_of_a_hand_made_file_is_accounted_for(tiny: Path) -> None:
    account = philly.day(tiny, gpus=16).account
    assert (account.source, account.read, account.used) == ("jobs.csv", 10, 4)
    assert account.excluded == (
        ("no submission time that can be read", 1),
        ("submitted on another day than 2017-10-12", 2),
        ("no positive run time", 2),
        ("no positive whole number of GPUs", 1),
    )
    assert account.changed == (
        ("GPUs rounded up to a power of two", 2),  # 3 to 4, 12 to 16
        ("hours cut to what is left of the day", 2),  # rows 3 and 4
        ("of these, longer than a whole day", 1),
        ("known from the start of its step, before its submission", 3),
    )
    amounts = [round(amount, 4) for _, amount, _ in account.amounts]
    # 3 x 1.5 + 200000/3600 + 12 x 2 + 8 x 0.5; then 4 x 1.5 and 16 x 2; then 24 and 16 x 0.5; all whole steps.
    assert amounts == [88.0556, 97.5556, 42.0, 42.0]


def test_a_sample_keeps_every_kth_job_by_submission(tiny: Path) -> None:
    made = philly.day(tiny, gpus=16, every=3)
    assert [job.name for job in made.scenario.batch] == ["philly-row-00003", "philly-row-00004"]
    assert ("not in the sample of every 3rd job", 2) in made.account.excluded
    assert made.account.used + sum(count for _, count in made.account.excluded) == 10


def test_other_steps_round_the_submission_to_them(tiny: Path) -> None:
    jobs = philly.day(tiny, gpus=16, step_minutes=60).scenario.batch
    assert [job.earliest_hour for job in jobs] == [0, 10, 10, 23]
    assert [job.hours for job in jobs] == [24, 1.5, 0.5, 1]


def test_the_scenario_says_where_it_comes_from_and_what_was_done(tiny: Path) -> None:
    about = philly.day(tiny, gpus=16, every=2).scenario.about
    for words in ("Every 2nd", "2017-10-12", "2 jobs", "powers of two", "priority 1", "CC BY 4.0", "half"):
        assert words in about


def test_a_gzip_file_reads_the_same(tiny: Path, tmp_path: Path) -> None:
    packed = tmp_path / "jobs.csv.gz"
    packed.write_bytes(gzip.compress(tiny.read_bytes()))
    assert philly.day(packed, gpus=16).scenario == philly.day(tiny, gpus=16).scenario


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("absent.csv", None, "there is no such file"),
        ("empty.csv", b"", "must be a CSV file"),
        ("other.csv", b"a,b\n1,2\n", "timestamp: is a column that the file must have"),
        ("near.csv", b"time_stamp,duration,num_gpus\n", "did you mean time_stamp?"),
        ("plain.csv.gz", b"timestamp,duration,num_gpus\n", "cannot be read"),
        ("cut.csv.gz", gzip.compress(TINY.encode() * 99)[:-40], "damaged or cut off"),
        ("latin.csv", b"timestamp,duration,num_gpus\n\xe9,1,1\n", "must be UTF-8"),
        ("ragged.csv", b"timestamp,duration,num_gpus\n1,2,3\n1,2,3,4,5\n", "must be a CSV file"),
        ("quote.csv", b'timestamp,duration,num_gpus\n"1,2,3\n', "must be a CSV file"),
        ("long.csv", b"timestamp,duration,num_gpus\n1,2,3,4\n", "must be a CSV file"),
        ("blank.csv", b"timestamp,duration,num_gpus\n\n\n", "must be a day with at least one usable job"),
    ],
)
def test_files_that_cannot_be_used_are_refused_in_a_sentence(
    tmp_path: Path, name: str, content: bytes | None, said: str
) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=r"mistake") as caught:
        philly.day(tmp_path / name, gpus=8)
    assert said in str(caught.value)


def test_arguments_out_of_range_are_all_named(tiny: Path) -> None:
    with pytest.raises(InputError, match="3 mistakes") as caught:
        philly.day(tiny, "12.10.2017", gpus=8, every=0, step_minutes=7)
    assert [mistake.path for mistake in caught.value.mistakes] == ["date", "every", "step_minutes"]
    with pytest.raises(InputError, match=r"cluster\.gpus"):
        philly.day(tiny, gpus=0)


@pytest.mark.parametrize(
    ("number", "word"), [(1, "1st"), (2, "2nd"), (3, "3rd"), (8, "8th"), (11, "11th"), (22, "22nd")]
)
def test_ordinals(number: int, word: str) -> None:
    assert philly._ordinal(number) == word


# ---------------------------------------------------------------------- the real file


@pytest.fixture(scope="module")
def trace(shared: Path) -> Path:
    return shared / "traces" / "philly" / "philly_jobs.csv.gz"


@pytest.fixture(scope="module")
def that_day(trace: Path) -> tuple[int, list[tuple[int, int, float, int]]]:
    """Rows of the file, and (second of the day, row, run time, GPUs) of that day's, read without pandas."""
    with gzip.open(trace, "rt", encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    found = []
    for number, row in enumerate(rows, start=1):
        when = datetime.strptime(row["timestamp"], "%Y-%m-%d %H:%M:%S")
        if when.date().isoformat() == "2017-10-12":
            second = 3600 * when.hour + 60 * when.minute + when.second
            found.append((second, number, float(row["duration"]), int(row["num_gpus"])))
    return len(rows), sorted(found)


@pytest.fixture(scope="module")
def whole(trace: Path) -> philly.PhillyDay:
    return philly.day(trace, gpus=512)


@pytest.fixture(scope="module")
def sample(trace: Path) -> philly.PhillyDay:
    return philly.day(trace, gpus=64, every=8)


def test_the_real_day_is_the_one_that_is_known(
    that_day: tuple[int, list[tuple[int, int, float, int]]],
) -> None:
    read, jobs = that_day
    assert (read, len(jobs)) == (71_570, 3_022)
    assert Counter(gpus for *_, gpus in jobs) == {1: 2960, 2: 21, 4: 27, 8: 11, 16: 3}


@pytest.mark.parametrize(("gpus", "every", "used"), [(512, 1, 3022), (64, 8, 378)])
def test_the_account_of_the_real_day(
    trace: Path, that_day: tuple[int, list[tuple[int, int, float, int]]], gpus: int, every: int, used: int
) -> None:
    read, jobs = that_day
    kept = jobs[::every]
    account = philly.day(trace, gpus=gpus, every=every).account
    assert (account.read, account.used, len(kept)) == (read, used, used)
    left_out = dict(account.excluded)
    assert left_out.pop("submitted on another day than 2017-10-12") == read - 3022 == 68_548
    assert left_out == ({} if every == 1 else {"not in the sample of every 8th job": 2644})
    begins = [second - second % 1800 for second, *_ in kept]
    cut = [run > 86_400 - begin for begin, (_, _, run, _) in zip(begins, kept, strict=True)]
    assert dict(account.changed) == {
        "GPUs rounded up to a power of two": 0,  # all sizes of that day are powers of two already
        "hours cut to what is left of the day": sum(cut),
        "of these, longer than a whole day": sum(run > 86_400 for _, _, run, _ in kept),
        "known from the start of its step, before its submission": sum(
            second % 1800 > 0 for second, *_ in kept
        ),
    }
    if every == 1:
        assert sum(cut) == 387
    recorded = math.fsum(run * gpus for _, _, run, gpus in kept) / 3600
    within = math.fsum(
        min(run, 86_400 - begin) * gpus for begin, (_, _, run, gpus) in zip(begins, kept, strict=True)
    )
    assert [amount for _, amount, _ in account.amounts[:3]] == pytest.approx(
        [recorded, recorded, within / 3600]
    )


def test_each_job_of_the_real_day(
    whole: philly.PhillyDay, that_day: tuple[int, list[tuple[int, int, float, int]]]
) -> None:
    _, jobs = that_day
    for job, (second, row, run, gpus) in zip(whole.scenario.batch, jobs, strict=True):
        assert (job.name, job.gpus, job.priority) == (f"philly-row-{row:05d}", gpus, 1)
        assert job.earliest_hour == second // 1800 / 2
        assert job.hours == pytest.approx(min(run / 3600, 24 - job.earliest_hour))


@pytest.mark.parametrize("policy", POLICIES)
def test_every_policy_plans_the_sample_legally(sample: philly.PhillyDay, policy: str) -> None:
    made = plan(sample.scenario, policy, time_limit_s=1)
    assert made.check() == []
    assert made.figures["jobs_placed"] + made.figures["jobs_unplaced"] == 378  # type: ignore[operator]
    assert made.figures["jobs_placed"]


@pytest.mark.parametrize("policy", ["fifo", "aware"])
def test_all_jobs_are_planned_legally_on_512_gpus(whole: philly.PhillyDay, policy: str) -> None:
    made = plan(whole.scenario, policy)
    assert made.check() == []
    assert made.figures["jobs_placed"] + made.figures["jobs_unplaced"] == 3022  # type: ignore[operator]
    assert made.figures["utilization"] > 0.4  # type: ignore[operator]  # 6,253 of 12,288 GPU-hours are asked for


def test_the_whole_day_is_a_file_for_the_command_line(
    whole: philly.PhillyDay, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "philly.yaml"
    whole.scenario.save(path)
    again: AllocationScenario = load(path)
    assert again == whole.scenario
    assert again.fingerprint == whole.scenario.fingerprint
    assert cli.main(["compare", str(path)]) == 0
    assert "philly-2017-10-12-512-gpus" in capsys.readouterr().out
