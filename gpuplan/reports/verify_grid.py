"""Compute the points of an interactive page again, all of them or some, and say which hold."""

from __future__ import annotations

import hashlib
import json
import math
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from html.parser import HTMLParser
from typing import Any

from gpuplan.bar import progress_to
from gpuplan.inputs.errors import InputError, Mistake, shorten
from gpuplan.reports.grid import Grid, begun, computed, kept_jobs, refuse_too_many
from gpuplan.reports.grid_axes import Space
from gpuplan.reports.grid_pack import unpacked
from gpuplan.reports.grid_points import Point, Task, points_of
from gpuplan.reports.grid_wishes import Wishes
from gpuplan.reports.live_page import LIVE_VERSION, page_with
from gpuplan.reports.runs import Choices, from_text, settled
from gpuplan.reports.verify import TOLERANCE, Verdict, Verification, differing
from gpuplan.side_by_side import as_text

#: How far a number of a picture may be: they are rounded, and the last digits differ between processors.
_DRAWN_WITHIN = 0.011

#: Columns of pictures that only all points together decide.
_OF_ALL = ("top",)

_PARTS = ("grid-record", "grid", "grid-pictures", "scenario-yaml")


class _Reader(HTMLParser):
    """Collects the parts of a page that hold its data."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.parts: dict[str, list[str]] = {}
        self.generator = ""
        self._into = ""
        self._until = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = {name: value or "" for name, value in attrs}
        if tag == "meta" and found.get("name") == "generator":
            self.generator = found.get("content", "")
        place = found.get("id", "")
        if not self._into and tag in ("script", "pre") and place in _PARTS and place not in self.parts:
            self._into, self._until = place, tag
            self.parts[place] = []

    def handle_endtag(self, tag: str) -> None:
        if tag == self._until:
            self._into, self._until = "", ""

    def handle_data(self, data: str) -> None:
        if self._into:
            self.parts[self._into].append(data)


@dataclass(frozen=True)
class _Page:
    """What an interactive page says: its record, its points, its scenario."""

    source: str
    text: str
    record: Mapping[str, Any]
    scenario: Any
    choices: Choices
    space: Space
    asked: Space
    points: list[Point]
    said: list[list[list[str]]]  # of each point, by policy: figures as people read them


def verify_grid(
    source: str,
    text: str,
    sample: int | None = None,
    progress: bool | Callable[[int, int], None] | None = False,
) -> Verification:
    """Recompute an interactive page.

    Parameters
    ----------
    source, text
        Name of the file, and the page.
    sample
        Recompute so many points (always that of the scenario itself); None: all. Which ones follows from the page.
    progress
        As in `gpuplan.reports.grid.grid`.

    Raises
    ------
    InputError
        For a page that is damaged, whose scenario has mistakes, or that comes from another version of the form.
    """
    from gpuplan.reports.words import versions

    page = _read(source, text)
    skipped: Sequence[str] = ()
    differ = differing(_texts(page.record.get("versions")), versions())
    if sample is None or sample >= page.space.size:
        made = computed(page.scenario, page.choices, page.asked, progress=progress)
        if [axis.values for axis in made.axes] != [axis.values for axis in page.space.axes]:
            raise _damaged(source, "its points are not those that its scenario allows")
        places, points = list(range(page.space.size)), list(made.points)
        same = None if differ else made.html == text
    else:
        made = begun(page.scenario, page.choices, page.space)
        places = _some(page, sample)
        points = points_of(Task(page.space, page.choices, made.look), places, None, progress_to(progress))
        skipped = _OF_ALL
        same = None if differ else _written(page, made) == text
    names = list(made.units)
    units = [*made.units.values(), "rules"]
    verdicts = [
        one
        for place, point in zip(places, points, strict=True)
        for one in _verdicts(page, place, point, [*names, "violations"], units, skipped)
    ]
    fits = page.scenario.fingerprint == page.record.get("fingerprint")
    return Verification(source, tuple(verdicts), fits, same, differ, scope=_scope(page, places))


def _scope(page: _Page, places: Sequence[int]) -> str:
    n = page.space.size
    if len(places) == n:
        return f"All {n:,} points were computed anew, with their pictures."
    return (
        f"{len(places):,} of {n:,} points were computed anew, with their pictures; notes of refused stops were not "
        "(without --sample all of it is)."
    )


def _some(page: _Page, sample: int) -> list[int]:
    """Places that are recomputed: that of the scenario itself, and others that nobody chose."""
    own = page.space.own
    others = [place for place in range(page.space.size) if place != own]
    seed = int.from_bytes(hashlib.sha256(page.text.encode()).digest())
    drawn = random.Random(seed).sample(others, max(0, min(sample, page.space.size) - 1))
    return sorted([own, *drawn])


def _written(page: _Page, made: Grid) -> str:
    """What is written for the figures and pictures that the page itself says: its script, style and texts."""
    notes = tuple(str(note) for note in page.record["notes"])
    says = replace(made, points=tuple(page.points), notes=notes, asked=page.asked)
    return page_with(says, page.record["pictures_every"])


# ---------------------------------------------------------------------- verdicts


def _verdicts(
    page: _Page, place: int, point: Point, names: list[str], units: list[str], skipped: Sequence[str]
) -> list[Verdict]:
    """Of every figure of a point, of its picture where that is another, of its error where it has one."""
    here, where = page.points[place], page.space.words(place)
    if here.error or point.error:
        reason = "" if here.error == point.error else "another outcome"
        return [Verdict(f"at {where}", "computed", here.error or "yes", point.error or "yes", reason)]
    made = []
    policies = page.choices.policies
    for k, policy in enumerate(policies):
        recorded = [*here.figures[k], here.violations[k]]
        values = [*point.figures[k], point.violations[k]]
        for said, value, text, name, unit in zip(
            recorded, values, page.said[place][k], names, units, strict=True
        ):
            reason = ""
            if not _close(said, value):
                reason = "another value"
            elif text != as_text(said if isinstance(value, int) or said is None else float(said), unit):
                reason = "shown otherwise than it is recorded"
            made.append(Verdict(f"{policy} at {where}", name, shorten(text), as_text(value, unit), reason))
    if here.drawn and not _same_pictures(here, point, skipped):
        made.append(Verdict(f"at {where}", "picture", "drawn", "", "another picture"))
    return made


def _close(said: Any, value: Any) -> bool:
    if said is None or value is None:
        return said is None and value is None
    if isinstance(value, int):
        return bool(said == value)
    return math.isclose(said, value, rel_tol=TOLERANCE, abs_tol=1e-12)


def _same_pictures(here: Point, point: Point, skipped: Sequence[str]) -> bool:
    both = zip([here.shared, *here.drawn], [point.shared, *point.drawn], strict=True)
    return all(_same_sets(said, made, skipped) for said, made in both)


def _same_sets(said: Any, made: Any, skipped: Sequence[str]) -> bool:
    if list(said) != list(made):
        return False
    for name, columns in made.items():
        if list(said[name]) != list(columns):
            return False
        for key, values in columns.items():
            if key not in skipped and not _same_column(said[name][key], values):
                return False
    return True


def _same_column(said: Sequence[Any], made: Sequence[Any]) -> bool:
    if len(said) != len(made):
        return False
    return all(
        math.isclose(a, b, rel_tol=1e-9, abs_tol=_DRAWN_WITHIN)
        if isinstance(b, (int, float)) and isinstance(a, (int, float))
        else a == b
        for a, b in zip(said, made, strict=True)
    )


# ---------------------------------------------------------------------- reading


def _read(source: str, text: str) -> _Page:
    reader = _Reader()
    reader.feed(text)
    reader.close()
    form = reader.generator.rpartition(" ")[2]
    if form != str(LIVE_VERSION):
        rule = f"is an interactive page in form {form[:20]}, and this gpuplan reads form {LIVE_VERSION}"
        raise InputError(source, [Mistake("", rule)])
    missing = [place for place in _PARTS if place not in reader.parts]
    if missing:
        raise _damaged(source, f"it has no {missing[0]}")
    parts = {place: "".join(found) for place, found in reader.parts.items()}
    try:
        record, data, pictures = (json.loads(parts[place]) for place in _PARTS[:3])
        choices = Choices(tuple(record["policies"]), record["seed"], record["iterations"])
        scenario, space, asked = _spaces(source, parts["scenario-yaml"].removeprefix("\n"), record, choices)
        points, said = _points(data, unpacked(pictures), len(choices.policies))
    except InputError:
        raise
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError, OverflowError) as error:
        raise _damaged(source, "its data are not those of such a page") from error
    if (
        len(points) != space.size
        or not isinstance(record["pictures_every"], int)
        or record["pictures_every"] < 1
    ):
        raise _damaged(source, "its points do not fit its axes")
    return _Page(source, text, record, scenario, choices, space, asked, points, said)


def _spaces(source: str, text: str, record: Mapping[str, Any], choices: Choices) -> tuple[Any, Space, Space]:
    """The scenario and its spaces; whatever the page asks for passes the border that people's wishes pass."""
    scenario = from_text(text, f"scenario in {source}", [str(note) for note in record["input_notes"]])
    seed = choices.seed if scenario.kind == "allocation" else None
    _, again = settled(scenario, choices.policies, seed, choices.iterations)
    if scenario.kind != record["kind"] or again != choices:
        raise _damaged(source, "its record and its scenario do not fit each other")
    base = kept_jobs(scenario)
    made = []
    for which in ("axes", "asked"):
        space = Wishes(scenario, {**record[which], "team": record["team"]}).space(base)
        refuse_too_many(space, choices)
        made.append(space)
    return scenario, made[0], made[1]


def _points(
    data: Mapping[str, Any], pictures: list[Any], policies: int
) -> tuple[list[Point], list[list[list[str]]]]:
    """The points of a page, and their figures as people read them."""
    points: list[Point] = []
    said: list[list[list[str]]] = []
    for found, picture in zip(data["at"], pictures, strict=True):
        shared, drawn = picture or ({}, [])
        if isinstance(found, str):
            points.append(Point([], [], [], {}, [], found))
            said.append([])
            continue
        if len(found) != policies or (drawn and len(drawn) != policies):
            raise ValueError("a point has other policies")
        rows = [data["rows"][number] for number in found]
        figures = [list(values[:-1]) for values, _ in rows]
        if any(not isinstance(v, (int, float, type(None))) for values in figures for v in values):
            raise ValueError("a figure is no number")
        points.append(Point(figures, [int(values[-1]) for values, _ in rows], [], shared, drawn))
        said.append([[str(data["texts"][k]) for k in numbers] for _, numbers in rows])
    return points, said


def _texts(found: Any) -> dict[str, str]:
    return {str(key): str(value) for key, value in found.items()} if isinstance(found, dict) else {}


def _damaged(source: str, why: str) -> InputError:
    return InputError(source, [Mistake("", f"is damaged: {why}")])
