"""The text of a file that somebody exported: plain or gzip, UTF-8, UTF-16 or Windows-1252, and never anything else.

What is no text (a PDF, a workbook, a folder, a cut archive) is refused with a sentence, and so is what would not fit
into memory, before it is read.
"""

import codecs
import gzip
import os
import stat
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from gpuplan.inputs.errors import InputError, Mistake, shorten

#: Called with the bytes read so far and the bytes of the file.
Progress = Callable[[int, int], None]

#: Bytes of memory that a byte of a table needs while it is read (its text, its cells, the numbers made from them).
MEMORY_PER_BYTE = 12

#: Bytes that are read at a time.
_BLOCK = 1 << 22

#: First bytes of files that are no text, and what to say.
_OTHERS: tuple[tuple[bytes, str], ...] = (
    (b"%PDF", "this is a PDF, not a text table; export the table as CSV"),
    (
        b"PK\x03\x04",
        "this is a workbook or a zip archive, not a text table; save the sheet as CSV, or unpack it",
    ),
    (b"\xd0\xcf\x11\xe0", "this is a workbook, not a text table; save the sheet as CSV"),
    (b"PAR1", "this is a Parquet file; its name must end in .parquet"),
    (b"\x28\xb5\x2f\xfd", "this is compressed with zstd; unpack it first (gzip is read as it is)"),
    (b"BZh", "this is compressed with bzip2; unpack it first (gzip is read as it is)"),
    (b"\xfd7zXZ", "this is compressed with xz; unpack it first (gzip is read as it is)"),
    (b"SQLite format 3", "this is a database, not a text table; export the table as CSV"),
    (b"\x89PNG", "this is a picture, not a text table"),
)
_NO_TEXT = "this is not a text table: it has bytes that no text has"

#: Longest first: the mark of UTF-16 begins that of UTF-32.
_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)

#: Bytes below a blank that no text has: all but tab, line feed, form feed, return.
_CONTROLS = bytes(sorted(set(range(32)) - {9, 10, 12, 13}))

#: Lines that a note names.
_NAMED = 5


@dataclass(frozen=True, slots=True)
class PlainText:
    """The text of a file.

    Attributes
    ----------
    source
        Name of the file, without its folder.
    text
        With line feeds between lines, without a byte-order mark.
    notes
        How it was read, where that is not plain UTF-8.
    """

    source: str
    text: str
    notes: tuple[str, ...] = ()


def read_text(
    path: str | Path,
    *,
    progress: Progress | None = None,
    most_bytes: int | None = None,
    first: int | None = None,
) -> PlainText:
    """Read a file as text.

    Parameters
    ----------
    path
        Plain, or gzip (told by its first bytes, whatever its name).
    progress
        Called now and then with the bytes of the file that are read, and all of them.
    most_bytes
        Largest text that is read; by default what the free memory allows (`MEMORY_PER_BYTE`).
    first
        Read only the lines within so many bytes of text.

    Raises
    ------
    InputError
        If the file cannot be read or is no text, or is too large.
    """
    source = Path(path).name or str(path)
    data = read_bytes(path, progress=progress, most_bytes=most_bytes, first=first)
    text, notes = _decoded(data, source)
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    if first is not None and len(data) >= first and "\n" in text:
        text = text[: text.rindex("\n") + 1]
    return PlainText(source, text, notes)


def read_bytes(
    path: str | Path,
    *,
    progress: Progress | None = None,
    most_bytes: int | None = None,
    first: int | None = None,
) -> bytes:
    """The bytes of a file, unpacked where it is gzip; as `read_text`, which says what the arguments are."""
    source = Path(path).name or str(path)
    try:
        before = os.stat(path)
        if not stat.S_ISREG(before.st_mode):
            raise refusal(source, "must be a file, not a folder or a device")
        with open(path, "rb") as file:
            packed = file.read(2) == b"\x1f\x8b"
            file.seek(0)
            data = _blocks(file, packed, source, before.st_size, progress, most_bytes, first)
        after = os.stat(path)
    except FileNotFoundError:
        rule = "there is no such file"
    except (EOFError, zlib.error, gzip.BadGzipFile):
        rule = "cannot be read: the gzip data is damaged or cut off"
    except (OSError, ValueError) as error:  # no permission, a name with a null byte
        if isinstance(error, InputError):
            raise
        rule = f"cannot be read: {getattr(error, 'strerror', None) or shorten(str(error), 120)}"
    else:
        if (before.st_size, before.st_mtime_ns) != (after.st_size, after.st_mtime_ns):
            raise refusal(source, "changed while it was read: somebody still writes it; try again")
        return data
    raise refusal(source, rule)


