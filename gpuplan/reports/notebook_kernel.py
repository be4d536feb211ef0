"""In the kernel that runs a notebook for a report: charts are handed over to be drawn, scenarios are noted."""

from __future__ import annotations

from typing import Any

from gpuplan import run_log

#: What a chart is handed over as; the page draws it with its own Vega.
CHART = "application/vnd.gpuplan.chart+json"

#: Sentences about an output that belong to the notes of a page.
NOTE = "application/vnd.gpuplan.note+json"

#: What the figures of results are handed over as (`gpuplan.reports.figures`).
FIGURES = "application/vnd.gpuplan.figures+json"

#: What the last cell hands over: the scenarios that were run.
SCENARIOS = "application/vnd.gpuplan.scenarios+json"

#: Packages that pictures and tables of a notebook may come from: their versions count where it has loaded them.
_DRAWN_WITH = ("matplotlib", "seaborn", "plotly", "polars")


#: Results of one policy, by where they live.
_RESULTS = {
    "gpuplan.allocation.plan": "Plan",
    "gpuplan.fairshare.run": "Run",
    "gpuplan.packing.run": "PackRun",
}


def begin() -> None:
    """From now on charts (of Altair, gpuplan's among them) come as data, results with their scenario."""
    from IPython.core.getipython import get_ipython

    run_log.begin()
    shell: Any = get_ipython()
    forms = shell.display_formatter.mimebundle_formatter
    forms.for_type_by_name("gpuplan.gantt.offline", "OfflineChart", _own_chart)
    forms.for_type_by_name("gpuplan.reports.pictures", "Picture", _picture)
    forms.for_type_by_name("gpuplan.side_by_side", "SideBySide", _results)
    for module, name in _RESULTS.items():
        forms.for_type_by_name(module, name, _results)
    for version in ("v5", "v6"):
        forms.for_type_by_name(f"altair.vegalite.{version}.api", "TopLevelMixin", _chart)


def _own_chart(chart: Any, *_: Any, **__: Any) -> dict[str, Any]:
    return {CHART: {"wide": chart.to_dict()}, "text/plain": repr(chart)}


def _chart(chart: Any, *_: Any, **__: Any) -> dict[str, Any]:
    spec = chart.to_dict()
    return {CHART: {"wide": spec, "config": spec.get("config", {})}, "text/plain": "Chart"}


def _picture(picture: Any, *_: Any, **__: Any) -> dict[str, Any]:
    wide, narrow = picture.specs()
    whole = {"wide": wide, "narrow": narrow, "tables": list(picture.tables)}
    return {CHART: whole, "text/plain": repr(picture)}


def _results(results: Any, *_: Any, **__: Any) -> dict[str, Any]:
    from gpuplan.inputs.errors import InputError
    from gpuplan.reports.figures import report_figures

    forms = {"text/html": results._repr_html_(), "text/plain": repr(results)}
    try:
        return {FIGURES: report_figures(results).record, **forms}
    except (InputError, AttributeError, TypeError) as error:
        reasons = [str(mistake) for mistake in getattr(error, "mistakes", ())] or ["they are of no scenario"]
        return {
            NOTE: [f"figures in a table are not computed anew by gpuplan verify: {'; '.join(reasons)}."],
            **forms,
        }


def end() -> None:
    """Hand over which scenarios were run, and what else may have drawn."""
    import sys

    from IPython.display import display

    scenarios, more = run_log.told()
    drawn = [name for name in _DRAWN_WITH if name in sys.modules]
    display({SCENARIOS: {"ran": scenarios, "more": more, "drawn": drawn}}, raw=True)  # type: ignore[no-untyped-call]
