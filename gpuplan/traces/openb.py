"""Pods with whole GPUs, shares of one and constraints on the type, and the nodes of an Alibaba cluster (2023).

Reads ``openb_pod_list_*.csv`` (``name, cpu_milli, memory_mib, num_gpu, gpu_milli``, and where there are any
``gpu_spec, pod_phase, creation_time, deletion_time, scheduled_time``) and ``openb_node_list_*.csv``
(``sn, cpu_milli, memory_mib, gpu, model``). Source of the data: `hkust-adsl/kubernetes-scheduler-simulator`, Apache-2.0
(Weng and others, "Beware of Fragmentation", USENIX ATC 2023).

``gpu_milli`` is of *each* GPU: 1 GPU and 460 is 0.46 GPUs, 8 and 1000 is 8, 2 and 500 is 1. ``A|B`` allows two types,
an empty ``gpu_spec`` any; blanks and capitals do not matter. Without ``scheduled_time`` a pod never ran.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from gpuplan.inputs.account import Account
from gpuplan.inputs.errors import InputError, Mistake
from gpuplan.packing.model import Bools, Int64
from gpuplan.packing.pods import NO_TIME, WHOLE, Nodes, Objects, Pods, nodes, pods, type_name
from gpuplan.traces.table import read_table

if TYPE_CHECKING:
    import pandas as pd

ATTRIBUTION = "Data: Alibaba cluster trace GPU 2023 (Weng and others, USENIX ATC 2023), Apache-2.0."

_NEEDED = ("name", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli")
_OPTIONAL = ("gpu_spec", "pod_phase", "creation_time", "deletion_time", "scheduled_time")

#: Phase of a pod that ran when the trace was cut.
RUNNING = "running"

#: Words for "no type named" besides nothing.
_NO_TYPE = ("", "NAN", "NONE", "NULL")

_LARGEST = 10**12


@dataclass(frozen=True)
class OpenbPods:
    """The pods of a file, with the account of its rows.

    Attributes
    ----------
    pods
        In the order of the file.
    phase : object[P]
        In small letters; empty where the file has none.
    account
    """

    pods: Pods
    phase: Objects
    account: Account

    @property
    def gpu_pods(self) -> int:
        """Pods that ask for a GPU or a part of one."""
        return int((self.pods.gpus > 0).sum())

    @property
    def end_s(self) -> int:
        """The last moment in the file, where the trace was cut; `NO_TIME` without times."""
        times = (self.pods.created_s, self.pods.scheduled_s, self.pods.deleted_s)
        return max((int(column.max()) for column in times if len(column)), default=NO_TIME)

    @cached_property
    def held_milli_s(self) -> Int64:
        """Thousandths of GPUs x seconds from scheduling to deletion, int64[P]; 0 for pods that never ran.

        Pods that still ran when the trace was cut (`open_at_end`) held theirs for at least so long.
        """
        ran = (self.pods.scheduled_s != NO_TIME) & (self.pods.deleted_s != NO_TIME)
        return np.where(ran, (self.pods.deleted_s - self.pods.scheduled_s) * self.pods.demand_milli, 0)

    @property
    def gpu_seconds(self) -> float:
        """GPUs x seconds held by all pods (a lower bound where some are `open_at_end`)."""
        return int(self.held_milli_s.sum()) / WHOLE

    @property
    def never_scheduled(self) -> list[str]:
        """Names of the pods without a moment of scheduling, in a file that has such moments."""
        if not (self.pods.created_s != NO_TIME).any():
            return []
        return [str(name) for name in self.pods.name[self.pods.scheduled_s == NO_TIME]]

    @property
    def open_at_end(self) -> list[str]:
        """Names of the pods that still ran when the trace was cut: their deletion is that of the file."""
        ran = (self.phase == RUNNING) & (self.pods.scheduled_s != NO_TIME)
        return [str(name) for name in self.pods.name[ran & (self.pods.deleted_s == self.end_s)]]

    @property
    def mean_wait_s(self) -> float:
        """Mean seconds from creation to scheduling of the pods that were scheduled; nan without any."""
        ran = (self.pods.scheduled_s != NO_TIME) & (self.pods.created_s != NO_TIME)
        return float((self.pods.scheduled_s - self.pods.created_s)[ran].mean()) if ran.any() else float("nan")

    def candidate_gpus(self, where: Nodes) -> dict[str, int]:
        """GPUs of the types that each pod allows, by name, of the pods that ask for one."""
        known: dict[tuple[str, ...], int] = {}
        found = {}
        for name, types, gpus in zip(self.pods.name, self.pods.types, self.pods.gpus, strict=True):
            if gpus:
                if types not in known:
                    known[types] = int(where.gpus[where.candidates(types)].sum())
                found[str(name)] = known[types]
        return found


def read_pods(path: str | Path) -> OpenbPods:
    """The pods of a file.

    Rows that say something impossible are left out, counted by reason in the account: a number that is none, more than
    1,000 thousandths of a GPU, a GPU of which nothing is asked for, a name that is empty or was there before, a moment
    before the one that must precede it.

    Parameters
    ----------
    path
        A CSV file (gzip where its name ends in ``.gz``).

    Raises
    ------
    InputError
        If the file cannot be read, lacks a column, or has no usable row.
    """
    table = _table(path)
    source = Path(path).name
    numbers = {name: _numbers(table[name]) for name in _NEEDED[1:]}
    times = {name: _times(table, name) for name in _OPTIONAL[2:]}
    left = np.ones(len(table), np.bool_)
    reasons = []
    for reason, fails in _faults(table, numbers, times):
        reasons.append((reason, int((left & fails).sum())))
        left &= ~fails
    if not left.any():
        raise InputError(source, [Mistake("", "must hold at least one usable pod")])
    kept = {name: column[left] for name, column in (numbers | times).items()}
    found = pods(
        table["name"][left].tolist(),
        kept["cpu_milli"],
        kept["memory_mib"],
        kept["num_gpu"],
        kept["gpu_milli"],
        [_types(text) for text in table["gpu_spec"][left]] if "gpu_spec" in table else (),
        kept["creation_time"],
        kept["scheduled_time"],
        kept["deletion_time"],
    )
    words = table["pod_phase"][left] if "pod_phase" in table else [""] * len(found)
    phase = np.array([word.strip().lower() for word in words], object)
    phase.setflags(write=False)
    return OpenbPods(found, phase, _account(source, len(table), found, reasons))


def read_nodes(path: str | Path) -> Nodes:
    """The nodes of a file; those without GPUs too.

    Raises
    ------
    InputError
        If the file cannot be read or lacks a column; for every number that is none, a name that is empty or was there
        before, and GPUs without a type.
    """
    table = read_table(path, ("sn", "cpu_milli", "memory_mib", "gpu", "model"))
    columns = {name: _numbers(table[name]) for name in ("cpu_milli", "memory_mib", "gpu")}
    mistakes = [
        Mistake(name, "must be a whole number of at least 0", table[name].iloc[row], int(row) + 2)
        for name, values in columns.items()
        for row in np.flatnonzero(values < 0)
    ]
    seen: set[str] = set()
    for row, (name, kind, gpus) in enumerate(zip(table["sn"], table["model"], columns["gpu"], strict=True)):
        if not name.strip() or name in seen:
            mistakes.append(Mistake("sn", "must be a name of its own", name, row + 2))
        seen.add(name)
        if gpus > 0 and type_name(kind) in _NO_TYPE:
            mistakes.append(Mistake("model", "must name the type of the GPUs", kind, row + 2))
    if not len(table):
        mistakes.append(Mistake("", "must hold at least one node"))
    if mistakes:
        raise InputError(Path(path).name, mistakes)
    kinds = ["" if type_name(kind) in _NO_TYPE else kind for kind in table["model"]]
    return nodes(table["sn"].tolist(), columns["cpu_milli"], columns["memory_mib"], columns["gpu"], kinds)


def _table(path: str | Path) -> "pd.DataFrame":
    """The needed columns as text, and those of the others that are there."""
    try:
        return read_table(path, (*_NEEDED, *_OPTIONAL))
    except InputError as error:
        lacking = {mistake.path for mistake in error.mistakes}
        if "" in lacking:  # not about columns
            raise
    return read_table(path, (*_NEEDED, *(name for name in _OPTIONAL if name not in lacking)))


def _numbers(column: "pd.Series[str]") -> Int64:
    """Whole numbers of a column of text; -1 for what is none."""
    return np.array([_number(text.strip()) for text in column], np.int64)


def _number(text: str) -> int:
    """A whole number from 0 to a million million, also written as ``12.0``; -1 for anything else."""
    digits = text.removesuffix(".0")
    return (
        int(digits)
        if digits.isascii() and digits.isdigit() and len(digits) < 14 and int(digits) <= _LARGEST
        else -1
    )


def _times(table: "pd.DataFrame", name: str) -> Int64:
    """Moments of a column; `NO_TIME` where there is none, -2 for what is no number."""
    if name not in table:
        return np.full(len(table), NO_TIME, np.int64)
    found = _numbers(table[name])
    written = ~table[name].str.strip().str.upper().isin(_NO_TYPE).to_numpy(np.bool_)
    return np.where(written & (found < 0), -2, found)


def _types(text: str) -> Sequence[str]:
    return [name for name in text.split("|") if type_name(name) not in _NO_TYPE]


def _faults(
    table: "pd.DataFrame", numbers: dict[str, Int64], times: dict[str, Int64]
) -> list[tuple[str, Bools]]:
    """What may be wrong with a row, in the order in which it is looked for."""
    gpus, milli = numbers["num_gpu"], numbers["gpu_milli"]
    created, scheduled, deleted = (
        times[name] for name in ("creation_time", "scheduled_time", "deletion_time")
    )
    names = table["name"]
    early = _before(scheduled, created) | _before(deleted, scheduled)
    return [
        (
            "no name, or one that was there before",
            (names.str.strip().eq("") | names.duplicated()).to_numpy(np.bool_),
        ),
        ("no whole number where one must be", np.any([column < 0 for column in numbers.values()], axis=0)),
        ("a moment that is no whole number", np.any([column == -2 for column in times.values()], axis=0)),
        ("more than 1,000 thousandths of a GPU", milli > WHOLE),
        ("a GPU of which nothing is asked for, or the other way round", (gpus > 0) != (milli > 0)),
        ("deleted before it was scheduled, or scheduled before it was created", early),
    ]


def _before(moment: Int64, other: Int64) -> Bools:
    """Where both are known, and one is before the other."""
    return (moment >= 0) & (other >= 0) & (moment < other)


def _account(source: str, read: int, found: Pods, reasons: list[tuple[str, int]]) -> Account:
    bound = int(sum(bool(types) for types in found.types.tolist()))
    shared = int(((found.gpus > 0) & (found.gpu_milli < WHOLE)).sum())
    waited = int((found.scheduled_s == NO_TIME).sum())
    return Account(
        source=source,
        rows="pods",
        read=read,
        used=len(found),
        excluded=tuple((reason, count) for reason, count in reasons if count),
        amounts=(
            ("asked for by all pods", int(found.demand_milli.sum()) / WHOLE, "GPUs"),
            ("pods that take part of a GPU", float(shared), "pods"),
            ("pods without a GPU", float((found.gpus == 0).sum()), "pods"),
            ("pods that name types of GPUs", float(bound), "pods"),
            *([("never scheduled", float(waited), "pods")] if (found.created_s != NO_TIME).any() else []),
        ),
        rules=(
            "GPUs of a pod: num_gpu x gpu_milli / 1000, as gpu_milli is of each GPU.",
            "An empty gpu_spec allows every type, A|B allows two; blanks and capitals do not matter.",
            ATTRIBUTION,
        ),
        made="list",
    )
