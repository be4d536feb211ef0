"""The bench frame: the ratio to the target, and a wrong answer that does not pass."""

import hashlib
import json

import pytest

from gpuplan.benchmarks import all_entries, fairshare
from gpuplan.benchmarks.allocation import made_up
from gpuplan.benchmarks.frame import Finding, Measure, as_table, duration, fastest, measured
from gpuplan.benchmarks.quality import published_table, yardstick
from gpuplan.cli import main
from gpuplan.inputs.errors import InputError, Mistake
from gpuplan.loading import load


def wrong() -> float:
    raise AssertionError("4 is not 5")


ENTRIES = (Measure("half", lambda: 0.0005, 0.001), Measure("free", lambda: 2.0), Measure("bad", wrong, 1.0))


def test_ratio_is_measured_over_target() -> None:
    half, free, bad = measured(ENTRIES)
    assert (half.figure, half.target, half.ratio, half.wrong) == (0.0005, 0.001, 0.5, None)
    assert (free.figure, free.target, free.ratio) == (2.0, None, None)
    assert (bad.figure, bad.ratio, bad.wrong) == (None, None, "4 is not 5")


def test_ratio_of_a_share_is_what_lacks_over_what_may_lack() -> None:
    near, never = measured(
        (
            Measure("near", lambda: Finding(0.995, "beside"), 0.99, "share"),
            Measure("never", lambda: Finding(None, "not within 1 s")),
        )
    )
    assert near.ratio == pytest.approx(0.5)
    assert as_table([near, never]).splitlines()[1].split() == ["near", "99.50%", "99.00%", "0.50", "beside"]
    assert (never.figure, never.ratio, never.wrong) == (None, None, None)
    assert as_table([never]).splitlines()[1].split() == ["never", "not", "within", "1", "s"]


def test_table_shows_units_and_the_wrong_answer() -> None:
    lines = as_table(measured(ENTRIES)).splitlines()
    assert lines[0].split() == ["measure", "measured", "target", "ratio"]
    assert lines[1].split() == ["half", "500", "µs", "1", "ms", "0.50"]
    assert lines[2].split() == ["free", "2", "s"]
    assert lines[3].split() == ["bad", "WRONG", "1", "s", "4", "is", "not", "5"]


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(None, ""), (0.0000153, "15.3 µs"), (0.1, "100 ms"), (3.14159, "3.14 s"), (2e-9, "0.002 µs")],
)
def test_duration_reads_well(seconds: float | None, text: str) -> None:
    assert duration(seconds) == text


def test_fastest_counts_no_first_call() -> None:
    calls: list[int] = []
    assert 0 < fastest(lambda: calls.append(1), budget_s=0, at_least=1) < 1e-3
    assert len(calls) > 2


