"""The commands ``gpuplan report`` and ``gpuplan verify``: a page for people who decide, and its figures once more."""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpuplan.cli import Refusal
from gpuplan.text import aligned, printable

if TYPE_CHECKING:
    from gpuplan.reports.build import Report
    from gpuplan.reports.grid import Grid
    from gpuplan.reports.notebook import NotebookReport
    from gpuplan.reports.verify import Verification

#: What the name of a report may end in.
_ENDINGS = (".html", ".htm", ".pdf")


def add_report(parser: argparse.ArgumentParser) -> None:
    """Give ``report`` its arguments."""
    parser.add_argument(
        "scenario",
        metavar="SCENARIO|NOTEBOOK",
        help="a shipped name, a scenario file, or a notebook (.ipynb), which is run: a notebook is a program",
    )
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        required=True,
        metavar="FILE",
        help="the page to write (.html), or a PDF (.pdf) where Chromium or its like is at hand; replaces an older one",
    )
    parser.add_argument(
        "--policies", metavar="A,B", help="default: those that the command of the scenario's kind compares"
    )
    parser.add_argument(
        "--seed",
        type=_count,
        metavar="S",
        help="of the policy search (default: 0), or of a generated workload",
    )
    parser.add_argument(
        "--iterations", type=_count, metavar="N", help="moves of search; never a time, so that it repeats"
    )
    parser.add_argument(
        "--interactive",
        action="store_true",
        help="live controls over computed points (.html): penalty and cluster size of allocation, share of a budget "
        "and window of fair share, margin and load of packing, under every policy",
    )
    parser.add_argument(
        "--over",
        action="append",
        default=[],
        metavar="AXIS=A,B",
        help="with --interactive, points of your own: penalties=0,5,10 or gpus=8,16; shares=20,40 (per cent), "
        "windows=1d,7d, team=PATH; margins=0,0.2 or loads=0.5,1,2 (times the arrival rate); as often as wanted",
    )
    notebook = parser.add_argument_group("of a notebook")
    notebook.add_argument(
        "-p",
        "--parameter",
        dest="parameters",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="a value in place of that in the cell tagged parameters, of the same kind (list: a,b); as often as wanted",
    )
    notebook.add_argument("--code", action="store_true", help="show the code of the cells too")
    _add_time_limit(notebook)


def _add_time_limit(parser: argparse._ActionsContainer) -> None:
    parser.add_argument(
        "--time-limit", type=_seconds, metavar="S", help="seconds of the whole notebook (default: 600)"
    )


def add_verify(parser: argparse.ArgumentParser) -> None:
    """Give ``verify`` its arguments."""
    parser.add_argument(
        "report", type=Path, metavar="REPORT", help="a page that gpuplan report wrote (.html)"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of a table")
    parser.add_argument(
        "--sample",
        type=_count,
        metavar="N",
        help="of a page with live controls: compute N of its points again (default: all of them)",
    )
    notebook = parser.add_argument_group("of a notebook's report")
    notebook.add_argument(
        "--run-notebook",
        action="store_true",
        help="run the notebook in the page again and compare all of it: it is a program of whoever made the page",
    )
    notebook.add_argument(
        "--folder", type=Path, metavar="DIR", help="where it runs, beside its files (default: here)"
    )
    _add_time_limit(notebook)


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not 1 <= seconds <= 1_000_000:
        raise argparse.ArgumentTypeError(f"must be seconds from 1 to 1,000,000 (got {text})")
    return seconds


def _count(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) < 19):
        raise argparse.ArgumentTypeError(f"must be a whole number of at least 0 (got {text})")
    return int(text)


