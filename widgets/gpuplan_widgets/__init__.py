"""Explorers for notebooks: controls that choose, charts that show, nothing that computes.

The names below are loaded when they are first used.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gpuplan_widgets.curve_editor import CurveEditor
    from gpuplan_widgets.exercise import ExerciseForm
    from gpuplan_widgets.explorer import AllocationExplorer
    from gpuplan_widgets.fairshare import FairShareExplorer
    from gpuplan_widgets.job_table import JobTable
    from gpuplan_widgets.live_chart import LiveChart
    from gpuplan_widgets.packing import PackingExplorer
    from gpuplan_widgets.rolling import RollingExplorer

_HOMES = {
    "AllocationExplorer": "explorer",
    "CurveEditor": "curve_editor",
    "ExerciseForm": "exercise",
    "FairShareExplorer": "fairshare",
    "JobTable": "job_table",
    "LiveChart": "live_chart",
    "PackingExplorer": "packing",
    "RollingExplorer": "rolling",
}

__all__ = [
    "AllocationExplorer",
    "CurveEditor",
    "ExerciseForm",
    "FairShareExplorer",
    "JobTable",
    "LiveChart",
    "PackingExplorer",
    "RollingExplorer",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
