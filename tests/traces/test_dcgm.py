"""GPUs of the DCGM exporter: joined by UUID, blanks, ranges, pods that come and go, several metrics and files."""

import json
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuplan.inputs.errors import InputError
from gpuplan.traces.dcgm import read_dcgm
from gpuplan.traces.dcgm_metrics import MEASURES, is_blank

#: Longer runs: GPUPLAN_EXAMPLES=50 reads fifty times as many files.
MORE = int(os.environ.get("GPUPLAN_EXAMPLES", "1"))

NAN = float("nan")
FIRST = 1775001600  # 2026-04-01T00:00Z
UTIL, USED, ENERGY = "DCGM_FI_DEV_GPU_UTIL", "DCGM_FI_DEV_FB_USED", "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION"


def series(values: dict[int, str], name: str = UTIL, step: int = 60, **labels: str) -> dict[str, Any]:
    """A series of GPU-a with these values by the number of their step."""
    metric = {"__name__": name, "UUID": "GPU-a", "Hostname": "n1", "gpu": "0"} | labels
    metric = {key: value for key, value in metric.items() if value}
    return {"metric": metric, "values": [[FIRST + step * at, text] for at, text in values.items()]}


def write(folder: Path, *result: dict[str, Any], name: str = "dcgm.json") -> Path:
    path = folder / name
    body = {"status": "success", "data": {"resultType": "matrix", "result": list(result)}}
    path.write_text(json.dumps(body), encoding="utf-8")
    return path


def test_pods_that_come_and_go_are_one_gpu(tmp_path: Path) -> None:
    """Free, then pod p from minute 2 to 4, then free again: three series of Prometheus, one GPU."""
    path = write(
        tmp_path,
        series({0: "0", 1: "0", 5: "0", 6: "0"}),
        series({2: "50", 3: "100", 4: "0"}, pod="p", namespace="team"),
    )
    found = read_dcgm(path)
    assert [gpu.uuid for gpu in found.gpus] == ["GPU-a"]
    assert (found.gpus[0].host, found.gpus[0].number) == ("n1", "0")
    assert found.tables["utilization"].tolist() == [[0, 0, 0.5, 1, 0, 0, 0]]
    assert found.gpus_held().values.tolist() == [0, 0, 1, 1, 1, 0, 0]
    assert found.gpus_held_by("namespace")["team"].values.tolist() == [0, 0, 1, 1, 1, 0, 0]
    assert found.gpus_busy().values.tolist() == [0, 0, 1, 1, 0, 0, 0]
    assert found.start == datetime(2026, 4, 1, tzinfo=UTC)
    # minutes: 7 seen, 3 held, 1 of them idle, 1.5 of work
    hours = {name: round(60 * value, 9) for name, value in found.figures.items()}
    assert hours == {"seen": 7, "held": 3, "held_idle": 1, "worked": 1.5}


def test_a_series_that_lingers_gives_way_to_the_newer_one(tmp_path: Path) -> None:
    """The server repeats the last reading of what is gone: at the start of p the free GPU, at its end p itself."""
    path = write(
        tmp_path,
        series({0: "1", 1: "1", 2: "1", 3: "1", 7: "2", 8: "2"}),
        series({2: "90", 3: "91", 4: "92", 5: "93", 6: "93", 7: "93"}, pod="p"),
    )
    found = read_dcgm(path)
    np.testing.assert_allclose(
        found.tables["utilization"][0], [0.01, 0.01, 0.9, 0.91, 0.92, 0.93, 0.93, 0.02, 0.02]
    )
    assert found.gpus_held().values.tolist() == [0, 0, 1, 1, 1, 1, 1, 0, 0]
    assert ("of a series that lingered beside a newer one of the same GPU", 3) in found.account.excluded
    assert found.account.read == found.account.used + 3 == 12


def test_two_servers_that_scrape_one_gpu_must_agree(tmp_path: Path) -> None:
    one, same = series({0: "10", 1: "20"}), series({0: "10", 1: "20"}, instance="other:9400")
    found = read_dcgm(write(tmp_path, one, same))
    assert found.tables["utilization"].tolist() == [[0.1, 0.2]]
    assert dict(found.account.excluded) == {"the same reading by another series of the same GPU and work": 2}
    with pytest.raises(
        InputError, match=r"GPU-a: must not have two readings of utilization.*\(bin 1\).*0\.2 and 0\.3"
    ):
        read_dcgm(write(tmp_path, one, series({0: "10", 1: "30"}, instance="other:9400")))


