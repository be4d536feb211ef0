"""The node of the slow simulator: its memory, its links, and who is where."""

from gpuplan.packing.model import NEVER, PackingScenario, Pieces, ServedModel
from packing.reference_things import (
    MILLION,
    RESTORING,
    RUNNING,
    SAVING,
    SCALE,
    Copy,
    Merged,
    Request,
    Stage,
)


class Node:
    """The state of the GPUs and of the tasks, and what can be read from it."""

    def __init__(self, scenario: PackingScenario, pieces: Pieces) -> None:
        self.scenario, self.pieces = scenario, pieces
        self.gpus, self.models = scenario.gpus, scenario.models
        self.now = -1
        self.end = 0
        self.changed = False
        self.requests = self.read_tasks()
        self.copies: list[Copy] = []
        self.stages: list[Stage] = []
        self.breaches: list[tuple[int, int, int, int]] = []
        self.in_host_memory: set[int] = set()
        self.asleep: set[tuple[int, int]] = set()
        self.placements = [0] * len(self.models)
        self.last_gpu = self.gpus.count - 1
        self.merged: dict[int, Merged] = {}
        for m, model in enumerate(self.models):
            for g in sorted(model.resident):
                self.copies.append(Copy(m, g, 0, -1, load=0, ready=0))
                self.in_host_memory.add(m)

    def read_tasks(self) -> list[Request]:
        t = self.scenario.tasks
        assert t is not None
        columns = (t.model, t.arrival_us, t.priority, t.service_us, t.predicted_us)
        columns += (t.tokens_in, t.tokens_out, t.deadline_us)
        rows = zip(*(column.tolist() for column in columns), strict=True)
        return [Request(row, *values, remaining=values[3] * SCALE) for row, values in enumerate(rows)]

    # ------------------------------------------------------------ memory

    def context(self, model: ServedModel) -> int:
        return self.scenario.admission.context_bytes if model.context_bytes is None else model.context_bytes

    def taken(self, m: int) -> int:
        """Bytes of a loaded copy."""
        model = self.models[m]
        return model.actual_bytes + self.context(model) + model.workspace_bytes

    def need(self, m: int) -> int:
        """Bytes that the scheduler believes a copy needs: declared x (1 + margin), rounded up, + context if counted."""
        model, admission = self.models[m], self.scenario.admission
        whole, rest = divmod(model.declared_bytes * (MILLION + admission.margin), MILLION)
        return whole + (rest > 0) + (self.context(model) if admission.count_context else 0)

    def kv(self, request: Request, later_us: int = 0) -> int:
        """Bytes of KV of a task now, or so many microseconds later if nothing else happens."""
        if request.state not in (RUNNING, SAVING, RESTORING):
            return 0
        remaining = request.remaining
        if request.state == RUNNING:
            remaining = max(0, remaining - self.speed(self.gpu_of(request)) * later_us)
        done = (request.service * SCALE - remaining) // SCALE
        written = request.tokens_out * done // request.service if request.service else 0
        return self.models[request.model].kv_bytes_per_token * (request.tokens_in + written)

    def actual(self, gpu: int, later_us: int = 0) -> int:
        """Bytes in the memory of a GPU."""
        here = [c for c in self.copies if c.gpu == gpu and not c.pending and not c.over]
        loaded = sum(self.taken(c.model) for c in here)
        asleep = sum(self.models[m].asleep_bytes for m, g in self.asleep if g == gpu)
        return loaded + asleep + sum(self.kv(r, later_us) for r in self.attached(gpu))

    def reserved(self, gpu: int) -> int:
        """Bytes that the scheduler believes are taken."""
        return sum(self.need(c.model) for c in self.copies if c.gpu == gpu and not c.over)

    def never_fits(self, request: Request) -> bool:
        kv = self.models[request.model].kv_bytes_per_token * (request.tokens_in + request.tokens_out)
        return max(self.need(request.model), self.taken(request.model) + kv) > self.gpus.memory_bytes

    # ------------------------------------------------------------ what is where

    def gpu_of(self, request: Request) -> int:
        assert request.copy is not None
        return request.copy.gpu

    def attached(self, gpu: int) -> list[Request]:
        return [r for r in self.requests if r.copy is not None and r.copy.gpu == gpu]

    def users(self, copy: Copy) -> list[Request]:
        return [r for r in self.requests if r.copy is copy]

    def copy_of(self, m: int, gpu: int) -> Copy | None:
        """The instance of a model on a GPU that takes tasks."""
        found = [c for c in self.copies if c.model == m and c.gpu == gpu and c.usable]
        assert len(found) <= 1
        return found[0] if found else None

    def idle(self, copy: Copy) -> bool:
        ready = copy.ready < NEVER and copy.usable
        return ready and not self.users(copy) and not self.models[copy.model].pinned

    def speed(self, gpu: int) -> int:
        """Parts of a microsecond of service that each running task gets per microsecond."""
        n = sum(r.state == RUNNING for r in self.attached(gpu))
        contention = self.scenario.contention
        if contention.model == "none" or n <= 1:
            return SCALE
        if contention.model == "sharing":
            return max(1, SCALE // n)
        return max(1, int(SCALE / (1 + contention.beta * (n - 1))))

    def rate(self, copy: Copy) -> int:
        """Bytes per second of a transfer."""
        running = [c for c in self.copies if c.loading]
        rate = self.gpus.host_bytes_per_s // sum(c.gpu == copy.gpu for c in running)
        if copy.from_disk:
            rate = min(rate, self.gpus.disk_bytes_per_s // sum(c.from_disk for c in running))
        return max(1, rate)
