"""The usual week of a service, and forecasts of its past days beside what came."""

import textwrap
from typing import TYPE_CHECKING, Any

import numpy as np

from gpuplan import theme
from gpuplan.forecast.backtest import Backtest
from gpuplan.forecast.methods import METHODS
from gpuplan.forecast.profile import DAYS, WeeklyProfile

if TYPE_CHECKING:
    import pandas as pd

    from gpuplan.gantt.offline import OfflineChart

#: Colour, dashes and shape of each method (Okabe-Ito), so that nothing rests on colour alone.
LOOKS: dict[str, tuple[str, list[int], str]] = dict(
    zip(
        METHODS,
        (
            ("#E69F00", [6, 3], "square"),
            ("#CC79A7", [2, 2], "triangle-up"),
            ("#009E73", [8, 3, 2, 3], "diamond"),
            ("#0072B2", [1, 0], "circle"),
            ("#D55E00", [4, 4], "cross"),
        ),
        strict=True,
    )
)

#: Line of what came: seen on a light and on a dark page.
ACTUAL = "#7A7A7A"


def profile_chart(profile: WeeklyProfile, *, width: int = 900, mode: theme.Mode = "light") -> "OfflineChart":
    """The value of each hour of the week (or of the day) as steps; an hour that was never seen is a gap.

    Parameters
    ----------
    profile
        From `gpuplan.forecast.profile.weekly_profile`.
    width
        Pixels of the whole.
    mode
        Colours for a ``"light"`` or a ``"dark"`` page.
    """
    import altair as alt

    from gpuplan.gantt.offline import finished

    data = profile_data(profile)
    hours = len(profile.values)
    weekly = profile.period == "week"
    days = "[" + ",".join(f"'{day}'" for day in DAYS) + ",'']"
    axis = alt.Axis(
        values=list(range(0, hours + 1, 24 if weekly else 3)),
        labelExpr=f"{days}[datum.value / 24]" if weekly else "datum.label",
        labelAlign="left" if weekly else "center",
        grid=weekly,
    )
    zone = f" ({profile.zone})" if profile.zone else ""
    base = alt.Chart(data).encode(
        x=alt.X(
            "from_h:Q",
            scale=alt.Scale(domain=[0, hours], nice=False),
            axis=axis,
            title=f"hour of the {'week' if weekly else 'day'}{zone}",
        ),
        x2="to_h:Q",
    )
    tips = [
        alt.Tooltip("hour:N"),
        alt.Tooltip("value:Q", format=",.4~g", title=f"value ({profile.unit})"),
        alt.Tooltip("seen:Q", title=f"{'weeks' if weekly else 'days'} seen"),
    ]
    y = alt.Y("value:Q", title=profile.unit, scale=alt.Scale(zero=True))
    area = base.mark_rect(color="#0072B2", opacity=0.35).encode(y=y, y2=alt.datum(0), tooltip=tips)
    line = base.mark_rule(color="#0072B2", strokeWidth=2).encode(y=y)
    words = " ".join(profile.notes)
    chart = alt.layer(area, line).properties(width=width - 80, height=220)
    return finished(_dressed(chart, f"{profile.name}: the usual {profile.period}", words, width, mode))


def profile_data(profile: WeeklyProfile) -> "pd.DataFrame":
    """A row per known hour: ``from_h``, ``to_h``, ``hour`` in words, ``value``, ``seen``; a flat one spans a day."""
    frame = profile.to_frame()
    width = 24 if profile.period == "flat" else 1
    frame["from_h"] = np.arange(len(frame)) * width
    frame["to_h"] = frame["from_h"] + width
    hours = [f"{day} {hour:02}:00".strip() for day, hour in zip(frame["day"], frame["hour"], strict=True)]
    frame["hour"] = ["every hour"] if profile.period == "flat" else hours
    return frame[frame["value"].notna()].drop(columns="day")


