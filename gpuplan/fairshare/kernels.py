"""The fair-share kernels: an event-driven simulator, arrays in, arrays out, nothing validated.

Shapes used throughout: ``J`` jobs in order of arrival (submission, then id), ``P`` pools, ``N`` nodes,
``G`` GPUs, ``L`` lines, ``D`` drains. Times are seconds, int64; ``NEVER`` (2**60) is an instant that never
comes. ``-1`` means "none".

Both simulators jump from one instant to the next at which something can change. At one instant: what ends
gives its GPUs back, repairs end, hosts that drain lose what may be taken from them, arrivals join the line, starts
are decided. Work of zero seconds ends at the instant of its start: the same instant comes again.

State that goes through most functions travels in named tuples of arrays: `Machine` (nodes and what runs on
them), `Work` (columns of the jobs that running changes) and `Waiting` (an ordered set of jobs).
"""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from gpuplan.jit import njit

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

i64 = np.int64

NEVER = 1 << 60
# taken off a node's free GPUs while it drains or is repaired: nothing fits there
CLOSED = 1 << 40

# columns of ``log``, a row per stretch of running
JOB, START, END, OVERHEAD, KEPT, ALLOCATED, PROTECTED, OUTCOME, NODE = range(9)
FINISHED, PREEMPTED, SHUT_DOWN, RUNNING = range(4)

# what a queue does when a job does not fit
STRICT, SKIP, PER_TYPE, EASY, LINES = range(5)

# columns of ``drains``
D_NODE, D_FROM, D_REPAIR, D_STATE, D_NEXT, D_BEGAN, D_ENDED = range(7)
# states of a drain
PLANNED, DRAINING, REPAIRING, DONE = range(4)

# (2**k) % 37 differs for k = 0 .. 35: the index of a lone bit by one remainder
_BIT = np.zeros(37, np.int64)
for _k in range(32):
    _BIT[(1 << _k) % 37] = _k
WORD = (1 << 32) - 1


class Machine(NamedTuple):
    """Nodes and what runs on them.

    - ``size``, ``pool`` int64[N]: GPUs and pool of a node;
    - ``first`` int64[P + 1]: the nodes of pool ``p`` are ``first[p] .. first[p + 1] - 1``;
    - ``free`` int64[N]: free GPUs, less `CLOSED` while the node takes no work;
    - ``spare`` int64[P]: free GPUs of open nodes;
    - ``offset`` int64[N + 1]: a node's occupants are ``who[offset[x] .. offset[x] + count[x] - 1]``, by declared
      end; ``take`` are their GPUs there, ``ends`` their declared ends;
    - ``chain`` int64[N]: next node of the gang that holds the node whole.
    """

    size: Ints
    pool: Ints
    first: Ints
    free: Ints
    spare: Ints
    offset: Ints
    count: Ints
    who: Ints
    take: Ints
    ends: Ints
    chain: Ints


class Work(NamedTuple):
    """Columns of the jobs, int64[J] each.

    Given: ``gpus``, ``run`` (seconds), ``limit`` (declared), ``minimum`` (effective), ``resumable``, ``mask`` (bit
    ``p``: may run in pool ``p``; 0: set aside). Kept here: ``done`` (progress that outlived interruptions),
    ``owes`` (restart cost of the next start), ``row`` (of the log, -1 while not running), ``until`` (declared
    end), ``home`` (first node), ``rest`` (node of the remainder of a gang), ``out`` (instant of the last eviction).
    """

    gpus: Ints
    run: Ints
    limit: Ints
    minimum: Ints
    resumable: Ints
    mask: Ints
    done: Ints
    owes: Ints
    row: Ints
    until: Ints
    home: Ints
    rest: Ints
    out: Ints


class Waiting(NamedTuple):
    """An ordered set of positions with two keys each, in words of 32.

    ``bits`` int64[ceil(n / 32)] and ``above`` (a bit per word that is not empty); ``a``, ``b`` int64[n] the keys;
    ``a0``, ``b0`` their minimum over the members of a word, ``a1``, ``b1`` over 32 words.
    """

    bits: Ints
    above: Ints
    a: Ints
    b: Ints
    a0: Ints
    b0: Ints
    a1: Ints
    b1: Ints


