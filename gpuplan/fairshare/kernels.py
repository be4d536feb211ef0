"""The fair-share kernels: an event-driven simulator, arrays in, arrays out, nothing validated.

Shapes used throughout: ``J`` jobs in order of arrival (submission, then id), ``P`` pools, ``N`` nodes,
``G`` GPUs, ``L`` lines, ``B`` budgets, ``D`` drains, ``C`` changes of the budgets. Times are seconds, int64; ``NEVER``
(2**60) is an instant that never comes. ``-1`` means "none".

Both simulators jump from one instant to the next at which something can change. At one instant: what ends
gives its GPUs back, repairs end, hosts that drain lose what may be taken from them, budgets change, arrivals join the
line, starts are decided. Work of zero seconds ends at the instant of its start: the same instant comes again.

State travels in tables with a row per job (``w``), node (``m``), pool, GPU (``seats``), line and budget
(``tree``); their columns are named below, their widths beside the names: whoever makes a table takes it from there.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from gpuplan.jit import njit_kernel, njit_leaf, njit_step

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

#: A 64-bit whole number: numpy's, or Python's where nothing is compiled.
Number = Any

i64 = np.int64

NEVER = 1 << 60
# taken off a node's free GPUs while it drains or is repaired: nothing fits there
CLOSED = 1 << 40

# columns of ``log``, a row per stretch of running
JOB, START, END, OVERHEAD, KEPT, ALLOCATED, PROTECTED, OUTCOME, NODE = range(9)
FINISHED, PREEMPTED, SHUT_DOWN, RUNNING = range(4)

# waiting jobs that hold a reservation under conservative backfill
PROMISES = 100

# what a queue does when a job does not fit
STRICT, SKIP, PER_TYPE, EASY, PER_LINE = range(5)

# columns of ``drains``
D_NODE, D_FROM, D_REPAIR, D_STATE, D_NEXT, D_BEGAN, D_ENDED = range(7)
# states of a drain
PLANNED, DRAINING, REPAIRING, REPAIRED = range(4)

# (2**k) % 37 differs for k = 0 .. 35: the index of a lone bit by one remainder
_BIT = np.zeros(37, np.int64)
for _k in range(32):
    _BIT[(1 << _k) % 37] = _k
WORD = (1 << 32) - 1


# columns of the tables that go through most functions (few arguments keep calls and compilation short)
# ``w`` int64[J, JOB_COLUMNS], a row per job: what it asks for and where it stands in line, ...
GPUS, RUN, LIMIT, MINIMUM, RESUMABLE, MASK, GROUP, LINE, WHERE = range(9)
# ... what the kernels keep: work that outlived interruptions, cost of the next start, row of the log, ends, places, ...
DONE, OWES, ROW, UNTIL, ENDING, HOME, REST, OUT = range(9, 17)
# ... and what matters to contracts only
RANK, PRIORITY, OPTED, CHARGED, IS_PAST, PROTECTED_UNTIL, MARK, SEEN, AFTER, BEFORE, GAINED = range(17, 28)
JOB_COLUMNS = 28
# ``m`` int64[N, NODE_COLUMNS], a row per node
SIZE, POOL, FREE, OFFSET, COUNT, CHAIN, EXTRA, READY, REST_READY, CHOSEN, SCRATCH = range(11)
LOOSE, PAST, COST, LOST, REACH, LINES, KEPT_EXTRA, LAST_EXTRA, CHEAP, NEWS, NEWER, OLDER = range(11, 23)
NODE_COLUMNS = 23
# ``pools`` int64[P + 1, POOL_COLUMNS], a row per pool, and one behind the last
FIRST, SPARE, BEST_CHEAP, FULL_CHEAP, BEST_ALL, FULL_ALL, BEST_OTHERS, FULL_OTHERS = range(8)
# ... the same three pairs where nodes are reserved for another job
GUARDED = 6
# GPUs that are free or unallocated on open nodes
CHEAP_SUM = 14
POOL_COLUMNS = 15
# ``seats`` int64[G, 3], a row per GPU
WHO, TAKE, ENDS = range(3)
# ``q0`` int64[ceil(n / 32), 3] and ``q1``, a row per word and per 32 words of a set of positions
BITS, LEAST_A, LEAST_B = range(3)
KEY_A, KEY_B = range(2)
# ``lines`` int64[L, LINE_COLUMNS], a row per line
LOW, HIGH, HELD, QUOTA, BUDGET, RANKED, PAST_GPUS, LOOSE_GPUS, RATE, SHIELDED, SHIELD_SUM, TOTAL, SINCE = (
    range(13)
)
TAIL, LAST, ASKS, FROM, MIDDLE, TO, RIGHT, OLD = range(13, 21)
# ... and what was true when nothing of a line could start: as long as it is, nothing can (`still_in_vain`)
V_STATE, V_RIGHTS, V_RESERVED, V_STAMP, V_MINIMUM = range(21, 26)
LINE_COLUMNS = 26
# ``groups`` int64[K, GROUP_COLUMNS], a row per line, kind of occupancy, number of GPUs and mask
G_FROM, G_TO, G_GPUS, G_MASK, G_HEAD, G_STAMP, G_STATUS, G_LEAST = range(8)
GROUP_COLUMNS = 8
# ``points`` int64[., 4], a row per change of a team's allocated GPUs
P_TIME, P_TOTAL, P_RATE, P_NEXT = range(4)
# ``tree`` int64[B, BUDGET_COLUMNS], ``usage`` and ``weights`` float64[B, 3], a row per budget, the root first
PARENT, DOWN, BESIDE, LEAF, STACK, DEPTH, HAD, OPEN = range(8)
BUDGET_COLUMNS = 8
SHARE, USED, LEVEL = range(3)
KEY, WEIGHT, GAP = range(3)
# ``changed`` float64[C, B, CHANGE_COLUMNS], a row per budget from each of the instants ``changes`` on: weight among
# siblings, hysteresis of a parent, part of a leaf (its share in any unit; GPUs that its line may hold)
N_WEIGHT, N_GAP, N_PART = range(3)
CHANGE_COLUMNS = 3
# ``rules`` and ``state`` of a simulation
HORIZON, PATIENCE, CHECKPOINT, RESTART, WINDOW, LARGE = range(6)
(
    S_T,
    S_ARRIVED,
    S_HEAP,
    S_LOG,
    S_PLACES,
    S_WAITING,
    S_PAUSED,
    S_SHIELDS,
    S_POINTS,
    S_ASKING,
    S_STAMP,
    S_VAIN,
    S_MARKS,
    S_DEFERRED,
    S_CHANGED,
    R_NUMBER,
    R_JOB,
    R_STATE,
    R_RIGHTS,
    R_WHEN,
    S_NEWS,
    S_NEWEST,
) = range(22)
STATE_COLUMNS = 22


@njit_leaf
def bit_length(number: int) -> Number:
    """Binary digits of a number from 0 on: a coarse key that many share, never above that of a larger number."""
    n = 0
    while number > 0:
        number >>= 1
        n += 1
    return n


@njit_leaf
def join(q0: Ints, q1: Ints, keys: Ints, p: int) -> None:
    """Position ``p`` becomes a member."""
    w = p >> 5
    u = w >> 5
    q0[w, BITS] |= i64(1) << (p & 31)
    q1[u, BITS] |= i64(1) << (w & 31)
    q0[w, LEAST_A] = min(q0[w, LEAST_A], keys[p, KEY_A])
    q0[w, LEAST_B] = min(q0[w, LEAST_B], keys[p, KEY_B])
    q1[u, LEAST_A] = min(q1[u, LEAST_A], keys[p, KEY_A])
    q1[u, LEAST_B] = min(q1[u, LEAST_B], keys[p, KEY_B])


@njit_leaf
def least(bits: int, first: int, keys: Ints, column: int, floor: int) -> Number:
    """The least key among the members of a word of bits; stops at ``floor``, the least that it can be."""
    best = 1 << 62
    while bits != 0:
        low = bits & -bits
        bits ^= low
        key = keys[first + _BIT[low % 37], column]
        if key < best:
            best = key
            if best <= floor:
                break
    return best


@njit_leaf
def leave_line(q0: Ints, q1: Ints, keys: Ints, p: int) -> None:
    """Position ``p`` is a member no more."""
    w = p >> 5
    u = w >> 5
    q0[w, BITS] &= ~(i64(1) << (p & 31))
    if q0[w, BITS] == 0:
        q1[u, BITS] &= ~(i64(1) << (w & 31))
    old_a = q0[w, LEAST_A]
    old_b = q0[w, LEAST_B]
    if keys[p, KEY_A] == old_a:
        q0[w, LEAST_A] = least(q0[w, BITS], w << 5, keys, KEY_A, old_a)
        if old_a == q1[u, LEAST_A]:
            q1[u, LEAST_A] = least(q1[u, BITS], u << 5, q0, LEAST_A, old_a)
    if keys[p, KEY_B] == old_b:
        q0[w, LEAST_B] = least(q0[w, BITS], w << 5, keys, KEY_B, old_b)
        if old_b == q1[u, LEAST_B]:
            q1[u, LEAST_B] = least(q1[u, BITS], u << 5, q0, LEAST_B, old_b)


@njit_leaf
def following(
    q0: Ints, q1: Ints, keys: Ints, p: int, end: int, most_a: int, other_a: int, most_b: int
) -> Number:
    """First member in ``p .. end - 1`` with ``a <= most_a`` and (``a <= other_a`` or ``b <= most_b``); -1: none."""
    if p >= end:
        return -1
    w = p >> 5
    bits = q0[w, BITS] & (WORD << (p & 31))
    while True:
        if bits != 0 and q0[w, LEAST_A] <= most_a and (q0[w, LEAST_A] <= other_a or q0[w, LEAST_B] <= most_b):
            while bits != 0:
                low = bits & -bits
                bits ^= low
                at = (w << 5) + _BIT[low % 37]
                if at >= end:
                    return -1
                if keys[at, KEY_A] <= most_a and (keys[at, KEY_A] <= other_a or keys[at, KEY_B] <= most_b):
                    return at
        w += 1
        u = w >> 5
        if (w << 5) >= end:
            return -1
        words = q1[u, BITS] & (WORD << (w & 31))
        while words == 0 or q1[u, LEAST_A] > most_a or (q1[u, LEAST_A] > other_a and q1[u, LEAST_B] > most_b):
            u += 1
            if (u << 10) >= end:
                return -1
            words = q1[u, BITS]
        w = (u << 5) + _BIT[(words & -words) % 37]
        bits = q0[w, BITS]


# ---------------------------------------------------------------------- instants


@njit_leaf
def push(heap: Ints, n: int, t: int, j: int) -> Number:
    """Add ``(t, j)`` to the heap of ``n`` rows, earliest first (then lowest ``j``); the new length."""
    k = n
    while k > 0:
        up = (k - 1) >> 1
        if heap[up, 0] < t or (heap[up, 0] == t and heap[up, 1] <= j):
            break
        heap[k, 0] = heap[up, 0]
        heap[k, 1] = heap[up, 1]
        k = up
    heap[k, 0] = t
    heap[k, 1] = j
    return n + 1


@njit_leaf
def pop(heap: Ints, n: int) -> Number:
    """Take the first row off the heap of ``n`` rows; the new length."""
    n -= 1
    t = heap[n, 0]
    j = heap[n, 1]
    k = 0
    while True:
        down = 2 * k + 1
        if down >= n:
            break
        right = down + 1
        if right < n and (
            heap[right, 0] < heap[down, 0]
            or (heap[right, 0] == heap[down, 0] and heap[right, 1] < heap[down, 1])
        ):
            down = right
        if heap[down, 0] < t or (heap[down, 0] == t and heap[down, 1] < j):
            heap[k, 0] = heap[down, 0]
            heap[k, 1] = heap[down, 1]
            k = down
        else:
            break
    heap[k, 0] = t
    heap[k, 1] = j
    return n


# ------------------------------------------------------------------------- nodes


@njit_leaf
def seat(m: Ints, seats: Ints, x: int, j: int, amount: int, until: int) -> None:
    """Job ``j`` takes ``amount`` GPUs of node ``x`` until its declared end."""
    base = m[x, OFFSET]
    k = base + m[x, COUNT]
    while k > base and seats[k - 1, ENDS] > until:
        seats[k, ENDS] = seats[k - 1, ENDS]
        seats[k, WHO] = seats[k - 1, WHO]
        seats[k, TAKE] = seats[k - 1, TAKE]
        k -= 1
    seats[k, ENDS] = until
    seats[k, WHO] = j
    seats[k, TAKE] = amount
    m[x, COUNT] += 1


@njit_leaf
def unseat(m: Ints, seats: Ints, x: int, j: int, until: int) -> None:
    """Job ``j`` is no occupant of node ``x`` any more."""
    base = m[x, OFFSET]
    last = base + m[x, COUNT] - 1
    low = base
    high = last
    while low < high:
        middle = (low + high) >> 1
        if seats[middle, ENDS] < until:
            low = middle + 1
        else:
            high = middle
    while seats[low, WHO] != j:
        low += 1
    for k in range(low, last):
        seats[k, ENDS] = seats[k + 1, ENDS]
        seats[k, WHO] = seats[k + 1, WHO]
        seats[k, TAKE] = seats[k + 1, TAKE]
    m[x, COUNT] -= 1


@njit_leaf
def snuggest(m: Ints, pools: Ints, p: int, amount: int, guarded: int) -> Number:
    """The open node of pool ``p`` with the fewest GPUs that suffice; -1: none.

    Where ``guarded``, at most ``extra`` GPUs of a node count as free.
    """
    best = -1
    least_free = 1 << 60
    for x in range(pools[p, FIRST], pools[p + 1, FIRST]):
        f = m[x, FREE]
        if guarded and m[x, EXTRA] < f:
            f = m[x, EXTRA]
        if f >= amount and f < least_free:
            best = x
            least_free = f
            if f == amount:
                break
    return best


@njit_leaf
def place(m: Ints, pools: Ints, seats: Ints, w: Ints, j: int, mask: int, guarded: int, lists: int) -> Number:
    """Give job ``j`` free GPUs in the first pool of ``mask`` in which it fits; 1 where it found a place.

    At most a node's GPUs: the snuggest node. More: whole nodes, lowest first, the remainder on the snuggest
    other node. Where ``guarded``, what is taken of a node comes off its ``extra``. Without ``lists`` nodes keep no
    occupants.
    """
    g = w[j, GPUS]
    for p in range(len(pools) - 1):
        if not (mask >> p) & 1 or pools[p, SPARE] < g:
            continue
        size = m[pools[p, FIRST], SIZE]
        if g <= size:
            x = snuggest(m, pools, p, g, guarded)
            if x < 0:
                continue
            w[j, HOME] = x
            w[j, REST] = -1
            m[x, CHAIN] = -1
            occupy(m, pools, seats, j, x, g, w[j, UNTIL], lists)
            if guarded:
                m[x, EXTRA] -= g
            return 1
        if place_gang(m, pools, seats, w, j, p, size, guarded, lists):
            return 1
    return 0


@njit_leaf
def occupy(m: Ints, pools: Ints, seats: Ints, j: int, x: int, amount: int, until: int, lists: int) -> None:
    """Job ``j`` takes GPUs of node ``x``."""
    m[x, FREE] -= amount
    pools[m[x, POOL], SPARE] -= amount
    if lists:
        seat(m, seats, x, j, amount, until)


@njit_step
def place_gang(
    m: Ints, pools: Ints, seats: Ints, w: Ints, j: int, p: int, size: int, guarded: int, lists: int
) -> Number:
    """The part of `place` for jobs larger than a node; 1 where it found a place in pool ``p``."""
    whole = w[j, GPUS] // size
    remainder = w[j, GPUS] - whole * size
    empty = 0
    partly = 0
    for x in range(pools[p, FIRST], pools[p + 1, FIRST]):
        f = m[x, FREE]
        if guarded and m[x, EXTRA] < f:
            f = m[x, EXTRA]
        if f == size:
            empty += 1
        elif remainder > 0 and f >= remainder:
            partly += 1
    if empty < whole or (remainder > 0 and empty + partly < whole + 1):
        return 0
    previous = -1
    left = whole
    for x in range(pools[p, FIRST], pools[p + 1, FIRST]):
        f = m[x, FREE]
        if guarded and m[x, EXTRA] < f:
            f = m[x, EXTRA]
        if left > 0 and f == size:
            if previous < 0:
                w[j, HOME] = x
            else:
                m[previous, CHAIN] = x
            previous = x
            m[x, CHAIN] = -1
            occupy(m, pools, seats, j, x, size, w[j, UNTIL], lists)
            if guarded:
                m[x, EXTRA] -= size
            left -= 1
    w[j, REST] = -1
    if remainder > 0:
        x = snuggest(m, pools, p, remainder, guarded)
        w[j, REST] = x
        occupy(m, pools, seats, j, x, remainder, w[j, UNTIL], lists)
        if guarded:
            m[x, EXTRA] -= remainder
    return 1


@njit_leaf
def vacate(m: Ints, pools: Ints, seats: Ints, j: int, x: int, amount: int, until: int, lists: int) -> None:
    """Job ``j`` gives back GPUs of node ``x``."""
    m[x, FREE] += amount
    if m[x, FREE] >= 0:  # of a closed node they are not to spare
        pools[m[x, POOL], SPARE] += amount
    if lists:
        unseat(m, seats, x, j, until)


@njit_leaf
def free_places(m: Ints, pools: Ints, seats: Ints, w: Ints, j: int, lists: int) -> None:
    """Job ``j`` gives back all its GPUs."""
    x = w[j, HOME]
    g = w[j, GPUS]
    size = m[x, SIZE]
    if g <= size:
        vacate(m, pools, seats, j, x, g, w[j, UNTIL], lists)
        return
    while x >= 0:
        following_node = m[x, CHAIN]
        vacate(m, pools, seats, j, x, size, w[j, UNTIL], lists)
        m[x, CHAIN] = -1
        x = following_node
    if w[j, REST] >= 0:
        vacate(m, pools, seats, j, w[j, REST], g % size, w[j, UNTIL], lists)


@njit_step
def log_gang(m: Ints, w: Ints, j: int, row: int, places: Ints, n: int) -> Number:
    """Note where a gang runs: rows (stretch, node, GPUs) of ``places``, which has room; the new length."""
    x = w[j, HOME]
    size = m[x, SIZE]
    while x >= 0:
        places[n, 0] = row
        places[n, 1] = x
        places[n, 2] = size
        n += 1
        x = m[x, CHAIN]
    if w[j, REST] >= 0:
        places[n, 0] = row
        places[n, 1] = w[j, REST]
        places[n, 2] = w[j, GPUS] % size
        n += 1
    return n


@njit_leaf
def open_stretch(w: Ints, j: int, t: int, row: int, log: Ints, allocated: int) -> Number:
    """Row ``row`` of the log begins: job ``j`` starts; its true end."""
    w[j, ROW] = row
    log[row, JOB] = j
    log[row, START] = t
    log[row, OVERHEAD] = w[j, OWES]
    log[row, ALLOCATED] = allocated
    log[row, PROTECTED] = t
    log[row, OUTCOME] = RUNNING
    log[row, NODE] = w[j, HOME]
    return t + w[j, OWES] + w[j, RUN] - w[j, DONE]


@njit_leaf
def time_left(w: Ints, j: int) -> Number:
    """Seconds that waiting job ``j`` takes at most, its restart included; `NEVER` without a limit."""
    if w[j, LIMIT] >= NEVER:
        return NEVER
    return w[j, OWES] + w[j, LIMIT] - w[j, DONE]


@njit_leaf
def declared_end(w: Ints, j: int, t: int) -> Number:
    """When job ``j``, started at ``t``, ends at the latest."""
    left = time_left(w, j)
    return NEVER if left >= NEVER else t + left


@njit_leaf
def kept_at(w: Ints, log: Ints, j: int, t: int, checkpoint: int) -> Number:
    """Seconds of the running stretch that outlive an interruption at ``t``."""
    if not w[j, RESUMABLE]:
        return 0
    row = w[j, ROW]
    work = t - log[row, START] - log[row, OVERHEAD]
    if work <= 0:
        return 0
    return work // checkpoint * checkpoint


@njit_step
def interrupt(w: Ints, log: Ints, j: int, t: int, outcome: int, checkpoint: int, restart: int) -> None:
    """The running stretch of job ``j`` ends unfinished: what it loses, what its next start costs."""
    row = w[j, ROW]
    kept = kept_at(w, log, j, t, checkpoint)
    log[row, END] = t
    log[row, KEPT] = kept
    log[row, OUTCOME] = outcome
    w[j, DONE] = w[j, DONE] + kept if w[j, RESUMABLE] else 0
    w[j, GAINED] = kept
    w[j, OWES] = restart
    w[j, ROW] = -1
    w[j, OUT] = t


@njit_leaf
def finish(w: Ints, log: Ints, j: int, t: int) -> None:
    """Job ``j`` has ended."""
    row = w[j, ROW]
    log[row, END] = t
    log[row, KEPT] = t - log[row, START] - log[row, OVERHEAD]
    log[row, OUTCOME] = FINISHED
    w[j, ROW] = -1


@njit_step
def cut_off(w: Ints, log: Ints, rows: int, t: int) -> None:
    """The run ends at ``t``: stretches that still run are cut there, with the work they have done."""
    for row in range(rows):
        if log[row, OUTCOME] == RUNNING:
            log[row, END] = t
            log[row, KEPT] = max(i64(0), t - log[row, START] - log[row, OVERHEAD])


# ------------------------------------------------------------------------ drains


@njit_step
def close_node(m: Ints, pools: Ints, x: int) -> None:
    """Node ``x`` takes no new work."""
    pools[m[x, POOL], SPARE] -= m[x, FREE]
    m[x, FREE] -= CLOSED


@njit_step
def open_node(m: Ints, pools: Ints, x: int) -> None:
    """Node ``x`` takes work again."""
    m[x, FREE] += CLOSED
    pools[m[x, POOL], SPARE] += m[x, FREE]


@njit_step
def next_of_drains(drains: Ints) -> Number:
    """The next instant of a drain: its begin, the end of its patience, the end of a repair."""
    t = NEVER
    for d in range(len(drains)):
        if drains[d, D_STATE] != REPAIRED:
            t = min(t, drains[d, D_NEXT])
    return t


@njit_step
def end_repairs(m: Ints, pools: Ints, drains: Ints, t: int) -> None:
    """Nodes whose repair is over take work again."""
    for d in range(len(drains)):
        if drains[d, D_STATE] == REPAIRING and drains[d, D_NEXT] <= t:
            drains[d, D_STATE] = REPAIRED
            drains[d, D_ENDED] = drains[d, D_NEXT]
            open_node(m, pools, drains[d, D_NODE])


@njit_step
def begin_drains(m: Ints, pools: Ints, drains: Ints, t: int, patience: int) -> None:
    """Nodes whose drain begins take no new work."""
    for d in range(len(drains)):
        if drains[d, D_STATE] == PLANNED and drains[d, D_FROM] <= t:
            drains[d, D_STATE] = DRAINING
            drains[d, D_NEXT] = drains[d, D_FROM] + patience
            close_node(m, pools, drains[d, D_NODE])


@njit_step
def begin_repairs(m: Ints, drains: Ints, t: int) -> None:
    """Draining nodes that are empty are repaired from now on."""
    for d in range(len(drains)):
        if drains[d, D_STATE] == DRAINING and m[drains[d, D_NODE], COUNT] == 0:
            drains[d, D_STATE] = REPAIRING
            drains[d, D_BEGAN] = t
            drains[d, D_NEXT] = t + drains[d, D_REPAIR]


# ------------------------------------------------------------------ reservations


@njit_leaf
def ready_at(m: Ints, seats: Ints, x: int, need: int, t: int) -> Number:
    """When node ``x`` has ``need`` free GPUs, by declared ends."""
    f = m[x, FREE]
    k = m[x, OFFSET]
    end = k + m[x, COUNT]
    when = t
    while f < need:
        if k == end:
            return NEVER + 1
        f += seats[k, TAKE]
        when = max(when, seats[k, ENDS])
        k += 1
    return when


@njit_step
def kth_ready(m: Ints, a: int, b: int, k: int) -> Number:
    """The ``k``-th smallest `READY` (from 1) of nodes ``a .. b - 1``; `SCRATCH` is overwritten."""
    for x in range(a, b):
        m[x, SCRATCH] = m[x, READY]
    low = a
    high = b - 1
    at = a + k - 1
    while low < high:
        pivot = m[(low + high) >> 1, SCRATCH]
        left = low
        right = high
        while left <= right:
            while m[left, SCRATCH] < pivot:
                left += 1
            while m[right, SCRATCH] > pivot:
                right -= 1
            if left <= right:
                swap = m[left, SCRATCH]
                m[left, SCRATCH] = m[right, SCRATCH]
                m[right, SCRATCH] = swap
                left += 1
                right -= 1
        if at <= right:
            high = right
        elif at >= left:
            low = left
        else:
            break
    return m[at, SCRATCH]


@njit_step
def earliest_nodes(m: Ints, a: int, b: int, g: int) -> Number:
    """Choose the nodes of ``a .. b - 1`` that have ``g`` GPUs earliest; the instant at which the last has them.

    `READY`: when a node has the GPUs of one node (of ``g``, if that is less); `REST_READY`: when it has the
    remainder of a gang. `CHOSEN` is overwritten: GPUs needed of each node. ``NEVER + 1``: not at all.
    """
    size = m[a, SIZE]
    for x in range(a, b):
        m[x, CHOSEN] = 0
    whole = max(i64(1), g // size)
    need = min(g, size)
    if b - a < whole:
        return NEVER + 1
    bar = kth_ready(m, a, b, whole)
    if bar > NEVER:
        return bar
    left = whole
    for x in range(a, b):
        if m[x, READY] < bar:
            m[x, CHOSEN] = need
            left -= 1
    for x in range(a, b):
        if left > 0 and m[x, READY] == bar:
            m[x, CHOSEN] = need
            left -= 1
    remainder = g - whole * size
    if remainder <= 0:
        return bar
    best = -1
    for x in range(a, b):
        if m[x, CHOSEN] == 0 and (best < 0 or m[x, REST_READY] < m[best, REST_READY]):
            best = x
    if best < 0 or m[best, REST_READY] > NEVER:
        return NEVER + 1
    m[best, CHOSEN] = remainder
    return max(bar, m[best, REST_READY])


@njit_step
def promise_in(m: Ints, pools: Ints, seats: Ints, g: int, p: int, t: int) -> Number:
    """When ``g`` GPUs of pool ``p`` are free by declared ends; `CHOSEN`: GPUs then needed of each of its nodes.

    ``NEVER + 1``: not at all, with the nodes that are open now.
    """
    a = pools[p, FIRST]
    b = pools[p + 1, FIRST]
    size = m[a, SIZE]
    for x in range(a, b):
        is_open = m[x, FREE] >= 0
        m[x, READY] = ready_at(m, seats, x, min(g, size), t) if is_open else NEVER + 1
        if g > size and g % size > 0:
            m[x, REST_READY] = ready_at(m, seats, x, g % size, t) if is_open else NEVER + 1
    return earliest_nodes(m, a, b, g)


@njit_step
def reserve(m: Ints, pools: Ints, seats: Ints, g: int, mask: int, t: int) -> Number:
    """Reserve nodes for ``g`` GPUs in the pool of ``mask`` that has them earliest; the promised instant.

    `EXTRA` is overwritten: `NEVER` on nodes that are not reserved, else the GPUs that will be free at the
    promise beyond what is reserved. ``NEVER + 1``: no promise can be given, nothing is reserved.
    """
    best = -1
    when = NEVER + 1
    for p in range(len(pools) - 1):
        if (mask >> p) & 1:
            r = promise_in(m, pools, seats, g, p, t)
            if r < when:
                when = r
                best = p
    for x in range(len(m)):
        m[x, EXTRA] = NEVER
    if best < 0:
        return when
    if len(pools) > 2:  # another pool's choice may have been noted last
        promise_in(m, pools, seats, g, best, t)
    for x in range(pools[best, FIRST], pools[best + 1, FIRST]):
        if m[x, CHOSEN] > 0:
            f = m[x, FREE]
            for k in range(m[x, OFFSET], m[x, OFFSET] + m[x, COUNT]):
                if seats[k, ENDS] > when:
                    break
                f += seats[k, TAKE]
            m[x, EXTRA] = f - m[x, CHOSEN]
    return when


# ------------------------------------------------------------------------ queues


@njit_step
def rank_lines(tree: Ints, usage: Floats, lines: Ints) -> None:
    """Lines by Slurm's Fair Tree: depth first, siblings by descending share / usage share.

    Of ``tree``, `PARENT`, `DOWN` (first child), `BESIDE` (next sibling) and `LEAF` (line of a leaf, else -1) are read,
    `STACK` is overwritten; siblings are in the order that decides ties. Of ``usage`` float64[B, 3], `SHARE` (weight
    among siblings, a whole number, so that equal levels are equal numbers) and `USED` (decayed usage; sums of inner
    budgets are written into it) are read, `LEVEL` is overwritten. Of ``lines``, `RANKED` is overwritten.
    """
    for b in range(len(tree)):
        if tree[b, LEAF] < 0:
            usage[b, USED] = 0.0
    for b in range(len(tree) - 1, 0, -1):  # parents stand before their children
        usage[tree[b, PARENT], USED] += usage[b, USED]
    depth = i64(1)
    tree[0, STACK] = 0
    n = 0
    while depth > 0:
        depth -= 1
        b = tree[depth, STACK]
        if tree[b, LEAF] >= 0:
            lines[n, RANKED] = tree[b, LEAF]
            n += 1
            continue
        base = depth
        child = tree[b, DOWN]
        while child >= 0:
            if usage[child, SHARE] <= 0.0:
                fair = 0.0
            elif usage[child, USED] <= 0.0:
                fair = np.inf
            else:
                fair = usage[child, SHARE] / usage[child, USED]
            usage[child, LEVEL] = fair
            at = depth  # the last on the stack is next: ascending, later siblings deeper
            while at > base and usage[tree[at - 1, STACK], LEVEL] >= fair:
                tree[at, STACK] = tree[at - 1, STACK]
                at -= 1
            tree[at, STACK] = child
            depth += 1
            child = tree[child, BESIDE]


@njit_step
def accrue(lines: Ints, usage: Floats, t: int, until: int, decay: float) -> None:
    """Usage of the lines from ``t`` to ``until``: GPU-seconds, decayed at every multiple of 300 s."""
    while t < until:
        step = min(until, (t // 300 + 1) * 300)
        for line in range(len(lines)):
            b = lines[line, BUDGET]
            usage[b, USED] += lines[line, HELD] * (step - t)
            if step % 300 == 0:
                usage[b, USED] *= decay
        t = step


@njit_leaf
def most_spare(pools: Ints) -> Number:
    """The most GPUs that are free in one pool."""
    most = i64(0)
    for p in range(len(pools) - 1):
        most = max(most, pools[p, SPARE])
    return most


@njit_leaf
def enter(w: Ints, lines: Ints, q0: Ints, q1: Ints, keys: Ints, j: int) -> None:
    """Job ``j`` joins its line."""
    p = w[j, WHERE]
    line = w[j, LINE]
    join(q0, q1, keys, p)
    lines[line, LOW] = min(lines[line, LOW], p)
    lines[line, HIGH] = max(lines[line, HIGH], p + 1)


@njit_step
def change_lines(changed: Floats, c: int, lines: Ints, usage: Floats) -> None:
    """From now on lines have the shares (`SHARE`) and quotas (`QUOTA`) of change ``c``; what they hold they keep."""
    for b in range(len(usage)):
        usage[b, SHARE] = changed[c, b, N_WEIGHT]
    for line in range(len(lines)):
        lines[line, QUOTA] = i64(changed[c, lines[line, BUDGET], N_PART])


@njit_kernel
def run_queue(
    kind: int,
    rules: Ints,
    decay: float,
    state: Ints,
    submit: Ints,
    w: Ints,
    m: Ints,
    pools: Ints,
    seats: Ints,
    order: Ints,
    lines: Ints,
    q0: Ints,
    q1: Ints,
    keys: Ints,
    tree: Ints,
    usage: Floats,
    changes: Ints,
    changed: Floats,
    drains: Ints,
    fails: Ints,
    heap: Ints,
    log: Ints,
    places: Ints,
) -> Number:
    """Simulate a policy without preemption: who is first in line starts, and what happens to those behind.

    Everything but ``kind``, ``rules``, ``decay``, ``submit``, ``order``, ``changes`` and ``changed`` is overwritten.

    Parameters
    ----------
    kind
        `STRICT`, `SKIP`, `PER_TYPE`, `EASY` or `PER_LINE` (each line strict, within its quota).
    rules : int64[6]
        `HORIZON` (the run stops there; `NEVER`: when nothing is left to happen), `PATIENCE` (seconds after which
        work is shut down by hand where a host waits for its repair), `CHECKPOINT` and `RESTART`, seconds.
    decay
        What is left of a line's usage after 300 s (`rank_lines`).
    state : int64[STATE_COLUMNS]
        Where the simulation is; all 0 at first.
    submit : int64[J]
        Submission, ascending.
    w, m, pools, seats
        See above.
    order : int64[J]
        Jobs by line, then by their place in it.
    lines : int64[L, LINE_COLUMNS]
        `LOW` and `HIGH`: nobody of a line waits before position ``LOW`` or from ``HIGH`` on (both the line's first
        position at first); `HELD`, 0; `QUOTA` (GPUs it may hold at once under `PER_LINE`; who wants more is passed
        over); `BUDGET` (its row in ``tree`` and ``changed``); `RANKED` (the lines in the order in which they are
        visited).
    q0, q1, keys
        The set of waiting positions, empty; `KEY_A` GPUs (0 where order alone counts), `KEY_B` `bit_length` of the
        declared limit.
    tree, usage
        See `rank_lines`; of length 0: lines keep their order.
    changes : int64[C], changed : float64[C, B, CHANGE_COLUMNS]
        Instants, ascending, and what holds from then on (`change_lines`).
    drains : int64[D, 7]
    fails : int64[2, C]
        ``C`` groups of jobs with equal masks.
    heap : int64[., 2], log : int64[., 9], places : int64[., 3]
        Tables that may prove too short.

    Returns
    -------
    int
        0: done. 1: a table is too short; call again with longer ones, and the rest as it is.
    """
    n_jobs = len(submit)
    t = state[S_T]
    i = state[S_ARRIVED]
    n_heap = state[S_HEAP]
    n_log = state[S_LOG]
    n_places = state[S_PLACES]
    n_waiting = state[S_WAITING]
    resumes = state[S_PAUSED]
    lists = 1 if kind == EASY or len(drains) > 0 else 0
    n_groups = fails.shape[1]
    n_changed = state[S_CHANGED]
    drain_at = next_of_drains(drains)
    status = 0
    while True:
        if not resumes:
            while n_heap > 0 and (w[heap[0, 1], ROW] < 0 or w[heap[0, 1], ENDING] != heap[0, 0]):
                n_heap = pop(heap, n_heap)  # it was interrupted
            while i < n_jobs and w[i, MASK] == 0:
                i += 1
            instant = NEVER
            if i < n_jobs:
                instant = submit[i]
            if n_heap > 0 and heap[0, 0] < instant:
                instant = heap[0, 0]
            if drain_at < instant:
                instant = drain_at
            if n_changed < len(changes) and n_waiting > 0 and changes[n_changed] < instant:
                instant = changes[n_changed]
            if instant >= rules[HORIZON]:
                if rules[HORIZON] < NEVER:
                    t = rules[HORIZON]
                break
            if len(tree) > 0 and instant > t:
                accrue(lines, usage, t, instant, decay)
            t = instant

            while n_heap > 0 and heap[0, 0] <= t:
                j = heap[0, 1]
                stale = w[j, ROW] < 0 or w[j, ENDING] != heap[0, 0]
                n_heap = pop(heap, n_heap)
                if not stale:
                    free_places(m, pools, seats, w, j, lists)
                    finish(w, log, j, t)
                    lines[w[j, LINE], HELD] -= w[j, GPUS]
            if len(drains) > 0:
                end_repairs(m, pools, drains, t)
                begin_drains(m, pools, drains, t, rules[PATIENCE])
                for d in range(len(drains)):
                    x = drains[d, D_NODE]
                    if drains[d, D_STATE] == DRAINING and drains[d, D_NEXT] <= t:
                        while m[x, COUNT] > 0:
                            j = seats[m[x, OFFSET], WHO]
                            free_places(m, pools, seats, w, j, lists)
                            interrupt(w, log, j, t, SHUT_DOWN, rules[CHECKPOINT], rules[RESTART])
                            lines[w[j, LINE], HELD] -= w[j, GPUS]
                            if kind == EASY:
                                keys[w[j, WHERE], KEY_B] = bit_length(time_left(w, j))
                            enter(w, lines, q0, q1, keys, j)
                            n_waiting += 1
                begin_repairs(m, drains, t)
                drain_at = next_of_drains(drains)
            while n_changed < len(changes) and changes[n_changed] <= t:
                change_lines(changed, n_changed, lines, usage)
                n_changed += 1
            while i < n_jobs and submit[i] <= t:
                if w[i, MASK] != 0:
                    enter(w, lines, q0, q1, keys, i)
                    n_waiting += 1
                i += 1
        resumes = 0

        if n_waiting == 0:
            continue
        bound = most_spare(pools)  # no job of more GPUs can start
        if bound == 0:
            continue
        # whatever starts at this instant takes a GPU of its own
        starts = min(n_waiting, len(seats))
        if n_log + starts > len(log) or n_heap + starts > len(heap) or n_places + 2 * len(m) > len(places):
            resumes = 1
            status = 1
            break
        if len(tree) > 0:
            rank_lines(tree, usage, lines)
        blocked = False
        blocked_pools = i64(0)
        promise = NEVER + 1
        digits = i64(62)  # of the seconds to the promise
        bound_later = NEVER + 1  # nor one of more than these that ends after the promise
        if kind != SKIP:
            bound = NEVER + 1
        for k in range(2):
            for c in range(n_groups):
                fails[k, c] = NEVER + 1
        stop = False
        for at in range(len(lines)):
            line = lines[at, RANKED]
            end = lines[line, HIGH]
            p = following(q0, q1, keys, lines[line, LOW], end, NEVER + 1, NEVER + 1, i64(0))
            if p < 0:
                lines[line, LOW] = end
                continue
            lines[line, LOW] = p
            if bound < NEVER:
                p = following(q0, q1, keys, p, end, bound, bound_later, digits)
            while p >= 0:
                j = order[p]
                g = w[j, GPUS]
                may = w[j, MASK]
                later = 0
                fits = w[j, OUT] != t
                if kind == PER_TYPE:
                    may &= ~blocked_pools
                    fits = fits and may != 0
                elif kind == PER_LINE:
                    fits = fits and lines[line, HELD] + g <= lines[line, QUOTA]
                elif kind != STRICT:
                    fits = fits and g < fails[0, w[j, GROUP]]
                    if blocked and fits:
                        later = 0 if time_left(w, j) <= min(promise - t, NEVER - 1) else 1
                        fits = later == 0 or g < fails[1, w[j, GROUP]]
                if fits:
                    w[j, UNTIL] = declared_end(w, j, t)
                    fits = place(m, pools, seats, w, j, may, later, lists) == 1
                if fits:
                    ending = open_stretch(w, j, t, n_log, log, 1)
                    w[j, ENDING] = ending
                    if g > m[w[j, HOME], SIZE]:
                        n_places = log_gang(m, w, j, n_log, places, n_places)
                    n_log += 1
                    n_heap = push(heap, n_heap, ending, j)
                    leave_line(q0, q1, keys, p)
                    n_waiting -= 1
                    lines[line, HELD] += g
                    if blocked or kind == SKIP:
                        bound = min(bound, most_spare(pools))
                elif kind == STRICT:
                    stop = True
                elif kind == PER_LINE:
                    if g <= lines[line, QUOTA]:
                        break
                elif kind == PER_TYPE:
                    blocked_pools |= w[j, MASK]
                    stop = blocked_pools == (i64(1) << (len(pools) - 1)) - 1
                elif kind == EASY and not blocked:
                    blocked = True
                    bound = most_spare(pools)
                    if len(lines) == 1 and following(q0, q1, keys, p + 1, end, bound, bound, i64(0)) < 0:
                        break  # nobody behind could use what is free: no promise is needed
                    promise = reserve(m, pools, seats, g, may, t)
                    digits = bit_length(promise - t)
                    if w[j, OUT] != t:  # else it fits, perhaps, but lost its GPUs just now
                        fails[0, w[j, GROUP]] = g
                        if n_groups == 1:
                            bound = min(bound, g - 1)
                elif w[j, OUT] != t:
                    fails[later, w[j, GROUP]] = min(fails[later, w[j, GROUP]], g)
                    if n_groups == 1:
                        if later == 0:
                            bound = min(bound, g - 1)
                        bound_later = min(bound_later, g - 1)
                if stop or bound == 0 or n_waiting == 0:
                    break
                p = following(q0, q1, keys, p + 1, end, bound, bound_later, digits)
            if stop or bound == 0 or n_waiting == 0:
                break
    state[S_T] = t
    state[S_ARRIVED] = i
    state[S_HEAP] = n_heap
    state[S_LOG] = n_log
    state[S_PLACES] = n_places
    state[S_WAITING] = n_waiting
    state[S_PAUSED] = resumes
    state[S_CHANGED] = n_changed
    if status == 0:
        cut_off(w, log, n_log, t)
    return status


# -------------------------------------------------------------------- contracts


@njit_leaf
def shift(m: Ints, w: Ints, j: int, column: int, sign: int) -> None:
    """Add the GPUs of running job ``j`` to a column of its nodes, or take them off."""
    x = w[j, HOME]
    g = w[j, GPUS]
    size = m[x, SIZE]
    if g <= size:
        m[x, column] += sign * g
        return
    while x >= 0:
        m[x, column] += sign * size
        x = m[x, CHAIN]
    if w[j, REST] >= 0:
        m[w[j, REST], column] += sign * (g % size)


@njit_leaf
def note_news(m: Ints, state: Ints, x: int) -> None:
    """More can be taken from node ``x`` than before: it comes first among the nodes, latest news first."""
    state[S_NEWS] += 1
    m[x, NEWS] = state[S_NEWS]
    first = state[S_NEWEST]
    if first == x:
        return
    newer = m[x, NEWER]
    older = m[x, OLDER]
    m[newer, OLDER] = older  # it is not the first, so there is a newer one
    if older >= 0:
        m[older, NEWER] = newer
    m[x, NEWER] = -1
    m[x, OLDER] = first
    m[first, NEWER] = x
    state[S_NEWEST] = x


@njit_step
def begin_news(m: Ints, pools: Ints, lines: Ints, groups: Ints, state: Ints) -> None:
    """Nothing is known of any node or line; `G_LEAST`: the fewest GPUs of a node that work of a group can need."""
    for x in range(len(m)):
        m[x, NEWS] = 0
        m[x, NEWER] = x - 1
        m[x, OLDER] = x + 1 if x + 1 < len(m) else -1
        m[x, CHEAP] = -1
    state[S_NEWS] = 0
    state[S_NEWEST] = 0
    for line in range(len(lines)):
        lines[line, V_STATE] = -1
        lines[line, V_STAMP] = -1
    state[R_JOB] = -1
    for k in range(len(groups)):
        groups[k, G_LEAST] = groups[k, G_GPUS]
        for p in range(len(pools) - 1):
            size = m[pools[p, FIRST], SIZE]
            if groups[k, G_GPUS] > size:
                rest = groups[k, G_GPUS] % size
                groups[k, G_LEAST] = min(groups[k, G_LEAST], rest if rest > 0 else size)


@njit_step
def sum_up(m: Ints, pools: Ints, state: Ints) -> None:
    """Bounds on what can start, per pool: `BEST_CHEAP`, `BEST_ALL`, `FULL_CHEAP`, `FULL_ALL` are overwritten.

    ``CHEAP``: free or unallocated; ``ALL``: past its minimum run time too. The most on one node; nodes that could be
    empty. A node with more that is cheap than when it was last summed up is news (`note_news`).
    """
    for p in range(len(pools) - 1):
        best_cheap = i64(0)
        best_all = i64(0)
        full_cheap = i64(0)
        full_all = i64(0)
        cheap_sum = i64(0)
        best_guarded = i64(0)
        full_guarded = i64(0)
        for x in range(pools[p, FIRST], pools[p + 1, FIRST]):
            m[x, REACH] = -1
            if m[x, FREE] < 0:
                m[x, CHEAP] = -1
            else:
                cheap = m[x, FREE] + m[x, LOOSE]
                every = cheap + m[x, PAST]
                if cheap > m[x, CHEAP]:
                    note_news(m, state, x)
                m[x, CHEAP] = cheap
                m[x, REACH] = every
                cheap_sum += cheap
                best_cheap = max(best_cheap, cheap)
                best_all = max(best_all, every)
                full_cheap += cheap == m[x, SIZE]
                best_guarded = max(best_guarded, min(cheap, m[x, EXTRA]))
                full_guarded += min(cheap, m[x, EXTRA]) == m[x, SIZE]
                full_all += every == m[x, SIZE]
        pools[p, BEST_CHEAP] = best_cheap
        pools[p, BEST_ALL] = best_all
        pools[p, FULL_CHEAP] = full_cheap
        pools[p, CHEAP_SUM] = cheap_sum
        pools[p, BEST_CHEAP + GUARDED] = best_guarded
        pools[p, FULL_CHEAP + GUARDED] = full_guarded
        pools[p, FULL_ALL] = full_all


@njit_leaf
def hopeless(m: Ints, pools: Ints, g: int, mask: int, best: int, full: int) -> Number:
    """1 where a job of ``g`` GPUs can start in no pool of ``mask``, by these two columns of ``pools``."""
    for p in range(len(pools) - 1):
        if (mask >> p) & 1:
            size = m[pools[p, FIRST], SIZE]
            if g <= size:
                if pools[p, best] >= g:
                    return 0
            elif pools[p, full] >= g // size:
                return 0
    return 1


@njit_leaf
def line_bit(line: int) -> Number:
    """The bit of a line in `LINES`; many lines share one."""
    return i64(1) << (line % 62)


@njit_step
def mark_lines(m: Ints, w: Ints, j: int) -> None:
    """Note the line of running job ``j``, now past its minimum, in `LINES` of its nodes.

    A bit may stay longer than it is true, until nobody on the node is past a minimum.
    """
    bit = line_bit(w[j, LINE])
    x = w[j, HOME]
    gang = w[j, GPUS] > m[x, SIZE]
    while x >= 0:
        # all that is past is this job's: older bits are stale
        m[x, LINES] = bit if m[x, PAST] <= w[j, GPUS] and m[x, COUNT] == 1 else m[x, LINES] | bit
        x = m[x, CHAIN] if gang else -1
    if w[j, REST] >= 0:
        m[w[j, REST], LINES] |= bit


@njit_leaf
def spread_word(m: Ints, w: Ints, j: int) -> None:
    """What can be taken from the nodes of running job ``j`` is news at the next `sum_up`."""
    x = w[j, HOME]
    gang = w[j, GPUS] > m[x, SIZE]
    while x >= 0:
        m[x, CHEAP] = -1
        x = m[x, CHAIN] if gang else -1
    if w[j, REST] >= 0:
        m[w[j, REST], CHEAP] = -1


@njit_step
def grow_old(m: Ints, w: Ints, lines: Ints, j: int) -> None:
    """Running job ``j`` is past its minimum run time."""
    line = w[j, LINE]
    w[j, IS_PAST] = 1
    shift(m, w, j, PAST, i64(1))
    spread_word(m, w, j)
    mark_lines(m, w, j)
    lines[line, PAST_GPUS] += w[j, GPUS]
    head = lines[line, OLD]
    w[j, AFTER] = head
    w[j, BEFORE] = -1
    if head >= 0:
        w[head, BEFORE] = j
    lines[line, OLD] = j


@njit_step
def may_take_own(w: Ints, lines: Ints, j: int) -> Number:
    """1 where waiting job ``j`` has a claim on running work of its own line."""
    v = lines[w[j, LINE], OLD]
    while v >= 0:
        if w[v, MINIMUM] > w[j, MINIMUM] and w[v, RANK] > w[j, RANK]:
            return 1
        v = w[v, AFTER]
    return 0


@njit_step
def rights(lines: Ints, tree: Ints, weights: Floats, line: int) -> Number:
    """Note the lines on whose running work ``line`` has a claim (`RIGHT`); their GPUs past a minimum."""
    found = i64(0)
    for b in range(len(lines)):
        lines[b, RIGHT] = 0
        if b != line and lines[b, RATE] > 0:
            lines[b, RIGHT] = claims_on(tree, weights, lines[line, BUDGET], lines[b, BUDGET])
            found += lines[b, RIGHT] * lines[b, PAST_GPUS]
    return found


@njit_step
def reach(lines: Ints, w: Ints, m: Ints, pools: Ints, seats: Ints, line: int) -> None:
    """What work of ``line`` may take at most: `REACH` of a node, and the best of each pool, are overwritten.

    ``OTHERS``: free, unallocated, or past its minimum run time in a line on which it has a claim; ``ALL`` and `REACH`:
    or past its minimum in the same line. `rights` of the line are known.
    """
    mine = line_bit(line)
    for b in range(len(lines)):
        if lines[b, RIGHT]:
            mine |= line_bit(b)
    for p in range(len(pools) - 1):
        for column in range(BEST_ALL, FULL_OTHERS + 1):
            pools[p, column] = 0
            pools[p, column + GUARDED] = 0
        for x in range(pools[p, FIRST], pools[p + 1, FIRST]):
            m[x, REACH] = -1
            if m[x, FREE] < 0:
                continue
            others = m[x, FREE] + m[x, LOOSE]
            every = others
            if m[x, PAST] > 0 and m[x, LINES] & mine:
                for k in range(m[x, OFFSET], m[x, OFFSET] + m[x, COUNT]):
                    v = seats[k, WHO]
                    if w[v, IS_PAST]:
                        if lines[w[v, LINE], RIGHT]:
                            others += seats[k, TAKE]
                            every += seats[k, TAKE]
                        elif w[v, LINE] == line:
                            every += seats[k, TAKE]
            m[x, REACH] = every
            for guarded in range(0, 2 * GUARDED, GUARDED):
                if guarded:
                    others = min(others, m[x, EXTRA])
                    every = min(every, m[x, EXTRA])
                pools[p, BEST_OTHERS + guarded] = max(pools[p, BEST_OTHERS + guarded], others)
                pools[p, BEST_ALL + guarded] = max(pools[p, BEST_ALL + guarded], every)
                pools[p, FULL_OTHERS + guarded] += others == m[x, SIZE]
                pools[p, FULL_ALL + guarded] += every == m[x, SIZE]


@njit_leaf
def weigh(tree: Ints, weights: Floats, b: int) -> None:
    """The number that sorts budget ``b`` among its siblings: what it had and holds, over its weight."""
    weights[b, KEY] = tree[b, HAD] / weights[b, WEIGHT] if weights[b, WEIGHT] > 0.0 else np.inf


@njit_leaf
def claims_on(tree: Ints, weights: Floats, a: int, b: int) -> Number:
    """1 where leaf ``a`` may take from leaf ``b``: compared at the children of their lowest common ancestor."""
    while tree[a, DEPTH] > tree[b, DEPTH]:
        a = tree[a, PARENT]
    while tree[b, DEPTH] > tree[a, DEPTH]:
        b = tree[b, PARENT]
    while tree[a, PARENT] != tree[b, PARENT]:
        a = tree[a, PARENT]
        b = tree[b, PARENT]
    return 1 if weights[a, KEY] + weights[tree[a, PARENT], GAP] < weights[b, KEY] else 0


@njit_step
def any_past(lines: Ints) -> Number:
    """1 where any running allocated work is past its minimum run time."""
    for line in range(len(lines)):
        if lines[line, PAST_GPUS] > 0:
            return 1
    return 0


@njit_leaf
def has_right(tiers: int, lines: Ints, w: Ints, j: int, v: int) -> Number:
    """1 where waiting job ``j`` has a claim on running job ``v``, its minimum run time aside.

    The `rights` of its line are known.
    """
    if tiers:
        return 1 if w[v, PRIORITY] < w[j, PRIORITY] and w[v, OPTED] == 0 else 0
    if w[v, CHARGED] == 0:
        return 1
    a = w[j, LINE]
    b = w[v, LINE]
    if a == b:
        return 1 if w[v, RANK] > w[j, RANK] and w[v, MINIMUM] > w[j, MINIMUM] else 0
    return lines[b, RIGHT]


@njit_leaf
def may_take(tiers: int, lines: Ints, w: Ints, log: Ints, j: int, v: int, t: int) -> Number:
    """1 where waiting job ``j`` may take the GPUs of running job ``v`` at ``t``."""
    if w[v, CHARGED] == 1 and (w[v, IS_PAST] == 0 or log[w[v, ROW], START] == t):
        return 0
    return has_right(tiers, lines, w, j, v)


@njit_leaf
def loss(w: Ints, log: Ints, v: int, t: int, checkpoint: int) -> Number:
    """GPU-seconds that interrupting ``v`` at ``t`` loses."""
    return w[v, GPUS] * (t - log[w[v, ROW], START] - kept_at(w, log, v, t, checkpoint))


@njit_step
def next_victim(
    tiers: int,
    lines: Ints,
    w: Ints,
    m: Ints,
    seats: Ints,
    log: Ints,
    rules: Ints,
    j: int,
    x: int,
    t: int,
    mark: int,
) -> Number:
    """Whose GPUs on node ``x`` job ``j`` takes next; -1: nobody's. Jobs with `MARK` ``mark`` are taken already.

    Unallocated first (under tiers: the lowest priority), then the least lost, then by arrival.
    """
    best = -1
    best_class = i64(0)
    best_loss = i64(0)
    for k in range(m[x, OFFSET], m[x, OFFSET] + m[x, COUNT]):
        v = seats[k, WHO]
        if w[v, MARK] == mark:
            continue
        order = w[v, PRIORITY] if tiers else w[v, CHARGED]
        if best >= 0 and order > best_class:
            continue
        if not may_take(tiers, lines, w, log, j, v, t):
            continue
        lost = loss(w, log, v, t, rules[CHECKPOINT])
        if best < 0 or order < best_class or lost < best_loss or (lost == best_loss and v < best):
            best = v
            best_class = order
            best_loss = lost
    return best


@njit_step
def price(
    tiers: int,
    lines: Ints,
    w: Ints,
    m: Ints,
    seats: Ints,
    log: Ints,
    rules: Ints,
    j: int,
    x: int,
    need: int,
    t: int,
    taken: int,
    mark: int,
) -> Number:
    """What taking ``need`` GPUs of node ``x`` costs, into `COST` (allocated GPUs evicted) and `LOST`; 0: it cannot be.

    Jobs with `MARK` ``taken`` are taken already and cost nothing; ``mark`` is a fresh number.
    """
    f = m[x, FREE]
    if f < 0 or m[x, REACH] < need:
        return 0
    m[x, COST] = 0
    m[x, LOST] = 0
    most = f
    for k in range(m[x, OFFSET], m[x, OFFSET] + m[x, COUNT]):
        v = seats[k, WHO]
        if w[v, MARK] == taken:
            f += seats[k, TAKE]
            most += seats[k, TAKE]
        elif may_take(tiers, lines, w, log, j, v, t):
            most += seats[k, TAKE]
        elif need == m[x, SIZE]:
            return 0
    if most < need:
        return 0
    if f >= need:
        return 1
    for k in range(m[x, OFFSET], m[x, OFFSET] + m[x, COUNT]):
        v = seats[k, WHO]
        w[v, SEEN] = w[v, MARK]
        if w[v, MARK] == taken:
            w[v, MARK] = mark
    possible = 1
    while f < need:
        v = next_victim(tiers, lines, w, m, seats, log, rules, j, x, t, mark)
        if v < 0:
            possible = 0
            break
        w[v, MARK] = mark
        if w[v, CHARGED] == 1:
            m[x, COST] += w[v, GPUS]
        m[x, LOST] += loss(w, log, v, t, rules[CHECKPOINT])
        f += w[v, GPUS] % m[x, SIZE] if w[v, REST] == x else min(w[v, GPUS], m[x, SIZE])
    for k in range(m[x, OFFSET], m[x, OFFSET] + m[x, COUNT]):
        w[seats[k, WHO], MARK] = w[seats[k, WHO], SEEN]
    return possible


@njit_step
def cheaper(m: Ints, x: int, y: int, size: int) -> Number:
    """1 where taking node ``x`` is better than ``y``: allocated GPUs evicted, lost, free GPUs, index.

    For a gang (``size``: of its nodes) empty nodes come first, and free GPUs do not count.
    """
    if size > 0 and (m[x, FREE] == size) != (m[y, FREE] == size):
        return 1 if m[x, FREE] == size else 0
    if m[x, COST] != m[y, COST]:
        return 1 if m[x, COST] < m[y, COST] else 0
    if m[x, LOST] != m[y, LOST]:
        return 1 if m[x, LOST] < m[y, LOST] else 0
    if size == 0 and m[x, FREE] != m[y, FREE]:
        return 1 if m[x, FREE] < m[y, FREE] else 0
    return 1 if x < y else 0


@njit_step
def release(m: Ints, pools: Ints, seats: Ints, w: Ints, lines: Ints, v: int) -> None:
    """Running job ``v`` gives back its GPUs, and its team's counts know it."""
    g = w[v, GPUS]
    line = w[v, LINE]
    if w[v, CHARGED] == 0:
        shift(m, w, v, LOOSE, i64(-1))
        lines[line, LOOSE_GPUS] -= g
    else:
        lines[line, RATE] -= g
        if w[v, IS_PAST]:
            shift(m, w, v, PAST, i64(-1))
            lines[line, PAST_GPUS] -= g
            after = w[v, AFTER]
            if after >= 0:
                w[after, BEFORE] = w[v, BEFORE]
            if w[v, BEFORE] >= 0:
                w[w[v, BEFORE], AFTER] = after
            else:
                lines[line, OLD] = after
        else:
            lines[line, SHIELDED] -= g
            lines[line, SHIELD_SUM] -= g * w[v, PROTECTED_UNTIL]
    free_places(m, pools, seats, w, v, 1)


