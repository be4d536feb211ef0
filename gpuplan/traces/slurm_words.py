"""What the texts of a `sacct` export mean: states, limits, lists of resources, waiting tasks.

Source of the forms: the manual pages ``sacct(1)``, ``sbatch(1)`` and ``squeue(1)`` of Slurm.
"""

import re
from dataclasses import dataclass
from itertools import pairwise

from gpuplan.traces.history import NO_LIMIT, STATES, UNKNOWN

#: Words for "there is none" and "not known"; neither is 0, or a time in 1970.
NOTHING_WORDS = frozenset({"", "unknown", "none", "n/a", "na", "not_set", "invalid", "null", "(null)"})

_NO_LIMIT_WORDS = frozenset({"unlimited", "infinite", "infinity"})
_PARTITION_WORDS = frozenset({"partition_limit", "partitionlimit"})

#: Two-letter codes of states.
_CODES = {
    "bf": "boot_fail",
    "ca": "cancelled",
    "cd": "completed",
    "cf": "configuring",
    "cg": "completing",
    "dl": "deadline",
    "f": "failed",
    "lf": "launch_failed",
    "nf": "node_fail",
    "oom": "out_of_memory",
    "pd": "pending",
    "po": "power_up_node",
    "pr": "preempted",
    "r": "running",
    "rd": "resv_del_hold",
    "rf": "requeue_fed",
    "rh": "requeue_hold",
    "rq": "requeued",
    "rs": "resizing",
    "rv": "revoked",
    "s": "suspended",
    "se": "special_exit",
    "si": "signaling",
    "so": "stage_out",
    "st": "stopped",
    "to": "timeout",
}

#: Other words for the same.
_SAME = {
    "canceled": "cancelled",
    "complete": "completed",
    "out_of_me": "out_of_memory",
    "requeue": "requeued",
    "timelimit": "timeout",
}

#: Most seconds of a span, most GPUs of a job: their product fits into 64 bits.
MOST_S, MOST_GPUS = 10**10, 10**7

#: Most tasks of an array, and parts of a list of them.
_MOST_TASKS, _MOST_PARTS = 10**7, 10_000

_SPAN = re.compile(r"(?:(\d{1,9})-)?(\d{1,9})(?::(\d{1,9}))?(?::(\d{1,9}))?(?:\.(\d+))?", re.A)
_INDICES = re.compile(r"(\d{1,9})(?:-(\d{1,9})(?::(\d{1,9}))?)?", re.A)
_WHOLE = re.compile(r"\d{1,15}", re.A)
_PARENTHESIS = re.compile(r"\([^()]*\)")


def state_of(text: str) -> str:
    """The state as a word in lower case: ``CANCELLED by 30117``, ``CANCELLED+`` and ``CA`` are ``cancelled``.

    Flags behind a comma or a blank do not count. A word that `STATES` does not have is given back as it is.
    """
    words = re.split(r"[\s,+]", text.strip().lower(), maxsplit=1)
    word = _CODES.get(words[0], _SAME.get(words[0], words[0]))
    if word in STATES or not text.strip().endswith("+"):
        return word
    cut = [state for state in STATES if state.startswith(word)] if len(word) > 2 else []
    return cut[0] if len(cut) == 1 else word


def is_state(text: str) -> bool:
    """Whether a text is a state that Slurm has."""
    return state_of(text) in STATES and state_of(text) != "unknown"


def span_of(text: str, unit: int) -> int | None:
    """Seconds of a span: ``[days-]hours:minutes:seconds``, ``minutes:seconds``, ``days-hours[:minutes]``.

    A number alone counts in units of `unit` seconds (0: it is none). None where the text is no span.
    """
    match = _SPAN.fullmatch(text)
    if match is None:
        return None
    days, *parts, fraction = match.groups()
    numbers = [int(part) for part in parts if part is not None]
    if fraction is not None and (len(numbers) < 2 or (days is not None and len(numbers) < 3)):
        return None
    if days is not None:
        numbers += [0] * (3 - len(numbers))
    if len(numbers) == 1:
        return numbers[0] * unit if unit else None
    if numbers[-1] > 59 or (len(numbers) == 3 and numbers[1] > 59):
        return None
    seconds: int = int(days or 0) * 86400 + sum(number * 60**k for k, number in enumerate(reversed(numbers)))
    return seconds + int(fraction is not None and fraction[0] >= "5")


def limit_of(text: str, unit: int = 60) -> int | str | None:
    """A limit: seconds, `NO_LIMIT`, `UNKNOWN`, or ``"partition"``; None where the text is none.

    Parameters
    ----------
    text
    unit
        Seconds that a number alone counts in (minutes, as ``--time`` and TimelimitRaw write it).
    """
    word = text.strip().lower()
    if word in NOTHING_WORDS:
        return UNKNOWN
    if word in _NO_LIMIT_WORDS:
        return NO_LIMIT
    if word in _PARTITION_WORDS:
        return "partition"
    seconds = span_of(word, unit)
    return None if seconds is None or seconds > MOST_S else seconds


