"""The folder of a sweep: results as Parquet as they come, found again by the next call, one sweep at a time.

``parts/*.parquet`` hold results by fingerprint, each written whole or not at all; ``results.parquet`` is the table of
the last sweep that ended, in the order of its points; ``sweep.json`` says what the folder is about; ``sweep.lock`` is
locked by the process that writes, and by nobody once that process has ended, however it ended.
"""

import contextlib
import errno
import io
import json
import sys
import time
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any

from gpuplan.files import write_whole
from gpuplan.inputs.errors import InputError, Mistake, shorten
from gpuplan.sweeps.grid import Grid

#: A result as kept: its fingerprint, its figures, its error.
Kept = tuple[dict[str, float | None] | None, str | None]

#: Seconds between two parts at least, and how many parts are joined into one.
EVERY_S, JOINED = 1.0, 64

PARTS, RESULTS, ABOUT, LOCK = "parts", "results.parquet", "sweep.json", "sweep.lock"


class Store:
    """A folder that is open for one sweep; used with ``with``.

    Attributes
    ----------
    notes : list of str
        What a reader must know: parts that could not be read, results that could not be written.
    """

    def __init__(self, folder: str | Path, grid: Grid) -> None:
        self.folder = Path(folder)
        self.grid = grid
        self.notes: list[str] = []
        self._rows: list[dict[str, Any]] = []
        self._lock: IO[str] | None = None
        self._last = time.monotonic()
        self._trouble: OSError | None = None
        self._joins = True

    def __enter__(self) -> "Store":
        _parquet()
        try:
            (self.folder / PARTS).mkdir(parents=True, exist_ok=True)
            self._lock = _locked(self.folder / LOCK)
            self._introduce()
        except OSError as error:
            self._release()
            raise _refusal(f"cannot be written: {error.strerror or error}", self.folder) from None
        except InputError:
            self._release()
            raise
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        try:
            self.flush()
            if kind is not None and self._trouble is not None:
                warnings.warn(
                    _unwritten(self._trouble, len(self._rows), self.folder), UserWarning, stacklevel=3
                )
        finally:
            self._release()

    def known(self) -> dict[str, Kept]:
        """The results that the folder has, by fingerprint."""
        found: dict[str, Kept] = {}
        units = self.grid.units
        try:
            tables = [self._read(path) for path in self._parts()]
        except OSError as trouble:
            raise _refusal(f"cannot be read: {trouble.strerror or trouble}", self.folder) from None
        for table in tables:
            for row in [] if table is None else table.to_pylist():
                error = row.get("error")
                figures = None if error else {name: row.get(name) for name in units}
                found[str(row["key"])] = (figures, error)
        return found

    def add(
        self,
        key: str,
        point: Mapping[str, Any],
        policy: str,
        figures: Mapping[str, Any] | None,
        error: str | None,
    ) -> None:
        """Take a result; it is on disk within about a second, and when the sweep ends or is interrupted."""
        self._rows.append(row_of(self.grid, key, point, policy, figures, error))

    def flush_if_due(self) -> None:
        """Write what came since the last part, unless that was a moment ago."""
        if self._rows and time.monotonic() - self._last >= EVERY_S:
            self.flush()

    def flush(self) -> None:
        """Write what came since the last part; what cannot be written is kept for the next try."""
        if not self._rows:
            return
        names = self._parts()
        number = 1 + max((int(path.stem) for path in names), default=0)
        try:
            write(self.folder / PARTS / f"{number:06}.parquet", table_of(self.grid, self._rows))
            self._rows.clear()
            self._trouble = None
            if self._joins and len(names) + 1 >= JOINED:
                self._join(number + 1)
        except OSError as error:
            self._trouble = error
        self._last = time.monotonic()

    def finish(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """Write the table of the sweep, and say what could not be written."""
        self.flush()
        if self._trouble is None:
            try:
                write(self.folder / RESULTS, table_of(self.grid, rows))
            except OSError as error:
                self._trouble = error
        if self._trouble is not None:
            self.notes.append(_unwritten(self._trouble, len(self._rows), self.folder))

    def _introduce(self) -> None:
        """Say what the folder is about; refuse one that is about something else."""
        grid, path = self.grid, self.folder / ABOUT
        about = {"kind": grid.kind, "scenario": grid.scenario.name, "fingerprint": grid.scenario.fingerprint}
        if path.exists():
            try:
                before = json.loads(path.read_text(encoding="utf-8"))
                same = before["fingerprint"] == about["fingerprint"]
                name = str(before["scenario"])
            except (ValueError, KeyError, TypeError):
                raise _refusal(f"holds a {ABOUT} that is no account of a sweep", self.folder) from None
            if not same:
                rule = f"holds a sweep of another scenario ({shorten(name)!r}); name another folder"
                raise _refusal(rule, self.folder)
        else:
            write_whole(path, (json.dumps(about, indent=1) + "\n").encode())

    def _parts(self) -> list[Path]:
        found = (self.folder / PARTS).glob("*.parquet")
        return sorted(path for path in found if path.stem.isdecimal())

    def _read(self, path: Path) -> Any:
        """A part; None: it is damaged, set aside, and its results are computed again.

        Raises
        ------
        OSError
            If it cannot be read now, which says nothing of what is in it.
        """
        pyarrow, parquet = _parquet()
        try:
            table = parquet.read_table(path)
            if "key" not in table.column_names:
                raise ValueError("no fingerprints")
        except (pyarrow.ArrowInvalid, ValueError):
            with contextlib.suppress(OSError):
                path.replace(path.with_suffix(".damaged"))
            self.notes.append(f"{path.name} cannot be read; its results are computed again.")
            return None
        return table

    def _join(self, number: int) -> None:
        """Join all parts into one."""
        pyarrow, _ = _parquet()
        old = self._parts()
        tables = [table for path in old if (table := self._read(path)) is not None]
        try:
            whole = pyarrow.concat_tables(tables, promote_options="permissive")
        except pyarrow.ArrowException:  # an axis that was text once and numbers now: they stay apart
            self._joins = False
            return
        write(self.folder / PARTS / f"{number:06}.parquet", whole)
        for path in old:
            path.unlink(missing_ok=True)

    def _release(self) -> None:
        if self._lock is not None:
            _give_back(self._lock)
            self._lock.close()
            self._lock = None


def row_of(
    grid: Grid,
    key: str,
    point: Mapping[str, Any],
    policy: str,
    figures: Mapping[str, Any] | None,
    error: str | None,
) -> dict[str, Any]:
    """A row of the table: the axes, the policy, every figure of the kind (None: no value), error, key, version."""
    found = figures or {}
    values = {name: _cell(grid.cells[name], value) for name, value in point.items()}
    numbers = {name: found.get(name) for name in grid.units}
    return {**values, "policy": policy, **numbers, "error": error, "key": key, "version": grid.version}


def table_of(grid: Grid, rows: Sequence[Mapping[str, Any]]) -> Any:
    """Rows as a table of pyarrow: numbers as such, other values of an axis as text."""
    pyarrow, _ = _parquet()
    kinds = {int: pyarrow.int64(), float: pyarrow.float64(), str: pyarrow.string()}
    types = [
        *((axis, kinds[grid.cells[axis]]) for axis in grid.axes),
        ("policy", pyarrow.string()),
        *((name, pyarrow.float64()) for name in grid.units),
        *((name, pyarrow.string()) for name in ("error", "key", "version")),
    ]
    return pyarrow.table({name: pyarrow.array([row[name] for row in rows], kind) for name, kind in types})


def write(path: Path, table: Any) -> None:
    """Write a Parquet file, whole or not at all."""
    _, parquet = _parquet()
    buffer = io.BytesIO()
    parquet.write_table(table, buffer, compression="zstd")
    write_whole(path, buffer.getvalue())


def _cell(kind: type, value: Any) -> Any:
    if kind is not str:
        return kind(value)
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True)


