"""What was known at submission: hand-sized cases, a naive oracle, and no look into the future."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuplan.forecast.duration_history import (
    COMMON_FROM,
    COUNTED_TO,
    common_names,
    first_known,
    known_at_submission,
    look_back,
    matrix,
    past,
)
from gpuplan.forecast.duration_table import read_history


def jobs_of(*rows: tuple[float, float, str | None]) -> pd.DataFrame:
    """Jobs of one GPU by submission, run time and user."""
    table = pd.DataFrame(rows, columns=["submit_s", "duration_s", "user"]).assign(gpus=1)
    return read_history(table)[0]


def test_only_own_jobs_that_had_ended_count() -> None:
    """At 100, a's jobs of 10 s and 30 s had ended (at 10 and 50), the one of 90 s had not (20 + 90 = 110)."""
    jobs = jobs_of((0, 10, "a"), (20, 30, "a"), (20, 90, "a"), (30, 5, "b"), (100, 1, "a"))
    own = known_at_submission(jobs, jobs, (0.5, 0.9)).own
    assert own.count.tolist() == [0, 1, 1, 0, 2]
    assert own.last[-1] == 30
    assert own.quantiles[-1].tolist() == [20, 28]  # 10 + 0.5 x 20, 10 + 0.9 x 20
    assert np.isnan(own.quantiles[0]).all()


def test_a_job_that_ends_in_the_moment_of_submission_does_not_count_yet() -> None:
    jobs = jobs_of((0, 10, "a"), (10, 5, "a"), (10.5, 5, "a"))
    assert known_at_submission(jobs, jobs, (0.5,)).own.count.tolist() == [0, 0, 1]


def test_a_wait_delays_when_a_job_becomes_history() -> None:
    table = pd.DataFrame(
        {"submit_s": [0, 50], "duration_s": [10, 10], "wait_s": [45, 0], "gpus": 1, "user": "a"}
    )
    jobs, _ = read_history(table)
    assert known_at_submission(jobs, jobs, (0.5,)).own.count.tolist() == [0, 0]
    jobs, _ = read_history(table.drop(columns="wait_s"))
    assert known_at_submission(jobs, jobs, (0.5,)).own.count.tolist() == [0, 1]


def test_an_unknown_user_has_no_history_not_that_of_the_other_unknown_ones() -> None:
    jobs = jobs_of((0, 10, None), (20, 10, None), (40, 10, "a"), (60, 10, "a"))
    assert known_at_submission(jobs, jobs, (0.5,)).own.count.tolist() == [0, 0, 0, 1]


def test_names_have_a_history_of_their_own_within_a_user() -> None:
    table = pd.DataFrame(
        {"submit_s": [0, 0, 0, 100], "duration_s": [10, 20, 40, 1], "gpus": 1, "user": ["a", "a", "b", "a"]}
    ).assign(name=["train", "eval", "train", "train"])
    jobs, _ = read_history(table)
    features = known_at_submission(jobs, jobs, (0.5,)).features
    assert features["same_name_median_s"].iloc[-1] == 10
    assert features["own_median_s"].iloc[-1] == 15


@given(
    st.lists(st.tuples(st.integers(0, 30), st.integers(1, 15), st.integers(-1, 2)), max_size=25),
    st.lists(st.tuples(st.integers(0, 40), st.integers(-1, 3)), min_size=1, max_size=10),
)
def test_looking_back_agrees_with_asking_every_job(
    rows: list[tuple[int, int, int]], asked: list[tuple[int, int]]
) -> None:
    shares = (0.1, 0.5, 0.9)
    jobs = pd.DataFrame(rows, columns=["at_s", "run_s", "key"]).astype(float)
    jobs["end_s"] = jobs["at_s"] + jobs["run_s"]
    found = past(
        jobs["key"].to_numpy(np.int64),
        jobs,
        np.array([key for _, key in asked]),
        np.array([at for at, _ in asked], float),
        shares,
    )
    for place, (at, key) in enumerate(asked):
        mine = jobs[(jobs["key"] == key) & (jobs["end_s"] < at) & (key >= 0)]
        assert found.count[place] == len(mine)
        if len(mine):
            np.testing.assert_allclose(found.quantiles[place], np.quantile(mine["run_s"], shares))
            latest = mine[mine["end_s"] == mine["end_s"].max()]
            assert found.last[place] == latest["run_s"].max()  # of those that ended together, the longest


