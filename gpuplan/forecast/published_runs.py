"""Training runs with published GPU-hours beside the estimate for each: the errors, as they are.

The constants of an estimate are not fitted to these runs (see `training_utilization` for where they come from).
A published figure may hold more than the run itself: evaluation, restarts, runs done again, later stages.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from gpuplan.forecast.training import TrainingEstimate, estimate_training

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, slots=True)
class PublishedRun:
    """A run: what was published of it, what an estimate is asked, and where it stands.

    Parameters
    ----------
    name
        Name of the model.
    gpu_hours
        As published, or GPUs times hours.
    asked
        Arguments of `gpuplan.forecast.training.estimate_training`.
    source
        Paper or page.
    note
        What the published figure holds beside the run, or what is not told.
    """

    name: str
    gpu_hours: float
    asked: Mapping[str, Any]
    source: str
    note: str = ""

    def estimate(self) -> TrainingEstimate:
        """The estimate for the run."""
        return estimate_training(**self.asked)


_LLAMA = "Touvron and others, LLaMA, 2023, arXiv 2302.13971, tables 2 and 15"
_LLAMA_2 = "Touvron and others, Llama 2, 2023, arXiv 2307.09288, table 2; model card"
_LLAMA_3 = "Meta, Llama 3.1 model card (meta-llama/llama-models), 2024"
_LLAMA_3_NOTE = "15 trillion tokens and more; hours of all training, longer contexts and fine-tuning included"
_CHAT = "Yao and others, DeepSpeed-Chat, 2023, arXiv 2308.01320; DeepSpeed blog, tables 1 and 2, step 3"
_CHAT_NOTE = "whether adapters were used is not told with the table"
_TINY = "Zhang and others, TinyLlama, 2024, arXiv 2401.02385; README of the repository"


def _pretraining(
    name: str,
    gpu_hours: float,
    source: str,
    note: str = "",
    *,
    parameters: str,
    tokens: str,
    gpus: int,
    **more: Any,
) -> PublishedRun:
    asked = {"parameters": parameters, "tokens": tokens, "gpus": gpus, "technique": "cpt", **more}
    return PublishedRun(name, gpu_hours, asked, source, note)


def _llama(name: str, parameters: str, tokens: str, gpu_hours: float) -> PublishedRun:
    note = "2,048 GPUs are told for 65B only" if name != "LLaMA-65B" else ""
    return _pretraining(name, gpu_hours, _LLAMA, note, parameters=parameters, tokens=tokens, gpus=2048)


def _llama_2(name: str, parameters: str, gpu_hours: float) -> PublishedRun:
    note = "number of GPUs not told: 2,048 here"
    more = {"parameters": parameters, "tokens": "2T", "gpus": 2048, "sequence_length": 4096}
    return _pretraining(name, gpu_hours, _LLAMA_2, note, **more)  # type: ignore[arg-type]


def _llama_3(name: str, parameters: str, gpu_hours: float) -> PublishedRun:
    return _pretraining(
        name,
        gpu_hours,
        _LLAMA_3,
        _LLAMA_3_NOTE,
        parameters=parameters,
        tokens="15T",
        gpus=16_384,
        gpu="H100",
        sequence_length=8192,
        vocabulary=128_256,
    )


def _chat(name: str, parameters: str, gpus: int, hours: float) -> PublishedRun:
    asked = {
        "parameters": parameters,
        "samples": 131_900,
        "mean_tokens": 512,
        "sequence_length": 512,
        "technique": "rlhf",
        "generated_share": 0.5,
        "auxiliary_parameters": "350M",
        "vocabulary": 50_272,
        "gpus": gpus,
    }
    return PublishedRun(name, gpus * hours, asked, _CHAT, _CHAT_NOTE)


RUNS: tuple[PublishedRun, ...] = (
    _llama("LLaMA-7B", "6.7B", "1T", 82_432),
    _llama("LLaMA-13B", "13B", "1T", 135_168),
    _llama("LLaMA-33B", "32.5B", "1.4T", 530_432),
    _llama("LLaMA-65B", "65.2B", "1.4T", 1_022_362),
    _llama_2("Llama-2-7B", "7B", 184_320),
    _llama_2("Llama-2-13B", "13B", 368_640),
    _llama_2("Llama-2-70B", "70B", 1_720_320),
    _llama_3("Llama-3.1-8B", "8B", 1.46e6),
    _llama_3("Llama-3.1-70B", "70B", 7.0e6),
    _llama_3("Llama-3.1-405B", "405B", 30.84e6),
    _pretraining(
        "BLOOM-176B",
        1_082_990,
        "Scao and others, BLOOM, 2022, arXiv 2211.05100, section 3.4; Luccioni and others, 2022, arXiv 2211.02001",
        "118 days of 384 GPUs, stops included; what was recomputed is not told",
        parameters="176B",
        tokens="366B",
        gpus=384,
        vocabulary=250_680,
        layers=70,
        hidden_size=14_336,
    ),
    _pretraining(
        "OPT-175B",
        809_472,
        "Zhang and others, OPT, 2022, arXiv 2205.01068; GPU-hours in LLaMA, arXiv 2302.13971, table 15",
        "180B tokens; 34 days of 992 GPUs; over 100 restarts in two months",
        parameters="175B",
        tokens="180B",
        gpus=992,
        vocabulary=50_272,
    ),
    _pretraining(
        "StarCoderBase-15.5B",
        320_256,
        "Li and others, StarCoder, 2023, arXiv 2305.06161",
        parameters="15.5B",
        tokens="1T",
        gpus=512,
        sequence_length=8192,
    ),
    _pretraining(
        "Pythia-1B",
        4_830,
        "Biderman and others, Pythia, 2023, arXiv 2304.01373, as cited in the README of TinyLlama",
        "number of GPUs not told there: 64 here",
        parameters="1.0B",
        tokens="300B",
        gpus=64,
        gpu="A100-40GB",
        vocabulary=50_304,
    ),
    _pretraining(
        "TinyLlama-1.1B",
        3_456,
        _TINY,
        "for 300B of its tokens",
        parameters="1.1B",
        tokens="300B",
        gpus=16,
        gpu="A100-40GB",
    ),
    _pretraining(
        "SmolLM3-3B",
        384 * 24 * 24,
        "Hugging Face, SmolLM3, 2025, blog: 384 H100 for 24 days",
        "days are whole, longer contexts not told apart",
        parameters="3B",
        tokens="11.2T",
        gpus=384,
        gpu="H100",
        sequence_length=4096,
        vocabulary=128_256,
    ),
    _pretraining(
        "DeepSeek-V3-671B",
        2.664e6,
        "DeepSeek-AI, DeepSeek-V3, 2024, arXiv 2412.19437, table 1 (pre-training alone)",
        "37B of 671B parameters work on a token; experts lie on different GPUs, which is not modelled",
        parameters="671B",
        active_parameters="37B",
        tokens="14.8T",
        gpus=2048,
        gpu="H800",
        precision="fp8",
        sequence_length=4096,
        vocabulary=129_280,
    ),
    _chat("DeepSpeed-Chat OPT-6.7B", "6.7B", 8, 4.1),
    _chat("DeepSpeed-Chat OPT-13B", "13B", 8, 9.0),
    _chat("DeepSpeed-Chat OPT-66B", "66B", 64, 7.5),
    PublishedRun(
        "Guanaco-65B",
        24,
        {
            "parameters": "65.2B",
            "samples": 1875 * 16,
            "mean_tokens": 528,
            "sequence_length": 528,
            "strategy": "qlora",
            "gpu": "A6000",
            "activation_checkpointing": "full",
            "gpus": 1,
        },
        "Dettmers and others, QLoRA, 2023, arXiv 2305.14314; scripts/finetune_guanaco_65b.sh of the repository",
        "one GPU of 48 GB, taken as an A6000; 1,875 steps of 16, each counted as its longest, 528 tokens",
    ),
)


def table() -> "pd.DataFrame":
    """The runs beside their estimates, a row each.

    Returns
    -------
    pandas.DataFrame
        ``run, variant, gpu, published_gpu_hours, estimated_gpu_hours, low, high, error_percent, in_range,
        source, note``. The error is of the published figure: -20 means that the estimate is a fifth too low.
    """
    import pandas as pd

    rows = []
    for run in RUNS:
        estimate = run.estimate()
        hours = estimate.gpu_hours
        rows.append(
            {
                "run": run.name,
                "variant": estimate.task.variant.name,
                "gpu": estimate.task.gpu.name,
                "published_gpu_hours": float(run.gpu_hours),
                "estimated_gpu_hours": hours.best,
                "low": hours.low,
                "high": hours.high,
                "error_percent": 100 * (hours.best / run.gpu_hours - 1),
                "in_range": hours.low <= run.gpu_hours <= hours.high,
                "source": run.source,
                "note": run.note,
            }
        )
    return pd.DataFrame(rows)
