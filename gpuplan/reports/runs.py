"""What a report is about: a scenario that stands alone, the policies, and what makes their plans repeat."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from gpuplan.inputs.errors import InputError, Mistake
from gpuplan.kinds import POLICIES, SEED_PATHS

if TYPE_CHECKING:
    from gpuplan.loading import Scenario
    from gpuplan.side_by_side import SideBySide

#: Policies that are seeded and steered by a number of moves.
_SEARCHES = ("search",)

#: Policies whose plan depends on the time that they are given.
_TIMED = ("exact",)

#: Moves of a search at most: a minute of them, also where a page from elsewhere names their number.
MOST_ITERATIONS = 50_000_000


@dataclass(frozen=True, slots=True)
class Choices:
    """What was asked for beside the scenario.

    Attributes
    ----------
    policies : tuple of str
    seed : int or None
        Of the search, or of a generated workload; None where nothing is drawn.
    iterations : int or None
        Moves of the search; None where no policy searches.
    """

    policies: tuple[str, ...]
    seed: int | None = None
    iterations: int | None = None


def settled(
    scenario: Scenario, policies: Sequence[str] | None, seed: int | None, iterations: int | None
) -> tuple[Any, Choices]:
    """The scenario as it is run, without files beside it, and every choice made.

    Parameters
    ----------
    scenario
        Of any kind.
    policies
        None: `gpuplan.kinds.POLICIES` of its kind.
    seed
        Of the search (0 where none is given); of a generated workload in place of the scenario's own.
    iterations
        Moves of the search; None: as many as a few milliseconds allow, which depends on the scenario alone.

    Raises
    ------
    InputError
        For a policy whose plan depends on time, and a seed or a number of moves without a use.
    """
    names = POLICIES[scenario.kind] if policies is None else tuple(dict.fromkeys(_listed(policies)))
    made: Any = scenario
    if made.kind == "allocation":
        return made, _of_allocation(made, names, seed, iterations)
    if iterations is not None:
        raise _mistake("iterations", "are for the policy search of allocation scenarios", iterations)
    drawn = made.generate is not None and _rows(made) is None
    if seed is not None and not drawn:
        rule = "is for generated workloads: this one is given row by row, and nothing in it is drawn"
        raise _mistake("seed", rule, seed)
    if seed is not None:
        made = made.replace({SEED_PATHS[made.kind]: seed})
    return _alone(made), Choices(names, made.generate.seed if drawn else None)


def _listed(policies: Sequence[str] | str) -> list[str]:
    return [policies] if isinstance(policies, str) else list(policies)


def _of_allocation(
    scenario: Any, names: tuple[str, ...], seed: int | None, iterations: int | None
) -> Choices:
    timed = [name for name in names if name in _TIMED]
    if timed:
        rule = "must repeat in a report, and the plan of exact depends on its time; compare --certify proves how good"
        raise _mistake("policies", rule, timed[0])
    searches = any(name in _SEARCHES for name in names)
    given = {"seed": seed, "iterations": iterations}
    for name, value in given.items():
        if value is not None and not searches:
            raise _mistake(name, "is for the policy search: name it among the policies", value)
    if not searches:
        return Choices(names)
    if iterations is not None and iterations > MOST_ITERATIONS:
        raise _mistake("iterations", f"must be at most {MOST_ITERATIONS:,}", iterations)
    if iterations is None:
        from gpuplan.allocation.plan import repeatable

        iterations = repeatable(scenario)["iterations"]
    return Choices(names, 0 if seed is None else seed, iterations)


def _mistake(path: str, rule: str, value: Any) -> InputError:
    return InputError("report", [Mistake(path, rule, value)])


def _rows(scenario: Any) -> Any:
    return scenario.jobs if scenario.kind == "fairshare" else scenario.tasks


def _alone(scenario: Any) -> Any:
    """The same scenario with the rows of its table in itself."""
    file = "jobs_file" if scenario.kind == "fairshare" else "tasks_file"
    return replace(scenario, **{file: None})


def compared(scenario: Any, choices: Choices) -> SideBySide[Any]:
    """The policies' results of a settled scenario, side by side.

    Raises
    ------
    InputError
        For an unknown policy, or none at all.
    """
    if scenario.kind == "allocation":
        from gpuplan.allocation.plan import compare

        effort = {"seed": choices.seed, "iterations": choices.iterations}
        return compare(scenario, choices.policies, **{k: v for k, v in effort.items() if v is not None})
    if scenario.kind == "fairshare":
        from gpuplan.fairshare.run import compare as simulate

        return simulate(scenario, choices.policies)
    from gpuplan.packing.run import compare as pack

    return pack(scenario, choices.policies)


def from_text(text: str, source: str, notes: Sequence[str] = ()) -> Any:
    """The scenario of a YAML text that stands alone; `notes` are those said when it was first read.

    Raises
    ------
    InputError
        With every mistake, and for a text that names a file beside it.
    """
    from gpuplan.inputs.yaml_file import parse_yaml
    from gpuplan.loading import load

    data = parse_yaml(text, source).data
    for section in ("workload", "tasks"):
        part = data.get(section) if isinstance(data, Mapping) else None
        if isinstance(part, Mapping) and "file" in part:
            raise InputError(source, [Mistake(f"{section}.file", "must not be there: a report stands alone")])
    scenario: Any = load(data) if isinstance(data, Mapping) else None
    if scenario is None:
        raise InputError(source, [Mistake("", "must be a scenario")])
    return scenario if scenario.kind == "allocation" else replace(scenario, notes=tuple(notes))
