"""What the pages of the app run in their kernel."""

import os
from collections.abc import Callable, Mapping
from typing import Any

import gpuplan_widgets as widgets

#: What makes the explorer of each page.
MAKERS: dict[str, Callable[..., Any]] = {
    "allocation": lambda **state: widgets.AllocationExplorer(**state),
    "days": lambda **state: widgets.RollingExplorer(**state),
    "fair-share": lambda **state: widgets.FairShareExplorer(**state),
    "packing": lambda **state: widgets.PackingExplorer(**state),
}


def made(name: str, state: Mapping[str, Any]) -> Any:
    """The explorer of a page."""
    return MAKERS[name](**state)


def explorer(name: str) -> Any:
    """The explorer of a page, as its address says.

    Parameters
    ----------
    name
        One of `MAKERS`.
    """
    _ = os.environ.get("GPUPLAN_APP_QUERY", "")
    return made(name, {})
