"""What can be proven about a scenario, on request, and kept by its fingerprint."""

from collections.abc import Callable
from typing import Any

from gpuplan.allocation.policies.base import Progress, Proof

#: Proofs of this process by fingerprint of the scenario.
_known: dict[str, Proof] = {}


def certify(
    scenario: Any, time_limit_s: float = 30.0, report: Callable[[Progress], None] | None = None
) -> Proof:
    """How good any legal plan of a scenario can be, proven.

    The proof is kept for the process: asked again, an optimum is returned at once, and a bound that is
    not yet closed is worked on again and replaced where it gets lower.

    Parameters
    ----------
    scenario
        An `AllocationScenario`, or the mapping of a scenario file.
    time_limit_s
        Wall-clock time at most, in seconds.
    report
        Called with the `Progress` whenever there is news; it may raise `KeyboardInterrupt` to stop.

    Raises
    ------
    InputError
        For a scenario with mistakes, and where OR-Tools is missing.
    """
    from gpuplan.allocation.plan import plan, ready

    checked = ready(scenario)
    key = checked.fingerprint
    known = _known.get(key)
    if known is not None and known.status == "optimal":
        return known
    found = plan(checked, "exact", time_limit_s=time_limit_s, report=report).proof
    assert found is not None
    if known is None or _is_better(found, known):
        _known[key] = found
    return _known[key]


def known_proof(scenario: Any) -> Proof | None:
    """The proof of a scenario, where it was certified in this process."""
    return _known.get(scenario.fingerprint)


def forget() -> None:
    """Forget all proofs."""
    _known.clear()


def _is_better(found: Proof, known: Proof) -> bool:
    if found.bound is None:
        return False
    return known.bound is None or found.bound < known.bound or found.status == "optimal"
