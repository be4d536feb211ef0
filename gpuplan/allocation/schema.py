"""Between a scenario and its file: reading with every mistake at once, changing, writing."""

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import Any

from pydantic import ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import PydanticCustomError

from gpuplan.allocation.consistency import Conflict, conflicts
from gpuplan.allocation.file_jobs import RangedBatchFile, has_range
from gpuplan.allocation.file_models import (
    MODELS,
    NEUTRAL,
    ClusterFile,
    ObjectiveFile,
    RealtimeFile,
    RulesFile,
    ScenarioFile,
    ShapeFile,
)
from gpuplan.allocation.file_parts import MOST_GPUS
from gpuplan.allocation.model import AllocationScenario, BatchJob, RealtimeApp
from gpuplan.inputs.errors import InputError, Mistake, did_you_mean, dotted, shorten
from gpuplan.inputs.fields import as_list, as_list_or_empty, as_mapping, number
from gpuplan.inputs.mistakes import LineOf, as_found, mistakes_of, pattern, salvage
from gpuplan.inputs.yaml_text import hours_text, neat, write_yaml

_APP_KEYS = tuple(RealtimeFile.model_fields)
_JOB_KEYS = ("name", "kind", "gpus", "hours", "priority", "earliest_hour", "running_on", "deadline_hour")
_RANGED_KEYS = ("name", "kind", "gpus", "gpu_hours", "scaling", "priority", "earliest_hour", "deadline_hour")


def from_mapping(
    mapping: Any,
    source: str = "mapping",
    lines: LineOf | None = None,
    mistakes: Iterable[Mistake] = (),
) -> AllocationScenario:
    """Turn the mapping of a scenario file into a scenario.

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

    Raises
    ------
    InputError
        With every mistake.
    """
    line: LineOf = lines or (lambda path: None)
    found = list(mistakes)
    if not isinstance(mapping, Mapping):
        rule = "must be a mapping that starts with kind: allocation"
        raise InputError(source, [*found, Mistake("", rule, as_found(mapping))])
    if _other_kind(mapping):
        rule = "must be allocation"
        raise InputError(source, [*found, Mistake("kind", rule, as_found(mapping["kind"]), line(("kind",)))])
    try:
        scenario = ScenarioFile.model_validate(as_mapping(mapping)).build()
    except PydanticCustomError as error:  # keys that are no words
        raise InputError(source, [*found, Mistake("", error.message())]) from None
    except ValidationError as error:
        located = mistakes_of(error, MODELS, _path_of, line)
        paths = [path for path, _ in located]
        found += [mistake for _, mistake in located]
        found += _conflicts_beside(mapping, paths, line)
    else:
        found += _mistakes(conflicts(scenario), line)
    if found:
        raise InputError(source, found)
    return scenario


def replace(scenario: AllocationScenario, changes: Mapping[str, Any]) -> AllocationScenario:
    """A copy with values changed by dotted path, validated like a file.

    A demand shape follows a changed horizon; explicit numbers must fit it. Numbers given for a
    demand, or for one step of it (``realtime.0.demand.3``), take the place of its shape.

    Parameters
    ----------
    scenario
        Where to start.
    changes
        New values by path, applied in order: ``{"cluster.gpus": 16, "batch.0.priority": 5}``.

    Raises
    ------
    InputError
        With every unknown path, or else every mistake of the result.
    """
    mapping = _to_mapping(scenario)
    unknown = []
    for path, value in changes.items():
        rule = _set(mapping, scenario, str(path), value)
        if rule:
            unknown.append(Mistake(shorten(str(path)), rule))
    if unknown:
        raise InputError("changes", unknown)
    return from_mapping(mapping, "changes")


def to_dict(scenario: AllocationScenario) -> dict[str, Any]:
    """The scenario as the mapping of its file (values that equal their default left out)."""
    tidy: dict[str, Any] = _tidied(_to_mapping(scenario), ())
    return tidy


def to_yaml(scenario: AllocationScenario) -> str:
    """The text of a scenario file that reads back to an equal scenario."""
    return write_yaml(to_dict(scenario), frozenset({"batch"}))


