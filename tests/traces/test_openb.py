"""Pods and nodes of the Alibaba trace: hand-made files anywhere, exact counts where the real files are present."""

import csv
import gzip
from pathlib import Path

import numpy as np
import pytest

from gpuplan.inputs.errors import InputError
from gpuplan.traces import openb

HEADER = "name,cpu_milli,memory_mib,num_gpu,gpu_milli"
TIMED = f"{HEADER},gpu_spec,pod_phase,creation_time,deletion_time,scheduled_time"

#: One row per fault, in the order of the account, after three that are right.
FAULTY = f"""\
{TIMED}
a,4000,1024,1,250,T4,Running,10,90,20
b,4000,1024,0,0,,Succeeded,10,80,10
c,4000,1024,8,1000,G2|g3,Pending,10,90,
a,4000,1024,1,250,T4,Running,10,90,20
 ,4000,1024,1,250,T4,Running,10,90,20
d,4000.5,1024,1,250,T4,Running,10,90,20
e,4000,,1,250,T4,Running,10,90,20
f,4000,1024,-1,250,T4,Running,10,90,20
g,4000,1024,1,250,T4,Running,10,90,soon
h,4000,1024,1,1001,T4,Running,10,90,20
i,4000,1024,1,0,T4,Running,10,90,20
j,4000,1024,0,500,T4,Running,10,90,20
k,4000,1024,1,250,T4,Running,10,90,9
l,4000,1024,1,250,T4,Running,10,15,20
"""


def write(folder: Path, text: str, name: str = "pods.csv") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def test_every_row_is_used_or_left_out_for_a_reason(tmp_path: Path) -> None:
    found = openb.read_pods(write(tmp_path, FAULTY))
    assert found.pods.name.tolist() == ["a", "b", "c"]
    assert (found.account.read, found.account.used) == (14, 3)
    assert [count for _, count in found.account.excluded] == [2, 3, 1, 1, 2, 2]
    assert found.pods.types.tolist() == [("T4",), (), ("G2", "G3")]
    assert dict((what, amount) for what, amount, _ in found.account.amounts) == {
        "asked for by all pods": 8.25,
        "pods that take part of a GPU": 1,
        "pods without a GPU": 1,
        "pods that name types of GPUs": 2,
        "never scheduled": 1,
    }
    assert "num_gpu x gpu_milli" in repr(found.account)


def test_a_list_without_moments_and_types(tmp_path: Path) -> None:
    found = openb.read_pods(write(tmp_path, f"{HEADER}\np,1,1,1,500\nq,1,1,2,1000\n"))
    assert found.pods.demand_milli.tolist() == [500, 2000]
    assert (found.never_scheduled, found.open_at_end, found.gpu_seconds, found.end_s) == ([], [], 0, -1)
    assert np.isnan(found.mean_wait_s)


def test_columns_that_lack_are_named_and_only_needed_ones(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="1 mistake") as caught:
        openb.read_pods(write(tmp_path, "name,cpu_milli,memory_mib,num_gpu\np,1,1,1\n"))
    assert "gpu_milli: is a column" in str(caught.value)


@pytest.mark.parametrize(
    ("content", "said"),
    [(None, "there is no such file"), ("", "must be a CSV"), (f"{HEADER}\n", "at least one usable pod")],
)
def test_files_that_cannot_be_used(tmp_path: Path, content: str | None, said: str) -> None:
    path = tmp_path / "pods.csv" if content is None else write(tmp_path, content)
    with pytest.raises(InputError, match=said):
        openb.read_pods(path)


def test_hostile_names_stay_text(tmp_path: Path) -> None:
    found = openb.read_pods(write(tmp_path, f'{HEADER}\n"=1+1<b>",1,1,1,500\n'))
    assert found.pods.name.tolist() == ["=1+1<b>"]


def test_mistakes_of_nodes_are_all_named(tmp_path: Path) -> None:
    text = "sn,cpu_milli,memory_mib,gpu,model\nn1,1,1,8,G2\nn1,x,1,0,\n,1,-1,2,nan\n"
    with pytest.raises(InputError, match="5 mistakes") as caught:
        openb.read_nodes(write(tmp_path, text))
    assert [(mistake.path, mistake.line) for mistake in caught.value.mistakes] == [
        ("cpu_milli", 3),
        ("memory_mib", 4),
        ("sn", 3),
        ("sn", 4),
        ("model", 4),
    ]


# ---------------------------------------------------------------------- the real files


@pytest.fixture(scope="module")
def folder(shared: Path) -> Path:
    return shared / "traces" / "openb"


@pytest.mark.parametrize("name", ["gpuspec33", "multigpu20"])
def test_the_real_pods_against_plain_reading(folder: Path, name: str) -> None:
    path = folder / f"openb_pod_list_{name}.csv.gz"
    with gzip.open(path, "rt", encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    found = openb.read_pods(path)
    assert (
        found.account.read == found.account.used == len(rows) == {"gpuspec33": 6974, "multigpu20": 8324}[name]
    )
    assert found.account.excluded == ()
    asked = [int(row["num_gpu"]) * int(row["gpu_milli"]) for row in rows]
    assert found.pods.demand_milli.tolist() == asked
    assert [set(types) for types in found.pods.types] == [
        set(filter(None, row.get("gpu_spec", "").split("|"))) for row in rows
    ]
    if name == "gpuspec33":
        assert len(found.never_scheduled) == 713 == sum(row["scheduled_time"] == "" for row in rows)
        held = [
            want * (int(row["deletion_time"]) - int(row["scheduled_time"]))
            for want, row in zip(asked, rows, strict=True)
            if row["scheduled_time"]
        ]
        assert found.gpu_seconds == sum(held) / 1000


def test_the_real_nodes(folder: Path) -> None:
    found = openb.read_nodes(folder / "openb_node_list_all_node.csv")
    assert (len(found), len(found.with_gpus()), found.gpu_milli) == (1523, 1213, 6_212_000)
    by_type = {kind: int(found.gpus[found.gpu_type == kind].sum()) for kind in set(found.gpu_type)}
    assert by_type.pop("") == 0
    assert by_type == {
        "G2": 4392,
        "T4": 842,
        "G3": 312,
        "P100": 265,
        "V100M32": 204,
        "V100M16": 195,
        "A10": 2,
    }


def test_one_real_pod_fits_no_node_of_its_types(folder: Path) -> None:
    """120 cores beside 8 GPUs of type G2, whose nodes have 96 cores; without its constraint a G3 node has them."""
    pods = openb.read_pods(folder / "openb_pod_list_gpuspec33.csv.gz").pods
    nodes = openb.read_nodes(folder / "openb_node_list_all_node.csv").with_gpus()
    sentence = "asks for 120,000 thousandths of a CPU, more than any node has that takes it otherwise"
    assert pods.impossible(nodes) == {"openb-pod-1639": sentence}
    assert pods.of_any_type().impossible(nodes) == {}
