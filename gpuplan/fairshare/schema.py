"""Between a fair-share scenario and its file: reading with every mistake at once, changing, writing."""

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from pydantic_core import PydanticCustomError

from gpuplan.fairshare.consistency import conflicts, held_conflicts, team_conflicts
from gpuplan.fairshare.file_budget import Conflict, budget_conflicts, cut_off, weight_note
from gpuplan.fairshare.file_changes import change_conflicts
from gpuplan.fairshare.file_jobs import jobs_of_rows
from gpuplan.fairshare.file_models import MODELS, BudgetFile, ScenarioFile
from gpuplan.fairshare.jobs import Jobs
from gpuplan.fairshare.model import DAY, Behaviour, BudgetNode, FairshareScenario
from gpuplan.fairshare.team_names import TeamNames
from gpuplan.fairshare.tree import tree_of
from gpuplan.inputs.errors import InputError, Mistake, did_you_mean, dotted, shorten
from gpuplan.inputs.fields import as_mapping
from gpuplan.inputs.folders import beside
from gpuplan.inputs.mistakes import LineOf, as_found, mistakes_of

#: The budget where a file has none.
EVERYONE = (BudgetNode("everyone"),)

#: Stand-ins for required sections that are wrong.
_NEUTRAL: dict[str, Any] = {"kind": "fairshare", "name": "unnamed", "workload": {"jobs": []}}


@dataclass(frozen=True, slots=True)
class Held:
    """The jobs of a scenario that is changed elsewhere; they are not read again."""

    jobs: Jobs | None
    file: str | None
    notes: tuple[str, ...]


def from_mapping(
    mapping: Any,
    source: str = "mapping",
    lines: LineOf | None = None,
    mistakes: Iterable[Mistake] = (),
    folder: str | Path | None = None,
    held: Held | None = None,
) -> FairshareScenario:
    """Turn the mapping of a scenario file into a scenario, the jobs of its job table included.

    Parameters
    ----------
    mapping
        What the file holds, or the same in Python (numbers of numpy are welcome).
    source
        Stands in front of the mistakes.
    lines
        Finds the line of a path, where there is a file.
    mistakes
        Found already while reading; they are raised together with the rest.
    folder
        Where a job table is looked for; the working folder by default.
    held
        Jobs that take the place of the workload section.

    Raises
    ------
    InputError
        With every mistake, those of the job table included.
    """
    line: LineOf = lines or (lambda path: None)
    found = list(mistakes)
    if not isinstance(mapping, Mapping):
        rule = "must be a mapping that starts with kind: fairshare"
        raise InputError(source, [*found, Mistake("", rule, as_found(mapping))])
    kind = mapping.get("kind")
    if isinstance(kind, str) and kind != "fairshare" and not did_you_mean(kind, ["fairshare"]):
        raise InputError(
            source, [*found, Mistake("kind", "must be fairshare", as_found(kind), line(("kind",)))]
        )
    file, wrong, more = _validated(mapping, source, line, held)
    found += more
    found += _mistakes(conflicts(file, wrong, held is not None), line)
    teams = None if "budget" in wrong else TeamNames(tree_of(_budget(file.budget)))
    jobs, notes, more = _jobs(file, wrong, teams, Path(folder or "."), line, held)
    found += more
    if found:
        raise InputError(source, found)
    return _built(file, jobs, weight_note(file.budget) + notes, held)


def _validated(
    mapping: Mapping[Any, Any], source: str, line: LineOf, held: Held | None
) -> tuple[ScenarioFile, set[str], list[Mistake]]:
    """The sections as models, the names of those that are wrong (which hold stand-ins), and the mistakes in them."""
    try:
        whole = dict(as_mapping(mapping))
    except PydanticCustomError as error:  # keys that are no words
        raise InputError(source, [Mistake("", error.message())]) from None
    if held is not None:
        whole["workload"] = {"jobs": []} if held.jobs is not None else whole["workload"]
    cut: list[Conflict] = []
    if "budget" in whole:
        whole["budget"], cut = cut_off(whole["budget"])
        cut += budget_conflicts(whole["budget"])
    changes = list(change_conflicts(whole.get("budget_changes"), whole.get("budget"), EVERYONE[0].name))
    found = _mistakes([*cut, *changes], line)
    wrong = ({"budget"} if cut else set()) | ({"budget_changes"} if changes else set())
    try:
        return ScenarioFile.model_validate(whole), wrong, found
    except ValidationError as error:
        located = mistakes_of(error, _Models(), lambda path: path, line)
    found += [mistake for _, mistake in located]
    wrong |= {str(path[0]) for path, _ in located if path}
    rest = {key: value for key, value in whole.items() if key not in wrong}
    return ScenarioFile.model_validate(_NEUTRAL | rest), wrong, found


class _Models(dict[str, Any]):
    """The models by the pattern of a path; budgets are the same at every depth."""

    def get(self, key: Any, default: Any = None) -> Any:
        """The model at a place."""
        return MODELS.get("budget.*" if key.startswith("budget.*") else key, default)


def _mistakes(found: Iterable[Conflict], line: LineOf) -> list[Mistake]:
    return [Mistake(dotted(path), rule, value, line(path)) for path, rule, value in found]