def report_command(options: argparse.Namespace) -> int:
    """Write the report of a scenario or of a notebook; the exit code.

    Parameters
    ----------
    options
        As `add_report` defines them.
    """
    from gpuplan.reports.build import report

    output: Path = options.output
    if output.suffix.lower() not in _ENDINGS:
        raise Refusal(f"the name of a report must end in .html or .pdf (got {output.name})")
    if options.scenario.lower().endswith(".ipynb"):
        return _notebook(options)
    _refuse_given(options, _OF_NOTEBOOKS, "is for notebooks (.ipynb), and this is a scenario")
    names = None
    if options.policies is not None:
        names = [name.strip() for name in options.policies.split(",") if name.strip()]
    if options.interactive:
        return _interactive(options, names)
    _refuse_given(options, {"--over": "over"}, "goes with --interactive")
    made = report(options.scenario, names, seed=options.seed, iterations=options.iterations)
    _write(made, output)
    broken = {
        name: result.violations for name, result in made.comparison.results.items() if result.violations
    }
    for name, count in broken.items():
        text = f"gpuplan: {name} breaks {count} rules: a fault of gpuplan, please report it"
        print(printable(text), file=sys.stderr)
    return 1 if broken else 0


def _interactive(options: argparse.Namespace, names: list[str] | None) -> int:
    """Write a page with live controls; the exit code."""
    from gpuplan.reports.grid import grid

    if options.output.suffix.lower() == ".pdf":
        raise Refusal("a PDF has no controls: the name of an interactive page must end in .html")
    _refuse_unwritable(options.output)
    steered = {"seed": options.seed, "iterations": options.iterations, "progress": None}
    found = grid(options.scenario, names, **steered, **_axes(options.over))
    _write(found, options.output)
    for rule in found.broken:
        print(printable(f"gpuplan: {rule}: a fault of gpuplan, please report it"), file=sys.stderr)
    if found.errors:
        print(
            f"{len(found.errors):,} of {len(found.points):,} points could not be computed: see the notes of the page"
        )
    return 1 if found.broken else 0


def _axes(given: Sequence[str]) -> dict[str, Any]:
    """Values of axes as `gpuplan.reports.grid.grid` takes them; it says what is wrong with them."""
    made: dict[str, Any] = {}
    for text in given:
        name, sign, values = text.partition("=")
        name = name.strip()
        if not sign or name not in _AXES:
            raise Refusal(f"--over wants AXIS=A,B with one of {', '.join(_AXES)} (got {text})")
        if name in made:
            raise Refusal(f"--over {name} is given more than once")
        made[name] = (
            values.strip() if name == "team" else [_number(value.strip()) for value in values.split(",")]
        )
    return made


#: What `--over` may name.
_AXES = ("penalties", "gpus", "shares", "windows", "team", "margins", "loads")


def _number(text: str) -> float | int | str:
    try:
        return int(text) if text.isdecimal() and text.isascii() and len(text) < 19 else float(text)
    except ValueError:
        return text


def _notebook(options: argparse.Namespace) -> int:
    """Run a notebook and write its page; the exit code."""
    from gpuplan.inputs.errors import InputError
    from gpuplan.reports.notebook import report_notebook
    from gpuplan.reports.notebook_run import TIME_LIMIT_S

    _refuse_given(options, _OF_SCENARIOS, "is for scenarios; a notebook has parameters: -p NAME=VALUE")
    _refuse_unwritable(options.output)
    try:
        made = report_notebook(
            options.scenario,
            _parameters(options.parameters),
            code=options.code,
            time_limit_s=options.time_limit or TIME_LIMIT_S,
        )
    except InputError as error:
        if "GPUPLAN_TRACEBACK" in os.environ and error.__cause__ is not None:
            raise error.__cause__ from None
        raise
    _write(made, options.output)
    return 0


#: Options of one kind of report alone, as people write them, and what they are where they are not given.
_OF_NOTEBOOKS = {"-p": "parameters", "--code": "code", "--time-limit": "time_limit"}
_OF_SCENARIOS = {
    "--policies": "policies",
    "--seed": "seed",
    "--iterations": "iterations",
    "--interactive": "interactive",
    "--over": "over",
}


