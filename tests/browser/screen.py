"""What an explorer shows, read from the page, and how a person moves its controls."""

from collections.abc import Sequence
from typing import Any

from playwright.sync_api import Locator, Page

from browser.desk import OPENING_S, until
from gpuplan.allocation.model import AllocationScenario
from gpuplan.allocation.plan import Plan, plan

#: A picture as text: for each GPU and step who holds it ("" for nobody).
Picture = list[list[str]]

# What Vega has drawn: the items of a named mark, each with its row of data and its rectangle on the page.
_DRAWN = """
(name) => {
  const host = document.querySelector(".gp-chart .gp-chart-host");
  const view = host.vegaView;
  const box = host.querySelector("canvas").getBoundingClientRect();
  const found = [];
  const visit = (mark, x, y) => {
    for (const item of mark.items) {
      const [left, top] = [x + (item.x ?? 0), y + (item.y ?? 0)];
      if (mark.name === name)
        found.push({ ...item.datum, box: [left, top, item.width, item.height] });
      if (mark.marktype === "group") for (const inner of item.items) visit(inner, left, top);
    }
  };
  const [left, top] = view.origin();
  visit(view.scenegraph().root, box.left + left, box.top + top);
  return found;
}
"""

_ROWS = """
(name) => document.querySelector(".gp-chart .gp-chart-host").vegaView.data(name).map((row) => ({ ...row }))
"""


class Screen:
    """The explorer on a page of JupyterLab."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.chart = page.locator(".gp-chart")
        self.points = page.locator(".gp-curve-point")
        self.jobs = page.locator(".gp-jobs-table tbody tr")

    def ready(self) -> "Screen":
        """Wait for the first chart."""
        self.page.locator(".gp-chart[data-rev] canvas").wait_for(timeout=OPENING_S * 1000)
        return self

    @property
    def rev(self) -> int:
        """Number of the picture on screen."""
        return int(self.chart.get_attribute("data-rev") or 0)

    def rows(self, name: str) -> list[dict[str, Any]]:
        """Rows of a data set that Vega draws."""
        rows: list[dict[str, Any]] = self.page.evaluate(_ROWS, name)
        return rows

    def drawn(self, mark: str) -> list[dict[str, Any]]:
        """Items of a mark that Vega has drawn: their data, and under ``box`` their place on the page."""
        items: list[dict[str, Any]] = self.page.evaluate(_DRAWN, mark)
        return items

    def bars(self, side: str) -> list[dict[str, Any]]:
        """Bars of a Gantt as they are drawn."""
        return self.drawn(f"{side}_bars_marks")

    def picture(self, side: str, like: Plan) -> Picture:
        """The bars of a side as a grid of the size that a plan has."""
        horizon = like.scenario.horizon
        hours = horizon.step_hours
        grid = [["" for _ in range(horizon.steps)] for _ in range(like.scenario.cluster.gpus)]
        for bar in self.bars(side):
            if bar["kind"] == "unmet":
                continue
            for gpu in range(round(bar["y"] + 0.5), round(bar["y2"] + 0.5)):
                for step in range(round(bar["x"] / hours), round(bar["x2"] / hours)):
                    assert grid[gpu][step] == "", f"two bars on GPU {gpu} in step {step}"
                    grid[gpu][step] = bar["job"] or bar["kind"]
        return grid

    def shows(self, left: Plan, right: Plan) -> bool:
        """Whether bars, unmet demand and figures on screen are those of two plans."""
        try:
            return all(
                self.picture(side, expected) == picture_of(expected)
                and self._unmet(side) == _unmet_of(expected)
                and self.figures(side) == figures_of(expected)
                for side, expected in (("left", left), ("right", right))
            )
        except (IndexError, AssertionError):  # the picture of another cluster or horizon
            return False

    def await_scenario(self, scenario: AllocationScenario, left: str = "fifo", right: str = "aware") -> None:
        """Wait until the page shows what gpuplan plans in this process for a scenario."""
        self.await_plans(plan(scenario, left), plan(scenario, right))

    def await_plans(self, left: Plan, right: Plan) -> None:
        """Wait until the page shows these plans, and says the same in words."""
        until(lambda: self.shows(left, right), "the page does not show the plans computed here")
        words = f"utilization {_percent(left)} % → {_percent(right)} %"
        self.page.locator(".gp-headline", has_text=words).wait_for()

    def _unmet(self, side: str) -> int:
        bars = [bar for bar in self.bars(side) if bar["kind"] == "unmet"]
        return round(sum(int(bar["job"].split()[0]) * (bar["x2"] - bar["x"]) for bar in bars) * 1000)

    def figures(self, side: str) -> str:
        """Title of a Gantt, with the policy and its figures."""
        return str(self.rows(f"{side}_frame")[0]["title"])

    # ------------------------------------------------------------------ controls

    def handle(self, control: str) -> Locator:
        """Handle of a slider."""
        return self.page.locator(f".gp-{control} .noUi-handle")

    def slide(self, control: str, keys: Sequence[str]) -> None:
        """Press keys on the handle of a slider."""
        self.handle(control).focus()
        for key in keys:
            self.page.keyboard.press(key)

    def choose(self, control: str, text: str) -> None:
        """Choose from a list."""
        self.page.locator(f".gp-{control} select").select_option(label=text)

    def cell(self, job: str, field: str) -> Locator:
        """Cell of the job table, by the name of its job."""
        return self.page.locator(f".gp-jobs-table [data-field={field}][aria-label$={_quoted(' of ' + job)}]")

    def point(self, step: int) -> Locator:
        """A point of the demand curve that is edited."""
        return self.points.nth(step)

    def message(self, control: str) -> Locator:
        """The sentence beside a control."""
        return self.page.locator(f".gp-message-{control} [role=alert]")


def picture_of(plan: Plan) -> Picture:
    """The grid of a plan, with names."""
    names = [work.name for work in (*plan.scenario.batch, *plan.scenario.realtime)]
    blank = {-1: "", -2: "unavailable"}
    return [[blank.get(code) if code < 0 else names[code] for code in row] for row in plan.grid.tolist()]


def _unmet_of(plan: Plan) -> int:
    return round(int((plan.demand - plan.served).sum()) * plan.scenario.horizon.step_hours * 1000)


def figures_of(plan: Plan) -> str:
    """The title that a plan's Gantt must have."""
    return f"{plan.policy}: utilization {_percent(plan)} %, value {plan.figures['value']:,.1f}"


def _percent(plan: Plan) -> str:
    return f"{100 * float(plan.figures['utilization'] or 0):.1f}"


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
