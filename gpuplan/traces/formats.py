"""Which of the formats a file is in, told by its name and its first bytes."""

import gzip
import zlib
from pathlib import Path
from typing import Literal

from gpuplan.inputs.errors import InputError, Mistake, did_you_mean, shorten

Format = Literal["slurm", "swf", "jobs", "prometheus", "hourly", "scenario"]

#: Formats that a person may name, and what each is.
FORMATS = {
    "slurm": "sacct of Slurm, parsable",
    "swf": "a workload log in the Standard Workload Format",
    "jobs": "a table of jobs (CSV, Parquet), or Philly's list of jobs (JSON)",
    "prometheus": "an answer of the Prometheus HTTP API (JSON): traffic",
    "hourly": "a table of traffic, a time and a value per row (CSV)",
}

#: Words of a header of ``sacct``.
_SACCT = {"jobid", "jobidraw", "alloctres", "reqtres", "elapsed", "elapsedraw", "submit", "state", "account"}

#: Words for a time, in a table of traffic.
_TIMES = {"time", "timestamp", "hour", "date", "datetime", "ts", "zeit", "stunde", "datum", "moment"}

_HEAD = 65_536


def format_of(path: str | Path) -> Format:
    """The format of a file.

    Raises
    ------
    InputError
        If the file cannot be read, or is none of the formats.
    """
    source = Path(path).name
    name = source.lower().removesuffix(".gz")
    head = _head(path)
    if name.endswith((".yaml", ".yml")):
        return "scenario"
    if name.endswith(".swf"):
        return "swf"
    if name.endswith(".parquet") or head.startswith(b"PAR1"):
        return "jobs"
    text = _text(head).lstrip("\ufeff \t\r\n")
    if text.startswith("{"):
        return "prometheus"
    if text.startswith("["):
        return "jobs"
    if text.startswith(";"):
        return "swf"
    if not text or b"%PDF" in head[:8] or (b"\0" in head and not head.startswith((b"\xff\xfe", b"\xfe\xff"))):
        rule = "this is not a text table" if text else "must not be empty"
        raise InputError(source, [Mistake("", rule)])
    return _by_header(text.splitlines()[0])


def format_named(path: str | Path, given: Format | None) -> Format:
    """The format of a file as somebody names it, or as `format_of` finds it.

    Raises
    ------
    InputError
        For a format that there is not, and as `format_of`.
    """
    if given is None:
        return format_of(path)
    if given not in FORMATS:
        rule = f"must be one of {', '.join(FORMATS)}{did_you_mean(given, FORMATS)}"
        raise InputError(Path(path).name, [Mistake("format", rule, given)])
    return given


def starts_a_list(path: str | Path) -> bool:
    """Whether the text of a file starts like a list of JSON."""
    return _text(_head(path)[:64]).lstrip("\ufeff \t\r\n").startswith("[")


def is_json(path: str | Path) -> bool:
    """Whether a file of jobs is a list in JSON, as Philly's."""
    return Path(path).name.lower().removesuffix(".gz").endswith(".json") or starts_a_list(path)


def is_pai(path: str | Path) -> bool:
    """Whether a file of jobs is the published table of PAI's tasks, by its name."""
    return "pai_task_table" in Path(path).name.lower()


def own_columns(path: str | Path) -> bool:
    """Whether a file of jobs has a reader of its own, so that nothing about its columns is guessed or told."""
    return is_pai(path) or is_json(path)


def holds_dcgm(path: str | Path) -> bool:
    """Whether an answer of Prometheus is about metrics of GPUs, by the name of its first series."""
    return '"DCGM_FI_' in _text(_head(path))


def stem_of(path: str | Path) -> str:
    """The name of a file without its endings, for what is made of it."""
    name = Path(path).name
    return (name.split(".")[0] or name)[:100] or "import"


def _by_header(line: str) -> Format:
    for sign in ("|", ";", "\t", ","):
        words = [word.strip().strip('"').lower() for word in line.split(sign)]
        if len(_SACCT & set(words)) >= 2 and {"jobid", "jobidraw"} & set(words):
            return "slurm"
    cells = [cell.strip().strip('"').lower() for cell in line.replace(";", ",").replace("\t", ",").split(",")]
    if len(cells) == 2 and cells[0] in _TIMES:
        return "hourly"
    return "jobs"


def _head(path: str | Path) -> bytes:
    """The first bytes of a file, unpacked."""
    source = Path(path).name or str(path)
    try:
        with open(path, "rb") as file:
            head = file.read(_HEAD)
            if head[:2] != b"\x1f\x8b":
                return head
        with gzip.open(path) as packed:
            return packed.read(_HEAD)
    except FileNotFoundError:
        rule = "there is no such file"
    except (EOFError, zlib.error, gzip.BadGzipFile):
        rule = "cannot be read: the gzip data is damaged or cut off"
    except (OSError, ValueError) as error:  # a folder, no permission, a name with a null byte
        rule = f"cannot be read: {getattr(error, 'strerror', None) or shorten(str(error), 120)}"
    raise InputError(source, [Mistake("", rule)])


def _text(head: bytes) -> str:
    for mark, name in ((b"\xff\xfe", "utf-16-le"), (b"\xfe\xff", "utf-16-be")):
        if head.startswith(mark):
            return head[2:].decode(name, "replace")
    return head.decode("utf-8", "replace")