@pytest.mark.parametrize(
    "blank",
    [
        "9223372036854775792",
        "9223372036854775794",
        "2147483632",
        "2147483635",
        "140737488355328",
        "1.40737488355330e14",
    ],
)
def test_signs_for_no_value_are_unknown_and_not_enormous(tmp_path: Path, blank: str) -> None:
    found = read_dcgm(write(tmp_path, series({0: "1024", 1: blank}, USED)))
    np.testing.assert_array_equal(found.tables["memory_used"], [[1, NAN]])
    assert found.account.excluded[0][1] == 1
    assert found.account.used == 1


def test_what_is_large_and_no_sign_stays() -> None:
    assert not is_blank(np.array([0.0, 81920.0, 2147483631.0, 2147483636.0, NAN])).any()


@pytest.mark.parametrize(("text", "rule"), [("101", "at least 0 and at most 100"), ("-1", "at least 0")])
def test_a_share_outside_its_range_is_a_mistake(tmp_path: Path, text: str, rule: str) -> None:
    with pytest.raises(InputError, match=rf"result\.0 \({UTIL}\), bin 1: must be {rule}"):
        read_dcgm(write(tmp_path, series({0: "1", 1: text})))


def test_a_ratio_that_rounding_lifts_above_one_is_one(tmp_path: Path) -> None:
    found = read_dcgm(write(tmp_path, series({0: "1.000003"}, "DCGM_FI_PROF_SM_ACTIVE"), series({1: "5"})))
    np.testing.assert_array_equal(found.tables["sm_active"], [[1, NAN]])


def test_energy_is_a_counter_and_becomes_power(tmp_path: Path) -> None:
    """30,000 J in a minute are 500 W; a driver that is loaded again starts from 0."""
    readings = {0: "1000000", 1: "31000000", 2: "6000000", 3: "6000000"}
    found = read_dcgm(write(tmp_path, series(readings, ENERGY)))
    np.testing.assert_array_equal(found.tables["energy_power"], [[500, 100, 0, NAN]])
    assert any("1 resets of counters" in rule for rule in found.account.rules)


def test_files_of_one_metric_each_are_joined(tmp_path: Path) -> None:
    util = write(
        tmp_path, series({0: "10", 1: "20"}), series({0: "30"}, UUID="GPU-b", gpu="1"), name="util.json"
    )
    used = write(tmp_path, series({1: "2048", 2: "4096"}, USED), name="used.json")
    found = read_dcgm(util, used)
    assert [gpu.uuid for gpu in found.gpus] == ["GPU-a", "GPU-b"]
    np.testing.assert_array_equal(found.tables["utilization"], [[0.1, 0.2, NAN], [0.3, NAN, NAN]])
    np.testing.assert_array_equal(found.tables["memory_used"], [[NAN, 2, 4], [NAN, NAN, NAN]])
    assert found.history("utilization").values[:2].tolist() == [0.2, 0.2]
    assert found.history("memory_used", "sum").unit == "GiB"
    frame = found.to_frame()
    assert frame["uuid"].tolist() == ["GPU-a"] * 3 + ["GPU-b"]
    assert frame["time"].dt.minute.tolist() == [0, 1, 2, 0]


def test_files_on_other_grids_are_refused(tmp_path: Path) -> None:
    one = write(tmp_path, series({0: "10", 1: "20"}), name="one.json")
    other = write(tmp_path, series({0: "10", 1: "20"}, USED, step=300), name="other.json")
    with pytest.raises(InputError, match=r"must have the times of one\.json \(60 s apart\), not 300 s apart"):
        read_dcgm(one, other)


def test_series_without_a_name_are_what_is_said(tmp_path: Path) -> None:
    path = write(tmp_path, series({0: "10", 1: "20"}, name=""))
    assert read_dcgm(path, metric=UTIL).tables["utilization"].tolist() == [[0.1, 0.2]]
    with pytest.raises(InputError, match=r"must have a metric of the DCGM exporter.*it has \(no name\)"):
        read_dcgm(path)
    with pytest.raises(InputError, match="did you mean DCGM_FI_DEV_GPU_UTIL"):
        read_dcgm(path, metric="DCGM_FI_DEV_GPU_UTI")


def test_other_metrics_are_counted_and_named(tmp_path: Path) -> None:
    path = write(tmp_path, series({0: "10"}), series({0: "60", 1: "61"}, "DCGM_FI_DEV_GPU_TEMP"))
    account = read_dcgm(path).account
    assert dict(account.excluded) == {"of a metric that is not known here (DCGM_FI_DEV_GPU_TEMP)": 2}
    assert (account.read, account.used) == (3, 1)


