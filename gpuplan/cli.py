"""The command ``gpuplan``: reads arguments, asks the library, prints; it computes nothing itself.

Exit codes: 0 fine, 1 our fault, 2 the input's fault. The library is imported by the command that
needs it, so that ``gpuplan --help`` starts at once.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpuplan.text import aligned, printable, to_csv

if TYPE_CHECKING:
    from gpuplan.allocation.plan import Comparison
    from gpuplan.allocation.policies import Progress

#: Options of `compare` that steer some policies, and those policies.
OPTION_OWNERS = {"iterations": ("search",), "budget_ms": ("search",), "seed": ("search", "exact")}


class Refusal(Exception):
    """What the caller asked for cannot be; the message says why in a sentence."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code.

    Parameters
    ----------
    arguments
        The words after ``gpuplan``; those of this process by default.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a terminal without UTF-8 shows escapes, not an error
            stream.reconfigure(errors="backslashreplace")
    try:
        status = _run(arguments)
        sys.stdout.flush()
        return status
    except BrokenPipeError:  # the reader (head, less) has seen enough
        _drop_output()
        return 0
    except KeyboardInterrupt:
        return 130
    except OSError as error:
        _drop_output()
        return _complain(f"cannot write the output: {error.strerror or error}", 1)


def _run(arguments: Sequence[str] | None) -> int:
    from gpuplan.inputs.errors import InputError

    try:
        options = _parser().parse_args(arguments)
        status: int = options.run(options)
        return status
    except SystemExit as stop:  # argparse: help, version, wrong usage
        return stop.code if isinstance(stop.code, int) else 2
    except (InputError, Refusal) as error:
        return _complain(str(error), 2)
    except Exception as error:
        unwritable = isinstance(error, OSError) and error.errno and not error.filename  # see `main`
        if unwritable or "GPUPLAN_TRACEBACK" in os.environ:
            raise
        what = f"{type(error).__name__}: {error}"
        return _complain(f"internal error, please report it ({what}; GPUPLAN_TRACEBACK=1 shows where)", 1)


def _complain(message: str, status: int) -> int:
    text = "\n".join(printable(line) for line in message.split("\n"))
    print(f"gpuplan: {text}", file=sys.stderr)
    return status


def _drop_output() -> None:
    """Send what is still buffered nowhere, or the interpreter complains about it while it ends."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)


class _Version(argparse.Action):
    """Looks the version up when it is asked for, not at every start."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        from importlib.metadata import version

        print(f"gpuplan {version('gpuplan')}")
        parser.exit()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="gpuplan", description="See what a GPU scheduling policy costs and gains.", allow_abbrev=False
    )
    parser.add_argument("--version", action=_Version, nargs=0, help="show the version and exit")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")

    def command(name: str, run: Any, about: str, more: str = "") -> argparse.ArgumentParser:
        sub = commands.add_parser(name, help=about, description=f"{about}. {more}", allow_abbrev=False)
        sub.set_defaults(run=run)
        return sub

    lab = command("lab", _lab, "open JupyterLab on the notebooks", "Nothing outside this machine is called.")
    lab.add_argument("dir", nargs="?", type=Path, metavar="DIR", help="copy the notebooks there first")
    lab.add_argument("--no-browser", action="store_true", help="print the address and open no browser")
    lab.add_argument("--port", type=_port, help="listen on this port, and on no other")
    from gpuplan.cli_app import add_app

    add_app(
        command(
            "app",
            _app,
            "serve explorers and lessons as web pages",
            "On this machine alone, unless told otherwise.",
        )
    )
    command("scenarios", _scenarios, "list the shipped scenarios with a line each")
    _add_compare(command("compare", _compare, "plan a scenario under several policies, side by side"))
    _add_simulate(command("simulate", _simulate, "run weeks of a shared cluster under several policies"))
    _add_pack(command("pack", _pack, "run many models in the memory of a few GPUs under several policies"))
    from gpuplan.cli_import import add_import

    add_import(
        command(
            "import", _import, "make a scenario of a file of jobs or traffic", "Every row is accounted for."
        )
    )
    from gpuplan.cli_report import add_report, add_verify

    add_report(
        command(
            "report",
            _report,
            "write a report of a scenario or a notebook",
            "One page that needs nothing but a browser.",
        )
    )
    add_verify(
        command(
            "verify", _verify, "compute the figures of a report again", "Exit code 2 where one does not hold."
        )
    )
    schema = command("schema", _schema, "print the JSON Schema of a scenario file, for editors")
    schema.add_argument("kind", choices=("allocation", "fairshare", "packing"))
    bench = command("bench", _bench, "print the benchmark table", "Every answer is asserted.")
    bench.add_argument("--json", action="store_true", help="print a JSON list instead of a table")
    bench.add_argument("--only", metavar="TEXT", default="", help="only measures with TEXT in their name")
    return parser


