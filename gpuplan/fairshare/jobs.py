"""Jobs as columns, in the one order that matters: by submission, then by id in natural order."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from gpuplan.fairshare.model import NEVER, Bools, Int64

Strings = npt.NDArray[np.object_]

#: A debug job has at most this many GPUs, and a declared minimum run time above 0 and at most `DEBUG_MINIMUM_S`.
DEBUG_GPUS = 8
DEBUG_MINIMUM_S = 900


@dataclass(frozen=True, slots=True, eq=False)
class Jobs:
    """``J`` jobs as read-only columns, ordered by submission, then id in natural order (9 before 10).

    Attributes
    ----------
    name : object[J]
        Ids, all different.
    team : object[J]
        Path of the leaf of the budget tree, ``"language/pretraining"``.
    submit_s, run_s : int64[J]
        Submission, seconds after the start; run time on its GPUs without interruption (never above the limit).
    gpus : int64[J]
    limit_s : int64[J]
        Declared limit of the run time; `NEVER` where none is known.
    minimum_s : int64[J]
        Declared minimum run time; 0: unallocated work (charged to nobody, preemptible at once).
    resumable : bool[J]
        Whether it goes on from its last checkpoint after a preemption.
    priority : int64[J]
        Declared priority, larger = more important.
    gpu : object[J]
        GPU type wanted; several joined by ``|``; ``""``: any.
    one_node : bool[J]
        Refuses to be spread over nodes.
    idle_s : int64[J]
        The part of `run_s` in which a no-op job holds its GPUs for nothing (squatting).
    opted_out : bool[J]
        Opted out of preemption (``priority-tiers`` honours it within the team's limit).
    """

    name: Strings
    team: Strings
    submit_s: Int64
    gpus: Int64
    run_s: Int64
    limit_s: Int64
    minimum_s: Int64
    resumable: Bools
    priority: Int64
    gpu: Strings
    one_node: Bools
    idle_s: Int64
    opted_out: Bools

    def __len__(self) -> int:
        return len(self.name)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Jobs):
            return NotImplemented
        columns = [f.name for f in fields(Jobs)]
        return self is other or all(np.array_equal(getattr(self, c), getattr(other, c)) for c in columns)

    def __hash__(self) -> int:
        return hash((self.submit_s.tobytes(), self.gpus.tobytes(), self.run_s.tobytes()))

    @property
    def debug(self) -> Bools:
        """Debug jobs: few GPUs, a short minimum run time; bool[J]."""
        return (self.gpus <= DEBUG_GPUS) & (self.minimum_s > 0) & (self.minimum_s <= DEBUG_MINIMUM_S)

    @property
    def gpu_seconds(self) -> Int64:
        """Work of each job: GPUs x run time, int64[J]."""
        return self.gpus * self.run_s

    def changed(self, **columns: Any) -> "Jobs":
        """The jobs with some columns replaced, in order again."""
        return ordered(replace(self, **columns))


def jobs(
    name: Sequence[str],
    submit_s: Sequence[int],
    gpus: Sequence[int],
    run_s: Sequence[int],
    *,
    team: Sequence[str] | str = "everyone",
    limit_s: Sequence[int] | int | None = None,
    minimum_s: Sequence[int] | int = 0,
    resumable: Sequence[bool] | bool = True,
    priority: Sequence[int] | int = 0,
    gpu: Sequence[str] | str = "",
    one_node: Sequence[bool] | bool = False,
    idle_s: Sequence[int] | int = 0,
    opted_out: Sequence[bool] | bool = False,
) -> Jobs:
    """Jobs from columns that are known to be right (a border checks first); one value stands for all rows.

    ``limit_s`` None or -1: no limit is known. A run beyond its limit is ended at the limit.
    """
    n = len(name)

    def column(values: Any, dtype: Any) -> Any:
        array = np.empty(n, dtype)
        array[:] = values
        return array

    limit = column(NEVER if limit_s is None else limit_s, np.int64)
    limit[limit < 0] = NEVER
    made = Jobs(
        column(list(name), object),
        column(team if isinstance(team, str) else list(team), object),
        column(submit_s, np.int64),
        column(gpus, np.int64),
        np.minimum(column(run_s, np.int64), limit),
        limit,
        column(minimum_s, np.int64),
        column(resumable, np.bool_),
        column(priority, np.int64),
        column(gpu if isinstance(gpu, str) else list(gpu), object),
        column(one_node, np.bool_),
        column(idle_s, np.int64),
        column(opted_out, np.bool_),
    )
    return ordered(made)


def ordered(rows: Jobs) -> Jobs:
    """The same jobs by submission, then id in natural order; columns read-only."""
    order = np.lexsort((natural_ranks(rows.name), rows.submit_s))
    columns = {}
    for f in fields(Jobs):
        column = getattr(rows, f.name)[order]
        column.flags.writeable = False
        columns[f.name] = column
    return Jobs(**columns)


def natural_key(text: str) -> tuple[tuple[int, int, str], ...]:
    """A key that sorts digits in a text by their value: ``job9`` before ``job10``.

    ASCII digits only; equal values go by the text itself (``07`` before ``7``).
    """
    parts = re.split(r"([0-9]+)", text)
    return tuple(
        (0, int(part), part) if part.isdigit() and part.isascii() else (1, 0, part) for part in parts
    )


def natural_ranks(names: Strings) -> Int64:
    """Rank of every name in natural order, int64[J]."""
    plain = _as_counters(names)
    if plain is not None:
        return plain
    texts: list[str] = names.tolist()
    order = sorted(range(len(texts)), key=lambda k: (natural_key(texts[k]), texts[k]))
    ranks = np.empty(len(names), np.int64)
    ranks[order] = np.arange(len(names))
    return ranks


def _as_counters(names: Strings) -> Int64 | None:
    """The numbers of names that are plain counters (``17``), behind one prefix (``job-17``): a million sort at once."""
    texts: list[str] = names.tolist()
    prefix = _shared_start(min(texts), max(texts)).rstrip("0123456789") if texts else ""
    digits = "".join(texts) if not prefix else "".join([text[len(prefix) :] for text in texts])
    if not (digits.isascii() and digits.isdecimal()):
        return None
    lengths = np.fromiter(map(len, texts), np.int64, len(texts)) - len(prefix)
    if lengths.min() < 1 or lengths.max() > 18:
        return None
    numbers = (names if not prefix else np.array([text[len(prefix) :] for text in texts], object)).astype(
        np.int64
    )
    plain = lengths == np.searchsorted(_POWERS, numbers, side="right") + 1  # no zeros in front
    return numbers if plain.all() else None


def _shared_start(first: str, last: str) -> str:
    """What two texts have in common at their start."""
    same = 0
    while same < min(len(first), len(last)) and first[same] == last[same]:
        same += 1
    return first[:same]


#: 10, 100, 1000, ...: a number below the first has one digit.
_POWERS = 10 ** np.arange(1, 19, dtype=np.int64)
