"""A table of jobs in Parquet, its cells as the text that a CSV file would have; a line is a row, counted from 1."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gpuplan.inputs.errors import shorten
from gpuplan.traces.plain_text import MEMORY_PER_BYTE, Progress, free_memory, refusal
from gpuplan.traces.sheet import MOST_COLUMNS, Sheet, Strings, listed

if TYPE_CHECKING:
    import pandas as pd


def read_parquet(
    path: str | Path,
    *,
    progress: Progress | None = None,
    most_bytes: int | None = None,
    first_rows: int | None = None,
) -> Sheet:
    """Read a Parquet file as a table.

    Parameters
    ----------
    path
    progress
        Called with the rows read and the rows of the file.
    most_bytes
        Largest table (uncompressed) that is read; by default what the free memory allows.
    first_rows
        Read only so many rows.

    Raises
    ------
    InputError
        If the file cannot be read or has no row, is too large, or pyarrow is not installed.
    """
    source = Path(path).name
    try:
        import pyarrow.parquet as parquet
    except ImportError:
        raise refusal(source, "needs pyarrow to be read: pip install 'gpuplan[data]'") from None
    try:
        if not Path(path).is_file():
            rule = (
                "must be a file, not a folder or a device" if Path(path).exists() else "there is no such file"
            )
            raise refusal(source, rule)
        with parquet.ParquetFile(path) as file:
            meta = file.metadata
            _refuse_large(source, meta, most_bytes)
            batches, rows = [], 0
            for batch in file.iter_batches(1 << 16 if first_rows is None else first_rows):
                batches.append(batch.to_pandas())
                rows += len(batch)
                if progress is not None:
                    progress(rows, meta.num_rows)
                if first_rows is not None:
                    break
    except (OSError, ValueError, RuntimeError, TypeError, NotImplementedError, OverflowError) as error:
        if type(error).__name__ == "InputError":
            raise
        raise refusal(source, f"cannot be read as Parquet: {shorten(str(error), 120)}") from None
    return _sheet(source, batches)


def _refuse_large(source: str, meta: Any, most_bytes: int | None) -> None:
    size = sum(meta.row_group(group).total_byte_size for group in range(meta.num_row_groups))
    free = free_memory()
    most = most_bytes if most_bytes is not None else None if free is None else free // MEMORY_PER_BYTE
    if most is not None and size > most:
        allowed = f"{size / 1e6:,.0f} MB, where memory allows {most / 1e6:,.0f} MB"
        raise refusal(source, f"is too large: {allowed}; leave out columns or rows")
    if meta.num_columns > MOST_COLUMNS:
        raise refusal(source, f"must have at most {MOST_COLUMNS:,} columns; it has {meta.num_columns:,}")


def _sheet(source: str, batches: "list[pd.DataFrame]") -> Sheet:
    import pandas as pd

    frame = pd.concat(batches, ignore_index=True) if batches else pd.DataFrame()
    names = tuple(str(name) for name in frame.columns)
    if not len(frame):
        raise refusal(
            source, f"has columns ({listed(names)}) and no row" if names else "has neither columns nor rows"
        )
    cells = tuple(_texts(frame.iloc[:, k]) for k in range(len(names)))
    line = np.arange(1, len(frame) + 1, dtype=np.int64)
    totals = np.zeros(len(frame), np.bool_)
    for column in (*cells, line, totals):
        column.flags.writeable = False
    return Sheet(
        source, names, line, cells, ",", totals, line[:0], ("The file is Parquet: a line is a row, from 1.",)
    )


def _texts(column: "pd.Series[Any]") -> Strings:
    """Cells as text: moments in ISO form, spans as ``90s``, numbers in full, nothing as nothing."""
    import pandas as pd

    none = column.isna().to_numpy(np.bool_)
    found = np.full(len(column), "", object)
    kind = column.dtype.kind
    if kind == "M":
        aware = getattr(column.dtype, "tz", None) is not None
        moments = column.dt.tz_convert("UTC").dt.tz_localize(None) if aware else column
        whole = bool((moments.dropna().dt.microsecond == 0).all())
        texts = moments.dt.strftime("%Y-%m-%d %H:%M:%S" if whole else "%Y-%m-%d %H:%M:%S.%f") + (
            "Z" if aware else ""
        )
        found[~none] = texts[~none].to_numpy(object)
    elif kind == "m":
        found[~none] = [f"{span.total_seconds():.9f}".rstrip("0").rstrip(".") + "s" for span in column[~none]]
    elif kind == "f":
        found[~none] = [_number(value) for value in column[~none].tolist()]
    else:
        found[~none] = [
            value.isoformat() if isinstance(value, pd.Timestamp) else str(value).strip()
            for value in column[~none].tolist()
        ]
    return found


def _number(value: float) -> str:
    return str(int(value)) if value == np.floor(value) and abs(value) < 1e15 else repr(value)