def _jobs(
    file: ScenarioFile,
    wrong: set[str],
    teams: TeamNames | None,
    folder: Path,
    line: LineOf,
    held: Held | None,
) -> tuple[Jobs | None, tuple[str, ...], list[Mistake]]:
    """The jobs of the file, sentences about them, mistakes in them."""
    workload = file.workload
    if held is not None:
        gone = [] if teams is None or held.jobs is None else list(held_conflicts(held.jobs.team, teams))
        return held.jobs, held.notes, _mistakes(gone, line)
    if "workload" in wrong or (workload.jobs is None and workload.file is None):
        return None, (), []
    if workload.jobs is not None:
        found = [] if teams is None else _mistakes(team_conflicts(workload, teams), line)
        if found or teams is None or workload.file is not None:
            return None, (), found
        jobs, notes = jobs_of_rows(workload.jobs, teams)
        return jobs, notes, []
    from gpuplan.fairshare.job_table import read_jobs

    assert workload.file is not None
    try:
        table = read_jobs(beside(folder, workload.file), None if teams is None else teams.tree)
    except InputError as error:
        where, at = f"workload.file: {shorten(workload.file, 100)}", line(("workload", "file"))
        return (
            None,
            (),
            [Mistake(f"{where}, {m.path}" if m.path else where, m.rule, m.value, at) for m in error.mistakes],
        )
    told = table.account
    changes = "".join(f"; {count:,} {what}" for what, count in told.changed)
    return (
        table.jobs,
        (f"{shorten(workload.file, 100)}: {told.read:,} jobs read, {told.used:,} used{changes}.",),
        [],
    )


def _budget(budget: tuple[BudgetFile, ...]) -> tuple[BudgetNode, ...]:
    return tuple(node.build() for node in budget) or EVERYONE


def _built(
    file: ScenarioFile, jobs: Jobs | None, notes: tuple[str, ...], held: Held | None
) -> FairshareScenario:
    workload, behaviour = file.workload, file.behaviour
    generate = workload.generate.build() if workload.generate and jobs is None else None
    pools = [pool.build(pool.gpu) for pool in file.pools] or ([file.cluster.build()] if file.cluster else [])
    return FairshareScenario(
        name=file.name,
        pools=tuple(pools),
        budget=_budget(file.budget),
        budget_changes=tuple(
            sorted((change.build() for change in file.budget_changes), key=lambda change: change.at_s)
        ),
        window_s=file.window,
        contract=file.contract.build(),
        generate=generate,
        jobs=jobs,
        jobs_file=held.file if held else workload.file,
        behaviour=Behaviour(**{f.name: getattr(behaviour, f.name) for f in fields(Behaviour)}),
        drains=tuple(drain.build() for drain in file.drains),
        until_s=round(generate.days * DAY) if generate and file.until is None else file.until,
        about=file.about,
        notes=notes,
    )


def replace(scenario: FairshareScenario, changes: Mapping[str, Any]) -> FairshareScenario:
    """A copy with values changed by dotted path, validated like a file.

    Jobs stay as they are where nothing of ``workload`` is changed. A workload of another form
    (``workload.generate``) takes the place of the one there is.

    Parameters
    ----------
    scenario
        Where to start.
    changes
        New values by path, applied in order: ``{"window": "1d", "budget.0.weight": 70}``.

    Raises
    ------
    InputError
        With every unknown path, or else every mistake of the result.
    """
    from gpuplan.fairshare.file_write import set_value, to_mapping

    touched = {str(path).split(".")[0] for path in changes}
    keeps = "workload" not in touched
    mapping = to_mapping(scenario, with_jobs=not keeps)
    unknown = []
    for path, value in changes.items():
        rule = set_value(mapping, str(path), value)
        if rule:
            unknown.append(Mistake(shorten(str(path)), rule))
    if unknown:
        raise InputError("changes", unknown)
    notes = scenario.notes
    if "budget" in touched:
        notes = tuple(note for note in notes if not note.startswith("No weight is given for "))
    held = Held(scenario.jobs, scenario.jobs_file, notes) if keeps else None
    return from_mapping(mapping, "changes", held=held)


def to_dict(scenario: FairshareScenario) -> dict[str, Any]:
    """The scenario as the mapping of its file (values that equal their default left out, weights always told).

    Jobs of a table stay in their file, which is named as the scenario named it; other jobs are rows.
    """
    from gpuplan.fairshare.file_write import tidied

    return tidied(scenario)


def to_yaml(scenario: FairshareScenario) -> str:
    """The text of a scenario file that reads back to an equal scenario (beside its job table, where it has one)."""
    from gpuplan.fairshare.file_write import written

    return written(scenario)


def fingerprint(scenario: FairshareScenario) -> str:
    """SHA-256 (hexadecimal) of the scenario's canonical form: equal scenarios, equal text.

    The form is JSON with sorted keys over every field, defaults included, then every column of the jobs, which are in
    order of submission and id whatever the order of their rows. Where they came from (a file, rows) does not count.
    """
    from gpuplan.fairshare.file_write import canonical

    text = json.dumps(canonical(scenario), sort_keys=True, separators=(",", ":"), allow_nan=False)
    digest = hashlib.sha256(text.encode())
    if scenario.jobs is not None:
        for column in fields(Jobs):
            values = getattr(scenario.jobs, column.name)
            digest.update(f"\n{column.name} {len(values)}\n".encode())
            if values.dtype == object:  # lengths first: no separator could keep names apart
                digest.update(",".join([str(len(text)) for text in values]).encode())
                digest.update("".join(values).encode())
            else:
                digest.update(values.astype("<i8").tobytes())
    return digest.hexdigest()


def json_schema() -> dict[str, Any]:
    """The JSON Schema (draft 2020-12) of a scenario file, for editors."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **ScenarioFile.model_json_schema(),
        "title": "gpuplan fair-share scenario",
    }
