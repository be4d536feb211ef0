"""Times that say nothing of normal traffic: named by people, or suggested to them."""

from collections.abc import Sequence
from datetime import datetime

import numpy as np

from gpuplan.forecast.traffic import TrafficHistory, epoch_s, in_spans, same_clock
from gpuplan.inputs.errors import InputError, Mistake


def span_mistakes(history: TrafficHistory, outages: Sequence[tuple[datetime, datetime]]) -> list[Mistake]:
    """What is wrong with spans of time: their zones, and ends that are not after their beginnings."""
    mistakes = []
    for number, (first, last) in enumerate(outages):
        mistakes += same_clock(f"outages.{number}.0", first, history.start.tzinfo)
        mistakes += same_clock(f"outages.{number}.1", last, history.start.tzinfo)
        if (first.tzinfo is None) == (last.tzinfo is None) and first >= last:
            mistakes.append(Mistake(f"outages.{number}", "must end after it begins", last.isoformat()))
    return mistakes


def without_outages(history: TrafficHistory, outages: Sequence[tuple[datetime, datetime]]) -> TrafficHistory:
    """The history with every bin unknown that touches one of the spans.

    Raises
    ------
    InputError
        With every span that ends before it begins, or whose zone does not suit the history.
    """
    mistakes = span_mistakes(history, outages)
    if mistakes:
        raise InputError(f"history of {history.name}", mistakes)
    moments = epoch_s(history.start) + np.arange(len(history), dtype=np.int64) * history.bin_s
    values = np.where(in_spans(moments, history.bin_s, outages), np.nan, history.values)
    return TrafficHistory(history.name, history.unit, history.start, history.bin_s, values, history.account)


def likely_outages(history: TrafficHistory, share: float = 0.02) -> list[tuple[datetime, datetime]]:
    """Find spans whose traffic is far below the usual, with the unknown bins that adjoin them.

    A suggestion to look at, applied nowhere by itself: a quiet night of a small service looks the same. Around
    a gap in a recording the first and last bins are often a small part of what was there.

    Parameters
    ----------
    history
        The traffic.
    share
        Bins below this share of the median of the known bins are far below.

    Raises
    ------
    InputError
        If the share is not between 0 and 1.
    """
    if not 0 < share < 1:
        raise InputError("likely outages", [Mistake("share", "must be between 0 and 1", share)])
    if not history.known.any():
        return []
    low = history.known & (history.values < share * np.nanmedian(history.values))
    edges = np.diff(np.concatenate([[0], (low | ~history.known).astype(np.int8), [0]]))
    spans = zip(np.flatnonzero(edges == 1).tolist(), np.flatnonzero(edges == -1).tolist(), strict=True)
    return [(history.at(first), history.at(last)) for first, last in spans if low[first:last].any()]
