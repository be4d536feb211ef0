"""Operations and utilization: against the formulas of the papers and by hand."""

from statistics import median

import pytest

from gpuplan.forecast.amounts import ModelShape, model_shape
from gpuplan.forecast.gpus import GPUS, find_gpu
from gpuplan.forecast.published_runs import RUNS
from gpuplan.forecast.training import TrainingEstimate, estimate_training
from gpuplan.forecast.training_utilization import GENERATION, MEASURED, training_utilization
from gpuplan.forecast.training_work import forward_flops, update_passes

# 100M parameters, one layer of width 128, so that the attention term is small and known
SMALL = {"layers": 1, "hidden_size": 128, "sequence_length": 100, "gpus": 1, "gpu": "H100"}
PASS = 2 * 100e6 + 4 * 1 * 128 * 100  # 200,051,200 operations a token


def estimate(technique: str, strategy: str = "full", **more: object) -> TrainingEstimate:
    return estimate_training(
        "100M", samples=10, mean_tokens=100, technique=technique, strategy=strategy, **{**SMALL, **more}
    )


def test_gpt_3_takes_the_operations_that_were_published() -> None:
    """3.14e23 FLOP for 300B tokens (Brown and others, 2020, arXiv 2005.14165, table D.1), without attention."""
    shape = model_shape(174.6e9, 50_257, layers=96, hidden_size=12_288)
    assert 3 * 300e9 * forward_flops(shape, 0) == pytest.approx(3.14e23, rel=0.002)
    assert 3 * 300e9 * forward_flops(shape, 2048) / 3.14e23 == pytest.approx(1.029, abs=0.002)


@pytest.mark.parametrize("s", [512, 2048, 32_768])
def test_full_recomputation_is_the_formula_of_narayanan(s: int) -> None:
    """F = 96 B s l h^2 (1 + s/6h) for the layers; here a token, B s = 1."""
    layers, h = 24, 2304
    shape = ModelShape(12 * layers * h**2, 12 * layers * h**2, layers, h, 51_200)
    passes = update_passes("full", "full")
    assert passes * forward_flops(shape, s) == pytest.approx(96 * layers * h**2 * (1 + s / (6 * h)))


@pytest.mark.parametrize(
    ("technique", "strategy", "sequences", "passes"),
    [
        ("sft", "full", 10, 3),
        ("cpt", "full", 10, 3),
        ("sft", "lora", 10, 2),
        ("sft", "qlora", 10, 2),
        ("dpo", "full", 20, 3 + 1),
        ("dpo", "lora", 20, 2 + 1),
        ("rlvr", "full", 10 * 64, 3 + 2 + 0.5),
        # reward and value model are as large as the policy: their forward pass and an update of the value model
        ("rlhf", "full", 10, 3 + 2 + 0.5 + 2 + 3),
        ("rlhf", "lora", 10, 2 + 2 + 0.5 + 2 + 2),
    ],
)
def test_passes_of_each_technique(technique: str, strategy: str, sequences: int, passes: float) -> None:
    more = {"auxiliary_parameters": "100M"} if technique == "rlhf" else {}
    made = estimate(technique, strategy, **more)
    assert made.task.tokens == sequences * 100
    helper = forward_flops(made.task.auxiliary, 100) - PASS  # derived, so not of one layer
    extra = helper * (5 if strategy == "full" else 4) if technique == "rlhf" else 0
    assert made.work.training == pytest.approx(sequences * 100 * (passes * PASS + extra))
    written = 0.5 if technique in ("rlhf", "rlvr") else 0
    assert made.work.generation == pytest.approx(sequences * 100 * written * PASS)


def test_epochs_groups_and_the_written_share_multiply() -> None:
    one = estimate("rlvr", group_size=4, generated_share=0.25)
    two = estimate("rlvr", group_size=8, generated_share=0.25, epochs=2)
    assert two.work.training == 4 * one.work.training
    assert one.work.generation == pytest.approx(10 * 4 * 100 * 0.25 * PASS)


