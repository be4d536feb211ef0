"""Does the model beat plain medians? Asked of the past, in the order of time, and answered as it comes out.

The answer can hang on how the past is cut: on the Philly trace (71,570 jobs, 2017, virtual clusters in place of users)
five equal stretches give the model a pinball loss of 1.65 h against 1.75 h of the own median, and weeks give 1.88 h
against 1.77 h. Two things of the model were settled after a look at that trace, `COUNTED_TO` and the weights of ended
jobs, so these figures are no test of those two. Ask your own jobs, with both cuts.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from gpuplan.forecast.duration_account import DurationAccount
from gpuplan.forecast.duration_checks import checked_count, checked_quantiles, checked_seed, columns_of
from gpuplan.forecast.duration_history import first_known, known_at_submission, look_back
from gpuplan.forecast.duration_scores import (
    LAST,
    LIMIT,
    MODEL,
    OVERALL,
    OWN,
    Use,
    advise,
    scores,
    scores_by_fold,
)
from gpuplan.forecast.duration_table import group_of, read_history
from gpuplan.forecast.duration_trees import ended_weights, fit_trees, has_sklearn
from gpuplan.forecast.durations import DurationModel, advised, jobs_fingerprint
from gpuplan.inputs.errors import InputError, Mistake, did_you_mean

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    import pandas as pd

    Floats = npt.NDArray[np.float64]

ALL_JOBS, LIMITED = "all tested jobs", "jobs with a limit"

_WEEK_S = 7 * 86_400


@dataclass(frozen=True, slots=True, eq=False)
class DurationBacktest:
    """How far each method was off, on jobs that lay in the future when it was asked.

    Parameters
    ----------
    table
        A row per scope and method: ``jobs``, ``mae_h`` (mean absolute error of the median, hours), ``log10_error``
        (median of the absolute log10 of predicted over actual: 0.3 is a factor of 2), ``pinball_h`` (mean over the
        quantiles), and per quantile ``pinball_p90_h`` (hours) and ``within_p90`` (share of jobs not longer than
        predicted; the closer to 0.9, the better calibrated). The scope `LIMITED` compares all methods on jobs with a
        limit, as a limit has nothing to say about others.
    by_fold
        The same per fold for all tested jobs, with ``fold`` and ``learned_from`` (jobs ended before the fold).
    predictions
        A row per tested job and method: ``fold``, ``row`` (0-based, of the table), ``method``, ``actual_s`` and
        quantiles in seconds.
    quantiles
        Rising; 0.5 is always among them.
    use
        What to use: ``"model"`` or ``"own median"``.
    sentence
        Why, with the figures.
    account
        What became of the rows of the table.
    untested
        Jobs that were not predicted, by reason.
    jobs_fingerprint
        Of the jobs of the table.
    """

    table: "pd.DataFrame"
    by_fold: "pd.DataFrame"
    predictions: "pd.DataFrame"
    quantiles: tuple[float, ...]
    use: Use
    sentence: str
    account: DurationAccount
    untested: tuple[tuple[str, int], ...]
    jobs_fingerprint: str

    def advise(self, model: DurationModel) -> DurationModel:
        """The model with the advice of this back-test, which `predict_or_estimate` then follows."""
        same = jobs_fingerprint(model.jobs) == self.jobs_fingerprint
        advice = self.sentence if same else f"Back-tested on another table of jobs. {self.sentence}"
        return advised(model, self.use, advice)

    def __repr__(self) -> str:
        return f"{self.sentence}\n{self.table.to_string(index=False, float_format='{:.3f}'.format)}"


def backtest_durations(
    table: "pd.DataFrame",
    folds: int | Literal["weeks"] = 5,
    *,
    quantiles: Sequence[float] = (0.5, 0.9),
    min_jobs: int = 200,
    seed: "int | np.random.Generator" = 0,
) -> DurationBacktest:
    """Predict stretch after stretch of the past from what had ended before it, by the model and by plain methods.

    The jobs, by submission, are cut into ``folds + 1`` stretches of equally many (or into weeks from the first
    submission). For each stretch but the first, trees are fitted to all jobs that had ended when it began (an
    expanding window). Every method sees, for each job, the jobs that had ended before its submission.

    Methods: `MODEL`; `OWN`, quantiles of the own ended jobs (without any: of those with as many GPUs, then of all);
    `LAST`, the own job that ended last (without one, as `OWN`); `OVERALL`, quantiles of all ended jobs; `LIMIT`.
    `LAST` and `LIMIT` have one number for all quantiles.

    The rule for `use` is fixed beforehand: the model, if its mean pinball loss (hours, mean over the quantiles) is
    below that of `OWN` over all tested jobs and in more than half of the folds; else the own median.

    Parameters
    ----------
    table, quantiles
        As in `gpuplan.forecast.durations.fit_durations`; 0.5 is added to the quantiles.
    folds
        Stretches that are tested, or ``"weeks"``.
    min_jobs
        Jobs that must have ended before a stretch for it to be tested.
    seed
        Same table and seed, same result.

    Raises
    ------
    InputError
        If the table cannot be read, an argument is out of range, or no stretch has enough history.
    """
    import pandas as pd

    shares, mistakes = checked_quantiles(quantiles)
    shares = tuple(sorted({*shares, 0.5}))
    mistakes += checked_count("min_jobs", min_jobs, 1)
    mistakes += _checked_folds(folds)
    number, wrong_seed = checked_seed(seed)
    jobs, account = read_history(table, mistakes + wrong_seed)
    tested, skipped = _folds(jobs, folds, min_jobs)
    if not tested:
        rule = f"must have a stretch of time before which {min_jobs:,} jobs had ended; there are {len(jobs):,} jobs"
        raise InputError("job table", [Mistake("", rule)])
    predictions = _predictions(jobs, tested, shares, number)
    limited = predictions["row"].isin(predictions.loc[predictions["method"] == LIMIT, "row"])
    everybody = predictions[predictions["method"] != LIMIT]
    errors = scores(everybody, shares)
    by_fold = scores_by_fold(everybody, {fold.number: len(fold.learned) for fold in tested}, shares)
    parts = [errors.assign(scope=ALL_JOBS)]
    if limited.any():
        parts.append(scores(predictions[limited], shares).assign(scope=LIMITED))
    table = pd.concat(parts, ignore_index=True)
    table.insert(0, "scope", table.pop("scope"))
    use, sentence = advise(errors, by_fold, shares, group_of(jobs))
    return DurationBacktest(
        table, by_fold, predictions, shares, use, sentence, account, skipped, jobs_fingerprint(jobs)
    )


def _checked_folds(folds: object) -> list[Mistake]:
    if isinstance(folds, str):
        near = did_you_mean(folds, ["weeks"])
        return [] if folds == "weeks" else [Mistake("folds", f"must be a whole number or weeks{near}", folds)]
    return checked_count("folds", folds, 1)


@dataclass(frozen=True, slots=True, eq=False)
class _Fold:
    number: int
    start_s: float
    learned: "npt.NDArray[np.int64]"
    tested: "npt.NDArray[np.int64]"


def _folds(
    jobs: "pd.DataFrame", folds: int | Literal["weeks"], min_jobs: int
) -> tuple[list[_Fold], tuple[tuple[str, int], ...]]:
    """Folds with enough history, and the jobs that are in none, by reason."""
    import numpy as np

    at_s, end_s = jobs["at_s"].to_numpy(np.float64), jobs["end_s"].to_numpy(np.float64)
    if not len(at_s):
        return [], ()
    if folds == "weeks":
        starts = np.arange(at_s[0], at_s[-1] + 1, _WEEK_S)
    else:
        starts = np.unique(at_s[[len(at_s) * part // (folds + 1) for part in range(folds + 1)]])
    found: list[_Fold] = []
    skipped = 0
    for start, stop in zip(starts[1:], [*starts[1:], np.inf][1:], strict=True):
        tested = np.flatnonzero((at_s >= start) & (at_s < stop))
        learned = np.flatnonzero(end_s < start)
        if len(learned) < min_jobs:
            skipped += len(tested)
        elif len(tested):
            found.append(_Fold(len(found) + 1, float(start), learned, tested))
    first = int((at_s < starts[1]).sum()) if len(starts) > 1 else len(at_s)
    reasons = (
        ("in the first stretch, which has no past", first),
        (f"in a stretch before which fewer than {min_jobs:,} jobs had ended", skipped),
    )
    return found, tuple(reason for reason in reasons if reason[1])


def _predictions(
    jobs: "pd.DataFrame", folds: list[_Fold], shares: tuple[float, ...], seed: int
) -> "pd.DataFrame":
    """What each method says of each tested job: fold by fold, method by method."""
    import numpy as np
    import pandas as pd

    known = known_at_submission(jobs, jobs, shares)
    overall = look_back(jobs, jobs, [], shares).quantiles
    own = first_known(known.own.quantiles, look_back(jobs, jobs, ["gpus"], shares).quantiles, overall)
    last = first_known(known.own.last, own[:, shares.index(0.5)])
    limit, run_s, end_s = (jobs[name].to_numpy(np.float64) for name in ("limit_s", "run_s", "end_s"))

    def same(values: "Floats") -> "Floats":
        return np.repeat(values[:, None], len(shares), axis=1)

    plain = {OWN: own, LAST: same(last), OVERALL: overall, LIMIT: same(limit)}
    parts = []
    for fold in folds:
        said = {method: values[fold.tested] for method, values in plain.items()}
        if has_sklearn():
            weights = ended_weights(run_s[fold.learned], end_s - run_s, fold.start_s)
            features = known.features.iloc[fold.learned]
            trees = fit_trees(features, run_s[fold.learned], weights, shares, seed)
            said = {MODEL: trees.predict(known.features.iloc[fold.tested])} | said
        rows = jobs.iloc[fold.tested]
        head = {"fold": fold.number, "row": rows["row"].to_numpy(), "actual_s": rows["run_s"].to_numpy()}
        for method, values in said.items():
            part = pd.DataFrame(head | {"method": method})
            part[columns_of(shares)] = values
            parts.append(part.dropna())  # only a limit can be unknown: others fall back on all ended jobs
    return pd.concat(parts, ignore_index=True)
