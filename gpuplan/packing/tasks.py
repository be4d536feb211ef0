"""Tasks as columns, in order of arrival."""

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np
import numpy.typing as npt

from gpuplan.packing.model import NEVER, Int64

Strings = npt.NDArray[np.object_]


@dataclass(frozen=True, slots=True, eq=False)
class Tasks:
    """``J`` tasks as read-only columns, ordered by arrival; a task's row is its number.

    Attributes
    ----------
    arrival_us : int64[J]
    model : int64[J]
        Row of the model in the scenario.
    tenant : object[J]
        Names.
    priority : int64[J]
        Larger = more important.
    service_us : int64[J]
        Service time alone on a GPU, at most ``2**40``.
    predicted_us : int64[J]
        What the scheduler believes that it is.
    tokens_in, tokens_out : int64[J]
        At most ``2**20`` each.
    deadline_us : int64[J]
        Instant at which a task that was never served leaves; `NEVER`: it waits for ever.
    """

    arrival_us: Int64
    model: Int64
    tenant: Strings
    priority: Int64
    service_us: Int64
    predicted_us: Int64
    tokens_in: Int64
    tokens_out: Int64
    deadline_us: Int64

    def __len__(self) -> int:
        return len(self.arrival_us)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Tasks):
            return NotImplemented
        columns = [f.name for f in fields(Tasks)]
        return self is other or all(np.array_equal(getattr(self, c), getattr(other, c)) for c in columns)

    def __hash__(self) -> int:
        return hash((self.arrival_us.tobytes(), self.model.tobytes(), self.service_us.tobytes()))


def tasks(
    arrival_us: Sequence[int] | Int64,
    model: Sequence[int] | Int64 | int = 0,
    tenant: Sequence[str] | str = "",
    priority: Sequence[int] | Int64 | int = 0,
    service_us: Sequence[int] | Int64 | int = 0,
    predicted_us: Sequence[int] | Int64 | None = None,
    tokens_in: Sequence[int] | Int64 | int = 0,
    tokens_out: Sequence[int] | Int64 | int = 0,
    deadline_us: Sequence[int] | Int64 | int = NEVER,
) -> Tasks:
    """Tasks of columns (a single value holds for all), in their order of arrival.

    Equal arrivals go by all other columns, so that the order of rows does not matter.
    """
    n = len(arrival_us)
    service = _column(service_us, n)
    predicted = service if predicted_us is None else _column(predicted_us, n)
    names = np.full(n, tenant, object) if isinstance(tenant, str) else np.array(list(tenant), object)
    columns = [_column(arrival_us, n), _column(model, n), _column(priority, n), service, predicted]
    columns += [_column(tokens_in, n), _column(tokens_out, n), _column(deadline_us, n)]
    by = _order(columns, names)
    arrival, of_model, rank, service, predicted, came, made, deadline = (column[by] for column in columns)
    found = Tasks(arrival, of_model, names[by], rank, service, predicted, came, made, deadline)
    for name in Tasks.__slots__:
        getattr(found, name).setflags(write=False)
    return found


def _column(values: Sequence[int] | Int64 | int, n: int) -> Int64:
    if isinstance(values, int):
        return np.full(n, values, np.int64)
    return np.array(values, np.int64)


def _order(columns: Sequence[Int64], names: Strings) -> npt.NDArray[np.intp]:
    """The order of rows: by the columns one after the other, then by name."""
    by = np.argsort(columns[0], kind="stable")
    equal = np.diff(columns[0][by]) == 0
    tied = np.append(equal, False) | np.append(False, equal) if len(by) else equal
    rows = by[tied]  # only these are compared in full: equal arrivals are rare
    if len(rows):
        by[tied] = rows[np.lexsort((_ranks(names[rows]), *(column[rows] for column in reversed(columns))))]
    return by


def _ranks(names: Strings) -> Int64:
    """Rank of each name among the different ones."""
    rank = {name: k for k, name in enumerate(sorted(set(names.tolist())))}
    return np.fromiter((rank[name] for name in names), np.int64, len(names))
