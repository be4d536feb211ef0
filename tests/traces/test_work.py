"""The work of a span: what was submitted in it, the rest of what ran at its start, each row with a reason or a job."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuplan.traces import work as w
from gpuplan.traces.history import NO_LIMIT, UNKNOWN, history

HOUR = 3600


def rows(*columns):
    """A history of rows (job, submit, start, elapsed, gpus[, state[, limit]]), in hours; None: not known."""

    def hours(value):
        return UNKNOWN if value is None else round(value * HOUR)

    full = [(*row, *("completed", None)[len(row) - 5 :]) for row in columns]
    seen = {}
    attempt = []
    for job, *_ in full:
        seen[job] = seen.get(job, 0) + 1
        attempt.append(seen[job])
    return history(
        "test",
        np.arange(2, len(full) + 2),
        job=[row[0] for row in full],
        attempt=attempt,
        submit_s=[hours(row[1]) for row in full],
        start_s=[hours(row[2]) for row in full],
        elapsed_s=[hours(row[3]) for row in full],
        gpus=[UNKNOWN if row[4] is None else row[4] for row in full],
        state=[row[5] for row in full],
        limit_s=[hours(row[6]) for row in full],
    )


def table(work):
    """Jobs as (name, submission, GPUs, run time, limit), in hours."""
    limits = [None if limit == NO_LIMIT else limit / HOUR for limit in work.limit_s.tolist()]
    names = work.history.job[work.row].tolist()
    columns = (
        names,
        (work.submit_s / HOUR).tolist(),
        work.gpus.tolist(),
        (work.run_s / HOUR).tolist(),
        limits,
    )
    return list(zip(*columns, strict=True))


def test_jobs_of_a_span_are_those_submitted_in_it_and_the_rest_of_what_is_not_over():
    """A span from 10 h to 20 h; each job has 2 GPUs and a limit of 8 h."""
    past = rows(
        ("over", 1, 2, 8, 2, "completed", 8),  # ends at 10: not in the span
        ("runs", 5, 6, 7, 2, "completed", 8),  # from 6 to 13: 3 h are left, and 4 h of the limit
        ("waits", 8, 12, 1, 2, "completed", 8),  # waited at 10: all of its hour
        (
            "inside",
            12,
            13,
            20,
            2,
            "completed",
            8,
        ),  # its own run time, beyond the end of the span and of its limit
        ("last", 19.5, None, 2, 2, "completed", 8),  # when it ran is not known, but it came in the span
        ("later", 20, 21, 1, 2, "completed", 8),
    )
    work = w.work_of(past, 10 * HOUR, 20 * HOUR)
    assert table(work) == [
        ("runs", 0, 2, 3, 4),
        ("waits", 0, 2, 1, 8),
        ("inside", 2, 2, 20, 8),
        ("last", 9.5, 2, 2, 8),
    ]
    assert work.carried.tolist() == [True, True, False, False]
    # started 4 h before the span, 2 h after its beginning, 3 h after it, nobody knows
    assert work.recorded_s.tolist() == [-4 * HOUR, 2 * HOUR, 3 * HOUR, w.NOT_RECORDED]
    assert work.why.tolist() == [w.BEFORE, "", "", "", "", w.AFTER]
    assert work.gpu_seconds == 2 * (3 + 1 + 20 + 2) * HOUR


def test_work_from_before_can_be_left_out():
    past = rows(("runs", 5, 6, 7, 2), ("inside", 12, 13, 1, 2))
    work = w.work_of(past, 10 * HOUR, 20 * HOUR, before=False)
    assert table(work) == [("inside", 2, 2, 1, None)]
    assert work.excluded == ((f"{w.CARRIED} (line 2)", 1),)


def test_attempts_of_a_job_are_one_job_with_their_time_together():
    """Submitted at 8; runs from 9 to 10 and is preempted, from 11 to 13 a node fails, from 14 to 18."""
    past = rows(
        ("8801", 8, 9, 1, 8, "preempted", 5),
        ("8802", 8, 8.5, 1, 2),
        ("8801", 10, 11, 2, 8, "node_fail", 5),
        ("8801", 13, 14, 4, 8, "completed", 5),
    )
    whole = w.work_of(past, 0, 24 * HOUR)
    assert table(whole) == [("8801", 8, 8, 7, 15), ("8802", 8, 2, 1, None)]
    assert whole.attempts.tolist() == [3, 1]
    late = w.work_of(past, 12 * HOUR, 24 * HOUR)  # 1 h of the second attempt, 4 h of the third
    assert table(late) == [("8801", 0, 8, 5, 5 - 1 + 5)]
    assert late.why.tolist() == ["", w.BEFORE, "", ""]


def test_every_reason_has_its_row():
    past = rows(
        ("pending", 1, None, None, 2, "pending"),
        ("cancelled", 1, None, 0, 2, "cancelled"),
        ("nobody knows", None, None, 1, 2),
        ("gpus", 1, 1, 1, None),
        ("cpu", 1, 1, 1, 0),
        ("huge", 1, 1, 1, 10_000_001),
        ("run", 1, 1, None, 2),
        ("start", None, 1, 1, 2),  # no submission, but a start: that counts
        ("at once", 1, 1, 0, 2),  # a job of 0 s is one
        ("open", 1, 1, 1, 2, "running"),
    )
    work = w.work_of(past, 0, 24 * HOUR)
    assert work.why.tolist() == [
        w.WAITS,
        w.NEVER_STARTED,
        w.NO_SUBMISSION,
        w.NO_GPUS,
        w.ZERO_GPUS,
        w.TOO_MANY_GPUS,
        w.NO_RUN,
        "",
        "",
        "",
    ]
    assert table(work) == [("start", 1, 2, 1, None), ("at once", 1, 2, 0, None), ("open", 1, 2, 1, None)]
    assert work.open.tolist() == [False, False, True]


def test_what_ended_before_and_has_no_start_is_not_guessed():
    past = rows(("a", 5, None, 100, 2), ("b", 11, None, 1, 2))
    work = w.work_of(past, 10 * HOUR, 20 * HOUR)
    assert work.why.tolist() == [w.BEFORE_UNPLACED, ""]


def test_at_once_is_the_highest_instant_and_a_hand_over_is_no_peak():
    assert w.at_once(rows(("a", 0, 0, 2, 4), ("b", 0, 2, 1, 4), ("c", 0, 1, 1, 1))) == 5
    assert w.at_once(rows(("a", 0, None, 2, 4))) == 0


_MAYBE = st.one_of(st.none(), st.integers(0, 60))


@settings(deadline=None, max_examples=60)
@given(
    st.lists(
        st.tuples(
            st.sampled_from("abcdef"),
            _MAYBE,
            _MAYBE,
            _MAYBE,
            st.one_of(st.none(), st.integers(0, 9)),
            st.sampled_from(["completed", "pending", "running", "cancelled", "preempted"]),
            _MAYBE,
        ),
        max_size=12,
    ),
    st.integers(0, 40),
    st.integers(1, 30),
    st.booleans(),
)
def test_every_row_is_in_a_job_or_has_a_reason(columns, first, length, before):
    past = rows(*columns)
    work = w.work_of(past, first * HOUR, (first + length) * HOUR, before=before)
    assert int(work.attempts.sum()) + sum(count for _, count in work.excluded) == len(past)
    assert int(work.attempts.sum()) == (work.why == "").sum()
    names = past.job[work.row].tolist()
    assert len(set(names)) == len(names)
    assert (work.run_s >= 0).all()
    assert (work.submit_s >= 0).all()
    assert (work.submit_s < length * HOUR).all()
    assert (np.diff(work.submit_s) >= 0).all()
    recorded = sum((past.gpus * past.elapsed_s)[(past.gpus > 0) & (past.elapsed_s > 0)].tolist())
    assert work.gpu_seconds <= recorded or len(set(past.gpus.tolist())) > 1  # attempts may differ in GPUs
    whole = w.work_of(past, 0, 1000 * HOUR)
    assert set(names) <= set(past.job[whole.row].tolist())


@pytest.mark.parametrize("every", [1, 2, 3, 7])
def test_a_sample_takes_every_so_manieth_job_and_counts_the_others(every):
    past = rows(*((f"j{k}", k, k, 1, 1) for k in range(10)), ("j3", 4, 5, 1, 1))
    work = w.sampled(w.work_of(past, 0, 100 * HOUR), every)
    names = work.history.job[work.row].tolist()
    assert names == [f"j{k}" for k in range(0, 10, every)]
    assert int(work.attempts.sum()) + sum(count for _, count in work.excluded) == 11