def refusal(source: str, rule: str) -> InputError:
    """The error of a file that cannot be used as a whole."""
    return InputError(source, [Mistake("", rule)])


def free_memory() -> int | None:
    """Bytes of memory that a program may still take; None where the system does not tell."""
    try:
        with open("/proc/meminfo", encoding="ascii") as file:
            for line in file:
                if line.startswith("MemAvailable:"):
                    return int(line.split()[1]) * 1024
    except (OSError, ValueError, IndexError):
        pass
    try:
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return None


def _blocks(
    file: IO[bytes],
    packed: bool,
    source: str,
    size: int,
    progress: Progress | None,
    most_bytes: int | None,
    first: int | None,
) -> bytes:
    """All bytes, or those of the start; refused as soon as they are known to be too many."""
    free = free_memory()
    most = most_bytes if most_bytes is not None else None if free is None else free // MEMORY_PER_BYTE
    if first is None and most is not None and size > most and not packed:
        raise _too_large(source, size, most)
    unpacked: IO[bytes] | gzip.GzipFile = gzip.GzipFile(fileobj=file) if packed else file
    found, length = [], 0
    while block := unpacked.read(_BLOCK if first is None else min(_BLOCK, first - length)):
        found.append(block)
        length += len(block)
        if len(found) == 1:
            _refuse_other_formats(block, source)
        if first is None and most is not None and length > most:
            raise _too_large(source, length, most)
        if progress is not None:
            progress(file.tell(), size)
        if (first is not None and length >= first) or file.tell() > size:
            break  # what is written while it is read is refused
    if not length:
        raise refusal(source, "this is an empty file (0 bytes)" if not size else "this is an empty file")
    return b"".join(found)


def _too_large(source: str, size: int, most: int) -> InputError:
    return refusal(
        source,
        f"is too large: {size / 1e6:,.0f} MB of text or more, where memory allows {most / 1e6:,.0f} MB; "
        "cut it by date, or leave out columns",
    )


def _refuse_other_formats(block: bytes, source: str) -> None:
    for mark, rule in _OTHERS:
        if block.startswith(mark):
            raise refusal(source, rule)
    head = block[: 1 << 16]
    wide = head.startswith(tuple(mark for mark, _ in _MARKS)) or _utf16_without_mark(head)
    if not wide and any(head.count(byte) for byte in _CONTROLS):
        raise refusal(source, _NO_TEXT)


def _utf16_without_mark(head: bytes) -> str:
    """``utf-16-le`` or ``utf-16-be`` where (nearly) every second byte is zero, as in Latin text; otherwise nothing."""
    pairs = len(head) // 2
    if pairs < 4:
        return ""
    low, high = head[0 : 2 * pairs : 2].count(0), head[1 : 2 * pairs : 2].count(0)
    if high > 0.7 * pairs and not low:
        return "utf-16-le"
    return "utf-16-be" if low > 0.7 * pairs and not high else ""


def _decoded(data: bytes, source: str) -> tuple[str, tuple[str, ...]]:
    """The text, and notes on how it was read."""
    bare = (b"", _utf16_without_mark(data[: 1 << 16]) or "utf-8")
    mark, name = next((pair for pair in _MARKS if data.startswith(pair[0])), bare)
    body = data[len(mark) :]
    if name != "utf-8":
        try:
            text = body[: len(body) // 4 * 4 if "32" in name else len(body) // 2 * 2].decode(name)
        except UnicodeDecodeError:
            raise refusal(
                source, f"cannot be read: it begins as {name[:6].upper()} text, and is not"
            ) from None
        notes: tuple[str, ...] = (f"The file is {name[:6].upper()} text.",)
    else:
        text, notes = _utf8_or_windows(body, source)
    if "\0" in text:
        raise refusal(source, _NO_TEXT)
    return text, notes


def _utf8_or_windows(body: bytes, source: str) -> tuple[str, tuple[str, ...]]:
    """UTF-8 text; lines that are none are read as Windows-1252, and the note says which."""
    try:
        return body.decode("utf-8"), ()
    except UnicodeDecodeError:
        pass
    lines = body.split(b"\n")
    texts, others = [], []
    for number, line in enumerate(lines, start=1):
        try:
            texts.append(line.decode("utf-8"))
        except UnicodeDecodeError:
            texts.append(line.decode("cp1252", "replace"))
            others.append(number)
    named = ", ".join(map(str, others[:_NAMED]))
    more = f" and {len(others) - _NAMED:,} more" if len(others) > _NAMED else ""
    what = f"line{'s' if len(others) > 1 else ''} {named}{more}"
    return "\n".join(texts), (f"Not UTF-8, so read as Windows-1252: {what}.",)
