"""Memory of a training job per GPU, and the smallest block of GPUs in which it fits."""

from collections.abc import Iterator
from dataclasses import astuple, dataclass

from gpuplan.forecast.amounts import ModelShape
from gpuplan.forecast.gpus import GIB
from gpuplan.forecast.training_task import Checkpointing, TrainingTask
from gpuplan.inputs.errors import InputError, Mistake

#: GPUs of a node, within which the GPUs that share a layer must lie.
GPUS_PER_NODE = 8

#: CUDA context (0.3 to 0.4 GiB a process), NCCL (0.3 to 0.4), and what the allocator holds beyond need. The sum
#: is ours; NVIDIA's aiconfigurator counts 3.5 GiB "to be safe" where it had 0.5.
FRAMEWORK_GIB = 2.0

#: Bytes a parameter of 4-bit NormalFloat with double quantization: 4 bits and 0.127 (Dettmers and others,
#: "QLoRA", 2023, arXiv 2305.14314, section 3).
NF4_BYTES = (4 + 0.127) / 8


@dataclass(frozen=True, slots=True)
class Layout:
    """How a job is spread: GPUs = data x tensor x pipeline; what data parallelism divides (ZeRO stage)."""

    data: int
    tensor: int
    pipeline: int
    zero_stage: int
    checkpointing: Checkpointing

    @property
    def gpus(self) -> int:
        """GPUs of the block."""
        return self.data * self.tensor * self.pipeline


@dataclass(frozen=True, slots=True)
class Memory:
    """Memory of a GPU in GiB, by what it holds."""

    weights_gib: float
    gradients_gib: float
    optimizer_gib: float
    activations_gib: float
    framework_gib: float

    @property
    def total_gib(self) -> float:
        """All of it."""
        return float(sum(astuple(self)))


def adapter_parameters(model: ModelShape, rank: int) -> float:
    """Parameters of adapters of one rank on all linear layers: 18 h r a layer.

    A matrix of a by b gets r (a + b) (Hu and others, "LoRA", 2021, arXiv 2106.09685): four of h by h in
    attention, two of h by 4h after it.
    """
    return 18.0 * model.hidden_size * rank * model.layers


def held(task: TrainingTask) -> tuple[float, float]:
    """What the job holds: parameters that are trained, and bytes of weights that are frozen."""
    full = task.variant.strategy == "full"
    technique = task.variant.technique
    size = weight_bytes(task)
    policy, helper = task.model, task.auxiliary
    trained, frozen = 0.0, 0.0
    if full:
        trained += policy.parameters
        copies = technique in ("dpo", "rlhf", "rlvr")  # the reference; adapters are their own
        frozen += copies * policy.parameters * size
    else:
        trained += adapter_parameters(policy, task.lora_rank)
        frozen += policy.parameters * (NF4_BYTES if task.variant.strategy == "qlora" else size)
    if technique == "rlhf":  # the reward model is frozen, the value model trained
        frozen += helper.parameters * size * (1 if full else 2)
        trained += helper.parameters if full else adapter_parameters(helper, task.lora_rank)
    return trained, frozen


def weight_bytes(task: TrainingTask) -> int:
    """Bytes of a weight in computation; fp8 training keeps weights in 16 bit."""
    return 4 if task.precision == "fp32" else 2


