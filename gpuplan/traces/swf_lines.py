"""From the bytes of a workload log to whole numbers, a row per job line.

Most logs are plain: 18 whole numbers on each line, which pandas reads in one go. Lines that are not (fractions,
missing fields, words) are found by a look at the bytes and are read one by one, strictly.
"""

import gzip
import io
import re
import zlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from gpuplan.inputs.errors import InputError, Mistake, shorten
from gpuplan.traces.grid import number

Int64 = npt.NDArray[np.int64]

#: The fields that are read: name, position on the line, the largest value that makes sense.
#: Ten million processors for 3,000 years are 1e18 processor-seconds, which 64 bits still hold.
FIELDS: tuple[tuple[str, int, int], ...] = (
    ("number", 0, 10**15),
    ("submit_s", 1, 10**11),
    ("wait_s", 2, 10**11),
    ("run_s", 3, 10**11),
    ("allocated", 4, 10**7),
    ("requested", 7, 10**7),
    ("requested_time_s", 8, 10**11),
    ("status", 10, 10**6),
    ("user", 11, 10**15),
    ("group", 12, 10**15),
    ("queue", 14, 10**15),
    ("partition", 15, 10**15),
)

#: Fields of a line; those that are missing at its end are unknown.
WIDTH = 18

#: A line says at least which job it is about, and when it was submitted.
LEAST = 2

_NEWLINE, _RETURN, _SEMICOLON = b"\n"[0], b"\r"[0], b";"[0]
_BLANKS = b" \t"


@dataclass(slots=True)
class Lines:
    """What the text of a log says.

    Attributes
    ----------
    values : int64[R, F]
        A row per job line, a column per field of `FIELDS`; -1: unknown.
    line : int64[R]
        Number of the line, from 1.
    header : dict
        ``; Key: value`` comments; values of a key that comes again are on lines of their own.
    short, rounded : int
        Lines with fewer than `WIDTH` fields; lines with fractions of seconds.
    mistakes
        Fields and lines that cannot be read.
    """

    values: Int64
    line: Int64
    header: dict[str, str]
    short: int
    rounded: int
    mistakes: list[Mistake]


def read_bytes(path: str | Path) -> bytes:
    """The text of a file, unpacked where it is gzip (told by its first bytes, whatever its name).

    Raises
    ------
    InputError
        If there is no such file, it cannot be read or unpacked, or is no text.
    """
    source = Path(path).name
    try:
        data = Path(path).read_bytes()
        if data[:2] == b"\x1f\x8b":
            data = gzip.decompress(data)
    except FileNotFoundError:
        rule = "there is no such file"
    except (EOFError, zlib.error, gzip.BadGzipFile):
        rule = "cannot be read: the gzip data is damaged or cut off"
    except (OSError, ValueError) as error:  # a folder, no permission, a name with a null byte
        rule = f"cannot be read: {getattr(error, 'strerror', None) or shorten(str(error), 120)}"
    else:
        if b"\0" not in data:
            return data[3:] if data[:3] == b"\xef\xbb\xbf" else data
        rule = "must be text: it has bytes that no text has"
    raise InputError(source, [Mistake("", rule)])


def parse(data: bytes) -> Lines:
    """Read the job lines and the header comments of a log."""
    if b"\r" in data:
        data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    buffer = np.frombuffer(data, np.uint8)
    starts, ends = _line_bounds(buffer)
    first = _first_signs(buffer, starts, ends)
    comment = first == _SEMICOLON
    job = np.flatnonzero((first != _NEWLINE) & ~comment)
    header = _header([data[a:b] for a, b in zip(starts[comment], ends[comment], strict=True)])
    plain = _whole_numbers(data, len(job))
    if plain is not None:
        return Lines(plain, job + 1, header, 0, 0, [])
    return _by_line(data, buffer, starts, ends, job, header)


def _line_bounds(buffer: npt.NDArray[np.uint8]) -> tuple[Int64, Int64]:
    """Where each line starts and ends (without its line feed)."""
    ends = np.flatnonzero(buffer == _NEWLINE)
    if len(buffer) and (not len(ends) or ends[-1] != len(buffer) - 1):
        ends = np.append(ends, len(buffer))
    return np.concatenate([[0], ends[:-1] + 1]).astype(np.int64)[: len(ends)], ends.astype(np.int64)


def _first_signs(buffer: npt.NDArray[np.uint8], starts: Int64, ends: Int64) -> npt.NDArray[np.uint8]:
    """The first byte of each line that is no blank; a line feed for a blank line."""
    first = np.full(len(starts), _NEWLINE, np.uint8)
    at = starts.copy()
    open_ = np.flatnonzero(at < ends)
    while len(open_):
        sign = buffer[at[open_]]
        blank = np.isin(sign, np.frombuffer(_BLANKS, np.uint8))
        first[open_[~blank]] = sign[~blank]
        open_ = open_[blank]
        at[open_] += 1
        open_ = open_[at[open_] < ends[open_]]
    return first


def _header(comments: list[bytes]) -> dict[str, str]:
    """Keys and values of comments that are written ``; Key: value``."""
    found: dict[str, str] = {}
    for comment in comments:
        match = re.match(r"[;\s]*([A-Za-z][\w ]*?)\s*:\s*(.*?)\s*$", comment.decode("utf-8", "replace"))
        if match:
            key, value = match.groups()
            found[key] = f"{found[key]}\n{value}" if key in found else value
    return found


