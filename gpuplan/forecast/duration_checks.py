"""Arguments of learning durations: quantiles and counts, with what is wrong with them."""

from collections.abc import Iterator, Sequence
from typing import Any

from gpuplan.inputs.errors import Mistake


def columns_of(quantiles: Sequence[float]) -> list[str]:
    """Names of the columns of quantiles: ``p50_s``, ``p97.5_s``."""
    return [f"p{100 * share:.10g}_s" for share in quantiles]


def checked_quantiles(quantiles: object) -> tuple[tuple[float, ...], list[Mistake]]:
    """The quantiles, rising, and what is wrong with them."""
    try:
        listed: list[Any] = list(quantiles)  # type: ignore[call-overload]
    except TypeError:
        return (), [Mistake("quantiles", "must be a list of shares above 0 and below 1", quantiles)]
    if not listed:
        return (), [Mistake("quantiles", "must have at least one share")]
    mistakes = list(_wrong_shares(listed))
    return (() if mistakes else tuple(sorted(float(share) for share in listed))), mistakes


def _wrong_shares(listed: list[Any]) -> Iterator[Mistake]:
    for place, share in enumerate(listed):
        number = share if isinstance(share, (int, float)) and not isinstance(share, bool) else float("nan")
        if not 0 < number < 1:
            yield Mistake(f"quantiles.{place}", "must be a number above 0 and below 1", share)
        elif share in listed[:place]:
            yield Mistake(f"quantiles.{place}", "must not be there twice", share)


def checked_count(name: str, value: object, least: int) -> list[Mistake]:
    """What is wrong with a whole number that must be at least `least`."""
    if isinstance(value, int) and not isinstance(value, bool) and value >= least:
        return []
    return [Mistake(name, f"must be a whole number, at least {least}", value)]


def checked_seed(seed: object) -> tuple[int, list[Mistake]]:
    """The seed as a number (of a numpy generator its next one), and what is wrong with it."""
    import numpy as np

    if isinstance(seed, np.random.Generator):
        return int(seed.integers(2**31)), []
    if isinstance(seed, (int, np.integer)) and not isinstance(seed, bool) and 0 <= seed < 2**32:
        return int(seed), []
    return 0, [Mistake("seed", "must be a whole number from 0 to 4,294,967,295, or a numpy Generator", seed)]