@njit
def waiting_set(a: Ints, b: Ints) -> Any:
    """An empty set over positions with these keys."""
    n0 = len(a) // 32 + 1
    n1 = n0 // 32 + 1
    return Waiting(
        np.zeros(n0, np.int64),
        np.zeros(n1, np.int64),
        a,
        b,
        np.full(n0, 1 << 62, np.int64),
        np.full(n0, 1 << 62, np.int64),
        np.full(n1, 1 << 62, np.int64),
        np.full(n1, 1 << 62, np.int64),
    )


@njit
def join(q: Any, p: int) -> None:
    """Position ``p`` becomes a member."""
    w = p >> 5
    u = w >> 5
    q.bits[w] |= i64(1) << (p & 31)
    q.above[u] |= i64(1) << (w & 31)
    q.a0[w] = min(q.a0[w], q.a[p])
    q.b0[w] = min(q.b0[w], q.b[p])
    q.a1[u] = min(q.a1[u], q.a[p])
    q.b1[u] = min(q.b1[u], q.b[p])


@njit
def least(bits: int, first: int, keys: Ints, floor: int) -> int:
    """The least key among the members of a word of bits; stops at ``floor``, the least that it can be."""
    best = 1 << 62
    while bits != 0:
        low = bits & -bits
        bits ^= low
        key = keys[first + _BIT[low % 37]]
        if key < best:
            best = key
            if best <= floor:
                break
    return best


@njit
def leave_line(q: Any, p: int) -> None:
    """Position ``p`` is a member no more."""
    w = p >> 5
    u = w >> 5
    q.bits[w] &= ~(i64(1) << (p & 31))
    if q.bits[w] == 0:
        q.above[u] &= ~(i64(1) << (w & 31))
    old_a = q.a0[w]
    old_b = q.b0[w]
    if q.a[p] == old_a:
        q.a0[w] = least(q.bits[w], w << 5, q.a, old_a)
        if old_a == q.a1[u]:
            q.a1[u] = least(q.above[u], u << 5, q.a0, old_a)
    if q.b[p] == old_b:
        q.b0[w] = least(q.bits[w], w << 5, q.b, old_b)
        if old_b == q.b1[u]:
            q.b1[u] = least(q.above[u], u << 5, q.b0, old_b)


@njit
def following(q: Any, p: int, end: int, most_a: int, other_a: int, most_b: int) -> int:
    """First member in ``p .. end - 1`` with ``a <= most_a`` and (``a <= other_a`` or ``b <= most_b``); -1: none."""
    if p >= end:
        return -1
    w = p >> 5
    bits = q.bits[w] & (WORD << (p & 31))
    while True:
        if bits != 0 and q.a0[w] <= most_a and (q.a0[w] <= other_a or q.b0[w] <= most_b):
            while bits != 0:
                low = bits & -bits
                bits ^= low
                at = (w << 5) + _BIT[low % 37]
                if at >= end:
                    return -1
                if q.a[at] <= most_a and (q.a[at] <= other_a or q.b[at] <= most_b):
                    return at
        w += 1
        u = w >> 5
        if (w << 5) >= end:
            return -1
        words = q.above[u] & (WORD << (w & 31))
        while words == 0 or q.a1[u] > most_a or (q.a1[u] > other_a and q.b1[u] > most_b):
            u += 1
            if (u << 10) >= end:
                return -1
            words = q.above[u]
        w = (u << 5) + _BIT[(words & -words) % 37]
        bits = q.bits[w]


# ---------------------------------------------------------------------- instants


@njit
def push(at: Ints, what: Ints, n: int, t: int, j: int) -> int:
    """Add ``(t, j)`` to the heap of ``n`` entries, earliest first (then lowest ``j``); the new length."""
    k = n
    while k > 0:
        up = (k - 1) >> 1
        if at[up] < t or (at[up] == t and what[up] <= j):
            break
        at[k] = at[up]
        what[k] = what[up]
        k = up
    at[k] = t
    what[k] = j
    return n + 1


@njit
def pop(at: Ints, what: Ints, n: int) -> int:
    """Take the first entry off the heap of ``n`` entries; the new length."""
    n -= 1
    t = at[n]
    j = what[n]
    k = 0
    while True:
        down = 2 * k + 1
        if down >= n:
            break
        right = down + 1
        if right < n and (at[right] < at[down] or (at[right] == at[down] and what[right] < what[down])):
            down = right
        if at[down] < t or (at[down] == t and what[down] < j):
            at[k] = at[down]
            what[k] = what[down]
            k = down
        else:
            break
    at[k] = t
    what[k] = j
    return n


