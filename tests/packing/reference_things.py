"""What the slow simulator keeps in mind: stages, instances, tasks, and the answer that it hands back."""

from dataclasses import dataclass, field

from gpuplan.packing.model import NEVER
from gpuplan.packing.raw import WAITING

#: Service is counted in this part of a microsecond, transfers in millionths of a byte.
SCALE = 1 << 20
MILLION = 1_000_000

NOT_YET, QUEUED, OUTSIDE, GETTING_READY, RUNNING, SAVING, RESTORING, GONE = (
    "not yet",
    "queued",
    "outside",
    "getting ready",
    "running",
    "saving",
    "restoring",
    "gone",
)


@dataclass(eq=False)
class Stage:
    task: int
    copy: "Copy"
    kind: int
    start: int
    attempt: int
    outcome: int = -1
    end: int = NEVER
    frozen_from: int = NEVER

    @property
    def over(self) -> bool:
        return self.outcome >= 0


@dataclass(eq=False)
class Copy:
    """An instance of a model on its GPUs; its state follows from which of its instants have come.

    `coming`: what its transfers have left, millionths of a byte, by GPU; those that have ended are not there any more.
    """

    model: int
    gpus: tuple[int, ...]
    claimed: int
    for_task: int
    load: int = NEVER
    ready: int = NEVER
    evicted: int = NEVER
    released: int = NEVER
    from_disk: int = 0
    coming: dict[int, int] = field(default_factory=dict)
    last_used: int = 0
    must_go: bool = False
    waits_for: list["Stage | Copy"] = field(default_factory=list)

    @property
    def gpu(self) -> int:
        """The lowest of its GPUs."""
        return self.gpus[0]

    @property
    def over(self) -> bool:
        return self.released < NEVER

    @property
    def pending(self) -> bool:
        return self.load == NEVER

    @property
    def evicting(self) -> bool:
        return self.evicted < NEVER and not self.over

    @property
    def usable(self) -> bool:
        """Takes tasks, now or when it is loaded."""
        return self.evicted == NEVER and not self.must_go


@dataclass(eq=False)
class Request:
    """A task, and what has become of it."""

    row: int
    model: int
    arrival: int
    priority: int
    service: int
    predicted: int
    tokens_in: int
    tokens_out: int
    deadline: int
    remaining: int
    state: str = NOT_YET
    back_at: int = NEVER
    served: bool = False
    saved: bool = False
    failures: int = 0
    left: int = NEVER
    fate: int = WAITING
    copy: Copy | None = None
    stage: Stage | None = None
    waits_for: list[Stage | Copy] = field(default_factory=list)

    def done_us(self) -> int:
        return (self.service * SCALE - max(0, self.remaining)) // SCALE

    def predicted_remaining(self) -> int:
        return max(0, self.predicted - self.done_us())


@dataclass
class Merged:
    """What was placed last from a queue, and how many of that in a row."""

    model: int = -1
    priority: int = 0
    count: int = 0


@dataclass
class Outcome:
    """What `reference` hands back: rows of `RawPack` as tuples, in an order that does not depend on who made them.

    `sets` are the GPUs of each of the `copies`; the last column of `stages` is the row of the instance.
    """

    stages: list[tuple[int, ...]]
    copies: list[tuple[int, ...]]
    sets: list[tuple[int, ...]]
    breaches: list[tuple[int, ...]]
    state: list[int]
    left: list[int]
    failures: list[int]
    end: int


def by_start(stage: tuple[int, ...]) -> tuple[int, int]:
    """Stages by start, then task; those of one task stay in the order in which they were decided."""
    return stage[4], stage[0]


def by_claim(copy: Copy) -> tuple[int, int, int]:
    """Instances by claim, then GPU, then model."""
    return copy.claimed, copy.gpu, copy.model
