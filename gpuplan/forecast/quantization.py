"""How many GPUs and whole GPU-hours the quantization of a model takes, by tiers of its size.

estimate = estimate_quantization("70B", "gptq", gpu="H100")
estimate.gpus, estimate.gpu_hours
estimate.to_job("gptq-70b", priority=2)  # a row for the batch jobs of a scenario file
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pydantic_core import PydanticCustomError

from gpuplan.forecast.amounts import Amount, ModelShape, model_shape
from gpuplan.forecast.batch_job import job_row
from gpuplan.forecast.gpus import GIB, Gpu, find_gpu, gpu_mistake
from gpuplan.forecast.quantization_tiers import (
    CALIBRATION,
    METHODS,
    TIER_FLOPS,
    Calibration,
    Method,
    Tier,
    tier_of,
)
from gpuplan.forecast.training_memory import FRAMEWORK_GIB
from gpuplan.forecast.training_task import MOST_GPUS
from gpuplan.forecast.training_utilization import training_utilization
from gpuplan.inputs.errors import InputError, Mistake, did_you_mean
from gpuplan.inputs.fields import FieldType, Real, Whole
from gpuplan.text import aligned

if TYPE_CHECKING:
    import pandas as pd

DEFAULT_MARGIN = 1.25


@dataclass(frozen=True, slots=True)
class QuantizationEstimate:
    """What a quantization takes.

    Parameters
    ----------
    method, parameters, gpu
        As asked.
    gpus
        GPUs that hold the job, a power of two.
    memory_gib
        Memory per GPU.
    tier_hours
        Hours of the tier on one A100.
    exact_hours
        Hours from start to end before the margin and before rounding.
    hours
        Whole hours from start to end, with the margin, rounded up.
    assumptions
        Sentences about what the figures rest on.
    """

    method: Method
    parameters: float
    gpu: Gpu
    gpus: int
    memory_gib: float
    tier_hours: float
    exact_hours: float
    hours: int
    assumptions: tuple[str, ...]

    @property
    def gpu_hours(self) -> int:
        """Whole GPU-hours."""
        return self.gpus * self.hours

    def to_job(self, name: str, priority: float) -> dict[str, Any]:
        """The row of a batch job in a scenario file (``name, kind, gpus, hours, priority``).

        Raises
        ------
        InputError
            For a name, priority or duration that a scenario file does not take.
        """
        return job_row(name, "quantization", self.gpus, float(self.hours), priority)

    def _lines(self) -> Iterator[tuple[str, float, str]]:
        yield "gpus", self.gpus, "GPUs"
        yield "memory_gib", self.memory_gib, "GiB per GPU"
        yield "tier_hours", self.tier_hours, "h on an A100"
        yield "exact_hours", self.exact_hours, "h"
        yield "hours", self.hours, "h"
        yield "gpu_hours", self.gpu_hours, "GPU-hours"

    @property
    def figures(self) -> dict[str, float]:
        """The figures by name, units in the names."""
        return {what: value for what, value, _ in self._lines()}

    def to_frame(self) -> "pd.DataFrame":
        """The figures as a table: ``figure, value, unit``."""
        import pandas as pd

        return pd.DataFrame(list(self._lines()), columns=["figure", "value", "unit"])

    def __repr__(self) -> str:
        head = f"{self.method} of {self.parameters:.3g} parameters on {self.gpus:,} x {self.gpu.name}"
        table = aligned(
            ["figure", "value", "unit"], [[w, f"{v:,.4g}", u] for w, v, u in self._lines()], right=[1]
        )
        return "\n".join([head, table, "", *(f"- {sentence}" for sentence in self.assumptions)])


def estimate_quantization(
    parameters: float | str,
    method: str,
    *,
    samples: int | None = None,
    sequence_length: int | None = None,
    bits: int = 4,
    gpu: str = "A100-80GB",
    margin: float = DEFAULT_MARGIN,
    offload: bool | None = None,
    max_gpus: int = MOST_GPUS,
) -> QuantizationEstimate:
    """Estimate GPUs and whole GPU-hours of quantizing a model.

    Parameters
    ----------
    parameters
        All parameters of the model: ``7e9`` or ``"7B"``.
    method
        ``bitsandbytes``, ``awq`` or ``gptq``.
    samples, sequence_length
        Calibration; the method's own (`CALIBRATION`) where left out. bitsandbytes has none.
    bits
        4 or 8 bits a weight (what bitsandbytes keeps on the GPU).
    gpu
        A name of `gpuplan.forecast.gpus.GPUS`.
    margin
        Factor on the hours, before they are rounded up.
    offload
        Keep all but the layer at work in the memory of the host, as GPTQ's own program and LLM Compressor do: so
        unless it is False. bitsandbytes keeps the quantized weights on the GPU.
    max_gpus
        Largest block.

    Raises
    ------
    InputError
        With every mistake, or where the model fits no block.
    """
    given = dict(locals())
    values = _read(given)
    kind: Method = next(m for m in METHODS if m == method)
    found = find_gpu(gpu)
    shape = model_shape(values["parameters"], 32_000)
    usual = CALIBRATION[kind]
    count = usual.samples if samples is None else int(values["samples"])
    length = usual.sequence_length if sequence_length is None else int(values["sequence_length"])
    tier = tier_of(kind, shape.parameters)
    exact = _hours(tier, shape, found, usual, count * length)
    away = kind != "bitsandbytes" and offload is not False
    shared, own = _memory(kind, shape, bits, count * length, away)
    gpus = _fit(shared, own, found, values["max_gpus"])
    return QuantizationEstimate(
        kind,
        shape.parameters,
        found,
        gpus,
        shared / gpus + own,
        tier.hours,
        exact,
        math.ceil(round(exact * values["margin"], 9)),
        tuple(_assumptions(tier, shape, found, usual, (count, length), values["margin"], away)),
    )


_FIELDS: dict[str, FieldType] = {
    "parameters": Amount(1e6, 1e14),
    "samples": Whole(1, 1_000_000),
    "sequence_length": Whole(1, 100_000_000),
    "margin": Real(1, 100),
    "max_gpus": Whole(1, MOST_GPUS),
}


def _read(given: dict[str, Any]) -> dict[str, Any]:
    mistakes, values = [], {}
    for name, kind in _FIELDS.items():
        if given[name] is None and name in ("samples", "sequence_length"):
            continue
        try:
            values[name] = kind.read(given[name])
        except PydanticCustomError as error:
            mistakes.append(Mistake(name, error.message(), given[name]))
    method = given["method"]
    if method not in METHODS:
        rule = f"must be one of {', '.join(METHODS)}{did_you_mean(method, METHODS)}"
        mistakes.append(Mistake("method", rule, method))
    for name in ("samples", "sequence_length"):
        if method == "bitsandbytes" and given[name] is not None:
            mistakes.append(Mistake(name, "must be left out: bitsandbytes is not calibrated", given[name]))
    if given["bits"] not in (4, 8) or isinstance(given["bits"], bool):
        mistakes.append(Mistake("bits", "must be 4 or 8", given["bits"]))
    if given["offload"] is not None and not isinstance(given["offload"], bool):
        mistakes.append(Mistake("offload", "must be True or False, or be left out", given["offload"]))
    elif given["offload"] and method == "bitsandbytes":
        rule = "must be left out: bitsandbytes keeps the quantized weights on the GPU"
        mistakes.append(Mistake("offload", rule, True))
    gpu = gpu_mistake(given["gpu"])
    if gpu:
        mistakes.append(gpu)
    if mistakes:
        raise InputError("quantization estimate", mistakes)
    return values


def _hours(tier: Tier, shape: ModelShape, gpu: Gpu, usual: Calibration, tokens: int) -> float:
    """Hours of the tier, longer on a slower GPU, and forward passes over tokens beyond the usual ones."""
    peak = gpu.flops[gpu.default_precision]
    slower = max(1.0, TIER_FLOPS / peak)
    beyond = max(0, tokens - usual.samples * usual.sequence_length)
    reached = peak * training_utilization(gpu, gpu.default_precision).best
    return tier.hours * slower + usual.passes * 2 * shape.parameters * beyond / reached / 3600


def _memory(method: Method, shape: ModelShape, bits: int, tokens: int, offload: bool) -> tuple[float, float]:
    """Memory in GiB that the GPUs share (weights), and that each of them needs beside it.

    A layer at work is held twice; GPTQ has the Hessian of the widest matrix and its inverse beside it, (4h)^2
    numbers of 4 bytes each, and the calibration's activations before and after the layer, 2 bytes each.
    """
    layer = 2 * shape.parameters / shape.layers
    weights = bits / 8 * shape.parameters if method == "bitsandbytes" else 2 * shape.parameters
    own = 2 * layer + 2 * 2.0 * tokens * shape.hidden_size
    if method == "gptq":
        own += 2 * 4.0 * (4 * shape.hidden_size) ** 2
    return (0.0 if offload else weights / GIB), own / GIB + FRAMEWORK_GIB


def _fit(shared: float, own: float, gpu: Gpu, max_gpus: int) -> int:
    """The smallest block that holds it."""
    sizes = [1 << power for power in range(max_gpus.bit_length())]
    for gpus in sizes:
        if shared / gpus + own <= gpu.usable_gib:
            return gpus
    has = f"{gpu.name} has {gpu.memory_gib:g} ({gpu.usable_gib:g} usable)"
    if own > gpu.usable_gib:
        rule = f"does not fit: a layer at work needs {own:,.1f} GiB on each GPU, {has}; more GPUs do not help"
        raise InputError("quantization estimate", [Mistake("gpu", rule, gpu.name)])
    count = f"{sizes[-1]:,} GPU{'s' if sizes[-1] > 1 else ''}"
    rule = f"does not fit: needs {shared / sizes[-1] + own:,.1f} GiB per GPU on {count}, {has}"
    raise InputError("quantization estimate", [Mistake("max_gpus", rule, max_gpus)])


def _assumptions(
    tier: Tier,
    shape: ModelShape,
    gpu: Gpu,
    usual: Calibration,
    calibration: tuple[int, int],
    margin: float,
    offload: bool,
) -> Iterator[str]:
    """What the figures rest on, a sentence each."""
    yield f"Up to {tier.parameters / 1e9:g}B parameters: {tier.hours:.3g} h on an A100; {tier.source}."
    if gpu.flops[gpu.default_precision] < TIER_FLOPS:
        yield f"{gpu.name} is slower than an A100, and the hours grow with the ratio of their 16-bit FLOP/s."
    else:
        yield "A GPU that is faster than an A100 gets no credit: much of the time is not arithmetic."
    if usual.passes:
        yield (
            f"Calibration: {calibration[0]:,} x {calibration[1]:,} tokens ({usual.source}); tokens beyond the usual "
            f"{usual.samples:,} x {usual.sequence_length:,} add forward passes."
        )
    else:
        yield f"No calibration: {usual.source}; models that are loaded quantized need no job of their own."
    yield f"The hours are multiplied by {margin:g}, then rounded up to whole hours."
    yield "Layers are done one after the other: more GPUs hold a larger model, but are no quicker."
    place = "the host's memory, one layer on the GPU" if offload else "the GPUs' memory"
    yield f"The weights are in {place}; the model has {shape.layers} layers of width {shape.hidden_size:,}."
