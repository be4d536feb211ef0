"""Charts that need no outside address: an Altair chart around a finished spec, its data inside."""

import base64
import copy
import struct
import zlib
from typing import Any, Literal

import altair as alt

from gpuplan import gantt as drawing
from gpuplan import theme
from gpuplan.gantt.columns import Columns
from gpuplan.gantt.layers import SCHEMA, Spec, unbroken

#: Key of `usermeta`: dots per pixel of the picture in a notebook; without it 1.5.
PICTURE_SCALE = "picture_scale"


class OfflineChart(alt.Chart):
    """Altair chart around a finished spec: `to_dict`, `to_json`, `to_html(inline=True)`, `save` and `show` work.

    A notebook shows it as a picture, with the numbers in words beside it, because Altair's own way of showing
    a chart loads Vega from an outside address. Title, background and the like can be changed with `properties`; a
    layer cannot be added. (Taking a spec of this size apart into Altair's classes lasts seconds.)
    """

    def __init__(self, spec: Spec | None = None, **properties: Any) -> None:
        super().__init__(**properties)
        object.__setattr__(self, "_spec", spec or {})

    def copy(self, deep: bool | Any = True, ignore: list[str] | None = None) -> "OfflineChart":
        """Copy around the same spec."""
        return OfflineChart(self._spec, **self._kwds)

    def to_dict(
        self,
        validate: bool = True,
        *,
        format: Literal["vega-lite", "vega"] = "vega-lite",
        ignore: list[str] | None = None,
        context: dict[str, Any] | None = None,
    ) -> dict[str, Any]:
        """The spec as a Vega-Lite dict (or compiled to Vega), data inside."""
        changed = {name: self._kwds.get(name, alt.Undefined) for name in _CHANGEABLE}
        changed = {
            name: value.to_dict() if hasattr(value, "to_dict") else value
            for name, value in changed.items()
            if value is not alt.Undefined
        }
        whole: dict[str, Any] = copy.deepcopy(self._spec) | changed
        if format == "vega-lite":
            return whole
        import vl_convert

        compiled: dict[str, Any] = vl_convert.vegalite_to_vega(whole)
        return compiled

    def save(self, fp: Any, format: Any = None, *args: Any, **options: Any) -> None:
        """Write the chart to a file as Altair does; a picture does not ask to be dragged."""
        kind = format or str(fp).rpartition(".")[2]
        chart = OfflineChart(drawing.still(self._spec), **self._kwds) if kind in _PICTURES else self
        super(OfflineChart, chart).save(fp, format, *args, **options)

    def _repr_mimebundle_(self, *args: Any, **kwargs: Any) -> Any:
        bundle: dict[str, Any] = {"text/plain": repr(self)}
        try:
            import vl_convert
        except ImportError:
            return bundle
        whole = self.to_dict()
        scale = whole.get("usermeta", {}).get(PICTURE_SCALE, 1.5)
        picture = repacked(vl_convert.vegalite_to_png(drawing.still(whole), scale=scale))
        bundle["image/png"] = base64.b64encode(picture).decode("ascii")
        return bundle

    def __repr__(self) -> str:
        return f"Chart of {self._spec.get('description', 'nothing')}"

    def _refuse(self, other: Any) -> Any:
        raise TypeError("this chart is complete: save it, or draw several plans with gantt_pair or dashboard")

    __add__ = __and__ = __or__ = _refuse


_PICTURES = ("png", "svg", "pdf")
_CHANGEABLE = ("title", "background", "padding", "description", "usermeta")


def repacked(png: bytes) -> bytes:
    """The same PNG with its pixels packed tighter (to a quarter), so that notebooks stay small."""
    chunks, at = [], 8
    while at < len(png):
        (length,) = struct.unpack(">I", png[at : at + 4])
        chunks.append((png[at + 4 : at + 8], png[at + 8 : at + 8 + length]))
        at += 12 + length
    pixels = zlib.compress(zlib.decompress(b"".join(body for kind, body in chunks if kind == b"IDAT")), 6)
    before = [chunk for chunk in chunks if chunk[0] not in (b"IDAT", b"IEND")]
    packed = [png[:8]]
    for kind, body in [*before, (b"IDAT", pixels), (b"IEND", b"")]:
        packed += [struct.pack(">I", len(body)), kind, body, struct.pack(">I", zlib.crc32(kind + body))]
    return b"".join(packed)


def offline_chart(spec: Spec, sets: dict[str, Columns], mode: theme.Mode, description: str) -> OfflineChart:
    """A finished chart: a spec, its data sets by name, the colours of a mode, and what it shows in words."""
    head = {"$schema": SCHEMA, "description": description}
    return OfflineChart(drawing.inline(head | spec, sets, mode))


def finished(chart: alt.TopLevelMixin) -> OfflineChart:
    """A chart of Altair's own as one that is shown without an outside address, names in it as text."""
    spec: Spec = unbroken(chart.to_dict())
    return OfflineChart(spec)
