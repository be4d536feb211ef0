"""What a model needs of a GPU's memory, and how many tokens and requests fit in what is left.

Memory of a GPU = weights + context + workspace + cache. What is set aside for the cache is not used up: a request takes
its part of it only while it runs.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from gpuplan.inputs.errors import InputError, Mistake, did_you_mean
from gpuplan.packing.architecture import Architecture, kv_bytes, weight_bytes
from gpuplan.packing.model import GIB

if TYPE_CHECKING:
    import pandas as pd

_MIB = 1 << 20

#: Usable memory of a GPU in bytes, less than its label: what its driver or a process shows. T4, L40S and H100: the
#: driver's own figure; A100: PyTorch's; the 141 GB GPU: as logged in vLLM issue 13074.
USABLE_BYTES = {
    "T4": 14_917 * _MIB,
    "L40S": 46_068 * _MIB,
    "A100-80GB": round(79.33 * GIB),
    "H100-80GB": 81_559 * _MIB,
    "H200-141GB": round(139.72 * GIB),
}

#: Context of a process: 0.3 to 0.5 GiB on drivers that load lazily (CUDA 11.7 on), 1 GiB before.
CONTEXT_GIB = 0.5

#: Buffers of NCCL from two GPUs on, and for eight (NVIDIA's aiconfigurator).
NCCL_BYTES = ((8, 411_041_792), (2, 358_612_992))

#: Workspace of an engine that profiles itself (vLLM): bytes per sequence and word of the vocabulary (logits in 32 bits
#: and what sampling makes of them), and bytes per unit of the hidden size (activations of a batch of tokens). Least
#: squares over the six H100 rows of ``model-memory`` with 1,024 sequences, which these rows imply but do not state; the
#: residuals are below 0.01 GiB. Of other engines and settings it is a guess.
SAMPLER_BYTES, HIDDEN_BYTES = 38.2, 22_027


@dataclass(frozen=True, slots=True)
class MemoryEstimate:
    """Memory of one GPU, in bytes, by what it holds.

    Attributes
    ----------
    architecture
    gpu
        Its name.
    usable
        What may be used: memory x utilization.
    weights, context, workspace
        Of this GPU's part of the model.
    kv_bits, gpus
        As in `estimate_memory`.
    """

    architecture: Architecture
    gpu: str
    usable: int
    weights: int
    context: int
    workspace: int
    kv_bits: int = 16
    gpus: int = 1

    @property
    def room(self) -> int:
        """Bytes for the cache; negative where the model does not fit."""
        return self.usable - self.weights - self.context - self.workspace

    @property
    def fits(self) -> bool:
        """Whether the model can be loaded, a cache aside."""
        return self.room >= 0

    @property
    def kv_bytes_per_token(self) -> int:
        """Bytes of one token in all layers (longer requests may take less a token where layers have a window)."""
        return self.kv_bytes(1)

    def kv_bytes(self, tokens: int) -> int:
        """Bytes of the cache of a request of so many tokens, prompt and answer."""
        return kv_bytes(self.architecture, tokens, bits=self.kv_bits, gpus=self.gpus)

    @property
    def tokens(self) -> int:
        """Tokens that fit, each kept in all layers; 0 where the model does not fit."""
        return max(0, self.room) // self.kv_bytes_per_token

    @property
    def longest_context(self) -> int:
        """Tokens of the longest single request that fits, at most the model's own limit."""
        if not self.fits:
            return 0
        low, high = 0, self.architecture.max_context or max(1, self.room)
        while low < high:
            middle = (low + high + 1) // 2
            low, high = (middle, high) if self.kv_bytes(middle) <= self.room else (low, middle - 1)
        return low

    def requests(self, tokens: int) -> int:
        """Whole requests of equal length that fit at once; 0 where not even one does.

        Raises
        ------
        InputError
            For a length below 1.
        """
        return 0 if tokens > self.longest_context else max(0, self.room) // self.kv_bytes(_length(tokens))

    def requests_of(self, lengths: Sequence[int]) -> int:
        """How many requests of different lengths fit at once, in the order given: the first that does not ends it."""
        used = 0
        for count, tokens in enumerate(lengths):
            used += self.kv_bytes(_length(tokens))
            if used > self.room or tokens > self.longest_context:
                return count
        return len(lengths)

    def in_use(self, lengths: Sequence[int]) -> int:
        """Bytes of the cache that running requests take; the rest of the room is only set aside."""
        return sum(self.kv_bytes(_length(tokens)) for tokens in lengths)

    def sentence(self, tokens: int | None = None) -> str:
        """What fits, in words; of requests of so many tokens where a length is given."""
        has = f"{_gib(self.usable)} usable on {self.gpu}"
        if not self.fits:
            needed = _gib(self.usable - self.room)
            return (
                f"{self.architecture.name} does not fit: it needs {needed} before the first token, of {has}."
            )
        if tokens is None:
            return f"{self.tokens:,} tokens fit into {_gib(self.room)}, of {has}."
        count = self.requests(tokens)
        if not count:
            longest = self.longest_context
            return f"0 requests of {tokens:,} tokens fit: the longest that fits has {longest:,} tokens."
        each = self.kv_bytes(tokens) / _MIB
        return f"{count:,} requests of {tokens:,} tokens ({each:,.4g} MiB each) fit into {_gib(self.room)}, of {has}."

    def as_model(self) -> dict[str, Any]:
        """The model as an entry of a packing scenario's ``models``: each of its GPUs then holds what is estimated here.

        Weights and cache are those of all GPUs together, context and workspace those of each. Keys and values that
        several GPUs keep for want of heads (as many copies as it takes) count in the cache.
        """
        sizes = {
            "declared_gib": self.weights * self.gpus,
            "context_gib": self.context,
            "workspace_gib": self.workspace,
            "kv_kib_per_token": self.kv_bytes_per_token * self.gpus,
        }
        written = {key: f"{size}B" for key, size in sizes.items()}
        return {"name": self.architecture.name, **written, "gpus": self.gpus}

    def to_frame(self) -> "pd.DataFrame":
        """A row per part: ``part, bytes, gib``; the parts add up to what is usable."""
        import pandas as pd

        parts = [(name, getattr(self, name)) for name in ("weights", "context", "workspace", "room")]
        rows = [(name, size, size / GIB) for name, size in [*parts, ("usable", self.usable)]]
        return pd.DataFrame(rows, columns=["part", "bytes", "gib"])