@njit_step
def evict(
    m: Ints,
    pools: Ints,
    seats: Ints,
    w: Ints,
    lines: Ints,
    log: Ints,
    rules: Ints,
    deferred: Ints,
    n_deferred: int,
    v: int,
    t: int,
    outcome: int,
) -> Number:
    """Running job ``v`` is interrupted; it joins its line after this instant. The new number of such jobs."""
    release(m, pools, seats, w, lines, v)
    interrupt(w, log, v, t, outcome, rules[CHECKPOINT], rules[RESTART])
    deferred[n_deferred] = v
    return n_deferred + 1


@njit_step
def clear(
    tiers: int,
    lines: Ints,
    w: Ints,
    m: Ints,
    pools: Ints,
    seats: Ints,
    log: Ints,
    rules: Ints,
    deferred: Ints,
    n_deferred: int,
    j: int,
    x: int,
    need: int,
    t: int,
) -> Number:
    """Take from node ``x`` what job ``j`` may take, until ``need`` GPUs are free; the new number of deferred jobs."""
    while m[x, FREE] < need:
        v = next_victim(tiers, lines, w, m, seats, log, rules, j, x, t, i64(-1))
        n_deferred = evict(m, pools, seats, w, lines, log, rules, deferred, n_deferred, v, t, PREEMPTED)
    return n_deferred