@njit
def longer(rows: Ints, used: int) -> Ints:
    """The table with room for more rows than ``used``: itself, or a copy of twice the length."""
    if used < len(rows):
        return rows
    more = np.empty((2 * len(rows) + 16, rows.shape[1]), np.int64)
    more[:used] = rows[:used]
    return more


@njit
def longer_list(values: Ints, used: int) -> Ints:
    """The same for a list."""
    if used < len(values):
        return values
    more = np.empty(2 * len(values) + 16, np.int64)
    more[:used] = values[:used]
    return more


# ------------------------------------------------------------------------- nodes


@njit
def machine(size: Ints, pool: Ints, first: Ints) -> Any:
    """Empty nodes."""
    n = len(size)
    offset = np.zeros(n + 1, np.int64)
    spare = np.zeros(len(first) - 1, np.int64)
    for x in range(n):
        offset[x + 1] = offset[x] + size[x]
        spare[pool[x]] += size[x]
    gpus = offset[n]
    return Machine(
        size,
        pool,
        first,
        size.copy(),
        spare,
        offset,
        np.zeros(n, np.int64),
        np.empty(gpus, np.int64),
        np.empty(gpus, np.int64),
        np.empty(gpus, np.int64),
        np.full(n, -1, np.int64),
    )


@njit
def seat(m: Any, x: int, j: int, amount: int, until: int) -> None:
    """Job ``j`` takes ``amount`` GPUs of node ``x`` until its declared end."""
    base = m.offset[x]
    k = base + m.count[x]
    while k > base and m.ends[k - 1] > until:
        m.ends[k] = m.ends[k - 1]
        m.who[k] = m.who[k - 1]
        m.take[k] = m.take[k - 1]
        k -= 1
    m.ends[k] = until
    m.who[k] = j
    m.take[k] = amount
    m.count[x] += 1


@njit
def unseat(m: Any, x: int, j: int, until: int) -> None:
    """Job ``j`` is no occupant of node ``x`` any more."""
    base = m.offset[x]
    last = base + m.count[x] - 1
    low = base
    high = last
    while low < high:
        middle = (low + high) >> 1
        if m.ends[middle] < until:
            low = middle + 1
        else:
            high = middle
    while m.who[low] != j:
        low += 1
    for k in range(low, last):
        m.ends[k] = m.ends[k + 1]
        m.who[k] = m.who[k + 1]
        m.take[k] = m.take[k + 1]
    m.count[x] -= 1


@njit
def snuggest(m: Any, p: int, amount: int, extra: Ints, guarded: int) -> int:
    """The open node of pool ``p`` with the fewest GPUs that suffice; -1: none.

    Where ``guarded``, at most ``extra`` GPUs of a node count as free.
    """
    best = -1
    least_free = 1 << 60
    for x in range(m.first[p], m.first[p + 1]):
        f = m.free[x]
        if guarded and extra[x] < f:
            f = extra[x]
        if f >= amount and f < least_free:
            best = x
            least_free = f
            if f == amount:
                break
    return best


@njit
def place(m: Any, w: Any, j: int, mask: int, extra: Ints, guarded: int, lists: int) -> int:
    """Give job ``j`` free GPUs in the first pool of ``mask`` in which it fits; 1 where it found a place.

    At most a node's GPUs: the snuggest node. More: whole nodes, lowest first, the remainder on the snuggest
    other node. Where ``guarded``, what is taken of a node comes off its ``extra``. Without ``lists`` nodes keep no
    occupants.
    """
    g = w.gpus[j]
    for p in range(len(m.spare)):
        if not (mask >> p) & 1 or m.spare[p] < g:
            continue
        size = m.size[m.first[p]]
        if g <= size:
            x = snuggest(m, p, g, extra, guarded)
            if x < 0:
                continue
            w.home[j] = x
            w.rest[j] = -1
            m.chain[x] = -1
            occupy(m, j, x, g, w.until[j], lists)
            if guarded:
                extra[x] -= g
            return 1
        if place_gang(m, w, j, p, size, extra, guarded, lists):
            return 1
    return 0


@njit
def occupy(m: Any, j: int, x: int, amount: int, until: int, lists: int) -> None:
    """Job ``j`` takes GPUs of node ``x``."""
    m.free[x] -= amount
    m.spare[m.pool[x]] -= amount
    if lists:
        seat(m, x, j, amount, until)


