"""From traffic to GPUs: whole replicas for every step."""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from gpuplan.forecast.holding import PeakComparison, against_peak, is_whole
from gpuplan.forecast.traffic import HOUR_S
from gpuplan.inputs.errors import InputError, Mistake

if TYPE_CHECKING:
    import pandas as pd

#: Share of a value below which a difference is rounding noise of sums, not demand.
NOISE = 1e-9

#: Replicas of one step; more is a wrong unit.
MOST_REPLICAS = 1_000_000


@dataclass(frozen=True, slots=True)
class Replica:
    """One copy of a served model: what it takes and what it carries.

    Parameters
    ----------
    gpus
        GPUs of one replica.
    per_s
        Traffic that it carries at full load, in `unit`.
    unit
        Unit of the traffic, such as ``"tokens/s"``.
    target_load
        Share of `per_s` that it is planned for; below 1 leaves room for bursts within a step.
    min_replicas
        Replicas that are there without traffic.
    max_replicas
        Replicas that there can be; ``None`` for no limit.
    start_up_s
        Seconds from taking the GPUs until the replica serves.

    Raises
    ------
    InputError
        With every rule that is broken.
    """

    gpus: int
    per_s: float
    unit: str
    target_load: float = 1.0
    min_replicas: int = 1
    max_replicas: int | None = None
    start_up_s: float = 0.0

    def __post_init__(self) -> None:
        most = self.max_replicas
        rules = [
            ("gpus", self.gpus, is_whole(self.gpus, 1), "must be a whole number of at least 1"),
            ("per_s", self.per_s, _number(self.per_s) and self.per_s > 0, "must be a number above 0"),
            ("unit", self.unit, bool(self.unit), "must be a text that is not empty"),
            (
                "target_load",
                self.target_load,
                _number(self.target_load) and 0 < self.target_load <= 1,
                "must be a share above 0 and at most 1",
            ),
            (
                "min_replicas",
                self.min_replicas,
                is_whole(self.min_replicas, 0),
                "must be a whole number, 0 or more",
            ),
            ("max_replicas", most, most is None or is_whole(most, 1), "must be at least 1, or left out"),
            (
                "start_up_s",
                self.start_up_s,
                _number(self.start_up_s) and self.start_up_s >= 0,
                "must be 0 or more",
            ),
        ]
        mistakes = [Mistake(path, rule, value) for path, value, fine, rule in rules if not fine]
        if not mistakes and most is not None and most < self.min_replicas:
            mistakes.append(
                Mistake("max_replicas", f"must be at least min_replicas, {self.min_replicas}", most)
            )
        if mistakes:
            raise InputError("replica", mistakes)


@dataclass(frozen=True, slots=True, eq=False)
class Sizing:
    """Replicas and GPUs for every step.

    Parameters
    ----------
    replica
        What was sized.
    step_s
        Length of a step in seconds.
    replicas
        Replicas that must serve in each step.
    held
        Replicas whose GPUs are taken: `replicas`, and those that start up for a later step.
    unknown
        Steps whose traffic is unknown: they keep the replicas of the step before.
    capped
        Steps that would need more than `max_replicas`.
    """

    replica: Replica
    step_s: int
    replicas: npt.NDArray[np.int64]
    held: npt.NDArray[np.int64]
    unknown: npt.NDArray[np.bool_]
    capped: npt.NDArray[np.bool_]

    @property
    def gpus(self) -> npt.NDArray[np.int64]:
        """GPUs taken in each step."""
        return self.held * self.replica.gpus

    @property
    def against_peak(self) -> PeakComparison:
        """GPU-hours step by step, against the highest step held all the time."""
        return against_peak(self.gpus, self.step_s)

    def to_frame(self) -> "pd.DataFrame":
        """A row per step: ``step``, ``replicas``, ``held``, ``gpus``, ``unknown``, ``capped``."""
        import pandas as pd

        columns = {name: getattr(self, name) for name in ("replicas", "held", "gpus", "unknown", "capped")}
        return pd.DataFrame({"step": np.arange(len(self.replicas)), **columns})

    def __repr__(self) -> str:
        words = f"{len(self.replicas)} steps of {self.step_s:,} s: {self.against_peak}"
        if self.unknown.any():
            words += (
                f"\n- {int(self.unknown.sum())} steps of unknown traffic keep the replicas of the step before"
            )
        if self.capped.any():
            words += f"\n- {int(self.capped.sum())} steps need more than {self.replica.max_replicas} replicas"
        return words


