"""Names are hostile: on a terminal and in a spreadsheet they stay text."""

import csv
import io

import pandas as pd
import pytest

from gpuplan.text import aligned, printable, spreadsheet_safe, to_csv


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain", "plain"),
        ("\x1b[31mred", r"\x1b[31mred"),
        ("two\nlines", r"two\nlines"),
        ("\u202egnp.exe", r"\u202egnp.exe"),  # right-to-left override
        ("día 😀 – ×", "día 😀 – ×"),
    ],
)
def test_printable_escapes_what_moves_or_hides(text: str, shown: str) -> None:
    assert printable(text) == shown


def test_columns_are_aligned_and_hostile_cells_keep_their_row() -> None:
    table = aligned(("name", "n"), [("a", "1"), ("long\nname", "1,000")], right=(1,))
    assert table == "name            n\na               1\nlong\\nname  1,000"


@pytest.mark.parametrize("start", list("=+-@\t\r\n＝＋－＠"))
def test_a_formula_gets_an_apostrophe(start: str) -> None:
    assert spreadsheet_safe(f"{start}1") == f"'{start}1"


def test_what_starts_with_an_apostrophe_gets_one_more() -> None:
    """So that ``=1`` and ``'=1`` stay two names."""
    assert spreadsheet_safe("'=1") == "''=1"


@pytest.mark.parametrize("cell", [-1, -0.5, "1-2", "", "a=b", "it's"])
def test_numbers_and_other_text_pass_unchanged(cell: object) -> None:
    assert spreadsheet_safe(cell) == cell


def test_csv_reads_back_with_commas_quotes_and_line_breaks() -> None:
    names = ['a,b "c"', "two\nlines", "=1+1", "../up", "<b>"]
    frame = pd.DataFrame({"job": names, "gpu": [0, -1, 2, 3, 4]})
    header, *rows = csv.reader(io.StringIO(to_csv(frame), newline=""))
    assert header == ["job", "gpu"]
    assert [row[0] for row in rows] == ['a,b "c"', "two\nlines", "'=1+1", "../up", "<b>"]
    assert [row[1] for row in rows] == ["0", "-1", "2", "3", "4"]


def test_what_is_missing_is_an_empty_cell() -> None:
    frame = pd.DataFrame(
        {"job": ["a", None], "hour": [1.5, float("nan")], "gpu": pd.array([None, 3], "Int64")}
    )
    assert to_csv(frame) == "job,hour,gpu\na,1.5,\n,,3\n"
