"""From a notebook to a report: `gpuplan.report_notebook`."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from gpuplan.files import write_whole
from gpuplan.inputs.errors import shorten
from gpuplan.reports.notebook_file import Notebook, read_notebook
from gpuplan.reports.notebook_parameters import defaults, with_parameters
from gpuplan.reports.notebook_run import TIME_LIMIT_S, Ran, run_notebook

#: Characters of a page at most: a browser shows no more.
MOST_CHARACTERS = 300_000_000


@dataclass(frozen=True)
class NotebookReport:
    """A notebook that was run, as a page that needs nothing but a browser.

    Attributes
    ----------
    notebook : Notebook
        As it was asked for, with its parameters in place.
    values : dict
        Its parameters as they held.
    ran : Ran
        What its cells gave.
    folder : Path or None
        Where pictures beside it are found.
    code : bool
        Whether the page shows the code.
    """

    notebook: Notebook
    values: dict[str, Any]
    ran: Ran
    folder: Path | None
    code: bool = False

    @cached_property
    def html(self) -> str:
        """The page as text; the same notebook, parameters, files beside it and versions give the same text."""
        from gpuplan.inputs.errors import InputError, Mistake
        from gpuplan.reports.notebook_page import notebook_page

        page = notebook_page(self.notebook, self.values, self.ran, self.folder, code=self.code)
        if len(page) > MOST_CHARACTERS:
            rule = f"gives a page of more than {MOST_CHARACTERS // 1_000_000} million characters: show less in it"
            raise InputError(self.notebook.name, [Mistake("", rule)])
        return page

    def save(self, path: str | Path) -> None:
        """Write the page; a name that ends in ``.pdf`` is printed by a browser that is at hand.

        Raises
        ------
        InputError
            Where there is no browser for a PDF, or it fails.
        OSError
            Where the file cannot be written.
        """
        if Path(path).suffix.lower() == ".pdf":
            from gpuplan.reports.pdf import print_pdf

            print_pdf(self.html, Path(path))
        else:
            write_whole(Path(path), self.html.encode())

    def __repr__(self) -> str:
        return f"<Report of the notebook {shorten(self.notebook.name)!r}, {len(self.ran.scenarios):,} scenarios run>"


def report_notebook(
    path: str | Path,
    parameters: Mapping[str, Any] | None = None,
    *,
    code: bool = False,
    time_limit_s: float = TIME_LIMIT_S,
) -> NotebookReport:
    """Run a notebook from its first cell to its last, and make a page of what it shows.

    A notebook is a program: it can do whatever you can. Run those of people you trust.

    Parameters
    ----------
    path
        An ``.ipynb`` file of Python; it runs in its folder, in a kernel of its own, under this Python.
    parameters
        Values in place of those of the cell tagged ``parameters``. A text with an ending or a slash that names a file
        from the working folder is that file.
    code
        Whether the page shows the code; by default texts, figures and charts alone.
    time_limit_s
        Seconds in all.

    Raises
    ------
    InputError
        For a file that is no notebook, parameters that it does not have, a cell that fails, too much time or output.
    """
    notebook = read_notebook(path)
    source, folder = Path(path).name, Path(path).resolve().parent
    wanted, values = with_parameters(notebook, parameters or {}, source)
    given = {name: value for name, value in values.items() if name in (parameters or {})}
    as_run = _found(wanted, given, folder, source)
    return NotebookReport(wanted, values, run_notebook(as_run, folder, source, time_limit_s), folder, code)


def of_notebook(
    notebook: Notebook, values: dict[str, Any], folder: Path, source: str, code: bool, time_limit_s: float
) -> NotebookReport:
    """The report of a notebook that has its parameters already, as in a page (see `report_notebook`)."""
    return NotebookReport(
        notebook, values, run_notebook(notebook, folder, source, time_limit_s), folder, code
    )


def _found(notebook: Notebook, given: Mapping[str, Any], folder: Path, source: str) -> Notebook:
    """The notebook with files of the working folder named from where it runs; the page names them as given."""
    if Path.cwd() == folder:
        return notebook
    here = {
        name: os.path.relpath(value, folder)
        for name, value in given.items()
        if isinstance(value, str) and _is_file(value)
    }
    return with_parameters(notebook, here, source)[0] if here else notebook


def _is_file(value: str) -> bool:
    try:
        path = Path(value)
        return not path.is_absolute() and (bool(path.suffix) or len(path.parts) > 1) and path.is_file()
    except (OSError, ValueError):  # what cannot be a name of a file is none
        return False


def parameters_of(path: str | Path) -> dict[str, Any]:
    """The parameters of a notebook and their defaults.

    Raises
    ------
    InputError
        For a file that is no notebook.
    """
    return {name: one.value for name, one in defaults(read_notebook(path), Path(path).name).items()}
