"""GPUs as NVIDIA's DCGM exporter measured them: tables by GPU and bin of time, and what held each GPU when."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from gpuplan.forecast.traffic import HOUR_S, TrafficHistory
from gpuplan.inputs.account import Account
from gpuplan.inputs.errors import InputError, Mistake, did_you_mean
from gpuplan.traces.dcgm_metrics import MEASURES

if TYPE_CHECKING:
    import pandas as pd

Floats = npt.NDArray[np.float64]
Codes = npt.NDArray[np.int32]
Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class GpuOf:
    """A GPU, or an instance of one (MIG): its UUID, host, number there and model; what is empty is not known."""

    uuid: str
    host: str = ""
    number: str = ""
    model: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class GpuReadings:
    """``G`` GPUs over ``B`` bins of time.

    Attributes
    ----------
    source
        Names of the files.
    start, bin_s
        Start of the first bin, and the width of each in seconds.
    gpus
        By UUID.
    tables : dict
        float64[G, B] by the name of a measure (``utilization``: share of time, ``memory_used``: GiB, ``power``: W, ...;
        see `gpuplan.traces.dcgm_metrics.MEASURES`); not-a-number where it is not known.
    holders : dict
        int32[G, B] by label (``pod``, ``namespace``, ``container``, ``job``): what the GPU served, a place in `names`;
        -1: nothing, or nobody said.
    names : dict
        Values of each of these labels.
    account
        What became of every reading.
    """

    source: str
    start: datetime
    bin_s: int
    gpus: tuple[GpuOf, ...]
    tables: dict[str, Floats]
    holders: dict[str, Codes]
    names: dict[str, tuple[str, ...]]
    account: Account = field(repr=False)

    @property
    def n_bins(self) -> int:
        """Bins of time."""
        return int(next(iter(self.tables.values())).shape[1])

    @property
    def seen(self) -> Bools:
        """Bins in which some metric of a GPU was read, bool[G, B]."""
        return np.asarray(np.logical_or.reduce([np.isfinite(table) for table in self.tables.values()]))

    @property
    def held(self) -> Bools:
        """Bins in which something held a GPU, bool[G, B]."""
        return np.asarray(np.logical_or.reduce([table >= 0 for table in self.holders.values()]))

    def table(self, measure: str) -> Floats:
        """Readings of a measure, float64[G, B]; an `InputError` where it was not read."""
        if measure not in self.tables:
            rule = f"must be one of {', '.join(self.tables)}" + did_you_mean(measure, self.tables)
            raise InputError(self.source, [Mistake("measure", rule, measure)])
        return self.tables[measure]

    def history(self, measure: str, how: Literal["mean", "sum", "highest"] = "mean") -> TrafficHistory:
        """A measure over the GPUs that are known in each bin; unknown where none is."""
        table = self.table(measure)
        known = np.isfinite(table)
        count = known.sum(axis=0)
        if how == "highest":
            found = np.where(known, table, -np.inf).max(axis=0)
        else:
            found = np.where(known, table, 0).sum(axis=0)
            if how == "mean":
                found = found / np.maximum(count, 1)
        unit = next(each.unit for each in MEASURES.values() if each.name == measure)
        return self._history(f"{measure} ({how} of the GPUs)", unit, np.where(count > 0, found, np.nan))

    def gpus_held(self) -> TrafficHistory:
        """GPUs that something held, in each bin; unknown where no GPU was read."""
        return self._history("GPUs held", "GPUs", self._count(self.held))

    def gpus_busy(self, above: float = 0.0, measure: str = "utilization") -> TrafficHistory:
        """GPUs whose measure was above a level, in each bin: GPUs that worked, held or not."""
        table = self.table(measure)
        return self._history(f"GPUs with {measure} above {above:g}", "GPUs", self._count(table > above))

    def gpus_held_by(
        self, label: Literal["job", "namespace", "pod", "container"]
    ) -> dict[str, TrafficHistory]:
        """GPUs that each value of a label held, in each bin, by name: for the real-time apps of a day, or for teams."""
        names, table = self.names[label], self.holders[label]
        return {
            names[k]: self._history(names[k], "GPUs", self._count(table == k))
            for k in sorted(range(len(names)), key=names.__getitem__)
        }

    @property
    def figures(self) -> dict[str, float]:
        """Amounts in GPU-hours: ``seen`` (read at all), ``held``, ``held_idle`` (held, utilization 0), ``worked``.

        ``worked`` is the sum of utilization over time: GPU-hours as if a GPU worked fully or not at all.
        """
        hours = self.bin_s / HOUR_S
        found = {"seen": float(self.seen.sum()) * hours, "held": float((self.held & self.seen).sum()) * hours}
        if "utilization" in self.tables:
            table = self.tables["utilization"]
            found["held_idle"] = float((self.held & (table == 0)).sum()) * hours
            found["worked"] = float(np.nansum(table)) * hours
        return found

    def to_frame(self) -> "pd.DataFrame":
        """A row per GPU and bin in which it was read: the GPU, ``time``, what held it, every measure."""
        import pandas as pd

        g, b = np.nonzero(self.seen)
        times = pd.date_range(self.start, periods=self.n_bins, freq=pd.Timedelta(seconds=self.bin_s))
        columns: dict[str, Any] = {
            name: np.array([getattr(gpu, name) for gpu in self.gpus], object)[g]
            for name in ("uuid", "host", "number", "model")
        }
        columns["time"] = times[b]
        for label, table in self.holders.items():
            columns[label] = np.array([*self.names[label], ""], object)[table[g, b]]  # -1: the last one
        return pd.DataFrame(columns | {name: table[g, b] for name, table in self.tables.items()})

    def __repr__(self) -> str:
        amounts = ", ".join(f"{name} {value:,.1f}" for name, value in self.figures.items())
        head = (
            f"{len(self.gpus):,} GPUs, {self.n_bins:,} bins of {self.bin_s:,} s from {self.start.isoformat()}"
        )
        return f"{head}; GPU-hours: {amounts}\n{self.account!r}"

    def _count(self, which: Bools) -> Floats:
        seen = self.seen
        return np.where(seen.any(axis=0), (which & seen).sum(axis=0), np.nan)

    def _history(self, name: str, unit: str, values: Floats) -> TrafficHistory:
        return TrafficHistory(name, unit, self.start, self.bin_s, values, self.account)
