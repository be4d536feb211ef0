"""Hypothesis strategies for tiny clusters with crowded queues: ties, zero lengths, drains and all."""

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
from hypothesis import strategies as st

from gpuplan.fairshare.jobs import Jobs, jobs
from gpuplan.fairshare.model import (
    NEVER,
    Behaviour,
    BudgetChange,
    BudgetNode,
    Contract,
    Drain,
    FairshareScenario,
    Pool,
)

#: Few different instants, so that submissions, ends and minimum run times coincide.
TIMES = st.one_of(st.sampled_from([0, 0, 1, 2, 3, 5, 10, 20]), st.integers(0, 30))
LENGTHS = st.one_of(st.sampled_from([0, 1, 2, 5, 10, 20]), st.integers(0, 25))
WEIGHTS = st.sampled_from([0.0, 1.0, 1.0, 1.0, 2.0, 3.0, 0.5])

# Strategies are made once: to make and check one takes longer than to draw from it.
_LASTING = LENGTHS.filter(bool)
_SLACK = st.sampled_from([0, 0, 1, 3, 10, NEVER])
_SOME_SLACK = st.sampled_from([0, 0, 1, 3, 10])
_MINIMUMS = st.sampled_from([0, 0, 1, 2, 4, 8, 30])
_MOSTLY = st.sampled_from([True, True, False])
_SELDOM = st.sampled_from([False, False, True])
_HARDLY_EVER = st.sampled_from([False, False, False, True])
_PRIORITIES = st.integers(0, 2)
_WINDOWS = st.sampled_from([10, 16, 40, 100, 1000])
_ENDS = st.one_of(st.none(), st.integers(1, 60))
_TIMES_AS_LONG = st.sampled_from([1, 1, 50])
_CHANGES_AT = st.lists(TIMES, unique=True, max_size=3)


@cache
def _columns(values: st.SearchStrategy[Any], count: int) -> st.SearchStrategy[list[Any]]:
    return st.lists(values, min_size=count, max_size=count)


@cache
def _any_of(values: tuple[str, ...]) -> st.SearchStrategy[str]:
    return st.sampled_from(values)


@cache
def _sizes(gpus: int) -> st.SearchStrategy[int]:
    return st.one_of(st.integers(1, 2), st.integers(1, gpus + 1))


@cache
def _drained(nodes: int) -> st.SearchStrategy[list[int]]:
    return st.lists(st.integers(0, nodes - 1), unique=True, max_size=2)


@cache
def _named(paths: tuple[str, ...]) -> st.SearchStrategy[list[str]]:
    return st.lists(st.sampled_from(paths), unique=True, min_size=1)


FLAT = st.builds(lambda gpus: (Pool(1, gpus),), st.integers(1, 8))
NODES = st.builds(lambda nodes, gpus: (Pool(nodes, gpus),), st.integers(1, 4), st.integers(1, 4))
TWO_POOLS = st.builds(
    lambda a, m, b, n, same: (Pool(a, m, "A100"), Pool(b, n, "A100" if same else "T4")),
    st.integers(1, 2),
    st.integers(1, 4),
    st.integers(1, 2),
    st.integers(1, 4),
    st.booleans(),
)
POOLS = st.one_of(FLAT, NODES, NODES, TWO_POOLS)


def _siblings(
    names: list[str], below: st.SearchStrategy[tuple[BudgetNode, ...]]
) -> st.SearchStrategy[tuple[BudgetNode, ...]]:
    """One to three siblings, in any order of their names; at least one of them weighs something."""
    node = st.tuples(WEIGHTS, below)
    return (
        st.lists(node, min_size=1, max_size=len(names))
        .filter(lambda rows: any(weight > 0 for weight, _ in rows))
        .flatmap(
            lambda rows: st.permutations(
                [BudgetNode(name, weight, kids) for name, (weight, kids) in zip(names, rows, strict=False)]
            )
        )
        .map(tuple)
    )


_LEAF = st.just(())
_DEEP = _siblings(["p", "q"], _LEAF)
_MIDDLE = _siblings(["9", "10"], st.one_of(_LEAF, _LEAF, _DEEP))
_WIDE = _siblings(["a", "b", "c", "d", "e"], _LEAF)


