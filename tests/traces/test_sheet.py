"""Tables as spreadsheets export them: separators, quotes, titles, totals, ragged rows, numbers, dates, durations."""

import csv
import io
from datetime import datetime, timedelta

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuplan.inputs.errors import InputError
from gpuplan.traces import sheet as sheet_module
from gpuplan.traces.plain_text import PlainText
from gpuplan.traces.sheet import Sheet, sheet_of
from gpuplan.traces.sheet_counted import counted_moments
from gpuplan.traces.sheet_durations import batch_limit, durations_of
from gpuplan.traces.sheet_numbers import marks_of, number_of, numbers_of
from gpuplan.traces.sheet_times import NO_TIME, moments_of, order_of


def sheet(*lines: str) -> Sheet:
    return sheet_of(PlainText("file.csv", "\n".join(lines) + "\n"))


def column(*cells: str) -> np.ndarray[tuple[int], np.dtype[np.object_]]:
    found = np.empty(len(cells), object)
    found[:] = cells
    return found


# -------------------------------------------------------------------------- cells


@pytest.mark.parametrize("sign", [",", ";", "\t", "|"])
def test_separators(sign: str) -> None:
    found = sheet(sign.join("abc"), sign.join(["1", "2 3", ""]), sign.join(["4", "", "6"]))
    assert found.names == ("a", "b", "c")
    assert [cells.tolist() for cells in found.cells] == [["1", "4"], ["2 3", ""], ["", "6"]]
    assert found.line.tolist() == [2, 3]
    assert found.separator == sign


def test_decimal_commas_do_not_separate() -> None:
    found = sheet("hour;rate;share", "0;1,5;0,5", "1;2,5;0,25")
    assert found.names == ("hour", "rate", "share")


def test_quotes_blanks_and_line_breaks() -> None:
    found = sheet("a,b", ' 1 ,"x, ""y"""', '2,"over', 'two lines"', "3,plain")
    assert found.column("a").tolist() == ["1", "2", "3"]
    assert found.column("b").tolist() == ['x, "y"', "over\ntwo lines", "plain"]
    assert found.line.tolist() == [2, 3, 5]
    assert "Rows with a line break within quotes: 1." in found.notes


def test_a_stray_quotation_mark_swallows_nothing() -> None:
    """Line 3 opens a quote that line 6 seems to close; lines 4 and 5 are rows all the same."""
    found = sheet("a,b,c", "1,2,3", '4,"5,6', "7,8,9", "10,11,12", '13,"14,15', '16,"over', 'two",17')
    assert found.column("a").tolist() == ["1", "7", "10", "16"]
    assert found.column("b").tolist()[-1] == "over\ntwo"
    assert [(m.line, m.rule) for m in found.ragged] == [
        (3, "must be a row of cells: a quotation mark is opened in it and never closed"),
        (6, "must be a row of cells: a quotation mark is opened in it and never closed"),
    ]
    last = sheet("a,b", "1,2", '3,"4')
    assert (last.column("a").tolist(), last.ragged[0].line) == (["1"], 3)
    within = sheet("a,b", '5" disk,2', '"x"y,3')
    assert within.column("a").tolist() == ['5" disk', "xy"]


def test_empty_lines_and_the_sign_that_spreadsheets_state() -> None:
    found = sheet("sep=;", "", "a;b", ";", "1;2", "   ", "", "3;4")
    assert found.column("b").tolist() == ["2", "4"]
    assert found.line.tolist() == [5, 8]


def test_a_title_above_the_header() -> None:
    found = sheet("Report of May;;", "", "a;b;c", "1;2;3", "4;5;6")
    assert found.names == ("a", "b", "c")
    assert len(found) == 2
    assert found.notes[-1] == "Lines above the header were not read: 1 (from line 1 on)."


def test_a_trailing_separator() -> None:
    assert sheet("a;b;", "1;2;", "3;4").column("b").tolist() == ["2", "4"]


