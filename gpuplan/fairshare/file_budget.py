"""The tree of budgets of a scenario file: cut off where it holds itself or is too deep, and its rules of names."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from gpuplan.fairshare.file_models import DEEPEST_TREE, BudgetFile
from gpuplan.inputs.errors import MISSING, shorten
from gpuplan.inputs.fields import number

ValuePath = tuple[str | int, ...]
Conflict = tuple[ValuePath, str, Any]

#: Budgets without a weight that a note names; the rest are counted.
_NAMED = 8


def cut_off(budget: Any) -> tuple[Any, list[Conflict]]:
    """The rows of a tree without the children that must not be walked into, and what is wrong with those.

    A mapping in Python may hold itself; a tree may be deeper than any that is meant. Neither may reach a validator
    that recurses.
    """
    found: list[Conflict] = []

    def rows(value: Any, path: ValuePath, above: tuple[int, ...]) -> Any:
        if not isinstance(value, (list, tuple)):
            return value
        return [row(item, (*path, place), (*above, id(value))) for place, item in enumerate(value)]

    def row(value: Any, path: ValuePath, above: tuple[int, ...]) -> Any:
        if not isinstance(value, Mapping) or "children" not in value:
            return value
        here = (*path, "children")
        children = value["children"]
        if id(children) in above or id(value) in above:
            found.append((here, "must not hold the budget itself", MISSING))
        elif len(path) // 2 >= DEEPEST_TREE and _some(children):
            found.append((here, f"must not be more than {DEEPEST_TREE} levels deep", MISSING))
        else:
            return {**value, "children": rows(children, here, (*above, id(value)))}
        return {key: item for key, item in value.items() if key != "children"}

    return rows(budget, ("budget",), ()), found


def _some(children: Any) -> bool:
    return isinstance(children, Sequence) and not isinstance(children, str) and len(children) > 0


def budget_conflicts(budget: Any) -> Iterator[Conflict]:
    """Broken rules between budgets, beside those of single values: names and weights among siblings, names on a path.

    `budget` is what the file holds there, cut off (`cut_off`).
    """
    yield from _siblings(budget, ("budget",), ())


def _siblings(budgets: Any, path: ValuePath, above: tuple[str, ...]) -> Iterator[Conflict]:
    if not isinstance(budgets, (list, tuple)):
        return
    first: dict[str, int] = {}
    for place, budget in enumerate(budgets):
        if not isinstance(budget, Mapping):
            continue
        name = budget.get("name")
        here = (*path, place, "name")
        if not isinstance(name, str):
            name = ""
        elif name in first:
            yield here, f"must be unique among its siblings, but row {first[name]} has it too", name
        elif name in above:
            walk = shorten("/".join((*above[above.index(name) :], name)), 120)
            yield here, f"must not be the name of a budget in which it lies: {walk}", name
        first.setdefault(name, place)
        yield from _siblings(budget.get("children"), (*path, place, "children"), (*above, name))
    if budgets and all(isinstance(row, Mapping) and number(row.get("weight")) == 0 for row in budgets):
        yield path, "must hold a weight above 0: nobody could have a share", MISSING


def weight_note(budget: tuple[BudgetFile, ...]) -> tuple[str, ...]:
    """A sentence about the budgets that have no weight, where there are any."""
    without = list(_without_weight(budget, ""))
    if not without:
        return ()
    more = f" and {len(without) - _NAMED:,} more" if len(without) > _NAMED else ""
    return (f"No weight is given for {', '.join(without[:_NAMED])}{more}: 1 is taken.",)


def _without_weight(budgets: tuple[BudgetFile, ...], above: str) -> Iterator[str]:
    for budget in budgets:
        path = f"{above}/{budget.name}" if above else budget.name
        if budget.weight is None:
            yield path
        yield from _without_weight(budget.children, path)
