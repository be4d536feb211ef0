"""How Sphinx builds the pages; `docs/build.py` puts them together and calls it."""

import importlib
from importlib.metadata import version as version_of

from docutils.nodes import Element
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment

project = "gpuplan"
version = release = version_of("gpuplan")
extensions = ["myst_parser", "sphinx.ext.autodoc", "numpydoc"]

html_theme = "furo"
html_title = f"gpuplan {release}"
html_show_sphinx = False
html_show_copyright = False
html_copy_source = False
html_static_path = ["_static"]
html_css_files = ["wide-tables.css"]

myst_heading_anchors = 3

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_class_signature = "mixed"
numpydoc_show_class_members = False
numpydoc_use_plots = False
add_module_names = False
python_use_unqualified_type_names = True
toc_object_entries_show_parents = "hide"

# Names in single backticks are links where these pages document them, and code everywhere else.
default_role = "py:obj"
nitpicky = True
# The two kinds of Policy are told apart by the page that names them.
suppress_warnings = ["ref.python"]


def known(app: Sphinx, env: BuildEnvironment, node: pending_xref, shown: Element) -> Element | None:
    """A name that these pages do not document, as code; None, a warning, for one of gpuplan's that is not there."""
    target = str(node.get("reftarget", ""))
    if node.get("refdomain") != "py" or not target.startswith(("gpuplan.", "gpuplan_widgets.")):
        return shown
    return shown if found(target) else None


def found(target: str) -> bool:
    """Whether there is a module, or something in one, of this name."""
    words = target.split(".")
    for n in range(len(words), 0, -1):
        try:
            value = importlib.import_module(".".join(words[:n]))
        except ModuleNotFoundError:
            continue
        for word in words[n:]:
            if not hasattr(value, word):
                return word in getattr(value, "__annotations__", {})
            value = getattr(value, word)
        return True
    return False


def setup(app: Sphinx) -> None:
    """Called by Sphinx."""
    app.connect("missing-reference", known)
