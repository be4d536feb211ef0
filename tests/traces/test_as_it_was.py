"""What was done as a run: matching, cutting, placing, the same figures as a policy's, and what is said of it."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuplan.fairshare.check import check as violations
from gpuplan.fairshare.jobs import jobs as make_jobs
from gpuplan.fairshare.model import BudgetNode, FairshareScenario, Pool
from gpuplan.fairshare.run import Run, simulate
from gpuplan.inputs.errors import InputError
from gpuplan.jit import plain_copy
from gpuplan.traces import as_it_was_kernels, as_it_was_places
from gpuplan.traces.as_it_was import AS_IT_WAS, HONESTY, AsItWas, as_it_was, compare_as_it_was
from gpuplan.traces.as_it_was_places import peak, places
from gpuplan.traces.history import History, history
from gpuplan.traces.recorded import Recorded, read_recorded, recorded


def told(rows: Sequence[tuple[str, int, int, int, int]], **more: Any) -> History:
    """A history of rows: job, GPUs, submission, start, run time."""
    job, gpus, submit, start, ran = (list(column) for column in zip(*rows, strict=True))
    ends = [begin + length for begin, length in zip(start, ran, strict=True)]
    columns = {"state": "completed", "team": "x"} | more
    return history(
        "log.psv",
        np.arange(2, 2 + len(rows)),
        job=job,
        gpus=gpus,
        submit_s=submit,
        start_s=start,
        end_s=ends,
        elapsed_s=ran,
        **columns,
    )


def scenario(told_of: History, *pools: Pool, **more: Any) -> FairshareScenario:
    made = told_of.jobs()
    budget = tuple(BudgetNode(team) for team in dict.fromkeys(made.team.tolist()))
    return FairshareScenario("week", pools or (Pool(1, 8),), budget, jobs=made, **more)


#: c is preempted after 200 s and goes on; d waits 100 s although 10 of 16 GPUs are free.
ROWS = [
    ("a", 4, 1000, 1000, 100),
    ("b", 4, 1000, 1100, 200),
    ("c", 2, 1100, 1200, 200),
    ("c", 2, 1100, 1500, 100),
    ("d", 8, 1200, 1300, 100),
]
SAID = {
    "attempt": [1, 1, 1, 2, 1],
    "team": ["x", "x", "y", "y", "y"],
    "state": ["completed", "failed", "preempted", "completed", "completed"],
}


@pytest.fixture(scope="module")
def record() -> AsItWas:
    what = told(ROWS, **SAID)
    return as_it_was(scenario(what, Pool(2, 8)), what)


def test_the_figures_of_a_small_record(record: AsItWas) -> None:
    """Held: 4x100 + 4x200 + 2x300 + 8x100 = 2600 GPU-s of 16 GPUs x 600 s = 9600. Waits 0, 100, 100, 100."""
    found = record.figures
    assert found["occupancy"] == 2600 / 9600
    assert found["goodput"] == 2600 / 9600
    assert found["mean_wait_s"] == 75
    assert (found["wait_p50_s"], found["makespan_s"], found["jobs_finished"]) == (100, 600, 4)
    assert found["preemptions"] == 1
    assert record.jobs["preemptions"].tolist() == [0, 0, 1, 0]
    assert record.check() == []
    assert record.policy == AS_IT_WAS


def test_how_it_ended_is_told_beside(record: AsItWas) -> None:
    """Completed: 4x100 + 2x100 + 8x100 = 1400; failed 800; preempted 400 GPU-seconds."""
    table = record.endings.set_index("ended")
    assert (table["gpu_hours"] * 3600).round(6).to_dict() == {
        "completed": 1400,
        "failed": 800,
        "preempted": 400,
    }
    assert table["share"].sum() == pytest.approx(1)
    assert record.to_frame()["recorded_state"].tolist()[2] == "preempted"


def test_the_account_adds_up_and_the_start_is_found(record: AsItWas) -> None:
    assert (record.account.read, record.account.used) == (5, 5)
    assert "Second 0 of the scenario is 1970-01-01 00:16:40 of the record." in record.account.rules
    assert ("held by the jobs of the scenario", 2600 / 3600, "GPU-hours") in record.account.amounts


def test_why_says_what_was_free_and_no_more(record: AsItWas) -> None:
    """At 250 s b and c run on 4 + 2 of 16 GPUs, and d waits."""
    assert "while 10 of 16 were in no other job" in record.why("d", 250)
    assert record.why("d", 350) == "d ran."
    assert record.why("d", 100) == "d was not submitted yet."
    assert record.why("a", 500) == "a was over."


def test_it_stands_beside_the_policies_with_its_notes(record: AsItWas) -> None:
    what = told(ROWS, **SAID)
    both = compare_as_it_was(scenario(what, Pool(2, 8)), what, ["easy", "fair-share"])
    assert list(both.runs) == [AS_IT_WAS, "easy", "fair-share"]
    assert both.wide.loc["mean_wait_s"].tolist() == [75, 0, 0]
    assert set(HONESTY) <= set(both.remarks)
    assert any("Limits are known of 0 of 4 jobs" in remark for remark in both.remarks)
    assert all(remark in repr(both) for remark in both.remarks)
    assert both.record.fingerprint == record.fingerprint


def test_a_last_attempt_alone_leaves_the_others_lost() -> None:
    """With attempts="last" c needs 100 s: its first attempt of 2 GPUs x 200 s was for nothing."""
    what = told(ROWS, **SAID)
    plan = FairshareScenario(
        "week", (Pool(2, 8),), (BudgetNode("x"), BudgetNode("y")), jobs=what.jobs(attempts="last")
    )
    found = as_it_was(plan, what).figures
    assert found["lost_gpu_hours"] == 400 / 3600
    assert any(
        "1 stretches (0.1 GPU-hours) were followed by another" in note for note in as_it_was(plan, what).notes
    )
    assert found["goodput"] == (2600 - 400) / 9600


def test_attempts_as_jobs_of_their_own() -> None:
    what = told(ROWS, **SAID)
    plan = FairshareScenario(
        "week", (Pool(2, 8),), (BudgetNode("x"), BudgetNode("y")), jobs=what.jobs(attempts="each")
    )
    done = as_it_was(plan, recorded(what, attempts="each"))
    assert done.figures["jobs_finished"] == 5
    assert done.account.used == 5


# ----------------------------------------------------------------------------- the time of the scenario


def test_what_reaches_over_the_edges_is_cut() -> None:
    """From 1200 on for 250 s: b 4x100, c 2x200 and 0, d 8x100, of 16 x 250; a is over before, c's rest comes after."""
    what = told(ROWS, **SAID)
    inside = make_jobs(
        ["b", "c", "d"], [0, 0, 0], [4, 2, 8], [100, 300, 100], team=["x", "y", "y"], minimum_s=1
    )
    plan = FairshareScenario(
        "day", (Pool(2, 8),), (BudgetNode("x"), BudgetNode("y")), jobs=inside, until_s=250
    )
    done = as_it_was(plan, what, start_s=1200)
    assert done.figures["occupancy"] == (400 + 400 + 800) / 4000
    assert dict(done.account.excluded) == {
        "of no job of the scenario": 1,
        "began after the scenario ends": 1,
    }
    assert dict(done.account.changed)["cut at the start of the scenario"] == 1
    assert done.account.read == 5


