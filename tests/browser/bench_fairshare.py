"""How fast the fair-share explorer answers in Chromium: slider and share to repainted chart, 512 GPUs, 30 days."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import gpuplan as gp
from browser.desk import until
from browser.screen import Screen
from browser.timing import Bench, Stopwatch, Table, percentile, run
from gpuplan.fairshare.charts.live import headline
from gpuplan.fairshare.keep_jobs import keep_jobs
from gpuplan.fairshare.model import FairshareScenario

#: The scenario: 512 GPUs, fifteen teams, 30 days, load 1.1; and how often a control is moved.
SCENARIO, MOVES = "fifteen-teams", 10

#: A simulation of 0.1 s per policy leaves this much (seconds) from a move to the picture.
AIM_S = 0.5


def await_runs(screen: Screen, scenario: FairshareScenario) -> None:
    """Wait for the picture of what gpuplan gives in this process."""
    expected = {
        side: gp.simulate(scenario, policy) for side, policy in (("left", "easy"), ("right", "fair-share"))
    }
    figures = {side: headline(one) for side, one in expected.items()}
    until(
        lambda: all(screen.rows(f"{side}_head")[0]["figures"] == figures[side] for side in figures),
        "the page does not show the runs computed here",
    )


def moves(table: Table, screen: Screen, name: str, last: FairshareScenario) -> None:
    """Press an arrow key again and again, each time after the picture; the answer at the end must be right."""
    watch = Stopwatch(screen.page)
    took = [watch.press("ArrowRight") for _ in range(MOVES)]
    await_runs(screen, last)
    table.seconds(f"{name} to repainted chart, {MOVES} moves: median", percentile(took, 0.5))
    table.seconds(f"{name} to repainted chart, {MOVES} moves: p95", percentile(took, 0.95), AIM_S)


def bench(table: Table, bench: Bench) -> None:
    screen = bench.explorer(bench.server(), SCENARIO)
    base = gp.load(SCENARIO)
    await_runs(screen, base)
    screen.handle("fair-load").focus()
    loaded = base.replace({"workload.generate.oversubscription": round(1.1 + 0.05 * MOVES, 6)})
    with table.answers("load"):
        moves(table, screen, "load", loaded)
    screen.page.locator(".gp-budget-slider[data-row='0']").focus()
    # 50 of 100 beside 60: 60
    share = keep_jobs(loaded).replace({"budget.0.weight": 60})
    with table.answers("share"):
        moves(table, screen, "share", share)


if __name__ == "__main__":
    run(bench)
