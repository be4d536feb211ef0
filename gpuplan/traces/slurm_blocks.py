"""A `sacct` export in pieces: blocks of whole lines as clean UTF-8, plain or gzip, never the whole file at once."""

import gzip
import os
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from gpuplan.inputs.errors import InputError, shorten
from gpuplan.traces.plain_text import Progress, read_bytes, read_text, refusal

#: Bytes that are read at a time.
BLOCK = 1 << 24

#: Bytes of lines that may stay open at the end of a block.
_MOST_OPEN = 1 << 26

#: Bytes that tell what kind of file it is.
_HEAD = 16

#: Stands for a separator of several signs.
STAND_IN = b"\x1f"


@dataclass(slots=True)
class Reading:
    """What was noticed while the bytes were read.

    Attributes
    ----------
    windows
        Lines that are not UTF-8 and are read as Windows-1252: the first of them, and how many.
    nulls
        The same for lines with null bytes, which are left out of the text.
    returns
        Carriage returns inside of lines, which became blanks.
    """

    windows: list[int] = field(default_factory=list)
    n_windows: int = 0
    nulls: list[int] = field(default_factory=list)
    n_nulls: int = 0
    returns: int = 0


@dataclass(frozen=True, slots=True)
class Block:
    """Whole lines of a file, each with its line feed.

    Attributes
    ----------
    data
    done, size
        Bytes of the file that are read so far, and all of them.
    last
        Whether it is the last one.
    """

    data: bytes
    done: int
    size: int
    last: bool


def blocks(path: str | Path, progress: Progress | None, reading: Reading) -> Iterator[Block]:
    """The file in blocks of whole lines.

    Raises
    ------
    InputError
        If the file cannot be read, is no text, or is changed meanwhile.
    """
    source = Path(path).name or str(path)
    head = read_bytes(path, first=_HEAD)
    if head[:2] in (b"\xff\xfe", b"\xfe\xff") or b"\0" in head:
        data = read_text(path, progress=progress).text.encode("utf-8", "replace")
        yield Block(data if data.endswith(b"\n") else data + b"\n", len(data), len(data), True)
        return
    try:
        before = os.stat(path)
        with open(path, "rb") as file:
            packed = head and file.read(2) == b"\x1f\x8b"
            file.seek(0)
            unpacked: IO[bytes] | gzip.GzipFile = gzip.GzipFile(fileobj=file) if packed else file
            yield from _whole_lines(unpacked, file, before.st_size, progress, reading)
        after = os.stat(path)
    except (EOFError, zlib.error, gzip.BadGzipFile):
        rule = "cannot be read: the gzip data is damaged or cut off"
    except OSError as error:
        rule = f"cannot be read: {error.strerror or shorten(str(error), 120)}"
    else:
        if (before.st_size, before.st_mtime_ns) == (after.st_size, after.st_mtime_ns):
            return
        rule = "changed while it was read: somebody still writes it; try again"
    raise refusal(source, rule)


def _whole_lines(
    unpacked: IO[bytes] | gzip.GzipFile,
    file: IO[bytes],
    size: int,
    progress: Progress | None,
    reading: Reading,
) -> Iterator["Block"]:
    rest, line, first = b"", 1, True
    found = unpacked.read(BLOCK)
    while True:
        following = unpacked.read(BLOCK) if found else b""
        data = rest + found
        if first:
            data = data.removeprefix(b"\xef\xbb\xbf")
            first = False
        if following:
            cut = data.rfind(b"\n") + 1
            data, rest = data[:cut], data[cut:]
            if len(rest) > _MOST_OPEN:
                raise refusal(Path(file.name).name, f"line {line:,} has more than {_MOST_OPEN:,} bytes")
        elif data and not data.endswith(b"\n"):
            data += b"\n"
        if data:
            data = _clean(data, line, reading)
            line += data.count(b"\n")
            yield Block(data, file.tell(), size, not following)
        if progress is not None:
            progress(file.tell(), size)
        if not following:
            return
        found = following


def _clean(data: bytes, line: int, reading: Reading) -> bytes:
    """The block as UTF-8 with line feeds alone between lines."""
    if b"\r" in data:
        data = data.replace(b"\r\n", b"\n")
        if b"\n" in data[:-1]:
            reading.returns += data.count(b"\r")
            data = data.replace(b"\r", b" ")
        data = data.replace(b"\r", b"\n")  # nothing else ends lines
    if b"\0" in data:
        found = [line + k for k, text in enumerate(data.split(b"\n")) if b"\0" in text]
        reading.n_nulls += len(found)
        reading.nulls = (reading.nulls + found)[:5]
        data = data.replace(b"\0", b"")
    if data.isascii():
        return data
    try:
        data.decode("utf-8")
        return data
    except UnicodeDecodeError:
        pass
    texts = data.split(b"\n")
    for k, text in enumerate(texts):
        try:
            text.decode("utf-8")
        except UnicodeDecodeError:
            texts[k] = text.decode("cp1252", "replace").encode("utf-8")
            reading.n_windows += 1
            reading.windows = [*reading.windows, line + k][:5]
    return b"\n".join(texts)


def one_sign(data: bytes, separator: bytes) -> bytes:
    """The block with `STAND_IN` for a separator of several signs; where the text has it itself, its picture stands."""
    return data.replace(STAND_IN, "\u241f".encode()).replace(separator, STAND_IN)


def too_large(source: str, size: int, memory: int, free: int) -> InputError:
    """The error of a file whose table would not fit into memory."""
    return refusal(
        source,
        f"is too large: {size / 1e9:,.1f} GB would need {memory / 1e9:,.1f} GB of memory, and {free / 1e9:,.1f} GB "
        "are free; export fewer days (sacct -S ... -E ...), or jobs without their steps (sacct -X)",
    )
