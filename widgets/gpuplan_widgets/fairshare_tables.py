"""The tables of the fair-share explorer as HTML: teams, the main figures, all figures."""

import html
from collections.abc import Sequence

from gpuplan.fairshare.charts.heads import amount
from gpuplan.fairshare.figures import MEANINGS, UNITS
from gpuplan.fairshare.run import Run, shown
from gpuplan_widgets.fairshare_words import Team, is_bound, teams_of, wait_words

#: The figures that always stand below the chart, in words; goodput beside occupancy.
MAIN = {
    "occupancy": "GPUs assigned",
    "goodput": "GPUs that do work which is kept",
    "lost_share": "lost to preemptions and restarts",
    "delivered_share": "delivered / owed, all teams",
    "delivered_worst_team": "delivered / owed, worst team",
    "unallocated_share": "charged to no budget (unallocated)",
    "wait_p50_s": "half of the jobs wait at most",
    "wait_p90_s": "nine of ten jobs wait at most",
    "debug_wait_p90_s": "nine of ten debug jobs wait at most",
    "largest_wait_p90_s": "nine of ten of the largest jobs wait at most",
    "preemptions": "stretches that were ended to let other work start",
    "shut_downs_by_hand": "ended by a person for a repair",
    "outstanding": "wanted at once, running and waiting",
}

#: Most teams of the table; of more those with the largest shares.
MOST_TEAMS = 60


def teams_html(left: Run, right: Run) -> str:
    """A row per team: its share, the GPUs it had, delivered / owed, wait p90, under both policies."""
    pairs = list(zip(teams_of(left), teams_of(right), strict=True))
    chosen = sorted(range(len(pairs)), key=lambda k: -pairs[k][0].share)[:MOST_TEAMS]
    rows = "".join(_team(*pairs[k]) for k in sorted(chosen))
    left_out = len(pairs) - len(chosen)
    more = f" (the {MOST_TEAMS} largest of {len(pairs)})" if left_out > 0 else ""
    head = "".join(
        f'<th scope="col">{html.escape(text)}</th>'
        for text in (
            "team",
            "share",
            "entitled (GPUs)",
            *(
                f"{what}, {side}"
                for what in ("had (GPUs)", "delivered / owed", "wait p90")
                for side in _sides(left, right)
            ),
        )
    )
    return (
        f'<div class="gp-teams-scroll" tabindex="0" role="group" aria-label="Table of teams, scrolls where the page is '
        f'narrow"><table class="gp-figures gp-teams"><caption>Teams{more}; had: mean over the run, unallocated work '
        f"included</caption><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>"
    )


def _sides(left: Run, right: Run) -> tuple[str, str]:
    same = left.policy == right.policy
    return (f"{left.policy} (left)", f"{right.policy} (right)") if same else (left.policy, right.policy)


def _team(a: Team, b: Team) -> str:
    cells = [
        amount(a.share),
        f"{a.entitled_gpus:,.1f}",
        f"{a.gpus:,.1f}",
        f"{b.gpus:,.1f}",
        amount(a.delivered),
        amount(b.delivered),
        wait_words(a.wait_p90_s, a.bound),
        wait_words(b.wait_p90_s, b.bound),
    ]
    return f'<tr><th scope="row">{html.escape(a.name)}</th>{_cells(cells)}</tr>'


def _cells(cells: Sequence[str]) -> str:
    return "".join("<td>" + html.escape(cell).replace(" %", "&nbsp;%") + "</td>" for cell in cells)


def main_html(left: Run, right: Run) -> str:
    """The main figures in words with their units."""
    rows = "".join(_figure(name, text, left, right) for name, text in MAIN.items())
    return _table(rows, left, right)


def all_html(left: Run, right: Run) -> str:
    """All figures with their units and what they mean."""
    rows = "".join(_figure(name, MEANINGS[name], left, right) for name in UNITS)
    return _table(rows, left, right)


def _table(rows: str, left: Run, right: Run) -> str:
    sides = (f"left: {left.policy}", f"right: {right.policy}")
    head = "".join(f'<th scope="col">{html.escape(text)}</th>' for text in ("figure (unit)", *sides))
    return f'<table class="gp-figures"><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>'


def _figure(name: str, text: str, left: Run, right: Run) -> str:
    unit = UNITS[name]
    said = unit.replace("share of", "per cent of", 1) if unit.startswith("share") else unit
    told = html.escape(text) if unit == "seconds" else f"{html.escape(text)} ({html.escape(said)})"
    cells = [_value(name, run) for run in (left, right)]
    return (
        f'<tr><th scope="row" title="{html.escape(MEANINGS[name])}">{told} <small>{html.escape(name)}</small></th>'
        f"{_cells(cells)}</tr>"
    )


def _value(name: str, run: Run) -> str:
    value = run.figures[name]
    if value is None:
        return "–"
    if UNITS[name] == "seconds":
        return wait_words(value, is_bound(run, name))
    return amount(value) if UNITS[name].startswith("share") else shown(name, value)
