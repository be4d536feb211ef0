"""The command ``gpuplan import``: other people's files as a scenario, with an account of every row."""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpuplan.cli import Refusal
from gpuplan.text import aligned, printable

if TYPE_CHECKING:
    from gpuplan.inputs.account import Account
    from gpuplan.inputs.errors import InputError
    from gpuplan.traces.import_file import Imported
    from gpuplan.traces.to_scenario_traffic import Service

#: Formats, as on the command line.
FORMATS = ("slurm", "swf", "jobs", "prometheus", "hourly")

#: Choices that are passed on as they are; None: not given.
_CHOICES = (
    "kind", "day", "first", "last", "gpus", "nodes", "gpus_per_node", "budget", "priority", "sizes",
    "step_minutes", "every", "name",
)  # fmt: skip

#: Rows with mistakes that are named where the import goes on without them; the rest are counted.
_NAMED = 20

_MEGABYTE = 1_000_000


def add_import(parser: argparse.ArgumentParser) -> None:
    """Give the command its arguments."""
    parser.add_argument(
        "format",
        choices=FORMATS,
        help="slurm: sacct, parsable; swf: a workload log; jobs: a table of jobs (CSV, Parquet, Philly's JSON); "
        "prometheus: an answer of its HTTP API (traffic); hourly: a table of traffic (CSV)",
    )
    parser.add_argument(
        "files", nargs="+", type=Path, metavar="FILE", help="a file of jobs, or files of traffic"
    )
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        required=True,
        metavar="OUT",
        help="the scenario file to write (.yaml); jobs, and what ran as it was, go beside it (replaces older ones)",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of tables")
    parser.add_argument(
        "--keep-going", action="store_true", help="leave out rows that cannot be read, and say which"
    )
    _add_span(parser.add_argument_group("which part"))
    _add_cluster(parser.add_argument_group("the cluster (what is not given is inferred, and said)"))
    _add_people(parser.add_argument_group("who and how important"))
    _add_traffic(parser.add_argument_group("traffic"))
    _add_reading(parser.add_argument_group("reading"))


def _add_span(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--kind",
        choices=("fairshare", "allocation"),
        help="weeks under queues and budgets, or one day planned as a whole (default: fairshare; traffic: allocation)",
    )
    group.add_argument("--day", metavar="DATE", help="one day (allocation: the one with the most work)")
    group.add_argument(
        "--from", dest="first", metavar="TIME", help="beginning of the span: a date, a date and time, or 7d"
    )
    group.add_argument("--to", dest="last", metavar="TIME", help="end of the span, not in it")
    group.add_argument("--zone", metavar="ZONE", help="zone of times without one, as in Europe/Berlin")
    group.add_argument("--step-minutes", type=_whole, metavar="N", help="length of a step of a day (60)")
    group.add_argument("--every", type=_whole, metavar="N", help="every Nth job only")
    group.add_argument(
        "--only-submitted",
        action="store_true",
        help="without the rest of what ran or waited at the beginning",
    )


def _add_cluster(group: argparse._ArgumentGroup) -> None:
    group.add_argument("--gpus", type=_whole, metavar="N", help="GPUs of the cluster")
    group.add_argument("--nodes", type=_whole, metavar="N", help="nodes of the cluster")
    group.add_argument("--gpus-per-node", type=_whole, metavar="N", help="GPUs of a node")
    group.add_argument("--types", action="store_true", help="a pool for each GPU type (fair share)")
    group.add_argument(
        "--sizes",
        choices=("up", "down"),
        help="GPUs that are no power of two (allocation): up, the hours stay (default); down, the GPU-hours stay",
    )


