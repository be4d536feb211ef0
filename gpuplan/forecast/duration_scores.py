"""How far predictions of run time were off, and what follows from that."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Literal

from gpuplan.forecast.duration_checks import columns_of
from gpuplan.forecast.duration_trees import MISSING_SKLEARN

if TYPE_CHECKING:
    import pandas as pd

#: What a back-test advises; without one nothing is known.
Use = Literal["untested", "model", "own median"]

MODEL, OWN, LAST, OVERALL, LIMIT = "model", "own median", "last own job", "overall median", "limit"

#: A share of jobs within a quantile that is further below it than this is told in the advice.
OFF = 0.05


def scores(predictions: "pd.DataFrame", shares: tuple[float, ...]) -> "pd.DataFrame":
    """A row of errors per method, in the order of the methods."""
    import pandas as pd

    methods = predictions["method"].unique()
    return pd.DataFrame(
        [dict(_errors(method, predictions[predictions["method"] == method], shares)) for method in methods]
    )


def _errors(
    method: str, said: "pd.DataFrame", shares: tuple[float, ...]
) -> Iterator[tuple[str, str | int | float]]:
    import numpy as np

    actual = said["actual_s"].to_numpy(np.float64)
    middle = said[columns_of([0.5])[0]].to_numpy(np.float64)
    yield "method", method
    yield "jobs", len(said)
    yield "mae_h", float(np.abs(middle - actual).mean()) / 3600
    yield "log10_error", float(np.median(np.abs(np.log10(middle / actual))))
    losses = {}
    columns = dict(zip(shares, columns_of(shares), strict=True))
    for share, column in columns.items():
        over = actual - said[column].to_numpy(np.float64)
        losses[share] = float(np.maximum(share * over, (share - 1) * over).mean()) / 3600
    yield "pinball_h", sum(losses.values()) / len(losses)
    for share, column in columns.items():
        name = column.removesuffix("_s")
        yield f"pinball_{name}_h", losses[share]
        yield f"within_{name}", float((actual <= said[column].to_numpy(np.float64)).mean())


def scores_by_fold(
    predictions: "pd.DataFrame", learned_from: Mapping[int, int], shares: tuple[float, ...]
) -> "pd.DataFrame":
    """The rows of `scores` for each fold, with how many jobs had ended before it."""
    import pandas as pd

    parts = []
    for fold, count in learned_from.items():
        part = scores(predictions[predictions["fold"] == fold], shares)
        part.insert(0, "learned_from", count)
        part.insert(0, "fold", fold)
        parts.append(part)
    return pd.concat(parts, ignore_index=True)


def advise(
    errors: "pd.DataFrame", by_fold: "pd.DataFrame", shares: tuple[float, ...], group: str | None
) -> tuple[Use, str]:
    """What to use by the rule of `gpuplan.forecast.durations_backtest`, and the sentence that says why.

    Parameters
    ----------
    errors, by_fold
        From `scores` and `scores_by_fold`, over the same jobs.
    shares
        The quantiles.
    group
        Whose earlier jobs count as a job's own; ``None`` for nobody's.
    """
    own = f"{group}'s own median" if group else "median of jobs with as many GPUs"
    losses = dict(zip(errors["method"], errors["pinball_h"].astype(float), strict=True))
    if MODEL not in losses:
        return "own median", f"The model was not tried. {MISSING_SKLEARN} Use the {own}."
    each = by_fold.pivot(index="fold", columns="method", values="pinball_h")
    won = int((each[MODEL] < each[OWN]).sum())
    beats = losses[MODEL] < losses[OWN] and 2 * won > len(each)
    chosen = MODEL if beats else OWN
    said = (
        f"The model {'beats' if beats else 'does not beat'} the {own}: mean pinball loss {losses[MODEL]:.2f} h "
        f"against {losses[OWN]:.2f} h, better in {won} of {len(each)} stretches of time. "
        f"Use the {'model' if beats else 'median'}."
    )
    top = max(shares)
    (column,) = columns_of([top])
    shares_within = errors[f"within_{column.removesuffix('_s')}"].astype(float)
    within = dict(zip(errors["method"], shares_within, strict=True))[chosen]
    if within < top - OFF:
        said += f" But only {100 * within:.0f} % of jobs were within its {100 * top:g} % quantile."
    best = min(losses, key=lambda method: losses[method])
    if best not in (MODEL, chosen):
        said += f" Lower still is the {best}, with {losses[best]:.2f} h."
    return ("model" if beats else "own median"), said
