"""Rules of a packing scenario file that look at more than one field.

Each rule is a generator of mistakes (path, rule, found value). Rules are asked about all parts that are right by
themselves, so that one mistake does not hide another.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from gpuplan.inputs.errors import MISSING, did_you_mean, shorten
from gpuplan.inputs.fields import is_null
from gpuplan.inputs.yaml_text import neat
from gpuplan.packing.file_fields import SIZES, shortest
from gpuplan.packing.file_models import AdmissionFile, GpusFile, ModelFile, PolicyFile, ScenarioFile
from gpuplan.packing.file_tasks import GenerateFile, TaskFile
from gpuplan.packing.limits import MOST_US
from gpuplan.packing.model import SECOND
from gpuplan.packing.words import gib, seconds

#: A mistake: path of the value, the rule that it breaks, the value.
Conflict = tuple[tuple[str | int, ...], str, Any]

#: Where tasks may come from.
FORMS = ("file", "generate", "rows")

#: Unknown models for which a near name is looked for.
_SUGGESTIONS = 40

#: Models that a rule lists by name.
_LISTED = 5

_Part = TypeVar("_Part", bound=BaseModel)


@dataclass(frozen=True, slots=True)
class Parts:
    """The parts of a file that are right by themselves.

    Attributes
    ----------
    models, rows
        With the place of each in its list.
    names
        Of all models, also of those that are wrong elsewhere; None where they are not known.
    forms
        Keys of the tasks section that are given; None where it is no mapping.
    """

    gpus: GpusFile | None
    admission: AdmissionFile | None
    policy: PolicyFile | None
    models: list[tuple[int, ModelFile]]
    names: list[str] | None
    generate: GenerateFile | None
    rows: list[tuple[int, TaskFile]]
    forms: list[str] | None
    file: str | None


def parts_of(file: ScenarioFile) -> Parts:
    """The parts of a file in which every field is right."""
    asked = file.tasks
    return Parts(
        file.gpus,
        file.admission,
        file.policy,
        list(enumerate(file.models)),
        [model.name for model in file.models],
        asked.generate,
        list(enumerate(asked.rows or ())),
        [key for key in FORMS if getattr(asked, key) is not None],
        asked.file,
    )


def sound_parts(whole: Mapping[str, Any]) -> Parts:
    """The parts that are right of a mapping in which something is wrong."""
    models, tasks = whole.get("models"), whole.get("tasks")
    rows = models if isinstance(models, (list, tuple)) else ()
    names = [row.get("name") if isinstance(row, Mapping) else None for row in rows]
    asked = tasks if isinstance(tasks, Mapping) else {}
    listed = asked.get("rows")
    file = asked.get("file")
    return Parts(
        _sound(GpusFile, whole.get("gpus")),
        _sound(AdmissionFile, whole.get("admission", {})),
        _sound(PolicyFile, whole.get("policy", {})),
        _parts(ModelFile, rows),
        [str(name) for name in names] if names and all(isinstance(name, str) for name in names) else None,
        _sound(GenerateFile, asked.get("generate")),
        _parts(TaskFile, listed if isinstance(listed, (list, tuple)) else ()),
        [key for key in FORMS if not is_null(asked.get(key))] if isinstance(tasks, Mapping) else None,
        file if isinstance(file, str) and not is_null(file) else None,
    )


def _sound(model: type[_Part], value: Any) -> _Part | None:
    if not isinstance(value, Mapping):
        return None
    try:
        return model.model_validate(dict(value))
    except ValidationError:
        return None


def _parts(model: type[_Part], rows: Sequence[Any]) -> list[tuple[int, _Part]]:
    made = ((place, _sound(model, row)) for place, row in enumerate(rows))
    return [(place, row) for place, row in made if row is not None]


def conflicts(parts: Parts, tasks_are_held: bool) -> Iterator[Conflict]:
    """Every broken rule between fields.

    Parameters
    ----------
    parts
        What is right by itself.
    tasks_are_held
        Whether the tasks come from elsewhere (a scenario that is changed in other places).
    """
    if parts.names == []:
        yield ("models",), "must have at least one model", MISSING
    first: dict[str, int] = {}
    for place, name in enumerate(parts.names or ()):
        if name in first:
            yield ("models", place, "name"), f"must be unique, but row {first[name]} has the same name", name
        first.setdefault(name, place)
    if (
        parts.policy is not None
        and parts.policy.eviction == "keep-alive"
        and parts.policy.keep_alive_s is None
    ):
        yield ("policy", "keep_alive_s"), "must be given for keep-alive", MISSING
    if parts.admission is not None:
        yield from _asleep(parts.models, parts.admission)
    yield from _whole_copies(parts.models)
    if parts.gpus is not None:
        yield from _spread(parts.models, parts.gpus.count)
        yield from _resident(parts.models, parts.gpus.count)
        if parts.admission is not None:
            yield from _resident_memory(parts.models, parts.gpus, parts.admission)
    if not tasks_are_held:
        yield from _forms(parts.forms)
        yield from _tasks(parts)


def _part(whole: int, row: ModelFile) -> int:
    """Bytes of a whole model that are on each of its GPUs."""
    return -(-whole // row.gpus)


def _taken(row: ModelFile, admission: AdmissionFile) -> int:
    """Bytes that a loaded copy takes on each of its GPUs."""
    context = admission.context_gib if row.context_gib is None else row.context_gib
    return _part(row.build().actual_bytes, row) + context + row.workspace_gib


def _asleep(models: Sequence[tuple[int, ModelFile]], admission: AdmissionFile) -> Iterator[Conflict]:
    """An eviction frees memory: what is left asleep is not more than what was taken awake."""
    for place, row in models:
        taken = _taken(row, admission)
        if _part(row.asleep_gib, row) > taken:
            each = "" if row.gpus == 1 else f" on each of its {row.gpus} GPUs"
            rule = f"must not be more than it takes awake, {gib(taken)}{each}"
            yield ("models", place, "asleep_gib"), rule, shortest(row.asleep_gib, SIZES["GiB"])


def _spread(models: Sequence[tuple[int, ModelFile]], count: int) -> Iterator[Conflict]:
    """A model is spread over GPUs that exist."""
    for place, model in models:
        if model.gpus > count:
            yield ("models", place, "gpus"), f"must be at most the number of GPUs, {count}", model.gpus


def _whole_copies(models: Sequence[tuple[int, ModelFile]]) -> Iterator[Conflict]:
    """What is resident is whole: each copy on as many GPUs as the model is spread over."""
    for place, model in models:
        if len(model.resident) % model.gpus:
            rule = f"must name {model.gpus} GPUs for each copy: the model is spread over as many"
            yield ("models", place, "resident"), rule, list(model.resident)


def _resident(models: Sequence[tuple[int, ModelFile]], count: int) -> Iterator[Conflict]:
    """Models are resident on GPUs that exist, once on each."""
    for place, model in models:
        for k, gpu in enumerate(model.resident):
            path = ("models", place, "resident", k)
            if gpu >= count:
                yield path, f"must be the number of a GPU, 0 to {count - 1}", gpu
            elif gpu in model.resident[:k]:
                yield path, "must name each GPU once", gpu


def _resident_memory(
    models: Sequence[tuple[int, ModelFile]], gpus: GpusFile, admission: AdmissionFile
) -> Iterator[Conflict]:
    """What is resident on a GPU fits into it, as it is (not as it is declared)."""
    taken = [0] * gpus.count
    for place, row in models:
        for k, gpu in enumerate(row.resident):
            if gpu >= gpus.count:
                continue
            before = taken[gpu]
            taken[gpu] += _taken(row, admission)
            if before <= gpus.memory_gib < taken[gpu]:
                rule = (
                    f"must leave the resident models room: they take {gib(taken[gpu])} on GPU {gpu}, "
                    f"which has {gib(gpus.memory_gib)}"
                )
                yield ("models", place, "resident", k), rule, gpu


def _forms(given: list[str] | None) -> Iterator[Conflict]:
    """Tasks come from one place."""
    if given == []:
        yield ("tasks",), "must say one of file, generate or rows", MISSING
    for key in (given or [])[1:]:
        yield ("tasks", key), f"must be left out where {(given or [])[0]} is given", MISSING


def _tasks(parts: Parts) -> Iterator[Conflict]:
    """Generated tasks arrive within ten years, deadlines come after arrivals, models are those that there are."""
    asked = parts.generate
    if asked is not None and asked.count / asked.rate_per_s > MOST_US / SECOND:
        rule = "must be high enough for all tasks to arrive within ten years"
        yield ("tasks", "generate", "rate_per_s"), rule, asked.rate_per_s
    whole = parts.names is not None and len(parts.models) == len(parts.names)
    if asked is not None and asked.count and whole and not any(m.popularity > 0 for _, m in parts.models):
        rule = "must have a popularity above 0 for one model at least: tasks are generated"
        yield ("models",), rule, MISSING
    known, unknown = set(parts.names or ()), 0
    for place, task in parts.rows:
        if task.deadline_s is not None and task.deadline_s < task.arrival_s:
            rule = f"must not be before the arrival, {seconds(task.arrival_s)}"
            yield ("tasks", "rows", place, "deadline_s"), rule, neat(task.deadline_s / SECOND)
        if parts.names and task.model not in known:
            unknown += 1
            rule = model_rule(task.model, parts.names, unknown <= _SUGGESTIONS)
            yield ("tasks", "rows", place, "model"), rule, task.model


def model_rule(name: str, names: Sequence[str], suggest: bool = True) -> str:
    """The rule that an unknown model breaks, with a suggestion where one is close."""
    listed = "the name of a model"
    if len(set(names)) <= _LISTED:
        listed = f"one of {', '.join(shorten(name, 30) for name in dict.fromkeys(names))}"
    return f"must be {listed}{did_you_mean(name, names) if suggest else ''}"
