"""Axes of a sweep: what a point changes, fingerprints, and every mistake before anything is computed."""

import math

import numpy as np
import pytest

import gpuplan
from gpuplan.inputs.errors import InputError
from gpuplan.sweeps import grid as grids
from gpuplan.sweeps.grid import grid_of

PENALTY, GPUS = "objective.shortfall_penalty", "cluster.gpus"


def test_points_are_all_combinations_and_the_last_axis_changes_fastest() -> None:
    grid = grid_of(gpuplan.load("two-apps"), {PENALTY: [0, 5], GPUS: [8, 16]}, None, {})
    assert [tuple(point.values()) for point in grid.points()] == [(0, 8), (0, 16), (5, 8), (5, 16)]
    assert (grid.size, grid.policies) == (4, ("fifo", "aware"))


def test_a_seed_is_that_of_the_search_or_of_what_is_generated() -> None:
    allocation = grid_of(gpuplan.load("two-apps"), {"seed": range(2)}, "search", {"iterations": 9})
    assert allocation.changes({"seed": 1}) == ({}, {"iterations": 9, "seed": 1})
    packing = grid_of(gpuplan.load("four-gpus"), {"seed": range(2)}, None, {})
    assert packing.changes({"seed": 1}) == ({"tasks.generate.seed": 1}, {})
    fairshare = grid_of(gpuplan.load("fifteen-teams"), {"seed": range(2)}, None, {})
    assert fairshare.changes({"seed": 1}) == ({"workload.generate.seed": 1}, {})


def test_values_of_numpy_are_numbers_and_whole_ones_are_whole() -> None:
    scenario = gpuplan.load("two-apps")
    one = grid_of(scenario, {PENALTY: np.array([0.0, 2.5]), GPUS: np.arange(8, 17, 8)}, "aware", {})
    other = grid_of(scenario, {GPUS: [8.0, 16], PENALTY: (0, 2.5)}, "aware", {})
    assert one.axes == {PENALTY: (0, 2.5), GPUS: (8, 16)}
    mine = {one.keys().of(point, "aware") for point in one.points()}
    assert mine == {other.keys().of(point, "aware") for point in other.points()}
    assert len(mine) == 4


def test_a_fingerprint_is_of_scenario_point_policy_effort_and_code(monkeypatch: pytest.MonkeyPatch) -> None:
    scenario, point = gpuplan.load("two-apps"), {PENALTY: 5}

    def key(policy: str = "search", about: object = scenario, penalty: int = 5, **effort: int) -> str:
        return grid_of(about, {PENALTY: [penalty]}, policy, effort).keys().of({PENALTY: penalty}, policy)

    keys = [
        key(),
        key("aware"),
        key(penalty=6),
        key(iterations=5),
        key(about=gpuplan.load("mixed-day")),
        key(about=scenario.replace({"cluster.gpus": 24})),
    ]
    monkeypatch.setattr(grids, "code_version", lambda kind: "0.2.0+other")
    keys.append(key())
    assert len(set(keys)) == len(keys)
    assert point == {PENALTY: 5}


def test_all_mistakes_at_once() -> None:
    with pytest.raises(InputError) as raised:
        gpuplan.sweep(
            "two-apps",
            {
                "objective.shortfal_penalty": [1],
                "batch.99.gpus": [1],
                GPUS: [],
                PENALTY: [1, 1.0, math.nan],
                "seed": [-1],
                "utilization": [1],
                "rules.within_node": "yes",
                "name": ["a"],
            },
            ["awar"],
            iterations=-1,
        )
    said = str(raised.value)
    for part in (
        "objective.shortfal_penalty: unknown path; did you mean shortfall_penalty?",
        "batch.99.gpus: unknown path: batch has",
        "objective.shortfall_penalty: must name each value once (got 1)",
        "objective.shortfall_penalty: must be numbers, words, lists or mappings, as in a file (got nan)",
        "cluster.gpus: must have at least one value",
        "seed: must be whole numbers of at least 0 (got -1)",
        "utilization: cannot be an axis: results have a column of this name",
        "rules.within_node: must be a list of values (got 'yes')",
        "name: cannot be an axis: the name changes nothing",
        "policy: must be one of",
        "iterations: must be a whole number of at least 0 (got -1)",
    ):
        assert part in said


def test_a_seed_without_anything_drawn_is_refused() -> None:
    with pytest.raises(InputError, match="has no use here: the jobs are given"):
        gpuplan.sweep("first-hours", {"seed": range(3)})


def test_too_many_points_are_refused_before_they_are_made() -> None:
    with pytest.raises(InputError, match=r"at most 1,000,000 points \(got 4000000\)"):
        gpuplan.sweep("two-apps", {PENALTY: range(2000), GPUS: range(1, 2001)})


def test_packing_and_fairshare_take_no_effort() -> None:
    with pytest.raises(InputError, match="iterations: unknown keyword: packing policies take none"):
        gpuplan.sweep("four-gpus", {"admission.margin": [0.1]}, iterations=4)
    with pytest.raises(InputError, match="must be a mapping of paths"):
        gpuplan.sweep("two-apps", [1, 2])  # type: ignore[arg-type]