@njit
def place_gang(m: Any, w: Any, j: int, p: int, size: int, extra: Ints, guarded: int, lists: int) -> int:
    """The part of `place` for jobs larger than a node; 1 where it found a place in pool ``p``."""
    whole = w.gpus[j] // size
    remainder = w.gpus[j] - whole * size
    empty = 0
    partly = 0
    for x in range(m.first[p], m.first[p + 1]):
        f = m.free[x]
        if guarded and extra[x] < f:
            f = extra[x]
        if f == size:
            empty += 1
        elif remainder > 0 and f >= remainder:
            partly += 1
    if empty < whole or (remainder > 0 and empty + partly < whole + 1):
        return 0
    previous = -1
    left = whole
    for x in range(m.first[p], m.first[p + 1]):
        f = m.free[x]
        if guarded and extra[x] < f:
            f = extra[x]
        if left > 0 and f == size:
            if previous < 0:
                w.home[j] = x
            else:
                m.chain[previous] = x
            previous = x
            m.chain[x] = -1
            occupy(m, j, x, size, w.until[j], lists)
            if guarded:
                extra[x] -= size
            left -= 1
    w.rest[j] = -1
    if remainder > 0:
        x = snuggest(m, p, remainder, extra, guarded)
        w.rest[j] = x
        occupy(m, j, x, remainder, w.until[j], lists)
        if guarded:
            extra[x] -= remainder
    return 1


@njit
def vacate(m: Any, j: int, x: int, amount: int, until: int, lists: int) -> None:
    """Job ``j`` gives back GPUs of node ``x``."""
    m.free[x] += amount
    if m.free[x] >= 0:  # of a closed node they are not to spare
        m.spare[m.pool[x]] += amount
    if lists:
        unseat(m, x, j, until)


@njit
def free_places(m: Any, w: Any, j: int, lists: int) -> None:
    """Job ``j`` gives back all its GPUs."""
    x = w.home[j]
    g = w.gpus[j]
    size = m.size[x]
    if g <= size:
        vacate(m, j, x, g, w.until[j], lists)
        return
    while x >= 0:
        following_node = m.chain[x]
        vacate(m, j, x, size, w.until[j], lists)
        m.chain[x] = -1
        x = following_node
    if w.rest[j] >= 0:
        vacate(m, j, w.rest[j], g % size, w.until[j], lists)


@njit
def log_gang(m: Any, w: Any, j: int, row: int, places: Ints, n: int) -> int:
    """Note where a gang runs: rows (stretch, node, GPUs) of ``places``, which has room; the new length."""
    x = w.home[j]
    size = m.size[x]
    while x >= 0:
        places[n, 0] = row
        places[n, 1] = x
        places[n, 2] = size
        n += 1
        x = m.chain[x]
    if w.rest[j] >= 0:
        places[n, 0] = row
        places[n, 1] = w.rest[j]
        places[n, 2] = w.gpus[j] % size
        n += 1
    return n


@njit
def open_stretch(w: Any, j: int, t: int, row: int, log: Ints, allocated: int) -> int:
    """Row ``row`` of the log begins: job ``j`` starts; its true end."""
    w.row[j] = row
    log[row, JOB] = j
    log[row, START] = t
    log[row, OVERHEAD] = w.owes[j]
    log[row, ALLOCATED] = allocated
    log[row, PROTECTED] = t
    log[row, OUTCOME] = RUNNING
    log[row, NODE] = w.home[j]
    return t + w.owes[j] + w.run[j] - w.done[j]


@njit
def declared_end(w: Any, j: int, t: int) -> int:
    """When job ``j``, started at ``t``, ends at the latest."""
    if w.limit[j] >= NEVER:
        return NEVER
    return t + w.owes[j] + w.limit[j] - w.done[j]


@njit
def kept_at(w: Any, log: Ints, j: int, t: int, checkpoint: int) -> int:
    """Seconds of the running stretch that outlive an interruption at ``t``."""
    if not w.resumable[j]:
        return 0
    row = w.row[j]
    work = t - log[row, START] - log[row, OVERHEAD]
    if work <= 0:
        return 0
    return work // checkpoint * checkpoint


@njit
def interrupt(w: Any, log: Ints, j: int, t: int, outcome: int, checkpoint: int, restart: int) -> None:
    """The running stretch of job ``j`` ends unfinished: what it loses, what its next start costs."""
    row = w.row[j]
    kept = kept_at(w, log, j, t, checkpoint)
    log[row, END] = t
    log[row, KEPT] = kept
    log[row, OUTCOME] = outcome
    w.done[j] = w.done[j] + kept if w.resumable[j] else 0
    w.owes[j] = restart
    w.row[j] = -1
    w.out[j] = t


