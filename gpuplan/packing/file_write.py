"""A packing scenario as the mapping and the text of its file, and a value of it by dotted path."""

from collections.abc import Mapping
from typing import Any

from gpuplan.inputs.errors import InputError, Mistake, did_you_mean, dotted
from gpuplan.inputs.mistakes import keys_of, pattern
from gpuplan.inputs.yaml_text import neat, write_yaml
from gpuplan.packing.file_fields import SIZES, shortest
from gpuplan.packing.file_models import MODELS
from gpuplan.packing.limits import MOST_ROWS
from gpuplan.packing.model import NEVER, SECOND, Draw, Generate, Gpus, PackingScenario, ServedModel

_FORMS = ("file", "generate", "rows")


def to_mapping(scenario: PackingScenario, with_tasks: bool = True) -> dict[str, Any]:
    """The scenario as the mapping of its file, every field spelled out (but for tasks, where they are not wanted)."""
    admission, preemption, pieces = scenario.admission, scenario.preemption, scenario.policy
    return {
        "kind": "packing",
        "name": scenario.name,
        "about": scenario.about,
        "gpus": _gpus(scenario.gpus),
        "admission": {
            "margin": neat(admission.margin / SECOND),
            "context_gib": _gib(admission.context_bytes),
            "count_context": admission.count_context,
            "on": admission.on,
        },
        "models": [_model(model) for model in scenario.models],
        "tasks": _tasks(scenario, with_tasks),
        "preemption": {
            "when": preemption.when,
            "threshold_s": _s(preemption.threshold_us),
            "save_s": _s(preemption.save_us),
            "restore_s": _s(preemption.restore_us),
        },
        "contention": {"model": scenario.contention.model, "beta": neat(scenario.contention.beta)},
        "retry": {"most": scenario.retry.most, "after_s": _s(scenario.retry.after_us)},
        "policy": {
            "placement": pieces.placement,
            "queue": pieces.order,
            "eviction": pieces.eviction,
            "depth": pieces.depth,
            "keep_alive_s": _s(pieces.keep_alive_us),
        },
        "until_s": _s(scenario.until_us),
    }


def _s(time_us: int | None) -> int | float | None:
    return None if time_us is None else neat(time_us / SECOND)


def _gib(size: int | None) -> int | float | None:
    return None if size is None else shortest(size, SIZES["GiB"])


def _gpus(gpus: Gpus) -> dict[str, Any]:
    return {
        "count": gpus.count,
        "memory_gib": _gib(gpus.memory_bytes),
        "host_gb_per_s": shortest(gpus.host_bytes_per_s, SIZES["GB"]),
        "disk_gb_per_s": shortest(gpus.disk_bytes_per_s, SIZES["GB"]),
        "release_s": _s(gpus.release_us),
        "max_tasks": gpus.max_tasks,
        "host_cache": gpus.host_cache,
    }


def _model(model: ServedModel) -> dict[str, Any]:
    return {
        "name": model.name,
        "declared_gib": _gib(model.declared_bytes),
        "actual_gib": _gib(model.actual_bytes),
        "context_gib": _gib(model.context_bytes),
        "workspace_gib": _gib(model.workspace_bytes),
        "kv_kib_per_token": shortest(model.kv_bytes_per_token, SIZES["KiB"]),
        "asleep_gib": _gib(model.asleep_bytes),
        "popularity": neat(model.popularity),
        "pinned": model.pinned,
        "resident": list(model.resident),
        "max_tasks": model.max_tasks,
        "gpus": model.gpus,
    }


def _draw(draw: Draw) -> Any:
    """A plain number where it is always drawn."""
    return {"mean": neat(draw.mean), "cv": neat(draw.cv)} if draw.cv else neat(draw.mean)


def _generate(asked: Generate) -> dict[str, Any]:
    return {
        "rate_per_s": neat(asked.rate_per_s),
        "count": asked.count,
        "service_s": _draw(asked.service),
        "arrival_cv": neat(asked.arrival_cv),
        "prediction_cv": neat(asked.prediction_cv),
        "tokens_in": _draw(asked.tokens_in),
        "tokens_out": _draw(asked.tokens_out),
        "high_priority_share": neat(asked.high_priority_share),
        "tenants": asked.tenants,
        "timeout_s": _s(asked.timeout_us),
        "seed": asked.seed,
    }


def _tasks(scenario: PackingScenario, with_tasks: bool) -> dict[str, Any]:
    if scenario.generate is not None and scenario.tasks is None:
        return {"generate": _generate(scenario.generate)}
    if not with_tasks:
        return {}
    if scenario.tasks_file is not None:
        return {"file": scenario.tasks_file}
    return {"rows": rows_of_tasks(scenario)}


