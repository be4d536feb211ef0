"""How many GPUs, how much memory and how many hours a training job takes, before it has run.

    estimate = estimate_training("7B", samples="52K", mean_tokens=300, epochs=3, strategy="lora", gpu="H100")
    estimate.gpus, estimate.gpu_hours, estimate.memory.total_gib
    estimate.to_job("sft-7b", priority=3)  # a row for the batch jobs of a scenario file

GPU-hours are operations over what a GPU achieves; GPUs are the smallest legal block (a power of two) in which the
job's memory fits. The formulas, with their sources, are in `training_work`, `training_memory` and
`training_utilization`; how far they are from runs that were published is in `published_runs`.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from gpuplan.forecast.batch_job import job_row
from gpuplan.forecast.gpus import USABLE_SHARE
from gpuplan.forecast.training_memory import FRAMEWORK_GIB, Layout, Memory, fit
from gpuplan.forecast.training_task import MOST_GPUS, TrainingTask, read_task
from gpuplan.forecast.training_utilization import (
    GENERATION,
    PROGRESS_SHARE,
    Utilization,
    training_utilization,
)
from gpuplan.forecast.training_work import Work, work
from gpuplan.inputs.errors import InputError, Mistake
from gpuplan.text import aligned

if TYPE_CHECKING:
    import pandas as pd

#: Which end of the range of hours.
End = Literal["low", "best", "high"]


@dataclass(frozen=True, slots=True)
class Range:
    """A figure with its range."""

    low: float
    best: float
    high: float


@dataclass(frozen=True, slots=True)
class TrainingEstimate:
    """What a training job takes.

    Parameters
    ----------
    task
        What was asked, with everything that was filled in.
    layout
        How the job is spread over its GPUs.
    memory
        Memory of a GPU, by what it holds.
    work
        Operations of the whole job.
    gpu_hours
        GPUs times hours: the best value, and the ends of its range.
    assumptions
        Sentences about what the figures rest on.
    """

    task: TrainingTask
    layout: Layout
    memory: Memory
    work: Work
    gpu_hours: Range
    assumptions: tuple[str, ...]

    @property
    def gpus(self) -> int:
        """GPUs of the block, a power of two."""
        return self.layout.gpus

    @property
    def hours(self) -> Range:
        """Hours from start to end, with its range."""
        total = self.gpu_hours
        return Range(total.low / self.gpus, total.best / self.gpus, total.high / self.gpus)

    @property
    def figures(self) -> dict[str, float]:
        """The figures by name, units in the names."""
        return {what: value for what, value, _ in self._lines()}

    def to_job(self, name: str, priority: float, hours: End = "best") -> dict[str, Any]:
        """The row of a batch job in a scenario file (``name, kind, gpus, hours, priority``).

        Parameters
        ----------
        name, priority
            As a scenario file takes them.
        hours
            Which end of the range a plan should reckon with.

        Raises
        ------
        InputError
            For a name, priority or duration that a scenario file does not take.
        """
        if hours not in ("low", "best", "high"):
            raise InputError("batch job", [Mistake("hours", "must be low, best or high", hours)])
        return job_row(name, "training", self.gpus, getattr(self.hours, hours), priority)

    def to_frame(self) -> "pd.DataFrame":
        """The figures as a table: ``figure, value, unit``."""
        import pandas as pd

        return pd.DataFrame(list(self._lines()), columns=["figure", "value", "unit"])

    def _lines(self) -> Iterator[tuple[str, float, str]]:
        yield "gpus", self.gpus, "GPUs"
        for end in ("low", "best", "high"):
            yield f"gpu_hours_{end}", getattr(self.gpu_hours, end), "GPU-hours"
        for end in ("low", "best", "high"):
            yield f"hours_{end}", getattr(self.hours, end), "h"
        for part in ("weights", "gradients", "optimizer", "activations", "framework", "total"):
            yield f"{part}_gib", getattr(self.memory, f"{part}_gib"), "GiB per GPU"
        yield "tokens", self.task.tokens, "tokens"
        yield "training_flop", self.work.training, "FLOP"
        yield "generation_flop", self.work.generation, "FLOP"

    def __repr__(self) -> str:
        head = f"{self.task.variant.name} on {self.gpus:,} x {self.task.gpu.name}"
        cells = [
            [what, f"{value:,.4g}" if value < 1e6 else f"{value:.3e}", unit]
            for what, value, unit in self._lines()
        ]
        table = aligned(["figure", "value", "unit"], cells, right=[1])
        return "\n".join([head, table, "", *(f"- {sentence}" for sentence in self.assumptions)])


def estimate_training(
    parameters: float | str,
    *,
    active_parameters: float | str | None = None,
    layers: int | None = None,
    hidden_size: int | None = None,
    vocabulary: int = 32_000,
    tokens: float | str | None = None,
    samples: float | str | None = None,
    mean_tokens: float | None = None,
    epochs: float = 1,
    sequence_length: int = 2048,
    technique: str = "sft",
    strategy: str = "full",
    lora_rank: int | None = None,
    group_size: int | None = None,
    generated_share: float | None = None,
    auxiliary_parameters: float | str | None = None,
    gpu: str = "A100-80GB",
    precision: str = "auto",
    micro_batch: int = 1,
    activation_checkpointing: str = "auto",
    zero_stage: int | str = "auto",
    tensor_parallel: int | str = "auto",
    pipeline_parallel: int | str = "auto",
    gpus: int | None = None,
    max_gpus: int = MOST_GPUS,
    mfu: float | None = None,
    generation_mfu: float | None = None,
) -> TrainingEstimate:
    """Estimate GPUs, memory, GPU-hours and hours of a training job.

    Parameters
    ----------
    parameters
        All parameters of the model: ``7e9`` or ``"7B"``.
    active_parameters
        Those that one token passes through, for a mixture of experts; else all.
    layers, hidden_size
        Where they are known; else derived from the active parameters by N = 12 l h^2 with h = 128 l.
    vocabulary
        Entries of the vocabulary (LLaMA's by default); matters for the memory of the logits.
    tokens
        Tokens of one epoch: both sequences of a pair (dpo), all answers with their prompts (rlhf, rlvr).
    samples, mean_tokens
        Instead of `tokens`: examples (sft, cpt), pairs (dpo) or prompts (rlhf, rlvr), and mean tokens of one
        sequence, prompt and answer together. With `tokens`, `mean_tokens` only sets the work of attention.
    epochs
        Passes over the data.
    sequence_length
        Longest sequence; memory is laid out for it.
    technique, strategy
        One of `VARIANTS`: ``sft``, ``dpo``, ``rlhf``, ``rlvr``, ``cpt``, with ``full``, ``lora``, ``qlora``.
    lora_rank
        Rank of the adapters on all linear layers; 64 where left out.
    group_size
        Answers per prompt of rlvr; 64 where left out.
    generated_share
        Share of a sequence that the model writes itself (rlhf, rlvr); 0.5 where left out.
    auxiliary_parameters
        Size of the reward and of the value model (rlhf), each; 6B, or the policy's if smaller, where left out.
    gpu
        A name of `gpuplan.forecast.gpus.GPUS`.
    precision
        ``bf16``, ``fp16``, ``fp8``, ``fp32``; ``auto`` is bf16, or fp16 where the GPU has no bf16.
    micro_batch
        Sequences that a GPU computes at once.
    activation_checkpointing
        ``none``, ``selective`` (FlashAttention), ``full``; ``auto`` is selective, and full where nothing else fits.
    zero_stage
        0 to 3 (3 is FSDP); ``auto`` is the lowest that fits.
    tensor_parallel, pipeline_parallel
        Powers of two; ``auto`` is the lowest that fits, up to a node of 8 GPUs, and no pipeline.
    gpus
        Number of GPUs, rounded up to a power of two; else the smallest block that fits.
    max_gpus
        Largest block.
    mfu, generation_mfu
        Utilization of training and of writing answers, where they are known; they take the place of the range.
        As usual, `mfu` does not count recomputation.

    Raises
    ------
    InputError
        With every mistake, or where the job fits no block.
    """
    task = read_task(locals())
    layout, needed = fit(task)
    # a given MFU does not count recomputation, so neither does the work that it is held against
    operations = work(task, layout.checkpointing if task.mfu is None else "selective")
    training = _known_or(task.mfu, training_utilization(task.gpu, task.precision))
    generation = _known_or(task.generation_mfu, GENERATION)
    hours = Range(
        _gpu_hours(task, operations, training.high, generation.high, 1.0),
        _gpu_hours(task, operations, training.best, generation.best, PROGRESS_SHARE),
        _gpu_hours(task, operations, training.low, generation.low, PROGRESS_SHARE),
    )
    assumptions = tuple(_assumptions(task, layout, training, generation))
    return TrainingEstimate(task, layout, needed, operations, hours, assumptions)


def _known_or(mfu: float | None, measured: Utilization) -> Utilization:
    return measured if mfu is None else Utilization(mfu, mfu, mfu, "given")


def _gpu_hours(
    task: TrainingTask, operations: Work, training: float, generation: float, progress: float
) -> float:
    peak = task.gpu.flops[task.precision]
    seconds = operations.training / (peak * training) + operations.generation / (peak * generation)
    return seconds / 3600 / progress


def _assumptions(
    task: TrainingTask, layout: Layout, training: Utilization, generation: Utilization
) -> Iterator[str]:
    """What the figures rest on, a sentence each."""
    yield from task.notes
    model, peak = task.model, task.gpu.flops[task.precision] / 1e12
    yield (
        f"The model has {model.layers:,} layers of width {model.hidden_size:,} (N = 12 l h^2 with h = 128 l where "
        f"not given) and {model.vocabulary:,} words; {model.active:.3g} parameters work on a token."
    )
    yield (
        f"{task.gpu.name} has {peak:,.4g} TFLOP/s dense in {task.precision}; training reaches "
        f"{training.best:.1%} of it ({training.low:.1%} to {training.high:.1%}): {training.source}."
    )
    yield (
        f"{PROGRESS_SHARE:.0%} of the time makes progress (MegaScale, 2024, arXiv 2402.15627); all of it at the "
        "low end. Data loading, evaluation and waiting for the first GPU are not in it."
    )
    yield "GPU-hours do not depend on the number of GPUs: hours shrink as GPUs are added, without loss."
    yield (
        f"Spread as {layout.data:,} data x {layout.tensor} tensor x {layout.pipeline} pipeline, ZeRO stage "
        f"{layout.zero_stage}, {layout.checkpointing} recomputation of activations"
        + ("; it adds a forward pass to each update." if layout.checkpointing == "full" else ".")
    )
    yield (
        f"{FRAMEWORK_GIB:g} GiB a GPU go to CUDA, NCCL and the allocator; {USABLE_SHARE:.2%} of the "
        f"{task.gpu.memory_gib:g} GiB are usable. Experts of a mixture are divided like all other weights."
    )
    yield from _variant_assumptions(task, generation)


def _variant_assumptions(task: TrainingTask, generation: Utilization) -> Iterator[str]:
    technique, strategy = task.variant.technique, task.variant.strategy
    if strategy != "full":
        yield f"Adapters of rank {task.lora_rank} sit on all linear layers; the frozen weights get no gradient."
    if strategy == "qlora":
        yield "Unpacking the 4-bit weights takes no time, which is too kind; embeddings are counted in 4 bit too."
    if technique in ("rlhf", "rlvr"):
        yield (
            f"{task.generated_share:.0%} of each sequence is written by the model, at {generation.best:.0%} of the "
            f"peak ({generation.low:.0%} to {generation.high:.0%}): {generation.source}."
        )
        yield "The cache of what is written uses the room of the activations, which limits the batch."
        yield "Each answer is trained on once."
        yield (
            "The published runs of RLHF took more than the high end of such a range (published_runs.table()); "
            "none of RLVR was compared."
        )
    if technique == "rlhf":
        yield f"Reward and value model have {task.auxiliary.parameters:.3g} parameters each."
    if technique == "rlvr":
        yield f"{task.group_size} answers per prompt; the program that scores them runs on no GPU."