@njit
def finish(w: Any, log: Ints, j: int, t: int) -> None:
    """Job ``j`` has ended."""
    row = w.row[j]
    log[row, END] = t
    log[row, KEPT] = t - log[row, START] - log[row, OVERHEAD]
    log[row, OUTCOME] = FINISHED
    w.row[j] = -1


@njit
def cut_off(w: Any, log: Ints, rows: int, t: int) -> None:
    """The run ends at ``t``: stretches that still run are cut there, with the work they have done."""
    for row in range(rows):
        if log[row, OUTCOME] == RUNNING:
            log[row, END] = t
            log[row, KEPT] = max(i64(0), t - log[row, START] - log[row, OVERHEAD])


# ------------------------------------------------------------------------ drains


@njit
def close_node(m: Any, x: int) -> None:
    """Node ``x`` takes no new work."""
    m.spare[m.pool[x]] -= m.free[x]
    m.free[x] -= CLOSED


@njit
def open_node(m: Any, x: int) -> None:
    """Node ``x`` takes work again."""
    m.free[x] += CLOSED
    m.spare[m.pool[x]] += m.free[x]


@njit
def next_of_drains(drains: Ints) -> int:
    """The next instant of a drain: its begin, the end of its patience, the end of a repair."""
    t = NEVER
    for d in range(len(drains)):
        if drains[d, D_STATE] != DONE:
            t = min(t, drains[d, D_NEXT])
    return t


@njit
def end_repairs(m: Any, drains: Ints, t: int) -> None:
    """Nodes whose repair is over take work again."""
    for d in range(len(drains)):
        if drains[d, D_STATE] == REPAIRING and drains[d, D_NEXT] <= t:
            drains[d, D_STATE] = DONE
            drains[d, D_ENDED] = drains[d, D_NEXT]
            open_node(m, drains[d, D_NODE])


@njit
def begin_drains(m: Any, drains: Ints, t: int, patience: int) -> None:
    """Nodes whose drain begins take no new work."""
    for d in range(len(drains)):
        if drains[d, D_STATE] == PLANNED and drains[d, D_FROM] <= t:
            drains[d, D_STATE] = DRAINING
            drains[d, D_NEXT] = drains[d, D_FROM] + patience
            close_node(m, drains[d, D_NODE])


@njit
def begin_repairs(m: Any, drains: Ints, t: int) -> None:
    """Draining nodes that are empty are repaired from now on."""
    for d in range(len(drains)):
        if drains[d, D_STATE] == DRAINING and m.count[drains[d, D_NODE]] == 0:
            drains[d, D_STATE] = REPAIRING
            drains[d, D_BEGAN] = t
            drains[d, D_NEXT] = t + drains[d, D_REPAIR]


# ------------------------------------------------------------------ reservations


@njit
def ready_at(m: Any, x: int, need: int, t: int) -> int:
    """When node ``x`` has ``need`` free GPUs, by declared ends."""
    f = m.free[x]
    k = m.offset[x]
    end = k + m.count[x]
    when = t
    while f < need:
        if k == end:
            return NEVER + 1
        f += m.take[k]
        when = max(when, m.ends[k])
        k += 1
    return when


@njit
def promise_in(m: Any, g: int, p: int, t: int, ready: Ints, chosen: Ints) -> int:
    """When ``g`` GPUs of pool ``p`` are free by declared ends; ``chosen[x]``: GPUs then needed of node ``x``.

    ``ready`` and ``chosen`` int64[N] are overwritten for the pool's nodes. ``NEVER + 1``: not at all, with the
    nodes that are open now.
    """
    a = m.first[p]
    b = m.first[p + 1]
    size = m.size[a]
    for x in range(a, b):
        chosen[x] = 0
    if g <= size:
        best = -1
        when = NEVER + 1
        for x in range(a, b):
            if m.free[x] >= 0:
                r = ready_at(m, x, g, t)
                if r < when:
                    when = r
                    best = x
        if best >= 0:
            chosen[best] = g
        return when
    whole = g // size
    remainder = g - whole * size
    n = 0
    for x in range(a, b):
        ready[x] = ready_at(m, x, size, t) if m.free[x] >= 0 else NEVER + 1
        n += ready[x] <= NEVER
    if n < whole:
        return NEVER + 1
    bar = np.sort(ready[a:b])[whole - 1]
    left = whole
    for x in range(a, b):
        if ready[x] < bar:
            chosen[x] = size
            left -= 1
    for x in range(a, b):
        if left > 0 and ready[x] == bar:
            chosen[x] = size
            left -= 1
    when = bar
    if remainder > 0:
        best = -1
        soonest = NEVER + 1
        for x in range(a, b):
            if chosen[x] == 0 and m.free[x] >= 0:
                r = ready_at(m, x, remainder, t)
                if r < soonest:
                    soonest = r
                    best = x
        if best < 0:
            return NEVER + 1
        chosen[best] = remainder
        when = max(when, soonest)
    return when


