"""The comparison of figures: what is shown, in which unit, and how a change is written."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from gpuplan.gantt import Columns

Figures = Mapping[str, float | int | None]

#: Name of the comparison's last row.
BOUND_ROW = "best possible, at most"

#: Unit of value, penalty and objective.
VALUE_UNIT = "priority-weighted GPU-hours"


@dataclass(frozen=True, slots=True)
class Shown:
    """A figure of the comparison: its name in `figures`, its words, and whether it is a share of one."""

    name: str
    words: str
    share: bool


SHOWN: tuple[Shown, ...] = (
    Shown("utilization", "utilization", True),
    Shown("coverage", "coverage", True),
    Shown("value", "value", False),
    Shown("penalty", "penalty", False),
    Shown("objective", "objective", False),
)


def amount(value: float | int | None, share: bool) -> str:
    """Figure as text: ``"87.0 %"`` for a share, ``"1,234.5"`` for an amount, a dash for none."""
    if value is None:
        return "–"
    return f"{100 * value:.1f} %" if share else f"{value:,.1f}"


def change(value: float | int | None, first: float | int | None, share: bool) -> str:
    """Change against the first: points of a share, per cent of a positive amount, else the difference."""
    if value is None or first is None:
        return ""
    if share:
        return f"{100 * value - 100 * first:+.1f} points"
    if first > 0:
        return f"{100 * (value - first) / first:+.1f} %"
    return f"{value - first:+,.1f}"


def labels(policies: Sequence[str]) -> list[str]:
    """Names of the policies, told apart by their position where one stands twice."""
    if len(set(policies)) == len(policies):
        return list(policies)
    if len(policies) == 2:
        return [f"{policies[0]} (left)", f"{policies[1]} (right)"]
    return [f"{policy} ({number})" for number, policy in enumerate(policies, start=1)]


def comparison_data(names: Sequence[str], figures: Sequence[Figures]) -> dict[str, Columns]:
    """Data sets ``shares`` (per cent) and ``amounts``: a row per figure and policy, with its text."""
    return {
        "shares": _rows(names, figures, [shown for shown in SHOWN if shown.share], 100.0),
        "amounts": _rows(names, figures, [shown for shown in SHOWN if not shown.share], 1.0),
    }


def _rows(names: Sequence[str], figures: Sequence[Figures], shown: Sequence[Shown], scale: float) -> Columns:
    rows: Columns = {name: [] for name in ("row", "value", "at", "says", "first", "top")}
    if not shown[0].share:
        rows["bound"] = []
    reach = [abs(scale * (entry[figure.name] or 0)) for figure in shown for entry in figures]
    reach += [] if shown[0].share else [entry.get("bound") or 0 for entry in figures]
    top = 190.0 if shown[0].share else round(1.9 * max(reach), 4) or 1.0
    for figure in shown:
        for number, (name, entry) in enumerate(zip(names, figures, strict=True)):
            value = entry[figure.name]
            text = amount(value, figure.share)
            if number:
                text += f"  ({change(value, figures[0][figure.name], figure.share)})"
            drawn = round(scale * (value or 0), 4)
            bound = entry.get("bound") if figure.name == "objective" else None
            rows["row"].append(f"{figure.words}: {name}")
            rows["value"].append(drawn)
            rows["at"].append(max(drawn, 0, *([] if bound is None else [round(bound, 4)])))
            rows["says"].append(text)
            rows["first"].append(int(number == 0))
            if not figure.share:
                rows["bound"].append(None if bound is None else round(bound, 4))
            rows["top"].append(top)
    # All plans are of one scenario, so they have one bound.
    bound = None if shown[0].share or not figures else figures[0].get("bound")
    if bound is not None:
        at = round(bound, 4)
        own = {"row": BOUND_ROW, "value": 0, "at": max(0, at), "says": f"bound {amount(bound, False)}"}
        for name, cell in (own | {"first": 0, "top": top, "bound": at}).items():
            rows[name].append(cell)
    return rows


def below_bound(figures: Figures) -> str:
    """How far a plan may be from the best possible: ``"at most 8.3 % below the best possible"``.

    The bound may lie above what any plan reaches, so the distance is never understated: it is rounded up.
    """
    bound, objective = figures.get("bound"), figures.get("objective")
    if bound is None or objective is None:
        return "of unknown distance from the best possible"
    distance = bound - objective
    if distance <= 1e-6 * max(1.0, abs(bound)):
        return "the best possible, as it reaches the bound"
    if bound <= 0 or objective < 0:
        return f"at most {math.ceil(10 * distance - 1e-6) / 10:,.1f} below the best possible"
    return f"at most {math.ceil(1000 * distance / bound - 1e-6) / 10:.1f} % below the best possible"
