"""Facts about GPUs from their data sheets: memory, bandwidth, dense FLOP/s by precision."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from gpuplan.inputs.errors import InputError, Mistake, did_you_mean
from gpuplan.traces.table import read_table

if TYPE_CHECKING:
    import pandas as pd

#: Number formats in which a model may be trained.
Precision = Literal["bf16", "fp16", "fp8", "fp32"]

PRECISIONS: tuple[Precision, ...] = ("bf16", "fp16", "fp8", "fp32")

GIB = 1024**3

#: Share of the stated memory that a process may count on. The driver of an L40S shows 45.0 of 48 GiB (error
#: correction takes a sixteenth), that of an H100 79.2 of 80: the smaller share is used for all.
USABLE_SHARE = 0.9375


@dataclass(frozen=True, slots=True)
class Gpu:
    """A type of GPU.

    Parameters
    ----------
    name
        As it is written in an input.
    memory_gib
        Memory as sold ("80 GB"), taken as GiB.
    bandwidth
        Memory bandwidth in bytes/s.
    peaks
        Precision and dense FLOP/s (no structured sparsity); a format that the GPU does not compute in is left
        out. ``fp32`` is plain FP32, without TF32.
    source
        Where the figures come from.
    """

    name: str
    memory_gib: float
    bandwidth: float
    peaks: tuple[tuple[Precision, float], ...]
    source: str

    @property
    def flops(self) -> dict[Precision, float]:
        """Dense FLOP/s by precision."""
        return dict(self.peaks)

    @property
    def usable_gib(self) -> float:
        """Memory that a process may count on."""
        return self.memory_gib * USABLE_SHARE

    @property
    def default_precision(self) -> Precision:
        """The 16-bit format of the GPU: bf16, or fp16 where it has no bf16."""
        return "bf16" if "bf16" in self.flops else "fp16"


def _gpu(
    name: str,
    memory_gib: float,
    gigabytes_per_s: float,
    half: float,
    fp32: float,
    source: str,
    *,
    fp8: float | None = None,
    bf16: bool = True,
) -> Gpu:
    """A row of the table; `half`, `fp32` and `fp8` in TFLOP/s."""
    peak: dict[Precision, float] = {"bf16": half * 1e12} if bf16 else {}
    peak |= {"fp16": half * 1e12, "fp32": fp32 * 1e12}
    if fp8 is not None:
        peak["fp8"] = fp8 * 1e12
    return Gpu(name, memory_gib, gigabytes_per_s * 1e9, tuple(peak.items()), source)


_V100 = "NVIDIA V100 Tensor Core GPU data sheet (2020), SXM2"
_A100 = "NVIDIA A100 Tensor Core GPU data sheet (2021), SXM4"
_H100 = "NVIDIA H100 Tensor Core GPU data sheet (2023); dense is half of the figures with sparsity"

#: The table. Figures with sparsity were halved.
GPUS: tuple[Gpu, ...] = (
    _gpu("V100-16GB", 16, 900, 125, 15.7, _V100, bf16=False),
    _gpu("V100-32GB", 32, 900, 125, 15.7, _V100, bf16=False),
    _gpu("T4", 16, 320, 65, 8.1, "NVIDIA T4 data sheet (2019)", bf16=False),
    _gpu("A10", 24, 600, 125, 31.2, "NVIDIA A10 data sheet (2021)"),
    _gpu("A30", 24, 933, 165, 10.3, "NVIDIA A30 data sheet (2022)"),
    _gpu("A6000", 48, 768, 154.8, 38.7, "NVIDIA RTX A6000 data sheet (2022), GA102 white paper for dense"),
    _gpu("A100-40GB", 40, 1555, 312, 19.5, _A100),
    _gpu("A100-80GB", 80, 2039, 312, 19.5, _A100),
    _gpu("L4", 24, 300, 121, 30.3, "NVIDIA L4 data sheet (2023)", fp8=242.5),
    _gpu("L40S", 48, 864, 362.05, 91.6, "NVIDIA L40S data sheet (2023)", fp8=733),
    _gpu("H100", 80, 3350, 989.4, 67, _H100 + ", SXM5", fp8=1978.9),
    _gpu("H100-PCIE", 80, 2000, 756.5, 51, _H100 + ", PCIe", fp8=1513),
    _gpu("H800", 80, 3350, 989.4, 67, "As H100 SXM5; only NVLink is slower (DeepSeek-AI, 2024)", fp8=1978.9),
    _gpu("H200", 141, 4800, 989.4, 67, "NVIDIA H200 data sheet (2024), SXM", fp8=1978.9),
    _gpu("B200", 180, 7700, 2250, 75, "NVIDIA HGX B200 data sheet (2024), an eighth of it", fp8=4500),
    _gpu("MI250X", 128, 3276.8, 383, 47.9, "AMD Instinct MI250X data sheet (2021)"),
    _gpu("MI300X", 192, 5300, 1307.4, 163.4, "AMD Instinct MI300X data sheet (2023)", fp8=2614.9),
)

#: Other spellings of a name, in small letters.
_ALIASES = {
    "v100": "V100-32GB",
    "a100": "A100-80GB",
    "a100-40": "A100-40GB",
    "a100-80": "A100-80GB",
    "h100-sxm": "H100",
    "h100-80gb": "H100",
    "h200-sxm": "H200",
    "b200-sxm": "B200",
    "rtx-a6000": "A6000",
}

#: Systems of `gpu_systems.csv` and the GPU of the table that each of them has.
_SYSTEMS = {
    "a100_sxm": "A100-80GB",
    "a30": "A30",
    "b200_sxm": "B200",
    "h100_pcie": "H100-PCIE",
    "h100_sxm": "H100",
    "h200_sxm": "H200",
    "l4": "L4",
    "l40s": "L40S",
}


def gpu_mistake(name: object) -> Mistake | None:
    """What is wrong with the name of a GPU, or ``None``."""
    if isinstance(name, str) and _key(name) in _by_key():
        return None
    names = [gpu.name for gpu in GPUS]
    rule = f"must be a GPU that is known{did_you_mean(name, names)} (known: {', '.join(names)})"
    return Mistake("gpu", rule, name)


def find_gpu(name: str) -> Gpu:
    """The GPU of a name; capitals, blanks and underscores do not matter, ``"A100"`` is the larger one.

    Raises
    ------
    InputError
        For a name that is not in the table.
    """
    mistake = gpu_mistake(name)
    if mistake is not None:
        raise InputError("gpu", [mistake])
    return _by_key()[_key(name)]


def _key(name: str) -> str:
    return "-".join(name.lower().replace("_", " ").replace("-", " ").split())


def _by_key() -> dict[str, Gpu]:
    known = {_key(gpu.name): gpu for gpu in GPUS}
    return known | {alias: known[_key(name)] for alias, name in _ALIASES.items()}


_COLUMNS = {
    "memory_gib": "mem_capacity_gib",
    "bandwidth": "mem_bw_bytes_per_s",
    "bf16": "bf16_flops",
    "fp8": "fp8_flops",
}


def compare_with_systems(path: str | Path) -> "pd.DataFrame":
    """The table beside a file of GPU systems, a row per figure that both have or one lacks.

    Parameters
    ----------
    path
        ``gpu_systems.csv`` (ai-dynamo/aiconfigurator, Apache-2.0): ``system, mem_capacity_gib,
        mem_bw_bytes_per_s, bf16_flops, fp8_flops``.

    Returns
    -------
    pandas.DataFrame
        ``system, gpu, quantity, table, file, difference_percent`` (of the file's figure). A figure that one
        side does not have is missing, and so is its difference; a system that the table does not have
        has no ``gpu``.

    Raises
    ------
    InputError
        If the file cannot be read, lacks a column, or holds something else than a positive number.
    """
    import pandas as pd

    file = read_table(path, ("system", *_COLUMNS.values()))
    rows, mistakes = [], []
    for number, record in enumerate(file.to_dict("records")):
        gpu = _by_key().get(_key(_SYSTEMS.get(record["system"], "")))
        for quantity, column in _COLUMNS.items():
            text = record[column]
            stated = _positive(text)
            if text and stated is None:
                mistakes.append(Mistake(column, "must be a positive number or empty", text, number + 2))
            ours = _figure(gpu, quantity)
            apart = None if ours is None or stated is None else 100 * (ours - stated) / stated
            rows.append((record["system"], gpu.name if gpu else None, quantity, ours, stated, apart))
    if mistakes:
        raise InputError(str(path), mistakes)
    names = ["system", "gpu", "quantity", "table", "file", "difference_percent"]
    kinds = dict.fromkeys(names[3:], "float64")
    return pd.DataFrame(rows, columns=names).astype(kinds)


def _figure(gpu: Gpu | None, quantity: str) -> float | None:
    if gpu is None:
        return None
    if quantity == "memory_gib":
        return gpu.memory_gib
    if quantity == "bandwidth":
        return gpu.bandwidth
    return gpu.flops.get("fp8" if quantity == "fp8" else "bf16")


def _positive(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if 0 < value < float("inf") else None