def test_work_of_others_in_the_same_time_is_said() -> None:
    """Only d is asked for; meanwhile (from second 0 to 200) b holds 4x100 and c 2x200 - a is over."""
    what = told(ROWS, **SAID)
    only = make_jobs(["d"], [0], [8], [100], team="y")
    plan = FairshareScenario("part", (Pool(2, 8),), (BudgetNode("y"),), jobs=only)
    done = as_it_was(plan, what)
    assert done.account.amounts[1][1] == (4 * 100 + 2 * 200) / 3600
    assert any("are not in the scenario held 0.2 GPU-hours" in note for note in done.notes)


def test_a_job_without_a_stretch_waits_and_is_said() -> None:
    what = told(ROWS, **SAID)
    more = make_jobs(["a", "never"], [0, 10], [4, 1], [100, 60], team="x")
    plan = FairshareScenario("part", (Pool(2, 8),), (BudgetNode("x"),), jobs=more)
    done = as_it_was(plan, what)
    assert done.figures["waits_are_lower_bounds"] == 1
    assert any("1 of 2 jobs of the scenario have no stretch" in note for note in done.notes)


# ----------------------------------------------------------------------------- a cluster that is too small


def test_a_cluster_that_is_too_small_is_refused_with_the_instant() -> None:
    what = told([("a", 5, 0, 0, 100), ("b", 4, 0, 50, 100)])
    with pytest.raises(InputError, match="must have at least 9 GPUs: the record held so many at once, 50 s"):
        as_it_was(scenario(what), what)


