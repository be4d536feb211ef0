"""Weights that let ended jobs stand for those that still run, and trees that see them."""

import numpy as np
import pandas as pd

from gpuplan.forecast.duration_trees import HEAVIEST, Trees, ended_weights, fit_trees


def test_a_job_counts_for_those_that_could_not_have_ended_after_as_long() -> None:
    """At 100, jobs have had 100, 50, 20 and 10 s; a fifth starts only at 100."""
    started = np.array([0.0, 50, 80, 90, 100])
    weights = ended_weights(np.array([5.0, 10, 15, 30, 60]), started, 100.0)
    np.testing.assert_allclose(weights, [1, 1, 4 / 3, 2, 4])


def test_no_job_counts_for_more_than_the_limit() -> None:
    started = np.arange(100.0)
    assert ended_weights(np.array([99.5]), started, 100.0).tolist() == [HEAVIEST]


def test_weights_bring_back_the_long_jobs_that_were_cut_off() -> None:
    """Of run times with a mean of 4, e^(-5/4) = 28.7 % exceed 5; of those that ended within 10 far fewer."""
    rng = np.random.default_rng(0)
    started, run = rng.uniform(0, 10, 20_000), rng.exponential(4, 20_000)
    ended = started + run < 10
    weights = ended_weights(run[ended], started, 10.0)
    long = run[ended] > 5
    assert long.mean() < 0.14
    assert (
        abs(weights[long].sum() / len(run) - (np.exp(-5 / 4) - np.exp(-9 / 4))) < 0.01
    )  # beyond 9 the limit bites


def test_trees_follow_the_weights() -> None:
    """Half of the jobs take 1 s and half 100 s; who counts nine times decides the median."""
    features = pd.DataFrame({"gpus": np.ones(400), "user": None, "team": None, "cluster": None})
    run = np.repeat([1.0, 100.0], 200)
    for heavy, median in ((1.0, 1.0), (100.0, 100.0)):
        trees = fit_trees(features, run, np.where(run == heavy, 9.0, 1.0), (0.5,), 0)
        np.testing.assert_allclose(trees.predict(features)[:, 0], median, rtol=1e-6)


class Always:
    """A regressor that says the same of every job."""

    def __init__(self, run_s: float) -> None:
        self.log = np.log(run_s)

    def predict(self, numbers: np.ndarray) -> np.ndarray:
        return np.full(len(numbers), self.log)


def test_quantiles_that_cross_are_put_in_order() -> None:
    """Trees of the 50 % quantile say 60 s, those of the 90 % quantile 20 s."""
    trees = Trees((0.5, 0.9), ("gpus",), {}, (Always(60), Always(20)))
    np.testing.assert_allclose(trees.predict(pd.DataFrame({"gpus": [1.0, 2.0]})), [[20, 60], [20, 60]])
