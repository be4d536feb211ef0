"""What the fair-share explorer hands out: the scenario, Python that makes its runs again, tables."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from gpuplan.fairshare.keep_jobs import keep_jobs
from gpuplan.fairshare.model import FairshareScenario
from gpuplan.fairshare.run import Run
from gpuplan.inputs.errors import InputError
from gpuplan.loading import load_fairshare, shipped
from gpuplan.text import to_csv
from gpuplan_widgets.action_bar import Action, ActionBar, Copied, Said, Saved

if TYPE_CHECKING:
    from gpuplan_widgets.fairshare import FairShareExplorer


def python(
    given: FairshareScenario,
    now: FairshareScenario,
    policies: Sequence[str],
    changes: Mapping[str, Any],
    weights: Mapping[str, float],
    kept: bool,
) -> str:
    """Python whose names ``scenario`` and ``both`` hold the scenario and its runs.

    Parameters
    ----------
    given
        The scenario that the controls started from.
    now
        What is on screen.
    policies
        Policies on screen, left first.
    changes, weights
        Changed values by dotted path; those of the budget tree apart.
    kept
        Whether the jobs stay those of the shares as they were.
    """
    source = _source(given)
    lines = ["import gpuplan as gp", "from gpuplan.fairshare.run import compare"]
    again = given
    try:
        text = f"scenario = gp.load({source})" + (f".replace({dict(changes)!r})" if changes else "")
        again = given.replace(changes) if changes else given
        steps = [text]
        if weights:
            if kept:
                lines.append("from gpuplan.fairshare.keep_jobs import keep_jobs")
                again = keep_jobs(again)
            steps.append(
                f"scenario = {'keep_jobs(scenario)' if kept else 'scenario'}.replace({dict(weights)!r})"
            )
            again = again.replace(weights)
    except InputError:  # the controls stand on something that cannot be run; the screen does not
        again = given
    if again.fingerprint != now.fingerprint:
        steps = [f"scenario = gp.load({now.to_dict()!r})"]
        lines = [line for line in lines if "keep_jobs" not in line]
    steps.append(f"both = compare(scenario, {list(dict.fromkeys(policies))!r})")
    return "\n".join([*lines, *steps]) + "\n"


def _source(given: FairshareScenario) -> str:
    """The name of the shipped scenario that this is, or else all of it."""
    names = [one.name for one in shipped() if one.kind == "fairshare"]
    same = given.name in names and load_fairshare(given.name).fingerprint == given.fingerprint
    return repr(given.name) if same else repr(given.to_dict())


def table_csv(runs: Mapping[str, Run], name: str) -> str:
    """A table of both runs (``"jobs"`` or ``"teams"``) as CSV, with the side and the policy in front."""
    import pandas as pd

    tables = []
    for side, run in runs.items():
        table = getattr(run, name).copy()
        table.insert(0, "side", side)
        table.insert(1, "policy", run.policy)
        tables.append(table)
    return to_csv(pd.concat(tables, ignore_index=True))


def figures_csv(runs: Mapping[str, Run]) -> str:
    """The figures of both runs as CSV: side, policy, figure, value and unit."""
    from gpuplan.fairshare.run import Comparison

    table = Comparison(runs).table.rename(columns={"policy": "side"})
    table.insert(1, "policy", [runs[side].policy for side in table["side"]])
    return to_csv(table)


def bar(explorer: "FairShareExplorer") -> ActionBar:
    """Buttons that copy or save what is on screen at the moment of the click."""

    def yaml() -> Copied:
        text = explorer.scenario.to_yaml()
        rows = text.count("\n    - {job: ")
        more = (
            f" Its {rows:,} jobs stand in it, for they stay as they were." if rows and explorer.kept else ""
        )
        return Copied(text, f"The scenario is copied as YAML.{more}")

    def code() -> Copied:
        return Copied(explorer.code(), "Python that makes these runs again is copied.")

    def jobs() -> Saved:
        return Saved(table_csv(explorer.runs, "jobs"), "gpuplan-jobs.csv", "The jobs of both runs are saved.")

    def teams() -> Saved:
        return Saved(
            table_csv(explorer.runs, "teams"), "gpuplan-teams.csv", "The teams of both runs are saved."
        )

    def figures() -> Saved:
        return Saved(figures_csv(explorer.runs), "gpuplan-figures.csv", "The figures of both runs are saved.")

    def reset() -> Said:
        explorer.reset()
        return Said("Back to the scenario as it was given.")

    return ActionBar(
        [
            Action("copy-yaml", "Copy scenario (YAML)", "The scenario file of what is on screen", yaml),
            Action("copy-python", "Copy Python", "Python that makes these runs again", code),
            Action("save-jobs", "Jobs as CSV", "Save the jobs of both runs as a table", jobs),
            Action("save-teams", "Teams as CSV", "Save the teams of both runs as a table", teams),
            Action("save-figures", "Figures as CSV", "Save the figures of both runs as a table", figures),
            Action("reset", "Reset", "Back to the scenario as it was given", reset),
        ]
    )
