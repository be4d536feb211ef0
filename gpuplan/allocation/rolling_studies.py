"""What a rolling run loses where it cannot see far, or where what it sees is wrong."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from gpuplan.allocation.days import Errors
from gpuplan.allocation.plan import policy_named, ready
from gpuplan.allocation.rolling import roll
from gpuplan.allocation.rolling_run import ROLLING_UNITS
from gpuplan.inputs.errors import InputError, Mistake, shorten

if TYPE_CHECKING:
    import pandas as pd

#: Horizons of `end_of_world`, in hours.
HORIZONS_HOURS = (1.0, 3.0, 6.0, 12.0, 24.0, 48.0)

#: Errors of `error_map`: standard deviations of the logarithm of a random factor.
TRAFFIC_NOISE = (0.0, 0.1, 0.2, 0.4, 0.8)
DURATION_NOISE = (0.0, 0.2, 0.4, 0.8)

#: Figures of the tables.
FIGURES = ("objective", "value", "coverage", "utilization", "jobs_finished", "wait_p50_hours", "churn")


@dataclass(frozen=True)
class EndOfWorld:
    """The same days under plans that see more or less far.

    Attributes
    ----------
    table : DataFrame
        Tidy: ``policy, horizon_hours, figure, value, unit``.
    """

    name: str
    days: int
    table: "pd.DataFrame"

    @cached_property
    def lost(self) -> "pd.DataFrame":
        """Objective lost against the longest horizon: ``policy, horizon_hours, objective, lost`` (a share)."""
        rows = self.table[self.table["figure"] == "objective"]
        rows = rows.rename(columns={"value": "objective"})[["policy", "horizon_hours", "objective"]]
        longest = rows[rows["horizon_hours"] == rows["horizon_hours"].max()].set_index("policy")["objective"]
        best = rows["policy"].map(longest)
        return rows.assign(lost=(best - rows["objective"]) / best.abs().clip(lower=1e-9)).reset_index(
            drop=True
        )

    @property
    def sentences(self) -> list[str]:
        """What is lost when plans cannot see, a sentence per policy."""
        found = []
        for policy, rows in self.lost.groupby("policy", sort=False):
            shortest = rows.sort_values("horizon_hours").iloc[0]
            far = rows["horizon_hours"].max()
            word = "loses" if shortest["lost"] >= 0 else "gains"
            found.append(
                f"{policy}: a plan that sees {shortest['horizon_hours']:g} h {word} {abs(shortest['lost']):.1%} of the "
                f"objective against one that sees {far:g} h."
            )
        return found

    def __repr__(self) -> str:
        return f"<EndOfWorld of {shorten(self.name)!r}: " + " ".join(self.sentences) + ">"


@dataclass(frozen=True)
class ErrorMap:
    """The gain over FIFO against the errors of two forecasts.

    The gain is what the objective is higher by, as a share of FIFO's value on the same days with everything known:
    one unit for the whole map. What FIFO earns itself changes with the errors, and may come close to 0.

    Attributes
    ----------
    table : DataFrame
        A row per pair of errors and seed: ``traffic_noise, duration_noise, seed, fifo, objective, gain``; the
        gain is missing where FIFO has no value with everything known.
    known : tuple
        Value of FIFO and objective of the policy with everything known (priority-weighted GPU-hours).
    """

    name: str
    policy: str
    days: int
    table: "pd.DataFrame"
    known: tuple[float, float]

    @cached_property
    def mean(self) -> "pd.DataFrame":
        """Mean over seeds: ``traffic_noise, duration_noise, gain, least, seeds, kept, negative``.

        ``kept`` is the policy's own objective as a share of the one with everything known.
        """
        grouped = self.table.groupby(["traffic_noise", "duration_noise"], sort=True)
        mean = grouped["gain"].agg(gain="mean", least="min", seeds="size").reset_index()
        kept = grouped["objective"].mean().to_numpy() / max(1e-9, abs(self.known[1]))
        return mean.assign(kept=kept, negative=mean["gain"] < 0)

    @property
    def sentence(self) -> str:
        """Where the gain turns negative, or how much of it is left where the errors are largest."""
        mean = self.mean
        if mean["gain"].isna().all():
            return "FIFO does no work on these days: there is no gain to speak of as a share."
        start, end = mean.iloc[0]["gain"], mean.iloc[-1]["gain"]
        text = (
            f"The gain of {self.policy} over fifo goes from {start:.1%} without errors to {end:.1%} with the "
        )
        text += (
            f"largest; of its own objective with everything known {mean.iloc[-1]['kept']:.1%} is left there."
        )
        negative = mean[mean["negative"]]
        if len(negative):
            first = negative.iloc[0]
            text += (
                f" It turns negative in {len(negative)} of {len(mean)} cells, first at traffic noise "
                f"{first['traffic_noise']:g} and duration noise {first['duration_noise']:g}."
            )
        else:
            text += " It is negative nowhere on this map."
        return text

    def __repr__(self) -> str:
        return f"<ErrorMap of {shorten(self.name)!r}: {self.sentence}>"


def end_of_world(
    scenario: Any,
    policies: Sequence[str] = ("fifo", "aware"),
    *,
    horizons_hours: Iterable[float] = HORIZONS_HOURS,
    days: int = 7,
    errors: Errors | Mapping[str, float] | None = None,
    seed: int = 0,
    **effort: Any,
) -> EndOfWorld:
    """Run the same days with plans that see more or less far.

    Parameters
    ----------
    scenario, days, errors, seed, **effort
        As in `gpuplan.allocation.rolling.roll`.
    policies
        Names of policies.
    horizons_hours
        How far plans see.

    Raises
    ------
    InputError
        With every mistake.
    """
    import pandas as pd

    day, names = ready(scenario), _policies(policies)
    rows = []
    for hours in sorted(set(horizons_hours)):
        for name in names:
            run = roll(day, name, days=days, horizon_hours=hours, errors=errors, seed=seed, **effort)
            figures = run.figures
            rows += [(name, hours, figure, figures[figure], ROLLING_UNITS[figure]) for figure in FIGURES]
    table = pd.DataFrame(rows, columns=["policy", "horizon_hours", "figure", "value", "unit"])
    return EndOfWorld(day.name, days, table.astype({"value": float, "horizon_hours": float}))


def error_map(
    scenario: Any,
    policy: str = "aware",
    *,
    traffic_noise: Iterable[float] = TRAFFIC_NOISE,
    duration_noise: Iterable[float] = DURATION_NOISE,
    seeds: Sequence[int] = (0, 1, 2),
    days: int = 7,
    errors: Errors | None = None,
    **effort: Any,
) -> ErrorMap:
    """The gain of a policy over FIFO where the forecasts of traffic and of durations are wrong.

    Both policies meet the same days and know the same wrong forecasts.

    Parameters
    ----------
    scenario, days, **effort
        As in `gpuplan.allocation.rolling.roll`.
    policy
        Whose gain.
    traffic_noise, duration_noise
        Errors in the two directions of the map (see `Errors`).
    seeds
        Random numbers of the errors: the same for every cell of the map.
    errors
        What else is wrong: biases, unannounced arrivals.

    Raises
    ------
    InputError
        With every mistake.
    """
    import pandas as pd

    day = ready(scenario)
    policy_named(policy)
    base = roll(day, "fifo", days=days, **effort).figures
    value = float(base["value"] or 0.0)
    best = float(roll(day, policy, days=days, **effort).figures["objective"] or 0.0)
    rows = []
    for traffic in sorted(set(traffic_noise)):
        for durations in sorted(set(duration_noise)):
            wrong = replace(errors or Errors(), traffic_noise=traffic, duration_noise=durations)
            for seed in seeds:
                fifo, mine = (
                    float(
                        roll(day, name, days=days, errors=wrong, seed=seed, **effort).figures["objective"]
                        or 0.0
                    )
                    for name in ("fifo", policy)
                )
                gain = (mine - fifo) / value if value > 0 else np.nan
                rows.append((traffic, durations, seed, fifo, mine, gain))
    columns = ["traffic_noise", "duration_noise", "seed", "fifo", "objective", "gain"]
    return ErrorMap(day.name, policy, days, pd.DataFrame(rows, columns=columns), (value, best))


def _policies(policies: Sequence[str]) -> list[str]:
    names = [policies] if isinstance(policies, str) else list(dict.fromkeys(policies))
    if not names:
        raise InputError("allocation", [Mistake("policies", "must name at least one policy", names)])
    for name in names:
        policy_named(name)
    return names
