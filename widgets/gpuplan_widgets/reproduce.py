"""The Python that makes again what an explorer shows."""

from collections.abc import Mapping, Sequence
from typing import Any

from gpuplan.allocation.model import AllocationScenario


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
        f"both = gp.compare(scenario, {list(dict.fromkeys(policies))!r})\n"
    )


def _from_shipped(scenario: AllocationScenario, shipped: str, changes: dict[str, Any]) -> str | None:
    from gpuplan.loading import load

    again = load(shipped)
    if changes:
        again = again.replace(changes)
    if again.fingerprint != scenario.fingerprint:
        return None
    return f"gp.load({shipped!r})" + (f".replace({changes!r})" if changes else "")
