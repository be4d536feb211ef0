"""The estimate as a whole: what may be asked, what is refused and how, what comes out."""

import inspect
import pickle

import pytest

from gpuplan.forecast.amounts import model_shape
from gpuplan.forecast.training import estimate_training
from gpuplan.forecast.training_variants import FEATURES, STRATEGIES, TECHNIQUES, VARIANTS, variant_of
from gpuplan.inputs.errors import InputError
from gpuplan.loading import load


def refused(parameters: object = "7B", **asked: object) -> dict[str, str]:
    """The rules that a question breaks, by path."""
    with pytest.raises(InputError) as caught:
        estimate_training(parameters, **asked)  # type: ignore[arg-type]
    return {mistake.path: mistake.rule for mistake in caught.value.mistakes}


def test_there_are_ten_variants_and_each_can_be_estimated() -> None:
    assert len(VARIANTS) == len({v.name for v in VARIANTS}) == 10
    assert {v.technique for v in VARIANTS} == set(TECHNIQUES)
    assert {v.strategy for v in VARIANTS} == set(STRATEGIES)
    hours = {}
    for variant in VARIANTS:
        assert variant.about.endswith(".")
        made = estimate_training(
            "7B",
            samples="10K",
            mean_tokens=500,
            technique=variant.technique,
            strategy=variant.strategy,
            gpu="H100",
        )
        assert made.task.variant is variant
        assert 0 < made.gpu_hours.low < made.gpu_hours.best < made.gpu_hours.high
        assert made.hours.best == made.gpu_hours.best / made.gpus
        hours[variant.name] = made.gpu_hours.best
    assert hours["sft-lora"] < hours["sft-full"] < hours["dpo-full"] < hours["rlhf-full"] < hours["rlvr-full"]


def test_the_features_are_the_arguments() -> None:
    assert {name for name, _ in FEATURES} == set(inspect.signature(estimate_training).parameters)
    assert len(FEATURES) == 27
    assert all(about.endswith(".") for _, about in FEATURES)


@pytest.mark.parametrize("written", [7e9, "7B", "7b", "7000M", "7 B", "7e9", 7_000_000_000])
def test_parameters_may_be_written_as_people_do(written: object) -> None:
    made = estimate_training(written, tokens="1e9")  # type: ignore[arg-type]
    assert made.task.model.parameters == 7e9
    assert made.task.tokens == 1e9


@pytest.mark.parametrize(
    "written", ["seven", "7G", "-7B", "", None, True, float("nan"), "7BB", [7e9], 0, 1e30]
)
def test_parameters_that_are_no_size_are_refused(written: object) -> None:
    assert "parameters" in refused(written, tokens=1e9)


def test_a_negative_size_is_told_from_text_that_is_no_number() -> None:
    assert refused("-7B", tokens=1e9)["parameters"].startswith("must be from 1,000,000 to")
    assert refused("7G", tokens=1e9)["parameters"] == "must be a number, or one with K, M, B or T (7B, 1.4T)"


@pytest.mark.parametrize(
    ("parameters", "layers", "hidden_size"), [(6.7e9, 32, 4096), (65.2e9, 80, 8192), (175e9, 96, 12_288)]
)
def test_a_shape_that_is_not_given_is_near_the_real_one(
    parameters: float, layers: int, hidden_size: int
) -> None:
    """LLaMA-7B, LLaMA-65B and GPT-3: within a sixth, and of the right number of parameters."""
    shape = model_shape(parameters, 32_000)
    assert shape.layers == pytest.approx(layers, rel=0.17)
    assert shape.hidden_size == pytest.approx(hidden_size, rel=0.17)
    assert 12 * shape.layers * shape.hidden_size**2 == pytest.approx(parameters, rel=0.03)
    assert model_shape(parameters, 32_000, layers=layers).hidden_size == pytest.approx(hidden_size, rel=0.04)
    assert model_shape(parameters, 32_000, hidden_size=hidden_size).layers == pytest.approx(layers, abs=1)


