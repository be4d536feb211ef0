"""The charts of a report, by kind: each with a title, a specification for wide and for narrow pages, and its tables."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from gpuplan.gantt import safe_text
from gpuplan.reports import tables

if TYPE_CHECKING:
    import pandas as pd

    from gpuplan.side_by_side import SideBySide

#: Pixels of a chart on a wide page, and on a telephone.
WIDE, NARROW = 920, 300

#: Days of the table beside the chart of allocated GPUs at most.
_MOST_DAYS = 60


@dataclass(frozen=True)
class Picture:
    """A chart: its heading, what draws it for a width, and the tables that stand in for it (HTML)."""

    title: str
    draw: Callable[[int], Any]
    tables: Sequence[str]

    def specs(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Vega-Lite for a wide and a narrow page."""
        wide, narrow = self.draw(WIDE).to_dict(), self.draw(NARROW).to_dict()
        return wide, narrow

    def _repr_mimebundle_(self, *args: Any, **kwargs: Any) -> Any:
        return self.draw(WIDE)._repr_mimebundle_(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<Picture {self.title!r}>"


def pictures(comparison: SideBySide[Any]) -> list[Picture]:
    """The charts of a comparison, in reading order."""
    kind = comparison.scenario.kind
    makers = {"allocation": _allocation, "fairshare": _fairshare, "packing": _packing}
    return makers[kind](list(comparison.results), list(comparison.results.values()), comparison)


def _allocation(names: list[str], plans: list[Any], comparison: Any) -> list[Picture]:
    from gpuplan.allocation import charts
    from gpuplan.allocation.charts import words

    made = [
        Picture(
            "Policies side by side",
            lambda width: charts.comparison_chart(comparison, width=width),
            [_wide(words.figures_table(*plans))],
        )
    ]
    for name, plan in zip(names, plans, strict=True):
        made.append(
            Picture(
                f"Which GPU does what under {name}",
                _of(charts.gantt, plan, less=40),
                [_wide(words.jobs_table(plan))],
            )
        )
    apps = range(len(plans[0].scenario.realtime))
    if apps:
        made.append(
            Picture(
                "Demand of the apps, and what they get",
                lambda width: charts.demand_chart(*plans, width=width),
                [_wide(words.demand_table(app, *plans)) for app in apps],
            )
        )
    made.append(
        Picture(
            "GPUs in use",
            lambda width: charts.utilization_chart(*plans, width=width),
            [_wide(words.usage_table(*plans))],
        )
    )
    return made


def _of(chart: Callable[..., Any], result: Any, less: int = 0) -> Callable[[int], Any]:
    """What draws a chart of one result for a width; `less` is what the chart adds to its drawing area."""
    return lambda width: chart(result, width=width - less)


def _wide(table: str) -> str:
    return tables.scrolled(table, "table")


def _fairshare(names: list[str], runs: list[Any], comparison: Any) -> list[Picture]:
    from gpuplan.fairshare import charts

    shares = [figure for figure in comparison.units if comparison.units[figure].startswith("share")]
    waits = [figure for figure in comparison.units if "wait" in figure]
    made = [
        Picture(
            "From installed GPUs to useful work",
            lambda width: charts.pyramid_chart(runs, width=min(width, 720)),
            [_some_figures("Shares under each policy", comparison, shares)],
        ),
        Picture(
            "How long jobs wait",
            lambda width: charts.wait_chart(runs, width=width),
            [
                _some_figures("Waits under each policy", comparison, waits),
                tables.of_frame("Waits by size of job", _stacked(names, [run.sizes for run in runs])),
            ],
        ),
        Picture(
            "What teams got of what they were owed",
            lambda width: charts.delivered_chart(runs, width=width),
            [tables.of_frame("Teams under each policy", _stacked(names, [run.teams for run in runs]))],
        ),
    ]
    for name, run in zip(names, runs, strict=True):
        made.append(
            Picture(
                f"GPUs of each team under {name}",
                _of(charts.allocation_chart, run),
                [_by_day(run)],
            )
        )
    for name, run in zip(names, runs, strict=True):
        made.append(
            Picture(
                f"Which GPUs work for whom under {name}",
                _of(charts.gantt_chart, run),
                [tables.of_frame(f"Stretches of running under {name}", run.to_frame())],
            )
        )
    return made


def _by_day(run: Any) -> str:
    """GPUs of each team on average over each day."""
    days = run.over(86_400)
    teams = [str(team) for team in run.problem.tree.teams]
    running = (days.allocated + days.unallocated).T
    rows = [
        [f"{start / 86_400:g}", *(f"{amount / max(1, length):,.2f}" for amount in each)]
        for start, length, each in zip(
            days.start_s.tolist(), days.length_s.tolist(), running.tolist(), strict=True
        )
    ]
    caption = "GPUs on average, day by day"
    if len(rows) > _MOST_DAYS:
        caption += f" (the first {_MOST_DAYS} of {len(rows):,} days)"
    return tables.table(caption, ["day (from 0)", *teams], rows[:_MOST_DAYS])


def _packing(names: list[str], runs: list[Any], comparison: Any) -> list[Picture]:
    from gpuplan.packing import charts
    from gpuplan.packing.tables import copies

    made = [
        Picture(
            "Where the time of tasks goes",
            lambda width: charts.split_chart(runs, width=width),
            [tables.of_frame("Tasks by priority", _stacked(names, [run.priorities for run in runs]))],
        )
    ]
    for name, run in zip(names, runs, strict=True):
        made.append(
            Picture(
                f"Memory of the GPUs under {name}",
                _of(charts.memory_chart, run),
                [tables.of_frame(f"Loaded copies of models under {name}", copies(run))],
            )
        )
    for name, run in zip(names, runs, strict=True):
        made.append(
            Picture(
                f"Which task is where under {name}",
                _of(charts.gantt_chart, run),
                [tables.of_frame(f"Stages of tasks under {name}", run.to_frame())],
            )
        )
    for name, run in zip(names, runs, strict=True):
        made.append(
            Picture(
                f"What still fits under {name}",
                _of(charts.fit_chart, run),
                [tables.of_frame(f"Models under {name}", run.models)],
            )
        )
    return made


def _some_figures(caption: str, comparison: SideBySide[Any], figures: Sequence[str]) -> str:
    from gpuplan.side_by_side import as_text

    results = comparison.results
    rows = [
        [
            figure.replace("_", " "),
            *(as_text(result.figures[figure], comparison.units[figure]) for result in results.values()),
            comparison.units[figure],
        ]
        for figure in figures
        if all(figure in result.figures for result in results.values())
    ]
    return tables.table(caption, ["figure", *results, "unit"], rows)


def _stacked(names: Sequence[str], frames: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """The frames below each other, each with its policy in the first column."""
    import pandas as pd

    named = []
    for name, frame in zip(names, frames, strict=True):
        copy = frame.copy()
        copy.insert(0, "policy", safe_text(name))
        named.append(copy)
    return pd.concat(named, ignore_index=True)