def size(values: npt.ArrayLike, replica: Replica, *, step_s: int = HOUR_S, unit: str | None = None) -> Sizing:
    """Find the least replicas that carry the traffic of each step.

    Replicas are ``ceil(value / (per_s * target_load))``, noise below a billionth of the value ignored: sums
    of floating-point numbers that should be 3000 come as 3000.0000000000005, which is no fourth replica.

    Parameters
    ----------
    values
        Traffic of each step, in the replica's unit; not-a-number where it is unknown. Such steps keep the
        replicas of the step before (those at the beginning take those of the first known step), and are marked.
    replica
        What one replica takes and carries. One that takes time to start holds its GPUs for whole steps
        before it serves, as many as the start-up touches; those needed at the beginning run already.
    step_s
        Length of a step in seconds; the start-up time is counted in it.
    unit
        Unit of the values, to be sure that it is the replica's.

    Raises
    ------
    InputError
        With every value that is negative or infinite, or if nothing is known.
    """
    traffic, mistakes = _traffic(values, replica, step_s, unit)
    if mistakes:
        raise InputError("traffic", mistakes)
    unknown = np.isnan(traffic)
    carried = replica.per_s * replica.target_load
    needed = np.ceil(traffic[~unknown] / carried * (1 - NOISE)).astype(np.int64)
    # Number of the last known step up to each one; the first known one before that.
    before = np.maximum(np.cumsum(~unknown) - 1, 0)
    wanted = np.maximum(needed[before], replica.min_replicas)
    most = replica.max_replicas
    replicas = wanted if most is None else np.minimum(wanted, most)
    ahead = min(math.ceil(replica.start_up_s / step_s), len(replicas))
    held = replicas.copy()
    for steps in range(1, ahead + 1):
        held[:-steps] = np.maximum(held[:-steps], replicas[steps:])
    return Sizing(replica, step_s, replicas, held, unknown, wanted > replicas)


def gpus_needed(values: npt.ArrayLike, replica: Replica) -> npt.NDArray[np.int64]:
    """GPUs of each step of an hour; `size` also tells which steps are unknown or capped."""
    return size(values, replica).gpus


def _traffic(
    values: npt.ArrayLike, replica: Replica, step_s: int, unit: str | None
) -> tuple[npt.NDArray[np.float64], list[Mistake]]:
    traffic = np.asarray(values, np.float64)
    mistakes = []
    if unit is not None and unit != replica.unit:
        mistakes.append(Mistake("unit", f"must be the replica's, {replica.unit}", unit))
    if not is_whole(step_s, 1):
        mistakes.append(Mistake("step_s", "must be a whole number of at least 1", step_s))
    if traffic.ndim != 1 or not traffic.size:
        return traffic, [*mistakes, Mistake("values", "must be a row of at least one value", traffic.shape)]
    most = MOST_REPLICAS * replica.per_s * replica.target_load
    for rule, wrong in (
        ("must be 0 or more, and finite", (traffic < 0) | np.isinf(traffic)),
        (
            f"needs more than {MOST_REPLICAS:,} replicas: is the unit right?",
            np.isfinite(traffic) & (traffic > most),
        ),
    ):
        mistakes += [Mistake(f"values.{i}", rule, float(traffic[i])) for i in np.flatnonzero(wrong)]
    if np.isnan(traffic).all():
        mistakes.append(Mistake("values", "must have a known step: all of them are unknown"))
    return traffic, mistakes


def _number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
