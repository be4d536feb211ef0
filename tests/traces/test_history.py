"""The common table of recorded jobs: unknown is a value of its own, sums are exact, and the account adds up."""

from typing import Any

import numpy as np
import pytest

from gpuplan.fairshare.model import NEVER
from gpuplan.inputs.errors import InputError, Mistake
from gpuplan.traces.history import (
    NO_LIMIT,
    REASONS,
    STEP,
    UNKNOWN,
    UNREADABLE,
    History,
    exact_sum,
    history,
    types_of,
)
from gpuplan.traces.history_jobs import replay


def made(**columns: Any) -> History:
    """Job a ran twice (2 GPUs: 10 s, then 20 s), b still runs (8 GPUs, 30 s so far), c waits, d never started."""
    given: dict[str, Any] = {
        "job": ["a", "a", "b", "c", "d"],
        "attempt": [1, 2, 1, 1, 1],
        "team": ["t", "t", "u", "u", ""],
        "submit_s": [100, 150, 107, 109, 100],
        "start_s": [105, 160, 109, UNKNOWN, UNKNOWN],
        "end_s": [115, 180, UNKNOWN, UNKNOWN, 200],
        "elapsed_s": [10, 20, 30, 0, 0],
        "limit_s": [15, 15, NO_LIMIT, UNKNOWN, 5],
        "gpus": [2, 2, 8, 1, 0],
        "state": ["preempted", "completed", "running", "pending", "cancelled"],
        "as_of_s": 139,
    }
    return history("x.txt", np.arange(2, 7), **(given | columns))


def test_sums_and_groups() -> None:
    found = made()
    assert found.n_jobs == 4
    assert repr(found) == "History of x.txt: 4 jobs in 5 rows used, 0 left out, 0.1 GPU-hours held"
    assert found.gpu_seconds == 2 * 10 + 2 * 20 + 8 * 30
    assert found.gpu_seconds_by("team") == {"": 0, "t": 60, "u": 240}
    assert found.job[found.running].tolist() == ["b"]
    assert found.job[found.waiting].tolist() == ["c"]
    assert found.job[found.never_started].tolist() == ["d"]
    assert found.wait_s.tolist() == [5, 10, 2, 30, UNKNOWN]
    assert found.mean_wait_s == 17 / 3
    assert found.span_s == (100, 139)
    assert found.unknown("limit_s") == 1
    assert found.unknown("team") == 1
    assert found.unknown("gpu_share") == 5


def test_jobs_taken_together() -> None:
    table = made().by_job().set_index("job")
    assert table.attempts.to_dict() == {"a": 2, "b": 1, "c": 1, "d": 1}
    assert table.state.to_dict() == {"a": "completed", "b": "running", "c": "pending", "d": "cancelled"}
    assert table.loc[
        "a", ["first_wait_s", "wait_s", "turnaround_s", "gpu_seconds", "lost_gpu_seconds"]
    ].tolist() == [
        5,
        15,
        80,
        60,
        20,
    ]
    assert table.turnaround_s.isna().to_dict() == {"a": False, "b": True, "c": True, "d": False}
    assert table.gpu_seconds.isna().to_dict() == {"a": False, "b": False, "c": True, "d": False}


@pytest.mark.parametrize(
    ("attempts", "names", "run", "limit"),
    [
        ("sum", ["a", "b"], [30, 30], [30, NEVER]),
        ("last", ["a", "b"], [15, 30], [15, NEVER]),
        ("each", ["a", "b", "a/attempt-2"], [10, 30, 15], [15, NEVER, 15]),
    ],
)
def test_a_replay(attempts: Any, names: list[str], run: list[int], limit: list[int]) -> None:
    """Limits are 15 s an attempt, so the second one (20 s) is cut where it stands alone."""
    found = replay(made(), attempts=attempts)
    assert found.jobs.name.tolist() == names
    assert found.jobs.run_s.tolist() == run
    assert found.jobs.limit_s.tolist() == limit
    assert found.zero_s == 100
    assert found.account.read == 5 == found.account.used + sum(n for _, n in found.account.excluded)
    reasons = [text.split(" (")[0] for text, _ in found.account.excluded]
    assert reasons == ["waits: how long it will run is not known", "never started"]
    assert replay(made(), zero_s=50).jobs.submit_s.tolist() == [50, 57]


def test_what_ran_as_it_was() -> None:
    table = made().stretches()
    assert table.job.tolist() == ["a", "b", "a"]
    assert table.start_s.tolist() == [105, 109, 160]
    assert table.end_s.tolist() == [115, 139, 180]
    assert table.running.tolist() == [False, True, False]


def test_a_start_is_reckoned_from_the_end_where_it_is_not_told() -> None:
    found = history("x", np.array([1]), end_s=[100], elapsed_s=[30], gpus=[1], state="completed")
    assert found.stretches()[["start_s", "end_s"]].to_numpy().tolist() == [[70, 100]]


def test_a_table_shows_what_is_unknown_as_such() -> None:
    table = made().to_frame()
    assert table.limit_s.isna().tolist() == [False, False, True, True, False]
    assert table.no_limit.tolist() == [False, False, True, False, False]
    assert table.priority.isna().all()
    every = made(reason=np.array([0, 0, 0, 0, STEP])).to_frame(every=True)
    assert every.left_out.tolist() == ["", "", "", "", REASONS[STEP]]


def test_mistakes_are_an_error_or_are_left_out_and_counted() -> None:
    mistakes = [Mistake("line 4, gpus", "must be a number", "eight", 4)]
    with pytest.raises(InputError, match="line 4, gpus: must be a number"):
        made(mistakes=mistakes)
    found = made(mistakes=mistakes, strict=False)
    assert found.reason.tolist() == [0, 0, UNREADABLE, 0, 0]
    assert (found.account.read, found.account.used) == (5, 4)
    assert found.account.excluded == (("cannot be read (line 4)", 1),)
    assert found.gpu_seconds == 60


def test_records_that_are_no_rows_count_as_read() -> None:
    found = made(excluded=[("the header again (line 9)", 1)])
    assert (found.account.read, found.account.used) == (6, 5)


def test_columns_are_read_only_and_unknown_names_are_refused() -> None:
    with pytest.raises(ValueError, match="read-only"):
        made().gpus[0] = 3
    with pytest.raises(TypeError, match="no such columns of a history: gpuz"):
        made(gpuz=1)


def test_nothing_at_all() -> None:
    found = history("x", np.empty(0, np.int64))
    assert (found.n_jobs, found.gpu_seconds, found.span_s) == (0, 0, None)
    assert len(found.jobs()) == len(found.by_job()) == len(found.stretches()) == len(found.to_frame()) == 0


def test_sums_of_any_size() -> None:
    values = np.array([2**62, 2**62, 2**62, 1], np.int64)
    assert exact_sum(values) == 3 * 2**62 + 1


def test_types() -> None:
    assert types_of("", 3) == {"unknown": 3}
    assert types_of("a100", 3) == {"a100": 3}
    assert types_of("a100:2,h100:1", 4) == {"a100": 2, "h100": 1, "unknown": 1}
