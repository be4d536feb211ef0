"""The kernel of the bound that stands beside every plan: prices instead of capacity.

Nothing is validated; arrays in, a number out. Shapes: ``T`` steps, ``N`` jobs that may be placed,
``M`` sizes of theirs, ``R`` apps, ``Z`` classes of blocks.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from gpuplan.jit import njit

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

# columns of ``sizes``
S_GPUS, S_STEPS, S_EARLIEST, S_LATEST, S_CLASS = range(5)


@njit
def price_bound(
    sizes: Ints,
    priority: Floats,
    first_size: Ints,
    weight_sum: Ints,
    classes: Ints,
    free: Ints,
    blocks: Ints,
    unmet: Floats,
    least: Ints,
    ceiling: Any,
    rounds: Any,
) -> Any:
    """Upper bound on the objective: a price per GPU-step and class of block instead of capacity.

    Lagrangian relaxation of "which GPU". In a step in which apps hold ``x`` GPUs, blocks of ``z`` or
    more GPUs cover at most ``z x min(blocks there are, floor((free - x) / z))`` GPUs: one constraint
    for each class ``z`` (1 among them), each with a price in every step. Every job takes the size and
    start at which it earns most above the prices of its GPU-steps, apps the number of GPUs
    at which unmet demand plus the price of capacity taken away costs least. Any prices give a bound; subgradient
    steps towards a target just below the best bound (Polyak's step length, see Bertsekas,
    Nonlinear Programming, section 6.3) lower it.

    Parameters
    ----------
    sizes : int64[M, 5]
        Sizes that jobs may take, with `S_GPUS`, `S_STEPS`, `S_EARLIEST` and `S_LATEST` (first and last
        start), `S_CLASS` (row of the largest class not above the size).
    priority : float64[M]
    first_size : int64[N + 1]
        Rows of each job in ``sizes``.
    weight_sum : int64[T + 1]
    classes : int64[Z]
        Ascending, 1 first.
    free : int64[T]
        GPUs that jobs not yet running and apps may share.
    blocks : int64[Z, T]
        Blocks of each class that fit side by side with nothing else there.
    unmet : float64[T, X]
        What unmet demand costs where apps hold ``least[t] + x`` GPUs, convex in ``x``.
    least : int64[T]
        GPUs that apps hold in any case.
    ceiling : float
        No price rises above: keeps sums exact to rounding.
    rounds : int
        Subgradient steps.

    Returns
    -------
    float
        In the unit of ``priority`` x weight; inherited work is not counted.
    """
    T, Z, N, X = free.size, classes.size, first_size.size - 1, unmet.shape[1]
    price = np.zeros((Z, T))
    paid = np.zeros((Z, T + 1))
    slack = np.zeros((Z, T))
    direction = np.zeros((Z, T))
    weight = weight_sum.astype(np.float64)
    best = np.inf
    hope = 0.3  # the target lies this share below the best bound; less after rounds without gain
    stale = 0
    for _ in range(rounds):
        value = 0.0
        for z in range(Z):
            for t in range(T):
                dearer = price[z, t]
                if z > 0:
                    dearer += paid[z - 1, t + 1] - paid[z - 1, t]
                paid[z, t + 1] = paid[z, t] + dearer
        for t in range(T):
            most, held = -np.inf, 0
            for x in range(min(X, max(1, free[t] - least[t] + 1))):
                gain = -unmet[t, x]
                for z in range(Z):
                    n = min(blocks[z, t], max(0, free[t] - least[t] - x) // classes[z])
                    gain += price[z, t] * (n * classes[z])
                if gain > most:
                    most, held = gain, x
            value += most
            for z in range(Z):
                n = min(blocks[z, t], max(0, free[t] - least[t] - held) // classes[z])
                slack[z, t] = n * classes[z]
        for j in range(N):
            most, row, start = 0.0, -1, -1
            for k in range(first_size[j], first_size[j + 1]):
                n, d, c = sizes[k, S_GPUS], sizes[k, S_STEPS], sizes[k, S_CLASS]
                p = priority[k]
                top, at = most / n, -1
                for s in range(sizes[k, S_EARLIEST], sizes[k, S_LATEST] + 1):
                    e = min(T, s + d)
                    gain = p * (weight[e] - weight[s]) - (paid[c, e] - paid[c, s])
                    if gain > top:
                        top, at = gain, s
                if at >= 0:
                    most, row, start = top * n, k, at
            if row >= 0:
                value += most
                n, e = sizes[row, S_GPUS], min(T, start + sizes[row, S_STEPS])
                for z in range(sizes[row, S_CLASS] + 1):
                    for t in range(start, e):
                        slack[z, t] -= n
        if best == np.inf or value < best - 1e-4 * abs(best):
            stale = 0
        else:
            stale += 1
        best = min(best, value)
        if stale >= 8:
            hope *= 0.7
            stale = 0
        steep = 0.0
        for z in range(Z):
            for t in range(T):
                direction[z, t] = 0.6 * direction[z, t] - slack[z, t]
                if price[z, t] == 0.0:  # no price falls below nothing
                    direction[z, t] = max(0.0, direction[z, t])
                steep += direction[z, t] * direction[z, t]
        if steep == 0.0:
            break
        step = (value - best + hope * abs(best) + 1e-9) / steep
        for z in range(Z):
            for t in range(T):
                price[z, t] = min(ceiling, max(0.0, price[z, t] + step * direction[z, t]))
    return best
