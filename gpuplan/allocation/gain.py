"""The gain from `fifo` to `search` taken apart: which step gives how much."""

import html
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from gpuplan.allocation.figures import UNITS
from gpuplan.allocation.plan import Plan, plan, ready, repeatable
from gpuplan.inputs.errors import shorten

if TYPE_CHECKING:
    import pandas as pd

RESERVATION, ORDER = "give up the reservation", "order by worth"
HORIZON, SEARCH = "look at the whole horizon", "search"

#: Two ways from the first policy to the last: (step, policy after it). They differ in what comes first.
PATHS: dict[str, tuple[tuple[str, str], ...]] = {
    "reservation first": (
        (RESERVATION, "curve-fifo"),
        (ORDER, "curve-priority"),
        (HORIZON, "aware"),
        (SEARCH, "search"),
    ),
    "order first": (
        (ORDER, "peak-priority"),
        (RESERVATION, "curve-priority"),
        (HORIZON, "aware"),
        (SEARCH, "search"),
    ),
}

#: Figures that are taken apart.
FIGURES = ("utilization", "value", "objective")


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a path: what is done, from which policy to which, and a figure before and after."""

    words: str
    start: str
    end: str
    before: float
    after: float

    @property
    def change(self) -> float:
        """The figure after less the figure before."""
        return self.after - self.before


class GainApart:
    """What each step from `fifo` to `search` gives, in both orders of the first two.

    Attributes
    ----------
    plans : dict of str to Plan
        By policy: ``fifo``, ``curve-fifo``, ``peak-priority``, ``curve-priority``, ``aware``, ``search``.
    """

    def __init__(self, plans: Mapping[str, Plan]) -> None:
        self.plans = dict(plans)

    def figure(self, policy: str, figure: str) -> float:
        """A figure of a policy's plan."""
        return float(self.plans[policy].figures[figure] or 0.0)

    def steps(self, path: str, figure: str = "value") -> tuple[Step, ...]:
        """The steps of a path (a key of `PATHS`) for a figure; their changes add up to `total`."""
        found = []
        before = "fifo"
        for words, after in PATHS[path]:
            found.append(Step(words, before, after, self.figure(before, figure), self.figure(after, figure)))
            before = after
        return tuple(found)

    def total(self, figure: str = "value") -> float:
        """The figure of ``search`` less that of ``fifo``."""
        return self.figure("search", figure) - self.figure("fifo", figure)

    def interaction(self, figure: str = "value") -> float:
        """What giving up the reservation and ordering by worth (priority) give together beyond what each gives alone.

        ``curve-priority - curve-fifo - peak-priority + fifo``.
        """
        both, reservation, order, none = (
            self.figure(policy, figure)
            for policy in ("curve-priority", "curve-fifo", "peak-priority", "fifo")
        )
        return both - reservation - order + none

    @cached_property
    def table(self) -> "pd.DataFrame":
        """Tidy: a row per path, step and figure; utilization in per cent, its changes in points."""
        import pandas as pd

        rows = []
        for path in PATHS:
            for figure in FIGURES:
                scale, unit = scale_of(figure)
                rows += [
                    (
                        path,
                        figure,
                        step.words,
                        step.start,
                        step.end,
                        scale * step.before,
                        scale * step.after,
                        scale * step.change,
                        unit,
                    )
                    for step in self.steps(path, figure)
                ]
        columns = ["path", "figure", "step", "from", "to", "before", "after", "change", "unit"]
        return pd.DataFrame(rows, columns=columns)

    def sentence(self, figure: str = "value") -> str:
        """The steps of both paths in words, and the interaction."""
        scale, unit = scale_of(figure)
        parts = []
        for path in PATHS:
            steps = ", ".join(f"{s.words} {signed(scale * s.change)}" for s in self.steps(path, figure))
            parts.append(f"{path.capitalize()}: {steps}")
        total = signed(scale * self.total(figure))
        between = signed(scale * self.interaction(figure))
        return (
            f"{figure.capitalize()} from fifo to search: {total} {unit}. {'. '.join(parts)}. "
            f"The first two together give {between} beyond the sum of each alone."
        )

    def __repr__(self) -> str:
        name = shorten(next(iter(self.plans.values())).scenario.name)
        return "\n".join([f"{name}: the gain taken apart", *(self.sentence(figure) for figure in FIGURES)])

    def _repr_html_(self) -> str:
        rows = "".join(
            "<tr>"
            + "".join(
                f'<td style="text-align:left">{html.escape(str(row[key]))}</td>' for key in ("path", "step")
            )
            + "".join(f'<td style="text-align:right">{signed(float(row[figure]))}</td>' for figure in FIGURES)
            + "</tr>"
            for row in self._wide()
        )
        head = "".join(
            f'<th scope="col">{text}</th>'
            for text in ("path", "step", "utilization (points)", "value", "objective")
        )
        name = html.escape(shorten(next(iter(self.plans.values())).scenario.name))
        return (
            f"<table><caption>{name}: what each step gives (value and objective in {UNITS['value']})</caption>"
            f"<thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"
        )

    def _wide(self) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = []
        for path in PATHS:
            for number, (words, _) in enumerate(PATHS[path]):
                row: dict[str, Any] = {"path": path, "step": words}
                for figure in FIGURES:
                    row[figure] = scale_of(figure)[0] * self.steps(path, figure)[number].change
                rows.append(row)
        rows.append(
            {"path": "", "step": "interaction of the first two"}
            | {figure: scale_of(figure)[0] * self.interaction(figure) for figure in FIGURES}
        )
        rows.append(
            {"path": "", "step": "fifo to search"}
            | {figure: scale_of(figure)[0] * self.total(figure) for figure in FIGURES}
        )
        return rows


def scale_of(figure: str) -> tuple[float, str]:
    """Factor and unit in which a figure and its changes are shown: points for a share."""
    if UNITS[figure].startswith("share"):
        return 100.0, "points"
    return 1.0, UNITS[figure]


def signed(number: float) -> str:
    """A change with one decimal and its sign; what rounds to nothing has none."""
    text = f"{abs(number):,.1f}"
    if float(text.replace(",", "")) == 0:
        return "±" + text
    return ("+" if number > 0 else "−") + text


def take_apart(scenario: Any, **effort: Any) -> GainApart:
    """The gain from ``fifo`` to ``search`` in steps, in both orders of the first two.

    Parameters
    ----------
    scenario
        An `AllocationScenario`, or the mapping of a scenario file.
    **effort
        As in `gpuplan.allocation.plan.plan`; by default a number of moves that takes a few
        milliseconds, so that the same scenario gives the same figures.

    Raises
    ------
    InputError
        For a scenario with mistakes or an effort that cannot be.
    """
    checked = ready(scenario)
    if not {"iterations", "budget_ms"} & set(effort):
        effort = {**repeatable(checked), **effort}
    policies = dict.fromkeys(["fifo", *(policy for path in PATHS.values() for _, policy in path)])
    return GainApart({policy: plan(checked, policy, **effort) for policy in policies})
