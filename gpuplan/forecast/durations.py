"""Learn how long jobs run from one's own history, and say what is used where that history is too short.

Announced run times are mostly limits, far above what happens. Trees learn quantiles from what is known when a job is
submitted: its GPUs and limit, the hour and weekday, whose it is, and that person's earlier jobs *that had ended*.
Whether they beat a plain median is for `gpuplan.forecast.durations_backtest` to say. (The idea of predicting from a
user's own past: Tsafrir, Etsion and Feitelson, "Backfilling Using System-Generated Predictions Rather than User
Runtime Estimates", IEEE TPDS 18(6), 2007; for GPU clusters Hu and others, "Characterization and Prediction of Deep
Learning Workloads in Large-Scale GPU Datacenters", SC 2021, arXiv 2109.01313.)
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from gpuplan.forecast.duration_account import DurationAccount
from gpuplan.forecast.duration_checks import checked_count, checked_quantiles, checked_seed, columns_of
from gpuplan.forecast.duration_history import Known, known_at_submission
from gpuplan.forecast.duration_scores import Use
from gpuplan.forecast.duration_table import GROUPS, group_of, read_history, read_rows
from gpuplan.forecast.duration_trees import MISSING_SKLEARN, Trees, ended_weights, fit_trees, has_sklearn
from gpuplan.inputs.errors import InputError, Mistake

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    import pandas as pd

#: Own ended jobs from which their median goes before what the user announced.
OWN_FROM = 5

UNTESTED = "Not back-tested: whether it beats the plain median of a person's own jobs is not known."

_FEATURE_WORDS = {
    "gpus": "GPUs",
    "limit_s": "limit",
    "hour": "hour of day",
    "weekday": "day of week",
    "own_jobs": "number, median and last of the {group}'s ended jobs",
    "same_name_jobs": "number, median and last of its ended jobs of the same name",
} | {name: name for name in GROUPS}


@dataclass(frozen=True, slots=True, eq=False)
class DurationModel:
    """What was learned of run times, and the jobs it was learned from.

    Parameters
    ----------
    quantiles
        Rising, in (0, 1).
    trees
        Fitted trees; ``None`` where `why_not` says why there are none.
    jobs
        The jobs learned from, which are also the history that predictions look back on.
    account
        What became of the rows of the table.
    min_jobs
        Jobs that were asked for at least.
    seed
        Seed of the trees.
    why_not
        Why there are no trees, as a sentence; empty where there are.
    use
        What a back-test advises; ``"untested"`` without one (see `DurationBacktest.advise`).
    advice
        The advice as a sentence.
    """

    quantiles: tuple[float, ...]
    trees: Trees | None
    jobs: "pd.DataFrame"
    account: DurationAccount
    min_jobs: int
    seed: int
    why_not: str = ""
    use: Use = "untested"
    advice: str = UNTESTED

    def predict(self, rows: "pd.DataFrame", history: "pd.DataFrame | None" = None) -> "pd.DataFrame":
        """Quantiles of run time in seconds (``p50_s``, ``p90_s``, ...), a row per row of `rows`, under their index.

        Parameters
        ----------
        rows
            Jobs with the columns of the table except ``duration_s``, which is not looked at.
        history
            A newer table of past jobs to look back on; without one, the jobs learned from.

        Raises
        ------
        InputError
            If there are no trees, or rows or history cannot be read.
        """
        import pandas as pd

        if self.trees is None:
            raise InputError("duration model", [Mistake("", self.why_not)])
        known = self._known(read_rows(rows), history)
        return pd.DataFrame(self.trees.predict(known.features), rows.index, columns_of(self.quantiles))

    def _known(self, asked: "pd.DataFrame", history: "pd.DataFrame | None") -> Known:
        jobs = self.jobs if history is None else read_history(history)[0]
        return known_at_submission(jobs, asked, self.quantiles)

    @property
    def about(self) -> str:
        """How many jobs, from when to when, which features, and whether it was back-tested, in words."""
        if self.trees is None:
            return self.why_not
        group = group_of(self.jobs) or "nobody"
        words = [_FEATURE_WORDS[name] for name in self.trees.columns if name in _FEATURE_WORDS]
        shares = ", ".join(f"{100 * share:g}" for share in self.quantiles)
        return (
            f"Learned from {len(self.jobs):,} jobs submitted {_span(self.jobs)}: {shares} % quantiles of run time from "
            f"{', '.join(words).format(group=group)}. {self.advice}"
        )

    @property
    def fingerprint(self) -> str:
        """SHA-256 (hexadecimal) of jobs, quantiles and settings; the order of the table plays no part."""
        asked = (self.quantiles, self.min_jobs, self.seed, self.trees is not None)
        return hashlib.sha256(f"{asked!r}{jobs_fingerprint(self.jobs)}".encode()).hexdigest()

    def __repr__(self) -> str:
        return f"DurationModel: {self.about}"


def fit_durations(
    table: "pd.DataFrame",
    quantiles: Sequence[float] = (0.5, 0.9),
    min_jobs: int = 200,
    seed: "int | np.random.Generator" = 0,
) -> DurationModel:
    """Learn quantiles of run time from a table of past jobs.

    With fewer usable jobs than `min_jobs`, or without scikit-learn, the model has no trees and says why;
    `predict_or_estimate` still answers, from medians and announced times.

    Parameters
    ----------
    table
        A row per job: ``submit_s`` (seconds after some midnight) or ``submit`` (dates and times), ``duration_s`` (run
        time), ``gpus``; optionally ``wait_s``, ``limit_s``, ``estimate_s`` (announced), ``user``, ``team``,
        ``cluster``, ``name``. NaN is unknown. Rows in any order; those that cannot be used are in the account.
    quantiles
        Shares in (0, 1).
    min_jobs
        Usable jobs from which on trees are fitted.
    seed
        Same table and seed, same model.

    Raises
    ------
    InputError
        If the table cannot be read or an argument is out of range, with all mistakes.
    """
    import numpy as np

    shares, mistakes = checked_quantiles(quantiles)
    mistakes += checked_count("min_jobs", min_jobs, 1)
    number, wrong_seed = checked_seed(seed)
    jobs, account = read_history(table, mistakes + wrong_seed)
    why_not = _why_not(len(jobs), min_jobs, account)
    trees = None
    if not why_not:
        known = known_at_submission(jobs, jobs, shares)
        at_s, run_s, end_s = (jobs[name].to_numpy(np.float64) for name in ("at_s", "run_s", "end_s"))
        now_s = float(max(end_s.max(), at_s.max()))  # when the table was made, as far as it can be told
        trees = fit_trees(known.features, run_s, ended_weights(run_s, end_s - run_s, now_s), shares, number)
    return DurationModel(shares, trees, jobs, account, min_jobs, number, why_not)


def predict_or_estimate(
    model: DurationModel, rows: "pd.DataFrame", history: "pd.DataFrame | None" = None
) -> "pd.DataFrame":
    """Quantiles of run time for each job from the best that there is, and what that was.

    In this order: ``"model"`` where there are trees and no back-test advised against them; ``"own median"`` (own
    quantiles) from `OWN_FROM` ended jobs on; ``"estimate"``, what was announced (``estimate_s``, else ``limit_s``),
    one number for all quantiles; ``"own median"`` of fewer jobs; else ``"unknown"``, and the quantiles are NaN.

    Parameters
    ----------
    model
        From `fit_durations`, with or without trees.
    rows, history
        As in `DurationModel.predict`.

    Returns
    -------
    table
        ``p50_s``, ``p90_s``, ... (seconds), ``source``, ``own_jobs`` (own ended jobs), under the index of `rows`.

    Raises
    ------
    InputError
        If rows or history cannot be read.
    """
    import numpy as np
    import pandas as pd

    asked = read_rows(rows)
    known = model._known(asked, history)
    number = len(model.quantiles)
    values = np.full((len(asked), number), np.nan)
    source = np.full(len(asked), "unknown", dtype=object)
    if model.trees is not None and model.use != "own median":
        values, source[:] = model.trees.predict(known.features), "model"
    own = known.own.quantiles
    announced = asked["estimate_s"].where(asked["estimate_s"] > 0)
    announced = announced.fillna(asked["limit_s"].where(asked["limit_s"] > 0))
    many = np.where((known.own.count >= OWN_FROM)[:, None], own, np.nan)
    estimate = np.repeat(announced.to_numpy(np.float64)[:, None], number, axis=1)
    for word, offer in (("own median", many), ("estimate", estimate), ("own median", own)):
        taken = np.isnan(values[:, 0]) & ~np.isnan(offer[:, 0])
        values[taken], source[taken] = offer[taken], word
    table = pd.DataFrame(values, rows.index, columns_of(model.quantiles))
    return table.assign(source=source, own_jobs=known.own.count.astype(np.int64))


def announced_hours(model: DurationModel, jobs: "pd.DataFrame", quantile: float) -> "npt.NDArray[np.float64]":
    """Hours to announce for each job, from `predict_or_estimate` at one of the model's quantiles; NaN is unknown.

    Raises
    ------
    InputError
        If the model does not have the quantile, or the jobs cannot be read.
    """
    import numpy as np

    if quantile not in model.quantiles:
        rule = (
            f"must be one of the model's quantiles ({', '.join(f'{share:g}' for share in model.quantiles)})"
        )
        raise InputError("announced hours", [Mistake("quantile", rule, quantile)])
    (column,) = columns_of([quantile])
    return predict_or_estimate(model, jobs)[column].to_numpy(np.float64) / 3600


def advised(model: DurationModel, use: Use, advice: str) -> DurationModel:
    """The model with the advice of a back-test."""
    return replace(model, use=use, advice=advice)


def jobs_fingerprint(jobs: "pd.DataFrame") -> str:
    """SHA-256 (hexadecimal) of the jobs learned from."""
    lines = jobs.drop(columns="row").to_csv(index=False, float_format="%.17g")
    return hashlib.sha256(lines.encode()).hexdigest()


def _why_not(count: int, min_jobs: int, account: DurationAccount) -> str:
    if count < min_jobs:
        left = account.read - account.used
        beside = f" ({left:,} more could not be used)" if left else ""
        return (
            f"There are {count:,} usable jobs{beside}, and {min_jobs:,} are needed to learn durations: "
            "a person's own median or what was announced is used instead."
        )
    return "" if has_sklearn() else MISSING_SKLEARN


def _span(jobs: "pd.DataFrame") -> str:
    """From when to when: dates where the times are some of our age, else days after the first midnight."""
    import pandas as pd

    first, last = float(jobs["clock_s"].min()), float(jobs["clock_s"].max())
    if first > 300_000_000:  # seconds after 1970 that lie beyond mid-1979: dates
        days = [str(pd.Timestamp(at, unit="s").date()) for at in (first, last)]
        return f"from {days[0]} to {days[1]}"
    return f"from day {first / 86_400:.1f} to day {last / 86_400:.1f} of the table's clock"