@njit_step
def take_node(
    tiers: int,
    lines: Ints,
    w: Ints,
    m: Ints,
    pools: Ints,
    seats: Ints,
    log: Ints,
    rules: Ints,
    deferred: Ints,
    n_deferred: int,
    j: int,
    p: int,
    guarded: int,
    t: int,
    marks: int,
) -> Number:
    """Give job ``j``, at most a node's GPUs, the cheapest node of pool ``p`` by evicting.

    The new number of deferred jobs, or -1.
    """
    g = w[j, GPUS]
    if pools[p, BEST_ALL] < g:
        return -1
    best = -1
    for x in range(pools[p, FIRST], pools[p + 1, FIRST]):
        if m[x, REACH] < g or (guarded and m[x, EXTRA] < g):
            continue
        marks += 1
        possible = price(tiers, lines, w, m, seats, log, rules, j, x, g, t, i64(-2), marks)
        if possible and (best < 0 or cheaper(m, x, best, i64(0))):
            best = x
    if best >= 0:
        n_deferred = clear(
            tiers,
            lines,
            w,
            m,
            pools,
            seats,
            log,
            rules,
            deferred,
            n_deferred,
            j,
            best,
            g,
            t,
        )
        w[j, HOME] = best
        w[j, REST] = -1
        m[best, CHAIN] = -1
        occupy(m, pools, seats, j, best, g, w[j, UNTIL], 1)
        if guarded:
            m[best, EXTRA] -= g
        return n_deferred
    return -1


