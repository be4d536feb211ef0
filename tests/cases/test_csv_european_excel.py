"""Case `csv-european-excel`: semicolons, decimal commas, a mark before the first name, days before months."""

from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gpuplan.inputs.errors import InputError
from gpuplan.traces.hourly import read_hourly
from gpuplan.traces.sheet import Sheet, read_sheet
from gpuplan.traces.sheet_numbers import marks_of, numbers_of

CASE = "csv-european-excel"


@pytest.fixture(scope="module")
def table(case: Path) -> Sheet:
    return read_sheet(case / "input.csv")


def _numbers(table: Sheet, name: str) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    cells = table.column(name)
    values, empty, wrong = numbers_of(cells, marks_of([cells], table.separator).decimal)
    assert not empty.any()
    assert not wrong.any()
    return values


def test_columns_rows_and_texts(table: Sheet, expected: dict[str, Any]) -> None:
    assert list(table.names) == expected["columns"]
    assert len(table) == expected["rows"]
    assert table.column("note").tolist() == expected["notes"]


def test_numbers(table: Sheet, expected: dict[str, Any]) -> None:
    tokens = _numbers(table, "tokens_per_s")
    assert tokens.sum() == expected["tokens_per_s_sum"]
    assert tokens.mean() == expected["tokens_per_s_mean"]
    assert _numbers(table, "requests").sum() == expected["requests_sum"]


def _traffic(path: Path, expected: dict[str, Any], **options: Any) -> None:
    """Four known hours, the first and the last as expected; the ten days between them are unknown, not 0."""
    found = read_hourly(path, unit="tokens/s", time="hour", value="tokens_per_s", **options)
    assert found.start == datetime.fromisoformat(expected["first_hour"])
    assert found.at(len(found.values) - 1) == datetime.fromisoformat(expected["last_hour"])
    known = found.values[~np.isnan(found.values)]
    assert len(known) == expected["rows"]
    assert known.sum() == expected["tokens_per_s_sum"]


def test_as_traffic(case: Path, expected: dict[str, Any]) -> None:
    _traffic(case / "input.csv", expected)


def test_dots_are_read_day_first_and_said(case: Path) -> None:
    found = read_hourly(case / "input_ambiguous.csv", unit="tokens/s", bin_s=3600)
    assert found.start == datetime(2026, 4, 3)
    assert found.at(len(found.values) - 1) == datetime(2026, 5, 4)
    assert np.nansum(found.values) == 31.0
    assert found.account is not None
    assert any("read day first, as is the custom with dots" in rule for rule in found.account.rules)


def test_the_setting_is_offered(case: Path) -> None:
    """3 April and 4 May, month first, are 4 March and 5 April."""
    found = read_hourly(case / "input_ambiguous.csv", unit="x", bin_s=3600, date_order="month-first")
    assert found.start == datetime(2026, 3, 4)


def test_slashes_are_asked_about(case: Path, tmp_path: Path) -> None:
    path = tmp_path / "slashes.csv"
    text = (case / "input_ambiguous.csv").read_text("utf-8-sig")
    path.write_text(text.replace("03.04.", "03/04/").replace("04.05.", "04/05/"), encoding="utf-8")
    with pytest.raises(InputError, match=r"03/04/2026 00:00 could be 3 Apr 2026 or 4 Mar 2026"):
        read_hourly(path, unit="x", bin_s=3600)
    found = read_hourly(path, unit="x", bin_s=3600, date_order="day-first")
    assert found.start == datetime(2026, 4, 3)


def test_both_orders_in_one_column_are_mistakes(case: Path, tmp_path: Path) -> None:
    """Day 13 in one row, month 13 in another: the second does not exist."""
    path = tmp_path / "both.csv"
    path.write_text("hour;tokens_per_s\n13.04.2026 00:00;1\n14.04.2026 00:00;1\n04.13.2026 01:00;2\n")
    with pytest.raises(InputError, match=r"line 4.*04\.13\.2026"):
        read_hourly(path, unit="x")


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text.replace(";", "\t").replace('"semi\tcolon"', '"semi;colon"'),
        lambda text: "\n".join(_american(line) for line in text.split("\n")),
        lambda text: text.rstrip("\n"),
        lambda text: text + ";;;\n\n\n",
        lambda text: text + "Summe;4500;5261,5;\n",
        lambda text: text.replace("\n", "\r\n"),
        lambda text: "sep=;\n" + text,
    ],
)
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_the_same_in_other_clothes(
    case: Path, tmp_path: Path, expected: dict[str, Any], change: Any, encoding: str
) -> None:
    text = (case / "input.csv").read_text("utf-8-sig")
    path = tmp_path / "changed.csv"
    path.write_bytes(change(text).encode(encoding))
    _traffic(path, expected)


def test_windows_1252(case: Path, tmp_path: Path, expected: dict[str, Any]) -> None:
    text = (case / "input.csv").read_text("utf-8-sig").replace("quiet", "früh")
    path = tmp_path / "windows.csv"
    path.write_bytes(text.encode("cp1252"))
    _traffic(path, expected)
    assert read_sheet(path).column("note").tolist()[2] == "früh"


def _american(line: str) -> str:
    """A line with commas between cells and decimal points: 1.010,25 is 1010.25."""
    cells = line.replace('"semi;colon"', "note").split(";")
    return ",".join(cell.strip('"') if "2026" in cell else _point(cell) for cell in cells)


def _point(cell: str) -> str:
    bare = cell.strip('"')
    return bare.replace(".", "").replace(",", ".") if bare[:1].isdigit() else bare