@njit
def reserve(m: Any, g: int, mask: int, t: int, ready: Ints, chosen: Ints, extra: Ints) -> int:
    """Reserve nodes for ``g`` GPUs in the pool of ``mask`` that has them earliest; the promised instant.

    ``extra`` int64[N] is overwritten: `NEVER` on nodes that are not reserved, else the GPUs that will be free at
    the promise beyond what is reserved. ``NEVER + 1``: no promise can be given, nothing is reserved.
    """
    best = -1
    when = NEVER + 1
    for p in range(len(m.spare)):
        if (mask >> p) & 1:
            r = promise_in(m, g, p, t, ready, chosen)
            if r < when:
                when = r
                best = p
    for x in range(len(extra)):
        extra[x] = NEVER
    if best < 0:
        return when
    promise_in(m, g, best, t, ready, chosen)
    for x in range(m.first[best], m.first[best + 1]):
        if chosen[x] > 0:
            f = m.free[x]
            for k in range(m.offset[x], m.offset[x] + m.count[x]):
                if m.ends[k] <= when:
                    f += m.take[k]
            extra[x] = f - chosen[x]
    return when


# ------------------------------------------------------------------------ queues


@njit
def rank_lines(down: Ints, beside: Ints, line: Ints, among: Floats, usage: Floats, out: Ints) -> None:
    """Lines by Slurm's Fair Tree: depth first, siblings by descending share / usage share.

    ``down``, ``beside`` int64[B]: first child and next sibling of a budget (0 is the root), siblings in the order
    that decides ties; ``line`` int64[B]: of a leaf, else -1; ``among`` float64[B]: share among siblings; ``usage``
    float64[B]: decayed usage of leaves, the sums of inner budgets are written into it; ``out`` int64[L] is overwritten.
    """
    total = len(down)
    parent = np.full(total, -1, np.int64)
    for b in range(total):
        child = down[b]
        while child >= 0:
            parent[child] = b
            child = beside[child]
        if line[b] < 0:
            usage[b] = 0.0
    for b in range(total - 1, 0, -1):  # parents stand before their children
        usage[parent[b]] += usage[b]
    stack = np.empty(total, np.int64)
    row = np.empty(total, np.int64)
    level = np.empty(total)
    stack[0] = 0
    depth = 1
    n = 0
    while depth > 0:
        depth -= 1
        b = stack[depth]
        if line[b] >= 0:
            out[n] = line[b]
            n += 1
            continue
        k = 0
        child = down[b]
        while child >= 0:
            if among[child] <= 0.0:
                fair = 0.0
            elif usage[child] <= 0.0:
                fair = np.inf
            else:
                fair = among[child] * usage[b] / usage[child]
            at = k
            while at > 0 and level[at - 1] < fair:
                level[at] = level[at - 1]
                row[at] = row[at - 1]
                at -= 1
            level[at] = fair
            row[at] = child
            k += 1
            child = beside[child]
        for at in range(k - 1, -1, -1):
            stack[depth] = row[at]
            depth += 1


