"""Case `sacct-open-ended-times`: what runs or waits has no end, and no time is ever the year 1, 1970 or 2262."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cases.sacct_clothes import CLOTHES, dressed
from gpuplan.inputs.errors import InputError
from gpuplan.traces.history import UNKNOWN, History
from gpuplan.traces.slurm import read_sacct

CASE = "sacct-open-ended-times"


@pytest.fixture(scope="module")
def text(case: Path) -> str:
    return (case / "input.txt").read_text(encoding="utf-8")


def moment(seconds: int) -> str:
    return str(np.datetime64(seconds, "s"))


def check(found: History, expected: dict[str, Any]) -> None:
    assert found.as_of_s is not None
    assert moment(found.as_of_s) == expected["as_of"]
    assert round(found.gpu_seconds / 3600, 6) == expected["gpu_hours"]
    assert found.job[found.running].tolist() == expected["running"]
    rows = np.flatnonzero(found.waiting).tolist()
    waiting = {found.job[r]: {"gpus": int(found.gpus[r]), "waited_s": int(found.wait_s[r])} for r in rows}
    assert waiting == expected["waiting"]
    assert found.job[found.never_started].tolist() == expected["never_started"]
    assert found.mean_wait_s == expected["mean_wait_s"]
    assert found.span_s is not None
    assert [moment(at) for at in found.span_s] == [expected["earliest_time"], expected["as_of"]]
    times = np.concatenate([found.submit_s, found.start_s, found.end_s])
    assert ((times == UNKNOWN) | (times >= found.span_s[0])).all()
    assert found.elapsed_s[found.job.tolist().index("6005")] == 0


def test_expected_values(case: Path, expected: dict[str, Any]) -> None:
    """The running job tells the moment; given, it is the same."""
    found = read_sacct(case / "input.txt")
    check(found, expected)
    assert "a running job" in found.as_of_from
    check(read_sacct(case / "input.txt", as_of=expected["as_of"]), expected)


@pytest.mark.parametrize("name", CLOTHES)
def test_in_other_clothes(text: str, tmp_path: Path, expected: dict[str, Any], name: str) -> None:
    check(read_sacct(dressed(tmp_path, text, name)), expected)


@pytest.mark.parametrize(
    "word", ["", "N/A", "0", "1970-01-01T00:00:00", "1969-12-31T16:00:00", "0001-01-01T00:00:00"]
)
def test_other_words_for_none(text: str, tmp_path: Path, expected: dict[str, Any], word: str) -> None:
    path = tmp_path / "words.txt"
    path.write_text(text.replace("|Unknown", f"|{word}").replace("|None", f"|{word}"))
    check(read_sacct(path), expected)


def test_a_forecast_is_no_end(text: str, tmp_path: Path, expected: dict[str, Any]) -> None:
    path = tmp_path / "forecast.txt"
    path.write_text(text.replace("09:00:00|Unknown", "09:00:00|2026-04-11T09:00:00"))
    found = read_sacct(path)
    check(found, expected)
    assert ("ends that are forecasts: the job has not ended", 1) in found.account.changed


def test_without_a_running_job_the_moment_is_a_guess(text: str, tmp_path: Path) -> None:
    path = tmp_path / "over.txt"
    path.write_text("\n".join(line for line in text.split("\n") if "RUNNING" not in line))
    found = read_sacct(path)
    assert found.as_of_s is not None
    assert moment(found.as_of_s) == "2026-04-10T11:30:07"
    assert "guess" in found.as_of_from
    assert found.as_of_from in found.account.rules


def test_a_running_job_without_a_run_time(text: str, tmp_path: Path, expected: dict[str, Any]) -> None:
    path = tmp_path / "running.txt"
    path.write_text(text.replace("Unknown|03:00:00", "Unknown|"))
    check(read_sacct(path, as_of=expected["as_of"]), expected)


@pytest.mark.parametrize("style", ["09:00:00", "1775811600", "Apr 10 09:00", "10/04/2026"])
def test_a_style_that_does_not_tell_the_day_is_refused(text: str, tmp_path: Path, style: str) -> None:
    """The column is named, in one mistake, not line by line."""
    path = tmp_path / "style.txt"
    header, *lines = text.strip().split("\n")
    cells = [line.split("|") for line in lines]
    path.write_text("\n".join([header, *("|".join([*row[:2], style, *row[3:]]) for row in cells)]))
    with pytest.raises(InputError) as caught:
        read_sacct(path, strict=False)
    (mistake,) = caught.value.mistakes
    assert (mistake.path, mistake.value) == ("Submit", style)


def test_a_moment_that_is_none(case: Path) -> None:
    with pytest.raises(InputError, match="as_of"):
        read_sacct(case / "input.txt", as_of="noon")