def test_every_mistake_is_named_at_once() -> None:
    found = refused(
        -7e9,
        samples=100,
        technique="stf",
        strategy="qlora",
        gpu="H10",
        precision="bf17",
        activation_checkpointing="all",
        epochs=0,
        gpus=2.5,
        tensor_parallel=3,
        zero_stage=4,
        mfu=46.2,
    )
    assert found == {
        "parameters": "must be from 1,000,000 to 100,000,000,000,000",
        "epochs": "must be more than 0",
        "zero_stage": "must be at most 3",
        "tensor_parallel": "must be a power of two",
        "gpus": "must be a whole number",
        "mfu": "must be at most 1",
        "technique": "must be one of sft, dpo, rlhf, rlvr, cpt; did you mean sft?",
        "precision": "must be one of auto, bf16, fp16, fp8, fp32; did you mean bf16?",
        "activation_checkpointing": "must be one of auto, none, selective, full",
        "gpu": found["gpu"],
        "mean_tokens": "must be given where samples are",
    }
    assert "did you mean H100?" in found["gpu"]


@pytest.mark.parametrize(
    ("asked", "path", "said"),
    [
        ({}, "tokens", "must be given, or samples with mean_tokens"),
        ({"tokens": 1, "samples": 1, "mean_tokens": 1}, "samples", "left out where tokens are given"),
        ({"tokens": 1, "active_parameters": "8B"}, "active_parameters", "at most parameters, 7,000,000,000"),
        ({"tokens": 1, "mean_tokens": 4096}, "mean_tokens", "at most sequence_length, 2,048"),
        (
            {"tokens": 1, "gpus": 5, "max_gpus": 6},
            "gpus",
            "rounded up to a block, 8, must be at most max_gpus, 6",
        ),
        (
            {"tokens": 1, "gpus": 2, "tensor_parallel": 4},
            "tensor_parallel",
            "at most the 2 GPUs of the block",
        ),
        ({"tokens": 1, "max_gpus": 6, "pipeline_parallel": 8}, "tensor_parallel", "at most the 4 GPUs"),
        ({"tokens": 1, "layers": 2, "pipeline_parallel": 4}, "pipeline_parallel", "at most layers, 2"),
        (
            {"tokens": 1, "technique": "cpt", "strategy": "qlora"},
            "strategy",
            "must be full with cpt: cpt-qlora is",
        ),
        ({"tokens": 1, "technique": "rlhf", "strategy": "qlora"}, "strategy", "must be full, lora with rlhf"),
        ({"tokens": 1, "lora_rank": 8}, "lora_rank", "only lora and qlora have adapters"),
        ({"tokens": 1, "group_size": 8}, "group_size", "only rlvr has groups"),
        ({"tokens": 1, "generated_share": 0.5}, "generated_share", "only rlhf and rlvr generate"),
        ({"tokens": 1, "generation_mfu": 0.5}, "generation_mfu", "only rlhf and rlvr generate"),
        ({"tokens": 1, "auxiliary_parameters": "1B"}, "auxiliary_parameters", "only rlhf has a reward"),
        ({"tokens": 1, "strategy": "qlora", "precision": "fp8", "gpu": "H100"}, "precision", "bf16 or fp16"),
        (
            {"tokens": 1, "gpu": "V100", "precision": "bf16"},
            "precision",
            "that V100-32GB computes in: fp16, fp32",
        ),
        ({"tokens": 1, "precision": "fp8"}, "precision", "that A100-80GB computes in: bf16, fp16, fp32"),
        ({"tokens": 1, "vocabulary": None}, "vocabulary", "must be given"),
        ({"tokens": 1, "zero_stage": "all"}, "zero_stage", "must be a whole number"),
    ],
)
def test_what_does_not_go_together_is_refused_in_a_sentence(
    asked: dict[str, object], path: str, said: str
) -> None:
    found = refused(**asked)
    assert list(found) == [path]
    assert said in found[path]


def test_variants_are_found_by_their_parts() -> None:
    found = variant_of("dpo", "lora")
    assert found is not None
    assert found.name == "dpo-lora"
    assert variant_of("rlvr", "qlora") is None


