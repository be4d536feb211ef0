"""One export of `sacct` in other clothes: what must give the same history, whatever was chosen when it was made."""

import gzip
from collections.abc import Callable
from pathlib import Path

#: By name: what is done to the text of an export with ``|`` between fields and no separator at the end of a line.
CLOTHES: dict[str, Callable[[str], str | bytes]] = {
    "a separator at the end of every line": lambda text: text.replace("\n", "|\n"),
    "line feed and return": lambda text: text.replace("\n", "\r\n"),
    "no end of line at the end": lambda text: text.rstrip("\n"),
    "a byte-order mark": lambda text: "\ufeff" + text,
    "UTF-16": lambda text: text.encode("utf-16"),
    "gzip": lambda text: gzip.compress(text.encode()),
    "tabs": lambda text: text.replace("|", "\t"),
    "semicolons": lambda text: text.replace("|", ";"),
    "several signs": lambda text: text.replace("|", "^|^"),
    "columns in small letters": lambda text: text.split("\n", 1)[0].lower() + "\n" + text.split("\n", 1)[1],
    "columns in another order": lambda text: _turned(text),
    "blank lines": lambda text: "\n" + text.replace("\n", "\n\n"),
    "the header again": lambda text: text + text.split("\n", 1)[0] + "\n",
}


def _turned(text: str) -> str:
    """The columns from last to first."""
    return "\n".join("|".join(reversed(line.split("|"))) for line in text.split("\n"))


def dressed(folder: Path, text: str, name: str) -> Path:
    """A file with the export in other clothes."""
    found = CLOTHES[name](text)
    path = folder / "other.txt"
    path.write_bytes(found if isinstance(found, bytes) else found.encode())
    return path
