"""A live chart of a proof that is being made."""

from gpuplan.allocation.charts.progress import progress_data, progress_spec
from gpuplan.allocation.policies import Progress
from gpuplan_widgets.live_chart import LiveChart


class ProgressChart(LiveChart):
    """Best plan and bound over time, drawn anew at every call: the ``report`` of `gpuplan.plan` and `gpuplan.certify`.

    Parameters
    ----------
    width
        Pixels of the drawing area.

    Examples
    --------
    >>> chart = ProgressChart()
    >>> made = gp.plan("training-rush", "exact", report=chart)  # doctest: +SKIP
    """

    def __init__(self, width: int = 640) -> None:
        self.history: list[Progress] = []
        super().__init__(
            progress_spec(width), progress_data(()), label="Best plan and bound over time", picture=False
        )

    def __call__(self, progress: Progress) -> None:
        """Add what is new and draw."""
        self.history.append(progress)
        self.show(progress_data(self.history))

    def restart(self) -> None:
        """Forget everything for another proof."""
        self.history = []
        self.show(progress_data(()))
