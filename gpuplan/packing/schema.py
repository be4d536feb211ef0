"""Between a packing scenario and its file: reading with every mistake at once, changing, writing."""

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from dataclasses import replace as changed
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import ValidationError
from pydantic_core import PydanticCustomError

from gpuplan.inputs.errors import InputError, Mistake, did_you_mean, dotted, shorten
from gpuplan.inputs.fields import as_mapping
from gpuplan.inputs.folders import beside
from gpuplan.inputs.mistakes import LineOf, as_found, mistakes_of
from gpuplan.packing.consistency import Conflict, Parts, conflicts, parts_of, sound_parts
from gpuplan.packing.file_models import MODELS, ScenarioFile, json_schema_of
from gpuplan.packing.file_tasks import TaskFile
from gpuplan.packing.model import NEVER, PackingScenario
from gpuplan.packing.offered import fits, offered_load
from gpuplan.packing.tasks import Tasks, tasks
from gpuplan.packing.words import apart

#: Models that a note names; the rest are counted.
_NAMED = 5


@dataclass(frozen=True, slots=True)
class Held:
    """The tasks of a scenario that is changed elsewhere; they are not read again."""

    tasks: Tasks
    file: str | None
    notes: tuple[str, ...]
    models: tuple[str, ...]


def from_mapping(
    mapping: Any,
    source: str = "mapping",
    lines: LineOf | None = None,
    mistakes: Iterable[Mistake] = (),
    folder: str | Path | None = None,
    held: Held | None = None,
) -> PackingScenario:
    """Turn the mapping of a scenario file into a scenario, the tasks of its task table included.

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
        Where a task table is looked for; the working folder by default.
    held
        Tasks that take the place of the tasks section.

    Raises
    ------
    InputError
        With every mistake, those of the task table included.
    """
    line: LineOf = lines or (lambda path: None)
    found = list(mistakes)
    if not isinstance(mapping, Mapping):
        rule = "must be a mapping that starts with kind: packing"
        raise InputError(source, [*found, Mistake("", rule, as_found(mapping))])
    kind = mapping.get("kind")
    if isinstance(kind, str) and kind != "packing" and not did_you_mean(kind, ["packing"]):
        raise InputError(
            source, [*found, Mistake("kind", "must be packing", as_found(kind), line(("kind",)))]
        )
    file, parts, more = _validated(mapping, source, line, held)
    found += more
    found += _mistakes(conflicts(parts, held is not None), line)
    made, notes, more = _tasks(parts, Path(folder or "."), line, held)
    found += more
    if file is None or found:
        raise InputError(source, found)
    return _noted(_built(file, made, held), notes)


def _validated(
    mapping: Mapping[Any, Any], source: str, line: LineOf, held: Held | None
) -> tuple[ScenarioFile | None, Parts, list[Mistake]]:
    """The file where every field is right, the parts that are right, the mistakes in the others."""
    try:
        whole = dict(as_mapping(mapping))
    except PydanticCustomError as error:  # keys that are no words
        raise InputError(source, [Mistake("", error.message())]) from None
    if held is not None:
        whole["tasks"] = {}
    try:
        file = ScenarioFile.model_validate(whole)
    except ValidationError as error:
        located = mistakes_of(error, MODELS, lambda path: path, line)
        return None, sound_parts(whole), [mistake for _, mistake in located]
    return file, parts_of(file), []


def _mistakes(found: Iterable[Conflict], line: LineOf) -> list[Mistake]:
    return [Mistake(dotted(path), rule, value, line(path)) for path, rule, value in found]


