"""Open questions as tables: the same jobs in every setting, and the directions that must hold."""

import numpy as np
import pytest

import gpuplan as gp
from gpuplan.fairshare import charts, studies
from gpuplan.fairshare.model import DAY, HOUR, FairshareScenario
from gpuplan.fairshare.studies import Size

TINY = Size(gpus=64, load=2.5, days=5, seeds=(1, 2))


@pytest.fixture(scope="module")
def fifteen() -> FairshareScenario:
    return gp.load("fifteen-teams")  # type: ignore[return-value]


def test_without_hysteresis_more_is_lost_and_occupancy_does_not_show_it(fifteen: FairshareScenario) -> None:
    table = studies.hysteresis_study(fifteen, TINY, (0, 0.048))
    assert list(table.columns[:3]) == ["hysteresis", "policy", "seed"]
    assert len(table) == 2 * len(TINY.seeds)
    mean = table.groupby("hysteresis").mean(numeric_only=True)
    assert mean.loc[0, "lost_share"] > 1.5 * mean.loc[0.048, "lost_share"] > 0
    assert mean.loc[0, "goodput"] < mean.loc[0.048, "goodput"] - 0.03
    assert abs(mean.loc[0, "occupancy"] - mean.loc[0.048, "occupancy"]) < 0.03
    picture = charts.study_chart(table, "hysteresis", ["lost_share", "goodput"])
    assert "lost_share, fair-share, hysteresis 0.048" in repr(picture)


def test_the_largest_jobs_are_asked_about_cap_window_and_nodes(fifteen: FairshareScenario) -> None:
    table = studies.large_jobs_study(fifteen, TINY, caps_h=(0.5, 8), windows_d=(1, 7))
    assert list(table.columns[:4]) == ["question", "setting", "policy", "seed"]
    # (2 caps + 2 windows) x 1 policy + 2 kinds of nodes x 2 policies, two seeds each
    assert len(table) == (2 + 2 + 2 * 2) * 2
    by = table.set_index(["question", "setting", "policy", "seed"])
    figures = ["lost_share", "preemptions", "large_wait_p50_h", "large_wait_p90_h"]
    for seed in TINY.seeds:
        usual = by.loc[("cap", 8, "fair-share", seed), figures]
        # the usual cap and the usual window are one and the same setting
        assert usual.equals(by.loc[("window", 7, "fair-share", seed), figures])
        assert by.loc[("cap", 0.5, "fair-share", seed), "preemptions"] > usual["preemptions"]
    assert (table["large_wait_p90_h"] >= table["large_wait_p50_h"]).all()
    assert table["large_wait_p90_h"].max() > 0


def test_one_team_squats_and_pays_for_it_under_budgets(fifteen: FairshareScenario) -> None:
    table = studies.squatting_study(fifteen, TINY, rates=(0, 1))
    assert list(table.columns[:3]) == ["rate", "policy", "seed"]
    mean = table.groupby(["policy", "rate"]).mean(numeric_only=True)
    for policy in ("priority-tiers", "fair-share"):
        assert mean.loc[(policy, 0), "team_idle_share"] == 0
        assert mean.loc[(policy, 1), "team_idle_share"] > 0.02
    fair = mean.loc["fair-share"]
    assert fair.loc[1, "team_useful_share"] < fair.loc[0, "team_useful_share"]


def test_a_team_without_jobs_cannot_squat(fifteen: FairshareScenario) -> None:
    with pytest.raises(ValueError, match="no job is of team 'nobody'"):
        studies.squatting_study(fifteen, TINY, "nobody")


def test_restorable_sessions_lose_less(fifteen: FairshareScenario) -> None:
    table = studies.session_study(fifteen, TINY, minima_h=(0.5, 8))
    assert list(table.columns[:3]) == ["minimum_h", "sessions", "seed"]
    mean = table.groupby(["sessions", "minimum_h"]).mean(numeric_only=True)
    gone, back = mean.loc["lost when preempted"], mean.loc["restorable"]
    assert gone.loc[0.5, "lost_share"] > back.loc[0.5, "lost_share"] > 0
    assert gone.loc[0.5, "preempted_share"] > 0
    # 8 h protect 6 h at most
    assert gone.loc[8, "preempted_share"] == back.loc[8, "preempted_share"] == 0
    assert gone.loc[8, "lost_share"] == 0


def test_sessions_come_on_working_days_and_stay_the_same(fifteen: FairshareScenario) -> None:
    base = studies._frozen(fifteen, TINY, 1)
    made = studies._jobs_of(base)
    short = studies.with_sessions(made, 9, 1, HOUR, restorable=False)
    other = studies.with_sessions(made, 9, 1, 2 * HOUR, restorable=True)
    mine = np.array([name.startswith("session-") for name in short.name])
    # days 5 and 6 are a weekend: 7 working days x 3 x 15 teams
    assert mine.sum() == 7 * 3 * 15
    assert len(short) == len(made) + mine.sum()
    assert set((short.submit_s[mine] // DAY).tolist()) == {0, 1, 2, 3, 4, 7, 8}
    hour = short.submit_s[mine] % DAY / HOUR
    assert 9 <= hour.min() < hour.max() < 16
    assert 2 * HOUR <= short.run_s[mine].min() < short.run_s[mine].max() <= 6 * HOUR
    for column in ("name", "submit_s", "run_s", "gpus"):
        assert np.array_equal(getattr(short, column), getattr(other, column))
    assert not short.resumable[mine].any()
    assert other.resumable[mine].all()


def test_the_same_study_twice_is_the_same_table(fifteen: FairshareScenario) -> None:
    once, again = (studies.hysteresis_study(fifteen, TINY, (0.1,)) for _ in range(2))
    assert once.equals(again)
