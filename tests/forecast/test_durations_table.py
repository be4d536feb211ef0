"""Job tables at the border: what is read, what is left out and why, and all mistakes at once."""

from decimal import Decimal

import numpy as np
import pandas as pd
import pytest

from gpuplan.forecast.duration_account import DurationAccount
from gpuplan.forecast.duration_table import group_of, read_history, read_rows
from gpuplan.forecast.durations import fit_durations
from gpuplan.inputs.errors import InputError


def test_every_row_is_used_or_left_out_for_one_reason() -> None:
    table = pd.DataFrame(
        {
            "submit_s": [0, "soon", None, 10, 20, 30, 40, 50, 60, 60],
            "duration_s": [60, 60, 60, None, "long", 0, -5, 60, 60, 60],
            "gpus": [1, 1, 1, 1, 1, 1, 1, 0, "two", None],
        }
    )
    jobs, account = read_history(table)
    assert (account.read, account.used) == (10, 2)
    assert account.excluded == (
        ("submission time unknown", 1),
        ("submission time cannot be read", 1),
        ("run time unknown (still running, or not recorded)", 1),
        ("run time is not a number", 1),
        ("run time is zero or negative", 2),
        ("number of GPUs is not a number", 1),
        ("number of GPUs is zero or negative", 1),
    )
    assert jobs["row"].tolist() == [0, 9]
    assert np.isnan(jobs["gpus"].iloc[1])  # unknown is a value of its own
    assert "The number of GPUs is unknown for 1 jobs." in account.rules
    assert account.to_frame()["jobs"].tolist()[0] == 10
    assert "run time is zero or negative" in repr(account)


def test_an_account_that_does_not_add_up_is_refused() -> None:
    with pytest.raises(ValueError, match="1 rows used and 1 left out are not the 3 read"):
        DurationAccount(3, 1, (("lost", 1),))


def test_a_job_ends_after_its_wait_and_run_and_an_impossible_wait_is_unknown() -> None:
    table = pd.DataFrame(
        {
            "submit_s": [100, 200, 300],
            "wait_s": [50, -1, np.nan],
            "duration_s": [10, 10, 10],
            "gpus": 1,
            "limit_s": ["UNLIMITED", 0, 3600],
        }
    )
    jobs, account = read_history(table)
    assert jobs["end_s"].tolist() == [160, 210, 310]
    assert jobs["limit_s"].isna().tolist() == [True, True, False]
    assert account.changed == (
        ("wait that is no possible number, taken as unknown", 1),
        ("limit that is no possible number, taken as unknown", 2),
    )
    assert any("wait is unknown for 2 of 3 jobs" in rule for rule in account.rules)


def test_duplicates_stay_and_are_counted() -> None:
    table = pd.DataFrame({"submit_s": [5, 5, 5], "duration_s": [1, 1, 2], "gpus": 1})
    _, account = read_history(table)
    assert account.used == 3
    assert account.changed == (("exact duplicates of another row, kept as jobs of their own", 1),)


def test_the_order_of_the_table_does_not_matter() -> None:
    rng = np.random.default_rng(1)
    table = pd.DataFrame(
        {
            "submit_s": rng.integers(0, 5, 60),
            "duration_s": rng.integers(1, 4, 60),
            "gpus": rng.integers(1, 3, 60),
            "user": rng.choice(["a", "b", None], 60),
        }
    )
    first = read_history(table)[0].drop(columns="row")
    pd.testing.assert_frame_equal(
        first, read_history(table.sample(frac=1, random_state=2))[0].drop(columns="row")
    )
    assert first["at_s"].is_monotonic_increasing


def test_dates_may_have_a_time_zone_which_sets_the_clock_but_not_what_passes() -> None:
    """01:30 at +02:00 is 23:30 of the day before in UTC; the hour of the place is what a habit follows."""
    table = pd.DataFrame({"submit": ["1970-01-02T01:30:00+02:00"], "duration_s": [1], "gpus": [1]})
    jobs, _ = read_history(table)
    assert jobs["at_s"].tolist() == [23.5 * 3600]
    assert jobs["clock_s"].tolist() == [25.5 * 3600]
    plain = table.assign(submit=pd.to_datetime(["1970-01-02 01:30:00"]))
    assert read_history(plain)[0]["at_s"].tolist() == [25.5 * 3600]


def test_offsets_may_change_with_the_clocks_but_not_be_there_for_some_only() -> None:
    """Clocks went forward at 01:00 UTC on 2026-03-29: an hour passes from 01:30 to 03:30."""
    table = pd.DataFrame(
        {"submit": ["2026-03-29T01:30:00+01:00", "2026-03-29 03:30+0200"], "duration_s": 1, "gpus": 1}
    )
    jobs, _ = read_history(table)
    assert np.diff(jobs["at_s"]).tolist() == [3600]
    assert np.diff(jobs["clock_s"]).tolist() == [7200]
    other = table.assign(submit=["2026-03-29T00:30:00Z", "2026-03-29 03:30"])
    assert read_history(other)[1].excluded == (("submission time cannot be read", 1),)


