"""A JSON file as a value: plain or gzip, up to a size that memory bears, every fault as a sentence."""

import gzip
import json
import zlib
from pathlib import Path
from typing import Any

from gpuplan.inputs.errors import InputError, Mistake, shorten

#: Bytes of JSON that are read: in memory the readings take about fifteen times as much.
MOST_BYTES = 100_000_000


def read_json(path: str | Path) -> Any:
    """The value that a file holds.

    Raises
    ------
    InputError
        If it cannot be read, is no JSON, or is too large to be read at once.
    """
    source = str(path)
    try:
        return json.loads(text_of(Path(path)))
    except InputError:
        raise
    except FileNotFoundError:
        mistake = Mistake("", "there is no such file")
    except (EOFError, zlib.error):
        mistake = Mistake("", "cannot be read: the gzip data is damaged or cut off")
    except OSError as error:
        mistake = Mistake("", f"cannot be read: {error.strerror or shorten(str(error), 120)}")
    except UnicodeDecodeError:
        mistake = Mistake("", "must be UTF-8 text")
    except json.JSONDecodeError as error:
        mistake = Mistake(f"line {error.lineno}", f"must be JSON: {error.msg}", line=error.lineno)
    except ValueError:  # Python's own limit to the digits of a number
        mistake = Mistake("", "must be JSON with numbers of at most 4,300 digits")
    except RecursionError:
        mistake = Mistake("", "must be an answer of the HTTP API: it is nested too deeply")
    except MemoryError:
        mistake = Mistake(
            "", "is more than memory holds; ask for fewer series, a longer step or a shorter time"
        )
    raise InputError(source, [mistake])


def text_of(path: Path) -> str:
    """The text of a file, plain or gzip; an `InputError` where it is larger than what is read at once."""
    packed = path.suffix == ".gz"
    if path.is_file():  # a pipe has no size
        size = path.stat().st_size
        if size > MOST_BYTES:
            raise _too_large(path, f"{size / 1e6:,.0f} MB")
    with gzip.open(path, "rb") if packed else open(path, "rb") as file:
        data = file.read(MOST_BYTES + 1)
    if len(data) > MOST_BYTES:
        raise _too_large(path, f"more than {MOST_BYTES / 1e6:,.0f} MB")
    return data.decode("utf-8-sig")


def _too_large(path: Path, size: str) -> InputError:
    rule = (
        f"is {size}, and JSON is read whole, up to {MOST_BYTES / 1e6:,.0f} MB: ask for a longer step, fewer series, or "
        "a file per part of the time"
    )
    return InputError(str(path), [Mistake("", rule)])
