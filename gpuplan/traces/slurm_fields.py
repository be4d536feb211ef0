"""What the texts of a `sacct` table mean, each different text read once: states, limits, GPUs, waiting tasks."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from gpuplan.traces.history import NO_LIMIT, UNKNOWN
from gpuplan.traces.slurm_table import NAMED, Mistakes, Table
from gpuplan.traces.slurm_words import (
    NOTHING_WORDS,
    Gpus,
    Tasks,
    gpus_of,
    limit_of,
    share_of,
    state_of,
    tasks_of,
)

Int64 = npt.NDArray[np.int64]
Strings = npt.NDArray[np.object_]
Bools = npt.NDArray[np.bool_]

_LIMIT_RULE = "must be a span of time such as 1-00:00:00, UNLIMITED or Partition_Limit"
_PRIORITY_RULE = "must be a whole number"

#: Stands for "the partition's limit" until that is looked up.
_OF_PARTITION = -2


@dataclass(slots=True)
class GpuColumns:
    """GPUs held and asked for, int64[R]: `UNKNOWN` where the file has no column for them.

    Attributes
    ----------
    held, asked : int64[R]
    told : bool[R]
        A list of what was held is there (an empty one is a job that held nothing, or of which nothing was recorded).
    kinds, asked_kinds : object[R]
    shared, more_typed : bool[R]
    """

    held: Int64
    asked: Int64
    told: Bools
    kinds: Strings
    asked_kinds: Strings
    shared: Bools
    more_typed: Bools


def texts(table: Table, name: str) -> Strings:
    """A column of texts, object[R]; empty where it is absent."""
    if name not in table.codes:
        return np.full(len(table.line), "", object)
    written = table.texts[name]
    words = np.array(written if name == "jobname" else [text.strip() for text in written], object)
    found: Strings = words[table.codes[name]]
    return found


def states(table: Table) -> tuple[Strings, list[str]]:
    """State of each record as a word of `gpuplan.traces.history.STATES`, and the words that are none."""
    from gpuplan.traces.history import STATES

    if "state" not in table.codes:
        return np.full(len(table.line), "", object), []
    words = [state_of(text) for text in table.texts["state"]]
    found: Strings = np.array(words, object)[table.codes["state"]]
    return found, sorted({word for word in words if word and word not in STATES})


def limits(
    table: Table,
    mistakes: Mistakes,
    bad: Bools,
    partition: Strings,
    of_partition: Mapping[str, int | None] | int | None,
) -> tuple[Int64, int]:
    """Limits in seconds, int64[R]: `NO_LIMIT`, `UNKNOWN`; and how many are those of the partition."""
    n = len(table.line)
    found = np.full(n, UNKNOWN, np.int64)
    for name in ("timelimitraw", "timelimit"):
        if name in table.codes:
            read = _values(table, mistakes, bad, name, _limit, _LIMIT_RULE)
            found = np.where(read == UNKNOWN, found, read)
    rows = np.flatnonzero(found == _OF_PARTITION)
    if isinstance(of_partition, Mapping):
        known = {name.lower(): seconds for name, seconds in of_partition.items()}
        found[rows] = [_partition_limit(names, known) for names in partition[rows].tolist()]
    else:
        found[rows] = UNKNOWN if of_partition is None else of_partition
    return found, int((found[rows] != UNKNOWN).sum())


def _limit(text: str) -> int | None:
    value = limit_of(text)
    return _OF_PARTITION if isinstance(value, str) else value


def _partition_limit(names: str, known: Mapping[str, int | None]) -> int:
    """The longest limit of one or several partitions (``gpu,long``); `UNKNOWN` where one of them is not known."""
    listed = names.lower().split(",") if names else list(known) if len(known) == 1 else [""]
    if any(name not in known for name in listed):
        return UNKNOWN
    found = [known[name] for name in listed]
    return max(NO_LIMIT if seconds is None else seconds for seconds in found)


def gpus(table: Table, mistakes: Mistakes, bad: Bools) -> GpuColumns:
    """GPUs of each record, from AllocTRES and ReqTRES, in old files AllocGRES and ReqGRES."""
    n = len(table.line)
    none = np.full(n, "", object)
    columns = GpuColumns(
        np.full(n, UNKNOWN, np.int64),
        np.full(n, UNKNOWN, np.int64),
        np.zeros(n, np.bool_),
        none,
        none,
        np.zeros(n, np.bool_),
        np.zeros(n, np.bool_),
    )
    for names, held in ((("alloctres", "allocgres"), True), (("reqtres", "reqgres"), False)):
        there = [name for name in names if name in table.codes]
        if not there:
            continue
        count, kinds, told = _gpus(table, mistakes, bad, there[0], columns)
        for name in there[1:]:  # an old column beside a new one
            others, other_kinds, other_told = _gpus(table, mistakes, bad, name, columns)
            empty = ~told
            count, kinds = np.where(empty, others, count), np.where(empty, other_kinds, kinds)
            told = told | other_told
        if held:
            columns.held, columns.kinds, columns.told = count, kinds, told
        else:
            columns.asked, columns.asked_kinds = count, kinds
    return columns


def _gpus(
    table: Table, mistakes: Mistakes, bad: Bools, name: str, columns: GpuColumns
) -> tuple[Int64, Strings, Bools]:
    codes = table.codes[name]
    read: list[Gpus] = [gpus_of(text) for text in table.texts[name]]
    for rule in dict.fromkeys(found.rule for found in read if found.rule):
        _tell(table, mistakes, bad, name, np.array([found.rule == rule for found in read])[codes], rule)
    columns.shared |= np.array([found.shared for found in read], np.bool_)[codes]
    columns.more_typed |= np.array([found.more_typed for found in read], np.bool_)[codes]
    return (
        np.array([found.count for found in read], np.int64)[codes],
        np.array([found.kinds for found in read], object)[codes],
        np.array([bool(text.strip()) for text in table.texts[name]], np.bool_)[codes],
    )


def priorities(table: Table, mistakes: Mistakes, bad: Bools) -> Int64:
    """Priority of each record, int64[R]."""
    if "priority" not in table.codes:
        return np.full(len(table.line), UNKNOWN, np.int64)
    return _values(table, mistakes, bad, "priority", _priority, _PRIORITY_RULE)


def _priority(text: str) -> int | None:
    if text.strip().lower() in NOTHING_WORDS:
        return UNKNOWN
    return int(text) if text.isascii() and text.isdecimal() and len(text) <= 18 else None


def task_lists(table: Table, mistakes: Mistakes, bad: Bools) -> dict[int, Tasks]:
    """The waiting tasks of the records that are about several."""
    found: dict[int, Tasks] = {}
    known: dict[str, Tasks | str] = {}
    name = "jobid" if "jobid" in table.ids else "jobidraw"
    for row, text in table.brackets.items():
        inner = text[text.index("[") + 1 : text.index("]")]
        read = known.setdefault(inner, "") or tasks_of(inner)
        known[inner] = read
        if isinstance(read, str):
            mistakes.tell(name, read, table.line[row : row + 1], text)
            bad[row] = True
        else:
            found[row] = read
    return found


def worked_gpu_s(table: Table, elapsed_s: Int64, held: Int64) -> npt.NDArray[np.float64] | None:
    """GPU-seconds in which GPUs worked in each record (a step), float64[R]; not-a-number: not measured.

    ``gres/gpuutil`` of TRESUsageInTot adds up the percentages of all GPUs of a step; that of TRESUsageInAve is their
    mean, so it counts for the GPUs that the step held.
    """
    name = next((name for name in ("tresusageintot", "tresusageinave") if name in table.codes), None)
    if name is None:
        return None
    shares = np.array([np.nan if (s := share_of(t)) is None else s for t in table.texts[name]], np.float64)
    share = shares[table.codes[name]]
    if name == "tresusageinave":
        share = np.where(held > 0, np.minimum(share, 1) * held, np.nan)
    return np.asarray(np.where(elapsed_s == UNKNOWN, np.nan, share * elapsed_s), np.float64)


def _values(
    table: Table,
    mistakes: Mistakes,
    bad: Bools,
    name: str,
    read: Callable[[str], int | None],
    rule: str,
) -> Int64:
    """Numbers of a column of texts; what is none is told."""
    values = [read(text) for text in table.texts[name]]
    wrong = np.array([value is None for value in values], np.bool_)[table.codes[name]]
    _tell(table, mistakes, bad, name, wrong, rule)
    found: Int64 = np.array([UNKNOWN if value is None else value for value in values], np.int64)[
        table.codes[name]
    ]
    return found


def _tell(table: Table, mistakes: Mistakes, bad: Bools, name: str, wrong: Any, rule: str) -> None:
    rows = np.flatnonzero(wrong)
    if len(rows):
        shown = [table.texts[name][code] for code in table.codes[name][rows[:NAMED]].tolist()]
        mistakes.tell(name, rule, table.line[rows], shown + [""] * (len(rows) - len(shown)))
        bad[rows] = True
