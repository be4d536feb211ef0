"""When jobs run, without where: what `search` looks at before it places them in a window."""

from typing import Any

import numpy as np

from gpuplan.allocation import kernels, search_kernels
from gpuplan.allocation.engine import kernels_for
from gpuplan.allocation.kernels import START
from gpuplan.allocation.problem import Int64, Words, side_by_side
from gpuplan.allocation.windows import Window

#: How places are sought for given starts, one way after the other: how many steps a job is placed ahead of its start,
#: for each doubling of its size; whether apps are placed with the jobs; what a cell costs that is free just before or
#: just after, and noise (eighths of a cell).
PLACINGS = (
    (0, 0, 4, 0),
    (0, 1, 4, 0),
    (0, 0, 4, 40),
    (0, 1, 4, 40),
    (1, 1, 4, 40),
    (0, 0, 8, 100),
    (0, 1, 4, 40),
    (0, 0, 4, 40),
    (2, 1, 4, 40),
    (1, 0, 4, 40),
    (1, 1, 4, 40),
    (2, 1, 4, 40),
)


class Outline:
    """When jobs of a whole problem run, without where: what `schedule` works on.

    Parameters
    ----------
    window
        Of the whole cluster.
    """

    def __init__(self, window: Window) -> None:
        self.window = window
        problem = window.problem
        self.cells = np.bitwise_count(window.base).astype(np.int64)
        classes, cells = [], []
        words = window.base.tolist()
        largest = int(problem.options[:, kernels.O_SIZE].max(initial=1))
        for c in range(1, len(problem.allowed)):
            n = 1 << c
            if n > largest:
                break
            fits = int(window.fits[c])
            known = {word: n * side_by_side(word, fits, n) for word in set(words)}
            covered = np.array([known[word] for word in words], np.int64)
            if (covered < self.cells // n * n).any():
                classes.append(n)
                cells.append(covered)
        self.classes = np.array(classes, np.int64)
        self.class_cells = np.array(cells, np.int64).reshape(-1, problem.steps)
        self.state = window.state.copy()
        self.jobs = window.jobs.copy()
        self.best_jobs = window.jobs.copy()

    def go_on_from_best(self) -> None:
        """Make the best starts the current ones, and look for better ones than these at another price."""
        self.jobs[:] = self.best_jobs
        self.forget()

    def forget(self) -> None:
        """Forget the best starts, keep the current ones."""
        self.state[search_kernels.BEST] = -(1 << 62)

    def improve(
        self,
        moves: int,
        heat: float,
        cooling: float,
        tuning: Int64,
        logs: Any,
        chance: Words,
        apps: Int64 | None = None,
    ) -> None:
        """Make moves from the current starts (see `gpuplan.allocation.search_kernels.schedule`).

        ``apps`` takes the place of the problem's, where unmet demand is to cost something else.
        """
        window = self.window
        problem = window.problem
        kernels_for(problem.work, search_kernels).schedule(
            moves,
            heat * window.unit,
            cooling,
            tuning,
            logs,
            chance,
            self.state,
            self.jobs,
            problem.options,
            window.rank,
            self.cells,
            self.classes,
            self.class_cells,
            problem.weight_sum,
            window.targets,
            window.order,
            problem.demand,
            problem.apps if apps is None else apps,
            self.best_jobs,
        )

    def exchange(self, trials: int, chance: Words) -> None:
        """Let pairs of jobs of the best starts change places where that gains (`search_kernels.exchange`)."""
        window = self.window
        problem = window.problem
        kernels_for(problem.work, search_kernels).exchange(
            trials,
            chance,
            self.state,
            self.best_jobs,
            problem.options,
            self.cells,
            self.classes,
            self.class_cells,
            problem.weight_sum,
            window.targets,
        )

    def place(self, tuning: Int64, logs: Any, chance: Words) -> bool:
        """Give the jobs of the window blocks at the best starts: the plan from which it goes on.

        Which of several free blocks a job takes is partly left to chance: as often as it takes to find a plan
        that is worth what the starts are, but not more often than there are `PLACINGS`.
        Whether such a plan was found.
        """
        window, jobs, problem = self.window, self.best_jobs, self.window.problem
        size, start = jobs[:, kernels.SIZE], jobs[:, START]
        place_all = kernels_for(problem.work, search_kernels).place_all
        best, reached = -(1 << 62), False
        placed = window.jobs.copy()
        doublings = np.bitwise_count(size - 1).astype(np.int64)  # sizes are powers of two
        for ahead, with_apps, beside, noise in PLACINGS:
            turn = start - ahead * doublings
            sequence = np.lexsort((-jobs[:, kernels.DURATION] * size, -size, turn))
            window.jobs[:, : kernels.FIRST] = jobs[:, : kernels.FIRST]
            place_all(
                sequence,
                turn[sequence],
                with_apps,
                beside,
                noise,
                chance,
                window.state,
                window.jobs,
                window.fits,
                window.base,
                problem.weight_sum,
                window.targets,
                window.order,
                problem.demand,
                problem.apps,
                window.hold,
                window.best_jobs,
                window.best_hold,
            )
            direct = int(window.state[search_kernels.WORTH])
            # as the kernel lays the apps itself, the plan may be worth more or less
            window.improve(0, 0.0, 1.0, tuning, logs, chance)
            worth = int(window.state[search_kernels.WORTH])
            if worth > best:
                best = worth
                placed[:] = window.jobs
            reached |= max(direct, worth) >= int(self.state[search_kernels.BEST])
            if worth >= self.state[search_kernels.BEST]:
                break
        window.jobs[:] = placed
        window.state[search_kernels.WORTH] = best
        return reached