def teams_of(budget: tuple[BudgetNode, ...], above: str = "") -> list[str]:
    """Paths of the leaves."""
    return [
        path
        for node in budget
        for path in (teams_of(node.children, f"{above}{node.name}/") or [above + node.name])
    ]


TREES = st.one_of(_WIDE, _siblings(["x2", "x10", "x1"], st.one_of(_LEAF, _MIDDLE))).filter(
    lambda budget: len(teams_of(budget)) <= 5
)


@st.composite
def job_tables(
    draw: st.DrawFn, pools: tuple[Pool, ...], teams: list[str], most: int = 14, *, planned: bool = False
) -> Jobs:
    """Up to fourteen jobs, some larger than the cluster; ``planned``: all of some length, and with a limit."""
    count = draw(st.integers(1, most))
    gpus = sum(pool.gpus for pool in pools)
    types = sorted({pool.gpu for pool in pools})
    wanted = ["", *types, "|".join(types)] if types != [""] else [""]

    def column(values: st.SearchStrategy[object]) -> list[object]:
        return draw(_columns(values, count))

    run = column(_LASTING if planned else LENGTHS)
    # Most declare a limit somewhat above the run time; some the run time itself, some none.
    slack = column(_SOME_SLACK if planned else _SLACK)
    limits = [min(r + s, NEVER) for r, s in zip(run, slack, strict=True)]  # type: ignore[operator]
    return jobs(
        [f"j{k}" for k in range(count)],
        column(TIMES),  # type: ignore[arg-type]
        column(_sizes(gpus)),  # type: ignore[arg-type]
        run,  # type: ignore[arg-type]
        team=column(_any_of(tuple(teams))),  # type: ignore[arg-type]
        limit_s=limits,  # type: ignore[arg-type]
        minimum_s=column(_MINIMUMS),  # type: ignore[arg-type]
        resumable=column(_MOSTLY),  # type: ignore[arg-type]
        priority=column(_PRIORITIES),  # type: ignore[arg-type]
        gpu=column(_any_of(tuple(wanted))),  # type: ignore[arg-type]
        one_node=column(_SELDOM),  # type: ignore[arg-type]
        opted_out=column(_HARDLY_EVER),  # type: ignore[arg-type]
    )


@st.composite
def drain_lists(draw: st.DrawFn, pools: tuple[Pool, ...]) -> tuple[Drain, ...]:
    """At most one drain of a node."""
    nodes = sum(pool.nodes for pool in pools)
    which = draw(_drained(nodes))
    return tuple(Drain(node, draw(TIMES), draw(st.integers(1, 12))) for node in which)


def weights_of(budget: tuple[BudgetNode, ...], above: str = "") -> dict[str, float]:
    """Weights of all budgets by path."""
    found: dict[str, float] = {}
    for node in budget:
        found[above + node.name] = node.weight
        found |= weights_of(node.children, f"{above}{node.name}/")
    return found


@st.composite
def budget_changes(draw: st.DrawFn, budget: tuple[BudgetNode, ...]) -> tuple[BudgetChange, ...]:
    """Up to three changes, some of which change nothing; siblings never all weigh 0."""
    present, found = weights_of(budget), []
    for at in sorted(draw(_CHANGES_AT)):
        named = draw(_named(tuple(sorted(present))))
        new = {path: draw(WEIGHTS) for path in named}
        then = present | new
        parents = {path.rpartition("/")[0] for path in then}
        if all(any(w > 0 for p, w in then.items() if p.rpartition("/")[0] == above) for above in parents):
            present = then
            found.append(BudgetChange(at, tuple(sorted(new.items()))))
    return tuple(found)


CONTRACTS = st.builds(
    Contract,
    max_min_runtime_s=st.sampled_from([0, 1, 3, 6, 20]),
    checkpoint_every_s=st.sampled_from([1, 2, 3, 7]),
    restart_cost_s=st.sampled_from([0, 1, 2]),
    hysteresis=st.sampled_from([None, None, 0.0, 0.125]),
)


