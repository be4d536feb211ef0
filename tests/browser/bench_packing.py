"""How fast the packing explorer answers in Chromium: slider to repainted chart, 4 GPUs, 7 models, 2,000 tasks.

Beside each figure stands what the two runs alone take in this process: the rest is the explorer's own.
"""

import sys
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import gpuplan as gp
from browser.desk import until
from browser.screen import Screen
from browser.timing import Bench, Stopwatch, Table, percentile, run
from gpuplan.packing.charts.live import headline
from gpuplan.packing.model import PackingScenario

#: The scenario, and how often a control is moved.
SCENARIO, MOVES = "four-gpus", 10

#: The policies of the two sides.
POLICIES = {"left": "round-robin", "right": "best-fit"}

#: From a move to the picture, seconds.
AIM_S = 0.5


def await_runs(screen: Screen, scenario: PackingScenario) -> None:
    """Wait for the picture of what gpuplan gives in this process."""
    figures = {side: headline(gp.pack(scenario, policy)) for side, policy in POLICIES.items()}
    until(
        lambda: all(
            screen.rows(f"{side}_head")[0]["figures"].replace("\n", " ") == figures[side] for side in figures
        ),
        "the page does not show the runs computed here",
    )


def moves(table: Table, screen: Screen, name: str, key: str, visited: Sequence[PackingScenario]) -> None:
    """Press an arrow key again and again, each time after the picture; the answer at the end must be right."""
    watch = Stopwatch(screen.page)
    took = [watch.press(key) for _ in visited]
    await_runs(screen, visited[-1])
    alone = [sum(gp.pack(one, policy).seconds for policy in POLICIES.values()) for one in visited]
    table.seconds(f"{name} to repainted chart, {MOVES} moves: median", percentile(took, 0.5))
    table.seconds(f"{name} to repainted chart, {MOVES} moves: p95", percentile(took, 0.95), AIM_S)
    table.seconds(f"{name}: both runs alone, median", percentile(alone, 0.5))


def bench(table: Table, bench: Bench) -> None:
    screen = bench.explorer(bench.server(), SCENARIO)
    base = gp.load(SCENARIO)
    await_runs(screen, base)
    screen.handle("pack-margin").focus()
    margins = [round(0.20 - 0.01 * k, 6) for k in range(1, MOVES + 1)]
    with table.answers("margin"):
        moves(
            table,
            screen,
            "margin",
            "ArrowLeft",
            [base.replace({"admission.margin": margin}) for margin in margins],
        )
    screen.handle("pack-burst").focus()
    bursts = [round(1 + 0.1 * k, 6) for k in range(1, MOVES + 1)]
    tight = base.replace({"admission.margin": margins[-1]})
    with table.answers("burstiness"):
        moves(
            table,
            screen,
            "burstiness",
            "ArrowRight",
            [tight.replace({"tasks.generate.arrival_cv": burst}) for burst in bursts],
        )


if __name__ == "__main__":
    run(bench)
