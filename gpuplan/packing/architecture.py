"""A transformer by its sizes: bytes of its weights, and of its key/value cache per token.

Two precisions that have nothing to do with each other: that of the weights, and that of the cache.
"""

from dataclasses import dataclass

from gpuplan.inputs.errors import InputError, Mistake

#: Class names (of the models' own configuration files) whose every layer keeps keys and values of all tokens. Others
#: may have layers without a cache, with other heads, or with an index beside it, and are refused.
PLAIN_FAMILIES = frozenset(
    {
        "LlamaForCausalLM",
        "MiMoForCausalLM",
        "MiniMaxM2ForCausalLM",
        "MistralForCausalLM",
        "MixtralForCausalLM",
        "Qwen2ForCausalLM",
        "Qwen3ForCausalLM",
        "Qwen3MoeForCausalLM",
        "Qwen3VLForConditionalGeneration",
        "Qwen3VLMoeForConditionalGeneration",
    }
)

#: Those whose every layer keeps one compressed vector and one rotary key for all heads ("multi-head latent attention",
#: DeepSeek-AI, "DeepSeek-V2", 2024, arXiv 2405.04434, section 2.1).
COMPRESSED_FAMILIES = frozenset(
    {"DeepseekV2ForCausalLM", "DeepseekV3ForCausalLM", "KimiK25ForConditionalGeneration"}
)

#: Those in which every second layer keeps only the window (OpenAI, "gpt-oss model card", 2025, section 2.3).
ALTERNATING_FAMILIES = frozenset({"GptOssForCausalLM"})

#: Those whose `intermediate_size` is that of one expert.
EXPERT_SIZE_FAMILIES = frozenset({"GptOssForCausalLM", "MiniMaxM2ForCausalLM", "MixtralForCausalLM"})

#: Embedding and output layer stay in 16 bits when the rest is quantized.
EMBEDDING_BITS = 16

_LARGEST = 1 << 40


@dataclass(frozen=True, slots=True)
class Architecture:
    """Sizes of a decoder with grouped-query attention, a gated feed-forward part, and experts where it has them.

    Attributes
    ----------
    name
    layers, hidden_size, attention_heads
    kv_heads
        Heads of keys and values, each shared by ``attention_heads / kv_heads`` of queries; None: as many as of queries.
    head_dim
        None: ``hidden_size / attention_heads``.
    kv_lora_rank, qk_rope_head_dim
        Of a compressed cache: the width of the vector that all heads share, and of its rotary key.
    window
        Tokens that layers with a sliding window keep.
    window_layers
        Layers that have it; None: not known (unless the family says so).
    intermediate_size
        Of the feed-forward part, of one expert where there are experts and `family` is one of `EXPERT_SIZE_FAMILIES`.
    vocabulary, max_context
    experts
    tied
        Whether the output layer is the embedding.
    parameters
        As published; the weights are then counted by it.
    family
        Class name in the model's configuration file; empty: as the sizes say.
    mixed
        Whether its layers are of several kinds.
    """

    name: str
    layers: int
    hidden_size: int
    attention_heads: int
    kv_heads: int | None = None
    head_dim: int | None = None
    kv_lora_rank: int | None = None
    qk_rope_head_dim: int | None = None
    window: int | None = None
    window_layers: int | None = None
    intermediate_size: int | None = None
    vocabulary: int | None = None
    max_context: int | None = None
    experts: int = 0
    tied: bool = False
    parameters: float | None = None
    family: str = ""
    mixed: bool = False

    @property
    def key_heads(self) -> int:
        """Heads of keys and values of all GPUs together."""
        return self.attention_heads if self.kv_heads is None else self.kv_heads

    @property
    def width(self) -> int:
        """Width of a head."""
        return self.hidden_size // self.attention_heads if self.head_dim is None else self.head_dim

    @property
    def windowed(self) -> int:
        """Layers that keep only the window."""
        if self.window_layers is not None:
            return self.window_layers
        return self.layers // 2 if self.family in ALTERNATING_FAMILIES else 0

    def mistakes(self) -> list[Mistake]:
        """Sizes that cannot be."""
        found = [
            Mistake(name, f"must be a whole number from 1 to {_LARGEST:,}", value)
            for name in Architecture.__slots__
            if name not in ("name", "experts", "tied", "parameters", "family", "mixed", "window_layers")
            if (value := getattr(self, name)) is not None
            if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= _LARGEST
        ]
        if found:
            return found
        if self.attention_heads % self.key_heads:
            rule = f"must divide the {self.attention_heads} heads of queries"
            found.append(Mistake("kv_heads", rule, self.kv_heads))
        if self.head_dim is None and self.kv_lora_rank is None and self.hidden_size % self.attention_heads:
            rule = f"must be given where hidden_size ({self.hidden_size}) is no multiple of attention_heads"
            found.append(Mistake("head_dim", rule, self.attention_heads))
        if self.window_layers is not None and not 0 <= self.window_layers <= self.layers:
            found.append(Mistake("window_layers", f"must be from 0 to {self.layers}", self.window_layers))
        if self.parameters is not None and not 0 < self.parameters < 1e15:
            found.append(Mistake("parameters", "must be above 0", self.parameters))
        return found