def _port(text: str) -> int:
    port = int(text)
    if not 1 <= port <= 65_535:
        raise argparse.ArgumentTypeError(f"must be a port from 1 to 65535 (got {port})")
    return port


def _add_compare(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("scenario", metavar="SCENARIO", help="a shipped name, or a scenario file")
    parser.add_argument("--policies", default="fifo,aware", metavar="A,B", help="default: fifo,aware")
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of a table")
    parser.add_argument(
        "--plans",
        type=Path,
        metavar="DIR",
        help="write DIR/<policy>.csv, a row per GPU and unbroken stretch (replaces older ones); a name that "
        "a spreadsheet would take for a formula gets a leading apostrophe",
    )
    parser.add_argument(
        "--iterations", type=_count, metavar="N", help="moves of search: the same plan again for a seed"
    )
    parser.add_argument("--budget-ms", type=_amount, metavar="B", help="milliseconds of search (default: 2)")
    parser.add_argument("--seed", type=_count, metavar="S", help="seed of search and exact (default: 0)")
    parser.add_argument(
        "--certify", action="store_true", help="prove how good any plan can be, for every plan"
    )
    parser.add_argument(
        "--time-limit", type=_amount, metavar="S", help="seconds of exact and of --certify (default: 30)"
    )


def _add_simulate(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "file",
        metavar="FILE",
        help="a shipped name, a scenario file, or a workload log (.swf, .swf.gz) under equal weights",
    )
    parser.add_argument(
        "--policies", default="easy,fair-share", metavar="A,B", help="default: easy,fair-share"
    )
    parser.add_argument(
        "--gpus", type=_count, metavar="N", help="GPUs for a workload log (default: those of its header)"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of a table")
    parser.add_argument(
        "--jobs",
        type=Path,
        metavar="DIR",
        help="write DIR/<policy>.csv, a row per stretch of running (replaces older ones); a name that "
        "a spreadsheet would take for a formula gets a leading apostrophe",
    )


def _add_pack(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("scenario", metavar="SCENARIO", help="a shipped name, or a scenario file")
    parser.add_argument(
        "--policies",
        default="round-robin,best-fit",
        metavar="A,B",
        help="placements, with a queue order and an eviction where wanted (best-fit+backfill+lfu); what is not "
        "named is the scenario's own (default: round-robin,best-fit)",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of a table")
    parser.add_argument(
        "--tasks",
        type=Path,
        metavar="DIR",
        help="write DIR/<policy>.csv, a row per task (replaces older ones); a name that a spreadsheet would take "
        "for a formula gets a leading apostrophe",
    )


def _count(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"must be a whole number of at least 0 (got {text})")
    return int(text)


def _amount(text: str) -> float:
    try:
        amount = float(text)
    except ValueError:
        amount = -1.0
    if not 0 <= amount < float("inf"):
        raise argparse.ArgumentTypeError(f"must be a number of at least 0 (got {text})")
    return amount


def _lab(options: argparse.Namespace) -> int:
    from gpuplan import lab

    absent = lab.missing_jupyterlab()
    if absent:
        raise Refusal(absent)
    try:
        folder = lab.notebooks_to_open(options.dir)
    except OSError as error:
        raise Refusal(f"cannot copy the notebooks: {error}") from error
    lab.compile_kernels()
    return lab.open_lab(folder, browser=not options.no_browser, port=options.port)


def _app(options: argparse.Namespace) -> int:
    from gpuplan.cli_app import app_command

    return app_command(options)


def _scenarios(_: argparse.Namespace) -> int:
    from gpuplan.loading import shipped

    rows = [(s.name, s.kind, _first_sentence(s.about)) for s in shipped()]
    print(aligned(("name", "kind", "about"), rows))
    return 0


def _first_sentence(text: str) -> str:
    return " ".join(text.split()).split(". ")[0].rstrip(".")


def _compare(options: argparse.Namespace) -> int:
    policies = [name.strip() for name in options.policies.split(",") if name.strip()]
    effort = _effort(options, policies)
    from gpuplan.allocation.plan import compare
    from gpuplan.loading import load_allocation

    scenario = load_allocation(options.scenario)
    bar = _ProgressBar(effort.get("time_limit_s", 30.0))
    comparison = compare(scenario, policies, **effort, report=bar)
    if options.certify:
        from gpuplan.allocation.certify import certify

        proof = certify(scenario, effort.get("time_limit_s", 30.0), report=bar)
        comparison = comparison.with_proof(proof)
    bar.clear()
    if options.plans is not None:
        _write_plans(comparison, options.plans)
    print(_as_json(comparison) if options.json else _as_text(comparison))
    broken = {name: plan.violations for name, plan in comparison.plans.items() if plan.violations}
    for name, count in broken.items():
        _complain(f"the plan of {name} breaks {count} rules: a fault of gpuplan, please report it", 1)
    return 1 if broken else 0


def _effort(options: argparse.Namespace, policies: Sequence[str]) -> dict[str, Any]:
    """What the caller allows the improving policies; refused where none of them is asked for."""
    effort = {}
    owners = {**OPTION_OWNERS, "time_limit": ("exact",)}
    for option, named in owners.items():
        value = getattr(options, option)
        if value is None:
            continue
        certifies = option == "time_limit" and options.certify
        if not set(named) & set(policies) and not certifies:
            flag = "--" + option.replace("_", "-")
            whose = " or ".join(repr(name) for name in named)
            more = " (or give --certify)" if option == "time_limit" else ""
            raise Refusal(f"{flag} is for the policy {whose}: name it in --policies{more}")
        effort["time_limit_s" if option == "time_limit" else option] = value
    return effort


class _ProgressBar:
    """Objective and bound of the solver in one line, on a terminal only."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.shown = sys.stderr.isatty()
        self.width = 0

    def __call__(self, progress: Progress) -> None:
        """Draw the line anew."""
        if not self.shown:
            return
        done = min(20, int(20 * progress.seconds / max(self.seconds, 1e-9)))
        bound = "not known yet" if progress.bound is None else f"{progress.bound:,.2f}"
        share = f"[{'#' * done}{'.' * (20 - done)}]"
        line = f"{share} {progress.seconds:4.1f} s  best {progress.objective:,.2f}  bound {bound}"
        print("\r" + line.ljust(self.width), end="", file=sys.stderr, flush=True)
        self.width = len(line)

    def clear(self) -> None:
        """Take the line away."""
        if self.width:
            print("\r" + " " * self.width + "\r", end="", file=sys.stderr, flush=True)


def _write_plans(comparison: Comparison, folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, plan in comparison.plans.items():
            (folder / f"{name}.csv").write_text(to_csv(plan.to_frame()), encoding="utf-8", newline="")
    except OSError as error:
        raise Refusal(f"cannot write plans to {folder}: {error.strerror}") from error


def _as_json(comparison: Comparison) -> str:
    scenario = comparison.scenario
    figures = {
        name: {**plan.figures, "violations": plan.violations, "seconds": plan.seconds}
        for name, plan in comparison.plans.items()
    }
    whole: dict[str, Any] = {
        "scenario": scenario.name,
        "fingerprint": scenario.fingerprint,
        "policies": figures,
    }
    proofs = {
        name: {"status": plan.proof.status, "bound": plan.proof.bound, "sentence": plan.proof.sentence}
        for name, plan in comparison.plans.items()
        if plan.proof is not None
    }
    if proofs:
        whole["proofs"] = proofs
    return json.dumps(whole, indent=2, allow_nan=False)


def _as_text(comparison: Comparison) -> str:
    from gpuplan.allocation.figures import UNITS
    from gpuplan.allocation.plan import shown

    plans = comparison.plans.values()
    first = next(iter(plans))
    rows = [
        (figure, *(shown(figure, plan.figures[figure]) for plan in plans), UNITS[figure])
        for figure in first.figures
    ]
    rows.append(("violations", *(str(plan.violations) for plan in plans), "broken rules"))
    table = aligned(("figure", *comparison.plans, "unit"), rows, right=range(1, len(plans) + 1))
    aside = "".join(f"\nset aside: {printable(f'{job}: {why}')}" for job, why in first.set_aside.items())
    sentences = {plan.proof.sentence: None for plan in plans if plan.proof is not None}
    proven = "".join(f"\n{sentence}" for sentence in sentences)
    return f"{printable(comparison.scenario.name)}\n\n{table}{aside}{proven}"


def _simulate(options: argparse.Namespace) -> int:
    from gpuplan.cli_simulate import simulate

    return simulate(options)


def _pack(options: argparse.Namespace) -> int:
    from gpuplan.cli_pack import pack

    return pack(options)


def _import(options: argparse.Namespace) -> int:
    from gpuplan.cli_import import import_command

    return import_command(options)


def _report(options: argparse.Namespace) -> int:
    from gpuplan.cli_report import report_command

    return report_command(options)


def _verify(options: argparse.Namespace) -> int:
    from gpuplan.cli_report import verify_command

    return verify_command(options)


def _schema(options: argparse.Namespace) -> int:
    from importlib import import_module

    schema = import_module(f"gpuplan.{options.kind}.schema").json_schema()
    print(json.dumps(schema, indent=2, allow_nan=False))
    return 0


def _bench(options: argparse.Namespace) -> int:
    from gpuplan.benchmarks import all_entries
    from gpuplan.benchmarks.frame import as_records, as_table, measured

    chosen = [entry for entry in all_entries() if options.only in entry.name]
    if not chosen:
        raise Refusal(f"no measure has {options.only!r} in its name")
    outcomes = measured(chosen)
    print(json.dumps(as_records(outcomes), indent=2) if options.json else as_table(outcomes))
    return 1 if any(outcome.wrong for outcome in outcomes) else 0