def test_bench_exits_with_one_where_an_answer_is_wrong(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("gpuplan.benchmarks.all_entries", lambda: ENTRIES[:2])
    assert main(["bench", "--json"]) == 0
    records = json.loads(capsys.readouterr().out)
    assert [record["name"] for record in records] == ["half", "free"]
    assert records[0]["ratio"] == 0.5
    monkeypatch.setattr("gpuplan.benchmarks.all_entries", lambda: ENTRIES)
    assert main(["bench"]) == 1
    assert "WRONG" in capsys.readouterr().out


def test_bench_runs_only_what_is_asked_for(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("gpuplan.benchmarks.all_entries", lambda: ENTRIES)
    assert main(["bench", "--only", "hal", "--json"]) == 0
    assert [record["name"] for record in json.loads(capsys.readouterr().out)] == ["half"]
    assert main(["bench", "--only", "nothing"]) != 0
    assert "no measure has 'nothing' in its name" in capsys.readouterr().err


def test_published_table_repeats_and_keeps_gaps_where_nothing_was_published() -> None:
    table = published_table(iterations=50, proofs=False)
    assert table.equals(published_table(iterations=50, proofs=False))
    assert len(table) == 7
    assert (abs(table["fifo"] - table["fifo_published"]).dropna() <= 0.003).all()
    assert table["gain_published"].notna().sum() == 3
    assert (table["gap_search"] >= 0).all()
    assert (table["gain_search"] >= table["gain_aware"]).all()
    assert (table["gain_bound"] >= table["gain_search"]).all()
    assert not table["closed"].any()


def test_without_a_solver_the_bound_by_prices_stands_in(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(problem: object, effort: object) -> None:
        raise InputError("exact", [Mistake("ortools", "is missing")])

    monkeypatch.setattr("gpuplan.allocation.exact.solve.solve", missing)
    known = yardstick.__wrapped__(made_up(8, 6, 3))
    assert not known.closed
    assert known.best <= known.bound
    assert "bound by prices alone" in known.source


def test_a_closed_yardstick_is_its_own_bound() -> None:
    known = yardstick.__wrapped__(made_up(8, 6, 3))
    assert known.closed
    assert known.best == known.bound


@pytest.mark.parametrize(("gpus", "steps", "jobs"), [(64, 24, 30), (16, 48, 200), (1024, 48, 300)])
def test_made_up_days_are_valid_scenarios_and_repeat(gpus: int, steps: int, jobs: int) -> None:
    scenario = made_up(gpus, steps, jobs)
    assert load(scenario.to_dict()) == scenario == made_up(gpus, steps, jobs)
    wanted = sum(job.gpus * job.hours for job in scenario.batch)
    assert 1 <= wanted / (gpus * 24) <= 2.5


def test_the_table_has_the_sizes_of_the_targets() -> None:
    entries = {entry.name: entry.target for entry in all_entries()}
    assert entries["import gpuplan, fresh process"] == 0.1
    assert entries["kernel of aware, training-rush"] == 20e-6
    assert entries["plan with figures, 1024 GPUs x 48 steps, 5000 jobs"] == 0.1
    assert sum(name.startswith("growth") for name in entries) >= 8


def test_kernel_and_plan_are_measured_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where this process has compiled nothing yet."""
    from gpuplan.allocation import engine
    from gpuplan.benchmarks import allocation

    monkeypatch.setattr(engine, "_ready", False)
    monkeypatch.setattr(engine.jit, "cache_folder", lambda kernel: None)  # plain Python, but for the bench
    monkeypatch.setattr(allocation, "fastest", lambda call: call() and 1.0)
    measured = allocation._of_kernel(lambda: allocation.made_up(8, 6, 3))
    assert measured == 1.0
    assert engine.compiled()


def test_the_table_has_the_targets_of_fair_share() -> None:
    targets = {entry.name.removeprefix("fair share: "): entry.target for entry in all_entries()}
    assert targets["kernel of fifo, 100,000 jobs"] == 0.01
    assert targets["kernel of easy, 100,000 jobs"] == 0.04
    assert targets["kernel of fifo, 1,300,000 jobs"] == 0.3
    assert targets["kernel of easy, 1,300,000 jobs"] == 2.0
    assert targets["read SWF, 1,000,000 lines"] == 2.0
    assert targets["budgets, 30 days, 15 teams, 512 GPUs, load 1.1"] == 0.1
    assert targets["budgets, 30 days, 15 teams, 1,024 GPUs, load 2.5"] == 1.5


def test_the_log_of_the_table_is_the_one_of_the_published_answers() -> None:
    text = fairshare.log_text(10_000, fairshare.ANSWERS[10_000][0])
    assert hashlib.md5(text.encode()).hexdigest() == "dd0a5d4471bc7f3a3b8eb890237cb1d2"


def test_a_wrong_answer_of_a_log_does_not_pass() -> None:
    right = {"jobs_finished": 10_000, "mean_wait_s": 13238.6563}
    fairshare._assert_answer("fifo", 10_000, right)
    with pytest.raises(AssertionError, match=r"not 4476\.05 s"):
        fairshare._assert_answer("easy", 10_000, right)