def _locked(path: Path) -> IO[str]:
    """The lock file, locked by this process.

    Raises
    ------
    InputError
        If another sweep has it.
    OSError
        If it cannot be opened, or the file system has no locks.
    """
    file = open(path, "a+", encoding="utf-8")  # noqa: SIM115 # it stays open as long as the sweep
    try:
        _take(file)
    except OSError as error:
        file.close()
        if error.errno in (errno.EACCES, errno.EAGAIN, errno.EDEADLK):
            rule = "another sweep writes into it; wait until that has ended, or name another folder"
            raise _refusal(rule, path.parent) from None
        raise
    return file


def _take(file: IO[str]) -> None:
    if sys.platform == "win32":
        import msvcrt

        file.seek(0)
        msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
    else:
        import fcntl

        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _give_back(file: IO[str]) -> None:
    """Unlock it, for processes that were started meanwhile may hold the same file open."""
    with contextlib.suppress(OSError):
        if sys.platform == "win32":
            import msvcrt

            file.seek(0)
            msvcrt.locking(file.fileno(), msvcrt.LK_UNLCK, 1)
        else:
            import fcntl

            fcntl.flock(file, fcntl.LOCK_UN)


def _unwritten(error: OSError, rows: int, folder: Path) -> str:
    why = "the disk is full" if error.errno in (errno.ENOSPC, errno.EDQUOT) else str(error.strerror or error)
    what = f"{rows:,} results are in this table only" if rows else f"{RESULTS} is not written"
    return (
        f"{shorten(str(folder), 200)}: {why}; {what}. All that was written before is whole: "
        "make room, and the same call goes on from there; `table.to_csv` saves the table elsewhere."
    )


def _refusal(rule: str, folder: Path) -> InputError:
    return InputError("sweep", [Mistake("to", rule, str(folder))])


def _parquet() -> tuple[Any, Any]:
    """The module pyarrow and its Parquet.

    Raises
    ------
    InputError
        If it is not installed.
    """
    try:
        import pyarrow
        import pyarrow.parquet as parquet
    except ImportError:
        rule = "needs pyarrow to be written: pip install 'gpuplan[data]'"
        raise InputError("sweep", [Mistake("to", rule)]) from None
    return pyarrow, parquet
