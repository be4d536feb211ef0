"""The header of a `sacct` export: which columns there are, what stands between them, which of them hold free text."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from gpuplan.inputs.errors import InputError, Mistake, did_you_mean, shorten

#: Columns that are read, in lower case.
IDS = ("jobid", "jobidraw")
TIMES = ("submit", "eligible", "start", "end")
SPANS = ("elapsed", "elapsedraw")
LIMITS = ("timelimit", "timelimitraw")
GPUS = ("alloctres", "reqtres", "allocgres", "reqgres")
TEXTS = ("cluster", "user", "account", "partition", "qos", "jobname", "state")
USAGE = ("tresusageintot", "tresusageinave")
READ = (*IDS, *TEXTS, *TIMES, *SPANS, *LIMITS, *GPUS, "priority", *USAGE)

#: Columns in which users may write what they want, separators and line breaks too.
FREE = frozenset(
    {
        "jobname",
        "workdir",
        "comment",
        "admincomment",
        "systemcomment",
        "submitline",
        "constraints",
        "container",
        "extra",
        "licenses",
        "reason",
        "stdin",
        "stdout",
        "stderr",
        "wckey",
    }
)


#: Columns that tell a header from a line of data.
KNOWN = frozenset(READ) | FREE

_HOW = (
    "write it with sacct --parsable2 --format=JobID,JobIDRaw,State,Submit,Start,End,Elapsed,ReqTRES,AllocTRES"
)
_LONGEST_SEPARATOR = 8

#: Signs that stand inside of times, ids and lists of resources.
_INNER = frozenset(",:-.=/+[]()")


@dataclass(frozen=True, slots=True)
class Layout:
    """How the lines of a file are built.

    Attributes
    ----------
    names
        Columns, in lower case, in the order of the file.
    shown
        The same as the file writes them.
    separator
        What stands between them.
    trailing
        Whether a separator also ends a line.
    header
        The line of the header, without its line break; None: the columns were given.
    """

    names: tuple[str, ...]
    shown: tuple[str, ...]
    separator: bytes
    trailing: bool
    header: bytes | None

    @property
    def separators(self) -> int:
        """Separators on a line without surprises."""
        return len(self.names) - (0 if self.trailing else 1)

    @property
    def id_column(self) -> int:
        """Place of the column that tells where a record begins."""
        return min(self.names.index(name) for name in IDS if name in self.names)

    def shown_as(self, name: str) -> str:
        """A column as the file writes it."""
        return self.shown[self.names.index(name)]

    def wanted(self) -> list[str]:
        """Columns that are read and are there."""
        return [name for name in READ if name in self.names]


def layout_of(source: str, line: bytes, separator: str | None, columns: str | Sequence[str] | None) -> Layout:
    """The layout that the first line tells, or that was given because the file has no header.

    Parameters
    ----------
    source
        Name of the file.
    line
        Its first line, without its line break.
    separator
        What stands between fields; None: told by the header (``|`` where there is none).
    columns
        The columns, as they were given to ``--format``, of a file without a header; None: it has one.

    Raises
    ------
    InputError
        If this is no header, columns are missing or come twice, or the separator cannot be one.
    """
    if separator is not None:
        _check_separator(source, separator)
    if columns is not None:
        given = columns.split(",") if isinstance(columns, str) else list(columns)
        shown = tuple(re.sub(r"%-?[0-9]*$", "", name.strip()) for name in given)
        sign = (separator or "|").encode()
        return _checked(source, shown, sign, line.endswith(sign), None)
    text = line.decode("utf-8", "replace")
    sign_text = _separator(text) if separator is None else separator
    _refuse_inner(source, sign_text, "line 1")
    fields = text.split(sign_text) if sign_text else [text]
    trailing = len(fields) > 1 and not fields[-1].strip()
    shown = tuple(name.strip() for name in (fields[:-1] if trailing else fields))
    if not any(name.lower() in KNOWN for name in shown):
        raise InputError(source, [_no_header(text, separator)])
    return _checked(source, shown, sign_text.encode(), trailing, line)


def _no_header(text: str, separator: str | None) -> Mistake:
    """What is wrong with a first line that names no column."""
    if re.match(r"\s*[0-9]+([_+.][^\s|]*)?(\||;|,|\t|$)", text):
        rule = "must be a header line; the columns of a file without one must be given (columns=...)"
    elif separator is not None:
        rule = f"must be a header line with {separator!r} between the names of the columns"
    elif re.match(r"\s*JobID(Raw)?\s+\w", text, re.I):
        rule = f"must have a separator between the columns; {_HOW}"
    else:
        rule = f"must be an export of sacct, which begins with the names of its columns; {_HOW}"
    return Mistake("line 1", rule, shorten(text), 1)


def _separator(text: str) -> str:
    """What stands between the names of a header: nothing where it is not everywhere the same."""
    between = re.findall(r"(?<=[A-Za-z0-9_])[^A-Za-z0-9_]+", text)
    first = between[0] if between else ""
    if first.strip(" ") and all(found in (first, first.rstrip()) for found in between):
        return first
    return ""


def _check_separator(source: str, separator: str) -> None:
    fine = 0 < len(separator) <= _LONGEST_SEPARATOR and not set(separator) & set("\n\r\0")
    if not fine or any(sign.isalnum() or sign == "_" for sign in separator) or separator.strip(" ") == "":
        rule = f"must be 1 to {_LONGEST_SEPARATOR} signs, none of them a letter, a digit or a line break"
        raise InputError(source, [Mistake("separator", rule, separator)])
    _refuse_inner(source, separator, "separator")


def _refuse_inner(source: str, separator: str, path: str) -> None:
    """Refuse a separator that also stands inside of times, ids and lists of resources."""
    if separator in _INNER:
        rule = "must not be a sign that stands inside of fields too: export with another --delimiter"
        raise InputError(source, [Mistake(path, rule, separator)])


def _checked(
    source: str, shown: tuple[str, ...], separator: bytes, trailing: bool, header: bytes | None
) -> Layout:
    names = tuple(name.lower() for name in shown)
    found = f"found: {', '.join(shorten(name) or 'one without a name' for name in shown[:60])}"
    mistakes = []
    if not set(names) & set(IDS):
        near = did_you_mean("jobid", names)
        mistakes.append(
            Mistake("line 1", f"no column for the job id (JobID or JobIDRaw); {found}{near}", line=1)
        )
    if not set(names) & set(GPUS):
        wanted = "AllocTRES, ReqTRES, AllocGRES or ReqGRES"
        mistakes.append(Mistake("line 1", f"no column for the number of GPUs ({wanted}); {found}", line=1))
    if not separator and len(names) == 1 and not mistakes:
        separator = b"|"
    mistakes += [
        Mistake(f"line 1, {shorten(shown[names.index(name)])}", "is a column that must stand once", line=1)
        for name in READ
        if names.count(name) > 1
    ]
    if mistakes:
        raise InputError(source, mistakes)
    return Layout(names, shown, separator, trailing, header)
