"""The table of GPUs: names, formats, and how it compares with the public table of GPU systems."""

from pathlib import Path

import pandas as pd
import pytest

from gpuplan.forecast.gpus import GPUS, compare_with_systems, find_gpu
from gpuplan.inputs.errors import InputError


@pytest.mark.parametrize(
    ("written", "name"),
    [("H100", "H100"), ("h100_sxm", "H100"), ("a100 80gb", "A100-80GB"), ("A100", "A100-80GB"), ("t4", "T4")],
)
def test_names_are_found_however_they_are_spelled(written: str, name: str) -> None:
    assert find_gpu(written).name == name


@pytest.mark.parametrize("written", ["", "H1000", 80, None])
def test_an_unknown_gpu_is_refused_with_the_known_ones(written: str) -> None:
    with pytest.raises(InputError, match="must be a GPU that is known") as caught:
        find_gpu(written)
    assert "MI300X" in str(caught.value)
    assert ("did you mean H100?" in str(caught.value)) == (written == "H1000")


def test_every_gpu_has_its_source_and_a_16_bit_format() -> None:
    assert len({gpu.name for gpu in GPUS}) == len(GPUS)
    for gpu in GPUS:
        assert gpu.source
        assert gpu.default_precision in gpu.flops
        assert gpu.flops["fp32"] < gpu.flops[gpu.default_precision] < 2.3e15
        if "fp8" in gpu.flops:
            assert gpu.flops["fp8"] == pytest.approx(2 * gpu.flops["bf16"], rel=0.02)
    assert find_gpu("V100").default_precision == "fp16"
    assert "fp8" not in find_gpu("A100").flops


def test_usable_memory_is_what_the_driver_of_an_l40s_shows() -> None:
    assert find_gpu("L40S").usable_gib == 45.0


HEADER = "system,mem_capacity_gib,mem_bw_bytes_per_s,bf16_flops,fp8_flops\n"


def test_a_hand_made_file_is_compared_figure_by_figure(tmp_path: Path) -> None:
    path = tmp_path / "systems.csv"
    path.write_text(HEADER + "a100_sxm,40.0,2039000000000,312e12,\nabacus,1,2,3,4\n", encoding="utf-8")
    found = compare_with_systems(path).set_index(["system", "quantity"])
    ours = found.loc["a100_sxm"]
    assert ours["gpu"].unique() == ["A100-80GB"]
    assert ours["difference_percent"].dropna().to_dict() == {"memory_gib": 100, "bandwidth": 0, "bf16": 0}
    unknown = found.loc["abacus"]
    assert unknown["gpu"].isna().all()
    assert unknown["table"].isna().all()
    assert unknown["file"].tolist() == [1, 2, 3, 4]


def test_figures_that_are_no_numbers_are_all_named_with_their_lines(tmp_path: Path) -> None:
    path = tmp_path / "systems.csv"
    path.write_text(HEADER + "l4,24,x,1,1\nl4,24,1,-3,nan\n", encoding="utf-8")
    with pytest.raises(InputError) as caught:
        compare_with_systems(path)
    assert [(m.path, m.value, m.line) for m in caught.value.mistakes] == [
        ("mem_bw_bytes_per_s", "x", 2),
        ("bf16_flops", "-3", 3),
        ("fp8_flops", "nan", 3),
    ]


def test_the_table_differs_from_the_public_one_in_what_is_known_only(shared: Path) -> None:
    found = compare_with_systems(shared / "traces" / "gpu-specs" / "gpu_systems.csv")
    assert found["system"].nunique() == 14
    both = found.dropna(subset="difference_percent")
    assert len(both) == 30  # 8 systems, 3 figures each, and fp8 of 6
    apart = both[both["difference_percent"].abs() > 0.25]
    # sold as 48 GB, of which its driver shows 45.0 GiB
    assert apart[["system", "quantity"]].to_numpy().tolist() == [["l40s", "memory_gib"]]
    assert apart["difference_percent"].item() == pytest.approx(100 * (48 / 44.99 - 1))
    lacking = found[found["gpu"].notna() & found["file"].isna()]
    assert lacking["table"].isna().all()  # no fp8 on A100 and A30, on either side
    assert isinstance(found, pd.DataFrame)
