"""How good predictions of run time were: predicted against actual, and the share of jobs within each quantile."""

from typing import TYPE_CHECKING, Any

from gpuplan import theme
from gpuplan.forecast.duration_checks import columns_of
from gpuplan.forecast.duration_scores import LAST, LIMIT, MODEL, OVERALL, OWN
from gpuplan.forecast.durations_backtest import ALL_JOBS, DurationBacktest
from gpuplan.inputs.errors import InputError, Mistake, did_you_mean

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    import pandas as pd

    from gpuplan.gantt.offline import OfflineChart

#: Bins of the map per factor of ten.
BINS = 4

#: Colour and shape of each method (Okabe-Ito), so that nothing rests on colour alone.
LOOKS = {
    MODEL: ("#0072B2", "circle"),
    OWN: ("#E69F00", "square"),
    LAST: ("#CC79A7", "triangle-up"),
    OVERALL: ("#009E73", "diamond"),
    LIMIT: ("#D55E00", "cross"),
}

#: Ends of the scale from few jobs to many: many stand out from the page.
RANGES: dict[theme.Mode, list[str]] = {"light": ["#D6E6F2", "#00466E"], "dark": ["#12384F", "#CFE8FA"]}


def durations_chart(
    result: DurationBacktest, method: str | None = None, *, width: int = 900, mode: theme.Mode = "light"
) -> "OfflineChart":
    """Predicted (median) against actual run time as a map of jobs, and how many jobs were within each quantile.

    On the dashed line predicted and actual are equal (left), and as many jobs are within a quantile as should be
    (right).

    Parameters
    ----------
    result
        From `gpuplan.forecast.durations_backtest.backtest_durations`.
    method
        Method of the map; the model where it was tried, else the own median.
    width
        Pixels of the whole.
    mode
        Colours for a ``"light"`` or a ``"dark"`` page.

    Raises
    ------
    InputError
        If the method was not tested.
    """
    import altair as alt

    from gpuplan.gantt.offline import finished

    tested = list(dict.fromkeys(result.predictions["method"]))
    shown = method or (MODEL if MODEL in tested else OWN)
    if shown not in tested:
        rule = f"must be one of {', '.join(tested)}{did_you_mean(shown, tested)}"
        raise InputError("durations chart", [Mistake("method", rule, method)])
    each = max(160, (width - 260) // 2)
    chart = alt.hconcat(
        _map(result, shown, each, mode), _calibration(result, each), spacing=40
    ).resolve_scale(color="independent", shape="independent")
    whole = chart.properties(
        title=alt.TitleParams(
            "How long do jobs run, predicted before and measured after?",
            subtitle=_wrapped(result.sentence, width),
        ),
        description=result.sentence,
        background=theme.PAPER[mode],
        config=alt.Config.from_dict({key: value for key, value in theme.config(mode).items() if value}),
    )
    return finished(whole)


def map_data(result: DurationBacktest, method: str) -> "pd.DataFrame":
    """Jobs per bin of predicted and actual run time: edges in hours (``predicted_h``, ``predicted_to_h``), ``jobs``."""
    import numpy as np
    import pandas as pd

    said = result.predictions[result.predictions["method"] == method]
    (middle,) = columns_of([0.5])

    def bin_of(seconds: "pd.Series[float]") -> "npt.NDArray[np.float64]":
        bins: npt.NDArray[np.float64] = np.floor(np.log10(seconds.to_numpy(np.float64) / 3600) * BINS)
        return bins

    bins = pd.DataFrame({"predicted": bin_of(said[middle]), "actual": bin_of(said["actual_s"])})
    counts = bins.value_counts(sort=False).rename("jobs").reset_index()
    edges: dict[str, Any] = {}
    for name in ("predicted", "actual"):
        low = counts[name].to_numpy(np.float64)
        edges |= {f"{name}_h": 10 ** (low / BINS), f"{name}_to_h": 10 ** ((low + 1) / BINS)}
    return pd.DataFrame(edges).assign(jobs=counts["jobs"])


def calibration_data(result: DurationBacktest) -> "pd.DataFrame":
    """Per method and quantile the share of jobs that were to be within it and the share that was, in per cent."""
    import pandas as pd

    table = result.table[result.table["scope"] == ALL_JOBS]
    return pd.DataFrame(
        [
            {"method": method, "aimed": 100 * share, "within": 100 * float(value)}
            for share, column in zip(result.quantiles, columns_of(result.quantiles), strict=True)
            for method, value in zip(
                table["method"], table[f"within_{column.removesuffix('_s')}"], strict=True
            )
        ]
    )


def _map(result: DurationBacktest, method: str, size: int, mode: theme.Mode) -> Any:
    import altair as alt
    import pandas as pd

    data = map_data(result, method)
    names = ["predicted_h", "predicted_to_h", "actual_h", "actual_to_h"]
    ends = [float(data[names].min().min()), float(data[names].max().max())]
    scale = alt.Scale(type="log", domain=ends, nice=False)
    axis = alt.Axis(format="~g", tickCount=6, grid=False)
    cells = (
        alt.Chart(data)
        .mark_rect()
        .encode(
            x=alt.X(
                "predicted_h:Q", scale=scale, axis=axis, title=f"predicted run time, {method} (hours, log)"
            ),
            x2="predicted_to_h:Q",
            y=alt.Y("actual_h:Q", scale=scale, axis=axis, title="actual run time (hours, log)"),
            y2="actual_to_h:Q",
            color=alt.Color("jobs:Q", scale=alt.Scale(type="log", range=RANGES[mode]), title="jobs (log)"),
            tooltip=[
                alt.Tooltip("predicted_h:Q", title="predicted from (h)", format=".3~g"),
                alt.Tooltip("actual_h:Q", title="actual from (h)", format=".3~g"),
                alt.Tooltip("jobs:Q", format=","),
            ],
        )
    )
    equal = (
        alt.Chart(pd.DataFrame({"predicted_h": ends, "actual_h": ends}))
        .mark_line(strokeDash=[6, 4], color="#7A7A7A")
        .encode(x="predicted_h:Q", y="actual_h:Q")
    )
    jobs = int(data["jobs"].sum())
    return alt.layer(cells, equal).properties(
        width=size, height=size, title=f"Predicted against actual: {jobs:,} jobs"
    )


def _calibration(result: DurationBacktest, size: int) -> Any:
    import altair as alt
    import pandas as pd

    data = calibration_data(result)
    methods = list(dict.fromkeys(data["method"]))
    scale = alt.Scale(domain=[0, 100])
    colours = alt.Scale(domain=methods, range=[LOOKS[method][0] for method in methods])
    shapes = alt.Scale(domain=methods, range=[LOOKS[method][1] for method in methods])
    points = (
        alt.Chart(data)
        .mark_point(size=90, filled=True, opacity=0.9)
        .encode(
            x=alt.X("aimed:Q", scale=scale, title="quantile that was predicted (%)"),
            y=alt.Y("within:Q", scale=scale, title="jobs not longer than predicted (%)"),
            color=alt.Color("method:N", scale=colours, title="method"),
            shape=alt.Shape("method:N", scale=shapes, title="method"),
            tooltip=[
                "method:N",
                alt.Tooltip("aimed:Q", format=".3~g"),
                alt.Tooltip("within:Q", format=".1f"),
            ],
        )
    )
    equal = (
        alt.Chart(pd.DataFrame({"aimed": [0, 100], "within": [0, 100]}))
        .mark_line(strokeDash=[6, 4], color="#7A7A7A")
        .encode(x="aimed:Q", y="within:Q")
    )
    return alt.layer(equal, points).properties(width=size, height=size, title="Jobs within each quantile")


def _wrapped(text: str, width: int) -> list[str]:
    import textwrap

    return textwrap.wrap(text, max(40, width // 7))