@pytest.mark.parametrize(("pool", "gpus"), [(Pool(1, 8), 9), (Pool(2, 4), 12)])
def test_it_is_widened_where_that_is_asked_for(pool: Pool, gpus: int) -> None:
    what = told([("a", 5, 0, 0, 100), ("b", 4, 0, 50, 100)])
    both = compare_as_it_was(scenario(what, pool), what, ["easy"], widen=True)
    assert both["easy"].scenario.gpus == both.record.scenario.gpus == gpus
    assert any(f"it has {gpus} here, for the record and for every policy" in note for note in both.remarks)
    assert both.record.check() == []


def test_a_job_larger_than_the_stated_cluster_shows_that_it_is_too_small() -> None:
    what = told([("a", 16, 0, 0, 100)])
    with pytest.raises(InputError, match="at least 16 GPUs"):
        as_it_was(scenario(what), what)
    assert as_it_was(scenario(what), what, widen=True).figures["occupancy"] == 1


def test_types_have_to_fit_too() -> None:
    """Eight GPUs in all, but the record held 6 of the type of which 4 exist."""
    what = told([("a", 3, 0, 0, 100), ("b", 3, 0, 50, 100)], gpu_type="h100")
    pools = (Pool(1, 4, "a100"), Pool(1, 4, "h100"))
    with pytest.raises(InputError, match=r"room for 'b' of the record, 3 GPUs of type h100 50 s"):
        as_it_was(scenario(what, *pools), what)
    wide = as_it_was(scenario(what, *pools), what, widen=True)
    assert [pool.gpus for pool in wide.scenario.pools] == [4, 6]
    none = told([("a", 3, 0, 0, 100), ("b", 3, 0, 50, 100)], gpu_type=["h100", "v100"])
    done = as_it_was(scenario(none, *pools), none)
    assert done.account.excluded == (("of a job that no pool of this cluster can run, as it is stated", 1),)
    assert done.figures["jobs_set_aside"] == 1


def test_work_that_finds_no_node_is_spread_and_said() -> None:
    """Two nodes of 4 with 2 + 2 taken: a job of 4 GPUs fits only on both."""
    what = told([("a", 3, 0, 0, 100), ("b", 3, 0, 0, 100), ("c", 2, 0, 50, 10)])
    done = as_it_was(scenario(what, Pool(2, 4)), what)
    assert done.to_frame()["nodes"].tolist() == [1, 1, 2]
    assert any("1 of 3 stretches found none" in note for note in done.notes)


# ----------------------------------------------------------------------------- what cannot be shown


def test_a_history_without_starts_says_what_it_is_good_for() -> None:
    """Philly's table has submissions and run times only."""
    rows = history(
        "philly.csv", np.arange(2, 4), job=["1", "2"], gpus=1, submit_s=[5, 9], elapsed_s=10, state="unknown"
    )
    with pytest.raises(
        InputError, match=r"no row says when it started or ended \(2 rows are used\).*replayed"
    ):
        recorded(rows)


def test_another_file_is_told_by_its_names() -> None:
    what = told(ROWS, **SAID)
    other = FairshareScenario(
        "other", (Pool(2, 8),), (BudgetNode("everyone"),), jobs=make_jobs(["z"], [0], [1], [1])
    )
    with pytest.raises(InputError, match="must name jobs of the scenario"):
        as_it_was(other, what)


def test_submissions_that_disagree_ask_for_the_start() -> None:
    what = told([(name, 1, 100 * k, 100 * k, 10) for k, name in enumerate("abcd")])
    odd = make_jobs(list("abcd"), [0, 7, 99, 500], [1] * 4, [10] * 4, team="x")
    plan = FairshareScenario("odd", (Pool(1, 8),), (BudgetNode("x"),), jobs=odd)
    with pytest.raises(InputError, match="start_s: must be given"):
        as_it_was(plan, what)
    assert as_it_was(plan, what, start_s=0).account.used == 4


def test_times_that_contradict_the_submission_are_counted() -> None:
    what = told([("a", 1, 100, 100, 50), ("b", 1, 120, 110, 50)])
    done = as_it_was(scenario(what), what)
    assert dict(done.account.changed) == {
        "began before the submission that the scenario has: begin with it": 1
    }
    assert done.figures["mean_wait_s"] == 0


