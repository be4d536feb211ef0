"""Case `infer-kv-bytes`: bytes of the key/value cache, and how many requests fit."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from gpuplan.packing.architecture import Architecture, kv_bytes
from gpuplan.packing.estimates import MemoryEstimate, estimate_memory
from gpuplan.packing.model import GIB

CASE = "infer-kv-bytes"


@pytest.fixture(scope="module")
def given(case: Path) -> dict[str, Any]:
    found = YAML(typ="safe").load(case / "input.yaml")
    assert isinstance(found, dict)
    return found


def gib(text: str) -> float:
    assert text.endswith("GiB")
    return float(text.removesuffix("GiB"))


def model(given: dict[str, Any], **changes: Any) -> Architecture:
    names = ("layers", "hidden_size", "attention_heads", "kv_heads", "head_dim")
    return replace(Architecture("of the case", **{name: given["model"][name] for name in names}), **changes)


def estimate(
    given: dict[str, Any], of: Architecture, kv_bits: int, weights_gib: float = -1
) -> MemoryEstimate:
    return estimate_memory(
        of,
        gib(given["gpu"]["memory"]),
        utilization=given["gpu"]["usable_fraction"],
        weights_gib=gib(given["model"]["weights"]) if weights_gib < 0 else weights_gib,
        context_gib=0,
        workspace_gib=gib(given["model"]["overhead"]),
        kv_bits=kv_bits,
    )


def test_every_expected_value(given: dict[str, Any], expected: dict[str, Any]) -> None:
    found = estimate(given, model(given), given["kv_cache"]["bits"])
    length = given["request"]["tokens"]
    assert found.kv_bytes_per_token == expected["kv_bytes_per_token"]
    assert found.kv_bytes(length) == expected["kv_bytes_per_request"]
    assert found.room / GIB == pytest.approx(expected["kv_room_gib"], abs=1e-9)
    assert found.tokens == expected["tokens"]
    assert found.requests(length) == expected["requests"]


def test_the_precision_of_the_cache_is_not_that_of_the_weights(
    given: dict[str, Any], expected: dict[str, Any]
) -> None:
    found = estimate(given, model(given), 8)
    assert found.kv_bytes_per_token == expected["with_8_bit_cache"]["kv_bytes_per_token"]
    assert found.tokens == expected["with_8_bit_cache"]["tokens"]
    assert found.weights == estimate(given, model(given), 16).weights == 8 * GIB


def test_what_is_set_aside_is_not_used_up(given: dict[str, Any]) -> None:
    """Ten requests of 168 MiB: 1.64 GiB of the room."""
    found = estimate(given, model(given), 16)
    assert found.in_use([3072] * 10) == 10 * 168 * 1024**2
    assert found.in_use([3072] * 10) / GIB == pytest.approx(1.64, abs=0.005)


# ------------------------------------------------- the same fault in other clothes


@pytest.mark.parametrize(
    ("change", "per_token"),
    [
        ({"kv_heads": None}, 2 * 28 * 28 * 128 * 2),  # as many as heads of attention
        ({"kv_heads": 1}, 2 * 28 * 1 * 128 * 2),
        ({"head_dim": None}, 2 * 28 * 4 * (3584 // 28) * 2),
        ({"head_dim": 64}, 2 * 28 * 4 * 64 * 2),  # not 3584 / 28
    ],
)
def test_heads_missing_one_or_of_another_width(
    given: dict[str, Any], change: dict[str, int | None], per_token: int
) -> None:
    assert kv_bytes(model(given, **change)) == per_token


def test_requests_of_different_lengths(given: dict[str, Any]) -> None:
    """235,929 tokens fit: 200,000, then 30,000 (230,000), then 5,929 (all), then none."""
    found = estimate(given, model(given), 16)
    assert found.requests_of([200_000, 30_000, 5_929, 1]) == 3
    assert found.requests_of([200_000, 30_000, 5_930, 1]) == 2
    assert found.requests_of([]) == 0


def test_a_context_that_does_not_fit_at_all(given: dict[str, Any]) -> None:
    found = estimate(given, model(given), 16)
    assert found.requests(240_000) == 0
    assert (
        found.sentence(240_000)
        == "0 requests of 240,000 tokens fit: the longest that fits has 235,929 tokens."
    )
    assert found.requests(235_929) == 1


def test_weights_larger_than_the_gpu(given: dict[str, Any]) -> None:
    """21.6 GiB usable, 30 + 1 needed: no negative number of anything."""
    found = estimate(given, model(given), 16, weights_gib=30)
    assert not found.fits
    assert (found.tokens, found.requests(3072), found.longest_context, found.requests_of([1])) == (0, 0, 0, 0)
    assert found.sentence() == (
        "of the case does not fit: it needs 31 GiB before the first token, of 21.6 GiB usable on a GPU of 24 GiB."
    )
