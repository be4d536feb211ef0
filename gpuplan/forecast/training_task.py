"""What a training estimate is asked: a checked value, built from what people write, with every mistake at once."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from pydantic_core import PydanticCustomError

from gpuplan.forecast.amounts import Amount, ModelShape, model_shape
from gpuplan.forecast.gpus import PRECISIONS, Gpu, Precision, find_gpu, gpu_mistake
from gpuplan.forecast.training_variants import STRATEGIES, TECHNIQUES, VARIANTS, Variant, variant_of
from gpuplan.inputs.errors import InputError, Mistake, did_you_mean
from gpuplan.inputs.fields import FieldType, Real, Whole

#: Which activations are recomputed: none; those of attention alone, as FlashAttention does; all but layer inputs.
Checkpointing = Literal["none", "selective", "full"]

CHECKPOINTINGS: tuple[Checkpointing, ...] = ("none", "selective", "full")

#: GPUs of the largest block; that of an allocation scenario.
MOST_GPUS = 16_384

#: Reward and value model of InstructGPT, whatever the policy's size (Ouyang and others, 2022, arXiv 2203.02155).
AUXILIARY_PARAMETERS = 6e9

#: Answers per prompt (Shao and others, "DeepSeekMath", 2024, arXiv 2402.03300, section 4.2).
GROUP_SIZE = 64

#: Rank of the adapters, on all linear layers (Dettmers and others, "QLoRA", 2023, arXiv 2305.14314, appendix B).
LORA_RANK = 64

#: Our own assumption: half of a sequence is the model's answer.
GENERATED_SHARE = 0.5


@dataclass(frozen=True, slots=True)
class TrainingTask:
    """A checked question.

    `tokens` counts every token that is trained on, over all epochs, sequences of a pair and answers of a group.
    ``None`` leaves a choice to the estimate.
    """

    model: ModelShape
    auxiliary: ModelShape
    variant: Variant
    tokens: float
    mean_tokens: float
    sequence_length: int
    lora_rank: int
    generated_share: float
    group_size: int
    gpu: Gpu
    precision: Precision
    micro_batch: int
    checkpointing: Checkpointing | None
    zero_stage: int | None
    tensor_parallel: int | None
    pipeline_parallel: int
    gpus: int | None
    max_gpus: int
    mfu: float | None
    generation_mfu: float | None
    notes: tuple[str, ...] = ()


_COUNT = Amount(1, 1e18)
_FIELDS: dict[str, FieldType] = {
    "parameters": Amount(1e6, 1e14),
    "active_parameters": Amount(1e6, 1e14),
    "layers": Whole(1, 10_000),
    "hidden_size": Whole(64, 1_000_000),
    "vocabulary": Whole(2, 10_000_000),
    "tokens": _COUNT,
    "samples": _COUNT,
    "mean_tokens": Real(1, 1e8),
    "epochs": Real(0, 1e6, above=0),
    "sequence_length": Whole(1, 100_000_000),
    "lora_rank": Whole(1, 16_384),
    "group_size": Whole(2, 100_000),
    "generated_share": Real(0, 1, above=0),
    "auxiliary_parameters": Amount(1e6, 1e14),
    "micro_batch": Whole(1, 100_000),
    "zero_stage": Whole(0, 3),
    "tensor_parallel": Whole(1, MOST_GPUS, power_of_two=True),
    "pipeline_parallel": Whole(1, MOST_GPUS, power_of_two=True),
    "gpus": Whole(1, MOST_GPUS),
    "max_gpus": Whole(1, MOST_GPUS),
    "mfu": Real(0, 1, above=0),
    "generation_mfu": Real(0, 1, above=0),
}
_REQUIRED = ("parameters", "vocabulary", "epochs", "sequence_length", "micro_batch", "max_gpus")
_MAY_BE_AUTO = ("zero_stage", "tensor_parallel", "pipeline_parallel")

#: Arguments that mean something for some variants only, and which.
_ONLY_FOR: dict[str, tuple[tuple[str, ...], str]] = {
    "lora_rank": (("lora", "qlora"), "only lora and qlora have adapters"),
    "group_size": (("rlvr",), "only rlvr has groups of answers"),
    "generated_share": (("rlhf", "rlvr"), "only rlhf and rlvr generate answers"),
    "generation_mfu": (("rlhf", "rlvr"), "only rlhf and rlvr generate answers"),
    "auxiliary_parameters": (("rlhf",), "only rlhf has a reward and a value model"),
}


def read_task(given: Mapping[str, Any]) -> TrainingTask:
    """Check the arguments of an estimate.

    Raises
    ------
    InputError
        With every mistake.
    """
    mistakes: list[Mistake] = []
    values: dict[str, Any] = {}
    for name, kind in _FIELDS.items():
        value = given.get(name)
        values[name] = None
        if name in _MAY_BE_AUTO and isinstance(value, str) and value == "auto":
            continue
        if value is None:
            if name in _REQUIRED:
                mistakes.append(Mistake(name, "must be given"))
            continue
        try:
            values[name] = kind.read(value)
        except PydanticCustomError as error:
            mistakes.append(Mistake(name, error.message(), value))
    mistakes += _word_mistakes(given)
    wrong = {mistake.path for mistake in mistakes}
    mistakes += [found for found in _conflicts(given, values) if found.path not in wrong]
    if mistakes:
        raise InputError("training estimate", mistakes)
    return _task(given, values)


def _word_mistakes(given: Mapping[str, Any]) -> list[Mistake]:
    found = []
    choices: dict[str, tuple[str, ...]] = {
        "technique": TECHNIQUES,
        "strategy": STRATEGIES,
        "precision": ("auto", *PRECISIONS),
        "activation_checkpointing": ("auto", *CHECKPOINTINGS),
    }
    for name, words in choices.items():
        if given[name] not in words:
            rule = f"must be one of {', '.join(words)}{did_you_mean(given[name], words)}"
            found.append(Mistake(name, rule, given[name]))
    gpu = gpu_mistake(given["gpu"])
    return found + ([gpu] if gpu else [])


def _conflicts(given: Mapping[str, Any], values: Mapping[str, Any]) -> list[Mistake]:
    """Broken rules between arguments."""
    found = _variant_conflicts(given)
    if given["tokens"] is None and given["samples"] is None:
        found.append(Mistake("tokens", "must be given, or samples with mean_tokens"))
    if given["tokens"] is not None and given["samples"] is not None:
        found.append(Mistake("samples", "must be left out where tokens are given", given["samples"]))
    if given["samples"] is not None and given["mean_tokens"] is None:
        found.append(Mistake("mean_tokens", "must be given where samples are"))
    for small, large in (
        ("active_parameters", "parameters"),
        ("mean_tokens", "sequence_length"),
        ("pipeline_parallel", "layers"),
    ):
        low, high = values[small], values[large]
        if low is not None and high is not None and low > high:
            found.append(Mistake(small, f"must be at most {large}, {high:,.0f}", given[small]))
    return found + _block_conflicts(values)


def _block_conflicts(values: Mapping[str, Any]) -> list[Mistake]:
    gpus, most = values["gpus"], values["max_gpus"]
    if most is None:
        return []
    if gpus is not None and rounded_up(gpus) > most:
        rule = f"rounded up to a block, {rounded_up(gpus):,}, must be at most max_gpus, {most:,}"
        return [Mistake("gpus", rule, gpus)]
    block = rounded_up(gpus) if gpus else 1 << (most.bit_length() - 1)
    split = (values["tensor_parallel"] or 1) * (values["pipeline_parallel"] or 1)
    if split <= block:
        return []
    rule = f"times pipeline_parallel must be at most the {block:,} GPUs of the block"
    return [Mistake("tensor_parallel", rule, split)]


def _variant_conflicts(given: Mapping[str, Any]) -> list[Mistake]:
    found = []
    technique, strategy, precision = given["technique"], given["strategy"], given["precision"]
    known = technique in TECHNIQUES and strategy in STRATEGIES
    if known and variant_of(technique, strategy) is None:
        may = ", ".join(v.strategy for v in VARIANTS if v.technique == technique)
        rule = f"must be {may} with {technique}: {technique}-{strategy} is none of the ten variants"
        found.append(Mistake("strategy", rule, strategy))
    if known:
        for name, (words, why) in _ONLY_FOR.items():
            if given[name] is not None and not {technique, strategy} & set(words):
                found.append(Mistake(name, f"must be left out: {why}", given[name]))
    if strategy == "qlora" and precision in ("fp8", "fp32"):
        rule = "with qlora must be bf16 or fp16: the 4-bit weights are computed with in 16 bit"
        found.append(Mistake("precision", rule, precision))
    if precision in PRECISIONS and gpu_mistake(given["gpu"]) is None:
        gpu = find_gpu(given["gpu"])
        if precision not in gpu.flops:
            rule = f"must be one that {gpu.name} computes in: {', '.join(gpu.flops)}"
            found.append(Mistake("precision", rule, precision))
    return found


def rounded_up(gpus: int) -> int:
    """The smallest legal block of at least so many GPUs: a power of two."""
    return 1 << (gpus - 1).bit_length()


def _task(given: Mapping[str, Any], values: Mapping[str, Any]) -> TrainingTask:
    variant = variant_of(given["technique"], given["strategy"])
    assert variant is not None
    gpu = find_gpu(given["gpu"])
    names = ("parameters", "vocabulary", "active_parameters", "layers", "hidden_size")
    shape = model_shape(*(values[name] for name in names))
    auxiliary = values["auxiliary_parameters"] or min(shape.parameters, AUXILIARY_PARAMETERS)
    group = values["group_size"] or GROUP_SIZE
    mean = values["mean_tokens"] or float(values["sequence_length"])
    per_sample = mean * {"dpo": 2, "rlvr": group}.get(variant.technique, 1)
    tokens = values["tokens"] if values["samples"] is None else values["samples"] * per_sample
    checkpointing = given["activation_checkpointing"]
    gpus = values["gpus"]
    notes = (f"{gpus:,} GPUs are rounded up to a block of {rounded_up(gpus):,}.",) if gpus else ()
    return TrainingTask(
        model=shape,
        auxiliary=model_shape(auxiliary, values["vocabulary"]),
        variant=variant,
        tokens=tokens * values["epochs"],
        mean_tokens=mean,
        sequence_length=values["sequence_length"],
        lora_rank=values["lora_rank"] or LORA_RANK,
        generated_share=values["generated_share"] or GENERATED_SHARE,
        group_size=group,
        gpu=gpu,
        precision=gpu.default_precision if given["precision"] == "auto" else given["precision"],
        micro_batch=values["micro_batch"],
        checkpointing=None if checkpointing == "auto" else checkpointing,
        zero_stage=values["zero_stage"],
        tensor_parallel=values["tensor_parallel"],
        pipeline_parallel=values["pipeline_parallel"] or 1,
        gpus=rounded_up(gpus) if gpus else None,
        max_gpus=values["max_gpus"],
        mfu=values["mfu"],
        generation_mfu=values["generation_mfu"],
        notes=notes if gpus and rounded_up(gpus) != gpus else (),
    )