@njit_step
def take_nodes(
    tiers: int,
    lines: Ints,
    w: Ints,
    m: Ints,
    pools: Ints,
    seats: Ints,
    log: Ints,
    rules: Ints,
    deferred: Ints,
    n_deferred: int,
    j: int,
    p: int,
    guarded: int,
    t: int,
    marks: int,
) -> Number:
    """Give gang ``j`` the cheapest nodes of pool ``p`` by evicting; the new number of deferred jobs, or -1.

    Nodes are chosen one by one: a node that shares a gang which is evicted already costs that much less.
    """
    size = m[pools[p, FIRST], SIZE]
    whole = w[j, GPUS] // size
    remainder = w[j, GPUS] - whole * size
    a = pools[p, FIRST]
    b = pools[p + 1, FIRST]
    if pools[p, FULL_ALL] < whole:
        return -1
    taken = marks + 1
    marks += 1
    possible = 0
    for x in range(a, b):
        m[x, CHOSEN] = -1
        if m[x, REACH] < size or (guarded and m[x, EXTRA] < size):
            continue
        marks += 1
        if price(tiers, lines, w, m, seats, log, rules, j, x, size, t, taken, marks):
            m[x, CHOSEN] = 0
            possible += 1
    if possible < whole:
        return -1
    for _ in range(whole):
        best = -1
        for x in range(a, b):
            if m[x, CHOSEN] == 0 and (best < 0 or cheaper(m, x, best, size)):
                best = x
        m[best, CHOSEN] = size
        for k in range(m[best, OFFSET], m[best, OFFSET] + m[best, COUNT]):
            v = seats[k, WHO]
            w[v, MARK] = taken
            if w[v, GPUS] > size:  # its other nodes cost less now
                y = w[v, HOME]
                while y >= 0:
                    if m[y, CHOSEN] == 0:
                        marks += 1
                        price(
                            tiers,
                            lines,
                            w,
                            m,
                            seats,
                            log,
                            rules,
                            j,
                            y,
                            size,
                            t,
                            taken,
                            marks,
                        )
                    y = m[y, CHAIN]
                y = w[v, REST]
                if y >= 0 and m[y, CHOSEN] == 0:
                    marks += 1
                    price(tiers, lines, w, m, seats, log, rules, j, y, size, t, taken, marks)
    rest = -1
    if remainder > 0:
        for x in range(a, b):
            f = min(m[x, FREE], m[x, EXTRA]) if guarded else m[x, FREE]
            if m[x, CHOSEN] <= 0 and f >= remainder and (rest < 0 or f < m[rest, SCRATCH]):
                rest = x
            m[x, SCRATCH] = f
        for x in range(a, b):
            if rest >= 0 and m[rest, FREE] >= remainder:
                break
            if m[x, CHOSEN] > 0 or (guarded and m[x, EXTRA] < remainder):
                continue
            marks += 1
            possible = price(tiers, lines, w, m, seats, log, rules, j, x, remainder, t, taken, marks)
            if possible and (rest < 0 or cheaper(m, x, rest, size)):
                rest = x
        if rest < 0:
            return -1
    for x in range(a, b):
        if m[x, CHOSEN] > 0:
            n_deferred = clear(
                tiers,
                lines,
                w,
                m,
                pools,
                seats,
                log,
                rules,
                deferred,
                n_deferred,
                j,
                x,
                size,
                t,
            )
    if rest >= 0:
        n_deferred = clear(
            tiers,
            lines,
            w,
            m,
            pools,
            seats,
            log,
            rules,
            deferred,
            n_deferred,
            j,
            rest,
            remainder,
            t,
        )
    last = -1
    for x in range(a, b):
        if m[x, CHOSEN] > 0:
            if last < 0:
                w[j, HOME] = x
            else:
                m[last, CHAIN] = x
            last = x
            m[x, CHAIN] = -1
            occupy(m, pools, seats, j, x, size, w[j, UNTIL], 1)
            if guarded:
                m[x, EXTRA] -= size
    w[j, REST] = rest
    if rest >= 0:
        occupy(m, pools, seats, j, rest, remainder, w[j, UNTIL], 1)
        if guarded:
            m[rest, EXTRA] -= remainder
    return n_deferred


