"""Builds the pages and the reference as a site that needs no network: ``python docs/build.py [FOLDER]``.

The pages are copied first, so that a checkout that cannot be written is no obstacle; every warning is an error.
"""

from __future__ import annotations

import re
import shutil
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

#: Pages in the order of the site's contents; a page of docs/ that is not in it is a warning, so an error.
CONTENTS = {
    "Three questions": ("allocation", "rolling", "fairshare", "packing"),
    "Your own work": ("your-data", "sweeps", "reports", "serve", "teachers"),
    "To look up": ("figures", "glossary", "limits"),
    "Reference": (
        *("reference-commands", "reference-files", "reference-policies"),
        *("reference-python", "reference-values", "reference-widgets"),
    ),
    "To change it": ("add-a-policy", "how-it-is-built"),
}


def put_together(folder: Path) -> None:
    """All sources of the site in one folder: pages, contents, reference, configuration."""
    import reference

    shutil.copytree(HERE, folder, ignore=shutil.ignore_patterns("*.py", "__pycache__"))
    shutil.copy(HERE / "conf.py", folder)
    for page in folder.glob("*.md"):
        page.write_text(at_home(page.read_text(encoding="utf-8")), encoding="utf-8")
    trees = "\n".join(_tree(caption, pages) for caption, pages in CONTENTS.items())
    index = folder / "index.md"
    index.write_text(index.read_text(encoding="utf-8") + "\n" + trees, encoding="utf-8")
    reference.write(folder)


def at_home(text: str) -> str:
    """A page without its links to files of the checkout that are not part of the site: their words stay."""
    return re.sub(r"\[([^\]\n]+)\]\(\.\./[^)\s]+\)", r"\1", text)


def _tree(caption: str, pages: tuple[str, ...]) -> str:
    return "\n".join(["```{toctree}", ":hidden:", f":caption: {caption}", "", *pages, "```", ""])


def build(target: Path) -> int:
    """Build the site into a folder; 0, or 1 with the warnings on stderr."""
    from sphinx.application import Sphinx

    with tempfile.TemporaryDirectory() as scratch:
        source, trees = Path(scratch) / "pages", Path(scratch) / "trees"
        put_together(source)
        site = Sphinx(
            source,
            source,
            target,
            trees,
            "html",
            status=None,
            warningiserror=True,
            verbosity=0,
            freshenv=True,
        )
        site.build()
        return int(site.statuscode)


if __name__ == "__main__":
    where = Path(sys.argv[1]) if len(sys.argv) > 1 else HERE.parent / "build" / "docs"
    status = build(where)
    if not status:
        print(f"Open {where / 'index.html'}")
    raise SystemExit(status)