@njit
def run_queue(
    kind: int,
    horizon: int,
    submit: Ints,
    w: Any,
    m: Any,
    order: Ints,
    line_first: Ints,
    group: Ints,
    quota: Ints,
    tree: Any,
    decay: float,
    drains: Ints,
    patience: int,
    checkpoint: int,
    restart: int,
) -> Any:
    """Simulate a policy without preemption: who is first in line starts, and what happens to those behind.

    Parameters
    ----------
    kind
        `STRICT`, `SKIP`, `PER_TYPE`, `EASY` or `LINES` (each line strict, within its quota).
    horizon
        The run stops there; `NEVER`: when nothing is left to happen.
    submit : int64[J]
        Submission, ascending.
    w : Work, m : Machine
        Overwritten.
    order : int64[J]
        Jobs by line, then by their place in it.
    line_first : int64[L + 1]
        Positions of line ``l`` are ``line_first[l] .. line_first[l + 1] - 1``.
    group : int64[J]
        Jobs with equal masks have equal numbers 0, 1, ...
    quota : int64[L]
        GPUs that a line may hold at once (`LINES`).
    tree
        ``(down, beside, line, among)`` of `rank_lines`; of length 0: lines in their order.
    decay
        What is left of a line's usage after 300 s.
    drains : int64[D, 7]
        Overwritten with what became of them.
    patience
        Seconds after which work is shut down by hand where a host waits for its repair.
    checkpoint, restart
        Seconds between checkpoints, seconds that a restart costs.

    Returns
    -------
    log : int64[S, 9], places : int64[., 3], end
        Stretches, where gangs ran (stretch, node, GPUs), the instant at which the run ended.
    """
    n_jobs = len(submit)
    n_lines = len(line_first) - 1
    where = np.empty(n_jobs, np.int64)
    size_key = np.empty(n_jobs, np.int64)
    limit_key = np.empty(n_jobs, np.int64)
    line_of = np.empty(n_jobs, np.int64)
    for line in range(n_lines):
        for p in range(line_first[line], line_first[line + 1]):
            where[order[p]] = p
            size_key[p] = w.gpus[order[p]]
            limit_key[p] = w.limit[order[p]]
            line_of[order[p]] = line
    q = waiting_set(size_key, limit_key)
    low = line_first[:-1].copy()
    n_waiting = 0
    line_order = np.arange(n_lines)
    held = np.zeros(n_lines, np.int64)
    ranked = len(tree[0]) > 0
    usage = np.zeros(len(tree[0]))
    budget_of = np.zeros(n_lines, np.int64)
    for b in range(len(tree[2])):
        if tree[2][b] >= 0:
            budget_of[tree[2][b]] = b
    lists = 1 if kind == EASY or len(drains) > 0 else 0
    n_groups = 1
    for j in range(n_jobs):
        n_groups = max(n_groups, group[j] + 1)
    fails = np.empty((2, n_groups), np.int64)

    ending = np.zeros(n_jobs, np.int64)
    heap_at = np.empty(256, np.int64)
    heap_who = np.empty(256, np.int64)
    n_heap = 0
    log = np.empty((n_jobs + 16, 9), np.int64)
    places = np.empty((16, 3), np.int64)
    n_log = 0
    n_places = 0
    ready = np.zeros(len(m.size), np.int64)
    chosen = np.zeros(len(m.size), np.int64)
    extra = np.full(len(m.size), NEVER, np.int64)
    drain_at = next_of_drains(drains)
    t = i64(0)
    i = 0
    while True:
        while n_heap > 0 and (w.row[heap_who[0]] < 0 or ending[heap_who[0]] != heap_at[0]):
            n_heap = pop(heap_at, heap_who, n_heap)  # it was interrupted
        while i < n_jobs and w.mask[i] == 0:
            i += 1
        instant = NEVER
        if i < n_jobs:
            instant = submit[i]
        if n_heap > 0 and heap_at[0] < instant:
            instant = heap_at[0]
        if drain_at < instant:
            instant = drain_at
        if instant >= horizon:
            if horizon < NEVER:
                t = horizon
            break
        if ranked and instant > t:
            accrue(usage, held, budget_of, t, instant, decay)
        t = instant

        while n_heap > 0 and heap_at[0] <= t:
            j = heap_who[0]
            stale = w.row[j] < 0 or ending[j] != heap_at[0]
            n_heap = pop(heap_at, heap_who, n_heap)
            if not stale:
                free_places(m, w, j, lists)
                finish(w, log, j, t)
                held[line_of[j]] -= w.gpus[j]
        if len(drains) > 0:
            end_repairs(m, drains, t)
            begin_drains(m, drains, t, patience)
            for d in range(len(drains)):
                x = drains[d, D_NODE]
                if drains[d, D_STATE] == DRAINING and drains[d, D_NEXT] <= t:
                    while m.count[x] > 0:
                        j = m.who[m.offset[x]]
                        free_places(m, w, j, lists)
                        interrupt(w, log, j, t, SHUT_DOWN, checkpoint, restart)
                        held[line_of[j]] -= w.gpus[j]
                        p = where[j]
                        if w.limit[j] < NEVER:
                            limit_key[p] = w.limit[j] - w.done[j] + restart
                        join(q, p)
                        low[line_of[j]] = min(low[line_of[j]], p)
                        n_waiting += 1
            begin_repairs(m, drains, t)
            drain_at = next_of_drains(drains)
        while i < n_jobs and submit[i] <= t:
            if w.mask[i] != 0:
                p = where[i]
                join(q, p)
                low[line_of[i]] = min(low[line_of[i]], p)
                n_waiting += 1
            i += 1

        if n_waiting == 0:
            continue
        most_free = i64(0)
        for p in range(len(m.spare)):
            most_free = max(most_free, m.spare[p])
        if most_free == 0:
            continue
        if ranked:
            rank_lines(tree[0], tree[1], tree[2], tree[3], usage, line_order)
        blocked = False
        blocked_pools = i64(0)
        promise = NEVER + 1
        bound = NEVER + 1  # no job of more GPUs can start
        bound_later = NEVER + 1  # nor one of more than these that ends after the promise
        for k in range(2):
            for c in range(n_groups):
                fails[k, c] = NEVER + 1
        if kind == SKIP:
            bound = most_free
        stop = False
        for at in range(n_lines):
            line = line_order[at]
            end = line_first[line + 1]
            p = following(q, low[line], end, NEVER + 1, NEVER + 1, i64(0))
            if p < 0:
                low[line] = end
                continue
            low[line] = p
            if bound < NEVER:
                p = following(q, p, end, bound, bound_later, promise - t)
            while p >= 0:
                j = order[p]
                g = w.gpus[j]
                may = w.mask[j]
                later = 0
                fits = w.out[j] != t
                if kind == PER_TYPE:
                    may &= ~blocked_pools
                    fits = fits and may != 0
                elif kind == LINES:
                    fits = fits and held[line] + g <= quota[line]
                elif kind == EASY and blocked:
                    later = 0 if limit_key[p] < NEVER and t + limit_key[p] <= promise else 1
                    fits = fits and g < fails[0, group[j]] and (later == 0 or g < fails[1, group[j]])
                elif kind != STRICT:
                    fits = fits and g < fails[0, group[j]]
                if fits:
                    w.until[j] = declared_end(w, j, t)
                    fits = place(m, w, j, may, extra, later, lists) == 1
                if fits:
                    if n_log == len(log):
                        log = longer(log, n_log)
                    ending[j] = open_stretch(w, j, t, n_log, log, 1)
                    if g > m.size[w.home[j]]:
                        while n_places + len(m.size) + 1 > len(places):
                            places = longer(places, len(places))
                        n_places = log_gang(m, w, j, n_log, places, n_places)
                    n_log += 1
                    if n_heap == len(heap_at):
                        heap_at = longer_list(heap_at, n_heap)
                        heap_who = longer_list(heap_who, n_heap)
                    n_heap = push(heap_at, heap_who, n_heap, ending[j], j)
                    leave_line(q, p)
                    n_waiting -= 1
                    held[line] += g
                    if blocked or kind == SKIP:
                        most_free = i64(0)
                        for x in range(len(m.spare)):
                            most_free = max(most_free, m.spare[x])
                        bound = min(bound, most_free)
                elif kind == STRICT:
                    stop = True
                elif kind == LINES:
                    break
                elif kind == PER_TYPE:
                    blocked_pools |= w.mask[j]
                elif w.out[j] == t:
                    pass
                elif kind == EASY and not blocked:
                    blocked = True
                    promise = reserve(m, g, may, t, ready, chosen, extra)
                    fails[0, group[j]] = g
                    bound = most_free_gpus(m)
                    if n_groups == 1:
                        bound = min(bound, g - 1)
                else:
                    fails[later, group[j]] = min(fails[later, group[j]], g)
                    if n_groups == 1:
                        if later == 0:
                            bound = min(bound, g - 1)
                        bound_later = min(bound_later, g - 1)
                if stop or bound == 0:
                    break
                p = following(q, p + 1, end, bound, bound_later, promise - t)
            if stop or bound == 0:
                break
    cut_off(w, log, n_log, t)
    return log[:n_log], places[:n_places], t


@njit
def most_free_gpus(m: Any) -> int:
    """The most GPUs that are free in one pool."""
    most = i64(0)
    for p in range(len(m.spare)):
        most = max(most, m.spare[p])
    return most


@njit
def accrue(usage: Floats, held: Ints, budget_of: Ints, t: int, until: int, decay: float) -> None:
    """Usage of the lines from ``t`` to ``until``: GPU-seconds, decayed at every multiple of 300 s."""
    while t < until:
        step = min(until, (t // 300 + 1) * 300)
        for line in range(len(held)):
            b = budget_of[line]
            usage[b] += held[line] * (step - t)
            if step % 300 == 0:
                usage[b] *= decay
        t = step
