"""An hour of requests to a chat service as tasks.

Reads ``AzureLLMInferenceTrace_conv.csv``: ``TIMESTAMP, ContextTokens, GeneratedTokens``. Source of the data:
`Azure/AzurePublicDataset`, CC BY 4.0 (Patel and others, "Splitwise", ISCA 2024).
"""

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from gpuplan.inputs.errors import InputError, Mistake
from gpuplan.traces.llm_tasks import ServiceRule, TaskTrace, trace_of, whole_tokens
from gpuplan.traces.table import read_table

ATTRIBUTION = "Data: Azure LLM inference trace 2023 (Microsoft), CC BY 4.0."


def tasks(
    path: str | Path,
    rule: ServiceRule,
    models: str | Mapping[str, float] = "chat",
    *,
    stretch: float = 1.0,
    seed: int = 1,
) -> TaskTrace:
    """Read the requests as tasks, from the first one on.

    Parameters
    ----------
    path
        ``AzureLLMInferenceTrace_conv.csv`` (or ``.csv.gz``), or a file with the same columns.
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
    table = read_table(path, ("TIMESTAMP", "ContextTokens", "GeneratedTokens"))
    moments = pd.to_datetime(table["TIMESTAMP"], format="ISO8601", errors="coerce", utc=True)
    timed = moments.notna().to_numpy(np.bool_)
    tokens_in, knows_in = whole_tokens(table["ContextTokens"])
    tokens_out, knows_out = whole_tokens(table["GeneratedTokens"])
    used = timed & knows_in & knows_out
    instants = moments[used].to_numpy("datetime64[ns]").astype(np.int64)
    after_us = (instants - instants.min()) / 1_000 * stretch if len(instants) else instants
    excluded = (
        ("the time is unknown", int((~timed).sum())),
        ("a number of tokens is unknown", int((timed & ~used).sum())),
    )
    rules: tuple[str, ...] = (ATTRIBUTION, "The file names no tenants: all requests are of everyone.")
    if stretch != 1:
        rules = (*rules, f"Times between arrivals are multiplied by {stretch:g}.")
    tokens = tokens_in[used], tokens_out[used]
    return trace_of(source, np.rint(after_us).astype(np.int64), tokens, excluded, models, rule, seed, rules)
