"""The front door for other people's files: read a history, or make a scenario of one, whatever its format."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from gpuplan.forecast.traffic import TrafficHistory
from gpuplan.inputs.account import Account
from gpuplan.inputs.errors import InputError, Mistake, did_you_mean
from gpuplan.traces.anonymise import RULE_BY_KEY, RULE_BY_ORDER, anonymised, without_values
from gpuplan.traces.formats import Format, format_named, is_json, is_pai, own_columns, stem_of
from gpuplan.traces.history import UNREADABLE, History
from gpuplan.traces.import_file import Imported
from gpuplan.traces.importing_traffic import beside_jobs, import_traffic, traffic_of, without_names
from gpuplan.traces.names import mapped, safe_names
from gpuplan.traces.options import fitting
from gpuplan.traces.to_scenario import Choices, priorities_of, span_of
from gpuplan.traces.to_scenario_day import day_scenario
from gpuplan.traces.to_scenario_span import fairshare_of
from gpuplan.traces.to_scenario_traffic import Service
from gpuplan.traces.wish import Budget, Wish

#: Told of bytes done and bytes in all.
Progress = Callable[[int, int], None]

#: Names that a sentence lists; the rest are counted.
_LISTED = 5

#: Formats of jobs.
_JOBS = ("slurm", "swf", "jobs")


def read_history(
    path: str | Path,
    format: Format | None = None,
    *,
    zone: str | None = None,
    strict: bool = True,
    progress: Progress | None = None,
    **options: Any,
) -> History:
    """Read a file of jobs: Slurm's ``sacct``, a workload log (SWF), or a table of jobs.

    Parameters
    ----------
    path
        The file, plain or gzip.
    format
        ``"slurm"``, ``"swf"`` or ``"jobs"``; None: told by its name and its first line.
    zone
        Zone of times that are written without one, such as ``"Europe/Berlin"``.
    strict
        Whether rows that cannot be read are an error; otherwise they are left out and counted.
    progress
        Told of bytes done and bytes in all.
    **options
        Passed on to the reader of the format.

    Raises
    ------
    InputError
        With every row that cannot be read: its line, its column, its text.
    """
    return _history(path, format, zone, strict, progress, options)[0]


def _history(
    path: str | Path,
    format: Format | None,
    zone: str | None,
    strict: bool,
    progress: Progress | None,
    options: Mapping[str, Any],
) -> tuple[History, int | None]:
    """The history, and GPUs of the cluster where the file tells them."""
    kind = format_named(path, format)
    options, source = dict(options), Path(path).name
    as_of = options.pop("as_of", None)
    if as_of is not None and (kind == "swf" or (kind == "jobs" and not is_json(path))):
        rule = "is for sacct and for Philly's list of jobs"
        raise InputError(source, [Mistake("as_of", rule, as_of)])
    if kind == "swf":
        if zone is not None or options:
            rule = "must be left out: a workload log says its own"
            raise InputError(source, [Mistake(next(iter(options), "zone"), rule)])
        from gpuplan.traces.swf_history import read_swf_history

        return read_swf_history(path, strict=strict, progress=progress)
    if "mapping" in options and kind == "jobs" and own_columns(path):
        rule = "must be left out: the columns of this format are its own"
        raise InputError(source, [Mistake("columns", rule)])
    told: dict[str, Any] = {"strict": strict, "progress": progress}
    if kind == "slurm":
        from gpuplan.traces.slurm import read_sacct

        return read_sacct(path, zone=zone, as_of=as_of, **told, **fitting(read_sacct, options, source)), None
    if kind == "jobs" and is_json(path):
        from gpuplan.traces.philly_attempts import read_philly_attempts

        options = fitting(read_philly_attempts, options, source)
        return read_philly_attempts(path, zone=zone, snapshot=as_of, **told, **options), None
    if kind == "jobs" and is_pai(path):
        from gpuplan.traces.pai import read_pai

        if zone is not None:
            raise InputError(source, [Mistake("zone", "must be left out: PAI has no dates")])
        return read_pai(path, **told, **fitting(read_pai, options, source)), None
    if kind == "jobs":
        from gpuplan.traces.jobs_table import read_jobs

        return read_jobs(path, zone=zone, **told, **fitting(read_jobs, options, source)), None
    rule = "must hold jobs here (slurm, swf, jobs)"
    raise InputError(Path(path).name, [Mistake("format", rule, kind)])


def import_file(
    path: str | Path | Sequence[str | Path],
    format: Format | None = None,
    *,
    zone: str | None = None,
    strict: bool = True,
    progress: Progress | None = None,
    traffic: str | Path | Sequence[str | Path] = (),
    unit: str | None = None,
    by: str | None = None,
    service: Service | None = None,
    options: Mapping[str, Any] | None = None,
    **choices: Any,
) -> Imported:
    """Make a scenario of other people's files.

    Parameters
    ----------
    path
        A file of jobs, or files of traffic.
    format
        One of `gpuplan.traces.formats.FORMATS`; None: told by its name and its first line.
    zone, strict, progress
        As in `read_history`.
    traffic
        Files of traffic whose apps share the day of the jobs (allocation).
    unit
        Unit of the traffic, such as ``"requests/s"``.
    by
        Label of Prometheus whose values are apps of their own; None: all series of a file are one app.
    service
        How traffic becomes GPUs.
    options
        Passed on to the reader of the format.
    **choices
        As in `gpuplan.traces.wish.Wish`: ``kind``, ``day``, ``first``, ``last``, ``gpus``, ``budget``, ``anonymise``,
        ...

    Raises
    ------
    InputError
        With every row that cannot be read, or with every choice that cannot be.
    """
    paths, beside = _paths("files", path), _paths("traffic", traffic)
    if not paths:
        raise InputError("import", [Mistake("files", "must name at least one")])
    kind = format_named(paths[0], format)
    if kind == "scenario":
        rule = "is a scenario already: gpuplan.load opens it"
        raise InputError(Path(paths[0]).name, [Mistake("", rule)])
    if kind not in _JOBS:
        wish = _wish({"kind": "allocation", **choices})
        told = service or Service()
        return import_traffic([*paths, *beside], format, zone, unit, by, told, wish, options)
    options = dict(options or {})
    if len(paths) == 2 and is_pai(paths[0]):
        options["jobs"] = paths.pop()
    if len(paths) > 1:
        rule = "must be one file of jobs; put several exports into one first (their headers once)"
        raise InputError("import", [Mistake("files", rule, len(paths))])
    wish = _wish(choices)
    if beside and wish.kind != "allocation":
        raise InputError("import", [Mistake("traffic", "is for an allocation (kind allocation)")])
    try:
        history, hint = _history(paths[0], kind, zone, strict, progress, options)
        histories = traffic_of(beside, None, zone, unit, by)
    except InputError as error:
        raise (without_values(error, f"the {kind} file") if wish.anonymise else error) from None
    name = "cluster" if wish.anonymise else stem_of(paths[0])
    return _of_jobs(history, hint, wish, name, kind, histories, service or Service())


def import_history(history: History, *, name: str | None = None, **choices: Any) -> Imported:
    """Make a scenario of a history that was read before.

    Parameters
    ----------
    history
        Of `read_history`, or of one's own (`gpuplan.traces.history.history`).
    name
        Of the scenario; None: that of the file.
    **choices
        As in `import_file`.

    Raises
    ------
    InputError
        With every choice that cannot be, or where the span has no job.
    """
    wish = _wish({**choices, "name": name})
    return _of_jobs(history, None, wish, stem_of(history.source), "jobs", (), Service())


def _paths(name: str, given: Any) -> list[str | Path]:
    """One path or several as a list."""
    found = [given] if isinstance(given, (str, Path)) else given
    if not isinstance(found, (list, tuple)) or not all(isinstance(path, (str, Path)) for path in found):
        raise InputError("import", [Mistake(name, "must be a path, or a list of paths", given)])
    return list(found)


def _wish(choices: Mapping[str, Any]) -> Wish:
    known = [name for name in Wish.__slots__ if not name.startswith("_")]
    unknown = [name for name in choices if name not in known]
    if unknown:
        raise InputError(
            "import",
            [Mistake(name, f"unknown choice{did_you_mean(name, known)}") for name in unknown],
        )
    return Wish(**choices).checked()


def _of_jobs(
    history: History,
    hint: int | None,
    wish: Wish,
    name: str,
    kind: Format,
    histories: Sequence[tuple[TrafficHistory, Account | None]],
    service: Service,
) -> Imported:
    """A scenario of the jobs of a history; ranks and weights are by the names of the file."""
    said = Choices()
    priority = priorities_of(history, wish, said)
    codes: dict[str, dict[str, str]] = {}
    if wish.anonymise:
        history, codes = anonymised(history, f"the {kind} file", wish.key)
        histories = without_names(histories)
        said.say("Names", RULE_BY_ORDER if wish.key is None else RULE_BY_KEY)
    apps: tuple[Any, ...] = ()
    if wish.kind == "allocation":
        span = span_of(history, wish, said)
        apps = beside_jobs(histories, span, wish, service, history.zone, said)
    history = _named(history, [app.name for app in apps], said)
    if history.mistakes:
        lines = int((history.reason == UNREADABLE).sum()) or len(
            {mistake.line for mistake in history.mistakes}
        )
        said.say("Rows with mistakes", f"{lines:,} are left out, as asked.")
    common: dict[str, Any] = {"hint": hint, "priority": priority, "choices": said}
    told = tuple(account for _, account in histories if account is not None)
    if wish.kind == "allocation":
        day, account, _ = day_scenario(history, wish, name, realtime=apps, span=span, **common)
        return Imported(day, account, dict(said.said), history, span[0], history.mistakes, told)
    usual: Budget = "team/user" if kind == "swf" else "team"
    weeks, account, work = fairshare_of(history, wish, name, usual_budget=usual, codes=codes, **common)
    return Imported(weeks, account, dict(said.said), history, work.first_s, history.mistakes)


def _named(history: History, apps: Sequence[str], said: Choices) -> History:
    """The history with safe names of jobs; those that an app has already become ``name (job)``, and that is said."""
    names = safe_names(history.job.tolist())
    meant = sorted(name for name, safe in names.items() if safe in apps)
    taken = {*names.values(), *apps}
    for name in meant:
        own = f"{names[name]} (job)"
        names[name] = safe_names([own], taken=taken)[own]
    if meant:
        listed = ", ".join(names[name] for name in meant[:_LISTED])
        more = f" and {len(meant) - _LISTED:,} more" if len(meant) > _LISTED else ""
        said.say("Names", f"An app has the name of a job, which is another here: {listed}{more}.")
    return replace(history, job=_read_only(mapped(history.job, names)))


def _read_only(column: Any) -> Any:
    column.flags.writeable = False
    return column
