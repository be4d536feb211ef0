"""Results of one scenario side by side: their figures as a table for people, a tidy one, and one for reading."""

import html
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Protocol, TypeVar

from gpuplan.inputs.errors import InputError, Mistake, shorten

if TYPE_CHECKING:
    import pandas as pd

Figure = float | int | None


class Result(Protocol):
    """What a policy made of a scenario: figures by name, in the order in which they are shown."""

    @property
    def figures(self) -> Mapping[str, Figure]:
        """The figures."""
        ...

    @property
    def scenario(self) -> Any:
        """The scenario, which has a name."""
        ...


R = TypeVar("R", bound=Result)


def as_text(value: Figure, unit: str) -> str:
    """A figure as text: shares in per cent with one decimal, amounts with two, counts whole."""
    if value is None:
        return "none"
    if unit.startswith("share"):
        return f"{value:.1%}"
    return f"{value:,}" if isinstance(value, int) else f"{value:,.2f}"


def require_names_apart(source: str, names: Sequence[str]) -> None:
    """Refuse two policies of one name, of which only one would be shown.

    Raises
    ------
    InputError
        With every name that stands twice.
    """
    twice = [name for name in dict.fromkeys(names) if names.count(name) > 1]
    if twice:
        rule = "must have a name of its own beside the others"
        raise InputError(source, [Mistake("policies", rule, name) for name in twice])


class SideBySide(Generic[R]):
    """Results of one scenario by policy; each slice says what its figures are.

    Attributes
    ----------
    units, meanings : dict
        Unit of each figure; what it is, as a sentence, where that is said.
    noun : str
        What a result is called.
    """

    units: ClassVar[Mapping[str, str]]
    meanings: ClassVar[Mapping[str, str]] = {}
    noun: ClassVar[str] = "run"

    def __init__(self, results: Mapping[str, R]) -> None:
        self.results = dict(results)

    def __getitem__(self, policy: str) -> R:
        return self.results[policy]

    @property
    def scenario(self) -> Any:
        """The scenario that all results are of."""
        return next(iter(self.results.values())).scenario

    @property
    def remarks(self) -> list[str]:
        """Sentences below the table."""
        return []

    @cached_property
    def table(self) -> "pd.DataFrame":
        """Tidy: a row per policy and figure, with ``policy, figure, value, unit``."""
        import pandas as pd

        rows = [
            (name, figure, None if value is None else float(value), self.units[figure])
            for name, result in self.results.items()
            for figure, value in result.figures.items()
        ]
        table = pd.DataFrame(rows, columns=["policy", "figure", "value", "unit"])
        return table.astype({"value": float})

    @cached_property
    def wide(self) -> "pd.DataFrame":
        """A row per figure, a column per policy (units in ``units``)."""
        import pandas as pd

        columns = {name: pd.Series(result.figures, dtype=float) for name, result in self.results.items()}
        wide = pd.DataFrame(columns)
        wide.index.name = "figure"
        return wide

    def _cells(self) -> dict[str, list[str]]:
        """The figures as text, by figure; a cell per policy."""
        names = next(iter(self.results.values())).figures
        return {
            figure: [as_text(result.figures[figure], self.units[figure]) for result in self.results.values()]
            for figure in names
        }

    def __repr__(self) -> str:
        n = len(self.results)
        lines = [f"{shorten(self.scenario.name)}: {n} {self.noun}{'s' if n != 1 else ''}"]
        cells = self._cells()
        width = max(map(len, cells))
        columns = [max(len(name), 12) for name in self.results]
        heads = zip(self.results, columns, strict=True)
        lines.append(" " * width + "".join(f"  {name:>{column}}" for name, column in heads))
        for figure, row in cells.items():
            texts = "".join(f"  {cell:>{column}}" for cell, column in zip(row, columns, strict=True))
            lines.append(f"{figure:<{width}}{texts}  {self.units[figure]}")
        return "\n".join([*lines, *self.remarks])

    def _repr_html_(self) -> str:
        head = "".join(f'<th scope="col">{html.escape(name)}</th>' for name in self.results)
        body = []
        for figure, row in self._cells().items():
            meaning = self.meanings.get(figure)
            title = f' title="{html.escape(meaning)}"' if meaning else ""
            cells = "".join(f'<td style="text-align:right">{cell}</td>' for cell in row)
            body.append(
                f'<tr><th scope="row" style="text-align:left"{title}>{figure.replace("_", " ")}</th>{cells}'
                f'<td style="text-align:left">{self.units[figure]}</td></tr>'
            )
        caption = html.escape(shorten(self.scenario.name))
        return (
            f"<table><caption>{caption}</caption><thead><tr><th></th>{head}<th>unit</th></tr></thead>"
            f"<tbody>{''.join(body)}</tbody></table>"
            + "".join(f"<p>{html.escape(line)}</p>" for line in self.remarks)
        )