def test_full_recomputation_adds_a_pass() -> None:
    kept = estimate("sft", activation_checkpointing="selective")
    again = estimate("sft", activation_checkpointing="full")
    assert again.work.training / kept.work.training == pytest.approx(4 / 3)
    assert again.gpu_hours.best / kept.gpu_hours.best == pytest.approx(4 / 3)
    assert any("adds a forward pass" in sentence for sentence in again.assumptions)


def test_experts_that_do_not_work_on_a_token_cost_no_operations() -> None:
    whole = estimate_training("8B", tokens="1B", gpu="H100")
    sparse = estimate_training("8B", active_parameters="1B", tokens="1B", gpu="H100")
    assert sparse.work.training / whole.work.training == pytest.approx(1 / 8, rel=0.1)
    assert sparse.memory.optimizer_gib * sparse.layout.data == pytest.approx(8e9 * 12 / 2**30)


def test_gpu_hours_are_operations_over_what_a_gpu_reaches() -> None:
    """By hand: 1,000 tokens x 3 x 200,051,200 on 989.4 TFLOP/s at 40 %, 90 % of the time."""
    made = estimate("sft", mfu=0.4)
    seconds = 1000 * 3 * 200_051_200 / (989.4e12 * 0.4)
    assert made.gpu_hours.best == pytest.approx(seconds / 3600 / 0.9)
    assert made.gpu_hours.low == pytest.approx(seconds / 3600)
    assert made.gpu_hours.high == made.gpu_hours.best  # a given utilization has no range


def test_a_given_utilization_does_not_count_recomputation() -> None:
    kept = estimate("sft", mfu=0.4)
    again = estimate("sft", mfu=0.4, activation_checkpointing="full")
    assert again.gpu_hours == kept.gpu_hours


def test_generation_runs_at_its_own_utilization() -> None:
    quick = estimate("rlvr", mfu=0.4, generation_mfu=0.4)
    slow = estimate("rlvr", mfu=0.4, generation_mfu=0.1)
    written = 64_000 * 0.5 * PASS / 989.4e12 / 3600 / 0.9
    assert slow.gpu_hours.best - quick.gpu_hours.best == pytest.approx(written / 0.1 - written / 0.4)


@pytest.mark.parametrize("gpu", GPUS, ids=lambda gpu: gpu.name)
def test_every_gpu_has_an_ordered_range_with_a_source(gpu: object) -> None:
    for precision in gpu.flops:  # type: ignore[attr-defined]
        found = training_utilization(gpu, precision)  # type: ignore[arg-type]
        assert 0 < found.low <= found.best <= found.high < 1
        assert found.source


def test_the_best_is_the_median_and_the_range_all_that_was_measured() -> None:
    rates = [m.rate for m in MEASURED if (m.family, m.precision) == ("A100", "bf16")]
    found = training_utilization(find_gpu("A100"), "bf16")
    assert len(rates) >= 8
    assert (found.low, found.best, found.high) == (min(rates), median(rates), max(rates))
    # 530B with 30.2 % of model operations, and a third more because all was computed again
    assert next(m for m in MEASURED if m.what == "MT-NLG 530B").rate == pytest.approx(0.302 * 4 / 3)


def test_a_gpu_that_nobody_measured_says_so() -> None:
    assert "not measured for L4 in bf16" in training_utilization(find_gpu("L4"), "bf16").source
    assert "not measured for A100-80GB in fp32" in training_utilization(find_gpu("A100"), "fp32").source
    assert training_utilization(find_gpu("H200"), "bf16").source.startswith("measured on H100")
    for gpu in ("H100", "A100-40GB", "V100"):
        found = find_gpu(gpu)
        assert "not measured" not in training_utilization(found, found.default_precision).source


def test_no_measured_utilization_comes_from_a_run_that_is_compared_with() -> None:
    """Papers are told by their arXiv numbers; neither the training nor the writing rates share one with a run."""
    rates = {word for m in MEASURED for word in m.source.replace(",", " ").split()}
    rates |= set(GENERATION.source.replace(",", " ").split())
    papers = {word for word in rates if word[:4].isdigit() and "." in word}
    assert len(papers) >= 5
    for run in RUNS:
        assert not papers & set(run.source.replace(",", " ").replace(";", " ").split())