def test_a_series_without_a_uuid_is_a_mistake(tmp_path: Path) -> None:
    with pytest.raises(
        InputError, match=r"result\.0: must have the label UUID; it has Hostname, __name__, gpu"
    ):
        read_dcgm(write(tmp_path, series({0: "10"}, UUID="")), bin_s=60)


def test_instances_of_a_gpu_are_apart(tmp_path: Path) -> None:
    name = "DCGM_FI_PROF_GR_ENGINE_ACTIVE"
    path = write(
        tmp_path,
        *(series({0: text}, name, GPU_I_ID=part) for part, text in (("1", "0.5"), ("2", "1"))),
        series({1: "0"}, name, GPU_I_ID="1"),
    )
    assert [gpu.uuid for gpu in read_dcgm(path, bin_s=60).gpus] == ["GPU-a/1", "GPU-a/2"]


def test_labels_that_a_server_renamed(tmp_path: Path) -> None:
    """The exporter's own pod is in ``pod``; what runs on the GPU is in ``exported_pod``."""
    path = write(tmp_path, series({0: "1", 1: "2"}, pod="dcgm-exporter-x", exported_pod="train-0"))
    assert list(read_dcgm(path).gpus_held_by("pod")) == ["train-0"]


def test_an_instant_answer_and_gaps(tmp_path: Path) -> None:
    path = tmp_path / "now.json"
    metric = {"__name__": UTIL, "UUID": "GPU-a"}
    body = {"resultType": "vector", "result": [{"metric": metric, "value": [FIRST, "25"]}]}
    path.write_text(json.dumps({"status": "success", "data": body, "warnings": ["cut off"]}))
    found = read_dcgm(path)
    assert found.tables["utilization"].tolist() == [[0.25]]
    assert "The server warns: cut off" in found.account.rules
    gap = read_dcgm(write(tmp_path, series({0: "0", 1: "NaN", 3: "+Inf", 4: "0"}, pod="p")))
    np.testing.assert_array_equal(gap.gpus_held().values, [1, NAN, NAN, NAN, 1])
    assert (gap.account.read, gap.account.used) == (4, 2)


def test_an_unknown_measure_is_told_with_those_there(tmp_path: Path) -> None:
    found = read_dcgm(write(tmp_path, series({0: "1", 1: "2"})))
    with pytest.raises(InputError, match="must be one of utilization"):
        found.history("power")
    assert "1 GPUs, 2 bins of 60 s" in repr(found)


def test_every_measure_has_a_name_of_its_own() -> None:
    assert len({measure.name for measure in MEASURES.values()}) == len(MEASURES)


@settings(deadline=None, max_examples=40)
@given(st.data())
def test_however_a_gpu_is_cut_into_series_it_is_the_same(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    """Readings of a GPU that serves one pod after another, a series per pod: joined, they are the readings again."""
    n = data.draw(st.integers(2, 20))
    values = data.draw(st.lists(st.integers(0, 100), min_size=n, max_size=n))
    pods = data.draw(st.lists(st.sampled_from(["", "p", "q"]), min_size=n, max_size=n))
    parts: dict[str, dict[int, str]] = {}
    for at, (value, pod) in enumerate(zip(values, pods, strict=True)):
        parts.setdefault(pod, {})[at] = str(value)
    rows = [series(readings, pod=pod) for pod, readings in parts.items()]
    rows = data.draw(st.permutations(rows))
    found = read_dcgm(write(tmp_path_factory.mktemp("dcgm"), *rows), bin_s=60)
    np.testing.assert_allclose(found.tables["utilization"], [[value / 100 for value in values]])
    assert found.gpus_held().values.tolist() == [float(pod != "") for pod in pods]
    assert found.account.used == n


@settings(deadline=None, max_examples=60 * MORE)
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
        lambda inner: (
            st.lists(inner, max_size=4)
            | st.dictionaries(
                st.sampled_from(
                    [
                        "status",
                        "data",
                        "result",
                        "resultType",
                        "metric",
                        "values",
                        "value",
                        "UUID",
                        "__name__",
                    ]
                ),
                inner,
                max_size=4,
            )
        ),
        max_leaves=12,
    )
)
def test_whatever_json_holds_there_is_no_traceback(
    tmp_path_factory: pytest.TempPathFactory, body: Any
) -> None:
    path = tmp_path_factory.mktemp("fuzz") / "answer.json"
    path.write_text(json.dumps(body), encoding="utf-8", errors="replace")
    with pytest.raises(InputError):
        read_dcgm(path)
