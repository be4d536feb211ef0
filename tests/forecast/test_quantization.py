"""Quantization: the tiers, whole hours, memory, and what is refused."""

import math

import pytest

from gpuplan.forecast.gpus import GIB, find_gpu
from gpuplan.forecast.quantization import DEFAULT_MARGIN, estimate_quantization
from gpuplan.forecast.quantization_tiers import CALIBRATION, METHODS, TIERS, tiers
from gpuplan.forecast.training_utilization import training_utilization
from gpuplan.inputs.errors import InputError
from gpuplan.loading import load


def test_tiers_grow_and_have_their_sources() -> None:
    shown = tiers()
    assert len(shown) == len(TIERS)
    assert shown["source"].str.len().gt(10).all()
    for method, own in shown.groupby("method"):
        assert method in METHODS
        assert own["up_to_parameters"].is_monotonic_increasing
        assert own["up_to_parameters"].is_unique
        assert own["a100_hours"].is_monotonic_increasing


@pytest.mark.parametrize(
    ("parameters", "method", "tier", "hours"),
    [
        ("7B", "bitsandbytes", 1 / 60, 1),
        ("7B", "awq", 0.5, 1),
        ("8B", "awq", 0.5, 1),
        ("8.1B", "awq", 1.0, 2),
        ("70B", "awq", 1.0, 2),
        ("140B", "awq", 2.0, 3),  # beyond the last tier, in proportion
        ("1B", "gptq", 5.2 / 60, 1),
        ("30B", "gptq", 44.9 / 60, 1),
        ("66B", "gptq", 1.6, 2),
        ("67B", "gptq", 4.2, 6),  # 4.2 x 1.25 is 5.25
        ("352B", "gptq", 8.4, 11),  # 8.4 x 1.25 is 10.5
    ],
)
def test_the_hours_are_those_of_the_tier_with_a_margin_rounded_up(
    parameters: str, method: str, tier: float, hours: int
) -> None:
    made = estimate_quantization(parameters, method)
    assert made.tier_hours == pytest.approx(tier)
    assert made.exact_hours == pytest.approx(tier)
    assert made.hours == hours
    assert made.gpu_hours == made.gpus * hours


def test_opt_175b_takes_about_the_four_gpu_hours_of_the_paper() -> None:
    made = estimate_quantization("175B", "gptq", margin=1)
    assert made.gpus == 1
    assert made.exact_hours == pytest.approx(4, rel=0.06)
    assert made.gpu_hours == 5


def test_the_margin_is_a_factor_before_rounding() -> None:
    assert DEFAULT_MARGIN == 1.25
    assert estimate_quantization("66B", "gptq", margin=1.25).hours == 2  # exactly 2.0
    assert estimate_quantization("66B", "gptq", margin=1.26).hours == 3
    assert estimate_quantization("66B", "gptq", margin=1).hours == 2


def test_a_slower_gpu_takes_longer_and_a_faster_one_gets_no_credit() -> None:
    slow = estimate_quantization("7B", "gptq", gpu="L4")
    assert slow.exact_hours == pytest.approx(0.5 * 312 / 121)
    assert estimate_quantization("7B", "gptq", gpu="H100").exact_hours == 0.5


def test_calibration_beyond_the_usual_adds_forward_passes() -> None:
    usual = CALIBRATION["gptq"]
    made = estimate_quantization("7B", "gptq", samples=2 * usual.samples)
    tokens = usual.samples * usual.sequence_length
    reached = 312e12 * training_utilization(find_gpu("A100"), "bf16").best
    assert made.exact_hours == pytest.approx(0.5 + usual.passes * 2 * 7e9 * tokens / reached / 3600)
    assert estimate_quantization("7B", "gptq", samples=8).exact_hours == 0.5  # no credit for less
    assert made.memory_gib > estimate_quantization("7B", "gptq").memory_gib


def test_memory_by_hand() -> None:
    """GPTQ of 7B: 33 layers of width 4,224; two layers, 262,144 tokens in and out, Hessian and inverse, 2 GiB."""
    layers = 2 * 2 * 7e9 / 33
    activations = 2 * 2 * 128 * 2048 * 4224
    hessian = 2 * 4 * (4 * 4224) ** 2
    own = (layers + activations + hessian) / GIB + 2
    away = estimate_quantization("7B", "gptq")
    here = estimate_quantization("7B", "gptq", offload=False)
    assert (away.gpus, here.gpus) == (1, 1)
    assert away.memory_gib == pytest.approx(own)
    assert here.memory_gib == pytest.approx(own + 14e9 / GIB)


