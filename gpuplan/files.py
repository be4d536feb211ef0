"""Files that are written whole or not at all."""

import contextlib
import os
from pathlib import Path


def write_whole(path: Path, data: bytes) -> None:
    """Write a file; what was there stays until all of the new one is on disk.

    A link stays a link, and what is no file (a device, a pipe) is written to as it is.

    Raises
    ------
    OSError
        If it cannot be written; an older file is as it was.
    """
    path = path.resolve()
    if path.exists() and not path.is_file():
        path.write_bytes(data)
        return
    beside = path.with_name(f".{path.name}.new")
    try:
        with open(beside, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, path)
    except BaseException:  # Ctrl-C too leaves no half of a file
        with contextlib.suppress(OSError):
            beside.unlink(missing_ok=True)
        raise
