"""What was known of earlier jobs when a job was submitted: those that had ended by then, and no others."""

from bisect import insort
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from gpuplan.forecast.duration_table import GROUPS, group_of

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    import pandas as pd

    Floats = npt.NDArray[np.float64]
    Codes = npt.NDArray[np.int64]

#: A user, team or cluster with fewer jobs than this is told apart from nobody ("rare").
COMMON_FROM = 20

#: Names told apart at most; scikit-learn's histograms have 255 bins for a category.
MOST_NAMES = 200

#: Ended jobs that are counted in the features. A count without end would be a calendar in disguise: trees would learn
#: "what ran in the last weeks" by it, and hold on to that for all later jobs.
COUNTED_TO = 100

_DAY_S, _WEEK_DAYS = 86_400, 7


@dataclass(frozen=True, slots=True, eq=False)
class Past:
    """Ended jobs of the same key, per job asked about: how many, the last to end, quantiles of run time (seconds)."""

    count: "Floats"
    last: "Floats"
    quantiles: "Floats"


def past(
    keys: "Codes",
    jobs: "pd.DataFrame",
    asked_keys: "Codes",
    asked_at_s: "Floats",
    quantiles: Sequence[float],
) -> Past:
    """Look back from every submission over the jobs of the same key that had ended before it.

    Parameters
    ----------
    keys, asked_keys
        Key of each past job and of each job asked about; -1 is unknown, which has no history.
    jobs
        Past jobs with ``end_s`` and ``run_s``.
    asked_at_s
        When each job asked about was submitted; a job that ended in that very moment does not count.
    quantiles
        Shares in (0, 1), interpolated linearly between jobs.
    """
    import numpy as np

    end_s, run_s = jobs["end_s"].to_numpy(np.float64), jobs["run_s"].to_numpy(np.float64)
    ended = np.lexsort((run_s, end_s))
    number = len(asked_at_s)
    count, last = np.zeros(number), np.full(number, np.nan)
    found = np.full((number, len(quantiles)), np.nan)
    runs: dict[int, list[float]] = {}
    latest: dict[int, float] = {}
    known: dict[int, tuple[int, list[float]]] = {}  # quantiles of a key, and of how many jobs
    following = 0
    for ask in np.argsort(asked_at_s, kind="stable"):
        while following < len(ended) and end_s[ended[following]] < asked_at_s[ask]:
            job = ended[following]
            insort(runs.setdefault(int(keys[job]), []), float(run_s[job]))
            latest[int(keys[job])] = float(run_s[job])
            following += 1
        key = int(asked_keys[ask])
        mine = runs.get(key, []) if key >= 0 else []
        if not mine:
            continue
        if known.get(key, (0, []))[0] != len(mine):
            known[key] = (len(mine), [_quantile(mine, share) for share in quantiles])
        count[ask], last[ask], found[ask] = len(mine), latest[key], known[key][1]
    return Past(count, last, found)


def _quantile(ordered: list[float], share: float) -> float:
    place = share * (len(ordered) - 1)
    low = int(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (place - low)


@dataclass(frozen=True, slots=True, eq=False)
class Known:
    """What was known at submission: features by name (texts for names), and the own history."""

    features: "pd.DataFrame"
    own: Past


def known_at_submission(jobs: "pd.DataFrame", asked: "pd.DataFrame", quantiles: Sequence[float]) -> Known:
    """What was known of each job of `asked` when it was submitted, given past `jobs`.

    Parameters
    ----------
    jobs
        Past jobs, from `gpuplan.forecast.duration_table.read_history`. They may reach beyond the submission of a
        job asked about, and may hold that job itself: only what had ended before counts.
    asked
        Jobs asked about; their run time is not looked at.
    quantiles
        Quantiles of the own history; the features have the median whether it is among them or not.
    """
    import numpy as np
    import pandas as pd

    group = group_of(jobs)
    shares = [*quantiles, 0.5]
    own = look_back(jobs, asked, [group], shares) if group else _nothing(len(asked), len(shares))
    features: dict[str, Any] = {name: asked[name].to_numpy(np.float64) for name in ("gpus", "limit_s")}
    clock_s = asked["clock_s"].to_numpy(np.float64)
    features["hour"] = clock_s % _DAY_S / 3600
    features["weekday"] = clock_s // _DAY_S % _WEEK_DAYS
    features |= {name: pd.Series(asked[name].to_numpy(), dtype=object) for name in GROUPS}
    features |= _history_features("own", own)
    if jobs["name"].notna().any():
        alike = [*([group] if group else []), "name"]
        features |= _history_features("same_name", look_back(jobs, asked, alike, shares))
    return Known(pd.DataFrame(features), Past(own.count, own.last, own.quantiles[:, : len(quantiles)]))


def look_back(
    jobs: "pd.DataFrame", asked: "pd.DataFrame", columns: Sequence[str], quantiles: Sequence[float]
) -> Past:
    """`past` over the jobs that are alike in `columns` (none: all jobs); one that is unknown has no history."""
    import numpy as np
    import pandas as pd

    codes = np.zeros(len(jobs) + len(asked), np.int64)
    for name in columns:
        part = pd.factorize(np.concatenate([jobs[name].to_numpy(), asked[name].to_numpy()]))[0]
        codes = np.where((codes < 0) | (part < 0), -1, codes * (part.max(initial=0) + 1) + part)
    at_s = asked["at_s"].to_numpy(np.float64)
    return past(codes[: len(jobs)], jobs, codes[len(jobs) :], at_s, quantiles)


def first_known(*offers: "Floats") -> "Floats":
    """The first offer, filled from the next ones where it is unknown (NaN)."""
    import numpy as np

    found = offers[0]
    for offer in offers[1:]:
        found = np.where(np.isnan(found), offer, found)
    return found


def _history_features(whose: str, found: Past) -> dict[str, "Floats"]:
    import numpy as np

    return {
        f"{whose}_jobs": np.minimum(found.count, COUNTED_TO),
        f"{whose}_median_s": found.quantiles[:, -1],
        f"{whose}_last_s": found.last,
    }


def _nothing(number: int, shares: int) -> Past:
    import numpy as np

    return Past(np.zeros(number), np.full(number, np.nan), np.full((number, shares), np.nan))


def common_names(features: "pd.DataFrame") -> dict[str, dict[str, int]]:
    """Numbers of the names that are common enough to be told apart, per column; the most frequent first."""
    found: dict[str, dict[str, int]] = {}
    for column in GROUPS:
        counts = features[column].dropna().value_counts()
        ranked = sorted(((-int(count), str(name)) for name, count in counts.items() if count >= COMMON_FROM))
        found[column] = {name: number for number, (_, name) in enumerate(ranked[:MOST_NAMES])}
    return found


def matrix(
    features: "pd.DataFrame", names: Mapping[str, Mapping[str, int]], columns: Sequence[str]
) -> "Floats":
    """Features as numbers: a common name its number, a rare or new one the number after those, an unknown one NaN."""
    import numpy as np

    def numbers(column: str) -> "Floats":
        if column not in names:
            return features[column].to_numpy(np.float64)
        codes = names[column]
        return np.array(
            [
                float(codes.get(name, len(codes))) if isinstance(name, str) else np.nan
                for name in features[column]
            ],
            np.float64,
        )

    return np.column_stack([numbers(column) for column in columns])
