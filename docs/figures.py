"""Writes docs/figures.md, "What the figures mean", from the definitions that the library itself uses.

``python docs/figures.py`` writes it anew; a test compares the page with what this file would write.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

PAGE = Path(__file__).with_name("figures.md")

HEAD = """\
# What the figures mean

Same input, same figures: amounts are added up as exact integers and divided once. `seconds` (wall clock) appears in
`--json` and in benchmarks only. Where there is no value (no job waited, no price is given) a figure is absent or
`null`. A percentile is a value that occurs: the sorted one at index min(n - 1, floor(q x n)).

This page is written by `docs/figures.py` from the definitions in the library: `MEANINGS` and `UNITS` of the modules
named below.
"""


def parts() -> list[tuple[str, str, str, Mapping[str, str], Mapping[str, str]]]:
    """Heading, text, module, meanings and units of each part."""
    from gpuplan.allocation import figures as plans
    from gpuplan.allocation import rolling_run as days
    from gpuplan.fairshare import figures as weeks
    from gpuplan.packing import figures as tasks

    beyond = [name for name in days.ROLLING_UNITS if name not in plans.UNITS]
    return [
        ("A plan of a day", PLAN, plans.__name__, plans.MEANINGS, plans.UNITS),
        (
            "A run over days",
            DAYS,
            days.__name__,
            {name: days.ROLLING_MEANINGS[name] for name in beyond},
            days.ROLLING_UNITS,
        ),
        ("A run of weeks", WEEKS, weeks.__name__, weeks.MEANINGS, weeks.UNITS),
        ("A run of tasks", TASKS, tasks.__name__, tasks.MEANINGS, tasks.UNITS),
    ]


PLAN = """\
Allocation: `gp.plan`, `gp.compare`, `gpuplan compare`. Sums run over the steps of the horizon."""

DAYS = """\
Rolling runs: `gp.roll`. They have the figures of a plan over the days that were committed (except `bound` and `gap`;
value is not decayed), and these:"""

WEEKS = """\
Fair share: `gp.simulate`, `gpuplan simulate`. Bounded slowdown: Feitelson and others, *Theory and practice in parallel
job scheduling* (1997). Jain's index: (sum x)^2 / (n x sum x^2), Jain, Chiu and Hawe (1984)."""

TASKS = """\
Packing: `gp.pack`, `gpuplan pack`. The parts of the mean latency (`queue`, `load`, `service`, `save`, `suspended`,
`restore`, `retry`) add up to it."""


def page() -> str:
    """The whole page."""
    texts = [HEAD]
    for heading, text, module, meanings, units in parts():
        rows = [f"| `{name}` | {_cell(units[name])} | {_cell(said)} |" for name, said in meanings.items()]
        table = "\n".join(["| figure | unit | meaning |", "| --- | --- | --- |", *rows])
        texts.append(f"## {heading}\n\n{text}\n\n{table}\n\nIn Python: `{module}`.\n")
    return "\n".join(texts)


def _cell(text: str) -> str:
    return text.replace("\\", "\\\\").replace("|", "\\|").replace("*", "\\*")


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
