"""Generated tasks: what is asked for, made from a seed, a random stream of its own for every column.

What it assumes:

- **Arrivals** are a renewal process: gaps are Gamma-distributed with the coefficient of variation asked for (1: a
  Poisson process, 0: a fixed beat, above 1: bursts). The first task comes after the first gap. No two tasks come in
  the same microsecond: the second comes one later, so that the order in which they were drawn is their order.
- **Models** are drawn by popularity, **tenants** by Zipf's law (the k-th has 1 / k of the first's tasks), **priority**
  is 1 with the share asked for, else 0. All of that is independent of the rest.
- **Service times** and **tokens** are Gamma-distributed with their mean and coefficient of variation, independent of
  each other and of the model; a service time beyond 1,000,000 s, or more than 2**20 tokens, are cut to that.
- **Predicted** service is the true one times a log-normal factor of mean 1.

Common random numbers: a column depends on the seed, its own numbers and nothing else, so what is dragged does not jump.
More tasks append to those there are; another rate or mean stretches; another share, popularity or number of tenants
moves tasks across a border; only another coefficient of variation draws its own column anew.
"""

import hashlib
import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from gpuplan.packing.limits import MOST_SERVICE_US, MOST_TOKENS, MOST_US
from gpuplan.packing.model import NEVER, SECOND, Draw, Generate, Int64, ServedModel
from gpuplan.packing.tasks import Tasks, tasks

Floats = npt.NDArray[np.float64]


def generate(spec: Generate, models: Sequence[ServedModel]) -> Tasks:
    """Tasks as the module states them: same arguments, same tasks.

    Parameters
    ----------
    spec
        What is asked for.
    models
        Their popularity says how often each is asked for; at least one is above 0, unless there are no tasks.
    """
    n = spec.count
    arrival = np.cumsum(_unit(spec.arrival_cv, n, stream(spec.seed, "arrivals")))
    arrival_us = _apart(_whole(arrival * (SECOND / spec.rate_per_s), MOST_US))
    service = drawn(spec.service, n, stream(spec.seed, "service"))
    normal = stream(spec.seed, "prediction").standard_normal(n)
    spread = math.log1p(spec.prediction_cv**2)
    predicted = service * np.exp(math.sqrt(spread) * normal - spread / 2)
    popularity = np.array([model.popularity for model in models], np.float64)
    tenant = weighted_choice(zipf(spec.tenants), stream(spec.seed, "tenants").random(n))
    names = np.array([f"tenant-{k + 1}" for k in range(spec.tenants)], object)
    high = stream(spec.seed, "priority").random(n) < spec.high_priority_share
    never = np.full(n, NEVER, np.int64)
    return tasks(
        arrival_us,
        weighted_choice(popularity, stream(spec.seed, "models").random(n)),
        names[tenant],  # type: ignore[arg-type]  # an array is a sequence
        high.astype(np.int64),
        _whole(service * SECOND, MOST_SERVICE_US),
        _whole(predicted * SECOND, MOST_SERVICE_US),
        _whole(drawn(spec.tokens_in, n, stream(spec.seed, "tokens in")), MOST_TOKENS),
        _whole(drawn(spec.tokens_out, n, stream(spec.seed, "tokens out")), MOST_TOKENS),
        never if spec.timeout_us is None else arrival_us + spec.timeout_us,
    )


def zipf(count: int, exponent: float = 1.0) -> Floats:
    """Shares by Zipf's law, float64[count]: the k-th is proportional to ``k ** -exponent``; they add up to 1."""
    weights = np.arange(1, count + 1, dtype=np.float64) ** -exponent
    shares: Floats = weights / weights.sum()
    return shares


def size_mix(
    sizes_bytes: Sequence[int],
    shares: Sequence[float],
    count: int,
    *,
    overshoot: float = 0.0,
    exponent: float = 1.0,
    kv_bytes_per_token: int = 0,
) -> tuple[ServedModel, ...]:
    """Models of a mix of sizes, Zipf-popular in the order in which sizes are dealt.

    Sizes are dealt evenly: after every model each size has, to within one, its share of the models so far.

    Parameters
    ----------
    sizes_bytes, shares
        Declared weights, and how many of the models have them (above 0, they need not add up to 1).
    count
        Number of models.
    overshoot
        Actual weights exceed the declared ones by this share.
    exponent
        Of the popularity (0: all equal).
    kv_bytes_per_token
        Of every model.
    """
    whole = sum(shares)
    given = [0] * len(sizes_bytes)
    popularity = zipf(count, exponent)
    models = []
    for k in range(count):
        due = [share / whole * (k + 1) - had for share, had in zip(shares, given, strict=True)]
        kind = max(range(len(due)), key=lambda which: (due[which], -which))
        given[kind] += 1
        declared = sizes_bytes[kind]
        models.append(
            ServedModel(
                f"model-{k + 1}",
                declared,
                round(declared * (1 + overshoot)),
                kv_bytes_per_token=kv_bytes_per_token,
                popularity=float(popularity[k]),
            )
        )
    return tuple(models)


def stream(seed: int, name: str) -> np.random.Generator:
    """A random stream that depends on a seed and a name alone, not on what else there is."""
    words = np.frombuffer(hashlib.sha256(name.encode("utf-8", "surrogatepass")).digest(), "<u4")
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence([seed % 2**64, *words.tolist()])))


def _unit(cv: float, n: int, rng: np.random.Generator) -> Floats:
    """Gamma-distributed numbers of mean 1 and a coefficient of variation, float64[n]."""
    if cv == 0 or cv * cv == 0:  # a square below the smallest float
        return np.ones(n)
    shape = 1 / (cv * cv)
    if shape > 1e12:  # cv below 1e-6: as good as constant
        return np.ones(n)
    return rng.standard_gamma(shape, n) / shape


def drawn(draw: Draw, n: int, rng: np.random.Generator) -> Floats:
    """Positive numbers by mean and coefficient of variation, float64[n]."""
    return draw.mean * _unit(draw.cv, n, rng)


def weighted_choice(weights: Floats, uniform: Floats) -> Int64:
    """Index by weight of each number from 0 to 1, int64[n]; what has no weight is never chosen."""
    if not len(uniform):
        return np.zeros(0, np.int64)
    upto = np.cumsum(weights / weights.sum())
    last = int(np.flatnonzero(weights)[-1])  # the sum may end just below 1
    return np.minimum(np.searchsorted(upto, uniform, side="right"), last).astype(np.int64)


def _apart(arrival_us: Int64) -> Int64:
    """Ascending instants with at least a microsecond between them, int64[n]."""
    row = np.arange(len(arrival_us))
    apart: Int64 = np.maximum.accumulate(arrival_us - row) + row if len(row) else arrival_us
    return apart


def _whole(values: Floats, most: int) -> Int64:
    """Nearest whole numbers up to `most`, int64[n]."""
    return np.rint(np.minimum(values, most)).astype(np.int64)