def _tasks(
    parts: Parts, folder: Path, line: LineOf, held: Held | None
) -> tuple[Tasks | None, tuple[str, ...], list[Mistake]]:
    """The tasks of the file, sentences about them, mistakes in them."""
    if held is not None:
        found, made = ([], held.tasks) if parts.names is None else _renumbered(held, parts.names)
        return made, held.notes, _mistakes(found, line)
    if parts.forms == ["rows"]:
        row = {name: k for k, name in enumerate(parts.names or ())}
        rows = [task for _, task in parts.rows if task.model in row]  # all of them, or a mistake is known
        return tasks_of_rows(rows, row), (), []
    if parts.forms != ["file"] or not parts.file:
        return None, (), []
    from gpuplan.packing.task_table import read_tasks

    try:
        table = read_tasks(beside(folder, parts.file), parts.names)
    except InputError as error:
        where, at = f"tasks.file: {shorten(parts.file, 100)}", line(("tasks", "file"))
        return None, (), [_of_table(mistake, where, at) for mistake in error.mistakes]
    told = table.account
    left_out = "".join(f"; {count:,} left out: {why}" for why, count in told.excluded)
    changes = "".join(f"; {count:,} {what}" for what, count in told.changed)
    note = f"{shorten(parts.file, 100)}: {told.read:,} tasks read, {told.used:,} used{left_out}{changes}."
    return table.tasks, (note,), []


def _of_table(mistake: Mistake, where: str, line: int | None) -> Mistake:
    path = f"{where}, {mistake.path}" if mistake.path else where
    return Mistake(path, mistake.rule, mistake.value, line)


def _renumbered(held: Held, names: list[str]) -> tuple[list[Conflict], Tasks]:
    """Held tasks with the rows that their models have now: by name, or by place where a model only has a new name."""
    if list(held.models) == names:
        return [], held.tasks
    row = {name: k for k, name in enumerate(names)}
    asked = np.unique(held.tasks.model).tolist()
    renamed = len(held.models) == len(names)
    places = np.zeros(len(held.models), np.int64)
    found: list[Conflict] = []
    for k in asked:
        name = held.models[k]
        if name in row or renamed:
            places[k] = row.get(name, k)
        else:
            count = int((held.tasks.model == k).sum())
            found.append((("models",), f"must hold the model of {count:,} task{'s' * (count != 1)}", name))
    model = places[held.tasks.model]
    model.setflags(write=False)
    return found, changed(held.tasks, model=model)


def tasks_of_rows(rows: Iterable[TaskFile], row_of: Mapping[str, int]) -> Tasks:
    """The tasks of checked rows of a file."""
    listed = list(rows)
    return tasks(
        [task.arrival_s for task in listed],
        [row_of[task.model] for task in listed],
        [task.tenant for task in listed],
        [task.priority for task in listed],
        [task.service_s for task in listed],
        [task.service_s if task.predicted_s is None else task.predicted_s for task in listed],
        [task.tokens_in for task in listed],
        [task.tokens_out for task in listed],
        [NEVER if task.deadline_s is None else task.deadline_s for task in listed],
    )


def _built(file: ScenarioFile, made: Tasks | None, held: Held | None) -> PackingScenario:
    asked = file.tasks.generate
    return PackingScenario(
        name=file.name,
        gpus=file.gpus.build(),
        models=tuple(model.build() for model in file.models),
        admission=file.admission.build(),
        preemption=file.preemption.build(),
        contention=file.contention.build(),
        retry=file.retry.build(),
        policy=file.policy.build(),
        generate=asked.build() if asked is not None and made is None else None,
        tasks=made,
        tasks_file=held.file if held else file.tasks.file,
        until_us=file.until_s,
        about=file.about,
    )


def _noted(scenario: PackingScenario, notes: tuple[str, ...]) -> PackingScenario:
    """The scenario with sentences about its tasks, and about what can never be served."""
    return changed(scenario, notes=(*notes, *_too_large(scenario), *_overload(scenario)))


def _too_large(scenario: PackingScenario) -> Iterable[str]:
    """A sentence about each model that no GPU can hold (its part of it, where it is spread over several)."""
    large = [model for model in scenario.models if not fits(scenario, model)]
    for model in large[:_NAMED]:
        most = max(scenario.needed(model), scenario.taken(model))
        what = "needs" if most == scenario.needed(model) else "takes"
        each = "" if model.gpus == 1 else f" on each of {model.gpus} GPUs"
        size, memory = apart(most, scenario.gpus.memory_bytes)
        yield (
            f"{shorten(model.name)} {what} {size}{each} and no GPU has more than {memory}: its tasks are rejected."
        )
    if len(large) > _NAMED:
        yield f"{len(large) - _NAMED:,} more models are larger than every GPU: their tasks are rejected."


