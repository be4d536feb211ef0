"""The account of a history: rows read, used and left out by reason, what is unknown, GPU time held."""

from typing import Any

import numpy as np
import numpy.typing as npt

from gpuplan.inputs.account import Account
from gpuplan.traces.history_words import NUMBERS, REASONS, STATES, TEXTS, UNKNOWN, USED

Int64 = npt.NDArray[np.int64]
Strings = npt.NDArray[np.object_]

#: Line numbers that a reason names; the rest are counted.
_LINES_NAMED = 5


def account_of(
    source: str,
    rows: str,
    table: dict[str, Any],
    outside: tuple[tuple[str, int], ...],
    changed: tuple[tuple[str, int], ...],
    amounts: tuple[tuple[str, float, str], ...],
    rules: tuple[str, ...],
    as_of_from: str,
) -> Account:
    """The account of the columns of a history.

    Parameters
    ----------
    source, rows, changed, amounts, rules, as_of_from
        As the arguments of `gpuplan.traces.history.history`.
    table
        Columns of the history, by name.
    outside
        Records that are in no row, by reason.
    """
    reason, line = table["reason"], table["line"]
    used = reason == USED
    excluded = [
        (f"{text} ({line_list(line[reason == code])})", int((reason == code).sum()))
        for code, text in enumerate(REASONS)
        if code and (reason == code).any()
    ]
    excluded += [row for row in outside if row[1]]
    unknown, absent = [], []
    for name in (*TEXTS[2:], *NUMBERS[:-1]):
        values = table[name][used & (table["gpus"] > 0) if name == "gpu_type" else used]
        count = int((values == ("" if values.dtype == object else UNKNOWN)).sum())
        if count and count == len(values):
            absent.append(name)
        elif count:
            unknown.append((f"unknown {name}, in rows used", count, "values"))
    told = (f"The file does not tell, for any row used: {', '.join(absent)}.",) if absent else ()
    waits = mapped(table["state"], lambda state: STATES.get(state) == "pending").astype(np.bool_)
    held = used & ~waits & (table["gpus"] != UNKNOWN) & (table["elapsed_s"] != UNKNOWN)
    work = exact_sum((table["gpus"] * table["elapsed_s"])[held])
    return Account(
        source,
        rows,
        len(line) + sum(count for _, count in outside),
        int(used.sum()),
        tuple(excluded),
        tuple(row for row in changed if row[1]),
        (("held: GPUs x run time", work / 3600, "GPU-hours"), *amounts, *unknown),
        (*rules, *([as_of_from] if as_of_from else []), *told),
        made="history",
    )


def line_list(lines: Int64) -> str:
    """``line 7``; ``lines 7, 9, 12, 15, 20 and 1,200 more``."""
    named = ", ".join(str(n) for n in lines[:_LINES_NAMED].tolist())
    more = f" and {len(lines) - _LINES_NAMED:,} more" if len(lines) > _LINES_NAMED else ""
    return f"line{'s' if len(lines) > 1 else ''} {named}{more}"


def exact_sum(values: Int64) -> int:
    """The sum as a whole number of any size (64 bits are not enough for a million of the largest values)."""
    high, low = values >> 32, values & 0xFFFFFFFF
    return (int(high.sum()) << 32) + int(low.sum())


def types_of(text: str, gpus: int) -> dict[str, int]:
    """GPUs by type from a `History.gpu_type`: ``a100:2,h100:1`` of 4 is 2, 1, and 1 ``unknown``."""
    if not text:
        return {"unknown": gpus}
    if ":" not in text:
        return {text: gpus}
    found = {kind: int(count) for kind, _, count in (part.rpartition(":") for part in text.split(","))}
    rest = gpus - sum(found.values())
    return found | ({"unknown": rest} if rest > 0 else {})


def mapped(texts: Strings, to: Any) -> Strings:
    """What a function makes of each text, called once for each different one."""
    import pandas as pd

    codes, values = pd.factorize(texts)
    return np.array([to(value) for value in values], object)[codes] if len(texts) else texts
