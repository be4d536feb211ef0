"""Accounts of traces: sums that agree, tables, text that stays text."""

import pytest

from gpuplan.inputs.account import Account

ACCOUNT = Account(
    source="tiny.csv",
    rows="jobs",
    read=5,
    used=3,
    excluded=(("no run time", 1), ("another day", 1)),
    changed=(("cut", 2),),
    amounts=(("as recorded", 1234.56, "GPU-hours"),),
    rules=("Every job has priority 1.",),
)


def test_rows_used_and_left_out_add_up_to_those_read() -> None:
    with pytest.raises(ValueError, match="3 rows used and 1 left out are not the 5 read"):
        Account("tiny.csv", "jobs", read=5, used=3, excluded=(("no run time", 1),))


def test_the_table_has_every_line_in_reading_order() -> None:
    frame = ACCOUNT.to_frame()
    assert list(frame.columns) == ["group", "what", "value", "unit"]
    assert frame["group"].tolist() == ["read", "left out", "left out", "used", "changed", "amount"]
    assert frame["value"].tolist() == [5, 1, 1, 3, 2, 1234.56]
    assert frame["unit"].tolist() == ["jobs"] * 5 + ["GPU-hours"]


def test_the_text_form_says_all_of_it() -> None:
    assert repr(ACCOUNT).splitlines() == [
        "          what                value  unit",
        "read      jobs in tiny.csv        5  jobs",
        "left out  no run time             1  jobs",
        "left out  another day             1  jobs",
        "used      in the scenario         3  jobs",
        "changed   cut                     2  jobs",
        "amount    as recorded       1,234.6  GPU-hours",
        "",
        "- Every job has priority 1.",
    ]


def test_names_in_the_page_form_are_escaped() -> None:
    hostile = Account("<script>.csv", "jobs", 1, 0, (("<b>", 1),), rules=("a < b",))
    page = hostile._repr_html_()
    assert "<script>" not in page
    assert "<b>" not in page
    assert "<li>a &lt; b</li>" in page
