"""The published table: what was published, our runs beside it, means, intervals, aims."""

import math
from typing import TYPE_CHECKING

import pytest

import gpuplan as gp
from gpuplan import InputError
from gpuplan.fairshare import published
from gpuplan.fairshare.model import DAY, HOUR, FairshareScenario

if TYPE_CHECKING:
    import pandas as pd

SEEDS = (1, 2)


@pytest.fixture(scope="module")
def fifteen() -> FairshareScenario:
    return gp.load("fifteen-teams")  # type: ignore[return-value]


@pytest.fixture(scope="module")
def runs(fifteen: FairshareScenario) -> "pd.DataFrame":
    return published.runs(fifteen, (64,), (1.1,), SEEDS, days=4)


@pytest.fixture(scope="module")
def table(runs: "pd.DataFrame") -> "pd.DataFrame":
    return published.summary(runs)


def test_the_published_figures_are_those_of_the_design() -> None:
    after = {row.what: row.after for row in published.PUBLISHED}
    before = {row.figure: row.before for row in published.PUBLISHED if row.figure}
    assert after["occupancy"] == after["delivered / owed over 30 days"] == 0.98
    assert (before["debug_wait_p90_s"], before["wait_p50_s"], before["wait_p90_s"]) == (7200, 300, 10080)
    assert after["unallocated share of delivered time"] == 0.18
    assert after["repairs that need a person, change"] == -0.74


def test_a_cluster_of_a_size_has_whole_nodes_and_repairs_evenly_over_time(fifteen: FairshareScenario) -> None:
    asked = published.cluster(fifteen, 800, 2.5, 7, days=20)
    assert (asked.pools[0].nodes, asked.pools[0].gpus_per_node, asked.gpus) == (100, 8, 800)
    assert asked.generate is not None
    assert (asked.generate.oversubscription, asked.generate.seed, asked.generate.days) == (2.5, 7, 20)
    # 100 hosts x 20 days at one repair per 100 host-days: 20 repairs, a day apart, each of another host
    assert len(asked.drains) == 20
    assert len({drain.node for drain in asked.drains}) == 20
    assert [drain.from_s for drain in asked.drains] == [k * DAY + DAY // 2 for k in range(20)]
    assert {drain.repair_s for drain in asked.drains} == {4 * HOUR}
    assert published.cluster(fifteen, 800, repairs=False).drains == ()


@pytest.mark.parametrize("gpus", [0, -8, 12])
def test_a_cluster_of_no_whole_nodes_is_refused(fifteen: FairshareScenario, gpus: int) -> None:
    with pytest.raises(InputError, match=rf"gpus: must be a multiple of 8 \(got {gpus}\)"):
        published.cluster(fifteen, gpus)


def test_a_row_per_run_with_every_figure(runs: "pd.DataFrame") -> None:
    assert list(runs.columns) == ["gpus", "load", "world", "seed", *published.FIGURES]
    assert len(runs) == len(published.WORLDS) * len(SEEDS)
    assert runs["occupancy"].between(0.05, 1).all()
    assert (runs["goodput"] <= runs["occupancy"]).all()


def test_the_worlds_differ_as_they_are_known_to(runs: "pd.DataFrame") -> None:
    by_world = runs.groupby("world").mean(numeric_only=True)
    old, idle, budgets = (by_world.loc[name] for name in ("tiers, inflated", "monopolies", "budgets"))
    assert idle["occupancy"] < min(old["occupancy"], budgets["occupancy"])
    assert budgets["delivered_share"] > max(old["delivered_share"], idle["delivered_share"])
    assert budgets["debug_wait_p90_s"] < old["debug_wait_p90_s"]
    assert old["unallocated_share"] == 0 < budgets["unallocated_share"]
    assert budgets["shut_downs_by_hand"] == 0


def test_a_mean_has_the_interval_of_student(runs: "pd.DataFrame", table: "pd.DataFrame") -> None:
    chosen = table[(table["world"] == "easy") & (table["figure"] == "outstanding")].iloc[0]
    a, b = runs[runs["world"] == "easy"]["outstanding"]
    # two values: s / sqrt(2) = |a - b| / 2; of one degree of freedom (Cauchy's) t = tan(0.95 pi / 2) = 12.706
    half = math.tan(0.95 * math.pi / 2) * abs(a - b) / 2
    assert chosen["mean"] == pytest.approx((a + b) / 2)
    assert chosen["low"] == pytest.approx(max(0.0, (a + b) / 2 - half))
    assert chosen["high"] == pytest.approx((a + b) / 2 + half)
    assert chosen["seeds"] == 2


def test_the_published_figures_stand_beside(table: "pd.DataFrame") -> None:
    rows = table[table["world"] == "budgets"].set_index("figure")
    assert rows.loc["unallocated_share", "after"] == 0.18
    assert rows.loc["debug_wait_p90_s", "before"] == 7200
    assert math.isnan(rows.loc["goodput", "after"])
    wide = published.wide(table, 64, 1.1)
    assert list(wide.columns) == [
        *(world.name for world in published.WORLDS),
        "published, before",
        "published, after",
    ]
    assert wide.loc["debug wait p90", "published, after"] == "30 s"
    assert wide.loc["goodput", "published, after"] == ""


def test_the_notes_say_what_is_missed_and_by_how_much(table: "pd.DataFrame") -> None:
    ours = (table["world"] == "budgets") & (table["load"] == 1.1)
    table = table.copy()
    for figure, mean in (("occupancy", 0.953), ("debug_wait_p90_s", 90.0), ("lost_share", 0.05)):
        table.loc[ours & (table["figure"] == figure), "mean"] = mean
    notes = published.notes(table)
    assert "64 GPUs, load 1.1: occupancy 95.3 %, aim at least 97.0 %: missed by 1.70 points." in notes
    assert "64 GPUs, load 1.1: debug wait p90 90 s, aim at most 60 s: missed by 30 s." in notes
    assert "64 GPUs, load 1.1: lost share 5.0 %, aim at most 5.0 %: met." in notes


@pytest.mark.parametrize(
    ("figure", "value", "text"),
    [
        ("occupancy", 0.9753, "97.5 %"),
        ("debug_wait_p90_s", 30, "30 s"),
        ("debug_wait_p90_s", 600, "10.0 min"),
        ("largest_wait_p90_s", 9000, "2.5 h"),
        ("teams_served", 13.0, "13"),
        ("teams_served", 12.5, "12.5"),
        ("largest_wait_p50_s", math.nan, "none"),
    ],
)
def test_figures_as_text(figure: str, value: float, text: str) -> None:
    assert published.said(figure, value) == text
