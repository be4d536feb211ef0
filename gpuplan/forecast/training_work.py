"""Floating-point operations of a training job, by what they are spent on."""

from dataclasses import dataclass

from gpuplan.forecast.amounts import ModelShape
from gpuplan.forecast.training_task import Checkpointing, TrainingTask


@dataclass(frozen=True, slots=True)
class Work:
    """Operations of the whole job: `training` at the utilization of training, `generation` at that of decoding."""

    training: float
    generation: float


def forward_flops(model: ModelShape, context: float) -> float:
    """Operations of one token's forward pass: 2 N + 4 l h s.

    N are the active parameters, l layers, h width, s tokens of context. Forward and backward together give
    6 N + 12 l h s. With N = 12 l h^2 + V h that is 72 l h^2 (1 + s/6h + V/12lh); with one more pass over the layers
    for full recomputation, 96 l h^2 (1 + s/6h + V/16lh) a token, the formula of Narayanan and others ("Efficient
    Large-Scale Language Model Training on GPU Clusters Using Megatron-LM", 2021, arXiv 2104.04473). The 6 N is
    that of Kaplan and others ("Scaling Laws for Neural Language Models", 2020, arXiv 2001.08361). The causal mask
    is not credited, as in the MFU of PaLM.
    """
    return 2 * model.active + 4 * model.layers * model.hidden_size * context


def update_passes(strategy: str, checkpointing: Checkpointing) -> int:
    """Forward passes that one update of the weights is worth.

    All weights: forward, gradient of the activations, gradient of the weights, 3 in all. Adapters: the frozen
    weights need no gradient of their own (Hu and others, "LoRA", 2021, arXiv 2106.09685), so 2; the adapters
    themselves are neglected. Full recomputation repeats the forward pass.
    """
    return (3 if strategy == "full" else 2) + (checkpointing == "full")


def work(task: TrainingTask, checkpointing: Checkpointing) -> Work:
    """The operations of a job.

    Per token, in forward passes of the policy model beside its update:

    - DPO: the frozen reference, 1 (Rafailov and others, 2023, arXiv 2305.18290);
    - RLHF with PPO: policy before the update and reference, 1 each, reward and value model forward and an update
      of the value model, in passes of their own size (Ouyang and others, 2022, arXiv 2203.02155);
    - RLVR with GRPO: policy before the update and reference, 1 each; the program that scores costs no GPU
      (Shao and others, 2024, arXiv 2402.03300).

    RLHF and RLVR read their prompts at the utilization of training and write their answers at that of decoding.
    One pass of updates is made over each answer.
    """
    policy = forward_flops(task.model, task.mean_tokens)
    updates = update_passes(task.variant.strategy, checkpointing)
    technique = task.variant.technique
    per_token = updates * policy
    if technique == "dpo":
        per_token += policy
    generated = 0.0
    if technique in ("rlhf", "rlvr"):
        generated = task.generated_share * policy
        per_token += 2 * policy + (1 - task.generated_share) * policy
    if technique == "rlhf":
        per_token += (2 + updates) * forward_flops(task.auxiliary, task.mean_tokens)
    return Work(task.tokens * per_token, task.tokens * generated)
