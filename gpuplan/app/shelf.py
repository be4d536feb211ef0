"""The pages of the app: explorers and lessons, by the last part of their address."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gpuplan.inputs.folders import data_folder


@dataclass(frozen=True, slots=True)
class Page:
    """A page with a kernel.

    Attributes
    ----------
    address
        Below the home page, like ``explore/allocation``.
    title, about
        For people.
    cells
        What is shown and run, in order: (is it code, text).
    """

    address: str
    title: str
    about: str
    cells: tuple[tuple[bool, str], ...]


#: Explorers: name in the address, title, what they are about.
EXPLORERS = (
    (
        "allocation",
        "Which GPU runs which job at which hour?",
        "A day of one cluster, planned by two policies.",
    ),
    ("days", "Days as they unfold", "One plan after the other, while forecasts turn out right or wrong."),
    ("fair-share", "Whose turn is it?", "Weeks of a cluster that many teams share, and its budget."),
    ("packing", "Which model sits in which GPU's memory?", "A node with a few GPUs that serves many models."),
)

_CODE = "from gpuplan.app.page import explorer\nexplorer({name!r})"


def explorers() -> list[Page]:
    """The pages of the explorers."""
    return [
        Page(f"explore/{name}", title, about, ((True, _CODE.format(name=name)),))
        for name, title, about in EXPLORERS
    ]


def lessons() -> list[Page]:
    """The lessons that ship with gpuplan, in reading order; those on other people's data are left out."""
    folder = data_folder("notebooks")
    return [_lesson(path) for path in sorted(folder.glob("[0-9][0-9]-*.ipynb"))]


def _lesson(path: Path) -> Page:
    notebook = json.loads(path.read_text(encoding="utf-8"))
    cells = [(cell["cell_type"], _text(cell["source"])) for cell in notebook["cells"]]
    first = next((text for kind, text in cells if kind == "markdown"), path.stem)
    heading, _, rest = first.strip().partition("\n")
    about = rest.strip().partition("\n\n")[0].replace("\n", " ")
    return Page(
        f"lessons/{path.name}",
        heading.lstrip("# ").strip(),
        about.replace("*", "").replace("`", ""),
        tuple((kind == "code", text) for kind, text in cells if kind in ("code", "markdown")),
    )


def _text(source: Any) -> str:
    return source if isinstance(source, str) else "".join(source)


def catalogue() -> dict[str, Page]:
    """All pages by address; a lesson is found with and without its ending."""
    found = {page.address: page for page in (*explorers(), *lessons())}
    return found | {address.removesuffix(".ipynb"): page for address, page in found.items()}