def _add_people(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--budget",
        choices=("auto", "team", "user", "team/user", "partition", "qos", "none"),
        help="whose budgets (default: what the file names)",
    )
    group.add_argument("--weights", metavar="W", help="equal (default), used, or name=weight,name=weight")
    group.add_argument(
        "--priority",
        choices=("none", "recorded", "qos", "partition", "team", "user"),
        help="where priorities come from (default: none, all equal)",
    )
    group.add_argument(
        "--rank", metavar="R", help="name=priority,... or names from the most important on: high,normal,low"
    )
    group.add_argument("--min-runtime", metavar="TIME", help="declared minimum run time of jobs (1h)")
    group.add_argument("--not-resumable", action="store_true", help="jobs lose their work when preempted")
    group.add_argument("--name", metavar="NAME", help="name of the scenario")
    group.add_argument(
        "--anonymise",
        action="store_true",
        help="codes in place of the names of users, teams, jobs, partitions and QOS, in files and messages",
    )
    group.add_argument(
        "--key-file", type=Path, metavar="FILE", help="a secret that makes codes the same in every import"
    )


def _add_traffic(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--traffic",
        type=Path,
        action="append",
        default=[],
        metavar="FILE",
        help="traffic beside jobs (allocation)",
    )
    group.add_argument(
        "--unit", metavar="UNIT", help="unit of the traffic (requests/s); GPUs: it counts them"
    )
    group.add_argument("--by", metavar="LABEL", help="an app for each value of a label")
    group.add_argument(
        "--per-gpu", type=_positive, metavar="X", help="traffic that one GPU carries at full load"
    )
    group.add_argument("--replica-gpus", type=_whole, default=1, metavar="N", help="GPUs of a replica (1)")
    group.add_argument("--target-load", type=_positive, default=1.0, metavar="S", help="planned load (1)")
    group.add_argument("--app-priority", type=_positive, default=1.0, metavar="P", help="of the apps (1)")
    group.add_argument("--max-swap", type=_whole, metavar="N", help="swap cap of the apps (none)")


def _add_reading(group: argparse._ArgumentGroup) -> None:
    group.add_argument("--separator", metavar="SIGN", help="between the fields of sacct, where it is not |")
    group.add_argument(
        "--as-of", metavar="TIME", help="moment of an export (sacct, Philly) in which jobs still ran"
    )
    group.add_argument(
        "--partition-limits", metavar="L", help="limits that sacct calls Partition_Limit: gpu=1d,long=7d"
    )
    group.add_argument(
        "--columns",
        metavar="C",
        help="which column of a table is what: gpus=Cards,elapsed=Used:min,date_order=day-first,... (others: guessed)",
    )
    group.add_argument(
        "--accept-guess",
        action="store_true",
        help="take a table's columns as guessed, also where it is not sure",
    )


def _whole(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) < 12 and int(text) > 0):
        raise argparse.ArgumentTypeError(f"must be a whole number above 0 (got {text})")
    return int(text)


def _positive(text: str) -> float:
    try:
        found = float(text)
    except ValueError:
        found = -1.0
    if not 0 < found < float("inf"):
        raise argparse.ArgumentTypeError(f"must be a number above 0 (got {text})")
    return found


def import_command(options: argparse.Namespace) -> int:
    """Read the files, write the scenario, and print what became of every row; the exit code.

    Parameters
    ----------
    options
        As `add_import` defines them.
    """
    from gpuplan.inputs.errors import InputError
    from gpuplan.traces.importing import import_file

    _refuse_strangers(options)
    bar = _Bar()
    try:
        made = import_file(
            options.files,
            options.format,
            zone=options.zone,
            strict=not options.keep_going,
            progress=bar,
            traffic=options.traffic,
            unit=options.unit,
            by=options.by,
            service=_service(options),
            options=_reading(options),
            **_choices(options),
        )
    except InputError as error:
        raise Refusal(_with_advice(error, options)) from None
    finally:
        bar.clear()
    written = made.save(options.output)
    if options.json:
        report = {**made.report(), "files": [path.name for path in written]}
        print(json.dumps(report, indent=2, allow_nan=False))
    else:
        print(_as_text(made, written))
    return 0


