"""The commands ``gpuplan report`` and ``gpuplan verify``: a page for people who decide, and its figures once more."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from gpuplan.cli import Refusal
from gpuplan.text import aligned, printable

if TYPE_CHECKING:
    from gpuplan.reports.build import Report
    from gpuplan.reports.grid import Grid
    from gpuplan.reports.verify import Verification

#: What the name of a report may end in.
_ENDINGS = (".html", ".htm", ".pdf")


def add_report(parser: argparse.ArgumentParser) -> None:
    """Give ``report`` its arguments."""
    parser.add_argument("scenario", metavar="SCENARIO", help="a shipped name, or a scenario file")
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
        help="allocation: live controls over computed points of penalty, cluster size and policy (.html)",
    )


def add_verify(parser: argparse.ArgumentParser) -> None:
    """Give ``verify`` its arguments."""
    parser.add_argument(
        "report", type=Path, metavar="REPORT", help="a page that gpuplan report wrote (.html)"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of a table")


def _count(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) < 19):
        raise argparse.ArgumentTypeError(f"must be a whole number of at least 0 (got {text})")
    return int(text)


def report_command(options: argparse.Namespace) -> int:
    """Write the report of a scenario; the exit code.

    Parameters
    ----------
    options
        As `add_report` defines them.
    """
    from gpuplan.reports.build import report

    output: Path = options.output
    if output.suffix.lower() not in _ENDINGS:
        raise Refusal(f"the name of a report must end in .html or .pdf (got {output.name})")
    names = None
    if options.policies is not None:
        names = [name.strip() for name in options.policies.split(",") if name.strip()]
    if options.interactive:
        return _interactive(options, names)
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
    _write(grid(options.scenario, names, seed=options.seed, iterations=options.iterations), options.output)
    return 0


def _write(made: Report | Grid, output: Path) -> None:
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

    found = verify_report(options.report)
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
    ]
    table = aligned(("policy", "figure", "in the report", "computed", ""), rows, right=[2, 3])
    return "\n".join([printable(found.source), "", table, "", *map(printable, found.sentences)])
