"""Answers of the Prometheus HTTP API: kinds of answers, words for numbers, times, gaps, series that meet."""

import gzip
import json
import math
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gpuplan.inputs.errors import InputError
from gpuplan.traces import json_file
from gpuplan.traces.prometheus import read_prometheus
from gpuplan.traces.series import Metrics

NAN = float("nan")
FIRST = 1775001600  # 2026-04-01T00:00Z


def series(values: dict[int, str], step: float = 3600, **labels: str) -> dict[str, Any]:
    """A series with these values by the number of their step."""
    names = {"__name__" if name == "name" else name: text for name, text in labels.items()}
    return {"metric": names, "values": [[FIRST + step * at, text] for at, text in values.items()]}


def write(folder: Path, *result: Any, kind: str = "matrix", **more: Any) -> Path:
    path = folder / "answer.json"
    body = {"resultType": kind, "result": list(result)}
    path.write_text(json.dumps({"status": "success", "data": body} | more), encoding="utf-8")
    return path


def row(answer: Metrics, at: int = 0) -> list[float]:
    return list(answer.series[at].values)


@pytest.mark.parametrize("text", ["NaN", "nan", "+Inf", "Inf", "-Inf", "1e999"])
def test_words_for_numbers_that_are_none(tmp_path: Path, text: str) -> None:
    answer = read_prometheus(write(tmp_path, series({0: "1", 1: text, 2: "0"}, name="load")))
    np.testing.assert_array_equal(row(answer), [1, NAN, 0])
    assert (answer.account.read, answer.account.used) == (3, 2)
    assert answer.account.amounts[0][1] == 0  # a reading is there, it is only not usable


@pytest.mark.parametrize("text", ["", "1_000", "1,5", "much", "0x10", None, True, [1]])
def test_what_is_no_number_is_told_by_its_place(tmp_path: Path, text: Any) -> None:
    path = write(
        tmp_path, series({0: "1"}, name="load"), series({0: "1", 1: text, 2: "?"}, name="load", a="b")
    )
    with pytest.raises(InputError) as caught:
        read_prometheus(path)
    assert [mistake.path for mistake in caught.value.mistakes] == [
        "result.1.values.1.1",
        "result.1.values.2.1",
    ]


def test_a_vector_has_one_reading_per_series(tmp_path: Path) -> None:
    rows = [
        {"metric": {"node": node}, "value": [FIRST + 0.781, text]} for node, text in (("a", "3"), ("b", "5"))
    ]
    answer = read_prometheus(write(tmp_path, *rows, kind="vector"))
    assert (answer.n_bins, answer.bin_s) == (1, 1)
    assert answer.combined("sum", "requests").values.tolist() == [8]
    assert answer.start == datetime(2026, 4, 1, tzinfo=UTC)


def test_a_scalar_has_one_reading(tmp_path: Path) -> None:
    answer = read_prometheus(write(tmp_path, FIRST, "2.5", kind="scalar"))
    assert answer.combined("same", "x").values.tolist() == [2.5]


def test_a_string_and_a_histogram_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="must be matrix"):
        read_prometheus(write(tmp_path, FIRST, "words", kind="string"))
    native = {"metric": {"__name__": "latency"}, "histograms": [[FIRST, {"count": "1"}]]}
    with pytest.raises(InputError, match=r"result\.0: is a native histogram"):
        read_prometheus(write(tmp_path, native))


def test_warnings_are_passed_on(tmp_path: Path) -> None:
    path = write(tmp_path, series({0: "1", 1: "2"}, name="load"), warnings=["result cut off"])
    assert "The server warns: result cut off" in read_prometheus(path).account.rules
    with pytest.raises(InputError, match=r"no data in this answer.*result cut off"):
        read_prometheus(write(tmp_path, warnings=["result cut off"]))


def test_milliseconds_are_recognised(tmp_path: Path) -> None:
    values = [[(FIRST + 60 * at) * 1000, str(at)] for at in range(3)]
    answer = read_prometheus(write(tmp_path, {"metric": {}, "values": values}))
    assert (answer.start, answer.bin_s) == (datetime(2026, 4, 1, tzinfo=UTC), 60)
    assert "Times are milliseconds since 1970, 60 s apart." in answer.account.rules


def test_seconds_beside_milliseconds_are_refused(tmp_path: Path) -> None:
    values = [[FIRST, "1"], [(FIRST + 60) * 1000, "2"]]
    with pytest.raises(InputError, match="both are there"):
        read_prometheus(write(tmp_path, {"metric": {}, "values": values}))


def test_rows_in_any_order(tmp_path: Path) -> None:
    answer = read_prometheus(write(tmp_path, series({2: "30", 0: "10", 1: "25"}, name="x_total")))
    assert row(answer) == [15, 5]


