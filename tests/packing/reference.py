"""A slow and obvious second simulator of a node that serves many models, written from the design texts alone.

Objects and lists; everything is looked at again at every instant; whole numbers only. Shares nothing with the kernels,
the policies or the checker. This file moves the clock; `reference_rules` decides who goes where.
"""

from itertools import pairwise

from gpuplan.packing.model import NEVER, PackingScenario, Pieces
from gpuplan.packing.raw import (
    CUT,
    DONE,
    FAILED,
    ON_GPU,
    OUT_OF_MEMORY,
    PREEMPTED,
    REJECTED,
    RESTORE,
    RUN,
    SAVE,
    TIMED_OUT,
    WAITING,
    WENT_ON,
)
from packing.reference_node import Node
from packing.reference_things import (
    GETTING_READY,
    GONE,
    MILLION,
    NOT_YET,
    OUTSIDE,
    QUEUED,
    RESTORING,
    RUNNING,
    SAVING,
    SCALE,
    Copy,
    Outcome,
    Request,
    Stage,
    by_claim,
    by_start,
)

#: More than any tiny scenario has: a run that reaches it would never end.
TOO_MANY = 20_000


class World(Node):
    """The node, its tasks and the clock."""

    # ------------------------------------------------------------ stages of a task

    def open(self, request: Request, kind: int) -> None:
        assert request.copy is not None
        request.stage = Stage(request.row, request.copy, kind, self.now, request.failures)
        self.stages.append(request.stage)
        self.changed = True

    def close(self, request: Request, outcome: int) -> None:
        stage = request.stage
        assert stage is not None
        stage.outcome, stage.end = outcome, self.now
        if stage.frozen_from == NEVER:
            stage.frozen_from = stage.end if stage.kind == RESTORE else stage.start
        self.changed = True

    def detach(self, request: Request) -> None:
        assert request.copy is not None
        request.copy.last_used = self.now
        request.copy, request.stage, request.waits_for = None, None, []

    def get_going(self, request: Request) -> None:
        """Starts or restores a task whose instance is there and that waits for nothing else."""
        assert request.copy is not None
        if request.copy.ready == NEVER or not all(x.over for x in request.waits_for):
            return
        if request.saved:
            request.state = RESTORING
            assert request.stage is not None
            request.stage.frozen_from = self.now
            self.changed = True
        else:
            self.start_running(request)

    def start_running(self, request: Request) -> None:
        self.close(request, WENT_ON)
        request.state, request.saved, request.served = RUNNING, False, True
        self.open(request, RUN)

    def interrupt(self, request: Request) -> Stage:
        """Makes a running task save; the stage of that."""
        self.close(request, PREEMPTED)
        request.state = SAVING
        self.open(request, SAVE)
        assert request.stage is not None
        return request.stage

    def finish_saving(self, request: Request) -> None:
        self.close(request, WENT_ON)
        copy = request.copy
        self.detach(request)
        request.state, request.saved = QUEUED, True
        assert copy is not None
        if copy.must_go and not self.users(copy):
            self.evict(copy)

    def fail(self, request: Request) -> None:
        self.close(request, OUT_OF_MEMORY)
        self.detach(request)
        request.failures += 1
        request.remaining, request.saved = request.service * SCALE, False
        if request.failures > self.scenario.retry.most:
            self.leave(request, FAILED)
        else:
            request.state, request.back_at = OUTSIDE, self.now + self.scenario.retry.after_us

    def leave(self, request: Request, fate: int) -> None:
        request.state, request.fate, request.left = GONE, fate, self.now
        self.changed = True

    # ------------------------------------------------------------ instances

    def evict(self, copy: Copy) -> None:
        copy.evicted = self.now
        self.changed = True

    def release(self, copy: Copy) -> None:
        copy.released = self.now
        for gpu in copy.gpus:
            others = [c for c in self.copies if c.model == copy.model and gpu in c.gpus]
            if not any(not c.pending and not c.over for c in others):
                self.asleep.add((copy.model, gpu))
        self.changed = True

    def start_loading(self, copy: Copy) -> None:
        copy.load = self.now
        copy.from_disk = int(not self.gpus.host_cache or copy.model not in self.in_host_memory)
        woken = self.asleep & {(copy.model, gpu) for gpu in copy.gpus}
        self.asleep -= woken
        self.changed = True
        full = [gpu for gpu in copy.gpus if self.actual(gpu) > self.gpus.memory_bytes]
        if not full:
            copy.coming = {gpu: self.weights(copy.model) * MILLION for gpu in copy.gpus}
            return
        copy.evicted = copy.released = self.now
        self.breaches.append((self.now, full[0], -1, copy.model))
        for request in self.users(copy):
            self.fail(request)
        self.asleep |= woken

    # ------------------------------------------------------------ the clock

    def next_instant(self) -> int | None:
        times = [r.arrival for r in self.requests if r.state == NOT_YET]
        times += [r.back_at for r in self.requests if r.state == OUTSIDE]
        times += [r.deadline for r in self.requests if r.state == QUEUED and not r.served]
        for request in self.requests:
            if request.state == RUNNING:
                times.append(self.now - -request.remaining // self.speed(request))
            elif request.state in (SAVING, RESTORING):
                times.append(self.end_of_handling(request))
        for copy in self.copies:
            times += [self.now - -left // self.rate(copy, gpu) for gpu, left in copy.coming.items()]
            if copy.evicting:
                times.append(copy.evicted + self.gpus.release_us)
            elif self.idle(copy):
                times.append(self.expiry(copy))
        found = min((time for time in times if self.now < time < NEVER), default=None)
        if found is not None:
            found = min([found, *(self.crossing(g, found) for g in range(self.gpus.count))])
        return found

    def crossing(self, gpu: int, before: int) -> int:
        """The first instant, if before that one, at which the growing KV is more than the memory holds."""
        if not any(r.state == RUNNING for r in self.attached(gpu)):
            return before
        fits, breaks = self.now, before
        while breaks - fits > 1:
            middle = (fits + breaks) // 2
            if self.actual(gpu, middle - self.now) > self.gpus.memory_bytes:
                breaks = middle
            else:
                fits = middle
        return breaks

    def end_of_handling(self, request: Request) -> int:
        """When a save or a restore is over."""
        assert request.stage is not None
        if request.state == SAVING:
            return request.stage.start + self.scenario.preemption.save_us
        return request.stage.frozen_from + self.scenario.preemption.restore_us

    def expiry(self, copy: Copy) -> int:
        if self.pieces.eviction != "keep-alive" or self.pieces.keep_alive_us is None:
            return NEVER
        return copy.last_used + self.pieces.keep_alive_us

    def advance(self, until: int) -> None:
        """Work goes on until an instant."""
        served = [(r, self.speed(r)) for r in self.requests if r.state == RUNNING]
        moved = [(c, gpu, self.rate(c, gpu)) for c in self.copies for gpu in c.coming]
        for request, speed in served:
            request.remaining -= speed * (until - self.now)
        for copy, gpu, rate in moved:
            copy.coming[gpu] -= rate * (until - self.now)
        self.now = until

    def run(self) -> None:
        until = self.scenario.until_us
        for _ in range(TOO_MANY):
            instant = self.next_instant()
            if until is not None and (instant is None or instant >= until):
                self.cut(until)
                return
            if instant is None:
                # work that would end after `NEVER` is left as it is
                self.cut(max(self.now, 0))
                return
            self.advance(instant)
            self.instant()
        raise AssertionError("the reference does not end")

    def cut(self, until: int) -> None:
        """The horizon: nothing happens any more."""
        self.advance(until)
        if self.scenario.until_us is not None:
            self.end = until
        for request in self.requests:
            if request.copy is not None:
                self.close(request, CUT)

    # ------------------------------------------------------------ one instant

    def instant(self) -> None:
        from packing.reference_rules import place_all

        for _ in range(TOO_MANY):
            self.changed = False
            self.ends()
            self.out_of_memory()
            self.expire()
            self.arrive()
            place_all(self)
            if not self.changed:
                return
            self.end = self.now
        raise AssertionError("the instant does not end")

    def ends(self) -> None:
        """What was due when this pass began; then whatever waited for that."""
        now = self.now
        released = [c for c in self.copies if c.evicting and c.evicted + self.gpus.release_us <= now]
        transferred = [c for c in self.copies if any(left <= 0 for left in c.coming.values())]
        handled = [
            r for r in self.requests if r.state in (SAVING, RESTORING) and self.end_of_handling(r) <= now
        ]
        served = [r for r in self.requests if r.state == RUNNING and r.remaining <= 0]
        for copy in released:
            self.release(copy)
        for copy in transferred:
            copy.coming = {gpu: left for gpu, left in copy.coming.items() if left > 0}
            self.changed = True
            if not copy.coming:
                copy.ready = copy.last_used = now
                self.in_host_memory.add(copy.model)
        for request in handled:
            if request.state == SAVING:
                self.finish_saving(request)
            else:
                self.start_running(request)
        for request in served:
            self.close(request, WENT_ON)
            self.detach(request)
            self.leave(request, DONE)
        for request in self.requests:
            if request.state == GETTING_READY:
                self.get_going(request)
        for copy in sorted(self.copies, key=lambda c: (c.gpu, c.model)):
            if copy.pending and all(x.over for x in copy.waits_for):
                self.start_loading(copy)

    def out_of_memory(self) -> None:
        for gpu in range(self.gpus.count):
            while self.actual(gpu) > self.gpus.memory_bytes:
                open_to_it = [r for r in self.attached(gpu) if r.state in (RUNNING, RESTORING)]
                if not open_to_it:
                    break
                last = max(open_to_it, key=self.began)
                self.breaches.append((self.now, gpu, last.row, last.model))
                self.fail(last)

    def began(self, request: Request) -> tuple[int, int]:
        assert request.stage is not None
        stage = request.stage
        return (stage.start if stage.kind == RUN else stage.frozen_from), request.row

    def expire(self) -> None:
        for copy in self.copies:
            if self.idle(copy) and self.expiry(copy) <= self.now:
                self.evict(copy)

    def arrive(self) -> None:
        for request in self.requests:
            comes = request.state == NOT_YET and request.arrival <= self.now
            if comes and self.never_fits(request):
                self.leave(request, REJECTED)
            elif comes or (request.state == OUTSIDE and request.back_at <= self.now):
                request.state = QUEUED
                self.changed = True
        for request in self.requests:
            if request.state == QUEUED and not request.served and request.deadline <= self.now:
                self.leave(request, TIMED_OUT)


def reference(scenario: PackingScenario, pieces: Pieces) -> Outcome:
    """The run of a scenario by a policy."""
    world = World(scenario, pieces)
    world.run()
    for request in world.requests:
        if request.state != GONE:
            request.fate = WAITING if request.copy is None else ON_GPU
    made = sorted(world.copies, key=by_claim)
    copies = [
        (c.model, c.gpu, c.claimed, c.load, c.ready, c.evicted, c.released, c.from_disk, c.for_task)
        for c in made
    ]
    place = {id(c): row for row, c in enumerate(made)}
    stages = [
        (s.task, s.copy.gpu, s.kind, s.outcome, s.start, s.end, s.frozen_from, s.attempt, place[id(s.copy)])
        for s in world.stages
    ]
    for before, after in pairwise(world.stages):
        assert before.start <= after.start
    return Outcome(
        sorted(stages, key=by_start),
        copies,
        [c.gpus for c in made],
        [tuple(row) for row in world.breaches],
        [r.fate for r in world.requests],
        [r.left for r in world.requests],
        [r.failures for r in world.requests],
        world.end,
    )