@njit_step
def contract_ready(
    tiers: int,
    lines: Ints,
    w: Ints,
    m: Ints,
    seats: Ints,
    scratch: Ints,
    j: int,
    x: int,
    need: int,
    t: int,
) -> Number:
    """When node ``x`` has ``need`` GPUs that are free or that waiting job ``j`` may take by then.

    An occupant on which ``j`` has a claim counts from the end of its minimum run time, another from its declared end.
    """
    f = m[x, FREE]
    if f < 0:
        return NEVER + 1
    if need == m[x, SIZE]:  # everybody has to leave
        last = t
        for k in range(m[x, OFFSET], m[x, OFFSET] + m[x, COUNT]):
            last = max(last, leaves_at(tiers, lines, w, j, seats[k, WHO], t))
        return last
    n = i64(0)
    for k in range(m[x, OFFSET], m[x, OFFSET] + m[x, COUNT]):
        n = push(scratch, n, leaves_at(tiers, lines, w, j, seats[k, WHO], t), seats[k, TAKE])
    when = t
    while f < need:
        if n == 0:
            return NEVER + 1
        when = max(when, scratch[0, 0])
        f += scratch[0, 1]
        n = pop(scratch, n)
    return when


@njit_step
def leaves_at(tiers: int, lines: Ints, w: Ints, j: int, v: int, t: int) -> Number:
    """When running job ``v`` leaves or may be taken by waiting job ``j``."""
    if has_right(tiers, lines, w, j, v):
        if w[v, CHARGED] == 0 or w[v, IS_PAST]:
            return t
        return max(t, w[v, PROTECTED_UNTIL])
    return w[v, UNTIL]


@njit_step
def contract_reserve(
    tiers: int,
    lines: Ints,
    w: Ints,
    m: Ints,
    pools: Ints,
    seats: Ints,
    scratch: Ints,
    j: int,
    t: int,
) -> Number:
    """Reserve the nodes that job ``j`` can have earliest; the promised instant (`NEVER` + 1: none).

    `KEPT_EXTRA` is overwritten: GPUs of a reserved node that others may hold beyond the promise, `NEVER` elsewhere.
    """
    g = w[j, GPUS]
    best = -1
    when = NEVER + 1
    for again in range(2):
        for p in range(len(pools) - 1):
            if not (w[j, MASK] >> p) & 1 or (again and p != best):
                continue
            size = m[pools[p, FIRST], SIZE]
            for x in range(pools[p, FIRST], pools[p + 1, FIRST]):
                m[x, READY] = contract_ready(tiers, lines, w, m, seats, scratch, j, x, min(g, size), t)
                if g > size and g % size > 0:
                    m[x, REST_READY] = contract_ready(tiers, lines, w, m, seats, scratch, j, x, g % size, t)
            r = earliest_nodes(m, pools[p, FIRST], pools[p + 1, FIRST], g)
            if r < when:
                when = r
                best = p
        if best < 0:
            return NEVER + 1
        if len(pools) == 2:
            break
    for x in range(len(m)):
        m[x, KEPT_EXTRA] = NEVER
    for x in range(pools[best, FIRST], pools[best + 1, FIRST]):
        if m[x, CHOSEN] > 0:
            f = m[x, FREE]
            for k in range(m[x, OFFSET], m[x, OFFSET] + m[x, COUNT]):
                if leaves_at(tiers, lines, w, j, seats[k, WHO], t) <= when:
                    f += seats[k, TAKE]
            m[x, KEPT_EXTRA] = f - m[x, CHOSEN]
    return when


@njit_step
def promise_to(
    lines: Ints,
    w: Ints,
    m: Ints,
    pools: Ints,
    seats: Ints,
    scratch: Ints,
    rules: Ints,
    state: Ints,
    j: int,
    t: int,
    version: int,
    bits: int,
) -> Number:
    """Reserve nodes for job ``j`` where it can have them soon enough; the promised instant (`NEVER` + 1: none).

    `EXTRA` is overwritten. The last reservation stands where it was for the same job, with claims on the same lines
    (``bits``), and no allocated work has started or ended since (``version``): every node is ready when it was.
    """
    if (
        bits < 0
        or has_remainder(m, pools, w[j, GPUS])
        or state[R_JOB] != j
        or state[R_STATE] != version
        or state[R_RIGHTS] != bits
        or state[R_WHEN] <= t
    ):
        when = contract_reserve(i64(0), lines, w, m, pools, seats, scratch, j, t)
        less = less_is_reserved(m)  # notes what is reserved now, whatever else has changed
        if less or when != state[R_WHEN] or state[R_JOB] != j:
            state[R_NUMBER] += 1
        state[R_WHEN] = when
        state[R_JOB] = j
        state[R_STATE] = version
        state[R_RIGHTS] = bits
    if state[R_WHEN] > t + rules[PATIENCE]:
        return NEVER + 1
    for x in range(len(m)):
        m[x, EXTRA] = m[x, KEPT_EXTRA]
    return state[R_WHEN]