def test_bitsandbytes_holds_the_quantized_weights() -> None:
    four = estimate_quantization("70B", "bitsandbytes")
    eight = estimate_quantization("70B", "bitsandbytes", bits=8)
    assert (four.gpus, eight.gpus) == (1, 1)
    assert eight.memory_gib - four.memory_gib == pytest.approx(35e9 / GIB)
    assert any("need no job of their own" in sentence for sentence in four.assumptions)


@pytest.mark.parametrize("parameters", ["1B", "13B", "70B", "405B"])
@pytest.mark.parametrize("method", METHODS)
def test_the_block_is_the_smallest_power_of_two(parameters: str, method: str) -> None:
    more = {} if method == "bitsandbytes" else {"offload": False}
    made = estimate_quantization(parameters, method, **more)  # type: ignore[arg-type]
    assert math.log2(made.gpus).is_integer()
    assert made.memory_gib <= made.gpu.usable_gib
    if made.gpus > 1:
        with pytest.raises(InputError, match="does not fit: needs"):
            estimate_quantization(parameters, method, max_gpus=made.gpus - 1, **more)  # type: ignore[arg-type]


def test_every_mistake_is_named_at_once() -> None:
    with pytest.raises(InputError) as caught:
        estimate_quantization("-7B", "gpqt", samples=0, bits=3, gpu="H1000", margin=0.5, offload="no")  # type: ignore[arg-type]
    found = {mistake.path: mistake.rule for mistake in caught.value.mistakes}
    assert set(found) == {"parameters", "method", "samples", "bits", "gpu", "margin", "offload"}
    assert found["method"] == "must be one of bitsandbytes, awq, gptq; did you mean gptq?"
    assert found["margin"] == "must be at least 1"


def test_bitsandbytes_takes_no_calibration_and_no_offload() -> None:
    with pytest.raises(InputError) as caught:
        estimate_quantization("7B", "bitsandbytes", samples=8, sequence_length=8, offload=True)
    assert [mistake.path for mistake in caught.value.mistakes] == ["samples", "sequence_length", "offload"]


def test_a_model_that_fits_no_block_says_how_much_it_needs() -> None:
    with pytest.raises(InputError) as caught:
        estimate_quantization("405B", "awq", gpu="H100", offload=False, max_gpus=8)
    (mistake,) = caught.value.mistakes
    assert mistake.rule.startswith("does not fit: needs ")
    assert mistake.rule.endswith("GiB per GPU on 8 GPUs, H100 has 80 (75 usable)")


def test_a_layer_that_is_too_large_for_a_gpu_is_not_helped_by_more_of_them() -> None:
    with pytest.raises(InputError) as caught:
        estimate_quantization("70B", "gptq", gpu="T4")
    (mistake,) = caught.value.mistakes
    assert mistake.path == "gpu"
    assert mistake.rule.endswith("GiB on each GPU, T4 has 16 (15 usable); more GPUs do not help")


def test_a_job_goes_into_a_scenario_file_as_it_is() -> None:
    row = estimate_quantization("70B", "awq").to_job("awq-70b", 3)
    assert row == {"name": "awq-70b", "kind": "quantization", "gpus": 1, "hours": 2.0, "priority": 3.0}
    scenario = load(
        {
            "kind": "allocation",
            "name": "one-job",
            "cluster": {"gpus": 8},
            "horizon": {"steps": 24, "step_hours": 1, "start": "2026-03-02T00:00"},
            "batch": [row],
        }
    )
    assert (scenario.batch[0].kind, scenario.batch[0].hours) == ("quantization", 2)


def test_figures_table_and_text_agree() -> None:
    made = estimate_quantization("7B", "gptq", gpu="T4", samples=16)
    frame = made.to_frame()
    assert dict(zip(frame["figure"], frame["value"], strict=True)) == made.figures
    text = repr(made)
    for sentence in made.assumptions:
        assert sentence.endswith(".")
        assert f"- {sentence}" in text
    assert "slower than an A100" in text
    assert "16 x 2,048 tokens" in text