def rows_of_tasks(scenario: PackingScenario) -> list[dict[str, Any]]:
    """The tasks as rows of a file, in order, values that equal their default left out.

    Raises
    ------
    InputError
        For more tasks than a scenario file may hold: they belong into a table (`gpuplan.packing.task_table`).
    """
    made = scenario.tasks
    if made is None:
        return []
    if len(made) > MOST_ROWS:
        rule = f"must be at most {MOST_ROWS:,} to stand in a scenario file; write_tasks makes a table of them"
        raise InputError("scenario", [Mistake("tasks", rule, len(made))])
    rows = []
    for k in range(len(made)):
        row: dict[str, Any] = {
            "arrival_s": _s(int(made.arrival_us[k])),
            "model": scenario.models[int(made.model[k])].name,
        }
        if made.tenant[k] != "everyone":
            row["tenant"] = made.tenant[k]
        if made.priority[k]:
            row["priority"] = int(made.priority[k])
        row["service_s"] = _s(int(made.service_us[k]))
        if made.predicted_us[k] != made.service_us[k]:
            row["predicted_s"] = _s(int(made.predicted_us[k]))
        row |= {
            key: int(getattr(made, key)[k]) for key in ("tokens_in", "tokens_out") if getattr(made, key)[k]
        }
        if made.deadline_us[k] < NEVER:
            row["deadline_s"] = _s(int(made.deadline_us[k]))
        rows.append(row)
    return rows


def tidied(scenario: PackingScenario) -> dict[str, Any]:
    """The mapping for people: without values that equal their default."""
    whole = to_mapping(scenario)
    usual = to_mapping(PackingScenario("", Gpus(0, 0), (), generate=Generate(0.0, -1, Draw(-1.0))))
    model = _model(ServedModel("", -1, -1))
    for section in ("gpus", "admission", "preemption", "contention", "retry", "policy"):
        whole[section] = _unlike(whole[section], usual[section])
    whole["models"] = [_tidy_model(row, model) for row in whole["models"]]
    if "generate" in whole["tasks"]:
        whole["tasks"] = {"generate": _unlike(whole["tasks"]["generate"], usual["tasks"]["generate"])}
    # an empty list of tasks must still be said
    return {key: value for key, value in whole.items() if value not in (None, "", [], {}) or key == "tasks"}


def _unlike(section: Mapping[str, Any], usual: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in section.items() if value != usual[key]}


def _tidy_model(row: Mapping[str, Any], usual: Mapping[str, Any]) -> dict[str, Any]:
    kept = _unlike(row, usual)
    if kept["actual_gib"] == kept["declared_gib"]:
        del kept["actual_gib"]
    return {"name": row["name"], **kept}


def written(scenario: PackingScenario) -> str:
    """The text of a scenario file: one line per model and per task."""
    parts = []
    for key, value in tidied(scenario).items():
        if key == "tasks" and "rows" in value:
            rows = write_yaml({"rows": value["rows"]}, frozenset({"rows"})).splitlines()[1:]
            parts.append(
                "tasks:\n  rows:\n" + "".join(f"  {line}\n" for line in rows)
                if value["rows"]
                else "tasks: {rows: []}\n"
            )
        elif key == "tasks" and "generate" in value:
            lines = write_yaml(value).splitlines()
            parts.append("tasks:\n" + "".join(f"  {line}\n" for line in lines))
        else:
            parts.append(write_yaml({key: value}, frozenset({"models"})))
    return "".join(parts)


def set_value(mapping: dict[str, Any], path: str, value: Any) -> str:
    """Set one value of a mapping with every field spelled out; the rule that an unknown path breaks, or nothing."""
    *parents, last = path.split(".")
    here: Any = mapping
    place: tuple[str | int, ...] = ()
    for part in parents:
        key, rule = _key(here, place, part)
        if key is None:
            return rule
        inner = here.get(key) if isinstance(here, dict) else here[key]
        here[key] = here = _opened(inner, (*place, key))
        place = (*place, key)
    key, rule = _key(here, place, last)
    if key is not None:
        here[key] = value
        if place[:1] == ("tasks",) or (place == () and key == "tasks"):
            _one_form(mapping, (*place, key))
    return rule


def _opened(value: Any, path: tuple[str | int, ...]) -> Any:
    """A copy of a mapping or list that may be written into; a section that is not there is an empty one."""
    model = MODELS.get(pattern(path))
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, (list, tuple)):
        return list(value)
    if model is not None and "mean" in model.model_fields:
        return {"mean": value, "cv": 0}
    return {} if value is None and model is not None else value


def _one_form(mapping: dict[str, Any], path: tuple[str | int, ...]) -> None:
    """Tasks have one form: the one that was set last."""
    if len(path) > 1 and path[1] in _FORMS:
        mapping["tasks"] = {path[1]: mapping["tasks"][path[1]]}


def _key(here: Any, place: tuple[str | int, ...], part: str) -> tuple[Any, str]:
    """The key or index that `part` means in `here`, or None and the rule that it breaks."""
    if isinstance(here, list):
        if part.isascii() and part.isdecimal() and len(part) < 9 and int(part) < len(here):
            return int(part), ""
        return None, f"unknown path: {dotted(place)} has {len(here)} entries, counted from 0"
    model = MODELS.get(pattern(place))
    if isinstance(here, dict) and model is not None:
        known = keys_of(model)
        return (part, "") if part in known else (None, f"unknown path{did_you_mean(part, known)}")
    return None, f"unknown path: {dotted(place)} has no parts"
