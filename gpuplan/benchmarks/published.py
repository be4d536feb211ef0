"""Published figures to stand beside.

Source: Dharma-AI, "Same Cluster, 33 Points More Utilization: What Changed Was the Order" (August 2026),
and summaries of it. Its code and inputs are not public; what is not stated there is None.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Published:
    """What was published about one scenario, and the reconstruction that stands for it.

    Shares as fractions of 1; `value_gain` is the allocator's value over that of FIFO, less 1.
    """

    scenario: str
    gpus: int | None = None
    jobs: int | None = None
    fifo_utilization: float | None = None
    utilization: float | None = None
    value_gain: float | None = None
    finished: int | None = None


#: In the order of the article; the three contended scenarios without a name are known by their range only
#: (FIFO up to 85 %, allocator up to 88 %; the five contended ones gain 52 % on average, 24.6 % at least).
#: That the many quantizations stand for the one at 85 % is our choice, so it is not given as published.
PUBLISHED = (
    Published("benchmark-training-heavy", 8, 16, 103 / 192, 167 / 192, 1.051),
    Published("benchmark-mixed-control", fifo_utilization=99 / 192),
    Published("benchmark-inference-peak"),
    Published("benchmark-large-blocks"),
    Published("benchmark-many-quantizations"),
    Published(
        "benchmark-uniform-priority", fifo_utilization=295 / 384, utilization=336 / 384, value_gain=0.231
    ),
    Published("benchmark-scale", 64, 30, 690 / 1536, 690 / 1536, 0.159, 27),
)
