"""The buttons of an explorer: what it hands out, and the way back to the beginning."""

from typing import TYPE_CHECKING

from gpuplan_widgets import reproduce
from gpuplan_widgets.action_bar import Action, ActionBar, Copied, Said, Saved

if TYPE_CHECKING:
    from gpuplan_widgets.explorer import AllocationExplorer


def bar(explorer: "AllocationExplorer") -> ActionBar:
    """Buttons that copy or save what is on screen at the moment of the click."""

    def yaml() -> Copied:
        return Copied(explorer.scenario.to_yaml(), "The scenario is copied as YAML.")

    def python() -> Copied:
        return Copied(explorer.code(), "Three lines of Python are copied.")

    def jobs() -> Saved:
        text = reproduce.jobs_csv(explorer.plans)
        return Saved(text, "gpuplan-jobs.csv", "The jobs of both plans are saved.")

    def figures() -> Saved:
        text = reproduce.figures_csv(explorer.plans)
        return Saved(text, "gpuplan-figures.csv", "The figures of both plans are saved.")

    def reset() -> Said:
        explorer.reset()
        return Said("Back to the scenario as it was loaded.")

    whole, code = "The scenario file of what is on screen", "Three lines of Python that make this again"
    places, numbers = "Save the jobs of both plans as a table", "Save the figures of both plans as a table"
    return ActionBar(
        [
            Action("copy-yaml", "Copy scenario (YAML)", whole, yaml),
            Action("copy-python", "Copy Python", code, python),
            Action("save-jobs", "Jobs as CSV", places, jobs),
            Action("save-figures", "Figures as CSV", numbers, figures),
            Action("reset", "Reset", "Back to the scenario as it was loaded", reset),
        ]
    )
