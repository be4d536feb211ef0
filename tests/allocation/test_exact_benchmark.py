"""The benchmark of proofs: a gap over time that never grows, and a proof that is not reached is not a time."""

from collections.abc import Iterator

import pytest

from gpuplan.allocation.plan import plan
from gpuplan.benchmarks import exact as bench
from gpuplan.benchmarks.published import PUBLISHED
from gpuplan.loading import load, shipped


@pytest.fixture(autouse=True)
def _nothing_kept() -> Iterator[None]:
    bench._proven.cache_clear()
    yield
    bench._proven.cache_clear()


def test_every_benchmark_scenario_has_a_measure_of_its_proof() -> None:
    names = [entry.name for entry in bench.entries()]
    for row in PUBLISHED:
        assert f"exact: {row.scenario}, proven optimal" in names
    known = {one.name for one in shipped()}
    assert set(bench.DAYS) | {bench.LARGE[1]} <= known


def test_a_proof_is_a_time_and_its_share_over_time_never_falls() -> None:
    found = bench._time_to_proof("mixed-day")
    assert found.figure is not None
    assert 0 < found.figure < bench.LIMIT_S
    assert found.note == f"objective {plan(load('mixed-day'), 'exact').bound:,.4f}"
    shares = [bench._share_at("mixed-day", moment).figure for moment in (bench.LIMIT_S, 1000.0)]
    assert shares == [1.0, 1.0]
    assert bench._share_at("mixed-day", 0.0).figure is None


def test_what_was_not_proven_in_time_says_what_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench, "LIMIT_S", 0.0)
    found = bench._time_to_proof("mixed-day")
    assert found.figure is None
    assert found.note.startswith("not within 0 s: a gap of ")