def _refuse_given(options: argparse.Namespace, names: Mapping[str, str], why: str) -> None:
    given = [word for word, name in names.items() if getattr(options, name) not in (None, False, [])]
    if given:
        raise Refusal(f"{', '.join(given)} {why}")


def _parameters(given: Sequence[str]) -> dict[str, str]:
    made: dict[str, str] = {}
    for text in given:
        name, sign, value = text.partition("=")
        if not sign or not name.strip().isidentifier():
            raise Refusal(f"-p wants NAME=VALUE (got {text})")
        if name.strip() in made:
            raise Refusal(f"-p {name.strip()} is given more than once")
        made[name.strip()] = value
    return made


def _refuse_unwritable(output: Path) -> None:
    """Say before minutes of running that the page could not be written."""
    folder = output.resolve().parent
    if not folder.is_dir():
        raise Refusal(f"cannot write {output}: there is no folder {output.parent}")
    if output.is_dir() or not os.access(folder, os.W_OK):
        raise Refusal(
            f"cannot write {output}: {'it is a folder' if output.is_dir() else 'its folder is read-only'}"
        )


def _write(made: Report | NotebookReport | Grid, output: Path) -> None:
    try:
        made.save(output)
    except OSError as error:
        raise Refusal(f"cannot write {output}: {error.strerror}") from error
    print(f"wrote {printable(str(output))}")


def verify_command(options: argparse.Namespace) -> int:
    """Recompute the figures of a report; 0 where all of it holds, 2 where not.

    Parameters
    ----------
    options
        As `add_verify` defines them.
    """
    from gpuplan.reports.verify import verify_report

    if not options.run_notebook:
        _refuse_given(
            options, {"--folder": "folder", "--time-limit": "time_limit"}, "goes with --run-notebook"
        )
    if options.folder is not None and not options.folder.is_dir():
        raise Refusal(f"--folder: there is no folder {options.folder}")
    found = verify_report(
        options.report,
        run_notebook=options.run_notebook,
        folder=options.folder and options.folder.resolve(),
        time_limit_s=options.time_limit or 600.0,
        sample=options.sample,
        progress=None,
    )
    print(_as_json(found) if options.json else _as_text(found))
    return 0 if found.holds else 2


def _as_json(found: Verification) -> str:
    whole = {
        "report": found.source,
        "holds": found.holds,
        "fingerprint_holds": found.fingerprint_holds,
        "page_holds": found.page_holds,
        "versions": {name: {"report": was, "here": now} for name, (was, now) in found.versions.items()},
        "figures": [
            {
                "policy": verdict.policy,
                "figure": verdict.figure,
                "report": verdict.said,
                "computed": verdict.computed,
                "holds": verdict.holds,
                "reason": verdict.reason,
            }
            for verdict in found.figures
        ],
    }
    return json.dumps(whole, indent=2, allow_nan=False)


def _as_text(found: Verification) -> str:
    rows = [
        (
            verdict.policy,
            verdict.figure,
            verdict.said or "–",
            verdict.computed or "–",
            "holds" if verdict.holds else f"does not hold: {verdict.reason}",
        )
        for verdict in found.figures
        if len(found.figures) <= _MOST_ROWS or not verdict.holds
    ]
    if not rows:
        return "\n".join([printable(found.source), "", *map(printable, found.sentences)])
    more = len(rows) - _MOST_ROWS
    rows = rows[:_MOST_ROWS]
    table = aligned(("policy", "figure", "in the report", "computed", ""), rows, right=[2, 3])
    left_out = [f"{more:,} more that do not hold"] if more > 0 else []
    return "\n".join([printable(found.source), "", table, *left_out, "", *map(printable, found.sentences)])


#: Rows of a table of verdicts at most; with more figures only those stand in it that do not hold.
_MOST_ROWS = 300