def test_a_job_in_two_places_at_once_is_a_contradiction() -> None:
    what = told([("a", 1, 0, 0, 100), ("a", 1, 0, 50, 100)], attempt=[1, 2])
    assert as_it_was(scenario(what), what).check() == [
        "Job 'a' from 50 to 150 s starts while it still runs elsewhere."
    ]


def test_names_stay_text() -> None:
    name = "<script>alert(1)</script>"
    what = told([(name, 4, 0, 0, 100)], team=name)
    both = compare_as_it_was(scenario(what), what, ["easy"])
    assert "<script>" not in both._repr_html_()


# ----------------------------------------------------------------------------- files of stretches


def test_a_file_of_stretches_is_the_record_again(tmp_path: Path) -> None:
    what = told(ROWS, **SAID)
    plan = scenario(what, Pool(2, 8))
    first = as_it_was(plan, what)
    for name in ("as-it-was.csv", "as-it-was.csv.gz"):
        first.recorded.write(tmp_path / name)
        once = (tmp_path / name).read_bytes()
        again = as_it_was(plan, read_recorded(tmp_path / name))
        assert again.figures == first.figures
        assert again.fingerprint == first.fingerprint
        first.recorded.write(tmp_path / name)
        assert (tmp_path / name).read_bytes() == once
    assert (tmp_path / "as-it-was.csv").read_text().splitlines()[:2] == [
        "job,team,gpus,submit_s,start_s,end_s,state,recorded_state",
        "a,x,4,0,0,100,finished,completed",
    ]


def test_a_file_is_read_strictly(tmp_path: Path) -> None:
    path = tmp_path / "bad.csv"
    path.write_text("job,gpus,start_s,end_s\na,1,5,3\n,0,x,9\n")
    with pytest.raises(InputError) as caught:
        read_recorded(path)
    assert [str(mistake) for mistake in caught.value.mistakes] == [
        "line 2, end_s: must not be before start_s (got 3)",
        "line 3, job: must be given",
        "line 3, gpus: must be at least 1 (got 0)",
        "line 3, start_s: must be a number (got 'x')",
    ]


def test_names_of_an_anonymised_scenario() -> None:
    what = told(ROWS, **SAID)
    codes = {name: f"job-{k}" for k, name in enumerate("abcd")}
    plan = scenario(what, Pool(2, 8))
    made = plan.jobs
    assert made is not None
    hidden = FairshareScenario(
        "hidden",
        plan.pools,
        plan.budget,
        jobs=made.changed(name=np.array([codes[name] for name in made.name], object)),
    )
    done = as_it_was(hidden, recorded(what).renamed(codes))
    assert done.figures == as_it_was(plan, what).figures


# ----------------------------------------------------------------------------- laws


@st.composite
def workloads(draw: st.DrawFn) -> FairshareScenario:
    n = draw(st.integers(1, 25))
    numbers = st.lists(st.integers(0, 60), min_size=n, max_size=n)
    sizes = draw(st.lists(st.sampled_from([1, 2, 3, 4, 6, 8]), min_size=n, max_size=n))
    runs = [run + 1 for run in draw(numbers)]
    teams = draw(st.lists(st.sampled_from(["x", "y"]), min_size=n, max_size=n))
    made = make_jobs([f"j{k}" for k in range(n)], draw(numbers), sizes, runs, team=teams, minimum_s=1)
    pool = draw(st.sampled_from([Pool(1, 8), Pool(2, 4), Pool(3, 4)]))
    until = draw(st.sampled_from([None, 50]))
    budget = (BudgetNode("x", 2.0), BudgetNode("y"))
    return FairshareScenario("law", (pool,), budget, jobs=made, until_s=until)


def as_record(run: Run) -> Recorded:
    frame = run.to_frame()
    columns = [frame[name].to_numpy() for name in ("gpus", "submit_s", "start_s", "end_s")]
    texts = [frame[name].to_numpy(object) for name in ("job", "team", "state")]
    return Recorded("run", *texts, *(column.astype(np.int64) for column in columns))


@settings(deadline=None, max_examples=40)
@given(workloads(), st.sampled_from(["fifo", "easy", "conservative"]))
def test_the_schedule_of_a_policy_read_back_has_its_figures(plan: FairshareScenario, policy: str) -> None:
    """As if the scheduler of that time had been the policy: the record has the policy's figures, one by one."""
    run = simulate(plan, policy)
    if not len(run.stretches):
        return
    done = as_it_was(run.scenario, as_record(run), start_s=0)
    if plan.until_s is None or done.end_s == run.end_s:
        assert done.figures == run.figures
    assert done.check() == []


