"""What was done above what each policy would have done: Gantts on one time axis, waits, and the shares of GPU-time."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from gpuplan import theme
from gpuplan.fairshare.charts import bars, gantt, heads, waits
from gpuplan.fairshare.charts.clock import Clock, clock_of, words
from gpuplan.fairshare.charts.colours import palette_of
from gpuplan.fairshare.charts.gantt_data import STATE_WORDS, picture
from gpuplan.fairshare.charts.lanes import IN_REPAIR, interrupts
from gpuplan.gantt import Columns, Spec, titles

if TYPE_CHECKING:
    from gpuplan.fairshare.run import Run
    from gpuplan.gantt.offline import OfflineChart
    from gpuplan.traces.as_it_was import Compared

#: Most Gantts below each other; of more policies the first ones are drawn, all are measured.
MOST_GANTTS = 4

#: Bars and cells of each Gantt.
_BARS, _CELLS = 1200, 1500

#: Pixels of the panel of waits, above each Gantt for its words, and for the names beside bars.
_WAITS_PX, _NAMES_PX = 170, 200


def as_it_was_chart(
    compared: "Compared", *, width: int = 980, height: int = 0, mode: theme.Mode = "light"
) -> "OfflineChart":
    """The record and the policies: who held which GPUs when, how long jobs waited, what became of the GPU-time.

    Parameters
    ----------
    compared
        The record and at least one policy.
    width, height
        Pixels of the whole, and of each Gantt (0: what suits the number of GPUs).
    mode
        Colours for a ``"light"`` or a ``"dark"`` page.
    """
    from gpuplan.gantt.offline import offline_chart

    runs = list(compared.runs.values())
    names = heads.policy_labels(runs)
    drawn = runs[:MOST_GANTTS]
    clock = clock_of(*runs)
    sets: dict[str, Columns] = {}
    panels = []
    tall = height or gantt.rows_height(runs[0].problem)
    legend = STATE_WORDS[:IN_REPAIR] if any(interrupts(run) for run in drawn) else ()
    for k, (run, name) in enumerate(zip(drawn, names, strict=False)):
        panel, mine = _gantt(run, name, clock, f"run_{k}", width, tall, legend, last=k == len(drawn) - 1)
        panels.append(panel)
        sets |= mine
    sets["waits"] = waits.curve_columns(runs, names, debug=False)
    sets["pyramid"] = bars.pyramid_columns(runs, names)
    half = max(200, width // 2 - gantt.BESIDE)
    curves = waits.curve_panel("waits", names, half, "% of jobs that started within", _WAITS_PX)
    spec: Spec = {
        "vconcat": [
            {"concat": panels, "columns": 1, "spacing": 22, "resolve": {"scale": {"fill": "shared"}}},
            {
                "hconcat": [
                    {"concat": [curves], "resolve": waits.LEGENDS},
                    bars.pyramid_panel("pyramid", names, max(150, half - _NAMES_PX + gantt.BESIDE // 2)),
                ],
                "spacing": 30,
                "resolve": {"scale": dict.fromkeys(("fill", "stroke", "strokeDash"), "independent")},
            },
        ],
        "spacing": 20,
        "resolve": {"scale": dict.fromkeys(("fill", "stroke", "strokeDash", "yOffset"), "independent")},
        "title": titles.head("What was done, and what each policy would have done", _said(compared), width),
        "params": [
            *gantt.gantt_params([f"run_{k}_bars" for k in range(len(drawn))]),
            *gantt.state_params(),
            *theme.fill_params(),
        ],
    }
    return offline_chart(spec, sets, mode, describe(compared))


def _gantt(
    run: "Run",
    name: str,
    clock: Clock,
    side: str,
    width: int,
    height: int,
    legend: Sequence[str],
    *,
    last: bool,
) -> tuple[Spec, dict[str, Columns]]:
    """One Gantt with its name and figures above it, and its data sets."""
    palette = palette_of(run.problem)
    found = picture(run, palette, clock, most=_BARS, cells=_CELLS)
    panel = gantt.gantt_spec(
        run.problem,
        palette,
        clock,
        side,
        max(160, width - gantt.BESIDE),
        height,
        title=last,
        page_width=width,
        legend=legend,
        rows=gantt.row_words(run.problem, found.by_pool),
    )
    return panel, gantt.gantt_sets(run, found, clock, side, height, name, headline(run))


def headline(run: "Run") -> str:
    """Main figures of a run in a line."""
    found = run.figures
    waited = ("mean_wait_s", "wait_p50_s", "wait_p90_s")
    mean, half, most = ("–" if found[key] is None else words(found[key] or 0) for key in waited)
    shares = (f"{key.replace('_share', '')} {heads.amount(found[key])}" for key in _SHARES)
    return f"wait mean {mean}, p50 {half}, p90 {most}; {', '.join(shares)}"


_SHARES = ("occupancy", "goodput", "delivered_share")


def _said(compared: "Compared") -> list[str]:
    """Subtitles: the cluster, the jobs, what cannot be concluded."""
    problem = compared.record.problem
    lines = [heads.cluster_words(problem), heads.workload_words(problem), *compared.record.notes]
    more = len(compared.runs) - MOST_GANTTS
    if more > 0:
        lines.append(f"{more} more policies are measured below and not drawn.")
    return [*lines, *dict.fromkeys(filter(None, map(heads.aside_words, compared.runs.values())))]


def describe(compared: "Compared") -> str:
    """The chart in words, with its numbers."""
    problem = compared.record.problem
    said = [f"{heads.cluster_words(problem)}. {heads.workload_words(problem)}."]
    said += [f"{name}: {headline(run)}." for name, run in compared.runs.items()]
    return " ".join([*said, *compared.remarks])
