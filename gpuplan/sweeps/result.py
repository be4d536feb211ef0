"""What a sweep found: a tidy table, means over seeds with intervals, differences of policies, a chart."""

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from gpuplan import theme
from gpuplan.inputs.errors import InputError, Mistake, did_you_mean, shorten
from gpuplan.sweeps.grid import SEED, Grid

if TYPE_CHECKING:
    import pandas as pd

    from gpuplan.gantt.offline import OfflineChart


class Sweep:
    """The results of a sweep.

    Attributes
    ----------
    scenario
        The scenario that every point changes.
    axes : dict of str to tuple
        Values by path.
    policies : tuple of str
    units : dict of str to str
        Unit of each figure.
    computed : int
        Results that this call has computed; the others were in the folder.
    busy_s : float
        Seconds that workers spent in points, added over all workers.
    notes : tuple of str
        Sentences about workers that ended and results that could not be written.
    """

    def __init__(
        self,
        grid: Grid,
        rows: Sequence[Mapping[str, Any]],
        *,
        computed: int,
        busy_s: float,
        notes: tuple[str, ...],
    ) -> None:
        self.scenario = grid.scenario
        self.axes = dict(grid.axes)
        self.policies = grid.policies
        self.units = grid.units
        self.computed = computed
        self.busy_s = busy_s
        self.notes = notes
        self._rows = rows

    @cached_property
    def table(self) -> "pd.DataFrame":
        """A row per point and policy: the axes, ``policy``, the figures, ``error`` (or none), ``key, version``."""
        import pandas as pd

        table = pd.DataFrame(self._rows)
        # text that may be missing is of one type, whether or not any is
        return table.astype({**{figure: float for figure in self.units}, "error": "string"})

    @property
    def errors(self) -> "pd.DataFrame":
        """The rows that have an error: the axes, ``policy``, ``error``."""
        return self.table.loc[self.table["error"].notna(), [*self.axes, "policy", "error"]]

    def means(self, figures: str | Sequence[str] | None = None) -> "pd.DataFrame":
        """Means over seeds: a row per setting, policy and figure, ``mean, low, high, n, missing, unit``.

        ``low`` and ``high`` are the 95 % interval of the mean (Student's t), missing for fewer than two values.

        Parameters
        ----------
        figures
            Names of figures; None: all.

        Raises
        ------
        InputError
            For an unknown figure.
        """
        from gpuplan.sweeps.means import means

        return means(self.table, [*self._settings, "policy"], self._figures(figures), self.units)

    def differences(self, against: str, figures: str | Sequence[str] | None = None) -> "pd.DataFrame":
        """Like `means`, of each policy minus another at the same point and seed (common random numbers).

        Parameters
        ----------
        against
            One of the policies.
        figures
            Names of figures; None: all.

        Raises
        ------
        InputError
            For an unknown figure, or a policy that the sweep does not have.
        """
        from gpuplan.sweeps.means import means, paired

        if against not in self.policies or len(self.policies) < 2:
            rule = f"must be one of the sweep's two or more policies{did_you_mean(against, self.policies)}"
            raise InputError("sweep", [Mistake("against", rule, against)])
        names = self._figures(figures)
        return means(
            paired(self.table, list(self.axes), names, against),
            [*self._settings, "policy"],
            names,
            self.units,
        )

    def chart(
        self,
        figure: str | None = None,
        x: str | None = None,
        *,
        width: int = 720,
        mode: theme.Mode = "light",
    ) -> "OfflineChart":
        """A figure over an axis, a line per policy, the interval over seeds as a band; a panel per other setting.

        Parameters
        ----------
        figure
            None: the objective, the mean wait or the mean latency.
        x
            One of the axes; None: the one of numbers with the most values.
        width
            Pixels of the whole.
        mode
            Colours for a ``"light"`` or a ``"dark"`` page.

        Raises
        ------
        InputError
            For an unknown figure or axis, and for more panels than can be read.
        """
        from gpuplan.sweeps.chart import sweep_chart

        return sweep_chart(self, figure, x, width, mode)

    @property
    def _settings(self) -> list[str]:
        return [axis for axis in self.axes if axis != SEED]

    def _figures(self, wanted: str | Sequence[str] | None) -> list[str]:
        names = list(self.units) if wanted is None else [wanted] if isinstance(wanted, str) else list(wanted)
        mistakes = [
            Mistake("figures", f"unknown figure{did_you_mean(name, self.units)}", name)
            for name in names
            if name not in self.units
        ]
        if mistakes:
            raise InputError("sweep", mistakes)
        return names

    def __repr__(self) -> str:
        points = len(self._rows) // len(self.policies)
        wrong = sum(row["error"] is not None for row in self._rows)
        axes = ", ".join(f"{shorten(path)} ({len(values)})" for path, values in self.axes.items())
        return (
            f"<Sweep of {shorten(self.scenario.name)!r}: {points:,} points x {len(self.policies)} "
            f"policies over {axes or 'nothing'}; {wrong:,} errors>"
        )
