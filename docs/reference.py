"""Writes the pages of the reference: public names, commands, policies and fields of files, all from the library."""

from __future__ import annotations

import argparse
import inspect
import json
from collections.abc import Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

#: What public names belong to, in reading order: heading, names.
GROUPS = {
    "Scenarios": (
        "load",
        "load_swf",
        "shipped",
        "AllocationScenario",
        "FairshareScenario",
        "PackingScenario",
    ),
    "A day in one plan": (
        *("plan", "compare", "Plan", "Comparison", "POLICIES"),
        *("certify", "take_apart", "sensitivity", "coverage_risk", "idle_windows"),
    ),
    "The day as it unfolds": ("roll", "RollingRun", "Days", "Errors", "end_of_world", "error_map"),
    "Forecasts": ("weekly_profile", "estimate_training", "estimate_quantization", "fit_durations"),
    "Budgets over weeks": ("simulate", "Run", "FAIRSHARE_POLICIES"),
    "Many models, little memory": (
        *("pack", "PackRun", "PACKING_PIECES", "estimate_memory", "Architecture"),
    ),
    "Other people's files": (
        "import_file",
        "import_history",
        "read_history",
        "Imported",
        "History",
        "InputError",
    ),
    "Sweeps, reports, explorers": (
        *("sweep", "Sweep", "report", "Report", "verify_report", "Verification"),
        *("report_notebook", "report_figures", "explore"),
    ),
    "Lessons": ("glossary", "check", "ask"),
}

#: What scenarios are made of, and what public functions give: heading, and modules with their names.
VALUES = {
    "Parts of a scenario of a day": {
        "gpuplan.cluster": ("Cluster",),
        "gpuplan.allocation.model": ("Horizon", "Objective", "Rules", "RealtimeApp", "BatchJob"),
    },
    "Parts of a scenario of weeks": {
        "gpuplan.fairshare.model": (
            *("Pool", "BudgetNode", "BudgetChange", "Contract", "Generate", "Behaviour", "Drain"),
        ),
        "gpuplan.fairshare.jobs": ("Jobs",),
    },
    "Parts of a scenario of tasks": {
        "gpuplan.packing.model": (
            *("Gpus", "Admission", "ServedModel", "Pieces", "Generate", "Preemption", "Contention", "Retry"),
        ),
        "gpuplan.packing.tasks": ("Tasks",),
    },
    "What functions give": {
        "gpuplan.loading": ("ShippedScenario",),
        "gpuplan.allocation.gain": ("GainApart",),
        "gpuplan.allocation.sensitivity": ("Sensitivity",),
        "gpuplan.allocation.rolling_studies": ("EndOfWorld", "ErrorMap"),
        "gpuplan.forecast.profile": ("WeeklyProfile",),
        "gpuplan.forecast.training": ("TrainingEstimate",),
        "gpuplan.forecast.quantization": ("QuantizationEstimate",),
        "gpuplan.forecast.durations": ("DurationModel",),
        "gpuplan.packing.estimates": ("MemoryEstimate",),
        "gpuplan.reports.figures": ("ReportFigures",),
        "gpuplan.reports.notebook": ("NotebookReport",),
        "gpuplan.reports.verify": ("Verdict",),
        "gpuplan.lessons.glossary": ("Glossary",),
        "gpuplan.lessons.exercise": ("Reply",),
        "gpuplan.inputs.errors": ("Mistake",),
    },
}

#: What plug-in policies are written with.
FOR_POLICIES = {
    "gpuplan.allocation.policies": ("Policy", "Assignment", "Effort", "Progress", "Proof"),
    "gpuplan.allocation.policies.base": ("by_priority", "with_reservation", "with_curves", "allocate"),
    "gpuplan.fairshare.policies": ("Policy",),
    "gpuplan.fairshare.engine": ("queue",),
    "gpuplan.packing.policies.base": ("Piece", "Placement", "Order", "Eviction"),
}


def pages() -> dict[str, str]:
    """The pages by the name of their file."""
    return {
        "reference-python.md": _python(),
        "reference-values.md": _values(),
        "reference-widgets.md": _widgets(),
        "reference-policies.md": _policies(),
        "reference-commands.md": _commands(),
        "reference-files.md": _files(),
    }


