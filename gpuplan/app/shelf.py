"""The pages of the app: explorers and lessons, by the last part of their address."""

import json
import re
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

from gpuplan.app.slices import needed
from gpuplan.inputs.folders import data_folder
from gpuplan.lessons.course import LESSONS

#: What becomes of a cell: prose; outputs as they were committed; run for others, or run and shown.
Fate = Literal["prose", "kept", "run", "live"]


@dataclass(frozen=True, slots=True)
class Cell:
    """A part of a page.

    Attributes
    ----------
    text
        Prose (Markdown), or Python.
    fate
        What becomes of it.
    outputs
        What it showed when it was committed.
    """

    text: str
    fate: Fate
    outputs: tuple[Any, ...] = ()


@dataclass(frozen=True, slots=True)
class Page:
    """A page.

    Attributes
    ----------
    address
        Below the home page, like ``explore/allocation``.
    title, about
        For people.
    cells
        Its parts, in order.
    """

    address: str
    title: str
    about: str
    cells: tuple[Cell, ...]

    @property
    def computes(self) -> bool:
        """Whether it needs a kernel."""
        return any(cell.fate == "live" for cell in self.cells)


#: Explorers: name in the address, title, what they are about.
EXPLORERS = (
    (
        "allocation",
        "Which GPU runs which job at which hour?",
        "A day of one cluster, planned by two policies side by side.",
    ),
    (
        "days",
        "Days as they unfold",
        "One plan after the other, while forecasts turn out right or wrong.",
    ),
    (
        "fair-share",
        "Whose turn is it?",
        "Weeks of a cluster that many teams share, and the budget that says how.",
    ),
    (
        "packing",
        "Which model sits in which GPU's memory?",
        "A node with a few GPUs that serves more models than fit.",
    ),
)

#: How the text form of a widget begins: an explorer, or an exercise by its number.
_LIVE = re.compile(r"\w*Explorer\(|(?:Exercise|Predict) \d+\.\w+:")


def explorers() -> list[Page]:
    """The pages of the explorers."""
    code = "from gpuplan.app.page import explorer\nexplorer({!r})"
    return [
        Page(f"explore/{name}", title, about, (Cell(f"# {title}", "prose"), Cell(code.format(name), "live")))
        for name, title, about in EXPLORERS
    ]


@cache
def lessons() -> tuple[Page, ...]:
    """The lessons that ship with gpuplan, in reading order; those on other people's data are left out."""
    paths = sorted(data_folder("notebooks").glob("[0-9][0-9]-*.ipynb"))
    notebooks = [(path.name, json.loads(path.read_text(encoding="utf-8"))["cells"]) for path in paths]
    return tuple(_lesson(name, cells) for name, cells in notebooks if not _is_form(cells))


def _is_form(cells: list[Any]) -> bool:
    """Whether a notebook is one to be filled in, with parameters: no lesson."""
    return any("parameters" in cell.get("metadata", {}).get("tags", ()) for cell in cells)


def _lesson(name: str, cells: list[Any]) -> Page:
    code = [_text(cell["source"]) if cell["cell_type"] == "code" else "" for cell in cells]
    live = [number for number, cell in enumerate(cells) if _is_live(cell)]
    run = set(needed(code, live))
    made = []
    for number, cell in enumerate(cells):
        if cell["cell_type"] == "markdown":
            made.append(Cell(_text(cell["source"]), "prose"))
        elif cell["cell_type"] == "code":
            fate: Fate = "live" if number in live else "run" if number in run else "kept"
            made.append(Cell(code[number], fate, tuple(cell["outputs"])))
    heading, _, rest = made[0].text.strip().partition("\n")
    taught = {lesson.notebook: f"{lesson.teaches} ({lesson.minutes} min)" for lesson in LESSONS}
    about = taught.get(name) or " ".join(rest.strip().partition("\n\n")[0].split())
    about = about[:1].upper() + about[1:]
    title = heading.lstrip("# ").strip()
    return Page(f"lessons/{name}", title, re.sub(r"[*`]|\]\([^)]*\)|\[", "", about), tuple(made))


def _is_live(cell: Any) -> bool:
    """Whether a cell shows a widget."""
    data = (output.get("data", {}) for output in cell.get("outputs", ()))
    return any(_LIVE.match(_text(one.get("text/plain", ""))) for one in data)


def _text(source: Any) -> str:
    return source if isinstance(source, str) else "".join(source)


def catalogue() -> dict[str, Page]:
    """All pages by address; a lesson is found without its ending, too."""
    found = {page.address: page for page in (*explorers(), *lessons())}
    short = {address.removesuffix(".ipynb"): page for address, page in found.items()}
    return short | found
