"""What the kernels hand back: stretches of running, places, repairs."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from gpuplan.fairshare.model import Bools, Int64

#: How a stretch of running ended.
FINISHED, PREEMPTED, SHUT_DOWN, RUNNING = range(4)

#: The same as words of tables and files.
OUTCOMES = ("finished", "preempted", "shut-down", "running")


@dataclass(frozen=True, slots=True)
class Stretches:
    """``S`` unbroken stretches of running, in order of their start (then in the order of decisions).

    Attributes
    ----------
    job : int64[S]
        Row of `Jobs`.
    start_s, end_s : int64[S]
        Half-open; `end_s` of a stretch that was still running is the end of the run.
    overhead_s : int64[S]
        Restart cost at its start (the stretch may end inside it).
    kept_s : int64[S]
        Progress that outlives the stretch: work since the overhead, up to the last checkpoint where it was
        interrupted (0 for work that cannot resume), all of it where it finished or was still running.
    allocated : bool[S]
        Charged to the team's budget (true under policies without budgets).
    protected_until_s : int64[S]
        End of the effective minimum run time (the start, where nothing is protected).
    outcome : int8[S]
        `FINISHED`, `PREEMPTED`, `SHUT_DOWN` (by hand, for a repair) or `RUNNING`.
    place_stretch, place_node, place_gpus : int64[P]
        Where each stretch ran: a row per stretch and node, sorted by stretch, then node.
    """

    job: Int64
    start_s: Int64
    end_s: Int64
    overhead_s: Int64
    kept_s: Int64
    allocated: Bools
    protected_until_s: Int64
    outcome: npt.NDArray[np.int8]
    place_stretch: Int64
    place_node: Int64
    place_gpus: Int64

    def __len__(self) -> int:
        return len(self.job)


@dataclass(frozen=True, slots=True)
class RawRun:
    """What a policy did.

    Attributes
    ----------
    stretches
    end_s
        The run ended there: the horizon, or the last instant at which anything happened.
    repair_start_s, repair_end_s : int64[D]
        When each drain's repair began and ended (`NEVER` where it did not, before the end), in the order of the
        scenario's drains.
    set_aside : dict
        Jobs (rows) that can never run under this policy, with the reason.
    stopped
        Why the run was stopped before its end: a sentence, or nothing.
    """

    stretches: Stretches
    end_s: int
    repair_start_s: Int64
    repair_end_s: Int64
    set_aside: dict[int, str]
    stopped: str = ""
