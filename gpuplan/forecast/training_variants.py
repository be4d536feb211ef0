"""The ten variants of a training job (technique by strategy) and the features that an estimate reads."""

from dataclasses import dataclass
from typing import Literal

Technique = Literal["sft", "dpo", "rlhf", "rlvr", "cpt"]
Strategy = Literal["full", "lora", "qlora"]

TECHNIQUES: tuple[Technique, ...] = ("sft", "dpo", "rlhf", "rlvr", "cpt")
STRATEGIES: tuple[Strategy, ...] = ("full", "lora", "qlora")


@dataclass(frozen=True, slots=True)
class Variant:
    """A technique with a strategy, and what it is about."""

    technique: Technique
    strategy: Strategy
    about: str

    @property
    def name(self) -> str:
        """As in ``sft-lora``."""
        return f"{self.technique}-{self.strategy}"


VARIANTS: tuple[Variant, ...] = (
    Variant("sft", "full", "Supervised fine-tuning of all weights on examples with answers."),
    Variant(
        "sft", "lora", "Supervised fine-tuning of low-rank adapters beside frozen 16-bit weights (Hu 2021)."
    ),
    Variant(
        "sft",
        "qlora",
        "Supervised fine-tuning of low-rank adapters beside frozen 4-bit weights (Dettmers 2023).",
    ),
    Variant(
        "dpo",
        "full",
        "Direct preference optimization (Rafailov 2023): pairs of answers, all weights, beside a frozen reference.",
    ),
    Variant(
        "dpo", "lora", "Direct preference optimization of adapters; the reference is the model without them."
    ),
    Variant(
        "dpo",
        "qlora",
        "Direct preference optimization of adapters beside 4-bit weights, the reference likewise.",
    ),
    Variant(
        "rlhf",
        "full",
        "PPO from human feedback (Ouyang 2022): generates answers; policy, reference, reward and value model.",
    ),
    Variant(
        "rlhf",
        "lora",
        "PPO from human feedback with adapters on policy and value model; no copy as reference.",
    ),
    Variant(
        "rlvr",
        "full",
        "Reinforcement learning from verifiable rewards (GRPO, Shao 2024): a group of answers per prompt, "
        "scored by a program, no value model.",
    ),
    Variant("cpt", "full", "Continued pre-training (and pre-training itself) of all weights on plain text."),
)

#: What an estimate reads, by the names of the arguments of `gpuplan.forecast.training.estimate_training`.
FEATURES: tuple[tuple[str, str], ...] = (
    ("parameters", "All parameters of the model."),
    ("active_parameters", "Parameters that one token passes through (mixture of experts)."),
    ("layers", "Transformer layers."),
    ("hidden_size", "Width of a layer."),
    ("vocabulary", "Entries of the vocabulary."),
    ("tokens", "Tokens of one epoch."),
    ("samples", "Examples, pairs or prompts of one epoch."),
    ("mean_tokens", "Mean tokens of one sequence, prompt and answer."),
    ("epochs", "Passes over the data."),
    ("sequence_length", "Longest sequence, for which memory is laid out."),
    ("technique", "sft, dpo, rlhf, rlvr or cpt."),
    ("strategy", "full, lora or qlora."),
    ("lora_rank", "Rank of the adapters."),
    ("group_size", "Answers per prompt (rlvr)."),
    ("generated_share", "Share of a sequence that the model writes itself (rlhf, rlvr)."),
    ("auxiliary_parameters", "Parameters of the reward and of the value model, each (rlhf)."),
    ("gpu", "Type of GPU."),
    ("precision", "Number format of the computation."),
    ("micro_batch", "Sequences that a GPU computes at once."),
    ("activation_checkpointing", "Which activations are recomputed rather than kept."),
    ("zero_stage", "What data parallelism divides: optimizer (1), gradients (2), weights (3, FSDP)."),
    ("tensor_parallel", "GPUs that share each layer."),
    ("pipeline_parallel", "Groups of layers on different GPUs."),
    ("gpus", "Number of GPUs, where it is given."),
    ("max_gpus", "Largest block that may be used."),
    ("mfu", "Model FLOP/s utilization of training, where it is known."),
    ("generation_mfu", "Model FLOP/s utilization of writing answers, where it is known."),
)


def variant_of(technique: str, strategy: str) -> Variant | None:
    """The variant of a technique and a strategy; ``None`` where it is not one of the ten."""
    return next((v for v in VARIANTS if (v.technique, v.strategy) == (technique, strategy)), None)
