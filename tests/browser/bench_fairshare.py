"""How fast the fair-share explorer answers in Chromium: slider and share to repainted chart, 512 GPUs, 30 days.

Beside each figure stands what the two simulations alone take in this process: the rest is the explorer's own.
"""

import sys
from collections.abc import Sequence
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

#: The policies of the two sides.
POLICIES = {"left": "easy", "right": "fair-share"}

#: A simulation of 0.1 s per policy leaves this much (seconds) from a move to the picture.
AIM_S = 0.5


def await_runs(screen: Screen, scenario: FairshareScenario) -> None:
    """Wait for the picture of what gpuplan gives in this process."""
    expected = {side: gp.simulate(scenario, policy) for side, policy in POLICIES.items()}
    figures = {side: headline(one) for side, one in expected.items()}
    until(
        lambda: all(
            screen.rows(f"{side}_head")[0]["figures"].replace("\n", " ") == figures[side] for side in figures
        ),
        "the page does not show the runs computed here",
    )


def moves(table: Table, screen: Screen, name: str, visited: Sequence[FairshareScenario]) -> None:
    """Press an arrow key again and again, each time after the picture; the answer at the end must be right."""
    watch = Stopwatch(screen.page)
    took = [watch.press("ArrowRight") for _ in visited]
    await_runs(screen, visited[-1])
    simulated = [sum(gp.simulate(one, policy).seconds for policy in POLICIES.values()) for one in visited]
    table.seconds(f"{name} to repainted chart, {MOVES} moves: median", percentile(took, 0.5))
    table.seconds(f"{name} to repainted chart, {MOVES} moves: p95", percentile(took, 0.95), AIM_S)
    table.seconds(f"{name}: both simulations alone, median", percentile(simulated, 0.5))


def bench(table: Table, bench: Bench) -> None:
    screen = bench.explorer(bench.server(), SCENARIO)
    base = gp.load(SCENARIO)
    await_runs(screen, base)
    screen.handle("fair-load").focus()
    loads = [round(1.1 + 0.05 * k, 6) for k in range(1, MOVES + 1)]
    loaded = [base.replace({"workload.generate.oversubscription": load}) for load in loads]
    with table.answers("load"):
        moves(table, screen, "load", loaded)
    screen.page.locator(".gp-budget-slider[data-row='0']").focus()
    # a share of 40 + k % beside 60 that stay: a weight of w / (w + 60) = (40 + k) / 100
    weights = [60 * (40 + k) / (60 - k) for k in range(1, MOVES + 1)]
    kept = keep_jobs(loaded[-1])
    with table.answers("share"):
        moves(table, screen, "share", [kept.replace({"budget.0.weight": weight}) for weight in weights])


if __name__ == "__main__":
    run(bench)
