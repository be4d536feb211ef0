"""Boosted trees for quantiles of run time: the one place that needs scikit-learn."""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

from gpuplan.forecast.duration_history import common_names, matrix

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    import pandas as pd

MISSING_SKLEARN = (
    'Learning durations needs scikit-learn, which is not installed: pip install "gpuplan[forecast]".'
)

#: The most that one job counts for others that have not ended; a few very long ones would decide everything.
HEAVIEST = 10.0


@dataclass(frozen=True, slots=True, eq=False)
class Trees:
    """Fitted trees, one regressor per quantile, with the features they look at and the names they tell apart."""

    quantiles: tuple[float, ...]
    columns: tuple[str, ...]
    names: Mapping[str, Mapping[str, int]]
    regressors: tuple[Any, ...]

    def predict(self, features: "pd.DataFrame") -> "npt.NDArray[np.float64]":
        """Run times in seconds, a row per job and a column per quantile, rising from left to right.

        Each quantile has trees of its own, so they can cross; sorting them per job repairs that and never makes
        them worse (Chernozhukov, Fernandez-Val and Galichon, "Quantile and Probability Curves Without Crossing",
        Econometrica 78(3), 2010).
        """
        import numpy as np

        if features.empty:
            return np.empty((0, len(self.quantiles)))
        numbers = matrix(features, self.names, self.columns)
        with one_thread():
            logs = np.column_stack([regressor.predict(numbers) for regressor in self.regressors])
        return np.sort(np.exp(logs), axis=1)


def one_thread() -> AbstractContextManager[Any]:
    """Hold scikit-learn to one thread.

    One was as fast as two on 71,000 jobs, and twice as fast on 3,000, where threads wait for each other.
    """
    limits: AbstractContextManager[Any] = import_module("threadpoolctl").threadpool_limits(
        1, user_api="openmp"
    )
    return limits


def has_sklearn() -> bool:
    """Whether scikit-learn can be imported."""
    try:
        import_module("sklearn.ensemble")
    except ImportError:
        return False
    return True


def ended_weights(
    run_s: "npt.NDArray[np.float64]", started_s: "npt.NDArray[np.float64]", now_s: float
) -> "npt.NDArray[np.float64]":
    """Weight of each ended job, so that it also stands for those like it that have not ended yet.

    Among recent jobs only the short ones have ended; learning from ended jobs alone takes the world for shorter than
    it is. A job that ran for t counts 1 / (share of jobs that started at least t ago), at most `HEAVIEST`: the
    inverse probability of not being cut off (Robins and Rotnitzky, "Recovery of Information and Adjustment for
    Dependent Censoring Using Surrogate Markers", in AIDS Epidemiology, 1992). It assumes that run times do not drift
    with the date, and brings back nothing that is longer than the table.

    Parameters
    ----------
    run_s
        Run times of the ended jobs.
    started_s
        When jobs started, ended or not; those that start at `now_s` or later are not looked at.
    now_s
        Until when anything is known.
    """
    import numpy as np

    windows = np.sort(now_s - started_s[started_s < now_s])
    long_enough = len(windows) - np.searchsorted(windows, run_s)
    weights: npt.NDArray[np.float64] = np.minimum(len(windows) / np.maximum(long_enough, 1), HEAVIEST)
    return weights


def fit_trees(
    features: "pd.DataFrame",
    run_s: "npt.NDArray[np.float64]",
    weights: "npt.NDArray[np.float64]",
    quantiles: Sequence[float],
    seed: int,
) -> Trees:
    """Fit trees to logarithms of run times: a factor too long weighs as much as the same factor too short.

    A quantile of logarithms is the logarithm of the quantile, so nothing is lost on the way back. The settings are
    scikit-learn's own defaults (100 trees of up to 31 leaves, learning rate 0.1): none was tuned to a trace.

    Parameters
    ----------
    features
        As `gpuplan.forecast.duration_history.known_at_submission` makes them, in an order of their own.
    run_s
        Run times, above 0.
    weights
        From `ended_weights`.
    quantiles
        Rising, in (0, 1).
    seed
        For scikit-learn's sample of bin edges (beyond 200,000 jobs).

    Raises
    ------
    ImportError
        Without scikit-learn (see `has_sklearn`).
    """
    import numpy as np

    regressor = import_module("sklearn.ensemble").HistGradientBoostingRegressor
    names = common_names(features)
    columns = tuple(name for name in features.columns if features[name].notna().any())
    numbers, logs = matrix(features, names, columns), np.log(run_s)
    chosen = [place for place, name in enumerate(columns) if name in names]
    with one_thread():
        fitted = tuple(
            regressor(
                loss="quantile",
                quantile=share,
                categorical_features=chosen or None,
                early_stopping=False,  # beyond 10,000 jobs the default keeps a tenth of them from the trees
                random_state=seed,
            ).fit(numbers, logs, sample_weight=weights)
            for share in quantiles
        )
    return Trees(tuple(quantiles), columns, names, fitted)
