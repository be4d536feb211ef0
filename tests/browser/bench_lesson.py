"""How long the first lesson takes until its charts are there, in fresh kernels with a cold and a warm cache."""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import gpuplan as gp
from browser.desk import OPENING_S, Desk
from browser.screen import Screen
from browser.server import Server
from browser.timing import Bench, Stopwatch, Table, run
from gpuplan.inputs.folders import data_folder
from gpuplan.lab import FIRST_NOTEBOOK

#: Aims in seconds after the imports, by state of numba's cache.
AIMS = {"cold": 6.0, "warm": 1.0}

#: A move of the slider that would compile something takes a second or more.
FIRST_MOVE_S = 0.25

# What gpuplan itself loads late: a kernel that has it is "after imports".
IMPORTS = "import altair, numba, numpy, pandas, ipywidgets, gpuplan_widgets.explorer\nimport gpuplan as gp"

EXPLORER = 'explorer = gp.explore("training-rush")\nexplorer'

# Runs the cells up to and including the one with a number, and says when a frame shows its chart.
_RUN_UNTIL = """
async ([first, last, chart]) => {
  const panel = window.jupyterapp.shell.currentWidget;
  const notebook = panel.content;
  const began = performance.now();
  for (let number = first; number <= last; number++) {
    notebook.activeCellIndex = number;
    notebook.deselectAll();
    await window.jupyterapp.commands.execute("notebook:run-cell");
  }
  const ran = performance.now();
  const shows = () => notebook.widgets[last].node.querySelector(chart);
  while (!shows()) await new Promise((next) => requestAnimationFrame(next));
  await new Promise((next) => requestAnimationFrame(next));
  return [(ran - began) / 1000, (performance.now() - began) / 1000];
}
"""

# A chart that stands alone, however it is drawn.
_STATIC = ", ".join(f".jp-OutputArea-output {tag}" for tag in ("svg", "canvas", "iframe", "img"))
_LIVE = ".gp-chart[data-rev] canvas"


def run_until(desk: Desk, first: int, last: int, chart: str) -> float:
    """Run cells `first` to `last`; seconds until the chart of the last one is on screen."""
    desk.page.set_default_timeout(OPENING_S * 1000)
    _, seconds = desk.page.evaluate(_RUN_UNTIL, [first, last, chart])
    return float(seconds)


def lesson(table: Table, bench: Bench, server: Server, cache: str) -> None:
    """The lesson as it is: from its first cell on, imports included, to its first chart."""
    name = f"{cache}-{FIRST_NOTEBOOK}"
    shutil.copy(data_folder("notebooks") / FIRST_NOTEBOOK, server.folder / name)
    desk = bench.desk(server, name)
    desk.clear()
    code = desk.code()
    drawing = next(number for number, source in code.items() if "charts.gantt(" in source)
    seconds = run_until(desk, min(code), drawing, _STATIC)
    table.seconds(f"first chart of the lesson, {cache} cache, imports included", seconds)
    assert desk.failed_cells() == []


def explorer(table: Table, bench: Bench, server: Server, cache: str) -> None:
    """The lesson's explorer in a kernel that has imported everything, and its first move."""
    desk = bench.desk(server, server.write(f"{cache}.ipynb", IMPORTS, EXPLORER))
    desk.page.evaluate(_RUN_UNTIL, [0, 0, ".jp-InputArea-prompt"])
    seconds = run_until(desk, 1, 1, _LIVE)
    screen = Screen(desk.page).ready()
    base = gp.load("training-rush")
    screen.handle("penalty").focus()
    watch = Stopwatch(desk.page)
    first = watch.press("Home")
    screen.await_scenario(base.replace({"objective.shortfall_penalty": 0}))
    table.seconds(f"first live chart after imports, {cache} cache", seconds, AIMS[cache])
    table.seconds(f"first move of its slider, {cache} cache", first, FIRST_MOVE_S)


def fill(cache: str) -> None:
    """Compile everything into numba's cache; a kernel may still have been at it in the background."""
    program = "from gpuplan.allocation.plan import warm_up; warm_up()"
    subprocess.run([sys.executable, "-c", program], env=os.environ | {"NUMBA_CACHE_DIR": cache}, check=True)


def bench(table: Table, bench: Bench) -> None:
    for what, measure in (("explorer", explorer), ("lesson", lesson)):
        with tempfile.TemporaryDirectory(prefix="gpuplan-cache-", ignore_cleanup_errors=True) as folder:
            server = bench.server({"NUMBA_CACHE_DIR": folder})
            with table.answers(f"{what}, cold cache"):
                measure(table, bench, server, "cold")
            fill(folder)
            with table.answers(f"{what}, warm cache"):
                measure(table, bench, server, "warm")


if __name__ == "__main__":
    run(bench)