def backtest_chart(result: Backtest, *, width: int = 900, mode: theme.Mode = "light") -> "OfflineChart":
    """What came and what each method expected, hour by hour; below, the errors, and what is served at what excess.

    Unknown hours are gaps.

    Parameters
    ----------
    result
        From `gpuplan.forecast.backtest.backtest`.
    width
        Pixels of the whole.
    mode
        Colours for a ``"light"`` or a ``"dark"`` page.
    """
    import altair as alt

    from gpuplan.gantt.offline import finished

    each = max(160, width // 2 - 150)
    below = alt.hconcat(_errors(result, each), _excess(result, each), spacing=60).resolve_scale(
        color="independent", shape="independent"
    )
    chart = alt.vconcat(_hours(result, width - 80), below, spacing=30).resolve_scale(
        color="independent", strokeDash="independent", shape="independent"
    )
    figures = result.figures
    said = "; ".join(
        f"{name}: WAPE {found['wape_percent']:.1f} %, {found['served_percent']:.1f} % served, "
        f"{found['over_percent']:.1f} % held beyond demand"
        for name, found in figures.items()
    )
    words = f"Least WAPE over {int(result.compared.sum())} hours: {result.best}. " + " ".join(result.notes)
    title = f"{result.history.name}: each day forecast from what was known before it"
    return finished(_dressed(chart, title, words, width, mode, description=f"{words} {said}."))


def lines_data(result: Backtest) -> "pd.DataFrame":
    """Columns ``hour`` (from the first one), ``series`` (``actual`` or a method) and ``value``; unknown is empty."""
    import pandas as pd

    rows = {"actual": result.actual, **result.expected}
    hours = np.arange(len(result.actual))
    return pd.concat(
        [pd.DataFrame({"hour": hours, "series": name, "value": values}) for name, values in rows.items()],
        ignore_index=True,
    )


def _hours(result: Backtest, width: int) -> Any:
    import altair as alt

    names = list(result.expected)
    series = ["actual", *names]
    colours = alt.Scale(domain=series, range=[ACTUAL, *(LOOKS[name][0] for name in names)])
    dashes = alt.Scale(domain=series, range=[[1, 0], *(LOOKS[name][1] for name in names)])
    start = result.history.at(result.first).isoformat(" ", "minutes")
    hours = len(result.actual)
    ticks = list(range(0, hours + 1, 24 * max(1, hours // 24 // 14)))
    return (
        alt.Chart(lines_data(result))
        .mark_line(strokeWidth=1.8, clip=True)
        .encode(
            x=alt.X(
                "hour:Q",
                title=f"hours from {start}",
                axis=alt.Axis(values=ticks),
                scale=alt.Scale(domain=[0, hours], nice=False),
            ),
            y=alt.Y("value:Q", title=f"{result.history.unit}, mean of the hour"),
            color=alt.Color("series:N", scale=colours, title="line", legend=alt.Legend(orient="top")),
            strokeDash=alt.StrokeDash(
                "series:N", scale=dashes, title="line", legend=alt.Legend(orient="top")
            ),
            strokeWidth=alt.condition("datum.series == 'actual'", alt.value(3), alt.value(1.6)),
            tooltip=["series:N", "hour:Q", alt.Tooltip("value:Q", format=",.4~g")],
        )
        .properties(width=width, height=220)
    )


def _errors(result: Backtest, size: int) -> Any:
    import altair as alt

    table = result.to_frame()
    base = alt.Chart(table).encode(
        y=alt.Y("method:N", sort=list(table["method"]), title=None, axis=alt.Axis(labelLimit=200)),
        x=alt.X("wape_percent:Q", title="WAPE: errors, of the traffic (%)"),
    )
    bars = base.mark_bar().encode(color=_colour(result, legend=False))
    numbers = base.mark_text(align="left", dx=4, style="gp-note").encode(
        text=alt.Text("wape_percent:Q", format=".1f")
    )
    return alt.layer(bars, numbers).properties(width=size, height=160, title="Errors of what was expected")


def _excess(result: Backtest, size: int) -> Any:
    import altair as alt

    names = list(result.expected)
    shapes = alt.Scale(domain=names, range=[LOOKS[name][2] for name in names])
    tips = [
        "method:N",
        alt.Tooltip("over_percent:Q", format=".1f", title="held beyond demand (%)"),
        alt.Tooltip("served_percent:Q", format=".1f", title="served (%)"),
        alt.Tooltip("covered_percent:Q", format=".1f", title="hours covered (%)"),
    ]
    return (
        alt.Chart(result.to_frame())
        .mark_point(size=110, filled=True, opacity=1)
        .encode(
            x=alt.X(
                "over_percent:Q", title="held beyond demand, of the demand (%)", scale=alt.Scale(zero=True)
            ),
            y=alt.Y("served_percent:Q", title="demand served (%)", scale=alt.Scale(zero=False)),
            color=_colour(result, legend=True),
            shape=alt.Shape("method:N", scale=shapes, title="method"),
            tooltip=tips,
        )
        .properties(width=size, height=160, title=f"What is held for {100 * result.quantile:g} % of hours")
    )


def _colour(result: Backtest, *, legend: bool) -> Any:
    import altair as alt

    names = list(result.expected)
    colours = alt.Scale(domain=names, range=[LOOKS[name][0] for name in names])
    if legend:
        return alt.Color("method:N", scale=colours, title="method")
    return alt.Color("method:N", scale=colours, legend=None)


def _dressed(
    chart: Any, title: str, words: str, width: int, mode: theme.Mode, *, description: str | None = None
) -> Any:
    """The chart with a title, its assumptions below it, words for who cannot see it, and the colours of a page."""
    import altair as alt

    return chart.properties(
        title=alt.TitleParams(title, subtitle=textwrap.wrap(words, max(40, width // 7))),
        description=description or f"{title}. {words}",
        background=theme.PAPER[mode],
        config=alt.Config.from_dict({key: value for key, value in theme.config(mode).items() if value}),
    )
