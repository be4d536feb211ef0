"""The generated workload against what was asked of it: load, shares, sizes, durations, rhythm, bursts, contracts."""

import os
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuplan.fairshare import workloads
from gpuplan.fairshare.jobs import Jobs
from gpuplan.fairshare.model import DAY, HOUR, BudgetNode, Generate, Pool
from gpuplan.fairshare.tree import Tree, tree_of
from gpuplan.fairshare.workloads import demand_gpus, generate, sizes_of, team_kinds

POOLS = (Pool(64, 8),)
SPEC = Generate(days=28, oversubscription=1.1, debug_share=0.2, seed=1)


def _tree() -> Tree:
    """Fifteen teams in four programmes."""
    weights = {"a": (40, (50, 25, 15, 10)), "b": (30, (40, 30, 20, 10)), "c": (20, (50, 30, 15, 5))}
    programmes = {**weights, "d": (10, (60, 30, 10))}
    return tree_of(
        tuple(
            BudgetNode(name, weight, tuple(BudgetNode(f"team{k}", w) for k, w in enumerate(teams)))
            for name, (weight, teams) in programmes.items()
        )
    )


TREE = _tree()


@pytest.fixture(scope="module")
def many() -> Jobs:
    """Ten times the load of 512 GPUs on ten times the GPUs: enough jobs for narrow tolerances."""
    return generate(SPEC, (Pool(640, 8),), TREE)


def _work(jobs: Jobs, team: str | None = None) -> int:
    chosen = jobs.team == team if team else np.ones(len(jobs), bool)
    return int(jobs.gpu_seconds[chosen].sum())


@pytest.mark.parametrize("load", [0.9, 1.1, 2.5, 4.0])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_the_work_submitted_is_the_load_asked_for(load: float, seed: int) -> None:
    """To 1 % by the design; here to a hundredth of that, over all and for each team."""
    spec = replace(SPEC, oversubscription=load, seed=seed)
    jobs = generate(spec, POOLS, TREE)
    assert _work(jobs) == pytest.approx(load * 512 * 28 * DAY, rel=1e-4)
    for team, gpus in zip(TREE.teams, demand_gpus(spec, 512, TREE), strict=True):
        assert _work(jobs, team) == pytest.approx(gpus * 28 * DAY, rel=1e-3)


def test_the_demand_of_teams_by_hand() -> None:
    """Two leaves of equal weight: 4 and 1.2 times 1/2, scaled to a load of 2.6 on 10 GPUs: 26 x 4 / 5.2 = 20 and 6."""
    tree = tree_of((BudgetNode("x"), BudgetNode("y")))
    assert team_kinds(tree) == ("backlogged", "moderate")
    assert demand_gpus(replace(SPEC, oversubscription=2.6), 10, tree).tolist() == pytest.approx([20, 6])


def test_kinds_are_dealt_over_the_leaves() -> None:
    kinds = team_kinds(TREE)
    assert {kind: kinds.count(kind) for kind in workloads.DEMAND} == {
        "backlogged": 6,
        "moderate": 4,
        "bursty": 3,
        "idle": 2,
    }


@settings(max_examples=25)
@given(
    st.floats(0.02, 40),
    st.floats(1, 4),
    st.floats(0, 0.9),
    st.integers(0, 2**32),
    st.integers(1, 12),
    st.integers(1, 16),
    st.integers(1, 5),
)
def test_any_small_workload_keeps_its_promises(
    days: float, load: float, debug: float, seed: int, nodes: int, per_node: int, teams: int
) -> None:
    pool = Pool(nodes, per_node)
    tree = tree_of(tuple(BudgetNode(f"t{k}", k) for k in range(teams, -1, -1)))  # one has no share
    jobs = generate(Generate(days, load, debug, seed), (pool,), tree)
    # What cannot be met is half of the least run of each team's last job, which has at most `largest` GPUs.
    largest = max(jobs.gpus.tolist(), default=pool.gpus)
    slack = (teams + 1) * largest * workloads.LEAST_RUN_S
    assert abs(_work(jobs) - load * pool.gpus * days * DAY) <= slack + teams * largest
    assert "t0" not in set(jobs.team.tolist())
    assert len(set(jobs.name.tolist())) == len(jobs)
    assert ((jobs.submit_s >= 0) & (jobs.submit_s < days * DAY)).all()
    assert ((jobs.gpus >= 1) & (jobs.gpus <= pool.gpus)).all()
    assert ((jobs.run_s > 0) & (jobs.run_s <= jobs.limit_s)).all()
    assert (jobs.minimum_s >= 0).all()