def cache_mistake(of: Architecture) -> Mistake | None:
    """Why the cache of an architecture cannot be computed from its sizes, or None."""
    if of.family in ALTERNATING_FAMILIES and of.window is not None:
        return None
    known = PLAIN_FAMILIES | COMPRESSED_FAMILIES | {""}
    if of.window_layers is not None and of.window is None:
        return Mistake("window", "must be given where window_layers is")
    if of.window_layers is not None:  # whoever gives it has said what every layer keeps
        return None
    if of.mixed:
        rule = "has layers of several kinds: name window and window_layers, where those are all that differs"
        return Mistake("layer_types", rule, of.name)
    if of.family not in known:
        return Mistake("architecture", "is none whose every layer is known to keep a plain cache", of.family)
    if of.window is not None and of.window < (of.max_context or _LARGEST):
        rule = "keeps only so many tokens in some layers or in all: name window_layers"
        return Mistake("sliding_window", rule, of.window)
    if (of.family in COMPRESSED_FAMILIES or of.kv_lora_rank) and not (
        of.kv_lora_rank and of.qk_rope_head_dim
    ):
        return Mistake(
            "kv_lora_rank", "and qk_rope_head_dim must be given for a compressed cache", of.kv_lora_rank
        )
    return None


def kv_bytes(of: Architecture, tokens: int = 1, *, bits: int = 16, gpus: int = 1) -> int:
    """Bytes of the cache of one request on each GPU.

    Each layer keeps ``2 x heads x width`` elements a token (key and value), or ``kv_lora_rank + qk_rope_head_dim`` of
    a compressed cache; layers with a window keep at most that many tokens.

    Parameters
    ----------
    of
    tokens
        Prompt and answer.
    bits
        Of an element of the cache: 4, 8, 16 or 32, whatever the weights have.
    gpus
        Over which the heads are divided; each GPU has at least one head, and all of a compressed cache.

    Raises
    ------
    InputError
        If the sizes are wrong, or do not say what every layer keeps.
    """
    mistakes = of.mistakes()
    if not mistakes and (refused := cache_mistake(of)) is not None:
        mistakes = [refused]
    if bits not in (4, 8, 16, 32):
        mistakes.append(Mistake("kv_bits", "must be 4, 8, 16 or 32", bits))
    if gpus < 1:
        mistakes.append(Mistake("gpus", "must be at least 1", gpus))
    if tokens < 0:
        mistakes.append(Mistake("tokens", "must not be negative", tokens))
    if mistakes:
        raise InputError(of.name, mistakes)
    if of.kv_lora_rank:
        elements = of.kv_lora_rank + (of.qk_rope_head_dim or 0)
    else:
        elements = 2 * -(-of.key_heads // gpus) * of.width
    kept = (of.layers - of.windowed) * tokens + of.windowed * min(tokens, of.window or tokens)
    return -(-kept * elements * bits // 8)


def weight_bytes(of: Architecture, bits: float = 16, attention_bits: float | None = None) -> int:
    """Bytes of all weights.

    Without published `parameters`: attention ``h (2 heads + 2 kv_heads) width`` and a gated feed-forward part of
    ``3 h intermediate`` a layer (times the experts), norms, an embedding and an output layer of ``h vocabulary`` each.

    Parameters
    ----------
    of
    bits
        Of the weights of the layers; of all weights where `parameters` counts them.
    attention_bits
        Of those of attention, where they are not quantized like the rest. Embedding and output layer have 16.

    Raises
    ------
    InputError
        If sizes are wrong or missing.
    """
    mistakes = of.mistakes()
    if not 0 < bits <= 64 or not 0 < (attention_bits or bits) <= 64:
        mistakes.append(Mistake("weight_bits", "must be above 0 and at most 64", bits))
    if not mistakes and of.parameters is None:
        mistakes = _missing(of)
    if mistakes:
        raise InputError(of.name, mistakes)
    if of.parameters is not None:
        return round(of.parameters * bits / 8)
    hidden, experts = of.hidden_size, max(1, of.experts)
    attention = of.layers * hidden * 2 * (of.attention_heads + of.key_heads) * of.width
    forward = of.layers * experts * 3 * hidden * (of.intermediate_size or 0)
    small = of.layers * (2 * hidden + of.experts * hidden) + hidden
    ends = (1 if of.tied else 2) * hidden * (of.vocabulary or 0)
    layers = forward * bits + attention * (attention_bits or bits)
    return round((layers + (small + ends) * EMBEDDING_BITS) / 8)


def _missing(of: Architecture) -> list[Mistake]:
    rule = "must be given, or parameters, or the weights themselves"
    found = [Mistake(name, rule) for name in ("intermediate_size", "vocabulary") if getattr(of, name) is None]
    if of.kv_lora_rank:
        found.append(Mistake("parameters", f"{rule}: its attention has matrices that are not listed"))
    if of.experts and of.family not in EXPERT_SIZE_FAMILIES:
        found.append(Mistake("parameters", f"{rule}: the size of its experts is not listed"))
    return found