@settings(max_examples=20)
@given(
    st.lists(st.tuples(st.integers(0, 20), st.integers(1, 20)), min_size=2, max_size=20), st.integers(1, 50)
)
def test_how_long_unfinished_jobs_go_on_changes_nothing(rows: list[tuple[int, int]], longer: int) -> None:
    now = 15
    table = pd.DataFrame(rows, columns=["submit_s", "duration_s"]).assign(gpus=1, user="a")
    asked, _ = read_history(pd.DataFrame({"submit_s": [now], "duration_s": 1, "gpus": 1, "user": "a"}))
    running = table["submit_s"] + table["duration_s"] >= now
    other = table.assign(duration_s=table["duration_s"] + longer * running)
    first, second = (known_at_submission(read_history(t)[0], asked, (0.5,)).features for t in (table, other))
    pd.testing.assert_frame_equal(first, second)


def test_fallbacks_take_the_first_that_is_known() -> None:
    unknown = np.nan
    found = first_known(np.array([1, unknown, unknown]), np.array([2.0, 2, unknown]), np.array([3.0, 3, 3]))
    assert found.tolist() == [1, 2, 3]


def test_looking_back_over_all_jobs_needs_no_key() -> None:
    jobs = jobs_of((0, 10, "a"), (20, 30, None), (100, 1, "b"))
    assert look_back(jobs, jobs, [], (0.5,)).quantiles[-1].tolist() == [20]


def test_hour_and_weekday_follow_the_clock_of_the_place() -> None:
    """1970-01-01 was a Thursday; the weekday is a number of seven, whichever is the first."""
    table = pd.DataFrame(
        {"submit": ["1970-01-01T23:30:00", "1970-01-09T06:00:00"], "duration_s": 1, "gpus": 1}
    )
    features = known_at_submission(*[read_history(table)[0]] * 2, (0.5,)).features
    assert features["hour"].tolist() == [23.5, 6]
    assert features["weekday"].tolist() == [0, 1]


def test_rare_and_new_names_share_a_number_and_unknown_ones_have_none() -> None:
    names = ["a"] * (COMMON_FROM + 1) + ["b"] * COMMON_FROM + ["c"] * (COMMON_FROM - 1) + [None]
    features = pd.DataFrame({"user": names, "team": None, "cluster": None}, dtype=object)
    common = common_names(features)
    assert common["user"] == {"a": 0, "b": 1}
    asked = pd.DataFrame({"user": ["b", "c", "new", None]}, dtype=object)
    np.testing.assert_array_equal(matrix(asked, common, ["user"])[:, 0], [1, 2, 2, np.nan])


def test_an_unknown_user_stays_unknown_from_the_table_to_the_numbers() -> None:
    jobs = jobs_of((0, 10, "a"), (1, 10, None))
    features = known_at_submission(jobs, jobs, (0.5,)).features
    np.testing.assert_array_equal(matrix(features, {"user": {"a": 0}}, ["user"])[:, 0], [0, np.nan])


@pytest.mark.parametrize("number", [COUNTED_TO, COUNTED_TO + 50])
def test_the_count_of_own_jobs_is_no_calendar(number: int) -> None:
    jobs = jobs_of(*((at, 0.5, "a") for at in range(number + 1)))
    known = known_at_submission(jobs, jobs, (0.5,))
    assert known.features["own_jobs"].max() == COUNTED_TO
    assert known.own.count.max() == number  # what is shown to people is not cut