def _refuse_strangers(options: argparse.Namespace) -> None:
    """Refuse options that mean nothing for these files."""
    traffic = options.format in ("prometheus", "hourly")
    if traffic and options.keep_going:
        raise Refusal(
            "--keep-going is for slurm, swf and jobs: a gap in traffic is told, and cannot be left out"
        )
    if traffic or options.traffic:
        return
    about = {
        "--unit": options.unit is not None,
        "--by": options.by is not None,
        "--per-gpu": options.per_gpu is not None,
        "--replica-gpus": options.replica_gpus != 1,
        "--target-load": options.target_load != 1,
        "--app-priority": options.app_priority != 1,
        "--max-swap": options.max_swap is not None,
    }
    strange = [name for name, given in about.items() if given]
    if strange:
        raise Refusal(
            f"{', '.join(strange)}: for traffic only (prometheus, hourly, or --traffic FILE beside jobs)"
        )


def _with_advice(error: InputError, options: argparse.Namespace) -> str:
    rows = {mistake.line for mistake in error.mistakes if mistake.line is not None and mistake.line > 1}
    if any(mistake.rule.startswith("must be confirmed") for mistake in error.mistakes):
        return f"{error}\n--accept-guess takes columns so; --columns says what they are (elapsed=Used:min)."
    if options.keep_going or not rows or options.format in ("prometheus", "hourly"):
        return str(error)
    many = "these lines" if any(mistake.more for mistake in error.mistakes) else f"these {len(rows):,} lines"
    lines = f"{'this line' if len(rows) == 1 else many}, and says"
    return f"{error}\n--keep-going imports the file without {lines} so."


def _choices(options: argparse.Namespace) -> dict[str, Any]:
    """The choices that were made."""
    from gpuplan.inputs.errors import InputError, Mistake
    from gpuplan.inputs.spans import seconds_of
    from gpuplan.traces.wish import table_of

    chosen = {name: getattr(options, name) for name in _CHOICES if getattr(options, name) is not None}
    if options.weights is not None:
        plain = options.weights in ("equal", "used")
        chosen["weights"] = options.weights if plain else table_of(options.weights, "weights")
    if options.rank is not None:
        chosen["ranks"] = table_of(options.rank, "rank")
    if options.min_runtime is not None:
        seconds = seconds_of(options.min_runtime)
        if seconds is None or seconds < 0:
            rule = "must be a time with a unit, as in 30min"
            raise InputError("import", [Mistake("min_runtime", rule, options.min_runtime)])
        chosen["minimum_s"] = int(seconds)
    chosen |= {"before": not options.only_submitted, "resumable": not options.not_resumable}
    chosen |= {"types": options.types, "anonymise": options.anonymise}
    if options.key_file is not None:
        chosen["key"] = _key(options.key_file)
    return chosen


def _key(path: Path) -> bytes:
    try:
        key = path.read_bytes().strip()
    except OSError as error:
        raise Refusal(f"cannot read {path}: {error.strerror}") from error
    if len(key) < 16:
        raise Refusal(f"{path}: a key must have at least 16 characters, or names can be tried out")
    return key


def _service(options: argparse.Namespace) -> Service:
    from gpuplan.traces.to_scenario_traffic import Service

    return Service(
        per_gpu=options.per_gpu,
        replica_gpus=options.replica_gpus,
        target_load=options.target_load,
        priority=options.app_priority,
        max_swap=options.max_swap,
    )


def _reading(options: argparse.Namespace) -> dict[str, Any]:
    """Options of the reader of the format."""
    found: dict[str, Any] = {}
    if options.separator is not None:
        if options.format != "slurm":
            raise Refusal("--separator is for slurm")
        found["separator"] = options.separator
    if options.as_of is not None and options.format in ("hourly", "prometheus"):
        raise Refusal("--as-of is for slurm and for Philly's list of jobs")
    found |= _slurm_words(options)
    if options.columns is None and not options.accept_guess:
        return found
    if options.format == "hourly" and not options.accept_guess:
        return found | _hourly_columns(options.columns)
    if options.format != "jobs":
        raise Refusal("--columns is for jobs and hourly, --accept-guess for jobs")
    from gpuplan.traces.job_mapping import choices

    changes = choices([part.strip() for part in (options.columns or "").split(",") if part.strip()])
    if options.accept_guess:
        from gpuplan.traces.formats import own_columns
        from gpuplan.traces.jobs_table import guess

        if own_columns(options.files[0]):
            raise Refusal(
                "--accept-guess is for tables whose columns are guessed: those of this file are known"
            )
        found["mapping"] = guess(options.files[0]).changed(**changes).confirm()
    else:
        found["mapping"] = changes
    return found


