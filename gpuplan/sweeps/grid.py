"""The points of a sweep: every combination of the values of its axes, checked before anything is computed."""

import hashlib
import importlib
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import product
from pathlib import Path
from typing import Any

from gpuplan.inputs.errors import InputError, Mistake, shorten
from gpuplan.kinds import POLICIES, SEED_PATHS

#: The axis that draws the same scenario anew: it sets `SEED_PATHS` of the kind (allocation: the seed of `search`).
SEED = "seed"

#: Points of a sweep at most; their values are held in memory.
MOST = 1_000_000

#: Columns of a table of results that are neither axes nor figures.
COLUMNS = ("policy", "error", "key", "version")

#: What the answers of a kind rest on beside its own folder.
_BELOW = ("inputs", "cluster.py", "jit.py", "percentiles.py", "rectangles.py")


@dataclass(frozen=True)
class Grid:
    """A scenario, the axes over which it is varied, the policies, and how much they may do.

    Attributes
    ----------
    axes : dict of str to tuple
        Values by dotted path (or ``seed``); the last axis changes fastest.
    effort : dict
        Keywords of `gpuplan.plan` (allocation only).
    """

    scenario: Any
    axes: Mapping[str, tuple[Any, ...]]
    policies: tuple[str, ...]
    effort: Mapping[str, Any]

    @property
    def kind(self) -> str:
        """The scenario's kind."""
        return str(self.scenario.kind)

    @property
    def size(self) -> int:
        """How many points there are."""
        return math.prod(map(len, self.axes.values()))

    @cached_property
    def cells(self) -> dict[str, type]:
        """What the cells of each axis are: whole numbers, numbers, or (where a value is no number) text."""
        return {axis: _cells(values) for axis, values in self.axes.items()}

    @cached_property
    def units(self) -> dict[str, str]:
        """Unit of each figure of this kind, in the order in which they are listed."""
        return dict(_module(self.kind, "figures").UNITS)

    @cached_property
    def version(self) -> str:
        """Version of gpuplan, and a short digest of the code that answers for this kind."""
        return code_version(self.kind)

    def points(self) -> Iterable[dict[str, Any]]:
        """The points in order: a value by axis."""
        return (dict(zip(self.axes, values, strict=True)) for values in product(*self.axes.values()))

    def changes(self, point: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
        """What a point changes of the scenario, by path, and of the effort."""
        changes = {path: value for path, value in point.items() if path != SEED}
        effort = dict(self.effort)
        if SEED in point:
            path = SEED_PATHS.get(self.kind)
            (effort if path is None else changes)[path or SEED] = point[SEED]
        return changes, effort

    def keys(self) -> "Keys":
        """Makes the fingerprints of results."""
        return Keys(self)


class Keys:
    """Fingerprints of results: equal ones are of the same scenario, point, policy, effort and code."""

    def __init__(self, grid: Grid) -> None:
        head = [grid.kind, grid.scenario.fingerprint, grid.version]
        self._head = hashlib.sha256(_json(head).encode())
        self._grid = grid

    def of(self, point: Mapping[str, Any], policy: str) -> str:
        """The fingerprint of a point under a policy: SHA-256, hexadecimal."""
        digest = self._head.copy()
        changes, effort = self._grid.changes(point)
        digest.update(_json([sorted(changes.items()), sorted(effort.items()), policy]).encode())
        return digest.hexdigest()


def grid_of(
    scenario: Any,
    axes: Mapping[str, Iterable[Any]],
    policies: Sequence[str] | str | None,
    effort: Mapping[str, Any],
) -> Grid:
    """The grid of a sweep.

    Parameters
    ----------
    scenario
        A scenario of any kind.
    axes
        Values by dotted path of the scenario, or by ``seed``.
    policies
        Names of policies; None: those of `POLICIES`.
    effort
        Keywords of `gpuplan.plan`.

    Raises
    ------
    InputError
        With every unknown path, axis without values, value that is no value of a file, unknown policy.
    """
    kind = str(scenario.kind)
    mistakes: list[Mistake] = []
    given: object = axes
    if not isinstance(given, Mapping):
        rule = 'must be a mapping of paths to values: {"objective.shortfall_penalty": [0, 5, 10]}'
        raise InputError("sweep", [Mistake("axes", rule, given)])
    found = {str(path): _values(str(path), values, mistakes) for path, values in axes.items()}
    for path, values in found.items():
        mistakes += _axis_mistakes(scenario, path, values)
    size = math.prod(map(len, found.values()))
    if size > MOST:
        mistakes.append(Mistake("axes", f"must make at most {MOST:,} points", size))
    names = POLICIES[kind] if policies is None else (policies,) if isinstance(policies, str) else policies
    names = tuple(dict.fromkeys(names))
    if not names:
        mistakes.append(Mistake("policies", "must name at least one policy"))
    for name in names:
        mistakes += _policy_mistakes(scenario, name)
    mistakes += _effort_mistakes(kind, effort)
    if mistakes:
        raise InputError("sweep", mistakes)
    return Grid(scenario, found, names, dict(effort))


@cache
def code_version(kind: str) -> str:
    """Version of gpuplan, and a digest of the source that figures of a kind rest on (charts left out)."""
    from importlib.metadata import version

    root = Path(__file__).resolve().parent.parent
    files: list[Path] = []
    for name in (kind, *_BELOW):
        files += [root / name] if name.endswith(".py") else sorted((root / name).rglob("*.py"))
    digest = hashlib.sha256()
    for file in files:
        if "charts" not in file.parts and file.is_file():
            digest.update(file.read_bytes().replace(b"\r\n", b"\n"))
    return f"{version('gpuplan')}+{digest.hexdigest()[:12]}"


def _values(path: str, values: Iterable[Any], mistakes: list[Mistake]) -> tuple[Any, ...]:
    """The values of an axis as plain ones; what is wrong with them is added to the mistakes."""
    if isinstance(values, (str, bytes, Mapping)) or not isinstance(values, Iterable):
        mistakes.append(Mistake(shorten(path), "must be a list of values", values))
        return ()
    plain: dict[str, Any] = {}
    for number, value in enumerate(values):
        if number >= MOST:
            mistakes.append(Mistake(shorten(path), f"must have at most {MOST:,} values"))
            break
        value = _plain(value)
        try:
            text = _json(value)
            (value if isinstance(value, str) else text).encode()  # half of a surrogate pair is no text
        except (TypeError, ValueError):
            rule = "must be numbers, words, lists or mappings, as in a file"
            mistakes.append(Mistake(shorten(path), rule, value))
            continue
        if text in plain:
            mistakes.append(Mistake(shorten(path), "must name each value once", value))
        plain[text] = value
    if not plain and not mistakes:
        mistakes.append(Mistake(shorten(path), "must have at least one value"))
    return tuple(plain.values())


def _cells(values: tuple[Any, ...]) -> type:
    if any(isinstance(value, bool) or not isinstance(value, (int, float)) for value in values):
        return str
    if all(isinstance(value, int) and abs(value) < 2**63 for value in values):
        return int
    return float if all(abs(value) < 1e300 for value in values) else str


def _axis_mistakes(scenario: Any, path: str, values: tuple[Any, ...]) -> Iterable[Mistake]:
    """What is wrong with an axis as a whole; a value that is wrong alone is told in its row."""
    kind = str(scenario.kind)
    if path == SEED:
        if kind in SEED_PATHS and scenario.generate is None:
            what = "jobs" if kind == "fairshare" else "tasks"
            yield Mistake(SEED, f"has no use here: the {what} are given, not generated")
        for value in values:
            if not isinstance(value, int) or isinstance(value, bool) or value < 0:
                yield Mistake(SEED, "must be whole numbers of at least 0", value)
                return
    elif path in COLUMNS or path in _module(kind, "figures").UNITS:
        yield Mistake(shorten(path), "cannot be an axis: results have a column of this name")
    elif path == "name":
        yield Mistake(path, "cannot be an axis: the name changes nothing")
    elif values:
        try:
            scenario.replace({path: values[0]})
        except InputError as error:
            for mistake in error.mistakes:
                if mistake.rule.startswith("unknown path"):
                    yield mistake


def _policy_mistakes(scenario: Any, name: str) -> Iterable[Mistake]:
    try:
        if scenario.kind == "packing":
            importlib.import_module("gpuplan.packing.policies").pieces_named(name, scenario.policy)
        else:
            home = "plan" if scenario.kind == "allocation" else "run"
            _module(scenario.kind, home).policy_named(name)
    except InputError as error:
        yield from error.mistakes


def _effort_mistakes(kind: str, effort: Mapping[str, Any]) -> Iterable[Mistake]:
    if kind != "allocation":
        for name in effort:
            yield Mistake(name, f"unknown keyword: {kind} policies take none")
        return
    try:
        _module(kind, "effort").effort_from(effort)
        _json(dict(effort))
    except InputError as error:
        yield from error.mistakes
    except (TypeError, ValueError):
        yield Mistake("effort", "must be numbers: other processes plan with it")


def _module(kind: str, name: str) -> Any:
    return importlib.import_module(f"gpuplan.{kind}.{name}")


def _plain(value: Any) -> Any:
    """Numbers of numpy as Python's, whole numbers without a decimal point, tuples as lists."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return int(value)
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    return value


def _json(value: Any) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)
