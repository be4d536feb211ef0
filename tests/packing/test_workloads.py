"""The generator: statistics are those asked for, and what is dragged does not redraw the rest."""

from dataclasses import fields, replace
from math import sqrt
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuplan.packing.model import GIB, NEVER, SECOND, Draw, Generate, ServedModel
from gpuplan.packing.tasks import Tasks, tasks
from gpuplan.packing.workloads import generate, size_mix, zipf

MODELS = (
    ServedModel("a", GIB, GIB, popularity=3.0),
    ServedModel("b", GIB, GIB, popularity=0.0),
    ServedModel("c", GIB, GIB, popularity=1.0),
)

COUNT = 200_000

SPEC = Generate(
    2.0, COUNT, Draw(8.0, 1.5), 2.0, 0.3, Draw(1000.0, 1.0), Draw(200.0, 0.5), 0.2, 4, 30 * SECOND, seed=7
)  # fmt: skip

#: Standard errors that a mean may be off. The kurtosis of a Gamma distribution is 3 + 6 cv^2.
SIGMAS = 4


def close_mean(values: Any, mean: float, cv: float) -> None:
    assert np.mean(values) == pytest.approx(mean, abs=SIGMAS * cv * mean / sqrt(len(values)))


def close_cv(values: Any, cv: float) -> None:
    """The standard error of a sample CV of a Gamma distribution is cv x sqrt((1 + 2 cv^2 ...) / 2 n), below this."""
    error = cv * sqrt((1 + 3 * cv**2) / len(values))
    assert np.std(values) / np.mean(values) == pytest.approx(cv, abs=SIGMAS * error)


def test_statistics_are_what_was_asked_for() -> None:
    made = generate(SPEC, MODELS)
    assert len(made) == COUNT
    gaps = np.diff(np.append(0, made.arrival_us)) / SECOND
    for values, mean, cv in (
        (gaps, 0.5, 2.0),
        (made.service_us / SECOND, 8.0, 1.5),
        (made.tokens_in, 1000.0, 1.0),
        (made.tokens_out, 200.0, 0.5),
    ):
        close_mean(values, mean, cv)
        close_cv(values, cv)
    share = np.bincount(made.model, minlength=3) / COUNT
    assert share[1] == 0
    assert share[0] == pytest.approx(0.75, abs=SIGMAS * sqrt(0.75 * 0.25 / COUNT))
    assert made.priority.mean() == pytest.approx(0.2, abs=SIGMAS * 0.4 / sqrt(COUNT))
    assert set(made.priority.tolist()) == {0, 1}
    assert (made.deadline_us - made.arrival_us == 30 * SECOND).all()


def test_tenants_follow_zipfs_law() -> None:
    """Of four tenants the first has 12 / 25 of the tasks, then 6, 4 and 3."""
    names, counts = np.unique(generate(SPEC, MODELS).tenant.astype(str), return_counts=True)
    assert names.tolist() == ["tenant-1", "tenant-2", "tenant-3", "tenant-4"]
    assert counts / COUNT == pytest.approx([12 / 25, 6 / 25, 4 / 25, 3 / 25], abs=SIGMAS * 0.5 / sqrt(COUNT))
    assert zipf(4) == pytest.approx([12 / 25, 6 / 25, 4 / 25, 3 / 25])
    assert zipf(3, 0) == pytest.approx([1 / 3] * 3)


def test_predictions_are_off_by_a_log_normal_factor_of_mean_1() -> None:
    made = generate(replace(SPEC, service=Draw(1000.0, 0.0)), MODELS)
    factor = made.predicted_us / made.service_us
    close_mean(factor, 1.0, 0.3)
    assert factor.std() == pytest.approx(0.3, rel=0.02)
    assert np.log(factor).mean() == pytest.approx(
        -np.log(1.09) / 2, abs=0.003
    )  # -sigma^2 / 2, sigma^2 = log(1 + cv^2)
    exact = generate(replace(SPEC, prediction_cv=0.0), MODELS)
    assert exact.predicted_us.tolist() == exact.service_us.tolist()


def test_a_poisson_process_and_a_fixed_beat() -> None:
    gaps = np.diff(generate(replace(SPEC, arrival_cv=1.0), MODELS).arrival_us) / SECOND
    # P(gap > t) = exp(-2 t)
    for t in (0.1, 0.5, 1.5):
        p = np.exp(-2 * t)
        assert (gaps > t).mean() == pytest.approx(p, abs=SIGMAS * sqrt(p / COUNT))
    beat = generate(replace(SPEC, arrival_cv=0.0, count=5), MODELS)
    assert beat.arrival_us.tolist() == [500_000, 1_000_000, 1_500_000, 2_000_000, 2_500_000]