def test_debug_jobs(many: Jobs) -> None:
    """They are those of the higher priority, a share of all jobs, and all that counts as debug."""
    debug = many.priority == workloads.DEBUG_PRIORITY
    assert (debug == many.debug).all()
    assert debug.mean() == pytest.approx(0.2, abs=3 * (0.2 * 0.8 / len(many)) ** 0.5)
    assert set(many.gpus[debug].tolist()) == {1, 2, 4, 8}
    assert set(many.minimum_s[debug].tolist()) == {300, 600, 900}
    assert many.limit_s[debug].min() == 900
    assert np.median(many.run_s[debug]) == pytest.approx(600, rel=0.03)
    # The 90th percentile of a log-normal: its median x exp(1.2816 sigma).
    assert np.quantile(many.run_s[debug], 0.9) == pytest.approx(600 * np.exp(1.2816), rel=0.05)


@pytest.mark.parametrize("share", [0.0, 0.05, 0.5])
def test_the_share_of_debug_jobs_is_the_one_asked_for(share: float) -> None:
    jobs = generate(replace(SPEC, debug_share=share), POOLS, TREE)
    error = (share * (1 - share) / len(jobs)) ** 0.5
    assert jobs.debug.mean() == pytest.approx(share, abs=4 * error)


def test_durations_are_heavy_tailed(many: Jobs) -> None:
    run = many.run_s[many.priority == 0]
    assert np.median(run) == pytest.approx(78 * 60, rel=0.03)
    assert np.quantile(run, 0.9) == pytest.approx(78 * 60 * np.exp(1.2816 * 1.8), rel=0.05)
    assert run.min() >= workloads.LEAST_RUN_S
    assert run.max() == 7 * DAY
    longest = np.sort(run)[-len(run) // 10 :]
    assert longest.sum() > 0.5 * run.sum()  # a tenth of the jobs has more than half of the time


def test_short_periods_have_short_jobs() -> None:
    assert generate(replace(SPEC, days=2.0), POOLS, TREE).run_s.max() <= DAY / 2


def test_sizes_of_each_team_by_chi_square(many: Jobs) -> None:
    """Sum of (found - expected)^2 / expected below its mean + 5 standard deviations, n - 1 degrees of freedom."""
    for team, share in zip(TREE.teams, TREE.share[TREE.leaves], strict=True):
        sizes, shares = sizes_of(share * 5120, 5120)
        mine = many.gpus[(many.team == team) & (many.priority == 0)]
        found = np.array([(mine == size).sum() for size in sizes])
        assert found.sum() == len(mine)
        expected = shares * len(mine)
        freedom = len(sizes) - 1
        assert ((found - expected) ** 2 / expected).sum() < freedom + 5 * (2 * freedom) ** 0.5


def test_sizes_are_capped_by_the_team_and_by_the_pool() -> None:
    """A team with 3.5 GPUs asks for at most 14, that is 8; one with 4.5 for 16; a pool of 6 ends at 4."""
    assert sizes_of(3.5, 512)[0].tolist() == [1, 2, 4, 8]
    assert sizes_of(4.5, 512)[0].tolist() == [1, 2, 4, 8, 16]
    assert sizes_of(100, 6)[0].tolist() == [1, 2, 4]
    assert sizes_of(3.5, 512)[1].tolist() == pytest.approx(
        [0.26 / 0.78, 0.14 / 0.78, 0.16 / 0.78, 0.22 / 0.78]
    )
    mixed = generate(replace(SPEC, days=7.0), (Pool(2, 8), Pool(8, 4)), TREE)
    assert mixed.gpus.max() <= 32


def test_submissions_follow_day_and_week(many: Jobs) -> None:
    """Of the teams that submit all the time."""
    steady = [
        team
        for team, kind in zip(TREE.teams, team_kinds(TREE), strict=True)
        if kind in ("backlogged", "moderate")
    ]
    submit = many.submit_s[np.isin(many.team, steady)]
    by_hour = np.bincount(submit // HOUR % 24, minlength=24) / len(submit)
    asked = np.array(workloads.HOURS) / sum(workloads.HOURS)
    assert np.abs(by_hour - asked).max() < 0.004
    by_day = np.bincount(submit // DAY % 7, minlength=7)
    weekend, working = by_day[5:].mean(), by_day[:5].mean()
    assert weekend / working == pytest.approx(workloads.WEEKEND, rel=0.06)


def _dispersion(jobs: Jobs, team: str) -> float:
    """Variance over mean of the counts of working days: 1 for independent arrivals (Poisson)."""
    days = np.bincount(jobs.submit_s[jobs.team == team] // DAY, minlength=28)
    counts = days[np.arange(28) % 7 < 5]
    return float(counts.var(ddof=1) / counts.mean())


def test_bursty_teams_burst_and_others_do_not(many: Jobs) -> None:
    for team, kind in zip(TREE.teams, team_kinds(TREE), strict=True):
        found = _dispersion(many, team)
        if kind == "bursty":
            assert found > 20
            at = many.submit_s[many.team == team]
            for day in np.unique(at // DAY):
                inside = at[at // DAY == day] % DAY
                assert inside.max() - inside.min() < workloads.BURST_HOURS * HOUR
            assert 1 <= len(np.unique(at // DAY)) <= 16  # three of ten of 28 days, give or take
        elif kind in ("backlogged", "moderate"):
            assert found < 3


def test_idle_teams_rest_every_other_week(many: Jobs) -> None:
    for team in (t for t, kind in zip(TREE.teams, team_kinds(TREE), strict=True) if kind == "idle"):
        weeks = np.unique(many.submit_s[many.team == team] // (7 * DAY)).tolist()
        assert weeks in ([0, 2], [1, 3])


def test_minima_limits_and_what_can_resume(many: Jobs) -> None:
    usual = many.priority == 0
    minimum = many.minimum_s[usual]
    count = usual.sum()
    assert (minimum == 0).mean() == pytest.approx(0.3, abs=0.01)
    # A job that cannot resume asks for its whole limit instead; the others have the five values, by their shares.
    able = minimum[many.resumable[usual] & (minimum > 0)]
    stated, shares = np.array(workloads.MINIMA_S), np.array(workloads.MINIMA_SHARES)
    assert [(able == m).mean() for m in stated] == pytest.approx(shares.tolist(), abs=0.015)
    stuck = usual & ~many.resumable
    assert (many.minimum_s[stuck] >= np.maximum(many.limit_s[stuck], 1800)).all()
    assert many.limit_s[stuck].max() <= 8 * HOUR
    assert many.minimum_s[usual].max() <= 8 * HOUR
    # One in five cannot; the unallocated 30 % and those with a limit above 8 h resume all the same.
    short = usual & (many.limit_s <= 8 * HOUR) & (many.minimum_s > 0)
    assert (~many.resumable[short]).mean() == pytest.approx(0.2, abs=0.02)
    factor = many.limit_s[usual] / many.run_s[usual]
    assert factor.mean() == pytest.approx(2, abs=0.03)
    assert (factor.min() >= 0.99, factor.max() <= 3) == (True, True)
    assert count > 10_000


def test_a_higher_load_appends_jobs_and_leaves_the_others() -> None:
    """Common random numbers: all but the last job of each team are there again, unchanged."""
    less = generate(SPEC, POOLS, TREE)
    more = generate(replace(SPEC, oversubscription=1.3), POOLS, TREE)
    place = {name: k for k, name in enumerate(more.name.tolist())}
    changed = 0
    for k, name in enumerate(less.name.tolist()):
        other = place[name]
        same = all(
            getattr(less, column)[k] == getattr(more, column)[other]
            for column in (
                "team",
                "submit_s",
                "gpus",
                "run_s",
                "limit_s",
                "minimum_s",
                "resumable",
                "priority",
            )
        )
        changed += not same
    assert changed <= len(TREE.leaves)


def test_another_debug_share_leaves_the_times_and_seeds_matter() -> None:
    one = generate(SPEC, POOLS, TREE)
    other = generate(replace(SPEC, debug_share=0.3), POOLS, TREE)
    at = dict(zip(one.name.tolist(), one.submit_s.tolist(), strict=True))
    assert all(
        at.get(name, s) == s for name, s in zip(other.name.tolist(), other.submit_s.tolist(), strict=True)
    )
    seeded = generate(replace(SPEC, seed=2), POOLS, TREE)
    assert len(seeded) != len(one) or (seeded.run_s != one.run_s).any()


def test_a_team_more_changes_nobody_elses_random_numbers() -> None:
    """Weights are such that x and y keep their demand: 4 and 1.2 of shares that are half of what they were."""
    two = tree_of((BudgetNode("x"), BudgetNode("y")))
    three = tree_of((BudgetNode("x"), BudgetNode("y"), BudgetNode("z", 2)))
    a, b = generate(SPEC, POOLS, two), generate(replace(SPEC, oversubscription=1.1), POOLS, three)
    for team in ("x", "y"):
        mine, theirs = a.submit_s[a.team == team], b.submit_s[b.team == team]
        assert len(set(mine.tolist()) & set(theirs.tolist())) >= min(len(mine), len(theirs)) - 1


def test_the_same_jobs_whatever_the_hash_seed() -> None:
    code = (
        "from gpuplan.fairshare.model import *; from gpuplan.fairshare.tree import tree_of\n"
        "from gpuplan.fairshare.workloads import generate\n"
        "t = tree_of((BudgetNode('x'), BudgetNode('y', 2)))\n"
        "j = generate(Generate(7, 1.1, 0.2, 5), (Pool(4, 8),), t)\n"
        "print(hash(tuple(map(int, j.submit_s))), j.gpu_seconds.sum(), j.name[-1])\n"
    )
    found = {
        subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, "PYTHONHASHSEED": seed},
        ).stdout
        for seed in ("1", "2")
    }
    assert len(found) == 1


def test_hostile_names_of_teams_are_only_names() -> None:
    tree = tree_of((BudgetNode("=1+1"), BudgetNode("<b>\ud800"), BudgetNode("../..")))
    assert set(generate(SPEC, POOLS, tree).team.tolist()) == set(tree.teams)
