"""An hour of long-context chat requests as tasks.

Reads ``conversation_trace.csv``: ``timestamp`` (milliseconds), ``input_length``, ``output_length`` (tokens). Source of
the data: `kvcache-ai/Mooncake`, Apache-2.0 ("Mooncake", FAST 2025).
"""

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from gpuplan.inputs.errors import InputError, Mistake
from gpuplan.packing.limits import MOST_US
from gpuplan.traces.llm_tasks import ServiceRule, TaskTrace, trace_of, whole_tokens
from gpuplan.traces.table import read_table

ATTRIBUTION = "Data: Mooncake (Moonshot AI, FAST 2025), Apache-2.0."

_MILLISECOND = 1_000


def tasks(
    path: str | Path,
    rule: ServiceRule,
    models: str | Mapping[str, float] = "chat",
    *,
    stretch: float = 1.0,
    seed: int = 1,
) -> TaskTrace:
    """Read the requests as tasks. Times of the file move in steps of three seconds, so many arrivals are equal.

    Parameters
    ----------
    path
        ``conversation_trace.csv`` (or ``.csv.gz``), or a file with the same columns.
    rule
        How long a request takes; the trace does not say.
    models
        The model that all requests ask for, or models with their shares, dealt at random.
    stretch
        Times between arrivals are multiplied by it: 2 halves the rate.
    seed
        Of the dealing of models.

    Raises
    ------
    InputError
        If the file cannot be used, or an argument is out of range.
    """
    import pandas as pd

    source = Path(path).name
    if not 0 < stretch < 1e6:
        raise InputError(source, [Mistake("stretch", "must be a number above 0 and below 1e6", stretch)])
    table = read_table(path, ("timestamp", "input_length", "output_length"))
    at = pd.to_numeric(table["timestamp"], errors="coerce").to_numpy(np.float64)
    with np.errstate(invalid="ignore"):
        timed = np.isfinite(at) & (at >= 0) & (at * _MILLISECOND * stretch <= MOST_US)
    tokens_in, knows_in = whole_tokens(table["input_length"])
    tokens_out, knows_out = whole_tokens(table["output_length"])
    used = timed & knows_in & knows_out
    excluded = (
        ("the time is unknown", int((~timed).sum())),
        ("a number of tokens is unknown", int((timed & ~used).sum())),
    )
    rules: tuple[str, ...] = (
        ATTRIBUTION,
        "The file names no tenants: all requests are of everyone.",
        "Prefix caching is not modelled: all tokens in are computed and kept.",
    )
    if stretch != 1:
        rules = (*rules, f"Times between arrivals are multiplied by {stretch:g}.")
    arrival = np.rint(at[used] * _MILLISECOND * stretch).astype(np.int64)
    tokens = tokens_in[used], tokens_out[used]
    return trace_of(source, arrival, tokens, excluded, models, rule, seed, rules)
