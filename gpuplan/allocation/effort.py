"""How much the improving policies may do, checked where people say it."""

import math
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

import numpy as np

from gpuplan.allocation.policies.base import Effort
from gpuplan.inputs.errors import InputError, Mistake, did_you_mean

#: Names of the keywords, in the order of `Effort`.
KEYWORDS = tuple(field.name for field in fields(Effort))


def effort_from(given: Mapping[str, Any]) -> Effort:
    """The effort of keywords as people give them.

    Parameters
    ----------
    given
        ``budget_ms``, ``iterations``, ``seed``, ``time_limit_s``, ``report``.

    Raises
    ------
    InputError
        With every mistake.
    """
    mistakes = [
        Mistake(name, f"unknown keyword{did_you_mean(name, KEYWORDS)}")
        for name in given
        if name not in KEYWORDS
    ]
    for name in ("budget_ms", "time_limit_s"):
        if name in given and not _is_amount(given[name]):
            mistakes.append(Mistake(name, "must be a number of at least 0", given[name]))
    iterations = given.get("iterations")
    if iterations is not None and not _is_count(iterations):
        mistakes.append(Mistake("iterations", "must be a whole number of at least 0", iterations))
    seed = given.get("seed", 0)
    if not _is_count(seed) and not isinstance(seed, np.random.Generator):
        rule = "must be a whole number of at least 0 or a numpy.random.Generator"
        mistakes.append(Mistake("seed", rule, seed))
    report = given.get("report")
    if report is not None and not callable(report):
        mistakes.append(Mistake("report", "must be a function of one argument", report))
    if mistakes:
        raise InputError("effort", mistakes)
    return Effort(**given)


def _is_count(value: Any) -> bool:
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool) and int(value) >= 0


def _is_amount(value: Any) -> bool:
    if isinstance(value, bool) or not isinstance(value, (int, float, np.integer, np.floating)):
        return False
    return math.isfinite(value) and float(value) >= 0
