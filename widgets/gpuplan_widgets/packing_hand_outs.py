"""What the packing explorer hands out: the scenario, Python that makes its runs again, tables."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from gpuplan.inputs.errors import InputError
from gpuplan.packing.model import PackingScenario
from gpuplan.packing.run import Comparison, PackRun
from gpuplan.text import to_csv
from gpuplan_widgets.action_bar import Action, ActionBar, Copied, Said, Saved
from gpuplan_widgets.build_bundle import STATIC
from gpuplan_widgets.packing_gallery import name_of_shipped

if TYPE_CHECKING:
    from gpuplan_widgets.packing import PackingExplorer


class PackingBar(ActionBar):
    """The buttons of a packing explorer; they bring the style of its page."""

    _css = ActionBar._css + (STATIC / "packing.css").read_text(encoding="utf-8")


def python(
    base: PackingScenario, now: PackingScenario, policies: Sequence[str], changes: Mapping[str, Any]
) -> str:
    """Python whose names ``scenario`` and ``both`` hold the scenario and its runs.

    Parameters
    ----------
    base
        The scenario that the controls started from.
    now
        What is on screen.
    policies
        Policies on screen, left first.
    changes
        Changed values by dotted path.
    """
    name = name_of_shipped(base)
    source = repr(name) if name else repr(base.to_dict())
    text = f"scenario = gp.load({source})" + (f".replace({dict(changes)!r})" if changes else "")
    try:
        again = base.replace(changes) if changes else base
    except InputError:  # the controls stand on something that cannot be run; the screen does not
        again, text = base, f"scenario = gp.load({source})"
    if again.fingerprint != now.fingerprint:
        text = f"scenario = gp.load({now.to_dict()!r})"
    lines = ["import gpuplan as gp", "from gpuplan.packing.run import compare", text]
    return "\n".join([*lines, f"both = compare(scenario, {list(dict.fromkeys(policies))!r})"]) + "\n"


def table_csv(runs: Mapping[str, PackRun], name: str) -> str:
    """A table of both runs (``"tasks"`` or ``"models"``) as CSV, with the side and the policy in front."""
    import pandas as pd

    tables = []
    for side, run in runs.items():
        table = getattr(run, name).copy()
        table.insert(0, "side", side)
        table.insert(1, "policy", run.policy)
        tables.append(table)
    return to_csv(pd.concat(tables, ignore_index=True))


def figures_csv(runs: Mapping[str, PackRun]) -> str:
    """The figures of both runs as CSV: side, policy, figure, value and unit."""
    table = Comparison(runs).table.rename(columns={"policy": "side"})
    table.insert(1, "policy", [runs[side].policy for side in table["side"]])
    return to_csv(table)


def bar(explorer: "PackingExplorer") -> ActionBar:
    """Buttons that copy or save what is on screen at the moment of the click."""

    def yaml() -> Copied:
        return Copied(explorer.scenario.to_yaml(), "The scenario is copied as YAML.")

    def code() -> Copied:
        return Copied(explorer.code(), "Python that makes these runs again is copied.")

    def tasks() -> Saved:
        text = table_csv(explorer.runs, "tasks")
        return Saved(text, "gpuplan-tasks.csv", "The tasks of both runs are saved.")

    def models() -> Saved:
        text = table_csv(explorer.runs, "models")
        return Saved(text, "gpuplan-models.csv", "The models of both runs are saved.")

    def figures() -> Saved:
        return Saved(figures_csv(explorer.runs), "gpuplan-figures.csv", "The figures of both runs are saved.")

    def reset() -> Said:
        explorer.reset()
        return Said("Back to the scenario as it was given.")

    return PackingBar(
        [
            Action("copy-yaml", "Copy scenario (YAML)", "The scenario file of what is on screen", yaml),
            Action("copy-python", "Copy Python", "Python that makes these runs again", code),
            Action("save-tasks", "Tasks as CSV", "Save the tasks of both runs as a table", tasks),
            Action("save-models", "Models as CSV", "Save the models of both runs as a table", models),
            Action("save-figures", "Figures as CSV", "Save the figures of both runs as a table", figures),
            Action("reset", "Reset", "Back to the scenario as it was given", reset),
        ]
    )
