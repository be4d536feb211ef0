"""Habits change what is declared, never what people want; their rates nest."""

from dataclasses import fields, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuplan.fairshare import habits
from gpuplan.fairshare.jobs import Jobs
from gpuplan.fairshare.jobs import jobs as make_jobs
from gpuplan.fairshare.model import HOUR, Behaviour, BudgetNode, Generate, Pool
from gpuplan.fairshare.tree import tree_of
from gpuplan.fairshare.workloads import generate

TREE = tree_of((BudgetNode("x", 2), BudgetNode("y"), BudgetNode("z")))


def _generated(load: float = 1.1) -> Jobs:
    return generate(Generate(28, load, 0.3, 3), (Pool(16, 8),), TREE)


MANY = _generated()


def _hand_made() -> Jobs:
    """A debug job of 600 s on 4 GPUs; a training job; a debug job that runs 9 h (protected for its first 15 min)."""
    return make_jobs(
        ["look", "train", "stay"],
        [0, 10, 20],
        [4, 32, 1],
        [600, 7200, 9 * HOUR],
        limit_s=[900, 10_000, 10 * HOUR],
        minimum_s=[300, 3600, 900],
        priority=[1, 0, 1],
    )


def test_rates_of_zero_give_the_same_object() -> None:
    assert habits.apply(MANY, Behaviour(), 1) is MANY


def test_squatting_by_hand() -> None:
    """The no-op job of ``look`` holds 4 GPUs for 28800 s, 600 of which are work; ``stay`` needs its 9 h anyway."""
    found = habits.apply(_hand_made(), Behaviour(squatting=1.0), 1)
    assert found.run_s.tolist() == [28800, 7200, 32400]
    assert found.idle_s.tolist() == [28200, 0, 0]
    assert found.limit_s.tolist() == [28800, 10_000, 32400]
    assert found.minimum_s.tolist() == [28800, 3600, 32400]
    assert found.resumable.tolist() == [False, True, False]
    assert found.gpus.tolist() == [4, 32, 1]
    assert not found.debug.any()
    assert (found.run_s - found.idle_s).tolist() == [600, 7200, 32400]


def test_inflation_by_hand() -> None:
    assert habits.apply(_hand_made(), Behaviour(inflation=1.0), 1).priority.tolist() == [1, 1, 1]
    flat = replace(_hand_made(), priority=np.zeros(3, np.int64))
    assert habits.apply(flat, Behaviour(inflation=1.0), 1).priority.tolist() == [1, 1, 1]


def test_opting_out_by_hand() -> None:
    """32 GPUs are more than the 16 that a team may hold so; 32 are not more than 32."""
    for limit, out in ((16, [True, False, True]), (32, [True, True, True]), (3, [False, False, True])):
        found = habits.apply(_hand_made(), Behaviour(opt_out=1.0, opt_out_limit_gpus=limit), 1)
        assert found.opted_out.tolist() == out


@pytest.mark.parametrize("rate", [0.1, 0.5, 0.9])
def test_rates_are_met(rate: float) -> None:
    """To four standard errors."""

    def near(found: float, of: int) -> bool:
        return bool(abs(found - rate) < 4 * (rate * (1 - rate) / of) ** 0.5)

    debug = MANY.debug
    inflated = habits.apply(MANY, Behaviour(inflation=rate), 1)
    assert near((inflated.priority[~debug] == 1).mean(), int((~debug).sum()))
    squatted = habits.apply(MANY, Behaviour(squatting=rate), 1)
    assert near((squatted.idle_s > 0)[debug].mean(), int(debug.sum()))
    assert (squatted.idle_s[~debug] == 0).all()
    out = habits.apply(MANY, Behaviour(opt_out=rate, opt_out_limit_gpus=1000), 1)
    assert near(out.opted_out.mean(), len(MANY))


@given(st.floats(0, 1), st.floats(0, 1), st.integers(0, 2**40))
def test_rates_nest(one: float, other: float, seed: int) -> None:
    low, high = sorted((one, other))
    few = habits.apply(MANY, Behaviour(low, low, low), seed)
    many = habits.apply(MANY, Behaviour(high, high, high), seed)
    assert (few.priority <= many.priority).all()
    assert (few.idle_s <= many.idle_s).all()
    assert (few.opted_out <= many.opted_out).all()


def test_habits_are_independent_of_each_other_and_of_the_seed() -> None:
    """The share that has two habits of rate .5 each is a quarter, to four standard errors."""
    pairs = [
        ("inflation", 1, "squatting", 1),
        ("inflation", 1, "opting out", 1),
        ("inflation", 1, "inflation", 2),
    ]
    for one, seed, other, other_seed in pairs:
        both = habits.chosen(MANY, 0.5, seed, one) & habits.chosen(MANY, 0.5, other_seed, other)
        assert abs(both.mean() - 0.25) < 4 * (0.25 * 0.75 / len(MANY)) ** 0.5


def test_a_job_keeps_its_habits_when_the_load_grows() -> None:
    behaviour = Behaviour(0.3, 0.5, 0.2)
    less, more = habits.apply(MANY, behaviour, 1), habits.apply(_generated(1.4), behaviour, 1)
    later = {name: k for k, name in enumerate(more.name.tolist())}
    assert len(more) > len(less)
    for k, name in enumerate(less.name.tolist()):
        assert less.priority[k] == more.priority[later[name]]
        assert (less.idle_s[k] > 0) == (more.idle_s[later[name]] > 0)


def test_order_and_what_people_want_stay() -> None:
    found = habits.apply(MANY, Behaviour(0.5, 0.5, 0.5), 1)
    for column in ("name", "team", "submit_s", "gpus", "gpu", "one_node"):
        assert (getattr(found, column) == getattr(MANY, column)).all()
    assert (found.run_s - found.idle_s == MANY.run_s).all()
    assert all(not getattr(found, f.name).flags.writeable for f in fields(Jobs))


def test_no_jobs_no_habits() -> None:
    none = make_jobs([], [], [], [])
    assert habits.apply(none, Behaviour(1, 1, 1), 1) is none
