"""From a file of traffic to the GPUs of a real-time app, and laws that hold on the way."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuplan.allocation.model import AllocationScenario, Horizon, RealtimeApp
from gpuplan.allocation.plan import plan
from gpuplan.cluster import Cluster
from gpuplan.forecast.capacity import Replica, size
from gpuplan.forecast.holding import smooth_to_cap
from gpuplan.forecast.profile import weekly_profile
from gpuplan.traces.hourly import read_hourly
from gpuplan.traces.series import increases


@pytest.mark.parametrize(
    ("zone", "day"),
    [
        ("Europe/Berlin", (2025, 10, 26)),
        ("Europe/Berlin", (2026, 3, 29)),
        ("America/Sao_Paulo", (2018, 2, 18)),  # midnight came twice
        ("America/Sao_Paulo", (2018, 11, 4)),  # midnight was skipped
        ("America/St_Johns", (2025, 11, 2)),  # hours begin at our half hours
        ("Pacific/Apia", (2011, 12, 30)),  # a whole day was skipped
    ],
)
def test_what_the_clock_on_the_wall_wrote_is_read_as_what_passed(
    tmp_path: Path, zone: str, day: tuple[int, int, int]
) -> None:
    """Four days around the change, an hour after the other in UTC, written as local times without a zone."""
    first = datetime(*day, tzinfo=UTC) - timedelta(days=2)
    moments = [(first + timedelta(hours=i)).astimezone(ZoneInfo(zone)) for i in range(96)]
    rows = [f"{moment:%Y-%m-%dT%H:%M},{i}" for i, moment in enumerate(moments)]
    path = tmp_path / "traffic.csv"
    path.write_text("\n".join(["time,value", *rows]) + "\n", encoding="utf-8")
    history = read_hourly(path, unit="x", timezone=zone)
    assert history.values.tolist() == list(range(96))
    assert [history.at(i) for i in range(96)] == moments


readings = st.lists(st.none() | st.integers(0, 50), min_size=1, max_size=12)


@given(readings, st.booleans())
def test_the_increase_is_that_of_a_plain_loop(rows: list[int | None], spread: bool) -> None:
    """Reading by reading: what is added since the one before, all of it after a fall."""
    total, over_gaps, resets, before, since = 0.0, 0.0, 0, None, 0
    for at, reading in enumerate(rows):
        if reading is None:
            continue
        if before is not None:
            grown = reading if reading < before else reading - before
            resets += reading < before
            total += grown
            over_gaps += grown if at - since > 1 else 0
        before, since = reading, at
    values = np.array([np.nan if row is None else row for row in rows], np.float64)
    found, counted, over = increases(values, spread=spread)
    assert len(found) == len(rows) - 1
    assert (counted, over) == (resets, over_gaps)
    assert np.nansum(found) == pytest.approx(total - (0 if spread else over_gaps))


def test_real_traffic_becomes_the_demand_of_an_app(shared: Path) -> None:
    """Nine days of ServeGen's m-small, the tenth planned: whole replicas, a cap, and a legal plan that serves them."""
    history = read_hourly(
        shared / "traces" / "servegen" / "total_rate_10min.csv",
        unit="requests/s",
        time="t_s",
        value="m-small",
        seconds_since=datetime(2001, 1, 1),
        zero_is_unknown=True,
    ).part(0, 9 * 144)
    profile = weekly_profile(history, quantile=0.9, period="day")
    assert any("not as safe as it sounds" in note for note in profile.notes)
    needed = size(profile.forecast(history.end, 24), Replica(2, 200, "requests/s", target_load=0.8))
    held = smooth_to_cap(needed.gpus, 4, whole=2)
    assert (held >= needed.gpus).all()
    assert np.abs(np.diff(held)).max() <= 4
    assert set(held % 2) == {0}
    app = RealtimeApp("chat", 1.0, tuple(int(gpus) for gpus in held), max_swap=4)
    made = plan(
        AllocationScenario("day", Cluster(64, 8), Horizon(24), realtime=(app,)), "search", time_limit_s=1
    )
    assert made.check() == []
    assert made.figures["coverage"] == 1
