"""A fair-share scenario as the mapping and the text of its file, and a value of it by dotted path."""

import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from gpuplan.fairshare.file_jobs import rows_of_jobs
from gpuplan.fairshare.file_models import MODELS
from gpuplan.fairshare.model import DAY, Behaviour, BudgetNode, Contract, FairshareScenario, Generate, Pool
from gpuplan.inputs.errors import did_you_mean, dotted
from gpuplan.inputs.mistakes import keys_of, pattern
from gpuplan.inputs.spans import span_text
from gpuplan.inputs.yaml_text import neat, write_yaml

_FORMS = ("file", "generate", "jobs")

#: Characters; longer keys of YAML have to be marked.
_LONGEST_KEY = 1000


def to_mapping(scenario: FairshareScenario, with_jobs: bool = True) -> dict[str, Any]:
    """The scenario as the mapping of its file, every field spelled out (but for jobs, where they are not wanted)."""
    contract, behaviour = scenario.contract, scenario.behaviour
    typed = any(pool.gpu for pool in scenario.pools) or len(scenario.pools) != 1
    return {
        "kind": "fairshare",
        "name": scenario.name,
        "about": scenario.about,
        "cluster": None if typed else _pool(scenario.pools[0]),
        "pools": [{"gpu": pool.gpu, **_pool(pool)} for pool in scenario.pools] if typed else None,
        "window": span_text(scenario.window_s),
        "contract": {
            "max_min_runtime": span_text(contract.max_min_runtime_s),
            "checkpoint_every": span_text(contract.checkpoint_every_s),
            "restart_cost": span_text(contract.restart_cost_s),
            "hysteresis": contract.hysteresis,
        },
        "budget": [_budget(node) for node in scenario.budget],
        "budget_changes": [
            {"at": span_text(change.at_s), "weights": {path: neat(w) for path, w in change.weights}}
            for change in scenario.budget_changes
        ],
        "workload": _workload(scenario, with_jobs),
        "behaviour": asdict(behaviour),
        "drains": [
            {"node": drain.node, "from": span_text(drain.from_s), "repair": span_text(drain.repair_s)}
            for drain in scenario.drains
        ],
        "until": _until(scenario),
    }


def _until(scenario: FairshareScenario) -> str | None:
    """When the run stops; a generated one stops at its last day, which need not be said."""
    asked = scenario.generate if scenario.jobs is None else None
    if scenario.until_s is None or (asked is not None and scenario.until_s == round(asked.days * DAY)):
        return None
    return span_text(scenario.until_s)


def _pool(pool: Pool) -> dict[str, Any]:
    if pool.nodes == 1:
        return {"gpus": pool.gpus_per_node}
    return {"nodes": pool.nodes, "gpus_per_node": pool.gpus_per_node}


def _budget(node: BudgetNode) -> dict[str, Any]:
    row: dict[str, Any] = {"name": node.name, "weight": neat(node.weight)}
    if node.children:
        row["children"] = [_budget(child) for child in node.children]
    return row


def _workload(scenario: FairshareScenario, with_jobs: bool) -> dict[str, Any]:
    if scenario.generate is not None and scenario.jobs is None:
        asked = scenario.generate
        seconds = round(asked.days * DAY)
        days = neat(asked.days) if asked.days == round(asked.days) else span_text(seconds)
        rates = {"oversubscription": neat(asked.oversubscription), "debug_share": neat(asked.debug_share)}
        return {"generate": {"days": days, **rates, "seed": asked.seed}}
    if not with_jobs:
        return {}
    if scenario.jobs_file is not None:
        return {"file": scenario.jobs_file}
    return {"jobs": [] if scenario.jobs is None else rows_of_jobs(scenario.jobs)}


def tidied(scenario: FairshareScenario) -> dict[str, Any]:
    """The mapping for people: without values that equal their default."""
    whole = to_mapping(scenario)
    usual = FairshareScenario(
        "", (Pool(1, 1),), (), generate=Generate(), behaviour=Behaviour(), contract=Contract()
    )
    plain = to_mapping(usual)
    for section in ("contract", "behaviour"):
        whole[section] = {
            key: neat(value) if isinstance(value, float) else value
            for key, value in whole[section].items()
            if value != plain[section][key]
        }
    if whole["window"] == plain["window"]:
        del whole["window"]
    # an empty list of jobs, or a generator as it is by default, must still be said
    return {
        key: value for key, value in whole.items() if value not in (None, "", [], {}) or key == "workload"
    }


def written(scenario: FairshareScenario) -> str:
    """The text of a scenario file: one line per budget, per change of them, per pool, per drain and per job."""
    parts = []
    for key, value in tidied(scenario).items():
        if key == "budget":
            parts.append("budget:\n" + "".join(_budget_lines(row, "  ") for row in value))
        elif key == "budget_changes":
            parts.append("budget_changes:\n" + "".join(_change_line(row) for row in value))
        elif key == "workload" and "jobs" in value:
            rows = "".join(f"    - {_flow(row)}\n" for row in value["jobs"])
            parts.append(f"workload:\n  jobs:\n{rows}" if rows else "workload: {jobs: []}\n")
        else:
            parts.append(write_yaml({key: value}, frozenset({"pools", "drains"})))
    return "".join(parts)


