"""An editor for demand curves: GPUs per step, by hand or by keyboard."""

from collections.abc import Mapping, Sequence
from typing import Any

import anywidget
import traitlets as t

from gpuplan_widgets.build_bundle import STATIC


class CurveEditor(anywidget.AnyWidget):
    """Demand curves of one or several apps; one is edited, the others stand behind it.

    Parameters
    ----------
    curves
        Demand by app name: one whole number of GPUs per step, all of one length (up to 1,008).
    vmax
        Top of the scale in GPUs, as a rule the size of the cluster.
    step_hours
        Length of a step in hours.

    Notes
    -----
    Up to 64 steps have a handle each; longer curves have one handle that walks along the curve.
    The trait `curves` changes while the hand moves; `edits` counts finished gestures.
    """

    _esm = (STATIC / "curve_editor.js").read_text(encoding="utf-8")
    _css = (STATIC / "curve_editor.css").read_text(encoding="utf-8")

    names = t.List(t.Unicode()).tag(sync=True)
    curves = t.List(t.List(t.Int())).tag(sync=True)
    app = t.Int(0).tag(sync=True)
    vmax = t.Int(1).tag(sync=True)
    step_hours = t.Float(1.0).tag(sync=True)
    continuous = t.Bool(True).tag(sync=True)
    edits = t.Int(0).tag(sync=True)

    def __init__(
        self, curves: Mapping[str, Sequence[int]] | None = None, *, vmax: int = 8, step_hours: float = 1.0
    ) -> None:
        super().__init__(**_traits(curves or {}, vmax, step_hours))

    def show(self, curves: Mapping[str, Sequence[int]], *, vmax: int, step_hours: float) -> None:
        """Show other curves; what is equal already is not sent again."""
        with self.hold_sync():
            for name, value in _traits(curves, vmax, step_hours).items():
                if getattr(self, name) != value:
                    setattr(self, name, value)
            if self.app >= max(1, len(self.names)):
                self.app = 0

    @property
    def demand(self) -> dict[str, list[int]]:
        """Demand by app name, as it stands in the editor."""
        return {name: list(curve) for name, curve in zip(self.names, self.curves, strict=True)}

    def __repr__(self) -> str:
        return f"CurveEditor({len(self.names)} apps)"


def _traits(curves: Mapping[str, Sequence[int]], vmax: int, step_hours: float) -> dict[str, Any]:
    """Trait values; the scale reaches the highest demand where that is above the cluster."""
    plain = [[int(value) for value in curve] for curve in curves.values()]
    top = max([vmax, *(max(curve, default=0) for curve in plain)])
    return {"names": list(curves), "curves": plain, "vmax": int(top), "step_hours": float(step_hours)}