def _hourly_columns(text: str) -> dict[str, Any]:
    """The columns of a table of traffic: ``time=...,value=...``."""
    pairs = [part.partition("=") for part in text.split(",")]
    found = {name.strip(): column.strip() for name, _, column in pairs}
    if set(found) - {"time", "value"} or not all(found.values()):
        raise Refusal(f"--columns must be time=column,value=column for hourly (got {text})")
    return found


def _slurm_words(options: argparse.Namespace) -> dict[str, Any]:
    """The moment of an export, and the limits that partitions have."""
    from gpuplan.inputs.errors import InputError, Mistake
    from gpuplan.inputs.spans import seconds_of

    found: dict[str, Any] = {}
    if options.partition_limits is not None and options.format != "slurm":
        raise Refusal("--partition-limits is for slurm")
    if options.as_of is not None:
        found["as_of"] = options.as_of
    if options.partition_limits is not None:
        pairs = [part.partition("=") for part in options.partition_limits.split(",")]
        limits = {name.strip(): seconds_of(text.strip()) for name, _, text in pairs}
        wrong = [name for name, seconds in limits.items() if not name or seconds is None or seconds <= 0]
        if wrong:
            rule = "must be partition=time,partition=time, as in gpu=1d"
            raise InputError("import", [Mistake("partition_limits", rule, options.partition_limits)])
        found["partition_limits"] = {name: int(seconds) for name, seconds in limits.items() if seconds}
    return found


class _Bar:
    """How much of a file is read, in one line, on a terminal only."""

    def __init__(self) -> None:
        self.shown = sys.stderr.isatty()
        self.width = 0
        self.next = 0.0

    def __call__(self, done: int, total: int) -> None:
        """Draw the line anew, ten times a second at most."""
        if not self.shown or time.monotonic() < self.next:
            return
        self.next = time.monotonic() + 0.1
        share = min(20, 20 * done // max(total, 1))
        line = (
            f"[{'#' * share}{'.' * (20 - share)}] {done / _MEGABYTE:,.0f} of {total / _MEGABYTE:,.0f} MB read"
        )
        print("\r" + line.ljust(self.width), end="", file=sys.stderr, flush=True)
        self.width = len(line)

    def clear(self) -> None:
        """Take the line away."""
        if self.width:
            print("\r" + " " * self.width + "\r", end="", file=sys.stderr, flush=True)


def _as_text(made: Imported, written: tuple[Path, ...]) -> str:
    parts = [printable(made.scenario.name), *(_table(account) for account in (made.account, *made.traffic))]
    parts.append(
        "\n".join(f"- {printable(topic)}: {printable(said)}" for topic, said in made.choices.items())
    )
    if made.mistakes:
        lines = [f"left out: {printable(str(mistake))}" for mistake in made.mistakes[:_NAMED]]
        more = len(made.mistakes) - _NAMED
        parts.append("\n".join([*lines, *([f"left out: {more:,} more"] if more > 0 else [])]))
    parts.append("\n".join(f"wrote {printable(str(path))}" for path in written))
    return "\n\n".join(parts)


def _table(account: Account) -> str:
    rows = [
        (group, what, f"{value:,}" if isinstance(value, int) else f"{value:,.1f}", unit)
        for group, what, value, unit in account.lines()
    ]
    return aligned(("", "what", "value", "unit"), rows, right=[2])