@settings(deadline=None, max_examples=60)
@given(st.data())
def test_places_hold_what_was_held_and_no_node_holds_too_much(data: st.DataObject) -> None:
    n = data.draw(st.integers(0, 30))
    column = st.lists(st.integers(0, 40), min_size=n, max_size=n)
    start = np.array(data.draw(column), np.int64)
    end = start + np.array(data.draw(column), np.int64)
    gpus = np.array(data.draw(column), np.int64) % 6 + 1
    pool = Pool(data.draw(st.integers(1, 4)), data.draw(st.integers(1, 8)))
    found = places(start, end, gpus, np.ones(n, np.int64), (pool,))
    most, when = peak(start, end, gpus)
    assert most == max((int(gpus[(start <= t) & (t < end)].sum()) for t in range(81)), default=0)
    assert not most or int(gpus[(start <= when) & (when < end)].sum()) == most
    homeless = set(found.homeless.tolist())
    assert bool(homeless) == (most > pool.gpus)
    total = np.bincount(found.stretch, found.gpus, n)
    assert all(total[s] == (0 if s in homeless else gpus[s]) for s in range(n))
    for t in range(81):
        there = (start[found.stretch] <= t) & (t < end[found.stretch])
        assert (np.bincount(found.node[there], found.gpus[there], pool.nodes) <= pool.gpus_per_node).all()


def test_the_same_places_without_a_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(5)
    start = rng.integers(0, 400, 300)
    end, gpus = start + rng.integers(0, 60, 300), rng.integers(1, 12, 300)
    mask = rng.integers(1, 4, 300)
    pools = (Pool(5, 8, "a"), Pool(9, 4, "b"))
    compiled = places(start, end, gpus, mask, pools)
    monkeypatch.setattr(as_it_was_places, "place", plain_copy(as_it_was_kernels).place)
    plain = places(start, end, gpus, mask, pools)
    for name in ("stretch", "node", "gpus", "homeless", "split"):
        assert np.array_equal(getattr(compiled, name), getattr(plain, name))
    assert len(compiled.homeless)
    assert len(compiled.split)


def test_rules_of_policies_are_not_held_against_a_record(record: AsItWas) -> None:
    """The checker of policies would object to an attempt that goes on; that of a record does not."""
    assert violations(record.problem, "easy", record.raw)
    assert record.violations == 0


#: Longer runs: GPUPLAN_EXAMPLES=50 reads fifty times as many files.
MORE = int(os.environ.get("GPUPLAN_EXAMPLES", "1"))

CELLS = st.sampled_from(
    [
        "a",
        "b",
        "",
        "0",
        "1",
        "-1",
        "7",
        "9" * 30,
        "1e3",
        "1.5",
        "x",
        "nan",
        "inf",
        "=1+1",
        "ü",
        "\x00",
        '"',
        ",",
        "\n",
        "\r",
    ]
)


@settings(deadline=None, max_examples=60 * MORE)
@given(st.lists(st.lists(CELLS, min_size=1, max_size=6), max_size=6), st.booleans())
def test_whatever_a_file_of_stretches_holds_there_is_no_traceback(
    tmp_path_factory: pytest.TempPathFactory, lines: list[list[str]], header: bool
) -> None:
    path = tmp_path_factory.mktemp("fuzz") / "x.csv"
    text = "job,gpus,start_s,end_s\n" if header else ""
    path.write_bytes((text + "\n".join(",".join(line) for line in lines)).encode())
    try:
        found = read_recorded(path)
    except InputError:
        return
    assert (found.end_s >= found.start_s).all()
    assert (found.gpus >= 1).all()


@pytest.mark.parametrize(
    "body", [b"", b"%PDF-1.7 \xff", b"job,gpus,start_s,end_s\n", b"\xff\xfej\x00", b"job;gpus\na;1\n"]
)
def test_files_that_are_no_stretches(tmp_path: Path, body: bytes) -> None:
    path = tmp_path / "x.csv"
    path.write_bytes(body)
    with pytest.raises(InputError):
        as_it_was(
            FairshareScenario("s", (Pool(1, 8),), (BudgetNode("x"),), jobs=told_jobs()), read_recorded(path)
        )
    with pytest.raises(InputError):
        read_recorded(tmp_path)


def told_jobs() -> Any:
    return make_jobs(["a"], [0], [1], [1], team="x")