@njit_step
def has_remainder(m: Ints, pools: Ints, g: int) -> Number:
    """1 where ``g`` GPUs leave a node of some pool partly used: which one is ready first then changes with time."""
    for p in range(len(pools) - 1):
        size = m[pools[p, FIRST], SIZE]
        if g > size and g % size > 0:
            return 1
    return 0


@njit_step
def less_is_reserved(m: Ints) -> Number:
    """1 where others may have more of a node than under the reservation before (`LAST_EXTRA`, which is overwritten)."""
    less = 0
    for x in range(len(m)):
        if m[x, KEPT_EXTRA] > m[x, LAST_EXTRA]:
            less = 1
        m[x, LAST_EXTRA] = m[x, KEPT_EXTRA]
    return less


@njit_step
def lines_in_reach(lines: Ints) -> Number:
    """The lines on which the `rights` last noted give a claim, a bit each; -1: more lines than bits."""
    if len(lines) > 62:
        return -1
    bits = i64(0)
    for b in range(len(lines)):
        bits |= lines[b, RIGHT] << b
    return bits


@njit_step
def still_in_vain(
    lines: Ints, groups: Ints, m: Ints, state: Ints, line: int, bits: int, reserved: int, soon: int
) -> Number:
    """1 where nothing of ``line`` can start, for nothing could, and nothing that it would need has come since.

    That is: nobody joined the line; it has claims on no other lines (``bits``) than then; what was kept off reserved
    nodes still is, for not more of them is left (``reserved``), and what was not still is not: its minimum run times
    end within ``soon``; and of each node with more to take since then (`note_news`) it can take less than the least
    that it could use.
    """
    if bits < 0 or lines[line, V_STATE] < 0 or bits & ~lines[line, V_RIGHTS]:
        return 0
    if (lines[line, V_RESERVED] >= 0 and lines[line, V_RESERVED] != reserved) or lines[
        line, V_MINIMUM
    ] > soon:
        return 0
    x = state[S_NEWEST]
    if m[x, NEWS] <= lines[line, V_STATE]:
        return 1
    least = NEVER
    for k in range(lines[line, FROM], lines[line, MIDDLE]):
        if groups[k, G_HEAD] >= 0:
            least = min(least, groups[k, G_LEAST])
    mine = bits | line_bit(line)
    while x >= 0 and m[x, NEWS] > lines[line, V_STATE]:
        most = m[x, FREE] + m[x, LOOSE]
        if m[x, LINES] & mine:
            most += m[x, PAST]
        if most >= least:
            return 0
        x = m[x, OLDER]
    lines[line, V_STATE] = state[S_NEWS]
    lines[line, V_RIGHTS] = bits
    return 1


@njit_step
def ask(w: Ints, lines: Ints, groups: Ints, q0: Ints, q1: Ints, keys: Ints, j: int) -> Number:
    """Job ``j`` joins its line; 1 where it asks for allocated GPUs."""
    p = w[j, WHERE]
    k = w[j, GROUP]
    join(q0, q1, keys, p)
    if groups[k, G_HEAD] < 0 or p < groups[k, G_HEAD]:
        groups[k, G_HEAD] = p
    line = w[j, LINE]
    if k < lines[line, MIDDLE]:
        lines[line, ASKS] += 1
        lines[line, V_STATE] = -1
        return 1
    return 0


@njit_step
def served(w: Ints, groups: Ints, q0: Ints, q1: Ints, keys: Ints, j: int) -> None:
    """Job ``j`` leaves its line."""
    p = w[j, WHERE]
    k = w[j, GROUP]
    leave_line(q0, q1, keys, p)
    if groups[k, G_HEAD] == p:
        groups[k, G_HEAD] = following(q0, q1, keys, p + 1, groups[k, G_TO], NEVER + 1, NEVER + 1, i64(0))


@njit_step
def first_of(
    w: Ints,
    order: Ints,
    groups: Ints,
    q0: Ints,
    q1: Ints,
    keys: Ints,
    a: int,
    b: int,
    stamp: int,
    soon: int,
    most: int,
) -> Number:
    """The first job in line of groups ``a .. b - 1`` that may be tried at this instant; -1: none.

    A group that failed only for jobs not past their minimum run time by the promise (`G_STATUS` 1) offers those that
    are: minimum at most ``soon``. Groups of more than ``most`` GPUs are passed over.
    """
    best = -1
    for k in range(a, b):
        p = groups[k, G_HEAD]
        if p < 0 or groups[k, G_GPUS] > most:
            continue
        if groups[k, G_STAMP] == stamp and groups[k, G_STATUS] > 0:
            if groups[k, G_STATUS] == 2:
                continue
            p = following(q0, q1, keys, p, groups[k, G_TO], soon, soon, i64(0))
            if p < 0:
                groups[k, G_STATUS] = 2
                continue
        j = order[p]
        if best < 0 or w[j, RANK] < w[best, RANK]:
            best = j
    return best


@njit_step
def close_groups(lines: Ints, groups: Ints, line: int, g: int, mask: int, stamp: int, status: int) -> None:
    """A job of ``line`` failed: those as large with the same mask need not be tried at this instant."""
    for k in range(lines[line, FROM], lines[line, MIDDLE]):
        if groups[k, G_MASK] == mask and groups[k, G_GPUS] >= g:
            if groups[k, G_STAMP] != stamp:
                groups[k, G_STAMP] = stamp
                groups[k, G_STATUS] = status
            else:
                groups[k, G_STATUS] = max(groups[k, G_STATUS], status)


@njit_step
def open_leaves(lines: Ints, tree: Ints) -> None:
    """Count, for every budget, the leaves below it with waiting allocated work (`OPEN`)."""
    for b in range(len(tree)):
        tree[b, OPEN] = 0
    for line in range(len(lines)):
        if lines[line, ASKS] > 0:
            tree[lines[line, BUDGET], OPEN] = 1
    for b in range(len(tree) - 1, 0, -1):
        tree[tree[b, PARENT], OPEN] += tree[b, OPEN]


@njit_step
def close_leaf(tree: Ints, b: int) -> None:
    """Leaf ``b`` has nothing left to try at this instant."""
    while b >= 0:
        tree[b, OPEN] -= 1
        b = tree[b, PARENT]


@njit_step
def next_leaf(tree: Ints, weights: Floats) -> Number:
    """The line whose turn it is: from the root the open child with the lowest number, ties in the tree's order."""
    b = i64(0)
    while tree[b, LEAF] < 0:
        best = -1
        child = tree[b, DOWN]
        while child >= 0:
            if tree[child, OPEN] > 0 and (best < 0 or weights[child, KEY] < weights[best, KEY]):
                best = child
            child = tree[child, BESIDE]
        b = best
    return tree[b, LEAF]


@njit_step
def measure(lines: Ints, points: Ints, tree: Ints, weights: Floats, t: int, window: int) -> None:
    """What every budget had over the window and holds protected from now on (`HAD`, GPU-seconds), and its number."""
    for b in range(len(tree)):
        tree[b, HAD] = 0
    for line in range(len(lines)):
        had = lines[line, TOTAL] + lines[line, SHIELD_SUM] - lines[line, SHIELDED] * t
        if t > window:
            tail = lines[line, TAIL]
            while points[tail, P_NEXT] >= 0 and points[points[tail, P_NEXT], P_TIME] <= t - window:
                tail = points[tail, P_NEXT]
            lines[line, TAIL] = tail
            had -= points[tail, P_TOTAL] + points[tail, P_RATE] * (t - window - points[tail, P_TIME])
        tree[lines[line, BUDGET], HAD] = had
    for b in range(len(tree) - 1, 0, -1):
        tree[tree[b, PARENT], HAD] += tree[b, HAD]
        weigh(tree, weights, b)


@njit_step
def charge(tree: Ints, weights: Floats, b: int, amount: int) -> Number:
    """Add what a start commits to the numbers of leaf ``b`` and above; 1 where somebody gains a claim by that."""
    gains = 0
    while b > 0:
        before = weights[b, KEY]
        tree[b, HAD] += amount
        weigh(tree, weights, b)
        parent = tree[b, PARENT]
        child = tree[parent, DOWN]
        while child >= 0:
            bar = weights[child, KEY] + weights[parent, GAP]
            if child != b and bar >= before and bar < weights[b, KEY]:
                gains = 1
            child = tree[child, BESIDE]
        b = parent
    return gains


@njit_step
def note_rates(lines: Ints, points: Ints, n_points: int, t: int) -> Number:
    """Note the teams whose allocated GPUs changed at ``t``; the new number of points."""
    for line in range(len(lines)):
        last = lines[line, LAST]
        if points[last, P_RATE] == lines[line, RATE]:
            continue
        if points[last, P_TIME] == t:
            points[last, P_RATE] = lines[line, RATE]
            continue
        points[n_points, P_TIME] = t
        points[n_points, P_TOTAL] = lines[line, TOTAL]
        points[n_points, P_RATE] = lines[line, RATE]
        points[n_points, P_NEXT] = -1
        points[last, P_NEXT] = n_points
        lines[line, LAST] = n_points
        n_points += 1
    return n_points


@njit_step
def change_weights(changed: Floats, c: int, lines: Ints, weights: Floats, shares: Floats) -> None:
    """From now on budgets have the weights, gaps and shares of change ``c``; their numbers follow in `measure`."""
    for b in range(len(weights)):
        weights[b, WEIGHT] = changed[c, b, N_WEIGHT]
        weights[b, GAP] = changed[c, b, N_GAP]
    for line in range(len(lines)):
        shares[line] = changed[c, lines[line, BUDGET], N_PART]


