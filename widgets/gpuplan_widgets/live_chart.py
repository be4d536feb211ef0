"""A chart whose data change while its scroll position, zoom and selection stay."""

import base64
import html
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

import anywidget
import traitlets as t

from gpuplan import gantt, theme
from gpuplan_widgets.build_bundle import STATIC
from gpuplan_widgets.runtime import runtime

#: Column-wise data of one named data set: column name to equally long lists.
Columns = Mapping[str, Sequence[Any]]

#: Rows of a data set that the table form of a chart shows at most.
_TABLE_ROWS = 200


#: Config on a light page. The paper is not left to the page, so that a saved picture has it too.
CONFIG_LIGHT: dict[str, Any] = {**theme.config("light"), "background": "#ffffff"}

#: Config on a dark page; the paper is JupyterLab's.
CONFIG_DARK: dict[str, Any] = {**theme.config("dark"), "background": "#111111"}

#: Pixels that a chart is taken to have before the page has said how many there are.
ROOM = 980


class LiveChart(anywidget.AnyWidget):
    """A Vega-Lite chart, embedded once and then given new data.

    Parameters
    ----------
    spec
        A Vega-Lite 6 specification whose data sets are named (`altair.NamedData`), without data.
    data
        The named data sets, column by column.
    label
        What the chart shows, for screen readers; plain text.
    file_name
        Name, without its ending, of what the save buttons write.
    picture
        Whether a picture (1 to 3 seconds of work for a page of charts) stands in where there is no kernel; else
        tables do.
    config_light, config_dark
        Vega-Lite configs of a light and a dark page.

    Notes
    -----
    `room` is the width in pixels that the page has for the chart; with `adapts` the page waits a moment for a
    specification of that width before it draws for the first time. `status` is said above the chart while
    nothing more urgent is (`old`, `busy`).
    The chart element carries ``data-rev``, the `rev` of the payload on screen. Where a chart is shown
    without a kernel (a re-opened notebook, an exported page) a picture or a table stands in for it.
    """

    _esm = (STATIC / "live_chart.js").read_text(encoding="utf-8")
    _css = (STATIC / "live_chart.css").read_text(encoding="utf-8")

    spec = t.Dict().tag(sync=True)
    payload = t.Dict().tag(sync=True)
    renderer = t.Unicode("canvas").tag(sync=True)
    config_light = t.Dict(CONFIG_LIGHT).tag(sync=True)
    config_dark = t.Dict(CONFIG_DARK).tag(sync=True)
    label = t.Unicode("Chart").tag(sync=True)
    file_name = t.Unicode("gpuplan").tag(sync=True)
    old = t.Bool(False).tag(sync=True)
    note = t.Unicode("Old picture: not from the present settings").tag(sync=True)
    busy = t.Bool(False).tag(sync=True)
    status = t.Unicode("").tag(sync=True)
    room = t.Int(ROOM).tag(sync=True)
    adapts = t.Bool(False).tag(sync=True)

    def __init__(
        self,
        spec: Mapping[str, Any],
        data: Mapping[str, Columns],
        *,
        label: str = "Chart",
        file_name: str = "gpuplan",
        picture: bool = True,
        config_light: Mapping[str, Any] | None = None,
        config_dark: Mapping[str, Any] | None = None,
    ) -> None:
        #: Kept so that the page's one copy of Vega outlives any single chart.
        self.runtime = runtime()
        self.picture = picture
        super().__init__(
            spec=dict(spec),
            payload={"rev": 1, "data": _plain(data), "signals": {}},
            label=label,
            file_name=file_name,
            config_light=dict(config_light or CONFIG_LIGHT),
            config_dark=dict(config_dark or CONFIG_DARK),
        )

    @property
    def rev(self) -> int:
        """Number of the payload; the page shows it as ``data-rev`` once it is drawn."""
        return int(self.payload["rev"])

    def show(
        self,
        data: Mapping[str, Columns],
        *,
        spec: Mapping[str, Any] | None = None,
        signals: Mapping[str, Any] | None = None,
        old: bool = False,
    ) -> None:
        """Draw other data, and another specification where one is given and differs.

        Parameters
        ----------
        data
            All named data sets, column by column.
        spec
            A new specification; replacing it loses zoom and selection.
        signals
            Values of Vega parameters to set.
        old
            Whether the picture stays marked as old.
        """
        with self.hold_sync():
            self.payload = {"rev": self.rev + 1, "data": _plain(data), "signals": dict(signals or {})}
            if spec is not None and spec != self.spec:
                self.spec = dict(spec)
            self.old = old

    def __repr__(self) -> str:
        return f"LiveChart({self.label!r})"

    def static_spec(self) -> dict[str, Any]:
        """Return a complete Vega-Lite specification of what is on screen, data and light config included.

        Titles do not ask for gestures where the specification has `gpuplan.gantt.still_param`.
        """
        data = {name: _rows(columns) for name, columns in self.payload["data"].items()}
        return {**gantt.still(self.spec), "datasets": data, "config": self.config_light}

    def png(self) -> bytes | None:
        """Return what is on screen as a PNG; ``None`` without vl-convert (the extra ``export``)."""
        try:
            import vl_convert
        except ImportError:
            return None
        picture: bytes = vl_convert.vegalite_to_png(self.static_spec(), scale=1)
        return picture

    def html_table(self) -> str:
        """Return the numbers on screen as HTML tables; names stay text."""
        parts = [f'<p class="gp-table-title">{html.escape(self.label)}</p>']
        parts += [_table(name, columns) for name, columns in self.payload["data"].items()]
        return "\n".join(parts)

    def _repr_mimebundle_(self, **kwargs: Any) -> Any:
        bundle = super()._repr_mimebundle_(**kwargs)
        if bundle is None:
            return None
        data, metadata = bundle
        return {**data, **self.stand_in()}, metadata

    def stand_in(self) -> dict[str, str]:
        """Return what a page without a kernel shows, by MIME type: a picture or, failing that, tables."""
        picture = None
        if self.picture:
            with suppress(ValueError):  # vl-convert's word for a specification that it cannot draw
                picture = self.png()
        if picture is None:
            return {"text/html": self.html_table()}
        return {"image/png": base64.b64encode(picture).decode("ascii")}


def _plain(data: Mapping[str, Columns]) -> dict[str, dict[str, list[Any]]]:
    """Lists of Python numbers and texts, as JSON wants them."""
    return {
        name: {
            column: values.tolist() if hasattr(values, "tolist") else list(values)
            for column, values in columns.items()
        }
        for name, columns in data.items()
    }


def _rows(columns: Columns) -> list[dict[str, Any]]:
    """Records of column-wise data."""
    names = list(columns)
    return [dict(zip(names, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def _table(name: str, columns: Columns) -> str:
    """One HTML table of a data set, cut after `_TABLE_ROWS` rows, and saying so."""
    head = "".join(f"<th scope='col'>{html.escape(str(column))}</th>" for column in columns)
    rows = list(zip(*columns.values(), strict=True))
    body = "".join(
        "<tr>" + "".join(f"<td>{html.escape(str(value))}</td>" for value in row) + "</tr>"
        for row in rows[:_TABLE_ROWS]
    )
    more = f" (the first {_TABLE_ROWS} of {len(rows)} rows)" if len(rows) > _TABLE_ROWS else ""
    caption = html.escape(name) + more
    return f"<table><caption>{caption}</caption><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
