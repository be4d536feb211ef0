"""The control for models over several GPUs: which model, and over how many."""

import html
from collections.abc import Mapping
from typing import Any

import ipywidgets as W

from gpuplan.gantt import safe_text
from gpuplan.packing.model import PackingScenario
from gpuplan.packing.words import gib

#: Models that are offered: those over several GPUs, then the largest.
OFFERED = 40


class Spread:
    """A choice of a model and a slider of its GPUs; what was set for other models stays.

    Attributes
    ----------
    model : Dropdown
        Rows of the scenario's models.
    over : IntSlider
        GPUs of the chosen one.
    hint : HTML
        What the scheduler reserves for it on each of them.
    """

    def __init__(self, **look: Any) -> None:
        self.model = W.Dropdown(options=[("no model", -1)], description="GPUs of the model", **look)
        self.over = W.IntSlider(1, min=1, max=1, description="spread over", continuous_update=True, **look)
        self.hint = W.HTML("")
        self._base: PackingScenario | None = None
        self._shown: PackingScenario | None = None
        self._chosen: dict[int, int] = {}
        self._quiet = False
        self.model.observe(lambda _change: self._turn(), "value")
        self.over.observe(lambda _change: self._set(), "value")

    def settle(self, scenario: PackingScenario, chosen: Mapping[int, int] | None = None) -> None:
        """Begin with a scenario: its models as they are, but for GPUs that were chosen for some (by row)."""
        self._base = self._shown = scenario
        self._chosen = dict(chosen or {})
        models, count = scenario.models, scenario.gpus.count
        first = sorted(range(len(models)), key=lambda k: (models[k].gpus == 1, -models[k].declared_bytes, k))
        self._quiet = True
        try:
            self.model.options = [(safe_text(models[k].name, 60), k) for k in first[:OFFERED]]
            self.model.value = first[0]
            self.over.max = count
        finally:
            self._quiet = False
        self.over.disabled = self.model.disabled = count == 1
        self._turn()

    def changed(self) -> dict[int, int]:
        """GPUs of the models (by row) for which they are not those of the scenario."""
        models = () if self._base is None else self._base.models
        return {k: over for k, over in self._chosen.items() if over != models[k].gpus}

    def show(self, scenario: PackingScenario) -> None:
        """Say what is reserved in a scenario whose models are those of the one it began with."""
        self._shown = scenario
        self._hint()

    def _turn(self) -> None:
        """Another model: the slider goes to where that one is."""
        k = self.model.value
        if self._quiet or self._base is None or k is None:
            return
        self._quiet = True
        try:
            self.over.value = self._chosen.get(k, self._base.models[k].gpus)
        finally:
            self._quiet = False
        self._hint()

    def _set(self) -> None:
        if not self._quiet and self.model.value is not None:
            self._chosen[self.model.value] = self.over.value

    def _hint(self) -> None:
        """What the chosen model reserves on each of its GPUs."""
        text = ""
        models = () if self._shown is None else self._shown.models
        # what is shown may still be of the scenario before
        if self._shown is not None and not self.over.disabled and 0 <= self.model.value < len(models):
            model = models[self.model.value]
            each = f" on each of {model.gpus} GPUs" if model.gpus > 1 else ""
            text = f'<div class="gp-hint">reserves {html.escape(gib(self._shown.needed(model)))}{each}</div>'
        if self.hint.value != text:
            self.hint.value = text
