"""From a name, a path or a mapping to a scenario; the scenarios that ship with gpuplan."""

import importlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpuplan.allocation.model import AllocationScenario
from gpuplan.allocation.schema import from_mapping
from gpuplan.inputs.errors import InputError, Mistake, did_you_mean
from gpuplan.inputs.folders import data_folder
from gpuplan.inputs.mistakes import LineOf, as_found
from gpuplan.inputs.yaml_file import Row, read_yaml

if TYPE_CHECKING:
    from gpuplan.allocation.gain import GainApart
    from gpuplan.allocation.plan import Comparison, Plan
    from gpuplan.allocation.policies import Policy, Progress, Proof
    from gpuplan.allocation.rolling import Days, RollingRun
    from gpuplan.allocation.rolling_studies import EndOfWorld, ErrorMap
    from gpuplan.allocation.sensitivity import Sensitivity
    from gpuplan.fairshare.model import FairshareScenario
    from gpuplan.fairshare.policies import Policy as FairsharePolicy
    from gpuplan.fairshare.run import Run
    from gpuplan.packing.model import PackingScenario
    from gpuplan.packing.run import PackRun

    Scenario = AllocationScenario | FairshareScenario | PackingScenario

    #: What a scenario may be given as.
    Source = str | Path | Mapping[str, Any] | Scenario

#: The kinds of scenarios, and the class of each.
KINDS = {
    "allocation": "AllocationScenario",
    "fairshare": "FairshareScenario",
    "packing": "PackingScenario",
}

#: Keys that only scenarios of one kind have, for a file that does not say its kind.
_KEYS = {"fairshare": {"budget", "workload"}, "packing": {"models", "tasks", "admission"}}

#: What runs the scenarios of a kind.
_RUNNERS = {
    "allocation": "allocation scenarios are planned by plan and compare",
    "fairshare": "fairshare scenarios are run by simulate",
    "packing": "packing scenarios are run by pack",
}


@dataclass(frozen=True, slots=True)
class ShippedScenario:
    """A scenario that ships with gpuplan: its name, its kind, what it is about, its file."""

    name: str
    kind: str
    about: str
    path: Path


def load(source: "Source") -> "Scenario":
    """The scenario of a shipped name, a file or a mapping, of the kind that it says.

    Parameters
    ----------
    source
        ``"training-rush"``, a path of a YAML file, a mapping like that of a file, or a scenario
        (which is returned as it is). A shipped name goes before a file of the same name. A table that a
        scenario names is looked for beside its file; for a mapping, in the working folder.

    Raises
    ------
    InputError
        With every mistake, or where there is no such scenario.
    """
    if (
        KINDS.get(str(getattr(source, "kind", ""))) == type(source).__name__
    ):  # their modules are not loaded for this
        return source  # type: ignore[return-value]
    if isinstance(source, Mapping):
        return _of_its_kind(source, "mapping", None, (), None)
    other: object = source
    if not isinstance(other, (str, Path)):
        rule = "must be a shipped name, a path or a mapping"
        raise InputError("scenario", [Mistake("", rule, other)])
    path = _shipped_path(source) if isinstance(source, str) else None
    if path is None and isinstance(source, str) and _is_word(source):
        raise _unknown_name(source)
    found = path or Path(other)
    document = read_yaml(path or other)
    return _of_its_kind(document.data, document.source, document.line, document.mistakes, found.parent)


def _of_its_kind(
    data: Any, source: str, line: LineOf | None, mistakes: tuple[Mistake, ...], folder: Path | None
) -> "Scenario":
    """The scenario of a mapping, by its `kind`; without one, by the keys that only one kind has."""
    kind = data.get("kind") if isinstance(data, Mapping) else None
    if isinstance(kind, str):
        near = did_you_mean(kind, KINDS)
        if not near:
            at = None if line is None else line(("kind",))
            rule = f"must be one of {', '.join(KINDS)}"
            raise InputError(source, [*mistakes, Mistake("kind", rule, as_found(kind), at)])
        meant = next(name for name in KINDS if did_you_mean(kind, [name]) == near)
    else:
        keys = set(data) if isinstance(data, Mapping) else set()
        meant = next((name for name, own in _KEYS.items() if own & keys), "allocation")
    if meant == "allocation":
        return from_mapping(data, source, line, mistakes)
    schema = importlib.import_module(f"gpuplan.{meant}.schema")
    return schema.from_mapping(data, source, line, mistakes, folder)  # type: ignore[no-any-return]


