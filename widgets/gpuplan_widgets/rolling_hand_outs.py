"""What the rolling explorer hands out: Python that makes its runs again, their figures as a table."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from gpuplan.allocation.model import AllocationScenario
from gpuplan.allocation.rolling_run import ROLLING_UNITS, RollingRun
from gpuplan.loading import load_allocation, shipped
from gpuplan.text import to_csv
from gpuplan_widgets.action_bar import Action, ActionBar, Copied, Said, Saved

if TYPE_CHECKING:
    from gpuplan_widgets.rolling import RollingExplorer


def python(day: AllocationScenario, policies: Sequence[str], settings: Mapping[str, Any]) -> str:
    """Python whose name ``runs`` holds the runs by policy.

    The shipped scenario is named only where it is this very one; otherwise all of it stands in the text.
    """
    names = [one.name for one in shipped() if one.kind == "allocation"]
    same = day.name in names and load_allocation(day.name).fingerprint == day.fingerprint
    source = repr(day.name) if same else repr(day.to_dict())
    keywords = "".join(f", {name}={value!r}" for name, value in settings.items())
    return (
        f"import gpuplan as gp\n"
        f"day = gp.load({source})\n"
        f"runs = {{name: gp.roll(day, name{keywords}) for name in {list(policies)!r}}}\n"
    )


def figures_csv(runs: Mapping[str, RollingRun]) -> str:
    """The figures of all runs as CSV: policy, figure, value and unit."""
    import pandas as pd

    rows = [
        (name, figure, value, ROLLING_UNITS[figure])
        for name, run in runs.items()
        for figure, value in run.figures.items()
    ]
    return to_csv(pd.DataFrame(rows, columns=["policy", "figure", "value", "unit"]))


def bar(explorer: "RollingExplorer") -> ActionBar:
    """Buttons that copy or save what is on screen at the moment of the click."""

    def copied() -> Copied:
        return Copied(explorer.code(), "Python that makes these runs again is copied.")

    def figures() -> Saved:
        return Saved(figures_csv(explorer.runs), "gpuplan-days.csv", "The figures of all days are saved.")

    def reset() -> Said:
        explorer.reset()
        return Said("Back to the settings as they were given.")

    return ActionBar(
        [
            Action("copy-python", "Copy Python", "Python that makes these runs again", copied),
            Action("save-figures", "Figures as CSV", "Save the figures of all days as a table", figures),
            Action("reset", "Reset", "Back to the settings as they were given", reset),
        ]
    )
