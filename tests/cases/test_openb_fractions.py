"""Case `openb-fractions`: shares of GPUs, several types that will do, pods that never ran."""

from pathlib import Path
from typing import Any

import pytest

from gpuplan.packing.fragmentation import place
from gpuplan.packing.pods import Nodes
from gpuplan.traces.openb import OpenbPods, read_nodes, read_pods

CASE = "openb-fractions"

HEADER = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time"


@pytest.fixture(scope="module")
def trace(case: Path) -> OpenbPods:
    return read_pods(case / "input.csv")


@pytest.fixture(scope="module")
def cluster(case: Path) -> Nodes:
    return read_nodes(case / "input_nodes.csv")


def test_pods_and_gpu_time(trace: OpenbPods, expected: dict[str, Any]) -> None:
    assert len(trace.pods) == trace.account.used == trace.account.read == expected["pods"]
    assert trace.gpu_pods == expected["gpu_pods"]
    assert trace.gpu_seconds == expected["gpu_seconds"]
    assert trace.gpu_seconds / 3600 == pytest.approx(expected["gpu_hours"], abs=5e-7)


def test_each_pod_holds_its_share(trace: OpenbPods) -> None:
    """8 x 3600, 0.46 x 7200, 3600, 0, 0.22 x 1800, 0, 2 x 3600, 0.5 x 1000 GPU-seconds."""
    assert (trace.held_milli_s / 1000).tolist() == [28800, 3312, 3600, 0, 396, 0, 7200, 500]
    assert (trace.pods.demand_milli / 1000).tolist() == [8, 0.46, 1, 0, 0.22, 1, 2, 0.5]


def test_never_scheduled_and_open(trace: OpenbPods, expected: dict[str, Any]) -> None:
    assert trace.never_scheduled == expected["never_scheduled"]
    assert trace.open_at_end == expected["open_at_trace_end"]
    assert trace.end_s == 10_000


def test_mean_wait_of_those_that_started(trace: OpenbPods, expected: dict[str, Any]) -> None:
    assert trace.mean_wait_s == pytest.approx(expected["mean_wait_s"], abs=5e-7)


def test_candidates_by_type(trace: OpenbPods, cluster: Nodes, expected: dict[str, Any]) -> None:
    found = trace.candidate_gpus(cluster)
    assert {name: found[name] for name in expected["candidate_gpus"]} == expected["candidate_gpus"]
    assert "p4" not in found  # asks for no GPU
    assert found["p6"] == int(cluster.gpus.sum()) == expected["cluster_gpus"]


def test_a_type_that_no_node_has_is_said_by_name(trace: OpenbPods, cluster: Nodes) -> None:
    assert trace.pods.impossible(cluster) == {"p7": "asks for G9, which no node has"}
    run = place(cluster, trace.pods, "best-fit", seed=3)
    rows = run.to_frame()
    assert (rows["pod"] == "p7").any()
    assert rows[rows["pod"] == "p7"]["node"].isna().all()
    assert run.check() == []


# ------------------------------------------------- the same fault in other clothes


def read(folder: Path, *rows: str) -> OpenbPods:
    path = folder / "pods.csv"
    path.write_text("\n".join((HEADER, *rows)) + "\n", encoding="utf-8")
    return read_pods(path)


@pytest.mark.parametrize("spec", [" V100M16 | T4 ", "v100m16|t4", "T4|V100M16|T4", "V100M16|T4|"])
def test_blanks_capitals_and_doubles(tmp_path: Path, cluster: Nodes, spec: str) -> None:
    found = read(tmp_path, f"p,1000,1024,1,500,{spec},LS,Running,0,9,0")
    assert found.pods.types.tolist() == [("T4", "V100M16")]
    assert found.candidate_gpus(cluster) == {"p": 12}


@pytest.mark.parametrize("spec", ["", "nan", "NaN", " "])
def test_no_type_named(tmp_path: Path, cluster: Nodes, spec: str) -> None:
    found = read(tmp_path, f"p,1000,1024,1,500,{spec},LS,Running,0,9,0")
    assert found.pods.types.tolist() == [()]
    assert found.candidate_gpus(cluster) == {"p": 20}


def test_more_than_a_whole_gpu_is_left_out_and_counted(tmp_path: Path) -> None:
    found = read(tmp_path, "p,1,1,1,1000,,LS,Running,0,9,0", "q,1,1,1,1460,,LS,Running,0,9,0")
    assert found.pods.name.tolist() == ["p"]
    assert found.account.excluded == (("more than 1,000 thousandths of a GPU", 1),)


def test_a_share_of_each_of_two_gpus(tmp_path: Path, cluster: Nodes) -> None:
    """0.5 of each of two GPUs is 1.0; placed, it has two GPUs with half of each."""
    found = read(tmp_path, "p,1,1,2,500,,LS,Succeeded,0,10,0")
    assert found.pods.demand_milli.tolist() == [1000]
    assert found.gpu_seconds == 10.0
    run = place(cluster, found.pods, "fgd")
    assert run.to_frame()["gpus"].iloc[0] == "0,1"
    assert run.check() == []


@pytest.mark.parametrize("empty", ["", "nan", "NaN"])
def test_an_empty_moment_is_no_second_0(tmp_path: Path, empty: str) -> None:
    found = read(
        tmp_path, f"p,1,1,1,1000,,LS,Pending,100,700,{empty}", "q,1,1,1,1000,,LS,Running,100,700,130.0"
    )
    assert found.never_scheduled == ["p"]
    assert found.held_milli_s.tolist() == [0, 570_000]
    assert found.mean_wait_s == 30
