"""Case `sacct-gpu-tres`: the total counts, its typed parts say of which kind, and nothing is added twice."""

from pathlib import Path
from typing import Any

import pytest

from gpuplan.traces.history import History
from gpuplan.traces.slurm import read_sacct
from gpuplan.traces.slurm_words import gpus_of

CASE = "sacct-gpu-tres"


@pytest.fixture(scope="module")
def found(case: Path) -> History:
    return read_sacct(case / "input.txt")


def test_expected_values(found: History, expected: dict[str, Any]) -> None:
    assert dict(zip(found.job, found.gpus.tolist(), strict=True)) == expected["gpus"]
    assert found.gpu_seconds / 3600 == expected["gpu_hours"]
    assert found.gpus_by_type() == expected["by_type"]


def test_slices_are_said(found: History) -> None:
    assert any("gres/shard" in what and count == 1 for what, count in found.account.changed)


@pytest.mark.parametrize(
    ("text", "count", "kinds"),
    [
        ("gpu:4", 4, ""),
        ("gpu", 1, ""),
        ("gpu:a100", 1, "a100"),
        ("gpu:a100:4", 4, "a100"),
        ("gres:gpu:a100:2(S:0-1)", 2, "a100"),
        ("gpu:a100:2(IDX:0-1,3)", 2, "a100"),
        ("gres/gpu:a100:2", 2, "a100"),
        ("gpu:a100:2,gpu:h100:1", 3, "a100:2,h100:1"),
        ("gres/gpu:a100_1g.5gb=2,gres/gpu=2", 2, "a100_1g.5gb"),
        ("gres/gpu:a100=1,gres/gpu=2", 2, "a100:1"),
        ("gres/gpu:a100=8,node=2", 8, "a100"),  # two nodes: the text is the total already
        ("gres/gpumem=40777023488,gres/gpuutil=100", 0, ""),
        ("gres/shard=3", 0, ""),
        ("license/gpu=7", 0, ""),
        ("", 0, ""),
    ],
)
def test_other_clothes(text: str, count: int, kinds: str) -> None:
    read = gpus_of(text)
    assert (read.count, read.kinds, read.rule) == (count, kinds, "")


@pytest.mark.parametrize(
    "text", ["gres/gpu=x", "gres/gpu=-1", "gres/gpu=1.5", "gres/gpu=99999999999", "gres/gpu:a="]
)
def test_a_count_that_is_none(text: str) -> None:
    assert "whole number of GPUs" in gpus_of(text).rule


def test_typed_entries_that_are_more_than_the_total(tmp_path: Path) -> None:
    path = tmp_path / "one.txt"
    path.write_text("JobID|Elapsed|AllocTRES\n1|01:00:00|gres/gpu:a=4,gres/gpu:b=4,gres/gpu=4\n")
    found = read_sacct(path)
    assert found.gpus.tolist() == [4]
    assert found.gpus_by_type() == {"unknown": 4}
    assert any("typed GPUs are more than their total" in what for what, _ in found.account.changed)
