"""A list of jobs in JSON, one after the other, each with its line."""

import json
from collections.abc import Iterator
from typing import Any

from gpuplan.inputs.errors import InputError, Mistake
from gpuplan.traces.plain_text import PlainText, refusal


def json_objects(text: PlainText) -> Iterator[tuple[int, Any]]:
    """The jobs of a list (or of a file with a job after the other), with the line on which each begins.

    Raises
    ------
    InputError
        At the first place that is no JSON, with its line, or where the list does not end.
    """
    body, decoder = text.text, json.JSONDecoder()
    at = _skip(body, 0)
    within = body[at : at + 1] == "["
    if not within and body[at : at + 1] != "{":
        raise refusal(text.source, "this is not a list of jobs in JSON")
    at, line, counted, first = _skip(body, at + within), 1, 0, True
    while at < len(body):
        if within and body[at] == "]":
            rest = _skip(body, at + 1)
            if rest < len(body):
                raise _broken(text, rest, "must end after the list of jobs")
            return
        if within and not first:
            if body[at] != ",":
                raise _broken(text, at, "must have a comma between jobs")
            at = _skip(body, at + 1)
        line, counted = line + body.count("\n", counted, at), at
        try:
            job, end = decoder.raw_decode(body, at)
        except json.JSONDecodeError as error:
            raise _broken(text, error.pos, f"must be JSON: {error.msg}") from None
        except (RecursionError, ValueError):  # nested beyond all measure; a number of thousands of digits
            raise _broken(text, at, "must be a job in JSON") from None
        yield line, job
        at, first = _skip(body, end), False
    if within:
        raise _broken(text, len(body), "is cut off: the list of jobs does not end")


def _skip(body: str, at: int) -> int:
    """The place of the next sign that is no blank."""
    while at < len(body) and body[at] in " \t\n":
        at += 1
    return at


def _broken(text: PlainText, at: int, rule: str) -> InputError:
    line = text.text.count("\n", 0, at) + 1
    found = text.text[at : at + 30]
    return InputError(text.source, [Mistake(f"line {line}", rule, found, line)])
