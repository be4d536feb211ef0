"""How fast the explorer answers in Chromium: slider to repainted chart, a long drag, memory over many changes."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import gpuplan as gp
from browser.screen import Screen
from browser.server import Server
from browser.timing import Bench, Stopwatch, Table, percentile, run
from gpuplan.allocation.model import AllocationScenario

#: Scenario and aim of the 95th percentile from slider to repainted chart, in seconds.
AIMS = (("two-apps", 0.060), ("big-day", 0.100))

MOVES = 30
LONG_DRAG, LONG_DRAG_S, SETTLE_S = 300, 5.0, 0.5
CHANGES, WARM_UP = 600, 60

#: More than this after the changes is no longer called flat.
GROWTH_MB = 5.0

HANDLE = ".gp-penalty .noUi-handle"


def at_penalty(scenario: AllocationScenario, penalty: float) -> AllocationScenario:
    return scenario.replace({"objective.shortfall_penalty": penalty})


def slider_to_picture(table: Table, screen: Screen, base: AllocationScenario, aim: float) -> None:
    """Press an arrow key on the penalty slider again and again, each time after the picture."""
    watch = Stopwatch(screen.page)
    screen.slide("penalty", ["Home"])
    screen.await_scenario(at_penalty(base, 0))
    took = [watch.press("ArrowRight") for _ in range(MOVES)]
    screen.await_scenario(at_penalty(base, MOVES * 0.25))
    name = f"slider to repainted chart, {base.name}, {MOVES} moves"
    table.seconds(f"{name}: median", percentile(took, 0.5))
    table.seconds(f"{name}: p95", percentile(took, 0.95), aim)
    table.seconds(f"{name}: the first", took[0])


# Moves the mouse by the clock: what a busy page was late for comes at once, as a browser does it.
_DRAG = """
async ([handle, track, moves, seconds]) => {
  const grip = document.querySelector(handle);
  const rail = document.querySelector(track).getBoundingClientRect();
  const point = (type, x, buttons) => grip.dispatchEvent(new MouseEvent(type, {
    clientX: x, clientY: rail.y + rail.height / 2, buttons,
    bubbles: true, cancelable: true }));
  const start = grip.getBoundingClientRect();
  point("mousedown", start.x + start.width / 2, 1);
  const began = performance.now();
  for (let move = 1; move <= moves; move++) {
    const due = began + move * seconds * 1000 / moves - performance.now();
    if (due > 0) await new Promise((next) => setTimeout(next, due));
    const share = move === moves ? 1.2 : Math.abs((move / 60 + 1) % 2 - 1);   // to and fro in two seconds
    point("mousemove", rail.x + share * rail.width, 1);
  }
  return (performance.now() - began) / 1000;
}
"""


def long_drag(table: Table, screen: Screen, base: AllocationScenario) -> None:
    """Drag the penalty slider to and fro at 60 moves a second; the last value must be there soon after."""
    watch = Stopwatch(screen.page)
    rail = ".gp-penalty .noUi-base"
    dragged = screen.page.evaluate(_DRAG, [HANDLE, rail, LONG_DRAG, LONG_DRAG_S])
    settled = watch.settled()
    pictures = len(watch.paints)
    screen.await_scenario(at_penalty(base, 20))
    assert len(watch.paints) == pictures, "a picture came after a second without any"
    screen.page.evaluate(
        "(handle) => document.querySelector(handle)"
        ".dispatchEvent(new MouseEvent('mouseup', { bubbles: true }))",
        HANDLE,
    )
    note = f"{len(watch.inputs)} moves in {dragged:.1f} s, {pictures} pictures"
    table.seconds(f"last value on screen after a long drag, {base.name}", settled, SETTLE_S, note)


def memory(table: Table, screen: Screen, base: AllocationScenario) -> None:
    """Change the plan hundreds of times; what the page holds afterwards, garbage collected."""
    page = screen.page
    session = page.context.new_cdp_session(page)
    session.send("Performance.enable")

    def held() -> dict[str, float]:
        for _ in range(3):
            session.send("HeapProfiler.collectGarbage")
        metrics = session.send("Performance.getMetrics")["metrics"]
        return {metric["name"]: metric["value"] for metric in metrics}

    watch = Stopwatch(page)
    screen.slide("penalty", ["Home"])
    screen.await_scenario(at_penalty(base, 0))
    to_and_fro = ["ArrowRight"] * 30 + ["ArrowLeft"] * 30
    watch.press_many(HANDLE, to_and_fro * (WARM_UP // 60))
    before = held()
    watch.press_many(HANDLE, to_and_fro * (CHANGES // 120))
    halfway = held()
    watch.press_many(HANDLE, to_and_fro * (CHANGES // 120))
    after = held()
    screen.await_scenario(at_penalty(base, 0))
    mb = [values["JSHeapUsedSize"] / 1e6 for values in (before, halfway, after)]
    more = {name: int(after[name] - before[name]) for name in ("Nodes", "JSEventListeners")}
    note = (
        f"{mb[0]:.1f} to {mb[1]:.1f} to {mb[2]:.1f} MB; "
        f"{more['Nodes']:+d} nodes, {more['JSEventListeners']:+d} listeners"
    )
    name = f"JavaScript heap over {CHANGES} changes, {base.name}"
    table.text(name, f"{mb[2] - mb[0]:+.1f} MB", f"{GROWTH_MB:g} MB", note)


def of_scenario(table: Table, bench: Bench, server: Server, name: str, aim: float) -> None:
    base = gp.load(name)
    screen = bench.explorer(server, name)
    screen.await_scenario(base)
    with table.answers(f"slider to repainted chart, {name}"):
        slider_to_picture(table, screen, base, aim)
    with table.answers(f"long drag, {name}"):
        long_drag(table, screen, base)
    with table.answers(f"memory, {name}"):
        memory(table, screen, base)


def bench(table: Table, bench: Bench) -> None:
    server = bench.server()
    for name, aim in AIMS:
        of_scenario(table, bench, server, name, aim)


if __name__ == "__main__":
    run(bench)
