"""GPUs as NVIDIA's DCGM exporter measured them: the series of a GPU joined by its UUID, whatever ran on it.

Prometheus makes a new series of every set of labels, so a GPU has one for each pod that it served. Here it is one GPU
again, with what held it at each time. Answers of several queries (a metric each) are joined.
"""

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

import numpy as np
import numpy.typing as npt

from gpuplan.inputs.account import Account
from gpuplan.inputs.errors import InputError, Mistake, did_you_mean, shorten
from gpuplan.traces.dcgm_metrics import HOLDERS, MEASURES, Measure, is_blank, label_of
from gpuplan.traces.dcgm_readings import Bools, Floats, GpuOf, GpuReadings
from gpuplan.traces.prometheus import read_prometheus
from gpuplan.traces.series import Metrics, increases

#: A share that is rounded may be so much above 1.
_ROUNDING = 0.005

#: Contradictions of one file that are told one by one.
_TOLD = 50


def read_dcgm(
    *paths: str | Path,
    metric: str | None = None,
    bin_s: int | None = None,
) -> GpuReadings:
    """Read answers of Prometheus about metrics of the DCGM exporter, and join them by GPU.

    Two series of a GPU that serve the same must agree where both have a reading. Where one that served something else
    lingers (a server repeats a last reading for five minutes), the one that began later is the GPU's.

    Parameters
    ----------
    paths
        JSON of range queries (or instant ones), each with one metric or several (``{__name__=~"DCGM_FI_.*"}``).
    metric
        What series without a name are, as those of ``avg_over_time(...)``.
    bin_s
        Seconds between readings; their least distance where it is left out.

    Raises
    ------
    InputError
        If a file cannot be used, has no metric that is known here, a series has no UUID, readings lie outside the range
        of their metric or contradict each other, or the files do not lie on one grid of time.
    """
    if metric is not None and metric not in MEASURES:
        rule = "must be a metric of the DCGM exporter that is known here" + did_you_mean(metric, MEASURES)
        raise InputError("dcgm", [Mistake("metric", rule, metric)])
    if not paths:
        raise InputError("dcgm", [Mistake("paths", "must name at least one file")])
    answers = [read_prometheus(path, kind="gauge", bin_s=bin_s) for path in paths]
    start, bins = _one_grid(answers)
    joined = _Joined(bins, answers[0].bin_s)
    for answer in answers:
        joined.add(answer, round((answer.start - start).total_seconds()) // answer.bin_s, metric)
    return joined.readings(answers, start)


def _one_grid(answers: Sequence[Metrics]) -> tuple[datetime, int]:
    """Start and number of bins of a grid that all answers lie on."""
    width = answers[0].bin_s
    start = min(answer.start for answer in answers)
    for answer in answers[1:]:
        shift = (answer.start - start).total_seconds() % width
        if answer.bin_s != width or shift:
            rule = (
                f"must have the times of {answers[0].source} ({width} s apart), not {answer.bin_s} s apart"
                f"{f' and {shift:g} s later' if shift else ''}; ask both queries with one start and step"
            )
            raise InputError(answer.source, [Mistake("times", rule)])
    last = max((answer.start - start).total_seconds() / width + answer.n_bins for answer in answers)
    return start, round(last)


class _Joined:
    """Series of GPUs as they are joined, by UUID and metric."""

    def __init__(self, bins: int, bin_s: int) -> None:
        self.bins = bins
        self.bin_s = bin_s
        self.gpus: dict[str, GpuOf] = {}
        self.rows: dict[str, dict[str, list[tuple[tuple[str, ...], Floats]]]] = {}
        self.counts = dict.fromkeys(("blank", "again", "lingering", "unknown metric"), 0)
        self.others: dict[str, None] = {}
        self.resets = 0

    def add(self, answer: Metrics, offset: int, metric: str | None) -> None:
        """The series of an answer; a contradiction or a series that is none of a GPU is a mistake."""
        mistakes = []
        for i, series in enumerate(answer.series):
            labels = dict(series.labels)
            name = labels.get("__name__") or metric or ""
            if name not in MEASURES:
                self.counts["unknown metric"] += series.usable
                self.others[name or "(no name)"] = None
                continue
            uuid = label_of(labels, "uuid")
            if not uuid:
                rule = f"must have the label UUID; it has {', '.join(sorted(labels)) or 'none'}"
                mistakes.append(Mistake(f"result.{i}", rule, name))
                continue
            part = label_of(labels, "instance")
            key = f"{uuid}/{part}" if part else uuid
            values, wrong = self._values(series.values, MEASURES[name], f"result.{i} ({name})")
            mistakes += wrong
            row = np.full(self.bins, np.nan)
            row[offset : offset + len(values)] = values
            holder = tuple(label_of(labels, kind) for kind in HOLDERS)
            self.rows.setdefault(MEASURES[name].name, {}).setdefault(key, []).append((holder, row))
            known = self.gpus.get(key, GpuOf(key))
            texts = (getattr(known, kind) or label_of(labels, kind) for kind in ("host", "number", "model"))
            self.gpus[key] = GpuOf(key, *texts)
        if mistakes:
            raise InputError(answer.source, mistakes[:_TOLD])
        if not self.gpus:
            found = ", ".join(shorten(name) for name in self.others) or "none"
            rule = f"must have a metric of the DCGM exporter with the label UUID; it has {found}"
            raise InputError(answer.source, [Mistake("", rule)])

    def _values(self, given: Floats, measure: Measure, path: str) -> tuple[Floats, list[Mistake]]:
        """Readings in the unit of a measure; blanks are unknown."""
        blank = is_blank(given)
        self.counts["blank"] += int(blank.sum())
        values = np.where(blank, np.nan, given * measure.scale)
        highest = np.inf if measure.most is None else measure.most
        wrong = (values < 0) | (values > highest + _ROUNDING)
        if wrong.any():
            at = int(np.flatnonzero(wrong)[0])
            most = "" if measure.most is None else f" and at most {measure.most / measure.scale:g}"
            return values, [Mistake(f"{path}, bin {at}", f"must be at least 0{most}", float(given[at]))]
        return np.minimum(values, highest), []

    def readings(self, answers: Sequence[Metrics], start: datetime) -> GpuReadings:
        """The GPUs by UUID with their tables, and the account of all answers."""
        keys = sorted(self.gpus)
        holders = {kind: np.full((len(keys), self.bins), -1, np.int32) for kind in HOLDERS}
        names: dict[str, dict[str, int]] = {kind: {} for kind in HOLDERS}
        tables = {}
        for name, by_gpu in self.rows.items():
            table = np.full((len(keys), self.bins), np.nan)
            counter = any(each.counter for each in MEASURES.values() if each.name == name)
            for g, key in enumerate(keys):
                if key in by_gpu:
                    table[g], who = self._one(by_gpu[key], key, name)
                    for column, kind in enumerate(HOLDERS):
                        texts = [holder[column] for holder, _ in by_gpu[key]]
                        codes = [
                            names[kind].setdefault(text, len(names[kind])) if text else -1 for text in texts
                        ]
                        told = (who >= 0) & (holders[kind][g] < 0)
                        holders[kind][g][told] = np.array(codes, np.int32)[who[told]]
                if counter:
                    grown, resets, _ = increases(table[g])
                    self.resets += resets
                    table[g] = np.append(grown / self.bin_s, np.nan)
            tables[name] = table
        source = ", ".join(answer.source for answer in answers)
        gpus = tuple(self.gpus[key] for key in keys)
        values = {kind: tuple(found) for kind, found in names.items()}
        account = self._account(answers, source, tables)
        return GpuReadings(source, start, self.bin_s, gpus, tables, holders, values, account)

    def _one(
        self, series: list[tuple[tuple[str, ...], Floats]], key: str, name: str
    ) -> tuple[Floats, npt.NDArray[np.int64]]:
        """The readings of a GPU from its series, and which of them each is from (-1: none)."""
        values = np.stack([row for _, row in series])
        known = np.isfinite(values)
        newest = _newest(known)
        chosen = np.where(known.any(axis=0), newest, -1)
        found = np.where(chosen >= 0, values[newest, np.arange(self.bins)], np.nan)
        holder = np.array([hash_of(who) for who, _ in series])
        alike = holder[:, None] == holder[newest]
        apart = known & alike & (values != found)
        if apart.any():
            at = int(np.flatnonzero(apart.any(axis=0))[0])
            rule = (
                f"must not have two readings of {name} that differ at one time (bin {at}) for the same work"
            )
            low, high = np.nanmin(values[:, at]), np.nanmax(values[:, at])
            raise InputError("dcgm", [Mistake(shorten(key), rule, f"{low:g} and {high:g}")])
        self.counts["lingering"] += int((known & ~alike).sum())
        self.counts["again"] += int((known & alike).sum() - known.any(axis=0).sum())
        return found, chosen

    def _account(self, answers: Sequence[Metrics], source: str, tables: dict[str, Floats]) -> Account:
        read = sum(answer.account.read for answer in answers)
        excluded = dict.fromkeys((reason for answer in answers for reason, _ in answer.account.excluded), 0)
        for answer in answers:
            for reason, count in answer.account.excluded:
                excluded[reason] += count
        others = ", ".join(shorten(name) for name in self.others)
        excluded |= {
            "blank: DCGM's sign for a value that is not supported, not found or not permitted": self.counts[
                "blank"
            ],
            "the same reading by another series of the same GPU and work": self.counts["again"],
            "of a series that lingered beside a newer one of the same GPU": self.counts["lingering"],
            f"of a metric that is not known here ({others})": self.counts["unknown metric"],
        }
        left = sum(excluded.values())
        rules = [rule for answer in answers for rule in answer.account.rules]
        if self.resets:
            rules.append(f"{self.resets:,} resets of counters: the increase of such a bin is a lower bound.")
        return Account(
            source,
            "readings",
            read,
            read - left,
            tuple((reason, count) for reason, count in excluded.items() if count),
            amounts=(
                ("GPUs, by UUID", len(self.gpus), "GPUs"),
                *(
                    (f"bins with {name} known", int(np.isfinite(table).sum()), "bins")
                    for name, table in tables.items()
                ),
            ),
            rules=tuple(
                dict.fromkeys(
                    (
                        *rules,
                        "A GPU is its UUID: its series are joined whatever pod, namespace or job they name.",
                    )
                )
            ),
            made="readings",
        )


def _newest(known: Bools) -> npt.NDArray[np.int64]:
    """Of several series the one whose unbroken run of readings began last (of equal ones: ends last), int64[B]."""
    rows, bins = known.shape
    at = np.arange(bins)
    before = np.concatenate((np.zeros((rows, 1), np.bool_), known[:, :-1]), axis=1)
    begun = np.maximum.accumulate(np.where(known & ~before, at, -1), axis=1)
    after = np.concatenate((known[:, 1:], np.zeros((rows, 1), np.bool_)), axis=1)
    ends = np.minimum.accumulate(np.where(known & ~after, at, bins)[:, ::-1], axis=1)[:, ::-1]
    rank = np.where(known, begun * (bins + 1) + ends, -1)
    return np.asarray(rank.argmax(axis=0), np.int64)


def hash_of(holder: tuple[str, ...]) -> str:
    """What tells two kinds of work apart, as one text."""
    return "\x1f".join(holder)
