"""The address of a page that carries what its controls say, so that a link shows the same figures to somebody else.

An address names a shipped scenario, two policies and what was changed, like
``?scenario=two-apps&left=fifo&right=aware&changes={"cluster.gpus":16}``; ``is`` is the beginning of the fingerprint of
the scenario that was on screen. An address comes from anybody: it is checked here, and nowhere else.
"""

import base64
import json
import re
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, NoReturn
from urllib.parse import parse_qsl, quote, urlencode

import anywidget
import traitlets as t

from gpuplan.inputs.errors import InputError, Mistake, did_you_mean, shorten
from gpuplan.loading import load, shipped
from gpuplan_widgets.build_bundle import STATIC

#: Characters of a query that are read at all, and that are written.
MOST_READ, MOST_WRITTEN = 16_000, 6_000

#: Characters of changes as JSON, above which they are written packed, and that are unpacked at most.
PLAIN, MOST_UNPACKED = 400, 400_000

#: Marks packed changes.
PACKED = "z."

#: Characters of the fingerprint.
DIGITS = 12

KEYS = ("scenario", "left", "right", "changes", "is")


@dataclass(frozen=True, slots=True)
class State:
    """What an explorer shows.

    Attributes
    ----------
    scenario
        Name of the shipped scenario that it started from; None: another one, or the usual one.
    policies
        Left and right; empty: the usual ones.
    changes
        Changed values by dotted path.
    mark
        Beginning of the fingerprint of the scenario that was on screen; empty: not told.
    shown
        That scenario, where it is at hand; its fingerprint takes a while, so it is made when it is asked for.
    """

    scenario: str | None = None
    policies: tuple[str, ...] = ()
    changes: Mapping[str, Any] = field(default_factory=dict)
    mark: str = ""
    shown: Any = field(default=None, compare=False, repr=False)

    @property
    def fingerprint(self) -> str:
        """Of the scenario on screen, or its beginning as a link tells it."""
        return self.mark if self.shown is None else str(self.shown.fingerprint)


@cache
def shipped_names(kind: str) -> tuple[str, ...]:
    """Names of the shipped scenarios of a kind; their files are read once, which takes a while."""
    return tuple(one.name for one in shipped() if one.kind == kind)


class Named:
    """Tells under which name a scenario is shipped; the same scenario is compared once.

    Parameters
    ----------
    kind
        Of the scenarios.
    """

    def __init__(self, kind: str) -> None:
        self._kind = kind
        self._last: tuple[Any, str | None] = (None, None)

    def of(self, scenario: Any) -> str | None:
        """Its name, if it is a shipped one."""
        if scenario is not self._last[0]:
            known = scenario.name in shipped_names(self._kind)
            same = known and load(scenario.name).fingerprint == scenario.fingerprint
            self._last = scenario, scenario.name if same else None
        return self._last[1]


def write(state: State) -> str | None:
    """The query of a state; None where it would be too long, or the scenario is none of the shipped ones."""
    if state.scenario is None:
        return None
    parts = [("scenario", state.scenario), *zip(("left", "right"), state.policies, strict=False)]
    if state.changes:
        text = json.dumps(dict(state.changes), separators=(",", ":"), allow_nan=False)
        if len(text) > PLAIN:
            text = PACKED + base64.urlsafe_b64encode(zlib.compress(text.encode(), 9)).decode().rstrip("=")
        parts.append(("changes", text))
    parts.append(("is", state.fingerprint[:DIGITS]))
    query = urlencode(parts, quote_via=quote, safe=":,[]{}")
    return query if len(query) <= MOST_WRITTEN else None


def read(query: str, kind: str) -> State:
    """The state of a query.

    Parameters
    ----------
    query
        What follows the question mark; empty: the usual state.
    kind
        Of the scenarios that it may name.

    Raises
    ------
    InputError
        With every mistake.
    """
    if len(query) > MOST_READ:
        _refuse([Mistake("", f"must have at most {MOST_READ:,} characters", len(query))])
    try:
        pairs = parse_qsl(query, keep_blank_values=True, max_num_fields=20, errors="strict")
    except ValueError:
        _refuse([Mistake("", "must be a query that can be read", query)])
    said: dict[str, str] = {}
    found: list[Mistake] = []
    for key, value in pairs:
        if key not in KEYS:
            found.append(Mistake(shorten(key), f"unknown part of an address{did_you_mean(key, KEYS)}"))
        elif key in said:
            found.append(Mistake(key, "must not stand twice"))
        else:
            said[key] = value
    scenario = said.get("scenario")
    if scenario is not None:
        names = shipped_names(kind)
        if scenario not in names:
            rule = (
                f"must be a shipped {kind} scenario; a link cannot name a file{did_you_mean(scenario, names)}"
            )
            found.append(Mistake("scenario", rule, scenario))
    changes = _changes(said.get("changes", ""), found)
    mark = said.get("is", "")
    if not re.fullmatch(r"[0-9a-f]{0,64}", mark):
        found.append(Mistake("is", "must be the beginning of a fingerprint", mark))
    sides = [said[side] for side in ("left", "right") if side in said]
    if len(sides) == 1:
        found.append(Mistake("left, right", "must both be told, or neither"))
    if found:
        _refuse(found)
    return State(scenario, tuple(sides), changes, mark)


