"""How plans change with the penalty of unmet demand and with the size of the cluster."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from gpuplan.allocation.model import AllocationScenario
from gpuplan.allocation.plan import Plan, plan, policy_named, ready, repeatable
from gpuplan.inputs.errors import InputError, shorten

if TYPE_CHECKING:
    import pandas as pd

PENALTY, GPUS = "objective.shortfall_penalty", "cluster.gpus"

#: Penalties of the curves, and shares of the cluster's size.
PENALTIES = tuple(range(41))
SHARES = (0.5, 0.625, 0.75, 0.875, 1.0, 1.125, 1.25, 1.5, 1.75, 2.0)

#: Figures of the curves.
FIGURES = ("value", "coverage", "utilization", "objective", "bound")

#: How exactly the penalty is sought at which a block no longer outbids traffic.
EXACTNESS = 0.01


@dataclass(frozen=True, slots=True)
class Outbid:
    """The point at which traffic is no longer outbid.

    Attributes
    ----------
    penalty
        Below it `policy` leaves demand unmet for the sake of `job`; from it on it does not.
    job
        The batch job that takes most of the GPUs that traffic misses just below.
    app
        The app that misses most there.
    gpu_hours
        Unmet demand just below, beyond what stays unmet at the largest penalty.
    """

    policy: str
    penalty: float
    job: str
    app: str
    gpu_hours: float
    sentence: str


@dataclass(frozen=True)
class Sensitivity:
    """Curves of figures over the penalty and over the size of the cluster.

    Attributes
    ----------
    penalty, gpus : DataFrame
        Tidy: a row per setting and policy, with the setting in a column of that name, ``policy``, and the
        figures ``value``, ``coverage``, ``utilization``, ``objective``, ``bound``.
    refused : dict of int to str
        Sizes of the cluster that the scenario does not allow, with the reason.
    outbids : dict of str to Outbid
        By policy, where a block outbids traffic at one of the penalties; a better plan may do so at a higher
        one. Policies that reserve and those that are too slow to ask at so many penalties have none.
    """

    scenario: AllocationScenario
    penalty: "pd.DataFrame"
    gpus: "pd.DataFrame"
    refused: dict[int, str]
    outbids: Mapping[str, Outbid]

    @property
    def outbid(self) -> Outbid | None:
        """The one at the highest penalty; None where no block outbids traffic."""
        return max(self.outbids.values(), key=lambda one: one.penalty, default=None)

    @property
    def sentence(self) -> str:
        """Where blocks stop to outbid traffic, in words, and which sizes were refused."""
        told = [one.sentence for one in self.outbids.values()]
        said = " ".join(told) or "No block outbids traffic at any of these penalties."
        left_out = "".join(f" {gpus} GPUs are left out: {reason}." for gpus, reason in self.refused.items())
        return said + left_out

    def __repr__(self) -> str:
        return f"<Sensitivity of {shorten(self.scenario.name)!r}: {self.sentence}>"


def sensitivity(
    scenario: Any,
    penalties: Iterable[float] = PENALTIES,
    gpus: Iterable[int] | None = None,
    policies: Sequence[str] = ("fifo", "aware", "search"),
    **effort: Any,
) -> Sensitivity:
    """Value, coverage, utilization, objective and bound over the penalty and over the cluster's size.

    Parameters
    ----------
    scenario
        An `AllocationScenario`, or the mapping of a scenario file.
    penalties
        Values of ``objective.shortfall_penalty``.
    gpus
        Values of ``cluster.gpus``; by default from half to twice the size, in whole nodes.
    policies
        Names of policies.
    **effort
        As in `gpuplan.allocation.plan.plan`; by default a number of moves that takes a few milliseconds.

    Raises
    ------
    InputError
        For a scenario with mistakes, an unknown policy, a penalty that cannot be.
    """
    import pandas as pd

    checked = ready(scenario)
    penalties = tuple(penalties)  # looked at twice
    if not {"iterations", "budget_ms"} & set(effort):
        effort = {**repeatable(checked), **effort}
    over_penalty = [
        row
        for penalty in penalties
        for row in _rows("penalty", float(penalty), checked.replace({PENALTY: penalty}), policies, effort)
    ]
    over_gpus: list[dict[str, Any]] = []
    refused: dict[int, str] = {}
    for count in _sizes(checked) if gpus is None else gpus:
        try:
            changed = checked.replace({GPUS: int(count)})
        except InputError as error:
            refused[int(count)] = "; ".join(f"{m.path} {m.rule}" for m in error.mistakes)
            continue
        over_gpus += _rows("gpus", int(count), changed, policies, effort)
    columns = ["policy", *FIGURES]
    return Sensitivity(
        checked,
        pd.DataFrame(over_penalty, columns=["penalty", *columns]),
        pd.DataFrame(over_gpus, columns=["gpus", *columns]),
        refused,
        _outbids(checked, max((float(p) for p in penalties), default=0.0), policies, effort),
    )


def _rows(
    name: str, value: float, scenario: AllocationScenario, policies: Sequence[str], effort: dict[str, Any]
) -> list[dict[str, Any]]:
    rows = []
    for policy in policies:
        figures = plan(scenario, policy, **effort).figures
        rows.append({name: value, "policy": policy} | {figure: figures[figure] for figure in FIGURES})
    return rows


def _sizes(scenario: AllocationScenario) -> list[int]:
    """Sizes around that of the scenario, in whole nodes where it has several."""
    cluster = scenario.cluster
    unit = cluster.node_size if cluster.node_size < cluster.gpus else 1
    found = {max(unit, round(share * cluster.gpus / unit) * unit) for share in SHARES}
    return sorted(found | {cluster.gpus})


def _outbids(
    scenario: AllocationScenario, most: float, policies: Sequence[str], effort: dict[str, Any]
) -> dict[str, Outbid]:
    """What `_outbid` finds under each policy that may leave demand unmet and answers at once."""
    if not scenario.realtime or not scenario.batch or most <= 0:
        return {}
    asked = (one for one in map(policy_named, policies) if one.live and not one.reservation)
    found = {one.name: _outbid(scenario, most, one.name, effort) for one in asked}
    return {policy: outbid for policy, outbid in found.items() if outbid is not None}


def _outbid(scenario: AllocationScenario, most: float, policy: str, effort: dict[str, Any]) -> Outbid | None:
    """The largest penalty at which a policy leaves demand unmet that it serves at the largest one."""

    def at(penalty: float) -> Plan:
        return plan(scenario.replace({PENALTY: round(penalty, 6)}), policy, **effort)

    dear = at(most)
    left = _unmet(dear)
    low, high = 0.0, most
    cheap = at(low)
    if _unmet(cheap) <= left:
        return None
    # from the dear end down to the first penalty that outbids, then halving
    step = most / 40
    while high - step > low and _unmet(at(high - step)) <= left:
        high -= step
    low = max(low, high - step)
    while high - low > EXACTNESS:
        middle = (low + high) / 2
        if _unmet(at(middle)) > left:
            low = middle
        else:
            high = middle
    return _told(at(low), at(high), dear, high, most)


def _unmet(made: Plan) -> int:
    return int((made.demand - made.served).sum())


def _told(below: Plan, above: Plan, dear: Plan, penalty: float, most: float) -> Outbid:
    """Who takes what from whom just below the penalty."""
    scenario = below.scenario
    missing = (below.demand - below.served) - (dear.demand - dear.served)
    app = scenario.realtime[int(missing.sum(axis=1).argmax())]
    steps = np.flatnonzero(missing.sum(axis=0) > 0)
    # batch work that holds GPUs in those steps, and does not once traffic is dear enough
    takes = []
    for j in range(len(scenario.batch)):
        here = [int((plan_.grid[:, steps] == j).sum()) for plan_ in (below, above)]
        takes.append((here[0] - here[1], here[0], -j))
    j = -max(takes)[2]
    job, gpus = scenario.batch[j], int(below.size[j])
    hours = float(missing.sum()) * scenario.horizon.step_hours
    size = "1 GPU" if gpus == 1 else f"{gpus} GPUs"
    block = f"{shorten(job.name)} ({size} × {job.hours_on(gpus):.4g} h, priority {job.priority:g})"
    sentence = (
        f"Below a penalty of {penalty:.2f} {below.policy} leaves {hours:,.4g} GPU-h of traffic ({shorten(app.name)}) "
        f"unserved for the sake of {block}; from there on it serves what it serves at a penalty of {most:g}."
    )
    return Outbid(below.policy, round(penalty, 2), job.name, app.name, hours, sentence)