@njit_kernel
def run_contract(
    tiers: int,
    rules: Ints,
    state: Ints,
    submit: Ints,
    w: Ints,
    m: Ints,
    pools: Ints,
    seats: Ints,
    order: Ints,
    lines: Ints,
    groups: Ints,
    q0: Ints,
    q1: Ints,
    keys: Ints,
    tree: Ints,
    weights: Floats,
    shares: Floats,
    changes: Ints,
    changed: Floats,
    drains: Ints,
    fails: Ints,
    deferred: Ints,
    scratch: Ints,
    heap: Ints,
    log: Ints,
    places: Ints,
    shields: Ints,
    points: Ints,
) -> Number:
    """Simulate budgets with time slicing (``tiers`` 0) or priority tiers with preemption (1).

    Everything but ``tiers``, ``rules``, ``submit``, ``order``, ``changes`` and ``changed`` is overwritten.

    Parameters
    ----------
    tiers
        1: lines are work that did not opt out of preemption (0) and the teams' work that did (1 + team).
    rules : int64[6]
        As in `run_queue`; `WINDOW` seconds; `LARGE`: the first blocked job of more GPUs gets a reservation where
        no pool has nodes so large.
    state : int64[STATE_COLUMNS]
        Where the simulation is; all 0 at first.
    submit, w, m, pools, seats, drains, heap, log, places
        As in `run_queue`.
    order : int64[J]
        Jobs by line, kind (allocated first), GPUs, mask, then by their place in line.
    lines : int64[L, LINE_COLUMNS]
        `QUOTA` (of opted-out work), `BUDGET`, `FROM`, `MIDDLE` and `TO` (its groups: allocated, then unallocated);
        `LAST` and `TAIL` its first point.
    groups : int64[K, GROUP_COLUMNS]
        `G_FROM` .. `G_TO` (positions), `G_GPUS`, `G_MASK`, `G_HEAD` -1.
    q0, q1, keys
        Waiting positions; `KEY_A` the effective minimum run time.
    tree : int64[B, BUDGET_COLUMNS], weights : float64[B, 3]
        Links and `DEPTH`; `WEIGHT` among siblings as whole numbers, `GAP` of a parent: the hysteresis in GPU-seconds
        per weight of its children.
    shares : float64[L]
        Shares of the leaves, in any unit.
    changes : int64[C], changed : float64[C, B, CHANGE_COLUMNS]
        Instants, ascending, and what holds from then on (`change_weights`); none under tiers.
    fails : int64[2, C]
    deferred : int64[J + 1]
        Jobs that were interrupted at this instant.
    scratch : int64[G + 1, 2]
    shields : int64[., 2], points : int64[., 4]
        Ends of minimum run times; ``points`` begins with a row of 0 per line (`P_NEXT` -1).

    Returns
    -------
    int
        As `run_queue`; 2: the run was stopped, for work is interrupted again and again and none gets on.
    """
    n_jobs = len(submit)
    t = state[S_T]
    i = state[S_ARRIVED]
    n_heap = state[S_HEAP]
    n_log = state[S_LOG]
    n_places = state[S_PLACES]
    n_waiting = state[S_WAITING]
    resumes = state[S_PAUSED]
    n_shields = state[S_SHIELDS]
    n_points = state[S_POINTS]
    n_asking = state[S_ASKING]
    stamp = state[S_STAMP]
    marks = state[S_MARKS]
    drain_at = next_of_drains(drains)
    n_deferred = state[S_DEFERRED]
    vain = state[S_VAIN]
    n_changed = state[S_CHANGED]
    status = 0
    version = i64(0)  # counts starts and ends of allocated work
    begin_news(m, pools, lines, groups, state)
    fresh = 0  # work that is past its minimum at once has started: from the next instant on it may be taken
    while True:
        if not resumes:
            while n_heap > 0 and (w[heap[0, 1], ROW] < 0 or w[heap[0, 1], ENDING] != heap[0, 0]):
                n_heap = pop(heap, n_heap)
            while n_shields > 0:
                j = shields[0, 1]
                if w[j, ROW] >= 0 and w[j, IS_PAST] == 0 and w[j, PROTECTED_UNTIL] == shields[0, 0]:
                    break
                n_shields = pop(shields, n_shields)
            while i < n_jobs and w[i, MASK] == 0:
                i += 1
            instant = NEVER
            if i < n_jobs:
                instant = submit[i]
            if n_heap > 0:
                instant = min(instant, heap[0, 0])
            if n_shields > 0 and (n_waiting + n_deferred > 0 or len(drains) > 0):
                instant = min(instant, shields[0, 0])
            instant = min(instant, drain_at)
            if instant == NEVER and n_deferred > 0:
                instant = t + 1  # nothing else will happen that lets them start again
            if n_changed < len(changes) and n_waiting + n_deferred > 0:
                instant = min(instant, changes[n_changed])
            if instant >= rules[HORIZON]:
                if rules[HORIZON] < NEVER:
                    t = rules[HORIZON]
                break
            if instant > t:
                if fresh:
                    for x in range(len(m)):
                        m[x, CHEAP] = -1
                fresh = 0
                for k in range(n_deferred):
                    vain = vain + 1 if w[deferred[k], GAINED] == 0 else i64(0)
                    n_asking += ask(w, lines, groups, q0, q1, keys, deferred[k])
                    n_waiting += 1
                n_deferred = i64(0)
            if vain > 1000 + 10 * n_jobs:
                status = 2
                break
            t = instant
            for line in range(len(lines)):
                lines[line, TOTAL] += lines[line, RATE] * (t - lines[line, SINCE])
                lines[line, SINCE] = t

            while n_heap > 0 and heap[0, 0] <= t:
                j = heap[0, 1]
                stale = w[j, ROW] < 0 or w[j, ENDING] != heap[0, 0]
                n_heap = pop(heap, n_heap)
                if not stale:
                    release(m, pools, seats, w, lines, j)
                    finish(w, log, j, t)
                    vain = i64(0)
                    version += w[j, CHARGED]
            while n_shields > 0 and shields[0, 0] <= t:
                j = shields[0, 1]
                stale = w[j, ROW] < 0 or w[j, IS_PAST] == 1 or w[j, PROTECTED_UNTIL] != shields[0, 0]
                n_shields = pop(shields, n_shields)
                if not stale:
                    grow_old(m, w, lines, j)
                    lines[w[j, LINE], SHIELDED] -= w[j, GPUS]
                    lines[w[j, LINE], SHIELD_SUM] -= w[j, GPUS] * w[j, PROTECTED_UNTIL]
            if len(drains) > 0:
                version += 1
                end_repairs(m, pools, drains, t)
                begin_drains(m, pools, drains, t, rules[PATIENCE] if tiers else NEVER)
                for d in range(len(drains)):
                    if drains[d, D_STATE] != DRAINING:
                        continue
                    x = drains[d, D_NODE]
                    k = m[x, OFFSET]
                    while k < m[x, OFFSET] + m[x, COUNT]:
                        v = seats[k, WHO]
                        if w[v, CHARGED] == 0 or w[v, IS_PAST]:
                            n_deferred = evict(
                                m, pools, seats, w, lines, log, rules, deferred, n_deferred, v, t, PREEMPTED
                            )
                        elif tiers and drains[d, D_NEXT] <= t:
                            n_deferred = evict(
                                m, pools, seats, w, lines, log, rules, deferred, n_deferred, v, t, SHUT_DOWN
                            )
                        else:
                            k += 1
                begin_repairs(m, drains, t)
                drain_at = next_of_drains(drains)
            while n_changed < len(changes) and changes[n_changed] <= t:
                change_weights(changed, n_changed, lines, weights, shares)
                n_changed += 1
                vain = i64(0)
                version += 1
            while i < n_jobs and submit[i] <= t:
                if w[i, MASK] != 0:
                    n_asking += ask(w, lines, groups, q0, q1, keys, i)
                    n_waiting += 1
                    vain = i64(0)
                i += 1

        resumes = 0
        starts = min(n_waiting, len(seats))
        if (
            n_log + starts > len(log)
            or n_heap + starts > len(heap)
            or n_places + 4 * len(m) > len(places)
            or n_shields + starts > len(shields)
            or n_points + len(lines) > len(points)
        ):
            resumes = 1
            status = 1
            break

        if n_asking > 0:
            stamp += 1
            holder = -1
            promised = 0
            promise = NEVER + 1
            for x in range(len(m)):
                m[x, EXTRA] = NEVER
            if not tiers:
                measure(lines, points, tree, weights, t, rules[WINDOW])
                open_leaves(lines, tree)
            sum_up(m, pools, state)
            past = any_past(lines)
            reached = -1
            righted = -1
            any_right = i64(0)
            bits = i64(0)
            while n_asking > 0:
                j = -1
                if tiers:
                    for line in range(len(lines)):
                        c = first_of(
                            w,
                            order,
                            groups,
                            q0,
                            q1,
                            keys,
                            lines[line, FROM],
                            lines[line, MIDDLE],
                            stamp,
                            i64(0),
                            lines[line, QUOTA] - lines[line, RATE],
                        )
                        if c >= 0 and (j < 0 or w[c, RANK] < w[j, RANK]):
                            j = c
                    if j < 0:
                        break
                else:
                    if tree[0, OPEN] == 0:
                        break
                    line = next_leaf(tree, weights)
                    if righted != line:
                        righted = line
                        any_right = rights(lines, tree, weights, line)
                        bits = lines_in_reach(lines)
                    soon = promise - t if holder >= 0 else i64(NEVER)
                    reserved = state[R_NUMBER] if holder >= 0 else i64(-2)
                    hopes = not still_in_vain(lines, groups, m, state, line, bits, reserved, soon)
                    if not hopes and not promised:
                        large = first_large(w, order, lines, groups, m, pools, line, rules[LARGE])
                        if large >= 0:
                            when = promise_to(
                                lines, w, m, pools, seats, scratch, rules, state, large, t, version, bits
                            )
                            if when <= NEVER and lines[line, V_MINIMUM] > when - t:
                                # who is kept off for that stands no more in the way of smaller minima behind
                                hopes = True
                                for x in range(len(m)):
                                    m[x, EXTRA] = NEVER
                            else:
                                promised = 1
                                promise = when
                                if promise <= NEVER:
                                    holder = large
                                    reached = -1
                                    sum_up(m, pools, state)
                    j = -1
                    if hopes:
                        j = first_of(
                            w,
                            order,
                            groups,
                            q0,
                            q1,
                            keys,
                            lines[line, FROM],
                            lines[line, MIDDLE],
                            stamp,
                            promise - t,
                            NEVER,
                        )
                        if j < 0:
                            if lines[line, V_STAMP] != stamp:
                                lines[line, V_RESERVED] = -1
                                lines[line, V_MINIMUM] = 0
                            lines[line, V_STATE] = state[S_NEWS]
                            lines[line, V_RIGHTS] = bits
                    if j < 0:
                        close_leaf(tree, lines[line, BUDGET])
                        continue
                line = w[j, LINE]
                g = w[j, GPUS]
                guarded = 1 if holder >= 0 and j != holder and t + w[j, MINIMUM] > promise else 0
                if not tiers:
                    lines[line, V_STATE] = -1
                    if lines[line, V_STAMP] != stamp:
                        lines[line, V_STAMP] = stamp
                        lines[line, V_RESERVED] = -1
                        lines[line, V_MINIMUM] = 0
                    if guarded:
                        lines[line, V_RESERVED] = state[R_NUMBER]
                    else:
                        lines[line, V_MINIMUM] = max(lines[line, V_MINIMUM], w[j, MINIMUM])
                best = i64(BEST_CHEAP)
                full = i64(FULL_CHEAP)
                if tiers:
                    best = i64(BEST_ALL)
                    full = i64(FULL_ALL)
                elif past:
                    if righted != line:
                        righted = line
                        any_right = rights(lines, tree, weights, line)
                    own = may_take_own(w, lines, j)
                    most = any_right + lines[line, PAST_GPUS] if own else any_right
                    for p in range(len(pools) - 1):
                        most += pools[p, CHEAP_SUM]
                    if (any_right or own) and most >= g:
                        if reached != line:
                            reached = line
                            reach(lines, w, m, pools, seats, line)
                        best = i64(BEST_ALL) if own else i64(BEST_OTHERS)
                        full = i64(FULL_ALL) if own else i64(FULL_OTHERS)
                if guarded:
                    best += GUARDED
                    full += GUARDED
                before = n_deferred
                starts = 0
                if not hopeless(m, pools, g, w[j, MASK], best, full):
                    w[j, UNTIL] = declared_end(w, j, t)
                    starts = place(m, pools, seats, w, j, w[j, MASK], guarded, i64(1))
                    if not starts:
                        n = -1
                        for p in range(len(pools) - 1):
                            if n >= 0 or not (w[j, MASK] >> p) & 1:
                                continue
                            if g <= m[pools[p, FIRST], SIZE]:
                                n = take_node(
                                    tiers,
                                    lines,
                                    w,
                                    m,
                                    pools,
                                    seats,
                                    log,
                                    rules,
                                    deferred,
                                    n_deferred,
                                    j,
                                    p,
                                    guarded,
                                    t,
                                    marks,
                                )
                            else:
                                n = take_nodes(
                                    tiers,
                                    lines,
                                    w,
                                    m,
                                    pools,
                                    seats,
                                    log,
                                    rules,
                                    deferred,
                                    n_deferred,
                                    j,
                                    p,
                                    guarded,
                                    t,
                                    marks,
                                )
                            marks += 4 * len(m) * len(m) + 2
                        if n >= 0:
                            starts = 1
                            n_deferred = n
                if starts:
                    w[j, CHARGED] = 1
                    ending = open_stretch(w, j, t, n_log, log, i64(1))
                    w[j, ENDING] = ending
                    n_heap = push(heap, n_heap, ending, j)
                    if g > m[w[j, HOME], SIZE]:
                        n_places = log_gang(m, w, j, n_log, places, n_places)
                    lines[line, RATE] += g
                    w[j, PROTECTED_UNTIL] = t
                    w[j, IS_PAST] = 1
                    if tiers and w[j, OPTED]:
                        w[j, IS_PAST] = 0
                        w[j, PROTECTED_UNTIL] = 0
                        lines[line, SHIELDED] += g
                    elif not tiers and w[j, MINIMUM] > 0:
                        w[j, IS_PAST] = 0
                        w[j, PROTECTED_UNTIL] = t + w[j, MINIMUM]
                        log[n_log, PROTECTED] = t + w[j, MINIMUM]
                        lines[line, SHIELDED] += g
                        lines[line, SHIELD_SUM] += g * w[j, PROTECTED_UNTIL]
                        n_shields = push(shields, n_shields, w[j, PROTECTED_UNTIL], j)
                    version += 1
                    if guarded:
                        state[R_JOB] = -1
                    if w[j, IS_PAST]:
                        grow_old(m, w, lines, j)
                        fresh = 1
                    n_log += 1
                    served(w, groups, q0, q1, keys, j)
                    lines[line, ASKS] -= 1
                    n_asking -= 1
                    n_waiting -= 1
                    sum_up(m, pools, state)
                    past = any_past(lines)
                    reached = -1
                    righted = -1
                    anew = n_deferred > before
                    if not tiers:
                        if charge(tree, weights, lines[line, BUDGET], g * w[j, MINIMUM]):
                            anew = True
                        if j == holder:
                            anew = True
                            holder = -1
                            promise = NEVER + 1
                            for x in range(len(m)):
                                m[x, EXTRA] = NEVER
                            sum_up(m, pools, state)
                        if anew:
                            stamp += 1
                            open_leaves(lines, tree)
                        elif lines[line, ASKS] == 0:
                            close_leaf(tree, lines[line, BUDGET])
                else:
                    c = groups[w[j, GROUP], G_MASK]
                    if tiers:
                        for k in range(len(lines)):
                            close_groups(lines, groups, k, g, c, stamp, 2)
                    else:
                        close_groups(lines, groups, line, g, c, stamp, 1 if guarded else 2)
                        if not promised:
                            # the first that is blocked, tried or passed over, gets the reservation
                            large = first_large(w, order, lines, groups, m, pools, line, rules[LARGE])
                            after = first_of(
                                w,
                                order,
                                groups,
                                q0,
                                q1,
                                keys,
                                lines[line, FROM],
                                lines[line, MIDDLE],
                                stamp,
                                promise - t,
                                NEVER,
                            )
                            if large >= 0 and (after < 0 or w[large, RANK] < w[after, RANK]):
                                promised = 1
                                promise = promise_to(
                                    lines, w, m, pools, seats, scratch, rules, state, large, t, version, bits
                                )
                                if promise <= NEVER:
                                    holder = large
                                    reached = -1
                                    sum_up(m, pools, state)

        if not tiers and n_waiting > n_asking:
            spare = most_spare(pools)
            for c in range(fails.shape[1]):
                fails[0, c] = spare + 1
            while spare > 0:
                line = -1
                best = np.inf
                for k in range(len(lines)):
                    if waits_loose(lines, groups, fails, k):
                        key = lines[k, LOOSE_GPUS] / shares[k] if shares[k] > 0.0 else 1e300
                        if line < 0 or key < best:
                            line = k
                            best = key
                if line < 0:
                    break
                j = first_loose(w, order, lines, groups, fails, line)
                g = w[j, GPUS]
                w[j, UNTIL] = declared_end(w, j, t)
                if place(m, pools, seats, w, j, w[j, MASK], i64(0), i64(1)):
                    w[j, CHARGED] = 0
                    w[j, IS_PAST] = 0
                    w[j, PROTECTED_UNTIL] = t
                    ending = open_stretch(w, j, t, n_log, log, i64(0))
                    w[j, ENDING] = ending
                    n_heap = push(heap, n_heap, ending, j)
                    if g > m[w[j, HOME], SIZE]:
                        n_places = log_gang(m, w, j, n_log, places, n_places)
                    n_log += 1
                    shift(m, w, j, LOOSE, i64(1))
                    lines[line, LOOSE_GPUS] += g
                    served(w, groups, q0, q1, keys, j)
                    n_waiting -= 1
                    spare = most_spare(pools)
                    for c in range(fails.shape[1]):
                        fails[0, c] = min(fails[0, c], spare + 1)
                else:
                    c = groups[w[j, GROUP], G_MASK]
                    fails[0, c] = min(fails[0, c], g)

        if not tiers:
            n_points = note_rates(lines, points, n_points, t)
    state[S_T] = t
    state[S_ARRIVED] = i
    state[S_HEAP] = n_heap
    state[S_LOG] = n_log
    state[S_PLACES] = n_places
    state[S_WAITING] = n_waiting
    state[S_PAUSED] = resumes
    state[S_SHIELDS] = n_shields
    state[S_POINTS] = n_points
    state[S_ASKING] = n_asking
    state[S_STAMP] = stamp
    state[S_MARKS] = marks
    state[S_DEFERRED] = n_deferred
    state[S_VAIN] = vain
    state[S_CHANGED] = n_changed
    if status != 1:
        cut_off(w, log, n_log, t)
    return status


