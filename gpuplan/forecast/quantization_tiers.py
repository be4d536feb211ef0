"""How long the quantization of a model took others, by tiers of its size, and what it was calibrated on."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    import pandas as pd

Method = Literal["bitsandbytes", "awq", "gptq"]

#: FLOP/s of an A100, on which the hours of the tiers were measured.
TIER_FLOPS = 312e12


@dataclass(frozen=True, slots=True)
class Tier:
    """Hours on one A100 for models of up to so many parameters, and who says so."""

    method: Method
    parameters: float
    hours: float
    source: str


_FRANTAR = "Frantar and others, GPTQ, 2022, arXiv 2210.17323, table of runtimes"
_COMPRESSOR = "LLM Compressor, docs/getting-started/compress.md, Llama-3-8B on an A100"

#: Hours of a tier are the longest that is published for a model of the tier or of a smaller one.
TIERS: tuple[Tier, ...] = (
    Tier("bitsandbytes", 8.0e9, 1 / 60, f"rounding without calibration, about 1 minute: {_COMPRESSOR}"),
    Tier("awq", 8.0e9, 0.5, f"about 30 minutes: {_COMPRESSOR}; 10 to 15 minutes for 7B: AutoAWQ, README"),
    Tier("awq", 70e9, 1.0, "around 1 hour for 70B: AutoAWQ, README (a user of it reports 8, issue 299)"),
    Tier("gptq", 3.0e9, 5.2 / 60, f"BLOOM-3B, 5.2 minutes: {_FRANTAR}"),
    Tier("gptq", 8.0e9, 0.5, f"about 30 minutes: {_COMPRESSOR}; BLOOM-7.1B, 10 minutes: {_FRANTAR}"),
    Tier("gptq", 13e9, 0.5, f"as 8B; OPT-13B, 20.9 minutes: {_FRANTAR}"),
    Tier("gptq", 30e9, 44.9 / 60, f"OPT-30B, 44.9 minutes: {_FRANTAR}"),
    Tier("gptq", 66e9, 1.6, f"OPT-66B, 1.6 hours: {_FRANTAR}"),
    Tier("gptq", 176e9, 4.2, f"OPT-175B, 4.2 hours (BLOOM-176B 3.8): {_FRANTAR}"),
)


@dataclass(frozen=True, slots=True)
class Calibration:
    """What a method is shown: samples, their tokens, and forward passes over them; with its source."""

    samples: int
    sequence_length: int
    passes: int
    source: str


#: AWQ tries 20 scales a layer (Lin and others, "AWQ", 2023, arXiv 2306.00978, section 3.2).
CALIBRATION: dict[Method, Calibration] = {
    "bitsandbytes": Calibration(0, 0, 0, "weights are rounded as they are loaded (Dettmers 2023)"),
    "awq": Calibration(128, 512, 22, "AutoAWQ's default; 20 scales are tried, before and after"),
    "gptq": Calibration(128, 2048, 2, "128 x 2,048 tokens of C4 (Frantar 2022); before and after"),
}

METHODS: tuple[Method, ...] = ("bitsandbytes", "awq", "gptq")


def tiers() -> "pd.DataFrame":
    """The tiers as a table: ``method, up_to_parameters, a100_hours, source``."""
    import pandas as pd

    rows = [(t.method, t.parameters, t.hours, t.source) for t in TIERS]
    return pd.DataFrame(rows, columns=["method", "up_to_parameters", "a100_hours", "source"])


def tier_of(method: Method, parameters: float) -> Tier:
    """The first tier that is large enough; above the last one its hours grow with the parameters."""
    own = [tier for tier in TIERS if tier.method == method]
    last = own[-1]
    for tier in own:
        if parameters <= tier.parameters:
            return tier
    hours = last.hours * parameters / last.parameters
    return Tier(method, parameters, hours, f"in proportion to {last.parameters / 1e9:g}B, {last.source}")