def test_rows_with_too_few_or_many_cells_are_told() -> None:
    found = sheet("a,b,c", "1,2,3", "4,5", "6,7,8,9", "10,11,12,")
    assert found.column("a").tolist() == ["1", "10"]
    assert [(m.line, m.rule) for m in found.ragged] == [
        (3, "must have 3 cells, as the header has; it has 2"),
        (4, "must have 3 cells, as the header has; it has 4"),
    ]


def test_a_line_of_totals_at_the_end() -> None:
    found = sheet("job;gpus;run", "total-recall;1;5", "b;2;6", "Summe:;3;", ";;", "Mittelwert;1,5;")
    assert found.totals.tolist() == [False, False, True, True]
    assert not sheet("job,gpus", "total,1", "x,2").totals.any()
    assert not sheet("job,gpus", "x,2", "total,1").totals.any()  # a full row is a job of that name


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        (["just words", "and more"], "no comma, semicolon, tab or bar"),
        (["a,b,c"], r"must have a row below its header \(a, b, c\)"),
        (["", " ", ""], "all its lines are empty"),
        (["a,b,a", "1,2,3"], "must stand once"),
    ],
)
def test_what_is_no_table(lines: list[str], words: str) -> None:
    with pytest.raises(InputError, match=words):
        sheet(*lines)


