"""Memory estimates: bytes of weights and cache by hand, what is refused, and what fits."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuplan.inputs.errors import InputError
from gpuplan.packing.architecture import Architecture, cache_mistake, kv_bytes, weight_bytes
from gpuplan.packing.estimates import (
    HIDDEN_BYTES,
    NCCL_BYTES,
    SAMPLER_BYTES,
    USABLE_BYTES,
    estimate_memory,
    workspace_bytes,
)
from gpuplan.packing.model import GIB
from gpuplan.packing.schema import from_mapping

#: Two layers, width 8, four heads of 2, two of keys; a vocabulary of 10.
TINY = Architecture("tiny", 2, 8, 4, 2, intermediate_size=16, vocabulary=10, max_context=100)

LLAMA_8B = Architecture(
    "llama", 32, 4096, 32, 8, intermediate_size=14336, vocabulary=128_256, max_context=131_072
)


def test_bytes_of_the_cache_by_hand() -> None:
    """2 layers x 2 (key, value) x 2 heads x 2 wide x 2 bytes = 32; 8 bits half; on two GPUs half, on four the same."""
    assert kv_bytes(TINY) == 32
    assert kv_bytes(TINY, 10) == 320
    assert kv_bytes(TINY, bits=8) == 16
    assert kv_bytes(TINY, bits=4) == 8
    assert kv_bytes(TINY, gpus=2) == 16
    assert kv_bytes(TINY, gpus=4) == 16  # a GPU has at least one head
    assert kv_bytes(TINY, 0) == 0


def test_a_compressed_cache() -> None:
    """61 layers x (512 + 64) x 2 bytes = 70,272: one vector for all heads, not key and value; whole on each GPU."""
    deepseek = Architecture("d", 61, 7168, 128, 128, kv_lora_rank=512, qk_rope_head_dim=64)
    assert kv_bytes(deepseek) == 70_272
    assert kv_bytes(deepseek, gpus=8) == 70_272
    with pytest.raises(InputError, match="qk_rope_head_dim"):
        kv_bytes(replace(deepseek, qk_rope_head_dim=None))
    with pytest.raises(InputError, match="compressed"):
        kv_bytes(replace(deepseek, kv_lora_rank=None, qk_rope_head_dim=None, family="DeepseekV3ForCausalLM"))


def test_windows_keep_no_more_than_their_tokens() -> None:
    """One of two layers keeps 5 tokens: of 3 tokens both keep 3, of 12 one keeps 12 and the other 5; 16 bytes each."""
    half = replace(TINY, window=5, window_layers=1)
    assert [kv_bytes(half, tokens) for tokens in (3, 5, 12)] == [96, 160, (12 + 5) * 16]
    all_of_them = replace(TINY, window=5, window_layers=2)
    assert kv_bytes(all_of_them, 100) == kv_bytes(all_of_them, 5) == 160
    gpt_oss = replace(TINY, window=5, family="GptOssForCausalLM", mixed=True)
    assert kv_bytes(gpt_oss, 12) == kv_bytes(half, 12)


@pytest.mark.parametrize(
    ("change", "path"),
    [
        ({"mixed": True}, "layer_types"),
        ({"window": 50}, "sliding_window"),
        ({"window_layers": 1}, "window"),
        ({"family": "NemotronHForCausalLM"}, "architecture"),
        ({"family": "DeepseekV32ForCausalLM", "kv_lora_rank": 4, "qk_rope_head_dim": 2}, "architecture"),
        ({"family": "GptOssForCausalLM"}, "architecture"),
    ],
)
def test_a_cache_that_sizes_do_not_tell_is_refused(change: dict[str, Any], path: str) -> None:
    found = cache_mistake(replace(TINY, **change))
    assert found is not None
    assert found.path == path
    with pytest.raises(InputError, match="tiny: 1 mistake"):
        kv_bytes(replace(TINY, **change))


def test_a_window_beyond_the_models_limit_changes_nothing() -> None:
    assert kv_bytes(replace(TINY, window=100), 100) == kv_bytes(TINY, 100)


@pytest.mark.parametrize(
    ("change", "path"),
    [
        ({"layers": 0}, "layers"),
        ({"layers": True}, "layers"),
        ({"layers": 2.5}, "layers"),
        ({"kv_heads": 3}, "kv_heads"),
        ({"attention_heads": 6, "kv_heads": 2}, "head_dim"),
        ({"window": 5, "window_layers": 3}, "window_layers"),
        ({"parameters": 0.0}, "parameters"),
    ],
)
def test_sizes_that_cannot_be(change: dict[str, Any], path: str) -> None:
    assert [mistake.path for mistake in replace(TINY, **change).mistakes()] == [path]


def test_bytes_of_weights_by_hand() -> None:
    """A layer: attention 8 x 2 x (4 + 2) x 2 = 192, forward 3 x 8 x 16 = 384, norms 16; twice 592 = 1,184.

    Last norm 8, embedding and output 2 x 80: 1,352 numbers of 2 bytes.
    With 8 bits in the layers: 2 x 576 bytes, and 2 x (32 + 8 + 160) = 400; attention apart in 16: 384 more.
    """
    assert weight_bytes(TINY) == 2704
    assert weight_bytes(replace(TINY, tied=True)) == 2704 - 160
    assert weight_bytes(TINY, 8) == 2 * 576 + 400
    assert weight_bytes(TINY, 8, 16) == 2 * 576 + 400 + 2 * 192
    assert weight_bytes(replace(TINY, parameters=1e9), 8) == 10**9


def test_experts() -> None:
    """Four experts of 16: 3 x 384 a layer more, and a router of 4 x 8."""
    mixtral = replace(TINY, experts=4, family="MixtralForCausalLM")
    assert weight_bytes(mixtral) == 2704 + 2 * 2 * (3 * 384 + 32)
    with pytest.raises(InputError, match="size of its experts"):
        weight_bytes(replace(mixtral, family=""))


def test_a_published_model() -> None:
    """Llama 3.1 8B has 8.03e9 parameters (its model card)."""
    assert weight_bytes(LLAMA_8B) / 2 == pytest.approx(8.03e9, rel=0.001)
    assert kv_bytes(LLAMA_8B) == 128 * 1024


def test_parts_add_up() -> None:
    found = estimate_memory(LLAMA_8B, "H100-80GB", utilization=0.9)
    assert found.usable == int(USABLE_BYTES["H100-80GB"] * 9 // 10)
    assert found.weights + found.context + found.workspace + found.room == found.usable
    assert (found.context, found.workspace) == (
        GIB // 2,
        round(SAMPLER_BYTES * 256 * 128_256 + HIDDEN_BYTES * 4096),
    )
    table = found.to_frame().set_index("part")
    assert table["bytes"][["weights", "context", "workspace", "room"]].sum() == table.loc["usable", "bytes"]
    assert workspace_bytes(LLAMA_8B, 256) == found.workspace


def test_two_gpus_halve_weights_and_heads() -> None:
    one, two = (estimate_memory(LLAMA_8B, "A100-80GB", gpus=gpus) for gpus in (1, 2))
    assert two.weights == -(-one.weights // 2)
    assert two.kv_bytes_per_token * 2 == one.kv_bytes_per_token
    assert two.context - one.context == NCCL_BYTES[1][1]
    assert estimate_memory(LLAMA_8B, 24, gpus=8).context - one.context == NCCL_BYTES[0][1]


def test_sentences() -> None:
    found = estimate_memory(LLAMA_8B, 24, workspace_gib=1, weights_gib=16, context_gib=0.5)
    assert found.sentence() == "53,248 tokens fit into 6.5 GiB, of 24 GiB usable on a GPU of 24 GiB."
    assert found.sentence(1000) == (
        "53 requests of 1,000 tokens (125 MiB each) fit into 6.5 GiB, of 24 GiB usable on a GPU of 24 GiB."
    )
    large = estimate_memory(LLAMA_8B, "T4")
    assert large.sentence().startswith("llama does not fit: it needs ")
    assert large.sentence().endswith("of 14.57 GiB usable on T4.")


def test_a_model_has_a_limit_of_its_own() -> None:
    found = estimate_memory(replace(LLAMA_8B, max_context=8192), "H100-80GB")
    assert found.longest_context == 8192
    assert found.requests(8193) == 0
    assert "the longest that fits has 8,192 tokens" in found.sentence(8193)


def test_every_mistake_is_named() -> None:
    odd = replace(TINY, vocabulary=None, mixed=True)
    with pytest.raises(InputError, match="memory of tiny: 7 mistakes") as caught:
        estimate_memory(odd, "H10-80GB", gpus=0, utilization=1.5, context_gib=-1)
    text = str(caught.value)
    assert "did you mean H100-80GB?" in text
    assert [mistake.path for mistake in caught.value.mistakes] == [
        *("gpu", "gpus", "utilization", "context_gib", "vocabulary", "vocabulary", "layer_types"),
    ]


@pytest.mark.parametrize("call", ["requests", "requests_of", "in_use"])
def test_lengths_below_one(call: str) -> None:
    found = estimate_memory(LLAMA_8B, 24)
    with pytest.raises(InputError, match="must be at least 1"):
        getattr(found, call)(0 if call == "requests" else [0])


SHAPES = st.builds(
    Architecture,
    st.just("drawn"),
    st.integers(1, 40),
    st.just(1024),
    st.just(8),
    st.sampled_from([None, 1, 2, 4, 8]),
    st.sampled_from([None, 64, 192]),
    window=st.integers(1, 5000),
    window_layers=st.just(1),
)


@given(SHAPES, st.integers(0, 200), st.sampled_from([4, 8, 16, 32]), st.integers(1, 20_000))
def test_what_fits_fits_and_one_more_does_not(shape: Architecture, gib: int, bits: int, tokens: int) -> None:
    found = estimate_memory(shape, 80, weights_gib=gib, workspace_gib=1, kv_bits=bits)
    count = found.requests(tokens)
    assert count >= 0
    assert found.fits == (gib + 1.5 <= 80)
    if count:
        assert count * found.kv_bytes(tokens) <= found.room < (count + 1) * found.kv_bytes(tokens)
        assert count > 100 or found.requests_of([tokens] * (count + 3)) == count
    else:
        assert found.room < found.kv_bytes(tokens)
    longest = found.longest_context
    if longest:
        assert found.kv_bytes(longest) <= found.room
        assert shape.layers == 1 or found.room < found.kv_bytes(longest + 1)


@pytest.mark.parametrize("gpus", [1, 2, 3, 16])
def test_an_estimate_as_a_model_of_a_scenario_holds_the_same_on_each_gpu(gpus: int) -> None:
    """On 16 GPUs eight heads of keys are kept twice, and on three one GPU has a head more: the cache counts that."""
    found = estimate_memory(LLAMA_8B, "A100-80GB", gpus=gpus)
    scenario = from_mapping(
        {
            "kind": "packing",
            "name": "estimated",
            "gpus": {"count": 16, "memory_gib": 79.33},
            "admission": {"margin": 0},
            "models": [found.as_model()],
            "tasks": {"rows": []},
        }
    )
    (model,) = scenario.models
    assert (model.name, model.gpus) == ("llama", gpus)
    assert scenario.taken(model) == found.weights + found.context + found.workspace
    assert scenario.needed(model) == found.weights + found.context
    assert scenario.part(model.kv_bytes_per_token, model) == found.kv_bytes_per_token
