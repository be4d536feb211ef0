"""Scenarios of traffic: files of a monitoring system as the real-time apps of a day."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from gpuplan.allocation.model import AllocationScenario, Horizon
from gpuplan.cluster import Cluster
from gpuplan.forecast.traffic import TrafficHistory
from gpuplan.inputs.account import Account
from gpuplan.inputs.errors import InputError, Mistake
from gpuplan.traces.anonymise import without_values
from gpuplan.traces.days import day_named, text_of
from gpuplan.traces.formats import Format, format_named, holds_dcgm, stem_of
from gpuplan.traces.import_file import Imported
from gpuplan.traces.names import safe_names
from gpuplan.traces.options import fitting
from gpuplan.traces.to_scenario import HONESTY, Choices
from gpuplan.traces.to_scenario_traffic import (
    GPUS,
    Service,
    apps_of,
    busiest_traffic_day,
    in_zone,
    same_zone,
    span_of_day,
)
from gpuplan.traces.wish import Wish


def beside_jobs(
    histories: Sequence[tuple[TrafficHistory, Account | None]],
    span: tuple[int, int],
    wish: Wish,
    service: Service,
    zone: str | None,
    said: Choices,
) -> tuple[Any, ...]:
    """The apps of the traffic beside jobs."""
    if not histories:
        return ()
    found = [in_zone(history, zone) for history, _ in histories]
    if (same_zone(found) is None) != (zone is None):
        rule = "must be named: the times of the jobs or those of the traffic have none"
        raise InputError("import", [Mistake("zone", rule)])
    made = apps_of(found, span, 60 * wish.step_minutes, service, zone)
    for topic, sentence in made.choices.said.items():
        said.say(topic, sentence)
    return made.apps


def traffic_of(
    paths: Iterable[str | Path],
    format: Format | None,
    zone: str | None,
    unit: str | None,
    by: str | None,
    options: Mapping[str, Any] | None = None,
) -> list[tuple[TrafficHistory, Account | None]]:
    """The histories of files of traffic, names unique and safe, each with the account of its file."""
    found: list[TrafficHistory] = []
    kinds: list[Format] = []
    for path in paths:
        kind = format_named(path, format)
        kinds.append(kind)
        if kind == "prometheus":
            fitting(None, options or {}, Path(path).name)
            found += _prometheus(path, unit, by)
        elif kind == "hourly":
            from gpuplan.traces.hourly import read_hourly

            told = {"unit": unit or "requests/s", "name": stem_of(path), "timezone": zone}
            found.append(
                read_hourly(path, **{**told, **fitting(read_hourly, options or {}, Path(path).name)})
            )
        else:
            rule = "must hold traffic here (prometheus, hourly)"
            raise InputError(Path(path).name, [Mistake("format", rule, kind)])
    if by is not None and "prometheus" not in kinds:
        rule = "is a label of Prometheus: a table of traffic (hourly) has none"
        raise InputError("import", [Mistake("by", rule, by)])
    taken: set[str] = set()
    for place, history in enumerate(found):
        name = safe_names([history.name], taken=taken)[history.name]
        taken.add(name)
        found[place] = replace(history, name=name)
    seen: set[int] = set()
    pairs = []
    for history in found:
        new = history.account is not None and id(history.account) not in seen
        seen.add(id(history.account))
        pairs.append((history, history.account if new else None))
    return pairs


def _prometheus(path: str | Path, unit: str | None, by: str | None) -> list[TrafficHistory]:
    """An app for each value of a label; metrics of GPUs (DCGM) are joined by GPU, and count those that were held."""
    if holds_dcgm(path):
        return _held(path, unit, by)
    from gpuplan.traces.prometheus import read_prometheus

    metrics = read_prometheus(path)
    named = {stem_of(path): metrics} if by is None else metrics.by(by)
    return [
        part.combined("sum", unit or "requests/s", name=name or "unlabelled") for name, part in named.items()
    ]


def _held(path: str | Path, unit: str | None, by: str | None) -> list[TrafficHistory]:
    from gpuplan.traces.dcgm import read_dcgm
    from gpuplan.traces.dcgm_metrics import HOLDERS

    if unit not in (None, GPUS):
        rule = f"must be {GPUS}, or left out: metrics of GPUs tell how many were held"
        raise InputError(Path(path).name, [Mistake("unit", rule, unit)])
    if by is not None and by not in HOLDERS:
        rule = f"must be one of {', '.join(HOLDERS)} for metrics of GPUs"
        raise InputError(Path(path).name, [Mistake("by", rule, by)])
    readings = read_dcgm(path)
    if by is None:
        return [replace(readings.gpus_held(), name=stem_of(path))]
    return list(readings.gpus_held_by(by).values())  # type: ignore[arg-type]  # it is one of HOLDERS


def without_names(
    pairs: Sequence[tuple[TrafficHistory, Account | None]],
) -> list[tuple[TrafficHistory, Account | None]]:
    """Histories of traffic and the accounts of their files, numbered in the place of names."""
    files = 0
    found: list[tuple[TrafficHistory, Account | None]] = []
    for k, (history, account) in enumerate(pairs, 1):
        if account is not None:
            files += 1
            account = replace(account, source=f"traffic file {files}")
        found.append((replace(history, name=f"app-{k}"), account))
    return found


def import_traffic(
    paths: Sequence[str | Path],
    format: Format | None,
    zone: str | None,
    unit: str | None,
    by: str | None,
    service: Service,
    wish: Wish,
    options: Mapping[str, Any] | None = None,
) -> Imported:
    """An allocation scenario of traffic alone: the apps of a day."""
    if wish.kind != "allocation":
        raise InputError(
            "import", [Mistake("kind", "must be allocation: traffic is planned for a day", wish.kind)]
        )
    _only_traffic(wish)
    try:
        pairs = traffic_of(paths, format, zone, unit, by, options)
    except InputError as error:
        raise (without_values(error, "the file of traffic") if wish.anonymise else error) from None
    if wish.anonymise:
        pairs = without_names(pairs)
    histories = [in_zone(history, zone) for history, _ in pairs]
    clock = same_zone(histories)
    day = busiest_traffic_day(histories) if wish.day is None else day_named(wish.day)
    span = span_of_day(day, clock)
    said = Choices()
    how = "the day with the most traffic of those known" if wish.day is None else "as asked"
    said.say(
        "Day", f"{day.isoformat()}, {how}, by the {f'clock of {clock}' if clock else 'clock on the wall'}."
    )
    step_s = 60 * wish.step_minutes
    made = apps_of(histories, span, step_s, service, clock)
    for topic, sentence in made.choices.said.items():
        said.say(topic, sentence)
    cluster = _cluster_of(wish, np.array([app.demand for app in made.apps]), said)
    scenario = AllocationScenario(
        name=wish.name or f"{'traffic' if wish.anonymise else stem_of(paths[0])}-{day.isoformat()}",
        about=" ".join(said.lines())[:3_900],
        cluster=cluster,
        horizon=Horizon(len(made.apps[0].demand), step_s, text_of(span[0], clock)[:16]),
        realtime=made.apps,
    )
    accounts = [account for _, account in pairs if account is not None]
    first = replace(accounts[0], rules=(*accounts[0].rules, *said.lines(), HONESTY))
    return Imported(scenario.replace({}), first, dict(said.said), None, span[0], (), tuple(accounts[1:]))


def _only_traffic(wish: Wish) -> None:
    """Refuse choices about jobs."""
    usual = Wish()
    mistakes = [
        Mistake(name, "is about jobs, and traffic alone has none")
        for name in ("priority", "ranks", "sizes", "every", "before")
        if getattr(wish, name) != getattr(usual, name)
    ]
    if mistakes:
        raise InputError("import", mistakes)


def _cluster_of(wish: Wish, demand: Any, said: Choices) -> Cluster:
    """The cluster as asked, or as large as the highest step needs."""
    node = wish.gpus_per_node
    if wish.gpus is not None or wish.nodes is not None:
        gpus, how = wish.gpus or (wish.nodes or 1) * (node or 1), "as asked"
    else:
        gpus, how = max(1, int(demand.sum(axis=0).max())), "inferred: the most that all apps want in a step"
        if node:
            gpus = -(-gpus // node) * node
    said.say("Cluster", f"{gpus:,} GPUs, {how}.")
    return Cluster(gpus, node)