def test_more_cells_than_memory_has_room_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Six separators and line ends are at most 6 cells."""
    monkeypatch.setattr(sheet_module, "free_memory", lambda: 6 * sheet_module.MEMORY_PER_CELL)
    assert len(sheet("a,b", "1,2", "3,4")) == 2
    monkeypatch.setattr(sheet_module, "free_memory", lambda: 6 * sheet_module.MEMORY_PER_CELL - 1)
    with pytest.raises(InputError, match="is too large: 6 cells"):
        sheet("a,b", "1,2", "3,4")


def test_a_column_that_is_not_there_is_told_with_those_that_are() -> None:
    with pytest.raises(InputError, match=r"c: is a column that the file must have; found: a, b"):
        sheet("a,b", "1,2").column("c")


CELLS = st.text(st.characters(codec="utf-8", exclude_characters="\r\0\ufeff"), max_size=12)


@given(st.lists(st.lists(CELLS, min_size=3, max_size=3), min_size=1, max_size=8), st.sampled_from(",;\t|"))
def test_what_the_standard_library_writes_is_read_back(rows: list[list[str]], sign: str) -> None:
    """Blanks around cells do not matter; rows of empty cells are none."""
    out = io.StringIO()
    writer = csv.writer(out, delimiter=sign, lineterminator="\n", quoting=csv.QUOTE_ALL)
    writer.writerow(["a", "b", "c"])
    writer.writerows(rows)
    expected = [[cell.strip() for cell in row] for row in rows if any(cell.strip() for cell in row)]
    try:
        found = sheet_of(PlainText("x", out.getvalue()))
    except InputError:
        assert not expected
        return
    assert [list(row) for row in zip(*(cells.tolist() for cells in found.cells), strict=True)] == expected


@given(st.lists(st.text('ab ,;\t|"1.\n-', max_size=30), max_size=12))
def test_any_text_is_a_table_or_refused(lines: list[str]) -> None:
    """Every row that has something in it is a row, a ragged row, the header or above it."""
    try:
        found = sheet_of(PlainText("x", "\n".join(lines)))
    except InputError:
        return
    assert len(found.line) == len(set(found.line.tolist())) == len(found.totals)
    assert all(len(cells) == len(found) for cells in found.cells)


# -------------------------------------------------------------------------- numbers


@pytest.mark.parametrize(
    ("text", "dot", "comma"),
    [
        ("1250,5", None, 1250.5),
        ("1.010,25", None, 1010.25),
        ("1,010.25", 1010.25, None),
        ("1.010", 1.01, 1010),
        ("1,010", 1010, 1.01),
        ("1.010.000", None, 1_010_000),
        ("1 010,5", None, 1010.5),
        ("1'000.5", 1000.5, None),
        ("0", 0, 0),
        ("-5", -5, -5),
        ("1e3", 1000, 1000),
        ("0,125", None, 0.125),
        *(
            (text, None, None)
            for text in ("", "1_000", "0x10", "inf", "nan", "1.010.00", "1,2,3", "٣", "1e999")
        ),
    ],
)
def test_numbers(text: str, dot: float | None, comma: float | None) -> None:
    assert (number_of(text, "."), number_of(text, ",")) == (dot, comma)


@pytest.mark.parametrize(
    ("cells", "separator", "decimal"),
    [
        (["1250,5", "0"], ";", ","),
        (["1250.5", "0"], ";", "."),
        (["1.010,25", "7"], ",", ","),
        (["1.010", "7"], ";", ","),  # custom of files with semicolons, and said
        (["1.010", "7"], ",", "."),
        (["1.000.000"], ",", ","),
        (["12", "7"], ";", ","),
    ],
)
def test_the_decimal_mark(cells: list[str], separator: str, decimal: str) -> None:
    assert marks_of([column(*cells)], separator).decimal == decimal


def test_what_could_be_read_in_two_ways_is_said() -> None:
    assert "1.010 is taken for 1010" in marks_of([column("1.010")], ";").note
    assert marks_of([column("1.010")], ",").note == ""


@given(st.lists(st.floats(-1e9, 1e9).map(lambda x: round(x, 2)), min_size=1), st.booleans())
def test_numbers_in_both_forms_are_the_same(values: list[float], grouped: bool) -> None:
    english = [f"{value:,.2f}" if grouped else f"{value:.2f}" for value in values]
    german = [text.translate(str.maketrans(".,", ",.")) for text in english]
    for texts, mark in ((english, "."), (german, ",")):
        found, empty, wrong = numbers_of(column(*texts), mark)  # type: ignore[arg-type]
        assert found.tolist() == values
        assert not empty.any()
        assert not wrong.any()


def test_words_for_nothing() -> None:
    values, empty, wrong = numbers_of(column("1", "NA", "-", "", "eight", "#N/A"))
    assert np.isnan(values[1:]).all()
    assert empty.tolist() == [False, True, True, True, False, True]
    assert wrong.tolist() == [False, False, False, False, True, False]


# -------------------------------------------------------------------------- moments


def seconds(*cells: str, order: str = "") -> list[int]:
    found = moments_of(column(*cells))
    ordered = order_of([found], order)  # type: ignore[arg-type]
    return found.seconds(ordered.order)[0].tolist()


def at(*parts: int) -> int:
    return round((datetime(*parts) - datetime(1970, 1, 1)).total_seconds())  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "text",
    [
        "2026-04-13 02:00:00",
        "2026-04-13T02:00",
        "2026-04-13T02:00:00Z",
        "2026/04/13 2:00",
        "13.04.2026 02:00",
        "13.4.2026, 02:00:00",
        "13/04/2026 02:00",
        "13-04-2026 02:00:00.0",
        "04/13/2026 2:00 AM",
        "13 Apr 2026 02:00",
        "2026-04-13 04:00:00 CEST",
        "2026-04-13T04:00+02:00",
        "2026-04-12 19:00:00 PDT",
        "2026-04-12 21:00:00 UTC-0500",
    ],
)
def test_a_moment_in_many_forms(text: str) -> None:
    assert seconds(text) == [at(2026, 4, 13, 2)]


def test_midnight_noon_and_fractions() -> None:
    assert seconds("13/04/2026 12:00 AM", "13/04/2026 12:00 PM") == [at(2026, 4, 13), at(2026, 4, 13, 12)]
    assert seconds("2026-04-13 02:00:00.4", "2026-04-13 02:00:00.5") == [
        at(2026, 4, 13, 2),
        at(2026, 4, 13, 2, 0, 1),
    ]
    assert seconds("2026-04-13 24:00") == [at(2026, 4, 14)]


def test_one_day_above_12_tells_the_order_of_all() -> None:
    assert seconds("03/04/2026", "13/04/2026") == [at(2026, 4, 3), at(2026, 4, 13)]
    assert seconds("03/04/2026", "04/13/2026") == [at(2026, 3, 4), at(2026, 4, 13)]


def test_dots_are_day_first_and_slashes_are_asked_about() -> None:
    dots, slashes = moments_of(column("03.04.2026 00:00", "04.05.2026")), moments_of(column("3/4/2026"))
    assert order_of([dots]).order == "day-first"
    assert (
        order_of([dots]).note
        == "Dates such as 03.04.2026 00:00 are read day first, as is the custom with dots."
    )
    question = order_of([slashes]).question
    assert question == "Dates such as 3/4/2026 could be 3 Apr 2026 or 4 Mar 2026: which number is the day?"
    assert seconds("3/4/2026", order="month-first") == [at(2026, 3, 4)]
    assert (
        order_of([slashes, moments_of(column("13/4/2026"))]).order == "day-first"
    )  # another column tells it
    assert order_of([moments_of(column("4/4/2026"))]).question == ""


def test_years_of_two_digits_are_asked_about() -> None:
    assert "two digits" in order_of([moments_of(column("26/04/03"))]).question


def test_dates_that_do_not_exist() -> None:
    found = moments_of(column("2026-02-29", "2024-02-29", "13/13/2026", "", "soon", "2026-04-31 10:00"))
    moments, impossible = found.seconds("day-first")
    assert impossible.tolist() == [True, False, True, False, False, True]
    assert found.wrong.tolist() == [False, False, False, False, True, False]
    assert found.empty.tolist() == [False, False, False, True, False, False]
    assert (moments == NO_TIME).tolist() == [True, False, True, True, True, True]


@given(st.lists(st.datetimes(datetime(1971, 1, 1), datetime(2190, 1, 1)), min_size=1))
def test_moments_written_in_any_form_are_the_same(moments: list[datetime]) -> None:
    whole = [moment.replace(microsecond=0) for moment in moments]
    expected = [round((moment - datetime(1970, 1, 1)) / timedelta(seconds=1)) for moment in whole]
    forms = ("%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M:%SZ", "%d.%m.%Y %H:%M:%S", "%d/%m/%YT%H:%M:%S+00:00")
    for form in (*forms, "%Y/%m/%d %I:%M:%S %p"):
        texts = [moment.strftime(form) for moment in whole]
        found = moments_of(column(*texts))
        assert found.seconds("day-first")[0].tolist() == expected
        assert found.aware.all() == form.endswith(("Z", "+00:00"))
        slow = moments_of(column(*texts, ""))  # an empty cell: read one by one
        assert slow.seconds("day-first")[0].tolist() == [*expected, NO_TIME]


def test_moments_as_numbers() -> None:
    millis = counted_moments(column("1507529583000", "", "0"), "", ".")
    assert millis.seconds.tolist() == [1507529583, NO_TIME, NO_TIME]
    assert (millis.since_1970, millis.unit, millis.unsaid.tolist()) == (True, "ms", [False, False, True])
    after = counted_moments(column("0", "90.5", "-1"), "min", ".")
    assert after.seconds.tolist() == [0, 5430, NO_TIME]
    assert not after.since_1970
    days = counted_moments(column("46125.5"), "sheet-days", ".")  # 46125 is 2026-04-13
    assert days.seconds.tolist() == [at(2026, 4, 13, 12)]


# -------------------------------------------------------------------------- durations


@pytest.mark.parametrize(
    ("text", "unit", "expected"),
    [
        ("90", "s", 90),
        ("1,5", "h", 5400),
        ("90min", "", 5400),
        ("1:30:00", "", 5400),
        ("1-12:00:00", "", 129_600),
        ("2 days 03:04:05", "", 183_845),
        ("1:30", "", None),
        ("1:75:00", "", None),
        ("half an hour", "", None),
    ],
)
def test_durations(text: str, unit: str, expected: float | None) -> None:
    found, _, wrong = durations_of(column(text), unit, ",")
    assert (None if wrong[0] else found[0]) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("90", 5400),
        ("1:30", 90),
        ("08:30", 510),
        ("12:00:00", 43_200),
        ("1-12", 129_600),
        ("1-12:30", 131_400),
    ],
)
def test_limits_of_batch_systems(text: str, expected: int) -> None:
    assert batch_limit(text) == expected