def estimate_memory(
    architecture: Architecture,
    gpu: str | float,
    *,
    gpus: int = 1,
    utilization: float = 1.0,
    weight_bits: float = 16,
    attention_bits: float | None = None,
    weights_gib: float | None = None,
    context_gib: float = CONTEXT_GIB,
    workspace_gib: float | None = None,
    sequences: int = 256,
    kv_bits: int = 16,
) -> MemoryEstimate:
    """Estimate what a model needs of a GPU, and what is left for its key/value cache.

    Parameters
    ----------
    architecture
        Sizes of the model.
    gpu
        A name of `USABLE_BYTES`, or GiB.
    gpus
        Over which each layer is divided (tensor parallelism); the estimate is of one of them.
    utilization
        Share of the memory that the engine may use.
    weight_bits, attention_bits
        Precision of the weights, see `gpuplan.packing.architecture.weight_bytes`.
    weights_gib
        Of all GPUs together, where known: then nothing is computed.
    context_gib
        Of a process; buffers between GPUs (`NCCL_BYTES`) come on top.
    workspace_gib
        Of each GPU; None: ``SAMPLER_BYTES x sequences x vocabulary + HIDDEN_BYTES x hidden_size``.
    sequences
        That the engine samples at once.
    kv_bits
        Precision of the cache: 4, 8, 16 or 32.

    Raises
    ------
    InputError
        For an unknown GPU, sizes that are wrong or missing, or a cache that sizes do not tell, every mistake named.
    """
    mistakes = _mistakes(gpu, gpus, utilization, sequences)
    limits = {"weights_gib": weights_gib, "context_gib": context_gib, "workspace_gib": workspace_gib}
    for name, value in limits.items():
        if value is not None and not 0 <= value < 1e9:
            mistakes.append(Mistake(name, "must not be negative", value))
    if workspace_gib is None and architecture.vocabulary is None:
        mistakes.append(Mistake("vocabulary", "must be given, or workspace_gib"))
    weights = 0
    try:
        weights = (
            _bytes(weights_gib)
            if weights_gib is not None
            else weight_bytes(architecture, weight_bits, attention_bits)
        )
    except InputError as error:
        mistakes += error.mistakes
    try:
        kv_bytes(architecture, bits=kv_bits)
    except InputError as error:
        mistakes += [mistake for mistake in error.mistakes if mistake not in mistakes]
    if mistakes:
        raise InputError(f"memory of {architecture.name}", mistakes)
    between = next((size for least, size in NCCL_BYTES if gpus >= least), 0)
    return MemoryEstimate(
        architecture,
        gpu if isinstance(gpu, str) else f"a GPU of {gpu:g} GiB",
        int(_share(utilization) * (USABLE_BYTES[gpu] if isinstance(gpu, str) else _share(gpu) * GIB)),
        -(-weights // gpus),
        _bytes(context_gib) + between,
        workspace_bytes(architecture, sequences) if workspace_gib is None else _bytes(workspace_gib),
        kv_bits,
        gpus,
    )


def workspace_bytes(architecture: Architecture, sequences: int) -> int:
    """Bytes of an engine's workspace, by the fit of `SAMPLER_BYTES` and `HIDDEN_BYTES`; the same on each GPU."""
    sampler = SAMPLER_BYTES * sequences * (architecture.vocabulary or 0)
    return round(sampler + HIDDEN_BYTES * architecture.hidden_size)


def _mistakes(gpu: object, gpus: int, utilization: float, sequences: int) -> list[Mistake]:
    found = []
    if isinstance(gpu, str) and gpu not in USABLE_BYTES:
        rule = f"must be GiB, or one of {', '.join(USABLE_BYTES)}{did_you_mean(gpu, USABLE_BYTES)}"
        found.append(Mistake("gpu", rule, gpu))
    elif not isinstance(gpu, str) and (not isinstance(gpu, (int, float)) or not 0 < gpu < 1e6):
        found.append(Mistake("gpu", "must be a name, or GiB above 0", gpu))
    if gpus < 1:
        found.append(Mistake("gpus", "must be at least 1", gpus))
    if not 0 < utilization <= 1:
        found.append(Mistake("utilization", "must be above 0 and at most 1", utilization))
    if not 1 <= sequences <= 1 << 20:
        found.append(Mistake("sequences", "must be from 1 to 1,048,576", sequences))
    return found


def _share(number: float) -> Fraction:
    """The decimal that was written: 0.9 is nine tenths."""
    return Fraction(str(number))


def _bytes(gib: float) -> int:
    return int(_share(gib) * GIB)


def _length(tokens: int) -> int:
    if tokens < 1:
        raise InputError("request", [Mistake("tokens", "must be at least 1", tokens)])
    return tokens


def _gib(size: int) -> str:
    return f"{size / GIB:,.4g} GiB"
