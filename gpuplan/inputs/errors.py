"""Every mistake of an input at once: where it is, which rule it breaks, and what was found."""

import difflib
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final

#: Mistakes spelled out by `str(error)`; the rest are counted.
SHOWN = 50

_LONGEST = 60  # characters of a value or key that are shown


class Missing(Enum):
    """The type of `MISSING`: there is no value to show."""

    MISSING = "missing"


#: Stands where a mistake is not about a value (a missing key, an unreadable file).
MISSING: Final = Missing.MISSING


@dataclass(frozen=True, slots=True)
class Mistake:
    """One broken rule.

    Parameters
    ----------
    path
        Dotted path of the value (``batch.1.gpus``), empty where the input as a whole is wrong.
    rule
        What the value must be, as a sentence without its subject.
    value
        What was found; `MISSING` where there is nothing to show.
    line
        Line of the file, 1-based; ``None`` where there is no file.
    more
        Lines or rows that it only counts, because so many others are named with the same rule; 0 where it is one.
    """

    path: str
    rule: str
    value: Any = MISSING
    line: int | None = None
    more: int = 0

    def __str__(self) -> str:
        where = self.path or (f"line {self.line}" if self.line is not None else "")
        found = "" if self.value is MISSING else f" (got {show(self.value)})"
        return f"{where}: {self.rule}{found}" if where else f"{self.rule}{found}"


class InputError(ValueError):
    """An input that cannot be used, with all of its mistakes.

    Parameters
    ----------
    source
        Name of the file, or what the input is.
    mistakes
        At least one.
    """

    def __init__(self, source: str, mistakes: Iterable[Mistake]) -> None:
        self.source = source
        self.mistakes: tuple[Mistake, ...] = tuple(mistakes)
        super().__init__(source, self.mistakes)  # these arguments let the error be pickled

    @property
    def count(self) -> int:
        """How many mistakes there are, those included that are only counted."""
        return sum(mistake.more or 1 for mistake in self.mistakes)

    def __str__(self) -> str:
        count = self.count
        lines = [f"{shorten(self.source, 200) or repr('')}: {count} mistake{'s' if count != 1 else ''}"]
        lines += [f"  {mistake}" for mistake in self.mistakes[:SHOWN]]
        if rest := sum(mistake.more or 1 for mistake in self.mistakes[SHOWN:]):
            lines.append(f"  ... and {rest} more")
        return "\n".join(lines)


def show(value: Any) -> str:
    """A found value on one line: text by its `repr`, shortened, control characters escaped."""
    if value is None:
        return "nothing"
    if isinstance(value, dict):
        return f"a mapping of {len(value)} key{'s' if len(value) != 1 else ''}"
    if isinstance(value, (list, tuple)) and (
        len(value) > 8 or any(hasattr(item, "__len__") for item in value)
    ):
        return f"a list of {len(value)}"
    if isinstance(value, str):
        cut = str(value[: _LONGEST + 1])
        return repr(cut) if len(cut) <= _LONGEST else f"{cut[:_LONGEST]!r}..."
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) >= 10**_LONGEST:
        return f"a whole number of more than {_LONGEST} digits"
    try:
        return shorten(repr(value))
    except Exception:  # other people's objects; a message must not fail on them
        return f"a {type(value).__name__}"


def shorten(text: str, longest: int = _LONGEST) -> str:
    """Text that fits on one line: at most `longest` characters, others than printable ones escaped."""
    cut = text if len(text) <= longest else text[:longest] + "..."
    return cut if cut.isprintable() else repr(cut)[1:-1]


def dotted(path: Iterable[str | int]) -> str:
    """The path of a value as people write it: ``batch.1.gpus``."""
    return ".".join(shorten(str(part)) for part in path)


def did_you_mean(word: object, known: Iterable[str]) -> str:
    """``; did you mean max_swap?`` where a known word is close, otherwise nothing."""
    if not isinstance(word, str):
        return ""
    cut = word[:_LONGEST]
    options = {name.lower(): name for name in known}
    bare = {name.replace("_", "").replace("-", ""): name for name in options.values()}
    key = cut.lower().strip()
    near = difflib.get_close_matches(key, options, n=1, cutoff=0.6)
    best = bare.get(key.replace("_", "").replace("-", "").replace(" ", ""))
    best = best or (options[near[0]] if near else None)
    return f"; did you mean {best}?" if best else ""


def unknown_key(word: object, known: Iterable[str]) -> str:
    """The rule that an unknown key breaks, with a suggestion where one is close."""
    return f"unknown key{did_you_mean(word, known)}"