def _changes(text: str, found: list[Mistake]) -> dict[str, Any]:
    """The changes that a query tells; mistakes are added to those found."""
    if not text:
        return {}
    rule = "must be an object of JSON: changed values by dotted path"
    try:
        plain = _unpacked(text.removeprefix(PACKED)) if text.startswith(PACKED) else text
        changes = json.loads(plain, parse_constant=_no_number)
    except (ValueError, RecursionError, zlib.error):
        found.append(Mistake("changes", rule, text))
        return {}
    if not isinstance(changes, dict):
        found.append(Mistake("changes", rule, text))
        return {}
    return changes


def _unpacked(text: str) -> str:
    data = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    reader = zlib.decompressobj()
    plain = reader.decompress(data, MOST_UNPACKED)
    if reader.unconsumed_tail or not reader.eof:
        raise ValueError("more than is unpacked, or not all of it")
    return plain.decode("utf-8")


def _no_number(text: str) -> NoReturn:
    raise ValueError(f"{text} is no number of JSON")


def _refuse(mistakes: list[Mistake]) -> NoReturn:
    raise InputError("this link", mistakes)


def only(changes: Mapping[str, Any], allowed: str) -> None:
    """Refuse changes of paths that no control changes.

    Parameters
    ----------
    changes
        By dotted path.
    allowed
        Regular expression of the paths that controls change.

    Raises
    ------
    InputError
        With every such path.
    """
    found = [
        Mistake(shorten(str(path)), "is nothing that a control here changes")
        for path in changes
        if not re.fullmatch(allowed, path)
    ]
    if found:
        _refuse(found)


class Address(anywidget.AnyWidget):
    """Keeps the address of the page in step with an explorer, and copies it.

    Parameters
    ----------
    explorer
        Has `state`, and tells when it shows something new (`heard_by`).
    note
        A sentence about the link that the page was opened with.

    Attributes
    ----------
    query : str
        What the address says; empty where it cannot say what is on screen.
    said : str
        Why that is so, or the note.
    """

    _esm = (STATIC / "address.js").read_text(encoding="utf-8")
    _css = "".join((STATIC / name).read_text(encoding="utf-8") for name in ("live_chart.css", "explorer.css"))

    query = t.Unicode("").tag(sync=True)
    said = t.Unicode("").tag(sync=True)
    rev = t.Int(0).tag(sync=True)
    told = t.Int(-1).tag(sync=True)

    def __init__(self, explorer: Any, note: str = "") -> None:
        self._explorer = explorer
        self._state = explorer.state()
        super().__init__()
        self.tell()
        if note:
            self.said = note
        explorer.heard_by(self._heard)
        self.on_msg(lambda _widget, content, _buffers: self._asked(content))

    def __repr__(self) -> str:
        return "Address()"

    def _heard(self) -> None:
        """Something new is on screen; the page asks for its address once it rests."""
        self._state = self._explorer.state()
        self.rev += 1

    def _asked(self, content: Mapping[str, Any]) -> None:
        if content.get("do") == "tell":
            self.tell()

    def tell(self) -> None:
        """Say in the address what is on screen."""
        rev, state = self.rev, self._state
        query = write(state)
        with self.hold_sync():
            self.query = query or ""
            self.said = "" if query is not None else OWN if state.scenario is None else LONG
            self.told = rev


OWN = "Your own file is not in the address: it stays with you, and a link shows the page without it."
LONG = "So many changes do not fit into an address; hand on the scenario itself (Copy scenario)."
CHANGED = "This link was made with another version of the scenario: the figures may differ from those that were shared."


def sentence(error: Exception) -> str:
    """What is wrong with a link, and what is shown instead."""
    if isinstance(error, InputError):
        first = "; ".join(map(str, error.mistakes[:3]))
        more = f"; and {len(error.mistakes) - 3} more" if len(error.mistakes) > 3 else ""
        return (
            f"This link cannot be shown as it was meant: {first}{more}. What you see is the usual beginning."
        )
    return "This link cannot be shown as it was meant. What you see is the usual beginning."