def _budget_lines(row: Mapping[str, Any], indent: str) -> str:
    inner = {key: value for key, value in row.items() if key != "children"}
    if "children" not in row:
        return f"{indent}- {_flow(inner)}\n"
    first, *rest = write_yaml(inner).splitlines()
    head = f"{indent}- {first}\n" + "".join(f"{indent}  {line}\n" for line in rest)
    below = "".join(_budget_lines(child, indent + "    ") for child in row["children"])
    return f"{head}{indent}  children:\n{below}"


def _change_line(row: Mapping[str, Any]) -> str:
    """A change of budgets in one line; paths are written as text is, one too long for a plain key with a ``?``."""
    pairs = []
    for path, weight in row["weights"].items():
        key = _flow({"": path})[len("{: ") : -1]
        pairs.append(f"{'? ' if len(key) > _LONGEST_KEY else ''}{key}: {weight!r}")
    return f"  - {{at: {row['at']}, weights: {{{', '.join(pairs)}}}}}\n"


def _flow(row: Mapping[str, Any]) -> str:
    """A mapping in one line, as `write_yaml` writes the rows of a list."""
    return write_yaml({"rows": [row]}, frozenset({"rows"})).splitlines()[1].removeprefix("  - ")


def canonical(scenario: FairshareScenario) -> dict[str, Any]:
    """Every field but the jobs, as JSON that does not tell 3 from 3.0; what does not change a run is left out."""
    whole = to_mapping(scenario, with_jobs=False)
    whole["budget"] = [asdict(node) for node in scenario.budget]
    if not scenario.budget_changes:
        del whole["budget_changes"]
    return json.loads(json.dumps(whole), parse_float=lambda text: neat(float(text)))  # type: ignore[no-any-return]


def set_value(mapping: dict[str, Any], path: str, value: Any) -> str:
    """Set one value of a mapping with every field spelled out; the rule that an unknown path breaks, or nothing."""
    *parents, last = _parts(path)
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
        _one_form(mapping, (*place, key))
    return rule


def _parts(path: str) -> list[str]:
    """The keys of a dotted path; that of a budget may hold dots (``budget_changes.0.weights.language/v1.5``)."""
    parts = path.split(".")
    if parts[0] == "budget_changes" and len(parts) > 4 and parts[2] == "weights":
        return [*parts[:3], ".".join(parts[3:])]
    return parts


def _opened(value: Any, path: tuple[str | int, ...]) -> Any:
    """A copy of a mapping or list that may be written into; a section that is not there is an empty one."""
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, (list, tuple)):
        return list(value)
    return {} if value is None and _pattern(path) in MODELS else value


def _one_form(mapping: dict[str, Any], path: tuple[str | int, ...]) -> None:
    """The workload, and the cluster, have one form: the one that was set last."""
    if path[:1] == ("workload",) and len(path) > 1 and path[1] in _FORMS:
        mapping["workload"] = {path[1]: mapping["workload"][path[1]]}
    cluster = mapping["pools"][path[1]] if path[:1] == ("pools",) and len(path) == 3 else mapping["cluster"]
    if (
        path[0] in ("cluster", "pools")
        and isinstance(cluster, dict)
        and cluster.get(str(path[-1])) is not None
    ):
        for key in {"gpus": ("nodes", "gpus_per_node"), "nodes": ("gpus",), "gpus_per_node": ("gpus",)}.get(
            str(path[-1]), ()
        ):
            cluster.pop(key, None)
    if path[:1] == ("pools",) and mapping["pools"] is not None:
        mapping["cluster"] = None
    if path[:1] == ("cluster",) and mapping["cluster"] is not None:
        mapping["pools"] = None


def _pattern(path: tuple[str | int, ...]) -> str:
    text = pattern(path)
    return "budget.*" if text.startswith("budget.*") and isinstance(path[-1], int) else text


def _key(here: Any, place: tuple[str | int, ...], part: str) -> tuple[Any, str]:
    """The key or index that `part` means in `here`, or None and the rule that it breaks."""
    if isinstance(here, list):
        if part.isascii() and part.isdecimal() and len(part) < 9 and int(part) < len(here):
            return int(part), ""
        return None, f"unknown path: {dotted(place)} has {len(here)} entries, counted from 0"
    model = MODELS.get(_pattern(place))
    if isinstance(here, dict) and _pattern(place) == "budget_changes.*.weights":
        return part, ""  # whether there is such a budget is asked later
    if isinstance(here, dict) and model is not None:
        known = keys_of(model)
        return (part, "") if part in known else (None, f"unknown path{did_you_mean(part, known)}")
    return None, f"unknown path: {dotted(place)} has no parts"