def _overload(scenario: PackingScenario) -> Iterable[str]:
    """A sentence where tasks come faster than any policy can serve them."""
    load = offered_load(scenario)
    if load >= 1:
        times = f"{load:.2f}" if load < 1e6 else f"{load:.2e}"
        waits = scenario.generate is None or scenario.generate.timeout_us is None
        end = "the queue grows without bound." if waits else "the queue is kept short by its timeout alone."
        yield f"Load {times}: tasks come at {times} times the rate that the GPUs can serve at most; {end}"


def replace(scenario: PackingScenario, changes: Mapping[str, Any]) -> PackingScenario:
    """A copy with values changed by dotted path, validated like a file.

    Tasks stay as they are where nothing of ``tasks`` is changed; they keep their models by name. Tasks of another form
    (``tasks.generate``) take the place of those there are.

    Parameters
    ----------
    scenario
        Where to start.
    changes
        New values by path, applied in order: ``{"admission.margin": 0.1, "models.0.popularity": 2}``.

    Raises
    ------
    InputError
        With every unknown path, or else every mistake of the result.
    """
    from gpuplan.packing.file_write import set_value, to_mapping

    keeps = "tasks" not in {str(path).split(".")[0] for path in changes} and scenario.tasks is not None
    mapping = to_mapping(scenario, with_tasks=not keeps)
    unknown = []
    for path, value in changes.items():
        rule = set_value(mapping, str(path), value)
        if rule:
            unknown.append(Mistake(shorten(str(path)), rule))
    if unknown:
        raise InputError("changes", unknown)
    held = None
    if keeps and scenario.tasks is not None:
        names = tuple(model.name for model in scenario.models)
        held = Held(scenario.tasks, scenario.tasks_file, _of_tasks(scenario), names)
    return from_mapping(mapping, "changes", held=held)


def _of_tasks(scenario: PackingScenario) -> tuple[str, ...]:
    """The notes of a scenario that are about its tasks: all but those that are made of its values."""
    made = {*_too_large(scenario), *_overload(scenario)}
    return tuple(note for note in scenario.notes if note not in made)


def with_tasks(scenario: PackingScenario, made: Tasks, notes: tuple[str, ...] = ()) -> PackingScenario:
    """A copy with other tasks, whose models are rows of the scenario's, and sentences about them."""
    return _noted(changed(scenario, tasks=made, tasks_file=None, generate=None), notes)


def to_dict(scenario: PackingScenario) -> dict[str, Any]:
    """The scenario as the mapping of its file (values that equal their default left out).

    Tasks of a table stay in their file, which is named as the scenario named it; others are rows.
    """
    from gpuplan.packing.file_write import tidied

    return tidied(scenario)


def to_yaml(scenario: PackingScenario) -> str:
    """The text of a scenario file that reads back to an equal scenario (beside its task table, where it has one)."""
    from gpuplan.packing.file_write import written

    return written(scenario)


def fingerprint(scenario: PackingScenario) -> str:
    """SHA-256 (hexadecimal) of the scenario's canonical form: equal scenarios, equal text.

    The form is JSON with sorted keys over every field, defaults included, then every column of the tasks, which are in
    one order whatever the order of their rows. Where they came from (a file, rows) does not count.
    """
    from gpuplan.packing.file_write import to_mapping

    whole = to_mapping(scenario, with_tasks=False)
    text = json.dumps(whole, sort_keys=True, separators=(",", ":"), allow_nan=False)
    digest = hashlib.sha256(text.encode())
    if scenario.tasks is not None:
        for column in fields(Tasks):
            values = getattr(scenario.tasks, column.name)
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
        **json_schema_of(ScenarioFile),
        "title": "gpuplan packing scenario",
    }
