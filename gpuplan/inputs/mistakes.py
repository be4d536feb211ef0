"""From pydantic's errors to mistakes that people can read, and on past them to find the rest."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from pydantic import BaseModel, ValidationError

from gpuplan.inputs.errors import MISSING, Mistake, dotted, unknown_key
from gpuplan.inputs.fields import RULE, number
from gpuplan.inputs.yaml_file import Plain, ValuePath

#: Finds the line of a path, where the input is a file.
LineOf = Callable[[ValuePath], int | None]

_RULES = {
    "missing": "must be given",
    "model_type": "must be a mapping (keys with values)",
    "dict_type": "must be a mapping (keys with values)",
    "tuple_type": "must be a list",
}


def pattern(path: ValuePath) -> str:
    """The path with a star for every row: ``batch.*.gpus``."""
    return ".".join("*" if isinstance(part, int) else part for part in path)


def keys_of(model: type[BaseModel]) -> list[str]:
    """The keys of a model as they are written (``from``, which cannot be the name of a field)."""
    return [field.alias or name for name, field in model.model_fields.items()]


def as_found(value: Any) -> Any:
    """A value as it should be shown: an unquoted number of a file as that number."""
    if not isinstance(value, Plain):
        return value
    if value.is_null:
        return None
    found = number(value)
    return str(value) if found is None else found


def mistakes_of(
    error: ValidationError,
    models: Mapping[str, type[BaseModel]],
    path_of: Callable[[ValuePath], ValuePath],
    line: LineOf,
) -> list[tuple[ValuePath, Mistake]]:
    """The mistakes behind a validation error, each with its path.

    Parameters
    ----------
    error
        What pydantic raised.
    models
        The model at each `pattern` of a path, for suggestions.
    path_of
        Turns pydantic's location into the path in the input.
    line
        Finds the line of a path.
    """
    found = []
    for part in error.errors(include_url=False):
        path = path_of(part["loc"])
        kind, value = part["type"], as_found(part["input"])
        if kind == "extra_forbidden":
            model = models.get(pattern(path[:-1]))
            rule, value = unknown_key(path[-1], keys_of(model) if model else ()), MISSING
        elif kind == "missing":
            rule, value = _RULES[kind], MISSING
        elif kind == "too_long":
            rule, value = f"must have at most {part['ctx']['max_length']:,} rows", MISSING
        else:
            rule = part["ctx"]["rule"] if kind == RULE else _RULES.get(kind, part["msg"])
        found.append((path, Mistake(dotted(path), rule, value, line(path))))
    return found


def salvage(
    mapping: Mapping[str, Any], paths: Iterable[ValuePath], neutral: Mapping[str, Any]
) -> dict[str, Any]:
    """A copy of `mapping` without what is wrong in it, so that rules between fields can be tried.

    Parameters
    ----------
    mapping
        The input.
    paths
        Paths of the wrong values.
    neutral
        Stand-ins for required values, by `pattern`; a callable one gets the path. What has none
        is left out, which gives it its default.
    """
    whole = dict(mapping)
    copied: dict[ValuePath, Any] = {(): whole}
    for path in paths:
        slot = path[:3] if len(path) > 1 and isinstance(path[1], int) else path[:2]
        here = whole
        for depth, part in enumerate(slot[:-1], start=1):
            if slot[:depth] not in copied:
                child = here[part]  # type: ignore[index]  # a row's number in a list
                copied[slot[:depth]] = dict(child) if isinstance(child, Mapping) else list(child)
                here[part] = copied[slot[:depth]]  # type: ignore[index]
            here = copied[slot[:depth]]
        stand_in = neutral.get(pattern(slot))
        if stand_in is not None:
            here[slot[-1]] = stand_in(slot) if callable(stand_in) else stand_in  # type: ignore[index]
        elif isinstance(here, dict):
            here.pop(slot[-1], None)  # type: ignore[arg-type]
    return whole
