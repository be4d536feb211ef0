"""What the packing explorer writes about the runs on screen: the change, models, figures, charts as tables."""

import html
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import ipywidgets as W

from gpuplan.inputs.errors import shorten
from gpuplan.packing.run import PackRun
from gpuplan_widgets import packing_tables as tables
from gpuplan_widgets.packing_why import Why
from gpuplan_widgets.packing_words import summary_html

#: The folds, in their order.
WHY, MODELS, ALL_FIGURES, CHARTS = range(4)
TITLES = (
    "Why does this task wait?",
    "The models",
    "All figures and what they mean",
    "The charts as tables",
)


class PackingAccount:
    """The written part of a packing explorer; what is folded away is not written.

    Parameters
    ----------
    runs
        The runs under ``"left"`` and ``"right"``.
    charts
        Gives the numbers of the chart on screen as HTML.

    Attributes
    ----------
    summary, figures : HTML
        The change in words with its warnings; the main figures.
    fold : Accordion
        `why`, `models`, `all_figures` and `charts`, written when they are opened.
    """

    def __init__(self, runs: Mapping[str, PackRun], charts: Callable[[], str]) -> None:
        self._runs, self._given, self._remarks = dict(runs), dict[str, PackRun](), list[str]()
        self._charts_html = charts
        self.summary = _html("gp-summary")
        self.figures = _html("gp-figures-table")
        self.models = _html("gp-figures-table")
        self.all_figures = _html("gp-figures-table")
        self.charts = _html("gp-chart-tables")
        self.why = Why(runs)
        folded = [self.why.box, self.models, self.all_figures, self.charts]
        self.fold = W.Accordion(folded, titles=TITLES, selected_index=None)
        self.fold.add_class("gp-all-figures")
        self.fold.observe(lambda _change: self._unfolded(), "selected_index")

    def show(
        self, runs: Mapping[str, PackRun], given: Mapping[str, PackRun], remarks: Sequence[str] = ()
    ) -> None:
        """Write about other runs; `given` are those of the scenario as it was given, where that is another one."""
        self._runs, self._given, self._remarks = dict(runs), dict(given), list(remarks)
        set_html(self.summary, summary_html(runs, given, remarks))
        set_html(self.figures, tables.main_html(runs["left"], runs["right"]))
        self.mark(old=False)
        self.why.show(runs)
        self._unfolded()

    def mark(self, *, old: bool) -> None:
        """Mark the summary as old, like the picture."""
        (self.summary.add_class if old else self.summary.remove_class)("gp-old")

    def page(self) -> str:
        """What a page without a kernel shows: the change in words, the main figures, the models."""
        left, right = self._runs["left"], self._runs["right"]
        name = html.escape(shorten(left.scenario.name, 200))
        return (
            f"<p><b>{name}</b></p>{summary_html(self._runs, self._given, self._remarks)}"
            f"{tables.main_html(left, right)}{tables.models_html(left, right)}<p>Run the cell to move the controls.</p>"
        )

    def _unfolded(self) -> None:
        left, right = self._runs["left"], self._runs["right"]
        self.why.unfold(self.fold.selected_index == WHY)
        if self.fold.selected_index == MODELS:
            set_html(self.models, tables.models_html(left, right))
        elif self.fold.selected_index == ALL_FIGURES:
            set_html(self.all_figures, tables.all_html(left, right))
        elif self.fold.selected_index == CHARTS:
            set_html(self.charts, self._charts_html())


def _html(css: str) -> Any:
    widget = W.HTML("")
    widget.add_class(css)
    return widget


def set_html(widget: Any, value: str) -> None:
    """Write what differs; what is equal is not sent."""
    if widget.value != value:
        widget.value = value
