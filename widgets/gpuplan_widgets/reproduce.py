"""What an explorer hands out: Python that makes again what it shows, and tables of its plans."""

from collections.abc import Mapping, Sequence
from typing import Any

from gpuplan.allocation.model import AllocationScenario
from gpuplan.allocation.plan import Comparison, Plan, repeatable
from gpuplan.inputs.errors import InputError
from gpuplan.text import to_csv


def python(
    scenario: AllocationScenario,
    policies: Sequence[str],
    *,
    shipped: str | None = None,
    changes: Mapping[str, Any] | None = None,
) -> str:
    """Three lines that load the scenario and compare the policies.

    Parameters
    ----------
    scenario
        What is on screen.
    policies
        Policies on screen, left first.
    shipped
        Name of the shipped scenario that `changes` start from, if any.
    changes
        Changed values by dotted path.

    Returns
    -------
    str
        Python whose names `scenario` and `both` hold the scenario and the plans. The shipped scenario is named
        only where that gives this very scenario; otherwise all of it stands in the text.
    """
    source = None
    if shipped is not None:
        source = _from_shipped(scenario, shipped, dict(changes or {}))
    if source is None:
        source = f"gp.load({scenario.to_dict()!r})"
    return (
        f"import gpuplan as gp\n"
        f"scenario = {source}\n"
        f"both = gp.compare(scenario, {list(dict.fromkeys(policies))!r}{_effort(scenario, policies)})\n"
    )


def _effort(scenario: AllocationScenario, policies: Sequence[str]) -> str:
    """What makes plans of the search repeat."""
    if "search" not in policies:
        return ""
    return "".join(f", {name}={value!r}" for name, value in repeatable(scenario).items())


def _from_shipped(scenario: AllocationScenario, shipped: str, changes: dict[str, Any]) -> str | None:
    from gpuplan.loading import load_allocation

    again = load_allocation(shipped)
    try:
        again = again.replace(changes) if changes else again
    except InputError:  # the controls stand on something that cannot be planned; the screen does not
        return None
    if again.fingerprint != scenario.fingerprint:
        return None
    return f"gp.load({shipped!r})" + (f".replace({changes!r})" if changes else "")


def jobs_csv(plans: Mapping[str, Plan]) -> str:
    """The jobs of all plans as CSV, with the side and the policy in front of each."""
    import pandas as pd

    tables = []
    for side, plan in plans.items():
        table = plan.jobs_frame()
        table.insert(0, "side", side)
        table.insert(1, "policy", plan.policy)
        tables.append(table)
    return to_csv(pd.concat(tables, ignore_index=True))


def figures_csv(plans: Mapping[str, Plan]) -> str:
    """The figures of all plans as CSV: side, policy, figure, value and unit."""
    table = Comparison(plans).table.rename(columns={"policy": "side"})
    table.insert(1, "policy", [plans[side].policy for side in table["side"]])
    return to_csv(table)
