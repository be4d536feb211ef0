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
            there = sorted(model.resident)
            for k in range(0, len(there), model.gpus):
                self.copies.append(Copy(m, tuple(there[k : k + model.gpus]), 0, -1, load=0, ready=0))
                self.in_host_memory.add(m)

    def read_tasks(self) -> list[Request]:
        t = self.scenario.tasks
        assert t is not None
        columns = (t.model, t.arrival_us, t.priority, t.service_us, t.predicted_us)
        columns += (t.tokens_in, t.tokens_out, t.deadline_us)
        rows = zip(*(column.tolist() for column in columns), strict=True)
        return [Request(row, *values, remaining=values[3] * SCALE) for row, values in enumerate(rows)]

    # ------------------------------------------------------------ memory of each GPU

    def part(self, m: int, whole: int) -> int:
        """What each GPU holds of something that a model spreads over its GPUs, rounded up."""
        each, rest = divmod(whole, self.models[m].gpus)
        return each + (rest > 0)

    def context(self, model: ServedModel) -> int:
        return self.scenario.admission.context_bytes if model.context_bytes is None else model.context_bytes

    def weights(self, m: int) -> int:
        """Bytes that a load brings to each GPU."""
        return self.part(m, self.models[m].actual_bytes)

    def taken(self, m: int) -> int:
        """Bytes of a loaded copy on each GPU."""
        model = self.models[m]
        return self.weights(m) + self.context(model) + model.workspace_bytes

    def need(self, m: int) -> int:
        """Bytes that the scheduler believes a copy needs on each GPU.

        The part of what is declared x (1 + margin), rounded up, + context if that is counted.
        """
        model, admission = self.models[m], self.scenario.admission
        whole, rest = divmod(self.part(m, model.declared_bytes) * (MILLION + admission.margin), MILLION)
        return whole + (rest > 0) + (self.context(model) if admission.count_context else 0)

    def kv_of(self, m: int, tokens: int) -> int:
        return self.part(m, self.models[m].kv_bytes_per_token) * tokens

    def kv(self, request: Request, later_us: int = 0) -> int:
        """Bytes of KV of a task on each of its GPUs now, or so much later if nothing else happens."""
        if request.state not in (RUNNING, SAVING, RESTORING):
            return 0
        remaining = request.remaining
        if request.state == RUNNING:
            remaining = max(0, remaining - self.speed(request) * later_us)
        done = (request.service * SCALE - remaining) // SCALE
        written = request.tokens_out * done // request.service if request.service else 0
        return self.kv_of(request.model, request.tokens_in + written)

    def actual(self, gpu: int, later_us: int = 0) -> int:
        """Bytes in the memory of a GPU."""
        here = [c for c in self.copies if gpu in c.gpus and not c.pending and not c.over]
        loaded = sum(self.taken(c.model) for c in here)
        asleep = sum(self.part(m, self.models[m].asleep_bytes) for m, g in self.asleep if g == gpu)
        return loaded + asleep + sum(self.kv(r, later_us) for r in self.attached(gpu))

    def reserved(self, gpu: int) -> int:
        """Bytes that the scheduler believes are taken."""
        return sum(self.need(c.model) for c in self.copies if gpu in c.gpus and not c.over)

    def never_fits(self, request: Request) -> bool:
        kv = self.kv_of(request.model, request.tokens_in + request.tokens_out)
        return max(self.need(request.model), self.taken(request.model) + kv) > self.gpus.memory_bytes

    # ------------------------------------------------------------ what is where

    def gpus_of(self, request: Request) -> tuple[int, ...]:
        assert request.copy is not None
        return request.copy.gpus

    def attached(self, gpu: int) -> list[Request]:
        return [r for r in self.requests if r.copy is not None and gpu in r.copy.gpus]

    def users(self, copy: Copy) -> list[Request]:
        return [r for r in self.requests if r.copy is copy]

    def copies_of(self, m: int) -> list[Copy]:
        """The instances of a model that take tasks: none of them shares a GPU with another."""
        found = [c for c in self.copies if c.model == m and c.usable]
        used = [g for c in found for g in c.gpus]
        assert len(used) == len(set(used))
        return found

    def copy_of(self, m: int, gpu: int) -> Copy | None:
        """The instance of a model on a GPU that takes tasks."""
        return next((c for c in self.copies_of(m) if gpu in c.gpus), None)

    def idle(self, copy: Copy) -> bool:
        ready = copy.ready < NEVER and copy.usable
        return ready and not self.users(copy) and not self.models[copy.model].pinned

    def speed(self, request: Request) -> int:
        """Parts of a microsecond of service that a running task gets per microsecond: as its slowest GPU gives."""
        return min(self.speed_on(gpu) for gpu in self.gpus_of(request))

    def speed_on(self, gpu: int) -> int:
        n = sum(r.state == RUNNING for r in self.attached(gpu))
        contention = self.scenario.contention
        if contention.model == "none" or n <= 1:
            return SCALE
        if contention.model == "sharing":
            return max(1, SCALE // n)
        return max(1, int(SCALE / (1 + contention.beta * (n - 1))))

    def rate(self, copy: Copy, gpu: int) -> int:
        """Bytes per second of the transfer of a copy to one of its GPUs."""
        running = [(c, g) for c in self.copies for g in c.coming]
        rate = self.gpus.host_bytes_per_s // sum(g == gpu for _, g in running)
        if copy.from_disk:
            rate = min(rate, self.gpus.disk_bytes_per_s // sum(c.from_disk for c, _ in running))
        return max(1, rate)