def load_allocation(source: "Source") -> AllocationScenario:
    """Like `load`, for what takes allocation scenarios only.

    Raises
    ------
    InputError
        As `load`, and for a scenario of another kind.
    """
    return _only("allocation", load(source))  # type: ignore[return-value]


def load_fairshare(source: "Source") -> "FairshareScenario":
    """Like `load`, for what takes fair-share scenarios only.

    Raises
    ------
    InputError
        As `load`, and for a scenario of another kind.
    """
    return _only("fairshare", load(source))  # type: ignore[return-value]


def load_packing(source: "Source") -> "PackingScenario":
    """Like `load`, for what takes packing scenarios only.

    Raises
    ------
    InputError
        As `load`, and for a scenario of another kind.
    """
    return _only("packing", load(source))  # type: ignore[return-value]


def _only(kind: str, scenario: "Scenario") -> "Scenario":
    if scenario.kind == kind:
        return scenario
    rule = f"must be {kind} here; {_RUNNERS[scenario.kind]}"
    raise InputError(scenario.name, [Mistake("kind", rule, scenario.kind)])


def shipped() -> list[ShippedScenario]:
    """The scenarios that ship with gpuplan, by kind and name."""
    found = []
    for path in _shipped_files().values():
        data = read_yaml(path).data
        if isinstance(data, Row):
            kind, about = str(data.get("kind", "")), str(data.get("about", ""))
            found.append(ShippedScenario(str(data.get("name", path.stem)), kind, about, path))
    return found


def plan(scenario: "Source", policy: "str | Policy" = "aware", **effort: Any) -> "Plan":
    """Plan a scenario under a policy.

    Parameters
    ----------
    scenario
        Whatever `load` takes.
    policy
        One of `gpuplan.POLICIES`, or a `gpuplan.allocation.policies.Policy` of one's own.
    **effort
        ``budget_ms``, ``iterations``, ``seed``, ``time_limit_s``, ``report``: see
        `gpuplan.allocation.policies.Effort`.

    Raises
    ------
    InputError
        For an unknown policy, or a scenario with mistakes.
    """
    from gpuplan.allocation import plan as plans

    return plans.plan(load_allocation(scenario), policy, **effort)


def simulate(scenario: "Source", policy: "str | FairsharePolicy" = "fair-share") -> "Run":
    """Run a fair-share scenario under a policy.

    Parameters
    ----------
    scenario
        Whatever `load` takes.
    policy
        One of `gpuplan.FAIRSHARE_POLICIES`, or a `gpuplan.fairshare.policies.Policy` of one's own.

    Raises
    ------
    InputError
        For an unknown policy, or a scenario with mistakes.
    """
    from gpuplan.fairshare import run as runs

    return runs.simulate(load_fairshare(scenario), policy)


def pack(scenario: "Source", policy: str | None = None) -> "PackRun":
    """Run a packing scenario under a policy.

    Parameters
    ----------
    scenario
        Whatever `load` takes.
    policy
        ``"best-fit"``, or with more pieces ``"best-fit+backfill+lfu"``; pieces that it does not name come from the
        scenario. None: all of them do.

    Raises
    ------
    InputError
        For an unknown policy, or a scenario with mistakes.
    """
    from gpuplan.packing import run as runs

    return runs.pack(load_packing(scenario), policy)


def load_swf(path: str | Path, gpus: int | None = None) -> "FairshareScenario":
    """A workload log in the Standard Workload Format as a scenario on one flat pool.

    Equal weights over group, then user; minimum run time min(limit, 1 h); it runs until it is empty.

    Parameters
    ----------
    path
        ``.swf`` or ``.swf.gz``.
    gpus
        GPUs of the pool; None: the processors that the log's header tells.

    Raises
    ------
    InputError
        For a log with mistakes, and where nobody says how many GPUs there are.
    """
    from gpuplan.fairshare.job_limits import MOST_GPUS
    from gpuplan.fairshare.model import FairshareScenario, Pool
    from gpuplan.traces.swf import read_swf

    log = read_swf(path)
    size = log.max_processors if gpus is None else gpus
    source = Path(path).name
    if size is None:
        rule = "must be told: the header of the log has no MaxProcs"
        raise InputError(source, [Mistake("gpus", rule)])
    if not 1 <= size <= MOST_GPUS:
        raise InputError(source, [Mistake("gpus", f"must be from 1 to {MOST_GPUS:,}", size)])
    told = log.account
    left_out = "".join(f"; {count:,} left out: {why}" for why, count in told.excluded)
    changed = "".join(f"; {count:,} {what}" for what, count in told.changed)
    notes = (
        f"{source}: {told.read:,} jobs read, {told.used:,} used{left_out}{changed}.",
        "Equal weights over group, then user; minimum run time min(limit, 1 h).",
    )
    return FairshareScenario(
        name=source.removesuffix(".gz").removesuffix(".swf"),
        pools=(Pool(1, size),),
        budget=log.budget(),
        jobs=log.jobs(),
        notes=notes,
    )


