"""Runs notebooks and saves them the way they are committed: executed, and nothing in them but what repeats.

Usage: ``python tests/notebooks/execute.py notebooks/*.ipynb``

- Widgets leave no state and no view (1 MB each, with random numbers); what stays of an explorer is the
  HTML form with its figures, which is what a viewer without a kernel shows.
- No times of execution, no version of Python, no output split into pieces by chance.
"""

import sys
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient

WIDGET_VIEW = "application/vnd.jupyter.widget-view+json"

METADATA = {
    "kernelspec": {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}


def execute(path: Path) -> None:
    """Run a notebook in a fresh kernel, in its own folder, and write it back."""
    notebook = nbformat.read(path, as_version=4)
    NotebookClient(
        notebook,
        timeout=300,
        kernel_name="python3",
        record_timing=False,
        coalesce_streams=True,
        resources={"metadata": {"path": str(path.parent)}},
    ).execute()
    clean(notebook)
    nbformat.validate(notebook)
    path.write_text(nbformat.writes(notebook) + "\n", encoding="utf-8")


def clean(notebook: Any) -> None:
    """Take out whatever differs from run to run or from machine to machine."""
    notebook.metadata = nbformat.from_dict(METADATA)
    for cell in notebook.cells:
        kept = {name: cell.metadata[name] for name in ("jupyter", "tags") if name in cell.metadata}
        cell.metadata = nbformat.from_dict(kept)
        for output in cell.get("outputs", []):
            output.get("data", {}).pop(WIDGET_VIEW, None)
            if "metadata" in output:
                output["metadata"] = nbformat.from_dict({})


if __name__ == "__main__":
    if len(sys.argv) == 1:
        sys.exit("name at least one notebook")
    for name in sys.argv[1:]:
        execute(Path(name))
        print(f"{name}: executed")