@dataclass(frozen=True, slots=True)
class Gpus:
    """GPUs of a list of resources.

    Attributes
    ----------
    count
    kinds
        As `gpuplan.traces.history.History.gpu_type`.
    shared
        It names slices of GPUs (``gres/shard``), which are no whole ones.
    more_typed
        Its typed entries add up to more than its total, which counts.
    rule
        What is wrong; ``""``: nothing.
    """

    count: int
    kinds: str = ""
    shared: bool = False
    more_typed: bool = False
    rule: str = ""


def gpus_of(text: str) -> Gpus:
    """GPUs of a list such as ``cpu=8,gres/gpu:a100=2,gres/gpu=2``, or of a request such as ``gpu:a100:2``.

    Only ``gres/gpu`` (all of them) and ``gres/gpu:TYPE`` (a part of them) count: where the total is told it is the
    answer, else the sum of the parts. ``gres/gpumem``, ``gres/gpuutil`` and ``gres/shard`` are no GPUs.
    """
    if "gpu" not in text.lower() and "shard" not in text.lower():
        return Gpus(0)
    total, typed, shared = UNKNOWN, dict[str, int](), False
    for entry in _PARENTHESIS.sub("", text).split(","):
        name, equals, value = entry.strip().partition("=")
        if not equals:
            name, value = _request(name)
        key = name.lower()
        shared |= key == "gres/shard" or key.startswith("gres/shard:")
        if key != "gres/gpu" and not key.startswith("gres/gpu:"):
            continue
        if not _WHOLE.fullmatch(value) or int(value) > MOST_GPUS:
            return Gpus(UNKNOWN, rule=f"must have a whole number of GPUs, at most {MOST_GPUS:,}")
        kind = name[9:]
        if not kind:
            total = int(value)
        else:
            typed[kind] = typed.get(kind, 0) + int(value)
    parts = sum(typed.values())
    count = parts if total == UNKNOWN else total
    if count > MOST_GPUS:
        return Gpus(UNKNOWN, rule=f"must have a whole number of GPUs, at most {MOST_GPUS:,}")
    return Gpus(count, _kinds(typed, count), shared, parts > count)


def _request(entry: str) -> tuple[str, str]:
    """``gpu:4``, ``gpu:a100:4``, ``gres:gpu:a100:2`` and ``gpu`` as an entry of a list of resources."""
    words = re.sub(r"^gres[:/]", "", entry, flags=re.I).split(":")
    if words[0].lower() not in ("gpu", "shard"):
        return entry, ""
    kind, count = "", "1"
    if len(words) > 1:
        if _WHOLE.fullmatch(words[-1]):
            kind, count = ":".join(words[1:-1]), words[-1]
        else:
            kind = ":".join(words[1:])
    return f"gres/{words[0]}" + (f":{kind}" if kind else ""), count


def _kinds(typed: dict[str, int], count: int) -> str:
    """Types as `History.gpu_type` writes them."""
    found = {kind.replace(",", "_").replace(":", "_"): n for kind, n in sorted(typed.items()) if n}
    if sum(found.values()) > count:
        return next(iter(found)) if len(found) == 1 else ""
    if len(found) == 1 and sum(found.values()) == count:
        return next(iter(found))
    return ",".join(f"{kind}:{n}" for kind, n in found.items())


def share_of(text: str) -> float | None:
    """The use of GPUs in ``gres/gpuutil=87``, in GPUs that work all the time; None where it is not told."""
    match = re.search(r"(?:^|,)gres/gpuutil=([0-9]{1,9}(?:\.[0-9]{1,6})?)(?:,|$)", text, re.A)
    return None if match is None else float(match[1]) / 100


@dataclass(frozen=True, slots=True)
class Tasks:
    """Waiting tasks of an array.

    Attributes
    ----------
    ranges
        First, last and step of each part.
    together
        Tasks that may run at once; `UNKNOWN`: as many as fit.
    cut_off
        The list was cut off: there are more.
    """

    ranges: tuple[tuple[int, int, int], ...]
    together: int = UNKNOWN
    cut_off: bool = False

    @property
    def count(self) -> int:
        """Tasks that are named."""
        return sum((last - first) // step + 1 for first, last, step in self.ranges)


def tasks_of(text: str) -> Tasks | str:
    """The tasks of what stands in the brackets of ``9100_[3-10:2%4]``, or what is wrong with it."""
    inner, percent, most = text.partition("%")
    if percent and not (_WHOLE.fullmatch(most) and int(most) > 0):
        return "must have a number of at least 1 behind the %"
    parts = inner.split(",")
    cut_off = parts[-1] == "..."
    if cut_off:
        parts.pop()
    ranges = []
    for part in parts[:_MOST_PARTS]:
        match = _INDICES.fullmatch(part)
        if match is None:
            return "must have indices of tasks in its brackets, such as 3-10, 1,4-6 or 0-20:5"
        first = int(match[1])
        last, step = int(match[2] or first), int(match[3] or 1)
        if last < first or step < 1:
            return "must have ranges that go up in its brackets"
        ranges.append((first, last, step))
    by_first = sorted(ranges)
    if any(a[1] >= b[0] for a, b in pairwise(by_first)):
        return "must name every task once in its brackets"
    found = Tasks(tuple(by_first), int(most) if percent else UNKNOWN, cut_off)
    if len(parts) > _MOST_PARTS or not 0 < found.count <= _MOST_TASKS:
        return f"must have 1 to {_MOST_TASKS:,} tasks in its brackets"
    return found