def test_the_same_reading_again_counts_once_and_another_is_a_mistake(tmp_path: Path) -> None:
    """A repeated counter reading must not look like an hour without traffic, nor its fall like a restart."""
    once = series({0: "10", 1: "25", 2: "30"}, name="x_total")
    answer = read_prometheus(write(tmp_path, once, series({1: "25"}, name="x_total")))
    assert row(answer) == [15, 5]
    assert dict(answer.account.excluded) == {"the same reading again": 1}
    with pytest.raises(InputError, match=r"result\.1\.values\.0\.1: must not differ.* 25 "):
        read_prometheus(write(tmp_path, once, series({1: "26"}, name="x_total")))


def test_a_time_beside_the_grid_is_a_mistake(tmp_path: Path) -> None:
    path = write(tmp_path, {"metric": {}, "values": [[FIRST, "1"], [FIRST + 60, "2"], [FIRST + 150, "3"]]})
    with pytest.raises(InputError, match=r"result\.0\.values\.2\.0: must be a whole number of steps of 60 s"):
        read_prometheus(path)


def test_a_gap_of_a_counter_is_unknown_or_spread(tmp_path: Path) -> None:
    """From hour 1 to hour 4 the counter grew by 60; nobody knows when."""
    path = write(tmp_path, series({0: "10", 1: "20", 4: "80", 5: "81"}, name="x_total"))
    answer = read_prometheus(path)
    np.testing.assert_array_equal(row(answer), [10, NAN, NAN, NAN, 1])
    assert ("increase over times without a reading, left unknown", 60, "counted") in answer.account.amounts
    assert row(read_prometheus(path, over_gaps="spread")) == [10, 20, 20, 20, 1]


def test_a_sum_is_unknown_where_a_series_has_a_gap_but_not_before_it_begins(tmp_path: Path) -> None:
    """b lives from hour 1 to 3 and has no reading at 2."""
    path = write(
        tmp_path,
        series({at: "10" for at in range(6)}, name="running", pod="a"),
        series({1: "1", 3: "3"}, name="running", pod="b"),
    )
    answer = read_prometheus(path)
    np.testing.assert_array_equal(answer.combined("sum", "x").values, [10, 11, NAN, 13, 10, 10])
    known = answer.combined("sum", "x", partial="known")
    assert known.values.tolist() == [10, 11, 10, 13, 10, 10]
    assert answer.combined("highest", "x").values.tolist() == [10] * 6


def test_a_counter_that_ends_early_adds_nothing_afterwards(tmp_path: Path) -> None:
    """b's last reading is that of hour 1: its only increase is in bin 0, and later bins are a's alone."""
    path = write(
        tmp_path,
        series({at: str(10 * at) for at in range(4)}, name="x_total", pod="a"),
        series({0: "5", 1: "6"}, name="x_total", pod="b"),
    )
    assert read_prometheus(path).combined("sum", "x", per_s=False).values.tolist() == [11, 10, 10]


def test_the_table_has_a_row_per_series_and_bin(tmp_path: Path) -> None:
    path = write(tmp_path, series({0: "1", 1: "2"}, name="y", pod="a"), series({1: "4"}, name="y", pod="b"))
    frame = read_prometheus(path).to_frame()
    assert frame.columns.tolist() == ["__name__", "pod", "time", "value"]
    assert frame["pod"].tolist() == ["a", "a", "b", "b"]
    assert frame["time"].dt.hour.tolist() == [0, 1, 0, 1]
    np.testing.assert_array_equal(frame["value"], [1, 2, NAN, 4])


def test_times_that_count_from_something_else_are_refused(tmp_path: Path) -> None:
    path = write(tmp_path, {"metric": {}, "values": [[0, "1"], [60, "2"]]})
    with pytest.raises(InputError, match="must be seconds or milliseconds since 1970"):
        read_prometheus(path)


def test_two_series_of_a_node_must_agree_where_they_are_the_same(tmp_path: Path) -> None:
    first = series({0: "0.5", 1: "0.25"}, name="busy", node="n", server="p1")
    answer = read_prometheus(
        write(tmp_path, first, series({1: "0.25", 2: "1"}, name="busy", node="n", server="p2"))
    )
    assert answer.by("node")["n"].combined("same", "x").values.tolist() == [0.5, 0.25, 1]
    other = read_prometheus(write(tmp_path, first, series({1: "0.75"}, name="busy", node="n", server="p2")))
    with pytest.raises(InputError, match=r"bin 1: must have one value in all 2 series, not 0\.25 to 0\.75"):
        other.by("node")["n"].combined("same", "x")


