"""What a fair-share policy is."""

from collections.abc import Callable
from dataclasses import dataclass

from gpuplan.fairshare.problem import Problem
from gpuplan.fairshare.raw import RawRun


@dataclass(frozen=True, slots=True)
class Policy:
    """A named policy.

    Parameters
    ----------
    name
        The name in commands, files and tables.
    about
        One sentence: exactly what the policy does.
    run
        The policy as a function of the problem.
    budgets
        Whether it distinguishes allocated from unallocated work.
    preempts
        Whether running work may be interrupted for other work.
    """

    name: str
    about: str
    run: Callable[[Problem], RawRun]
    budgets: bool = False
    preempts: bool = False
