"""What the rolling explorer writes: figures so far and of all days, promises against what came, risk, idle windows."""

import html
from collections.abc import Mapping
from typing import Any

import ipywidgets as W

from gpuplan.allocation.lookahead import outlook
from gpuplan.allocation.rolling_run import RollingRun
from gpuplan.gantt import Columns
from gpuplan.inputs.errors import shorten
from gpuplan_widgets import rolling_tables as tables


class RollingAccount:
    """The written part of a rolling explorer; what is folded away is not written.

    Attributes
    ----------
    figures : HTML
        Figures so far and of all days, a pair of columns per policy.
    promised, risk, idle : HTML
        What the plan of the moment promised and what came; hours without slack; windows in which GPUs stand idle.
    fold : Accordion
        `all_figures` of all days, and the chart as a `table`; written when they are opened.
    """

    def __init__(self) -> None:
        self.figures, self.promised, self.risk, self.idle = (
            _html(f"gp-roll-{name}") for name in ("figures", "promised", "risk", "idle")
        )
        self.all_figures = _html("gp-roll-all-figures")
        self.table = _html("gp-chart-tables")
        titles = ("All figures of all days", "The chart as tables")
        self.fold = W.Accordion([self.all_figures, self.table], titles=titles, selected_index=None)
        self.fold.add_class("gp-all-figures")
        self._runs: Mapping[str, RollingRun] = {}
        self._shown = ""
        self._drawn: Mapping[str, Columns] = {}
        self.fold.observe(lambda _change: self._unfolded(), "selected_index")

    def parts(self, margin: Any) -> Any:
        """The tables as a box that wraps; the control of the margin stands over the risk."""
        # A least height, so that the page does not jump while the days play.
        wide = {"flex": "1 1 440px", "min_width": "0", "overflow": "visible"}
        columns = [
            W.VBox([self.figures, self.promised], layout=W.Layout(**wide)),
            W.VBox([margin, self.risk, self.idle], layout=W.Layout(min_height="420px", **wide)),
        ]
        return W.HBox(columns, layout=W.Layout(flex_flow="row wrap", align_items="flex-start"))

    def show(
        self,
        runs: Mapping[str, RollingRun],
        shown: str,
        number: int,
        margin: float,
        drawn: Mapping[str, Columns],
    ) -> None:
        """Write about a moment of the runs, and of the plan of the one that is shown; `drawn` is its chart."""
        self._runs, self._shown, self._drawn = runs, shown, drawn
        run = runs[shown]
        risks, windows = outlook(run, number, margin)
        _set(self.figures, tables.figures_html(runs, run.promises[number].step))
        _set(self.promised, tables.promised_html(run, number))
        _set(self.risk, tables.risk_html(run, number, risks, margin))
        _set(self.idle, tables.idle_html(run, windows))
        self._unfolded()

    def page(self) -> str:
        """What a page without a kernel shows: all figures of all days."""
        names = (run.name for run in self._runs.values())
        name = html.escape(shorten(next(names, ""), 200))
        return f"<p><b>{name}</b></p>{tables.all_figures_html(self._runs)}<p>Run the cell to move through the days.</p>"

    def _unfolded(self) -> None:
        if self.fold.selected_index == 0:
            _set(self.all_figures, tables.all_figures_html(self._runs))
        elif self.fold.selected_index == 1:
            _set(self.table, tables.chart_html(self._runs[self._shown], self._drawn))


def _html(css: str) -> Any:
    widget = W.HTML("")
    widget.add_class(css)
    return widget


def _set(widget: Any, value: str) -> None:
    if widget.value != value:
        widget.value = value
