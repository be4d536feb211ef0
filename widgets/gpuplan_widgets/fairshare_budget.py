"""An editor for the budget tree: shares that add up to 100 % among siblings, whatever is dragged."""

from collections.abc import Mapping, Sequence
from typing import Any

import anywidget
import traitlets as t

from gpuplan.fairshare.model import BudgetNode
from gpuplan_widgets import fairshare_shares as shares
from gpuplan_widgets.build_bundle import STATIC

#: Most budgets that the page shows; the others keep their weights.
MOST_ROWS = 300


class BudgetEditor(anywidget.AnyWidget):
    """Sliders for the shares of a budget tree; dragging one takes from its siblings in proportion, or gives to them.

    Parameters
    ----------
    budget
        The budgets at the top.
    gpus
        GPUs installed, for what a share means in GPUs.
    colours
        Colours of teams in the charts, by path.

    Notes
    -----
    The weights live here; the page sends what the person did (``share``, ``mute``) and shows what comes back. Only
    the weight of the budget that is moved changes, so a weight stays as the scenario says until it is touched.
    `edits` counts changes by the person and is what to observe.
    """

    _esm = (STATIC / "budget_editor.js").read_text(encoding="utf-8")
    _css = "".join(
        (STATIC / name).read_text(encoding="utf-8") for name in ("live_chart.css", "budget_editor.css")
    )

    budgets = t.List(t.Dict()).tag(sync=True)
    numbers = t.List(t.List()).tag(sync=True)
    hidden = t.Int(0).tag(sync=True)
    seen = t.Int(0).tag(sync=True)
    edits = t.Int(0)

    def __init__(
        self, budget: Sequence[BudgetNode] = (), gpus: int = 0, colours: Mapping[str, str] | None = None
    ) -> None:
        super().__init__()
        self.show(budget, gpus, colours)
        self.on_msg(self._heard)

    def show(self, budget: Sequence[BudgetNode], gpus: int, colours: Mapping[str, str] | None = None) -> None:
        """Show another tree, untouched."""
        self._rows = shares.rows_of(budget)
        self._given = shares.weights_of(budget)
        self._weights = list(self._given)
        self._muted: dict[int, float] = {}
        self._gpus = gpus
        found = [
            {
                "name": row.name,
                "path": row.path,
                "depth": row.depth,
                "parent": row.parent,
                "leaf": row.leaf,
                "colour": (colours or {}).get(row.path, ""),
            }
            for row in self._rows[:MOST_ROWS]
        ]
        with self.hold_sync():
            if found != self.budgets:
                self.budgets = found
            self.hidden = max(0, len(self._rows) - MOST_ROWS)
            self._tell()

    @property
    def paths(self) -> list[str]:
        """Paths of the budgets, in the order of the file."""
        return [row.path for row in self._rows]

    @property
    def weights(self) -> dict[str, float]:
        """Weight of each budget among its siblings, by path."""
        return dict(zip(self.paths, self._weights, strict=True))

    @property
    def shares(self) -> dict[str, float]:
        """Share of each budget among its siblings, by path."""
        among = shares.among_siblings(self._rows, self._weights)
        return dict(zip(self.paths, among, strict=True))

    @property
    def changes(self) -> dict[str, float]:
        """Weights that differ from those of the scenario, by dotted path."""
        return dict(shares.changed(self._rows, self._given, self._weights))

    @property
    def muted(self) -> list[str]:
        """Paths of the budgets that were given nothing here."""
        rows = enumerate(self._rows)
        return [row.path for k, row in rows if self._weights[k] == 0 != self._given[k]]

    def set_share(self, path: str, share: float) -> None:
        """Give a budget a share (0 to 1) among its siblings; the last one that has any keeps all of it."""
        self._move(self._row(path), share)
        self.edits += 1

    def mute(self, path: str, on: bool = True) -> None:
        """Give a budget nothing, or what it had before; the last one that has any cannot be muted."""
        self._mute(self._row(path), on)
        self.edits += 1

    def restore(self, changes: Mapping[str, float]) -> None:
        """Weights as the scenario has them but for some, by dotted path."""
        places = list(shares.changed(self._rows, self._given, [weight + 1 for weight in self._given]))
        self._muted = {}
        for row, place in enumerate(places):
            self._weights[row] = float(changes.get(place, self._given[row]))
            if self._weights[row] == 0 and self._given[row] > 0:
                self._muted[row] = self._given[row]
        self._tell()

    def reset(self) -> None:
        """Weights as the scenario has them."""
        self._weights, self._muted = list(self._given), {}
        self._tell()

    def __repr__(self) -> str:
        return f"BudgetEditor({len(self._rows)} budgets)"

    # ------------------------------------------------------------------ what the person does

    def _heard(self, _widget: Any, content: Mapping[str, Any], _buffers: Any) -> None:
        found, kind = content.get("row"), content.get("type")
        row = found if isinstance(found, int) and 0 <= found < len(self._rows) else -1
        with self.hold_sync():  # the answer and that it was heard, in one message
            if row >= 0 and kind == "share" and isinstance(content.get("share"), int | float):
                self._move(row, float(content["share"]))
            elif row >= 0 and kind == "mute":
                self._mute(row, bool(content.get("on")))
            seq = content.get("seq")
            if isinstance(seq, int):
                self.seen = seq
        self.edits += 1

    def _move(self, row: int, share: float) -> None:
        others = shares.rest(self._rows, self._weights, row)
        if others > 0 and share == share:
            self._remember(row)
            self._weights[row] = shares.weight_for(share, others)
        self._tell()

    def _mute(self, row: int, on: bool) -> None:
        if on and shares.rest(self._rows, self._weights, row) > 0:
            self._remember(row)
            self._weights[row] = 0.0
        elif not on and self._weights[row] == 0:
            self._weights[row] = self._muted.get(row) or self._given[row] or self._usual(row)
        self._tell()

    def _remember(self, row: int) -> None:
        if self._weights[row] > 0:
            self._muted[row] = self._weights[row]

    def _usual(self, row: int) -> float:
        """A weight for a budget that never had any: the mean of its siblings'."""
        siblings = shares.families(self._rows)[self._rows[row].parent]
        return shares.rest(self._rows, self._weights, row) / max(1, len(siblings) - 1) or 1.0

    def _row(self, path: str) -> int:
        return self.paths.index(path)

    def _tell(self) -> None:
        """Shares for the page: per cent among siblings, of the cluster, GPUs; muted; whether it can move."""
        among = shares.among_siblings(self._rows, self._weights)
        whole = shares.of_all(self._rows, among)
        shown = [0.0] * len(among)
        fixed = [False] * len(among)
        for siblings in shares.families(self._rows).values():
            for row, percent in zip(siblings, shares.percents([among[row] for row in siblings]), strict=True):
                shown[row] = percent
            having = [row for row in siblings if self._weights[row] > 0]
            if len(having) == 1:
                fixed[having[0]] = True
        found = [
            [
                shown[row],
                round(100 * whole[row], 1),
                round(whole[row] * self._gpus, 1),
                among[row] == 0,
                fixed[row],
            ]
            for row in range(min(len(among), MOST_ROWS))
        ]
        if found != self.numbers:
            self.numbers = found