def test_dates_alone_and_timestamps_as_objects_are_times() -> None:
    times = pd.Series([pd.Timestamp("1970-01-02"), "1970-01-03", None], dtype=object)
    jobs, account = read_history(pd.DataFrame({"submit": times, "duration_s": 1, "gpus": 1}))
    assert jobs["at_s"].tolist() == [86_400, 172_800]
    assert account.excluded == (("submission time unknown", 1),)


@pytest.mark.parametrize(
    "column",
    [
        pd.Series(["60", " 60 "]),
        pd.Series([Decimal(60), 60.0], dtype=object),
        pd.Series([60, 60], dtype="Int64"),
        pd.Series(pd.to_timedelta([60, 60], unit="s")),
        pd.Series([60, 60]).astype("category"),
    ],
)
def test_run_times_are_read_however_pandas_holds_them(column: "pd.Series[float]") -> None:
    table = pd.DataFrame({"submit_s": [0, 1], "duration_s": column, "gpus": 1})
    assert read_history(table)[0]["run_s"].tolist() == [60.0, 60.0]


def test_an_unknown_in_a_nullable_column_is_unknown() -> None:
    table = pd.DataFrame({"submit_s": [0, 1], "duration_s": pd.Series([60, None], dtype="Int64"), "gpus": 1})
    assert read_history(table)[1].excluded == (("run time unknown (still running, or not recorded)", 1),)


def test_a_truth_is_no_number_and_a_list_is_none_either() -> None:
    table = pd.DataFrame({"submit_s": [0, 1, 2], "duration_s": [True, [60], 60], "gpus": 1})
    assert read_history(table)[1].excluded == (("run time is not a number", 2),)


def test_numbers_of_users_that_became_floats_beside_unknowns_are_the_same_users() -> None:
    table = pd.DataFrame({"submit_s": [0, 1], "duration_s": 1, "gpus": 1, "user": [1001.0, np.nan]})
    jobs, account = read_history(table)
    assert jobs["user"].tolist() == ["1001", None]
    assert group_of(jobs) == "user"
    assert "A job's own history is that of its user." in account.rules


def test_all_mistakes_of_a_call_are_told_at_once() -> None:
    table = pd.DataFrame({"submitt_s": [1], "duration": [1], "gpus": ["many"]})
    with pytest.raises(InputError) as error:
        fit_durations(table, quantiles=(0.5, 0.5, 1.0, "x"), min_jobs=0)  # type: ignore[arg-type]
    assert str(error.value) == (
        "job table: 7 mistakes\n"
        "  quantiles.1: must not be there twice (got 0.5)\n"
        "  quantiles.2: must be a number above 0 and below 1 (got 1.0)\n"
        "  quantiles.3: must be a number above 0 and below 1 (got 'x')\n"
        "  min_jobs: must be a whole number, at least 1 (got 0)\n"
        "  submit_s: is a column that the table must have (or submit, as dates and times); did you mean submitt_s?\n"
        "  duration_s: is a column that the table must have; did you mean duration?\n"
        "  gpus: must hold numbers, but not one of 1 can be read (got 'many')"
    )


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ([1, 2], "must be a pandas DataFrame with a row per job (got 'list')"),
        (
            pd.DataFrame([[1, 1, 1, 1]], columns=["submit_s", "gpus", "gpus", "duration_s"]),
            "gpus: must be there once (got 2)",
        ),
        (
            pd.DataFrame({"submit_s": [1], "submit": ["2026-01-01"], "duration_s": [1], "gpus": [1]}),
            "submit: must not be given beside submit_s: which one counts?",
        ),
        (
            pd.DataFrame({"submit": ["yesterday"], "duration_s": [1], "gpus": [1]}),
            "submit: must hold times or seconds, but not one of 1 can be read (got 'yesterday')",
        ),
    ],
)
def test_a_table_that_cannot_be_used(table: object, said: str) -> None:
    with pytest.raises(InputError) as error:
        read_history(table)  # type: ignore[arg-type]
    assert said in str(error.value)


def test_each_row_to_predict_that_cannot_be_read_is_named() -> None:
    rows = pd.DataFrame({"submit_s": [0, "later", None], "gpus": [None, -1, 1]}, index=[7, 8, 9])
    with pytest.raises(InputError) as error:
        read_rows(rows)
    assert [str(mistake) for mistake in error.value.mistakes] == [
        "rows.1.submit_s: must be a time that can be read (got 'later')",
        "rows.2.submit_s: must be a time that can be read (got nothing)",
        "rows.1.gpus: must be a number above 0, or not a number (NaN) where unknown (got -1.0)",
    ]


def test_thousands_of_bad_rows_are_counted_not_listed() -> None:
    rows = pd.DataFrame({"submit_s": 0, "gpus": [1] + [-1] * 3000})
    with pytest.raises(InputError) as error:
        read_rows(rows)
    assert len(error.value.mistakes) == 21
    assert "2,980 more rows are not" in str(error.value)