def write(folder: Path) -> None:
    """Write all of them into a folder."""
    for name, text in pages().items():
        (folder / name).write_text(text, encoding="utf-8")


# --------------------------------------------------------------------- Python


def _python() -> str:
    import gpuplan

    grouped = {name for names in GROUPS.values() for name in names}
    others = [name for name in gpuplan.__all__ if name not in grouped and name != "__version__"]
    groups = {**GROUPS, **({"More": tuple(others)} if others else {})}
    parts = [
        "# Public names of gpuplan\n\nEverything here is loaded when it is first used: `import gpuplan as gp`.\n"
    ]
    for heading, names in groups.items():
        parts.append(f"## {heading}\n")
        parts += [_documented("gpuplan", name) for name in names]
    return "\n".join(parts)


def _values() -> str:
    parts = ["# Parts and results\n\nWhat scenarios are made of, and what the public functions give.\n"]
    for heading, modules in VALUES.items():
        parts.append(f"## {heading}\n")
        parts += [_documented(module, name) for module, names in modules.items() for name in names]
    return "\n".join(parts)


def _widgets() -> str:
    import gpuplan_widgets

    parts = ["# Explorers and widgets\n\n`gp.explore` picks the explorer of a scenario's kind.\n"]
    return "\n".join([*parts, *(_documented("gpuplan_widgets", name) for name in gpuplan_widgets.__all__)])


def _documented(module: str, name: str) -> str:
    """The directive that shows a name with its docstring."""
    value = getattr(import_module(module), name)
    if inspect.isclass(value):
        own = module != "gpuplan_widgets"  # ipywidgets has many members of its own
        options = "\n   :members:\n   :exclude-members: __init__" if own else ""
        options += "\n   :show-inheritance:" if issubclass(value, Exception) else ""
        directive = f".. autoclass:: {module}.{name}{options}"
    elif callable(value):
        directive = f".. autofunction:: {module}.{name}"
    else:
        said = "Names, in the order of tables: " + ", ".join(f"``{one}``" for one in value)
        directive = f".. py:data:: {module}.{name}\n\n   {said}."
    return f"```{{eval-rst}}\n{directive}\n```\n"


# ------------------------------------------------------------------- policies


def _policies() -> str:
    from gpuplan.allocation import policies as plans
    from gpuplan.fairshare import policies as runs
    from gpuplan.packing.policies import KINDS

    parts = ["# Policies, word for word\n\nWhat each policy says of itself: exactly what it does.\n"]
    parts.append(_table("A day in one plan", "policy", [(one.name, one.about) for one in plans.ALL]))
    parts.append(_table("Budgets over weeks", "policy", [(one.name, one.about) for one in runs.ALL]))
    for kind, pieces in KINDS.items():
        rows = [(one.name, one.about) for one in pieces]
        parts.append(_table(f"Many models, little memory: {kind}", kind, rows))
    parts.append("## What policies are written with\n\nStep by step: [add a policy](add-a-policy.md).\n")
    for module, names in FOR_POLICIES.items():
        parts += [_documented(module, name) for name in names]
    return "\n".join(parts)


def _table(heading: str, first: str, rows: list[tuple[str, str]]) -> str:
    lines = [f"| `{_cell(name)}` | {_cell(about)} |" for name, about in rows]
    return "\n".join([f"## {heading}\n", f"| {first} | what it does |", "| --- | --- |", *lines, ""])


# ------------------------------------------------------------------- commands


def _commands() -> str:
    from gpuplan.cli import _parser

    parser = _parser()
    parts = [
        f"# Commands\n\n{_prose(parser.description)} Exit codes: 0 fine, 1 our fault, 2 the input's fault.\n"
    ]
    return "\n".join([*parts, *_of_parser(parser, 2)])


def _of_parser(parser: argparse.ArgumentParser, level: int) -> Iterator[str]:
    """Usage, words and options of a command, then the same of those below it."""
    below = [one for one in parser._actions if isinstance(one, argparse._SubParsersAction)]
    if not below:
        yield f"```text\n{_usage(parser)}\n```\n"
        rows = [_row(one) for one in parser._actions if "--help" not in one.option_strings]
        if rows:
            yield "\n".join(["| | |", "| --- | --- |", *rows, ""])
    for action in below:
        for command in action.choices.values():
            yield f"{'#' * level} {command.prog}\n\n{_prose(command.description)}\n"
            yield from _of_parser(command, level + 1)


