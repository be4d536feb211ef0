"""What the pages of the app run in their kernel."""

import os
from collections.abc import Callable, Mapping
from typing import Any

import gpuplan_widgets as widgets

#: What makes the explorer of each page, and the kind of its scenarios.
MAKERS: dict[str, tuple[Callable[..., Any], str]] = {
    "allocation": (lambda **start: widgets.AllocationExplorer(**start), "allocation"),
    "days": (lambda **start: widgets.RollingExplorer(**start), "allocation"),
    "fair-share": (lambda **start: widgets.FairShareExplorer(**start), "fairshare"),
    "packing": (lambda **start: widgets.PackingExplorer(**start), "packing"),
}


def made(name: str, start: Mapping[str, Any]) -> Any:
    """The explorer of a page.

    Parameters
    ----------
    name
        One of `MAKERS`.
    start
        The scenario and the policies that it begins with; what is not told is the usual.
    """
    return MAKERS[name][0](**start)


def explorer(name: str) -> Any:
    """The explorer of a page as its address says, with a link to hand on; mistakes of the address are told beside it.

    Parameters
    ----------
    name
        One of `MAKERS`.
    """
    import ipywidgets as W

    from gpuplan_widgets import address

    note = ""
    try:
        state = address.read(os.environ.get("GPUPLAN_APP_QUERY", ""), MAKERS[name][1])
        shown = _restored(name, state)
        if state.mark and not shown.state().fingerprint.startswith(state.mark):
            note = address.CHANGED
    except Exception as error:  # whatever a stranger's link brings about, there is a page
        note = address.sentence(error)
        shown = made(name, {})
    return W.VBox([address.Address(shown, note), shown])


def _restored(name: str, state: Any) -> Any:
    start = {"scenario": state.scenario, "policies": state.policies}
    shown = made(name, {key: value for key, value in start.items() if value})
    if state.changes:
        shown.restore(state.changes)
    return shown
