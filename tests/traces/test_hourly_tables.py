"""Hourly traffic as spreadsheets export it, and damaged: a history that adds up, or a sentence with a line."""

from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuplan.inputs.errors import InputError
from gpuplan.traces.hourly import read_hourly


def write(folder: Path, *lines: str) -> Path:
    path = folder / "traffic.csv"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def test_a_line_of_totals_is_left_out_and_counted(tmp_path: Path) -> None:
    found = read_hourly(
        write(tmp_path, "Stunde;Anfragen", "01.05.2026 00:00;1.000", "01.05.2026 01:00;2,5", "Summe;"),
        unit="x",
    )
    assert found.values.tolist() == [1000, 2.5]
    assert found.account is not None
    assert dict(found.account.excluded) == {"a line of totals": 1}
    assert any("decimal commas" in rule for rule in found.account.rules)


def test_a_spreadsheet_in_america(tmp_path: Path) -> None:
    path = write(tmp_path, "time,rate", '4/13/2026 11:00 PM,"1,200.5"', "4/14/2026 12:00 AM,3")
    found = read_hourly(path, unit="x")
    assert found.start == datetime(2026, 4, 13, 23)
    assert found.values.tolist() == [1200.5, 3]


def test_the_decimal_mark_can_be_stated(tmp_path: Path) -> None:
    path = write(tmp_path, "time;rate", "2026-04-13T00:00;1.250", "2026-04-13T01:00;2.500")
    assert read_hourly(path, unit="x").values.tolist() == [1250, 2500]  # semicolons: thousands, and said
    assert read_hourly(path, unit="x", decimal=".").values.tolist() == [1.25, 2.5]
    with pytest.raises(InputError, match="decimal"):
        read_hourly(path, unit="x", decimal=";")  # type: ignore[arg-type]


def test_days_first_with_a_zone(tmp_path: Path) -> None:
    """Berlin is two hours ahead in April."""
    path = write(tmp_path, "time;rate", "13.04.2026 02:00;1", "13.04.2026 03:00;2")
    found = read_hourly(path, unit="x", timezone="Europe/Berlin")
    assert found.start.astimezone(UTC) == datetime(2026, 4, 13, 0, tzinfo=UTC)


def test_rows_of_other_lengths_are_told(tmp_path: Path) -> None:
    path = write(
        tmp_path, "time;rate;note", "2026-04-13T00:00;1;a", "2026-04-13T01:00;2", "2026-04-13T02:00;3;a"
    )
    with pytest.raises(InputError, match="line 3: must have 3 cells"):
        read_hourly(path, unit="x", time="time", value="rate")


@settings(max_examples=80)
@given(st.integers(0, 2**32))
def test_damaged_lines(tmp_path_factory: pytest.TempPathFactory, seed: int) -> None:
    rng = np.random.default_rng(seed)
    comma = bool(seed % 2)
    lines = ["hour;rate" if comma else "hour,rate"]
    for hour in range(24):
        lines.append(f"13.04.2026 {hour:02}:00;{hour},5" if comma else f"2026-04-13T{hour:02}:00,{hour}.5")
    for _ in range(int(rng.integers(1, 5))):
        k = int(rng.integers(len(lines)))
        place = int(rng.integers(len(lines[k]) + 1))
        sign = "\u00e4x;,-.:9 =+\"'\t"[int(rng.integers(14))]
        lines[k] = lines[k][:place] + sign * int(rng.integers(2)) + lines[k][place + int(rng.integers(2)) :]
    try:
        found = read_hourly(
            write(tmp_path_factory.mktemp("fuzz"), *lines), unit="x", twice="last", negative="exclude"
        )
    except InputError:
        return
    assert found.account is not None
    assert found.account.used + sum(count for _, count in found.account.excluded) == found.account.read