def _whole_numbers(data: bytes, rows: int) -> Int64 | None:
    """The fields that are read, where every job line is `WIDTH` whole numbers within bounds; otherwise None."""
    import pandas as pd

    wanted = [position for _, position, _ in FIELDS]
    # A line that is too short has no last field, one too long has a field beyond it. The first line, which is left
    # out again, tells pandas of that field.
    last, beyond = WIDTH - 1, WIDTH
    try:
        with np.errstate(invalid="ignore"):  # pandas tries a cast before it refuses a number
            table = pd.read_csv(
                io.BytesIO(b"0 " * (WIDTH + 1) + b"\n" + data),
                sep=r"\s+",
                engine="c",
                header=None,
                names=list(range(WIDTH + 1)),
                usecols=[*wanted, last, beyond],
                dtype={**dict.fromkeys(wanted, np.int64), last: np.float64, beyond: np.float64},
                comment=";",
                quoting=3,
                keep_default_na=False,
                na_values=[""],
                index_col=False,
                encoding_errors="replace",
            )
    except (ValueError, OverflowError):  # pandas' own errors are ValueErrors
        return None
    if len(table) != rows + 1 or table[last].isna().any() or table[beyond].iloc[1:].notna().any():
        return None
    values: Int64 = table[wanted].to_numpy(np.int64)[1:]
    most = np.array([most for _, _, most in FIELDS])
    return values if len(values) and ((values <= most) & (values >= -most)).all() else None


def _by_line(
    data: bytes,
    buffer: npt.NDArray[np.uint8],
    starts: Int64,
    ends: Int64,
    job: Int64,
    header: dict[str, str],
) -> Lines:
    """As `parse`, where some lines are not plain: those one by one, the others at once."""
    odd = _odd_lines(buffer, starts, ends)[job]
    plain = job[~odd]
    values = np.full((len(job), len(FIELDS)), -1, np.int64)
    text = b"\n".join([data[a:b] for a, b in zip(starts[plain].tolist(), ends[plain].tolist(), strict=True)])
    found = _whole_numbers(text, len(plain)) if len(plain) else None
    if found is not None:
        values[~odd] = found
    else:
        odd[:] = True
    lines = Lines(values, job + 1, header, 0, 0, [])
    for row in np.flatnonzero(odd).tolist():
        k = job[row]
        _read_line(data[starts[k] : ends[k]], row, lines)
    return lines


def _odd_lines(buffer: npt.NDArray[np.uint8], starts: Int64, ends: Int64) -> npt.NDArray[np.bool_]:
    """Lines with other signs than digits, minus and blanks, or with another number of fields than `WIDTH`."""
    blank = np.isin(buffer, np.frombuffer(_BLANKS + b"\n", np.uint8))
    digit = (buffer >= b"0"[0]) & (buffer <= b"9"[0])
    begins = ~blank
    begins[1:] &= blank[:-1]
    fields = _per_line(begins, starts, ends)
    strange = _per_line(~(blank | digit | (buffer == b"-"[0])), starts, ends)
    odd: npt.NDArray[np.bool_] = (fields != WIDTH) | (strange > 0)
    return odd


def _per_line(marked: npt.NDArray[np.bool_], starts: Int64, ends: Int64) -> Int64:
    """Marked bytes on each line."""
    at = np.flatnonzero(marked)
    return np.searchsorted(at, ends) - np.searchsorted(at, starts)


def _read_line(text: bytes, row: int, lines: Lines) -> None:
    """Read one line strictly into its row; what is wrong is added to the mistakes."""
    at = int(lines.line[row])
    parts = text.split(b";")[0].replace(b"\t", b" ").split(b" ")
    words = [part.decode("utf-8", "replace") for part in parts if part]
    if not LEAST <= len(words) <= WIDTH:
        rule = f"must have {WIDTH} fields, of which those at the end may be missing, {LEAST} at least"
        lines.mistakes.append(Mistake(f"line {at}", f"{rule}; it has {len(words)}", line=at))
        return
    lines.short += len(words) < WIDTH
    fraction = False
    for column, (name, position, most) in enumerate(FIELDS):
        if position >= len(words):
            break
        value = _whole(words[position])
        if value is None and name.endswith("_s"):
            seconds = number(words[position])
            if seconds is not None and abs(seconds) <= most:
                fraction = True
                # what is negative stays so: -0.6 must not become the -1 that stands for unknown
                value = int(np.floor(seconds + 0.5)) if seconds >= 0 else min(-2, int(np.floor(seconds)))
        if value is None or value > most or value < -most:
            kind = "number of seconds" if name.endswith("_s") else "whole number"
            rule = f"field {position + 1} ({name}) must be a {kind}, at most {most:,}, or -1"
            lines.mistakes.append(Mistake(f"line {at}", rule, words[position], at))
        else:
            lines.values[row, column] = value
    lines.rounded += fraction


def _whole(word: str) -> int | None:
    """A whole number, also as ``12.0`` or ``1e3``; None where it is none (or is larger than any field may be)."""
    if re.fullmatch(r"[+-]?[0-9]{1,18}", word):
        return int(word)
    value = number(word)
    return int(value) if value is not None and abs(value) < 1e18 and value == int(value) else None