def fingerprint(scenario: AllocationScenario) -> str:
    """SHA-256 (hexadecimal) of the scenario's canonical form: equal scenarios, equal text.

    The form is JSON with sorted keys over every field, defaults and written-out demand included,
    whole numbers without a decimal point. What belongs to ranges of GPUs stands only where a job has one:
    older scenarios keep their fingerprint.
    """
    fields = asdict(scenario)
    for job in fields["batch"]:
        if job["max_gpus"] is None:
            del job["max_gpus"], job["scaling"]
    text = json.dumps(_canonical(fields), sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


def json_schema() -> dict[str, Any]:
    """The JSON Schema (draft 2020-12) of a scenario file, for editors."""
    schema = ScenarioFile.model_json_schema()
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **schema,
        "title": "gpuplan allocation scenario",
    }


def _other_kind(mapping: Mapping[Any, Any]) -> bool:
    """Whether the mapping is clearly a file of another kind, and its other keys mean nothing here."""
    kind = mapping.get("kind")
    return isinstance(kind, str) and kind != "allocation" and not did_you_mean(kind, ["allocation"])


def _path_of(location: tuple[str | int, ...]) -> tuple[str | int, ...]:
    """Pydantic's location without the name of the form that a demand or a job has."""
    if location[:1] == ("batch",):
        return location[:2] + location[3:]
    return location[:3] + location[4:] if location[2:3] == ("demand",) else location


def _conflicts_beside(
    mapping: Mapping[str, Any], paths: list[tuple[str | int, ...]], line: LineOf
) -> list[Mistake]:
    """Broken rules between the fields that are right."""

    def gpus(path: tuple[str | int, ...]) -> Any:
        row = as_list_or_empty(mapping["batch"])[path[1]]  # stays a job of its form
        return {"min": 1, "max": 1} if has_range(row) else 1

    try:
        rest = ScenarioFile.model_validate(salvage(mapping, paths, {**NEUTRAL, "batch.*.gpus": gpus})).build()
    except ValidationError:
        return []
    cluster = not any(path[:1] == ("cluster",) and path[1:2] in ((), ("gpus",)) for path in paths)
    horizon = not any(path[:1] == ("horizon",) and path[1:2] in ((), ("steps",)) for path in paths)
    return _mistakes(conflicts(rest, cluster, horizon), line)


def _mistakes(found: Iterable[Conflict], line: LineOf) -> list[Mistake]:
    return [Mistake(dotted(path), rule, value, line(path)) for path, rule, value in found]


def _to_mapping(scenario: AllocationScenario) -> dict[str, Any]:
    """The scenario as the mapping of its file, every field spelled out."""
    horizon = scenario.horizon
    return {
        "kind": "allocation",
        "name": scenario.name,
        "about": scenario.about,
        "cluster": _fields(scenario.cluster, ClusterFile.model_fields),
        "horizon": {"steps": horizon.steps, "step_hours": horizon.step_hours, "start": horizon.start},
        "objective": _fields(scenario.objective, ObjectiveFile.model_fields),
        "rules": _fields(scenario.rules, RulesFile.model_fields),
        "realtime": [_app_mapping(app) for app in scenario.realtime],
        "batch": [job_mapping(job) for job in scenario.batch],
    }


def job_mapping(job: BatchJob) -> dict[str, Any]:
    """The job as the row of its file, every field spelled out."""
    if job.max_gpus is None:
        return _fields(job, _JOB_KEYS)
    return {**_fields(job, _RANGED_KEYS), "gpus": {"min": job.gpus, "max": job.max_gpus}}


def _app_mapping(app: RealtimeApp) -> dict[str, Any]:
    mapping = _fields(app, _APP_KEYS)
    if app.shape is not None:
        mapping["demand"] = _fields(app.shape, ShapeFile.model_fields)
    return mapping


def _fields(value: Any, keys: Iterable[str]) -> dict[str, Any]:
    return {key: getattr(value, key) for key in keys}