def test_names_that_may_be_either_are_asked_for(tmp_path: Path) -> None:
    path = write(tmp_path, series({0: "4", 1: "6"}, name="latency_count"))
    with pytest.raises(InputError, match="counter or gauge: the name may be either's"):
        read_prometheus(path)
    assert row(read_prometheus(path, kind="counter")) == [2]
    both = write(tmp_path, series({0: "4", 1: "6"}, name="x_total"), series({0: "4"}, name="y"))
    with pytest.raises(InputError, match="both there"):
        read_prometheus(both)


def test_a_negative_counter_is_a_mistake(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is it a gauge"):
        read_prometheus(write(tmp_path, series({0: "-4", 1: "6"}, name="x_total")))


def test_buckets_are_not_added_up(tmp_path: Path) -> None:
    rows = [series({0: "1", 1: "2"}, name="s_bucket", le=edge) for edge in ("1", "+Inf")]
    answer = read_prometheus(write(tmp_path, *rows), kind="counter")
    with pytest.raises(InputError, match="buckets of a histogram"):
        answer.combined("sum", "x")


def test_a_rate_divides_by_the_width(tmp_path: Path) -> None:
    answer = read_prometheus(write(tmp_path, series({0: "0", 1: "90"}, step=60, name="x_total")))
    assert answer.combined("sum", "requests/s").values.tolist() == [1.5]
    assert answer.combined("sum", "requests/s").name == "x_total"


def test_a_label_that_nobody_has(tmp_path: Path) -> None:
    answer = read_prometheus(write(tmp_path, series({0: "1", 1: "1"}, name="busy", node="n")))
    with pytest.raises(InputError, match="must be a label of the series: __name__, node"):
        answer.by("pod")


@pytest.mark.parametrize(
    "text", ["", "[]", "{", '{"status": "success"}', '{"status": "success", "data": []}', "3"]
)
def test_files_that_are_no_answer(tmp_path: Path, text: str) -> None:
    path = tmp_path / "answer.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InputError):
        read_prometheus(path)
    with pytest.raises(InputError, match="no such file"):
        read_prometheus(tmp_path / "nothing.json")


def test_only_readings_that_are_no_numbers_are_all_unknown(tmp_path: Path) -> None:
    answer = read_prometheus(write(tmp_path, series({0: "NaN", 1: "NaN"}, name="load")))
    assert all(math.isnan(value) for value in answer.combined("sum", "x").values)
    assert answer.account.used == 0


def test_a_file_that_is_too_large_is_refused_before_it_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path, series({0: "1", 1: "2"}, name="load"))
    monkeypatch.setattr(json_file, "MOST_BYTES", 50)
    with pytest.raises(
        InputError, match="ask for a longer step, fewer series, or a file per part of the time"
    ):
        read_prometheus(path)
    packed = tmp_path / "answer.json.gz"
    packed.write_bytes(gzip.compress(path.read_bytes() + b" " * 10_000))
    monkeypatch.setattr(json_file, "MOST_BYTES", packed.stat().st_size + 50)
    with pytest.raises(InputError, match="is more than 0 MB, and JSON is read whole"):
        read_prometheus(packed)


def test_a_gzip_file_and_one_that_is_cut_off(tmp_path: Path) -> None:
    plain = write(tmp_path, series({0: "1", 1: "2"}, name="load"))
    packed = tmp_path / "answer.json.gz"
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    assert row(read_prometheus(packed)) == [1, 2]
    packed.write_bytes(packed.read_bytes()[:-20])
    with pytest.raises(InputError, match="gzip data is damaged or cut off"):
        read_prometheus(packed)
    packed.write_bytes(b"%PDF-1.7 \xff\xfe")
    with pytest.raises(InputError, match="cannot be read"):
        read_prometheus(packed)


@pytest.mark.parametrize(
    "body", [b"%PDF-1.7\n%\xe2\xe3\xcf\xd3", b'{"data": ' + b"9" * 5000 + b"}", b"[" * 100_000]
)
def test_files_that_are_something_else(tmp_path: Path, body: bytes) -> None:
    path = tmp_path / "answer.json"
    path.write_bytes(body)
    with pytest.raises(InputError):
        read_prometheus(path)
    with pytest.raises(InputError, match="cannot be read"):
        read_prometheus(tmp_path)


@pytest.mark.parametrize("text", [" 1", "1e5", "-0.5", "+Inf", "nan", ".5", "5."])
def test_readings_are_the_same_alone_and_at_once(tmp_path: Path, text: str) -> None:
    """A blank sends all readings of a series the slow way; the answer does not change."""
    rows = [series({0: "1", 1: text, 2: "3"}, name="load", a=name) for name in ("x", "y")]
    rows[1]["values"][0][1] = " 1 "
    fast, slow = read_prometheus(write(tmp_path, *rows)).series
    np.testing.assert_array_equal(fast.values, slow.values)
    assert (fast.readings, fast.usable, fast.nan, fast.infinite) == (
        slow.readings,
        slow.usable,
        slow.nan,
        slow.infinite,
    )
