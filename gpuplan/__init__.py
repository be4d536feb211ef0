"""gpuplan: see, on your own numbers, what a scheduling policy costs and gains.

Importing it is cheap: numpy, numba, pandas, pydantic, Altair and the widgets load when needed.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gpuplan.allocation.days import Days, Errors
    from gpuplan.allocation.lookahead import coverage_risk, idle_windows
    from gpuplan.allocation.model import AllocationScenario
    from gpuplan.allocation.plan import Comparison, Plan
    from gpuplan.allocation.policies import POLICIES
    from gpuplan.allocation.rolling_run import RollingRun
    from gpuplan.fairshare.model import FairshareScenario
    from gpuplan.fairshare.policies import POLICIES as FAIRSHARE_POLICIES
    from gpuplan.fairshare.run import Run
    from gpuplan.forecast.durations import fit_durations
    from gpuplan.forecast.profile import weekly_profile
    from gpuplan.forecast.quantization import estimate_quantization
    from gpuplan.forecast.training import estimate_training
    from gpuplan.inputs.errors import InputError
    from gpuplan.lessons.course import check
    from gpuplan.lessons.glossary import glossary
    from gpuplan.loading import (
        certify,
        compare,
        end_of_world,
        error_map,
        load,
        load_swf,
        pack,
        plan,
        roll,
        sensitivity,
        shipped,
        simulate,
        take_apart,
    )
    from gpuplan.packing.architecture import Architecture
    from gpuplan.packing.estimates import estimate_memory
    from gpuplan.packing.model import PackingScenario
    from gpuplan.packing.policies import KINDS as PACKING_PIECES
    from gpuplan.packing.run import PackRun
    from gpuplan.reports.build import Report, report
    from gpuplan.reports.figures import report_figures
    from gpuplan.reports.notebook import report_notebook
    from gpuplan.reports.verify import Verification, verify_report
    from gpuplan.sweeps.result import Sweep
    from gpuplan.sweeps.run import sweep
    from gpuplan.traces.history import History
    from gpuplan.traces.import_file import Imported
    from gpuplan.traces.importing import import_file, import_history, read_history

    __version__: str

#: Where each public name lives.
_HOMES = {
    "AllocationScenario": "gpuplan.allocation.model",
    "Architecture": "gpuplan.packing.architecture",
    "Comparison": "gpuplan.allocation.plan",
    "Days": "gpuplan.allocation.days",
    "Errors": "gpuplan.allocation.days",
    "FAIRSHARE_POLICIES": "gpuplan.fairshare.policies",
    "FairshareScenario": "gpuplan.fairshare.model",
    "History": "gpuplan.traces.history",
    "Imported": "gpuplan.traces.import_file",
    "InputError": "gpuplan.inputs.errors",
    "PACKING_PIECES": "gpuplan.packing.policies",
    "POLICIES": "gpuplan.allocation.policies",
    "PackRun": "gpuplan.packing.run",
    "PackingScenario": "gpuplan.packing.model",
    "Plan": "gpuplan.allocation.plan",
    "Report": "gpuplan.reports.build",
    "RollingRun": "gpuplan.allocation.rolling_run",
    "Run": "gpuplan.fairshare.run",
    "Verification": "gpuplan.reports.verify",
    "Sweep": "gpuplan.sweeps.result",
    "certify": "gpuplan.loading",
    "check": "gpuplan.lessons.course",
    "compare": "gpuplan.loading",
    "coverage_risk": "gpuplan.allocation.lookahead",
    "end_of_world": "gpuplan.loading",
    "error_map": "gpuplan.loading",
    "estimate_memory": "gpuplan.packing.estimates",
    "estimate_quantization": "gpuplan.forecast.quantization",
    "estimate_training": "gpuplan.forecast.training",
    "fit_durations": "gpuplan.forecast.durations",
    "glossary": "gpuplan.lessons.glossary",
    "idle_windows": "gpuplan.allocation.lookahead",
    "import_file": "gpuplan.traces.importing",
    "import_history": "gpuplan.traces.importing",
    "load": "gpuplan.loading",
    "load_swf": "gpuplan.loading",
    "pack": "gpuplan.loading",
    "plan": "gpuplan.loading",
    "read_history": "gpuplan.traces.importing",
    "report": "gpuplan.reports.build",
    "report_figures": "gpuplan.reports.figures",
    "report_notebook": "gpuplan.reports.notebook",
    "roll": "gpuplan.loading",
    "sensitivity": "gpuplan.loading",
    "shipped": "gpuplan.loading",
    "simulate": "gpuplan.loading",
    "sweep": "gpuplan.sweeps.run",
    "take_apart": "gpuplan.loading",
    "verify_report": "gpuplan.reports.verify",
    "weekly_profile": "gpuplan.forecast.profile",
}

#: Names that are called otherwise where they live.
_THERE = {"FAIRSHARE_POLICIES": "POLICIES", "PACKING_PIECES": "KINDS"}

__all__ = [
    "FAIRSHARE_POLICIES",
    "PACKING_PIECES",
    "POLICIES",
    "AllocationScenario",
    "Architecture",
    "Comparison",
    "Days",
    "Errors",
    "FairshareScenario",
    "History",
    "Imported",
    "InputError",
    "PackRun",
    "PackingScenario",
    "Plan",
    "Report",
    "RollingRun",
    "Run",
    "Sweep",
    "Verification",
    "__version__",
    "ask",
    "certify",
    "check",
    "compare",
    "coverage_risk",
    "end_of_world",
    "error_map",
    "estimate_memory",
    "estimate_quantization",
    "estimate_training",
    "explore",
    "fit_durations",
    "glossary",
    "idle_windows",
    "import_file",
    "import_history",
    "load",
    "load_swf",
    "pack",
    "plan",
    "read_history",
    "report",
    "report_figures",
    "report_notebook",
    "roll",
    "sensitivity",
    "shipped",
    "simulate",
    "sweep",
    "take_apart",
    "verify_report",
    "weekly_profile",
]


def ask(id: Any) -> Any:
    """An exercise of the lessons as a form: a question, a field, a button, and what is said to the answer.

    Parameters
    ----------
    id
        Number of the exercise, such as ``"1.2"``; `check` takes the same number and an answer.

    Raises
    ------
    InputError
        Where there is no such exercise.
    """
    from gpuplan_widgets.exercise import ExerciseForm

    return ExerciseForm(id)


def explore(scenario: Any = "mixed-day", **options: Any) -> Any:
    """The explorer that fits the scenario's kind.

    Parameters
    ----------
    scenario
        Whatever `load` takes.
    **options
        Passed on to the explorer.

    Raises
    ------
    InputError
        For a scenario with mistakes, or of a kind that has no explorer.
    """
    import gpuplan_widgets
    from gpuplan.loading import load

    loaded: Any = load(scenario)
    explorers = {"fairshare": "FairShareExplorer", "packing": "PackingExplorer"}
    name = explorers.get(loaded.kind, "AllocationExplorer")
    if name not in gpuplan_widgets.__all__:
        from gpuplan.inputs.errors import InputError, Mistake

        runner = "pack" if loaded.kind == "packing" else "simulate"
        rule = f"must be a kind that has an explorer in this version; gpuplan.{runner} runs this one"
        raise InputError(loaded.name, [Mistake("kind", rule, loaded.kind)])
    return getattr(gpuplan_widgets, name)(loaded, **options)


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        value: Any = version("gpuplan")
    elif name in _HOMES:
        value = getattr(importlib.import_module(_HOMES[name]), _THERE.get(name, name))
    else:
        raise AttributeError(f"module 'gpuplan' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
