"""Which cells of a lesson have to run for its live parts: the others show what they showed when it was written.

A lesson is committed with its outputs, and a test computes them anew; a page repeats them. What is live, an explorer or
an exercise, must be made in the page's own kernel, and before it whatever it needs: the cells that bind the names it
uses, or change what they stand for, and so on backwards.
"""

import ast
import builtins
from collections.abc import Sequence

_KNOWN = frozenset(dir(builtins))


def used(code: str) -> set[str]:
    """Names that a cell reads."""
    names = (node for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Name))
    return {name.id for name in names if isinstance(name.ctx, ast.Load)} - _KNOWN


def bound(code: str) -> set[str]:
    """Names that a cell gives a value to, or whose value it may change."""
    found = imported(code)
    for node in ast.walk(ast.parse(code)):
        match node:
            case ast.Name(id=name, ctx=ast.Store()):
                found.add(name)
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                found.add(name)
            case ast.arg(arg=name) | ast.ExceptHandler(name=str(name)):
                found.add(name)
            case ast.Attribute(ctx=ast.Store()) | ast.Subscript(ctx=ast.Store()):
                found |= _root(node)
            case ast.Expr(value=ast.Call(func=ast.Attribute() as method)):
                found |= _root(method)  # a call for its effect, like rows.append(...)
    return found


def imported(code: str) -> set[str]:
    """Names that a cell imports; calling something of a module does not change it."""
    nodes = (node for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Import | ast.ImportFrom))
    return {(one.asname or one.name).partition(".")[0] for node in nodes for one in node.names}


def _root(node: ast.AST) -> set[str]:
    while isinstance(node, ast.Attribute | ast.Subscript):
        node = node.value
    return {node.id} if isinstance(node, ast.Name) else set()


def needed(cells: Sequence[str], live: Sequence[int]) -> list[int]:
    """Numbers of the cells to run so that the live ones can be made, the live ones included, in order.

    Parameters
    ----------
    cells
        Code of all cells, in order; empty for prose.
    live
        Numbers of those that must run.
    """
    wanted: set[str] = set()
    chosen = []
    modules = set().union(*(imported(code) for code in cells))
    for number in range(len(cells) - 1, -1, -1):
        code = cells[number]
        changed = imported(code) | (bound(code) - modules)
        if code and (number in live or changed & wanted):
            chosen.append(number)
            wanted |= used(code)
    return chosen[::-1]
