"""The changes of budgets of a scenario file: rules that look at the tree of budgets too."""

from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any

from gpuplan.fairshare.file_budget import Conflict
from gpuplan.fairshare.file_models import LONGEST_S
from gpuplan.inputs.errors import MISSING, did_you_mean, shorten
from gpuplan.inputs.fields import is_null, number
from gpuplan.inputs.spans import Span, span_text

#: Unknown paths for which a near one is looked for, and the largest tree in which it is.
_SUGGESTED, _SEARCHED = 20, 10_000

#: Siblings that a message names.
_NAMED = 4


def change_conflicts(changes: Any, budget: Any, default: str) -> Iterator[Conflict]:
    """Broken rules of changes, beside those of single values: unknown paths, equal instants, nobody left with a share.

    Parameters
    ----------
    changes, budget
        What the file holds there; of the budgets what is cut off (`gpuplan.fairshare.file_budget.cut_off`).
    default
        The only budget where the file has none.
    """
    if not isinstance(changes, (list, tuple)):
        return
    weights = dict(_weights(budget, "")) or {default: 1.0}
    rows = [(place, row) for place, row in enumerate(changes) if isinstance(row, Mapping)]
    yield from _paths(rows, weights)
    dated = sorted(
        ((at, place, row) for place, row in rows if (at := _instant(row.get("at"))) is not None),
        key=lambda one: one[:2],
    )
    for (at, other, _), (again, place, _) in pairwise(dated):
        if at == again:
            rule = f"must be another instant than that of row {other}: budgets change once at an instant"
            yield ("budget_changes", place, "at"), rule, span_text(at)
    yield from _shares([(place, row) for _, place, row in dated], weights)


def _weights(siblings: Any, above: str) -> Iterator[tuple[str, float]]:
    """Path and weight of every budget; a weight that is none counts as 1 (it is reported elsewhere)."""
    for row in siblings if isinstance(siblings, (list, tuple)) else ():
        if isinstance(row, Mapping) and isinstance(row.get("name"), str):
            path = f"{above}/{row['name']}" if above else str(row["name"])
            weight = number(row.get("weight"))
            yield path, 1.0 if weight is None else float(weight)
            yield from _weights(row.get("children"), path)


def _instant(value: Any) -> int | None:
    """The instant in seconds; None where it is none (reported elsewhere)."""
    try:
        return None if is_null(value) else Span(0, LONGEST_S).read(value)
    except ValueError:
        return None


def _named(row: Mapping[str, Any]) -> Mapping[str, Any]:
    found = row.get("weights")
    return found if isinstance(found, Mapping) else {}


def _paths(rows: list[tuple[int, Mapping[str, Any]]], weights: Mapping[str, float]) -> Iterator[Conflict]:
    """Budgets are named by their paths, at least one."""
    rules: dict[str, str] = {}
    own: dict[str, list[str]] = {}
    for path in weights:
        own.setdefault(path.rpartition("/")[2], []).append(path)
    for place, row in rows:
        here = ("budget_changes", place, "weights")
        if isinstance(row.get("weights"), Mapping) and not row["weights"]:
            yield here, "must name at least one budget", MISSING
        for name in _named(row):
            if isinstance(name, str) and name not in weights:
                if name not in rules:
                    rules[name] = _rule(name, weights, own, len(rules) < _SUGGESTED)
                yield (*here, name), rules[name], MISSING


def _rule(name: str, weights: Mapping[str, float], own: Mapping[str, list[str]], suggest: bool) -> str:
    known = own.get(name, [])
    if len(known) > 1:
        return f"must be the path of a budget, for there are {_listed(known)}"
    near = ""
    if known:
        near = f"; did you mean {shorten(known[0])}?"
    elif suggest and len(weights) <= _SEARCHED:
        near = did_you_mean(name, [shorten(path) for path in weights])
    return f"must be the path of a budget{near}"


def _shares(rows: list[tuple[int, Mapping[str, Any]]], weights: dict[str, float]) -> Iterator[Conflict]:
    """After every change some sibling weighs something."""
    present = dict(weights)
    siblings: dict[str, list[str]] = {}
    for path in weights:
        siblings.setdefault(path.rpartition("/")[0], []).append(path)
    for place, row in rows:
        new = {
            path: number(w) for path, w in _named(row).items() if isinstance(path, str) and path in weights
        }
        present |= {path: float(weight) for path, weight in new.items() if weight is not None}
        for above in dict.fromkeys(path.rpartition("/")[0] for path in new):
            if not any(present[path] != 0 for path in siblings[above]):
                rule = f"must leave {_listed(siblings[above])} a weight above 0: nobody could have a share"
                yield ("budget_changes", place, "weights"), rule, MISSING


def _listed(paths: list[str]) -> str:
    more = f" or {len(paths) - _NAMED:,} more" if len(paths) > _NAMED else ""
    return " or ".join(shorten(path) for path in paths[:_NAMED]) + more