@st.composite
def scenarios(
    draw: st.DrawFn,
    pools: st.SearchStrategy[tuple[Pool, ...]] = POOLS,
    *,
    drains: bool = True,
    changes: bool = True,
    most: int = 14,
    planned: bool = False,
) -> FairshareScenario:
    """A tiny scenario; every other one stops at a horizon, and one without limits always does."""
    some_pools, budget = draw(pools), draw(TREES)
    tiny = FairshareScenario(
        name="tiny",
        pools=some_pools,
        budget=budget,
        window_s=draw(_WINDOWS),
        contract=draw(CONTRACTS),
        jobs=draw(job_tables(some_pools, teams_of(budget), most, planned=planned)),
        behaviour=Behaviour(opt_out_limit_gpus=draw(st.integers(0, 4))),
        drains=draw(drain_lists(some_pools)) if drains else (),
        until_s=draw(_ENDS),
        budget_changes=draw(budget_changes(budget)) if changes else (),
    )
    return stretched(tiny, draw(_TIMES_AS_LONG))


@st.composite
def crowds(draw: st.DrawFn) -> FairshareScenario:
    """Few GPUs, everybody there from the start with work of a short minimum, and shares that change while it waits."""
    some_pools = draw(st.one_of(st.just((Pool(1, 2),)), st.just((Pool(2, 2),)), st.just((Pool(1, 3),))))
    skewed = st.sampled_from([0.0, 1.0, 3.0, 16.0])
    names = ["a", "b", *(["c/x", "c/y"] if draw(st.booleans()) else [])]
    kids = tuple(BudgetNode(name, draw(skewed)) for name in ("x", "y")) if len(names) > 2 else ()
    kids = kids if not kids or any(kid.weight for kid in kids) else (BudgetNode("x"), kids[1])
    budget = (
        BudgetNode("a", draw(skewed)),
        BudgetNode("b", 1.0),
        *([BudgetNode("c", 1.0, kids)] if kids else []),
    )
    count = draw(st.integers(6, 12))

    def column(values: st.SearchStrategy[Any]) -> list[Any]:
        return draw(st.lists(values, min_size=count, max_size=count))

    table = jobs(
        [f"j{k}" for k in range(count)],
        column(st.integers(0, 3)),
        column(st.integers(1, 2)),
        column(st.integers(3, 20)),
        team=column(st.sampled_from(names)),
        minimum_s=column(st.sampled_from([0, 1, 2, 4])),
    )
    found = []
    for at in sorted(draw(st.lists(st.integers(2, 30), unique=True, min_size=1, max_size=3))):
        new = [("a", draw(skewed)), ("b", draw(st.sampled_from([1.0, 3.0, 16.0])))]
        found.append(BudgetChange(at, tuple(new + ([("c/x", 16.0)] if kids and draw(st.booleans()) else []))))
    return FairshareScenario(
        name="crowd",
        pools=some_pools,
        budget=budget,
        window_s=draw(st.sampled_from([10, 40])),
        contract=Contract(4, 1, draw(st.integers(0, 1)), draw(st.sampled_from([0.0, 0.125, None]))),
        jobs=table,
        until_s=60,
        budget_changes=tuple(found),
    )


def stretched(scenario: FairshareScenario, times: int) -> FairshareScenario:
    """The same with every time so many times as long."""
    if times == 1:
        return scenario
    table, contract = scenario.jobs, scenario.contract
    assert table is not None
    return replace(
        scenario,
        window_s=scenario.window_s * times,
        contract=replace(
            contract,
            max_min_runtime_s=contract.max_min_runtime_s * times,
            checkpoint_every_s=contract.checkpoint_every_s * times,
            restart_cost_s=contract.restart_cost_s * times,
        ),
        jobs=table.changed(
            submit_s=table.submit_s * times,
            run_s=table.run_s * times,
            limit_s=np.where(table.limit_s == NEVER, NEVER, np.minimum(table.limit_s, 1 << 40) * times),
            minimum_s=table.minimum_s * times,
        ),
        drains=tuple(Drain(d.node, d.from_s * times, d.repair_s * times) for d in scenario.drains),
        until_s=None if scenario.until_s is None else scenario.until_s * times,
        budget_changes=tuple(BudgetChange(c.at_s * times, c.weights) for c in scenario.budget_changes),
    )