def _tidied(value: Any, path: tuple[str | int, ...]) -> Any:
    """A value for people: without defaults and empty sections, numbers and hours as people write them."""
    if isinstance(value, Mapping):
        model = RangedBatchFile if pattern(path) == "batch.*" and has_range(value) else MODELS[pattern(path)]
        defaults = model.model_fields
        inner = ((key, _tidied(item, (*path, key))) for key, item in value.items())
        return {key: item for key, item in inner if not _is_default(item, defaults[key])}
    if isinstance(value, (list, tuple)):
        return [_tidied(item, (*path, index)) for index, item in enumerate(value)]
    if not isinstance(value, float):
        return value
    key = str(path[-1])
    return hours_text(value) if key.endswith(("_hours", "_hour")) or key == "hours" else neat(value)


def _is_default(value: Any, field: FieldInfo) -> bool:
    if field.is_required():
        return False
    if field.default_factory is not None:
        return not value
    default = list(field.default) if isinstance(field.default, tuple) else field.default
    return bool(value == default)


def _canonical(value: Any) -> Any:
    """A value whose JSON does not tell 3 from 3.0, nor a tuple from a list."""
    if isinstance(value, Mapping):
        return {key: _canonical(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_canonical(item) for item in value]
    return neat(value) if isinstance(value, float) else value


def _set(mapping: dict[str, Any], scenario: AllocationScenario, path: str, value: Any) -> str:
    """Set one value by its dotted path; the rule that an unknown path breaks, or nothing."""
    *parents, last = path.split(".")
    here: Any = mapping
    place: tuple[str | int, ...] = ()
    for part in parents:
        key, rule = _key(here, place, part)
        if key is None:
            return rule
        here[key] = here = _opened(here[key])
        place = (*place, key)
    if pattern(place) == "realtime.*.demand" and isinstance(here, dict) and last.isdecimal():
        here = list(scenario.realtime[int(place[1])].demand)  # one point of a shape: its numbers take over
        mapping["realtime"][place[1]]["demand"] = here
    key, rule = _key(here, place, last)
    if key is not None:
        if pattern((*place, key)) == "batch.*.gpus":
            _other_form(here, value)
        here[key] = value
    return rule


def _other_form(row: dict[str, Any], gpus: Any) -> None:
    """Say a job's work in the other form, where a range takes the place of its GPUs or a number that of its range.

    A number keeps the work: the duration becomes that on so many GPUs.
    """
    was, work, scaling = row["gpus"], row.get("gpu_hours"), row.get("scaling", 1)
    hours, size = row.get("hours"), number(gpus)
    if isinstance(gpus, Mapping) and not isinstance(was, Mapping):
        if isinstance(hours, float) and isinstance(was, int):
            row.setdefault("gpu_hours", was * hours)
            del row["hours"]
        if row.get("running_on") is None:
            row.pop("running_on", None)
    elif isinstance(was, Mapping) and size is not None and 0 < size <= MOST_GPUS and isinstance(work, float):
        least = number(was.get("min"))
        if least is not None and least >= 1 and isinstance(scaling, float):
            row.setdefault("hours", work / least * (least / size) ** scaling)
            del row["gpu_hours"], row["scaling"]


def _opened(value: Any) -> Any:
    """A copy of a mapping or list that may be written into."""
    if isinstance(value, Mapping):
        return dict(value)
    try:
        return list(as_list(value))
    except PydanticCustomError:
        return value


def _key(here: Any, place: tuple[str | int, ...], part: str) -> tuple[str | int | None, str]:
    """The key or index that `part` means in `here`, or None and the rule that it breaks."""
    if isinstance(here, list):
        if part.isascii() and part.isdecimal() and len(part) < 9 and int(part) < len(here):
            return int(part), ""
        return None, f"unknown path: {dotted(place)} has {len(here)} entries, counted from 0"
    if isinstance(here, dict):
        known = MODELS[pattern(place)].model_fields
        return (part, "") if part in known else (None, f"unknown path{did_you_mean(part, known)}")
    return None, f"unknown path: {dotted(place)} has no parts"