def drawn(made: Tasks) -> dict[str, Any]:
    return {field.name: getattr(made, field.name) for field in fields(Tasks)}


@pytest.mark.parametrize(
    ("change", "columns"),
    [
        ({"rate_per_s": 3.0}, {"arrival_us", "deadline_us"}),
        ({"arrival_cv": 1.0}, {"arrival_us", "deadline_us"}),
        ({"service": Draw(9.0, 1.5)}, {"service_us", "predicted_us"}),
        ({"service": Draw(8.0, 0.2)}, {"service_us", "predicted_us"}),
        ({"prediction_cv": 0.1}, {"predicted_us"}),
        ({"tokens_in": Draw(10.0, 1.0)}, {"tokens_in"}),
        ({"tokens_out": Draw(200.0, 0.0)}, {"tokens_out"}),
        ({"high_priority_share": 0.3}, {"priority"}),
        ({"tenants": 9}, {"tenant"}),
        ({"timeout_us": None}, {"deadline_us"}),
        ({"seed": 8}, {f.name for f in fields(Tasks)}),
    ],
)
def test_changing_one_number_does_not_redraw_the_others(change: dict[str, Any], columns: set[str]) -> None:
    spec = replace(SPEC, count=2_000)
    before, after = drawn(generate(spec, MODELS)), drawn(generate(replace(spec, **change), MODELS))
    assert {name for name in before if not np.array_equal(before[name], after[name])} == columns


def test_what_is_dragged_stretches_or_moves_a_border() -> None:
    spec = replace(SPEC, count=5_000)
    made = generate(spec, MODELS)
    faster = generate(replace(spec, rate_per_s=4.0), MODELS)
    assert np.abs(made.arrival_us - 2 * faster.arrival_us).max() <= 10  # rounded, and moved apart
    longer = generate(replace(spec, service=Draw(16.0, 1.5)), MODELS)
    assert np.abs(longer.service_us - 2 * made.service_us).max() <= 1
    more = generate(replace(spec, high_priority_share=0.4), MODELS)
    assert (more.priority >= made.priority).all()
    other = (MODELS[0], MODELS[1], replace(MODELS[2], popularity=2.0))
    moved = generate(spec, other)
    assert set(zip(made.model.tolist(), moved.model.tolist(), strict=True)) == {(0, 0), (0, 2), (2, 2)}


@given(st.integers(0, 3_000), st.integers(0, 2**53))
def test_more_tasks_append_to_those_there_are(count: int, seed: int) -> None:
    short = generate(replace(SPEC, count=count, seed=seed), MODELS)
    long = generate(replace(SPEC, count=3_000, seed=seed), MODELS)
    for name, column in drawn(short).items():
        assert column.tolist() == drawn(long)[name][:count].tolist(), name


def test_tasks_are_in_the_one_order_and_read_only() -> None:
    """At 100,000 a second some would arrive in the same microsecond: the second of them comes one later."""
    made = generate(replace(SPEC, rate_per_s=1e5, timeout_us=None), MODELS)
    assert np.diff(made.arrival_us).min() == 1
    shuffled = np.random.default_rng(1).permutation(COUNT)
    columns = [column[shuffled] for column in drawn(made).values()]
    assert tasks(*columns) == made
    with pytest.raises(ValueError, match="read-only"):
        made.priority[0] = 9


@given(
    st.floats(1e-3, 1e6), st.integers(0, 50), st.floats(0, 20), st.floats(0, 20), st.floats(0, 1e6), st.floats(0, 20)
)  # fmt: skip
def test_any_numbers_that_a_file_may_hold_make_tasks(
    rate: float, count: int, arrival_cv: float, prediction_cv: float, mean: float, cv: float
) -> None:
    tokens = Draw(min(mean, 2.0**20), cv)
    made = generate(Generate(rate, count, Draw(mean, cv), arrival_cv, prediction_cv, tokens, tokens), MODELS)
    assert len(made) == count
    for column, most in ((made.service_us, 2**40), (made.predicted_us, 2**40), (made.tokens_in, 2**20)):
        assert ((column >= 0) & (column <= most)).all()
    assert (np.diff(made.arrival_us) >= 0).all()
    assert (made.deadline_us == NEVER).all()


def test_sizes_are_dealt_evenly() -> None:
    made = size_mix([GIB, 40 * GIB], [3, 1], 8, overshoot=0.125, kv_bytes_per_token=5)
    assert [model.declared_bytes // GIB for model in made] == [1, 1, 40, 1, 1, 1, 40, 1]
    assert {model.actual_bytes / model.declared_bytes for model in made} == {1.125}
    assert sum(model.popularity for model in made) == pytest.approx(1)
    assert made[0].popularity == pytest.approx(2 * made[1].popularity)
    assert len({model.name for model in made}) == 8