def activation_bytes(task: TrainingTask, checkpointing: Checkpointing, tensor: int) -> float:
    """Bytes of activations that a GPU keeps for the backward pass.

    With s tokens, b sequences, h width, a heads of 128, t GPUs a layer and sequence parallelism, a layer keeps
    ``s b h (34 + 5 a s / h) / t``; ``34 s b h / t`` with selective recomputation (FlashAttention, too, keeps no
    s by s matrix); ``2 s b h`` with full recomputation, beside one layer at work (Korthikanti and others,
    "Reducing Activation Recomputation in Large Transformer Models", 2022, arXiv 2205.05198, table 2). The first
    stage of a pipeline keeps as much as all layers without one. Logits are 4 s b V / t.
    """
    model, wide = task.model, weight_bytes(task) / 2
    block = task.sequence_length * task.micro_batch * model.hidden_size * wide
    heads = max(1, model.hidden_size // 128)
    if checkpointing == "full":
        kept = 2 * block * model.layers + 34 * block / tensor
    else:
        scores = 5 * heads * task.sequence_length / model.hidden_size if checkpointing == "none" else 0
        kept = block * (34 + scores) / tensor * model.layers
    return kept + 4 * task.sequence_length * task.micro_batch * model.vocabulary / tensor


def memory(task: TrainingTask, layout: Layout) -> Memory:
    """Memory of a GPU under a layout.

    Mixed-precision Adam holds 16 bytes a trained parameter: weight 2, gradient 2, and 12 for the copy of the
    weight and two moments in 32 bit; ZeRO stage 1 divides the 12 by the data-parallel GPUs, stage 2 the
    gradient too, stage 3 (FSDP) the weights too, frozen ones included (Rajbhandari and others, "ZeRO", 2020,
    arXiv 1910.02054). In fp32 they are 4, 4 and 8. Stage 3 gathers two layers at a time.
    """
    trained, frozen = held(task)
    size = weight_bytes(task)
    split = layout.tensor * layout.pipeline
    stage = layout.zero_stage if layout.data > 1 else 0
    weights = (trained * size + frozen) / split / (layout.data if stage == 3 else 1)
    if stage == 3:
        weights += 2 * size * task.model.parameters / task.model.layers / layout.tensor
    gradients = trained * size / split / (layout.data if stage >= 2 else 1)
    optimizer = trained * (8 if size == 4 else 12) / split / (layout.data if stage >= 1 else 1)
    activations = activation_bytes(task, layout.checkpointing, layout.tensor)
    return Memory(weights / GIB, gradients / GIB, optimizer / GIB, activations / GIB, FRAMEWORK_GIB)


def layouts(task: TrainingTask, gpus: int) -> Iterator[Layout]:
    """Layouts of a block that the task allows, from the quickest to the most thrifty.

    Recomputation costs a third more work, so it comes last; then more GPUs a layer, then higher ZeRO stages.
    """
    choices: tuple[Checkpointing, ...] = ("selective", "full")
    for checkpointing in choices if task.checkpointing is None else (task.checkpointing,):
        for tensor in _tensors(task):
            split = tensor * task.pipeline_parallel
            if split > gpus:
                continue
            data = gpus // split
            stages = (0, 1, 2, 3) if task.zero_stage is None else (task.zero_stage,)
            for stage in stages if data > 1 else (0,):
                yield Layout(data, tensor, task.pipeline_parallel, stage, checkpointing)


def _tensors(task: TrainingTask) -> tuple[int, ...]:
    if task.tensor_parallel is not None:
        return (task.tensor_parallel,)
    return tuple(1 << power for power in range(GPUS_PER_NODE.bit_length()))


def fit(task: TrainingTask) -> tuple[Layout, Memory]:
    """The smallest block in which the task fits (or the one that it names), with the quickest layout there.

    Raises
    ------
    InputError
        If it fits no block.
    """
    least: tuple[Memory, Layout] | None = None
    sizes = (task.gpus,) if task.gpus else [1 << p for p in range(task.max_gpus.bit_length())]
    for gpus in sizes:
        for layout in layouts(task, gpus):
            needed = memory(task, layout)
            if needed.total_gib <= task.gpu.usable_gib:
                return layout, needed
            if least is None or needed.total_gib < least[0].total_gib:
                least = needed, layout
    assert least is not None  # a split larger than the block was refused before
    raise InputError("training estimate", [_too_large(task, *least)])


def _too_large(task: TrainingTask, needed: Memory, layout: Layout) -> Mistake:
    count = f"{layout.gpus:,} GPU{'s' if layout.gpus > 1 else ''}"
    rule = (
        f"does not fit: needs {needed.total_gib:,.1f} GiB per GPU on {count} at best, "
        f"{task.gpu.name} has {task.gpu.memory_gib:g} ({task.gpu.usable_gib:g} usable)"
    )
    return Mistake("gpus" if task.gpus else "max_gpus", rule, task.gpus or task.max_gpus)
