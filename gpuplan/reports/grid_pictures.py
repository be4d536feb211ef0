"""What an interactive page draws of the point that is chosen: how each kind's picture is made of named data sets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from gpuplan import theme
from gpuplan.gantt import SCHEMA

if TYPE_CHECKING:
    from gpuplan.gantt import Columns, Spec
    from gpuplan.reports.grid_axes import Space

#: Pixels of a picture by layout; a page takes the widest that fits.
LAYOUTS = {"wide": 1000, "medium": 660, "narrow": 300}

Sets = dict[str, "Columns"]


@dataclass(frozen=True)
class Tabled:
    """A data set that stands in for the picture as a table: its name, and titles of its columns."""

    data: str
    caption: str
    columns: Mapping[str, str]


@dataclass(frozen=True)
class Words:
    """What a page says about its picture.

    Attributes
    ----------
    title, about : str
        Heading and caption.
    sided : bool
        Whether two policies are chosen for a left and a right side; else all of them are drawn.
    choices : tuple of str
        Names among which one more control chooses (teams); empty: there is no such control.
    chosen : str
        The first of them that is chosen.
    tables : tuple of Tabled
    """

    title: str
    about: str
    sided: bool
    tables: tuple[Tabled, ...]
    choices: tuple[str, ...] = ()
    chosen: str = ""


class Look(Protocol):
    """How the results of a point are drawn; made once from the scenario itself, so that points compare."""

    def sets(self, results: Mapping[str, Any]) -> tuple[Sets, list[Sets]]:
        """Data sets of a point: those that no policy changes, and those of each policy."""
        ...

    def finish(self, sets: Sequence[Sets]) -> None:
        """Put into the data sets of all policies and points what can be known only of all together."""
        ...

    def specs(self) -> dict[str, Spec]:
        """Vega-Lite of the picture by layout, without data."""
        ...

    def words(self) -> Words:
        """What is said about it."""
        ...


def look_of(comparison: Any, space: Space) -> Look:
    """The look of a page, from the results of the scenario itself."""
    kind = comparison.scenario.kind
    if kind == "allocation":
        from gpuplan.reports.grid_allocation import AllocationLook

        return AllocationLook.of(comparison, space)
    if kind == "fairshare":
        from gpuplan.reports.grid_fairshare import FairshareLook

        return FairshareLook.of(comparison, space)
    from gpuplan.reports.grid_packing import PackingLook

    return PackingLook.of(comparison)


def whole(panels: Spec, params: Sequence[Spec] = ()) -> Spec:
    """A specification with the parameters that colours ask for."""
    return {"$schema": SCHEMA, **panels, "params": [*params, *theme.fill_params()]}


#: What the pointer is not on steps back.
STANDS_OUT: Spec = {"condition": {"param": "hover", "value": 1}, "value": 0.3}


def hover(field: str, views: Sequence[str]) -> Spec:
    """The selection behind `STANDS_OUT`: everything of one name, in all views."""
    select = {"type": "point", "fields": [field], "on": "pointerover", "clear": "pointerout"}
    return {"name": "hover", "select": select, "views": list(views)}