def _usage(parser: argparse.ArgumentParser) -> str:
    """The usage, a line for each word of it, whatever the width of a terminal."""
    formatter = argparse.HelpFormatter(parser.prog, width=72)
    formatter.add_usage(parser.usage, parser._actions, parser._mutually_exclusive_groups, prefix="")
    return formatter.format_help().strip()


def _row(action: argparse.Action) -> str:
    value = "" if action.nargs == 0 else " " + str(action.metavar or action.dest.upper())
    names = ", ".join(f"`{option}{value}`" for option in action.option_strings)
    choices = "" if action.metavar or not action.choices else f" ({', '.join(map(str, action.choices))})"
    meaning = (action.help or "") % {"default": action.default, "prog": "gpuplan"} if action.help else ""
    return f"| {names or f'`{action.metavar or action.dest}`'} | {_cell(meaning + choices)} |"


# ---------------------------------------------------------------------- files


def _files() -> str:
    parts = [
        "# Fields of scenario files\n\nFrom the JSON Schemas that `gpuplan schema KIND` prints. Times and sizes are "
        "numbers in the unit of the field's name, or text with a unit (`90min`, `1.5h`, `7d`, `80GiB`).\n"
    ]
    for kind in ("allocation", "fairshare", "packing"):
        schema = import_module(f"gpuplan.{kind}.schema").json_schema()
        forms: dict[
            str, dict[tuple[str, str], None]
        ] = {}  # a field may have two, as a job of one or of several sizes
        for path, said, default in _fields(schema, schema, "", ()):
            forms.setdefault(path, {})[said, default] = None
        rows = []
        for path, each in forms.items():
            said = " Or: ".join(dict.fromkeys(said for said, _ in each))
            defaults = " or ".join(dict.fromkeys(default for _, default in each))
            rows.append(f"| `{path}` | {_cell(said)} | {defaults} |")
        table = "\n".join(["| field | what it says | default |", "| --- | --- | --- |", *rows])
        parts.append(f"## kind: {kind}\n\n{_prose(schema.get('description'))}\n\n{table}\n")
    return "\n".join(parts)


def _fields(
    schema: Mapping[str, Any], part: Mapping[str, Any], path: str, seen: tuple[str, ...]
) -> Iterator[tuple[str, str, str]]:
    """Path, description and default of every field, those of inner parts after their own."""
    needed = set(part.get("required", ()))
    for name, field in part.get("properties", {}).items():
        here = f"{path}.{name}" if path else name
        default = "needed" if name in needed else _default(field)
        yield here, str(field.get("description", "")), default
        for inner, many in _inner(field):
            if inner not in seen:
                yield from _fields(schema, schema["$defs"][inner], here + "[]" * many, (*seen, inner))


def _inner(field: Mapping[str, Any]) -> Iterator[tuple[str, bool]]:
    """Names of the parts that a field may hold, and whether it is a list of them."""
    for one in _forms(field):
        for holder, many in ((one, False), *((each, True) for each in _forms(one.get("items", {})))):
            if "$ref" in holder:
                yield holder["$ref"].rpartition("/")[2], many


def _forms(field: Mapping[str, Any]) -> tuple[Mapping[str, Any], ...]:
    """A field as it is, and the forms of which it may have one."""
    return (field, *field.get("anyOf", ()), *field.get("oneOf", ()))


def _default(field: Mapping[str, Any]) -> str:
    """The default as one would write it in a file; seconds where only text with a unit can be written."""
    if "default" not in field:
        return ""
    forms = _forms(field)
    timed = any("|min|" in str(form.get("pattern", "")) for form in forms)
    bare = any(form.get("type") in ("number", "integer") for form in forms)
    text = json.dumps(field["default"])
    return f"`{text}s`" if timed and not bare and text not in ("0", "null") else f"`{text}`"


def _prose(text: str | None) -> str:
    said = " ".join((text or "").split())
    return said[:1].upper() + said[1:]


def _cell(text: str) -> str:
    """Text of a table's cell: nothing in it is taken for Markdown or HTML."""
    for sign in "\\|*_<[":
        text = text.replace(sign, "\\" + sign)
    return " ".join(text.split())
