"""Utilization (MFU) that others measured, and the range that an estimate takes from it.

The best value is the median of the measured ones, the range runs from the lowest to the highest. Nothing here
is fitted: none of the sources is a run that `gpuplan.forecast.published_runs` compares with.

MFU is the share of a GPU's dense peak that the arithmetic of the model itself reaches, recomputation of
activations not counted (Chowdhery and others, "PaLM", 2022, arXiv 2204.02311, appendix B). Where a measured run
recomputed all activations, its GPUs did a third more (four passes instead of three). The rates here count that,
as the work of an estimate does.
"""

from dataclasses import dataclass
from statistics import median

from gpuplan.forecast.gpus import Gpu, Precision


@dataclass(frozen=True, slots=True)
class Utilization:
    """A share of the dense peak with its range, and where it comes from."""

    low: float
    best: float
    high: float
    source: str


@dataclass(frozen=True, slots=True)
class Measured:
    """One published measurement: GPUs, format, MFU, what was measured and by whom.

    `recomputed` says that all activations were computed twice.
    """

    family: str
    precision: Precision
    mfu: float
    what: str
    source: str
    recomputed: bool = False

    @property
    def rate(self) -> float:
        """Share of the peak with recomputation counted."""
        return self.mfu * 4 / 3 if self.recomputed else self.mfu


_PALM = "Chowdhery and others, PaLM, 2022, arXiv 2204.02311, table 3"
_MEGATRON = "Korthikanti and others, Reducing Activation Recomputation, 2022, arXiv 2205.05198, table 5"
_MEGASCALE = "Jiang and others, MegaScale, 2024, arXiv 2402.15627"
_TITAN = "torchtitan, docs/performance.md, FSDP2 on 64 GPUs"
_FOUNDRY = "MosaicML llm-foundry, scripts/train/benchmarking/README.md"
_SHOEYBI = "Shoeybi and others, Megatron-LM, 2019, arXiv 1909.08053, abstract"

MEASURED: tuple[Measured, ...] = (
    Measured("A100", "bf16", 0.302, "MT-NLG 530B", _PALM, recomputed=True),
    Measured("A100", "bf16", 0.415, "22B", _MEGATRON),
    Measured("A100", "bf16", 0.514, "175B", _MEGATRON),
    Measured("A100", "bf16", 0.560, "530B", _MEGATRON),
    Measured("A100", "bf16", 0.563, "1T", _MEGATRON),
    Measured("A100", "bf16", 0.552, "175B on 12,288 GPUs", _MEGASCALE),
    Measured("A100", "bf16", 0.412, "175B on 12,288 GPUs, Megatron-LM (55.2 % / 1.34)", _MEGASCALE),
    Measured("A100", "bf16", 0.568, "8B", _TITAN),
    Measured("A100", "bf16", 0.517, "70B", _TITAN, recomputed=True),
    Measured("H100", "bf16", 0.4257, "70B, 2k tokens, 64 GPUs", _FOUNDRY, recomputed=True),
    Measured("H100", "bf16", 0.4392, "30B, 2k tokens, 32 GPUs", _FOUNDRY, recomputed=True),
    Measured("H100", "bf16", 0.3986, "13B, 2k tokens, 64 GPUs", _FOUNDRY),
    Measured("H100", "bf16", 0.4080, "3B, 2k tokens, 64 GPUs", _FOUNDRY),
    Measured("H100", "bf16", 0.4085, "1B, 2k tokens, 64 GPUs", _FOUNDRY),
    Measured("H100", "bf16", 0.2992, "30B, 8k tokens, 8 GPUs", _FOUNDRY, recomputed=True),
    Measured("H100", "bf16", 0.3714, "7B, 8k tokens, 8 GPUs", _FOUNDRY, recomputed=True),
    Measured("H100", "bf16", 0.3773, "1B, 8k tokens, 8 GPUs", _FOUNDRY),
    Measured("H100", "fp8", 0.1438, "3B, 32k tokens, 8 GPUs", _FOUNDRY, recomputed=True),
    Measured("H100", "fp8", 0.2328, "3B, 8k tokens, 8 GPUs", _FOUNDRY),
    Measured("H100", "fp8", 0.2770, "3B, 2k tokens, 8 GPUs", _FOUNDRY),
    Measured("H100", "fp8", 0.2071, "1B, 8k tokens, 8 GPUs", _FOUNDRY),
    Measured("H100", "fp8", 0.2906, "1B, 512 tokens, 8 GPUs", _FOUNDRY),
    Measured("V100", "fp16", 0.30, "1.2B, one GPU (39 TFLOP/s)", _SHOEYBI),
    Measured("V100", "fp16", 0.227, "8.3B, 512 GPUs (15.1 PFLOP/s of 130 TFLOP/s each)", _SHOEYBI),
)

#: GPUs with the chip of another one.
_SAME_CHIP = {"H200": "H100", "H800": "H100"}

#: Share of the time in which a run makes progress: "over 90 %" (MegaScale, section 6.3). The rest goes into
#: failures, restarts and work done twice. The quick end of a range has none of it.
PROGRESS_SHARE = 0.90

#: Decoding of PaLM 540B, 14 % (batch of 64) to 33 % (batch of 512): Pope and others, "Efficiently Scaling
#: Transformer Inference", 2022, arXiv 2211.05102, table 2. Half of the lower value is our own lower end: in
#: training the longest answer of a batch keeps the others waiting.
GENERATION = Utilization(
    0.07,
    0.14,
    0.33,
    "Pope and others, 2022, arXiv 2211.05102, table 2 (decoding, 14 to 33 %); 7 % is our own lower end",
)


def training_utilization(gpu: Gpu, precision: Precision) -> Utilization:
    """What training reaches on a GPU in a format: low, best (the median) and high of what was measured.

    For a GPU or a format without a measurement all those in 16 bit (or in 8, for fp8) stand in, and the source
    says so.
    """
    chip = _SAME_CHIP.get(gpu.name, gpu.name).split("-")[0]
    kind = ("fp8",) if precision == "fp8" else ("bf16", "fp16")
    of_kind = [m for m in MEASURED if m.precision in kind]
    found = [m for m in of_kind if m.family == chip] if precision != "fp32" else []
    values = [m.rate for m in found or of_kind]
    if found:
        source = "; ".join(dict.fromkeys(m.source for m in found))
        if chip != gpu.name.split("-")[0]:
            source = f"measured on {chip}, which has the same chip: {source}"
    else:
        chips = ", ".join(dict.fromkeys(m.family for m in of_kind))
        source = f"not measured for {gpu.name} in {precision}; that of {chips} stands in"
    return Utilization(min(values), median(values), max(values), source)