@njit_step
def first_large(
    w: Ints, order: Ints, lines: Ints, groups: Ints, m: Ints, pools: Ints, line: int, large: int
) -> Number:
    """The first allocated job in line that is larger than a node; -1: none."""
    best = -1
    for k in range(lines[line, FROM], lines[line, MIDDLE]):
        if groups[k, G_HEAD] >= 0:
            j = order[groups[k, G_HEAD]]
            if (best < 0 or w[j, RANK] < w[best, RANK]) and larger_than_a_node(
                m, pools, w[j, MASK], w[j, GPUS], large
            ):
                best = j
    return best


@njit_step
def larger_than_a_node(m: Ints, pools: Ints, mask: int, g: int, large: int) -> Number:
    """1 where ``g`` GPUs fit on one node of no pool of ``mask`` (or are more than ``large``)."""
    if g > large:
        return 1
    for p in range(len(pools) - 1):
        if (mask >> p) & 1 and g <= m[pools[p, FIRST], SIZE]:
            return 0
    return 1


@njit_step
def waits_loose(lines: Ints, groups: Ints, fails: Ints, line: int) -> Number:
    """1 where unallocated work of ``line`` waits that has not failed at this instant."""
    for k in range(lines[line, MIDDLE], lines[line, TO]):
        if groups[k, G_HEAD] >= 0 and groups[k, G_GPUS] < fails[0, groups[k, G_MASK]]:
            return 1
    return 0


@njit_step
def first_loose(w: Ints, order: Ints, lines: Ints, groups: Ints, fails: Ints, line: int) -> Number:
    """The first unallocated job of ``line`` that has not failed at this instant."""
    best = -1
    for k in range(lines[line, MIDDLE], lines[line, TO]):
        if groups[k, G_HEAD] >= 0 and groups[k, G_GPUS] < fails[0, groups[k, G_MASK]]:
            j = order[groups[k, G_HEAD]]
            if best < 0 or w[j, RANK] < w[best, RANK]:
                best = j
    return best


# ------------------------------------------------------------------ conservative


@njit_step
def cut_at(profile: Ints, base: int, n: int, t: int) -> Number:
    """A row of the profile begins at ``t``; the new number of rows."""
    k = base + n - 1
    while k >= base and profile[k, 0] > t:
        k -= 1
    if k < base or profile[k, 0] == t:
        return n
    for row in range(base + n, k + 1, -1):
        profile[row, 0] = profile[row - 1, 0]
        profile[row, 1] = profile[row - 1, 1]
    profile[k + 1, 0] = t
    profile[k + 1, 1] = profile[k, 1]
    return n + 1


@njit_step
def hold(profile: Ints, base: int, n: int, begin: int, end: int, g: int) -> Number:
    """Take ``g`` GPUs off the profile from ``begin`` to ``end``; the new number of rows."""
    n = cut_at(profile, base, n, begin)
    if end < NEVER:
        n = cut_at(profile, base, n, end)
    k = base
    while k < base + n and profile[k, 0] < end:
        if profile[k, 0] >= begin:
            profile[k, 1] -= g
        k += 1
    return n


@njit_step
def earliest(profile: Ints, base: int, n: int, g: int, length: int) -> Number:
    """The first instant from which ``g`` GPUs are free for ``length`` seconds; ``NEVER + 1``: none."""
    k = base
    while k < base + n:
        if profile[k, 1] >= g:
            begin = profile[k, 0]
            end = NEVER + 2 if length >= NEVER else begin + length
            at = k
            while at < base + n and profile[at, 0] < end and profile[at, 1] >= g:
                at += 1
            if at == base + n or profile[at, 0] >= end:
                return begin
            k = at
        k += 1
    return NEVER + 1


@njit_kernel
def run_conservative(
    rules: Ints,
    state: Ints,
    submit: Ints,
    w: Ints,
    m: Ints,
    pools: Ints,
    seats: Ints,
    q0: Ints,
    q1: Ints,
    keys: Ints,
    drains: Ints,
    plans: Ints,
    ends: Ints,
    profile: Ints,
    rows: Ints,
    heap: Ints,
    log: Ints,
    places: Ints,
) -> Number:
    """Simulate conservative backfill: each of the first `PROMISES` in line holds a reservation.

    Parameters
    ----------
    rules, state, submit, w, m, pools, seats, q0, q1, keys, drains, heap, log, places
        As in `run_queue`; the line is in order of arrival.
    plans : int64[J, 2]
        Planned start (-1: none) and pool; -1 at first.
    ends : int64[G, 2]
        Room for running jobs by declared end.
    profile : int64[P * M, 2]
        Room for ``M`` rows a pool: from when on how many GPUs are free.
    rows : int64[P]

    Returns
    -------
    int
        As `run_queue`.
    """
    n_jobs = len(submit)
    t = state[S_T]
    i = state[S_ARRIVED]
    n_heap = state[S_HEAP]
    n_log = state[S_LOG]
    n_places = state[S_PLACES]
    n_waiting = state[S_WAITING]
    resumes = state[S_PAUSED]
    n_ends = state[S_SHIELDS]
    early = state[S_ASKING]
    low = state[S_STAMP]
    high = state[S_MARKS]
    room = len(profile) // len(rows)
    drain_at = next_of_drains(drains)
    status = 0
    while True:
        if not resumes:
            while n_heap > 0 and (w[heap[0, 1], ROW] < 0 or w[heap[0, 1], ENDING] != heap[0, 0]):
                n_heap = pop(heap, n_heap)
            while i < n_jobs and w[i, MASK] == 0:
                i += 1
            instant = min(NEVER, drain_at)
            if i < n_jobs:
                instant = min(instant, submit[i])
            if n_heap > 0:
                instant = min(instant, heap[0, 0])
            j = following(q0, q1, keys, low, high, NEVER + 1, NEVER + 1, i64(0))
            low = high if j < 0 else j
            for _ in range(PROMISES):
                if j < 0:
                    break
                if plans[j, 0] > t:
                    instant = min(instant, plans[j, 0])
                j = following(q0, q1, keys, j + 1, high, NEVER + 1, NEVER + 1, i64(0))
            if instant >= rules[HORIZON]:
                if rules[HORIZON] < NEVER:
                    t = rules[HORIZON]
                break
            t = instant
            early = i64(0)
            while n_heap > 0 and heap[0, 0] <= t:
                j = heap[0, 1]
                stale = w[j, ROW] < 0 or w[j, ENDING] != heap[0, 0]
                n_heap = pop(heap, n_heap)
                if not stale:
                    free_places(m, pools, seats, w, j, i64(1))
                    finish(w, log, j, t)
                    n_ends = drop_end(ends, n_ends, j)
                    if t < w[j, UNTIL]:
                        early = i64(1)
            if len(drains) > 0:
                end_repairs(m, pools, drains, t)
                begin_drains(m, pools, drains, t, rules[PATIENCE])
                for d in range(len(drains)):
                    x = drains[d, D_NODE]
                    if drains[d, D_STATE] == DRAINING and drains[d, D_NEXT] <= t:
                        while m[x, COUNT] > 0:
                            j = seats[m[x, OFFSET], WHO]
                            free_places(m, pools, seats, w, j, i64(1))
                            interrupt(w, log, j, t, SHUT_DOWN, rules[CHECKPOINT], rules[RESTART])
                            n_ends = drop_end(ends, n_ends, j)
                            join(q0, q1, keys, j)
                            low = min(low, j)
                            plans[j, 0] = -1
                            n_waiting += 1
                begin_repairs(m, drains, t)
                drain_at = next_of_drains(drains)
                early = i64(1)
            while i < n_jobs and submit[i] <= t:
                if w[i, MASK] != 0:
                    join(q0, q1, keys, i)
                    high = i + 1
                    n_waiting += 1
                i += 1
        resumes = 0
        if n_waiting == 0:
            continue
        starts = min(n_waiting, len(seats))
        if n_log + starts > len(log) or n_heap + starts > len(heap) or n_places + 2 * len(m) > len(places):
            resumes = 1
            status = 1
            break
        # as long as somebody starts, others move up among those that are promised something
        started = 1
        while started and n_waiting > 0:
            started = 0
            # what running jobs and reservations leave
            for p in range(len(rows)):
                rows[p] = 1
                profile[p * room, 0] = t
                profile[p * room, 1] = pools[p, SPARE]
            for k in range(n_ends):
                j = ends[k, 1]
                if ends[k, 0] < NEVER:
                    p = m[w[j, HOME], POOL]
                    last = p * room + rows[p] - 1
                    free_then = profile[last, 1] + w[j, GPUS]
                    if profile[last, 0] < ends[k, 0]:
                        last += 1
                        rows[p] += 1
                        profile[last, 0] = ends[k, 0]
                    profile[last, 1] = free_then
            first = following(q0, q1, keys, low, high, NEVER + 1, NEVER + 1, i64(0))
            low = first
            j = first
            for _ in range(PROMISES):
                if j < 0:
                    break
                if 0 <= plans[j, 0] < t:
                    plans[j, 0] = -1  # its turn came, its nodes were not free
                if plans[j, 0] == t and time_left(w, j) == 0 and pools[plans[j, 1], SPARE] < w[j, GPUS]:
                    plans[j, 0] = -1  # work of no length holds nothing: others were planned over it
                if 0 <= plans[j, 0] <= NEVER:
                    p = plans[j, 1]
                    end = min(NEVER, plans[j, 0] + time_left(w, j))
                    rows[p] = hold(profile, p * room, rows[p], plans[j, 0], end, w[j, GPUS])
                j = following(q0, q1, keys, j + 1, high, NEVER + 1, NEVER + 1, i64(0))
            j = first
            for _ in range(PROMISES):
                if j < 0:
                    break
                planned = 0 <= plans[j, 0] <= NEVER
                if early or not planned:
                    length = time_left(w, j)
                    g = w[j, GPUS]
                    if planned:
                        p = plans[j, 1]
                        end = min(NEVER, plans[j, 0] + length)
                        rows[p] = hold(profile, p * room, rows[p], plans[j, 0], end, -g)
                    else:
                        plans[j, 0] = NEVER + 1
                    for p in range(len(rows)):  # a promise never moves back (work of no length holds nothing)
                        if (w[j, MASK] >> p) & 1:
                            begin = earliest(profile, p * room, rows[p], g, length)
                            if begin < plans[j, 0]:
                                plans[j, 0] = begin
                                plans[j, 1] = p
                    if plans[j, 0] <= NEVER:
                        p = plans[j, 1]
                        end = min(NEVER, plans[j, 0] + length)
                        rows[p] = hold(profile, p * room, rows[p], plans[j, 0], end, g)
                    else:
                        plans[j, 0] = -1
                j = following(q0, q1, keys, j + 1, high, NEVER + 1, NEVER + 1, i64(0))
            j = first
            for _ in range(PROMISES):
                if j < 0:
                    break
                after = following(q0, q1, keys, j + 1, high, NEVER + 1, NEVER + 1, i64(0))
                if plans[j, 0] == t and w[j, OUT] != t:
                    w[j, UNTIL] = declared_end(w, j, t)
                    if place(m, pools, seats, w, j, i64(1) << plans[j, 1], i64(0), i64(1)):
                        ending = open_stretch(w, j, t, n_log, log, i64(1))
                        w[j, ENDING] = ending
                        if w[j, GPUS] > m[w[j, HOME], SIZE]:
                            n_places = log_gang(m, w, j, n_log, places, n_places)
                        n_log += 1
                        n_heap = push(heap, n_heap, ending, j)
                        n_ends = add_end(ends, n_ends, j, w[j, UNTIL])
                        leave_line(q0, q1, keys, j)
                        n_waiting -= 1
                        started = 1
                j = after
            early = i64(0)
    state[S_T] = t
    state[S_ARRIVED] = i
    state[S_HEAP] = n_heap
    state[S_LOG] = n_log
    state[S_PLACES] = n_places
    state[S_WAITING] = n_waiting
    state[S_PAUSED] = resumes
    state[S_SHIELDS] = n_ends
    state[S_ASKING] = early
    state[S_STAMP] = low
    state[S_MARKS] = high
    if status == 0:
        cut_off(w, log, n_log, t)
    return status


@njit_step
def add_end(ends: Ints, n: int, j: int, until: int) -> Number:
    """Note the declared end of running job ``j``; the new number of rows."""
    k = n
    while k > 0 and ends[k - 1, 0] > until:
        ends[k, 0] = ends[k - 1, 0]
        ends[k, 1] = ends[k - 1, 1]
        k -= 1
    ends[k, 0] = until
    ends[k, 1] = j
    return n + 1


@njit_step
def drop_end(ends: Ints, n: int, j: int) -> Number:
    """Job ``j`` runs no more; the new number of rows."""
    k = 0
    while ends[k, 1] != j:
        k += 1
    for row in range(k, n - 1):
        ends[row, 0] = ends[row + 1, 0]
        ends[row, 1] = ends[row + 1, 1]
    return n - 1
