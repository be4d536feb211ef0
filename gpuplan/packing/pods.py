"""Nodes with GPUs and pods that ask for whole GPUs or shares of one, as columns: for placement without time.

CPU is in thousandths of a core, memory in MiB, a GPU has 1,000 thousandths; all int64.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from gpuplan.packing.model import Bools, Int64

Objects = npt.NDArray[np.object_]

Array = TypeVar("Array", bound=npt.NDArray[Any])

#: Thousandths of a GPU.
WHOLE = 1000

#: A moment that is not known, or never came.
NO_TIME = -1


@dataclass(frozen=True, slots=True, eq=False)
class Nodes:
    """``N`` nodes as read-only columns.

    Attributes
    ----------
    name : object[N]
    cpu_milli, memory_mib, gpus : int64[N]
    gpu_type : object[N]
        Name of the GPUs' type in capitals, empty where there is none.
    """

    name: Objects
    cpu_milli: Int64
    memory_mib: Int64
    gpus: Int64
    gpu_type: Objects

    def __len__(self) -> int:
        return len(self.name)

    @property
    def gpu_milli(self) -> int:
        """Thousandths of GPUs of all nodes."""
        return int(self.gpus.sum()) * WHOLE

    def with_gpus(self) -> "Nodes":
        """Those that have GPUs."""
        return self.of(self.gpus > 0)

    def of(self, rows: Bools | Int64) -> "Nodes":
        """Some rows."""
        return Nodes(*(_frozen(getattr(self, name)[rows]) for name in Nodes.__slots__))

    def candidates(self, types: Iterable[str]) -> Bools:
        """Nodes with GPUs of one of some types (none named: any type).

        Returns
        -------
        bool[N]
        """
        wanted = {type_name(name) for name in types}
        allowed = np.array([not wanted or name in wanted for name in self.gpu_type.tolist()], np.bool_)
        return allowed & (self.gpus > 0)


@dataclass(frozen=True, slots=True, eq=False)
class Pods:
    """``P`` pods as read-only columns.

    Attributes
    ----------
    name : object[P]
    cpu_milli, memory_mib : int64[P]
    gpus : int64[P]
        How many GPUs it takes part of; 0: none.
    gpu_milli : int64[P]
        Thousandths that it takes of *each* of them (0 where it takes none).
    types : object[P]
        Tuples of the types that it may run on, sorted, in capitals; empty: any.
    created_s, scheduled_s, deleted_s : int64[P]
        Seconds after the start of the trace; `NO_TIME` where there is none.
    """

    name: Objects
    cpu_milli: Int64
    memory_mib: Int64
    gpus: Int64
    gpu_milli: Int64
    types: Objects
    created_s: Int64
    scheduled_s: Int64
    deleted_s: Int64

    def __len__(self) -> int:
        return len(self.name)

    @property
    def demand_milli(self) -> Int64:
        """Thousandths of GPUs that each pod takes: GPUs x thousandths of each, int64[P]."""
        return self.gpus * self.gpu_milli

    def of(self, rows: Bools | Int64) -> "Pods":
        """Some rows."""
        return Pods(*(_frozen(getattr(self, name)[rows]) for name in Pods.__slots__))

    def impossible(self, nodes: Nodes) -> dict[str, str]:
        """Pods that fit on no node, even an empty one: a sentence by name."""
        found = {}
        asks = zip(
            self.types.tolist(),
            self.gpus.tolist(),
            self.cpu_milli.tolist(),
            self.memory_mib.tolist(),
            strict=True,
        )
        known: dict[tuple[object, ...], str] = {}
        for name, ask in zip(self.name.tolist(), asks, strict=True):
            if ask not in known:
                known[ask] = _why_never(nodes, *ask)
            if known[ask]:
                found[str(name)] = known[ask]
        return found

    def of_any_type(self) -> "Pods":
        """The same pods without their constraints on the type."""
        columns = {name: getattr(self, name) for name in Pods.__slots__}
        return Pods(**{**columns, "types": _tuples([()] * len(self))})


def nodes(
    name: Sequence[str],
    cpu_milli: Sequence[int] | Int64,
    memory_mib: Sequence[int] | Int64,
    gpus: Sequence[int] | Int64,
    gpu_type: Sequence[str] = (),
) -> Nodes:
    """Nodes of columns."""
    types = [type_name(text) for text in gpu_type] or [""] * len(name)
    return Nodes(
        _frozen(np.array(list(name), object)),
        _whole(cpu_milli),
        _whole(memory_mib),
        _whole(gpus),
        _frozen(np.array(types, object)),
    )


def pods(
    name: Sequence[str],
    cpu_milli: Sequence[int] | Int64,
    memory_mib: Sequence[int] | Int64,
    gpus: Sequence[int] | Int64,
    gpu_milli: Sequence[int] | Int64,
    types: Sequence[Iterable[str]] = (),
    created_s: Sequence[int] | Int64 | None = None,
    scheduled_s: Sequence[int] | Int64 | None = None,
    deleted_s: Sequence[int] | Int64 | None = None,
) -> Pods:
    """Pods of columns; without types any will do, without moments they are unknown."""
    n = len(name)
    named = [tuple(sorted({type_name(text) for text in row})) for row in types] or [()] * n
    count = _whole(gpus)
    times = [
        _whole(column) if column is not None else _whole([NO_TIME] * n)
        for column in (created_s, scheduled_s, deleted_s)
    ]
    each = _frozen(np.where(count > 0, _whole(gpu_milli), 0))
    words = _frozen(np.array(list(name), object))
    return Pods(words, _whole(cpu_milli), _whole(memory_mib), count, each, _tuples(named), *times)


def _why_never(nodes: Nodes, types: tuple[str, ...], gpus: int, cpu_milli: int, memory_mib: int) -> str:
    """Why no empty node takes such a pod; empty text where one does."""
    allowed = nodes.candidates(types) if gpus else np.ones(len(nodes), np.bool_)
    if gpus and not allowed.any():
        return f"asks for {' or '.join(types) or 'a GPU'}, which no node has"
    for what, asked, has in (
        ("GPUs", gpus, nodes.gpus),
        ("thousandths of a CPU", cpu_milli, nodes.cpu_milli),
        ("MiB", memory_mib, nodes.memory_mib),
    ):
        allowed = allowed & (has >= asked)
        if not allowed.any():
            return f"asks for {asked:,} {what}, more than any node has that takes it otherwise"
    return ""


def type_name(text: str) -> str:
    """A type as it is compared: without blanks around it, in capitals."""
    return text.strip().upper()


def _whole(values: Sequence[int] | Int64) -> Int64:
    return _frozen(np.array(values, np.int64))


def _tuples(rows: Sequence[tuple[str, ...]]) -> Objects:
    column = np.empty(len(rows), object)
    for k, row in enumerate(rows):  # at once, numpy would make a table of tuples of one length
        column[k] = row
    return _frozen(column)


def _frozen(column: Array) -> Array:
    column.setflags(write=False)
    return column