def test_gpus_are_rounded_up_to_a_legal_block_and_that_is_said() -> None:
    made = estimate_training("7B", tokens="1B", gpus=5, gpu="H100")
    assert made.gpus == 8
    assert made.assumptions[0] == "5 GPUs are rounded up to a block of 8."
    exact = estimate_training("7B", tokens="1B", gpus=8, gpu="H100")
    assert exact.gpu_hours == made.gpu_hours
    assert "rounded" not in exact.assumptions[0]


def test_more_gpus_take_the_same_gpu_hours_in_less_time() -> None:
    few = estimate_training("7B", tokens="1B", gpus=8, gpu="H100")
    many = estimate_training("7B", tokens="1B", gpus=32, gpu="H100")
    assert many.gpu_hours == few.gpu_hours
    assert many.hours.best == pytest.approx(few.hours.best / 4)
    assert many.memory.total_gib <= few.memory.total_gib


def test_samples_and_tokens_say_the_same() -> None:
    by_samples = estimate_training("7B", samples=1000, mean_tokens=500, epochs=2)
    by_tokens = estimate_training("7B", tokens=500_000, mean_tokens=500, epochs=2)
    assert by_samples.gpu_hours == by_tokens.gpu_hours
    assert by_samples.task.tokens == 1_000_000


@pytest.mark.parametrize("end", ["low", "best", "high"])
def test_a_job_goes_into_a_scenario_file_as_it_is(end: str) -> None:
    made = estimate_training("7B", samples="52K", mean_tokens=300, epochs=3, gpu="H100")
    row = made.to_job("sft-7b", 2.5, hours=end)  # type: ignore[arg-type]
    assert list(row) == ["name", "kind", "gpus", "hours", "priority"]
    exact = getattr(made.hours, end)
    assert exact <= row["hours"] < exact + 0.01  # never too short
    scenario = load(
        {
            "kind": "allocation",
            "name": "one-job",
            "cluster": {"gpus": 16},
            "horizon": {"steps": 24, "step_hours": 1, "start": "2026-03-02T00:00"},
            "batch": [row],
        }
    )
    (job,) = scenario.batch
    assert (job.name, job.kind, job.gpus, job.priority) == ("sft-7b", "training", made.gpus, 2.5)
    assert job.hours == row["hours"]


def test_a_job_that_a_scenario_file_does_not_take_is_refused_with_every_mistake() -> None:
    made = estimate_training("405B", tokens="15T", technique="cpt", gpu="H100", gpus=128, zero_stage=3)
    with pytest.raises(InputError) as caught:
        made.to_job("", 0)
    assert [mistake.path for mistake in caught.value.mistakes] == ["name", "priority"]
    slow = estimate_training("65B", tokens="15T", strategy="qlora", gpu="H100", gpus=1)
    with pytest.raises(
        InputError, match="hours: must be at most 1,000,000 in a scenario file: use more GPUs"
    ):
        slow.to_job("long", 1)
    with pytest.raises(InputError, match="hours: must be low, best or high"):
        made.to_job("x", 1, hours="worst")  # type: ignore[arg-type]


def test_figures_table_and_text_agree() -> None:
    made = estimate_training("7B", samples=1000, mean_tokens=500, technique="rlhf", gpu="H100")
    frame = made.to_frame()
    assert frame["figure"].tolist() == list(made.figures)
    assert frame["value"].tolist() == list(made.figures.values())
    assert set(frame["unit"]) == {"GPUs", "GPU-hours", "h", "GiB per GPU", "tokens", "FLOP"}
    text = repr(made)
    assert text.startswith("rlhf-full on ")
    for sentence in made.assumptions:
        assert sentence.endswith(".")
        assert f"- {sentence}" in text
    assert any("published runs of RLHF took more" in sentence for sentence in made.assumptions)


def test_an_estimate_is_a_value() -> None:
    asked = {"tokens": "1B", "technique": "rlvr", "gpu": "H100"}
    assert estimate_training("7B", **asked) == estimate_training(7e9, **asked)  # type: ignore[arg-type]
    made = estimate_training("7B", **asked)  # type: ignore[arg-type]
    assert pickle.loads(pickle.dumps(made)) == made  # as parallel sweeps need it
    with pytest.raises(InputError) as caught:
        estimate_training("7B")
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)
