"""What an explorer writes about the plans on screen: the change, the figures, the charts as tables, why a job."""

import html
from collections.abc import Mapping, Sequence
from typing import Any

import ipywidgets as W

from gpuplan.allocation.charts import table
from gpuplan.allocation.plan import Plan
from gpuplan.inputs.errors import shorten
from gpuplan_widgets import controls as c
from gpuplan_widgets import sentences

_NO_JOB = ("choose a job", -1)


class Account:
    """The written part of an explorer; what is folded away or not asked for is not written.

    Parameters
    ----------
    plans
        The plans under ``"left"`` and ``"right"``.

    Attributes
    ----------
    summary : HTML
        The change, the distance from the bound, and what a person may take for a fault.
    why, why_text : Dropdown, HTML
        The job whose place is explained, and the explanation; `question` is the whole line with `why` in it.
    fold : Accordion
        `figures` and `tables`, written when they are opened.
    """

    def __init__(self, plans: Mapping[str, Plan]) -> None:
        self._plans = dict(plans)
        self.summary = _html("gp-summary")
        self.figures = _html("gp-figures-table")
        self.tables = _html("gp-chart-tables")
        titles = ("All figures", "The charts as tables")
        self.fold = W.Accordion([self.figures, self.tables], titles=titles, selected_index=None)
        self.fold.add_class("gp-all-figures")
        self.why = W.Dropdown(
            options=[_NO_JOB],
            description="Why does",
            style={"description_width": "initial"},
            tooltip="A job whose start (or absence) is explained on both sides",
            layout=W.Layout(width="330px", max_width="100%"),
        )
        self.why.add_class("gp-why")
        rest = W.Label("start when it does, or not at all?")
        self.question = W.HBox([self.why, rest], layout=W.Layout(flex_flow="row wrap"))
        self.why_text = _html("gp-why-text")

    def listen(self) -> None:
        """Write what is asked for when it is asked for."""
        self.why.observe(lambda _change: self._explain(), "value")
        self.fold.observe(lambda _change: self._unfolded(), "selected_index")

    def show(self, plans: Mapping[str, Plan], remarks: Sequence[str] = ()) -> None:
        """Write about other plans; remarks come first among the notes."""
        self._plans = dict(plans)
        _set(self.summary, sentences.summary_html(plans["left"], plans["right"], remarks))
        self.mark(old=False)
        self._unfolded()
        self._offer_jobs()
        self._explain()

    def mark(self, *, old: bool) -> None:
        """Mark the summary as old, like the picture."""
        (self.summary.add_class if old else self.summary.remove_class)("gp-old")

    def page(self, remarks: Sequence[str] = ()) -> str:
        """What a page without a kernel shows: the change in words, and all figures."""
        left, right = self._plans["left"], self._plans["right"]
        name = html.escape(shorten(left.scenario.name, 200))
        return (
            f"<p><b>{name}</b></p>{sentences.summary_html(left, right, remarks)}"
            f"{sentences.figures_html(left, right)}<p>Run the cell to move the controls.</p>"
        )

    def _unfolded(self) -> None:
        """Write the table that is open."""
        left, right = self._plans["left"], self._plans["right"]
        if self.fold.selected_index == 0:
            _set(self.figures, sentences.figures_html(left, right))
        elif self.fold.selected_index == 1:
            _set(self.tables, table(left, right))

    def _explain(self) -> None:
        """Say why the chosen job is where it is, on both sides."""
        place, batch = self.why.value, self._plans["left"].scenario.batch
        if place is None or not 0 <= place < len(batch):
            _set(self.why_text, "")
            return
        name = batch[place].name
        try:
            lines = [f"{side} ({one.policy}): {one.why(name)}" for side, one in self._plans.items()]
        except Exception as error:  # nobody sees the traceback of a callback
            lines = [f"No explanation: {type(error).__name__}: {error}"]
        _set(self.why_text, "".join(f"<p>{html.escape(line)}</p>" for line in lines))

    def _offer_jobs(self) -> None:
        batch = self._plans["left"].scenario.batch
        names = [_NO_JOB, *((c.short(job.name), place) for place, job in enumerate(batch))]
        if list(self.why.options) != names:
            chosen = self.why.label
            self.why.options = names
            self.why.value = next((place for text, place in names if text == chosen), -1)


def _html(css: str) -> Any:
    widget = W.HTML("")
    widget.add_class(css)
    return widget


def _set(widget: Any, value: str) -> None:
    if widget.value != value:
        widget.value = value