def compare(
    scenario: "Source", policies: "Sequence[str | Policy] | Policy" = ("fifo", "aware"), **effort: Any
) -> "Comparison":
    """Plan a scenario under several policies; the plans by name and a tidy table (``effort`` as in `plan`).

    Raises
    ------
    InputError
        For an unknown policy, none at all, or a scenario with mistakes.
    """
    from gpuplan.allocation import plan as plans

    return plans.compare(load_allocation(scenario), policies, **effort)


def certify(
    scenario: "Source", time_limit_s: float = 30.0, report: "Callable[[Progress], None] | None" = None
) -> "Proof":
    """How good any legal plan of a scenario can be, proven; kept for the process.

    Parameters
    ----------
    scenario
        Whatever `load` takes.
    time_limit_s, report
        See `gpuplan.allocation.certify.certify`.

    Raises
    ------
    InputError
        For a scenario with mistakes, and where OR-Tools is missing.
    """
    from gpuplan.allocation import certify as proofs

    return proofs.certify(load_allocation(scenario), time_limit_s, report)


def take_apart(scenario: "Source", **effort: Any) -> "GainApart":
    """The gain from ``fifo`` to ``search`` in steps (see `gpuplan.allocation.gain.take_apart`).

    Raises
    ------
    InputError
        For a scenario with mistakes or an effort that cannot be.
    """
    from gpuplan.allocation import gain

    return gain.take_apart(load_allocation(scenario), **effort)


def sensitivity(scenario: "Source", *settings: Any, **more: Any) -> "Sensitivity":
    """Figures over the penalty and the cluster's size (see `gpuplan.allocation.sensitivity.sensitivity`).

    Raises
    ------
    InputError
        For a scenario with mistakes, an unknown policy, a penalty that cannot be.
    """
    from gpuplan.allocation import sensitivity as curves

    return curves.sensitivity(load_allocation(scenario), *settings, **more)


def roll(scenario: "Source | Days", policy: "str | Policy" = "aware", **settings: Any) -> "RollingRun":
    """Run a policy over days: plan, commit a step, meet what comes, plan again (`gpuplan.allocation.rolling.roll`).

    Raises
    ------
    InputError
        For a scenario with mistakes, an unknown policy, settings that cannot be.
    """
    from gpuplan.allocation import rolling

    return rolling.roll(
        scenario if isinstance(scenario, rolling.Days) else load_allocation(scenario), policy, **settings
    )


def end_of_world(scenario: "Source", *policies: Any, **settings: Any) -> "EndOfWorld":
    """The same days with plans that see more or less far (`gpuplan.allocation.rolling_studies.end_of_world`).

    Raises
    ------
    InputError
        As `roll` does.
    """
    from gpuplan.allocation import rolling_studies

    return rolling_studies.end_of_world(load_allocation(scenario), *policies, **settings)


def error_map(scenario: "Source", policy: str = "aware", **settings: Any) -> "ErrorMap":
    """The gain over FIFO against errors of forecasts (`gpuplan.allocation.rolling_studies.error_map`).

    Raises
    ------
    InputError
        As `roll` does.
    """
    from gpuplan.allocation import rolling_studies

    return rolling_studies.error_map(load_allocation(scenario), policy, **settings)


def _shipped_files() -> dict[str, Path]:
    """The shipped files by scenario name, which is the name of the file."""
    return {path.stem: path for path in sorted(data_folder("scenarios").glob("*/*.yaml"))}


def _shipped_path(name: str) -> Path | None:
    return _shipped_files().get(name) if _looks_like_a_name(name) else None


def _looks_like_a_name(text: str) -> bool:
    return len(text) <= 200 and not set(text) & set("/\\.\0")


def _is_word(text: str) -> bool:
    """Whether a text can only be meant as a shipped name: no file, and nothing of a path."""
    return _looks_like_a_name(text) and not Path(text).exists()


def _unknown_name(name: str) -> InputError:
    names = list(_shipped_files())
    rule = f"there is no shipped scenario and no file of this name{did_you_mean(name, names)}"
    return InputError(name, [Mistake("", f"{rule} (shipped: {', '.join(names)})")])
