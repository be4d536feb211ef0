"""The kernel of `search`: ruin and recreate on one word of 64 GPUs.

A *window* is up to 64 GPUs, bit ``p`` of a word for the GPU in place ``p``; a larger cluster is
improved one window at a time, with everything else as it stands. Batch work is placed without
fixing the GPUs of real-time apps first: per step only a *room* is kept, the free GPUs less what
the apps' curves want, and the apps are then laid into what is free. Every state that is looked at
is therefore a complete, legal plan.

A move takes some jobs out (most often: all that start at or after some step within a band of
GPUs), puts all jobs without a place in again in a disturbed order of worth, lays the apps anew and
keeps the result by the Metropolis rule. Numbers are whole (worths) or come from a table
(logarithms): the same moves on every machine, compiled or not.

Shapes: ``T`` steps, ``J`` jobs that may move in the window, ``R`` apps, ``C`` block sizes ``2**c``.
The small functions on bits stand here once more because a compiled function is not compiled anew
when a file other than its own changes.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from gpuplan.jit import njit, njit_forced

Words = npt.NDArray[np.uint64]
Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

u64 = np.uint64
i64 = np.int64
NOTHING = u64(0)
ONE = u64(1)
ALL = u64(0xFFFFFFFFFFFFFFFF)

# columns of ``jobs``, ``options`` and ``apps``, as in `gpuplan.allocation.kernels`
SIZE, DURATION, EARLIEST, LATEST, PRIORITY, START, FIRST, OPTION, CHOICES = range(9)
O_SIZE, O_DURATION, O_PRIORITY, O_LATEST = range(4)
CAP, MINIMUM, MAXIMUM, LEFT, KNOWN, N_HELD, COST = range(7)
HOLDS, TAKES, LETS = range(3)
CURVE, HELD, LEAST = range(3)

# entries of ``state``
WORTH, BEST, DONE, IMPROVED = range(4)

# entries of ``tuning``, in parts of `PARTS` where nothing else is said. Kinds of a move, cumulative: one job
# is forced in (`improve`: below `FORCE_UNPLACED` one without a place); all jobs in a span of steps; all in a
# band, after a step; else a few jobs (`improve`, at most so many) or a share of all (`schedule`)
FORCE_UNPLACED, FORCE, SPAN, BAND, FEW, SHARE = range(6)
# most of the horizon that a span takes, most of the GPUs that it or a band takes (`improve`), least share of
# the jobs after the step (`schedule`), GPUs of the window (a number)
SPAN_LENGTH, BAND_HEIGHT, BAND_LEAST, GPUS = range(6, 10)
# how far the order of the queue is disturbed, either of the two; how often it is by size, or else by priority
# (cumulative)
LITTLE_DISORDER, MUCH_DISORDER, BY_SIZE = range(10, 13)
# demand that a move may take, cumulative: one or two GPUs of it, many; a forced job all of it, up to two GPUs
LITTLE_SLACK, MUCH_SLACK, OUTBID, OVERDRAW = range(13, 17)
# a feasible step is passed over; noise of the choice among blocks (eighths of a cell), what a cell costs there
# that is free just before and just after; apps change their order
BLINK, NOISE, BEFORE, AFTER, APP_ORDER = range(17, 22)
# jobs keep their starts and change places only: how often, disorder of the queue (a number), noise
KEEP, KEEP_DISORDER, KEEP_NOISE = range(22, 25)
# `schedule`: one of the jobs may leave apps short where it goes in: how often, of so many GPUs at most (a number)
BOLD, BOLD_MOST = range(25, 27)
# see `BY_SIZE`
BY_PRIORITY, ENTRIES = range(27, 29)

#: Jobs without a place that a move tries in vain before it leaves the others out.
TRIES = 16

#: Probabilities are counted in parts of this; so is the table of logarithms.
PARTS = 1024


# ------------------------------------------------------------------------------- chance, bits


@njit_forced
def draw(chance: Words) -> Any:
    """The next word of a xorshift generator (Marsaglia, 2003); ``chance`` [1] is overwritten."""
    x = chance[0]
    x ^= x << u64(13)
    x ^= x >> u64(7)
    x ^= x << u64(17)
    chance[0] = x
    return x


@njit_forced
def below(chance: Words, n: Any) -> Any:
    """A random whole number from 0 to ``n - 1``."""
    return i64((draw(chance) >> u64(33)) % u64(n))


@njit_forced
def lowest_bit(x: Any) -> Any:
    """Index of the lowest set bit of a word that is not zero."""
    p = i64(0)
    if x & u64(0xFFFFFFFF) == NOTHING:
        p += 32
        x >>= u64(32)
    if x & u64(0xFFFF) == NOTHING:
        p += 16
        x >>= u64(16)
    if x & u64(0xFF) == NOTHING:
        p += 8
        x >>= u64(8)
    if x & u64(0xF) == NOTHING:
        p += 4
        x >>= u64(4)
    if x & u64(3) == NOTHING:
        p += 2
        x >>= u64(2)
    if x & ONE == NOTHING:
        p += 1
    return p


@njit_forced
def highest(x: Any) -> Any:
    """The highest set bit of a word that is not zero, as a word."""
    x |= x >> ONE
    x |= x >> u64(2)
    x |= x >> u64(4)
    x |= x >> u64(8)
    x |= x >> u64(16)
    x |= x >> u64(32)
    return x ^ (x >> ONE)


@njit_forced
def count_bits(x: Any) -> Any:
    """Number of set bits of a word."""
    x = x - ((x >> ONE) & u64(0x5555555555555555))
    x = (x & u64(0x3333333333333333)) + ((x >> u64(2)) & u64(0x3333333333333333))
    x = (x + (x >> u64(4))) & u64(0x0F0F0F0F0F0F0F0F)
    x = x + (x >> u64(8))
    x = x + (x >> u64(16))
    x = x + (x >> u64(32))
    return i64(x & u64(0x7F))


@njit_forced
def block(first: Any, n: Any) -> Any:
    """The ``n`` GPUs from ``first`` on, as bits."""
    if n >= 64:
        return ALL
    return ((ONE << u64(n)) - ONE) << u64(first)


# ------------------------------------------------------------------------------ real-time apps


@njit_forced
def shortest(words: Any, k: Any, t: Any, free: Words) -> Any:
    """``k`` of the GPUs ``words``: those that stay free shortest after step ``t``."""
    T = free.size
    chosen = NOTHING
    e = t + 1
    while k > 0 and words != NOTHING:
        stay = words & free[e] if e < T else NOTHING
        end = words & ~stay
        n = count_bits(end)
        if n <= k:
            chosen |= end
            k -= n
        else:
            while k > 0:
                bit = end & (~end + ONE)
                chosen |= bit
                end ^= bit
                k -= 1
        words = stay
        e += 1
    return chosen


@njit_forced
def longest(words: Any, k: Any, t: Any, free: Words) -> Any:
    """``k`` of the GPUs ``words`` (at least ``k``): those that stay free longest after step ``t``."""
    T = free.size
    chosen = NOTHING
    e = t + 1
    while e < T:
        stay = words & free[e]
        n = count_bits(stay)
        if n < k:
            chosen = stay
            k -= n
            words ^= stay
            break
        words = stay
        e += 1
    while k > 0:
        bit = highest(words)
        chosen |= bit
        words ^= bit
        k -= 1
    return chosen


@njit
def lay(
    batch_free: Words,
    free: Words,
    order: Ints,
    want: Ints,
    floor: Ints,
    most: Ints,
    need: Ints,
    takes: Ints,
    lets: Ints,
    budget: Ints,
    apps: Ints,
    hold: Words,
) -> Any:
    """Lay the apps into ``batch_free`` [T], step by step; what their unmet demand costs, or -1.

    One app after the other. In every step it keeps what it can, lets go early where more GPUs end
    later than the cap lets go of then, acquires early where the curve or the GPUs that end ask for
    it, and never more than it can let go again in time: the caps hold by construction. -1 where an
    app has to let go, or misses, more than the rules allow. Overwrites ``free`` [T] and ``hold``
    [R, T + 1] (from entry 1 on). The other tables are int64[R, T]: GPUs wanted, held at least and
    at most, demanded, and what may be acquired and let go before each step.
    """
    R, T = want.shape
    for t in range(T):
        free[t] = batch_free[t]
    cost = i64(0)
    for i in range(R):
        r = order[i]
        h = hold[r, 0]
        left = budget[r]
        for t in range(T):
            before = h
            h &= free[t]
            n = count_bits(h)
            unbound = t == 0 and apps[r, KNOWN] == 0
            out = count_bits(before) - n
            may_let = i64(1) << 40 if unbound else lets[r, t]
            may_take = i64(1) << 40 if unbound else min(takes[r, t], left)
            if out > may_let:
                return i64(-1)
            target = want[r, t]
            early = i64(0)
            stay = h
            can_take, can_let = i64(0), i64(0)
            k = t + 1
            while k < T:
                stay &= free[k]
                lost = n - count_bits(stay)
                can_take += takes[r, k]
                can_let += lets[r, k]
                target = max(target, want[r, k] + lost - can_take)
                early = max(early, lost - can_let)
                if can_take >= n and can_let >= n:
                    break
                k += 1
            if early > 0:
                if early > may_let - out:
                    return i64(-1)
                h &= ~shortest(h, early, t, free)
                n -= early
                out += early
            target = min(target, most[r, t])
            if n > target:
                k = min(n - target, may_let - out)
                if k > 0:
                    h &= ~shortest(h, k, t, free)
                    n -= k
            elif n < target:
                open_ = free[t] & ~h
                if not unbound:
                    open_ &= ~before
                k = min(min(target - n, may_take), count_bits(open_))
                if k > 0:
                    more = longest(open_, k, t, free)
                    stay = h | more
                    can_let = i64(0)
                    excess = i64(0)
                    e = t + 1
                    while e < T:
                        stay &= free[e]
                        can_let += lets[r, e]
                        excess = max(excess, n + k - count_bits(stay) - can_let)
                        if can_let >= n + k:
                            break
                        e += 1
                    if excess > 0:
                        excess = min(excess, k)
                        more &= ~shortest(more, excess, t, free)
                        k -= excess
                    h |= more
                    n += k
                    if not unbound:
                        left -= k
            hold[r, t + 1] = h
            if n < floor[r, t]:
                return i64(-1)
            cost += apps[r, COST] * max(i64(0), need[r, t] - n)
        for t in range(T):
            free[t] &= ~hold[r, t + 1]
    return cost


# ---------------------------------------------------------------------------- batch-like work


@njit_forced
def worth_of(j: Any, s: Any, jobs: Ints, weight_sum: Ints) -> Any:
    """What job ``j`` earns from step ``s`` to its end or the end of the horizon."""
    e = min(weight_sum.size - 1, s + jobs[j, DURATION])
    return jobs[j, PRIORITY] * jobs[j, SIZE] * (weight_sum[e] - weight_sum[s])


@njit_forced
def choose(jobs: Ints, j: Any, options: Ints, k: Any) -> Any:
    """Job ``j`` takes the size of row ``k`` of ``options``."""
    jobs[j, SIZE] = options[k, O_SIZE]
    jobs[j, DURATION] = options[k, O_DURATION]
    jobs[j, PRIORITY] = options[k, O_PRIORITY]
    jobs[j, LATEST] = options[k, O_LATEST]


@njit_forced
def find(free: Words, room: Ints, n: Any, d: Any, first: Any, last: Any, fits: Any) -> Any:
    """Earliest step in ``first .. last`` with a free block of ``n`` for ``d`` steps, or -1.

    Also the possible first GPUs there and the GPUs free all the while. The steps are read from
    their end, and a dead end is jumped over.
    """
    T = free.size
    s = first
    blocks = NOTHING
    common = NOTHING
    while s <= last:
        blocks = fits
        common = ALL
        t = min(T, s + d) - 1
        while t >= s:
            if room[t] < n:
                break
            x = common & free[t]
            if x != common:
                common = x
                h = 1
                while h < n:
                    x &= x >> u64(h)
                    h *= 2
                blocks = x & fits
                if blocks == NOTHING:
                    break
            t -= 1
        if t < s:
            return s, blocks, common
        s = t + 1
    return i64(-1), blocks, common


@njit_forced
def snuggest(
    free: Words,
    blocks: Any,
    common: Any,
    start: Any,
    end: Any,
    n: Any,
    before: Any,
    after: Any,
    noise: Any,
    chance: Words,
) -> Any:
    """Of the possible first GPUs, the one whose block leaves the fewest free cells beside it.

    Only blocks that touch something busy are compared; up to ``noise`` eighths of a cell are random.
    """
    T = free.size
    ends = blocks & (~(common << ONE) | ~(common >> u64(n)))
    if ends == NOTHING:
        ends = blocks
    if ends & (ends - ONE) == NOTHING:
        return lowest_bit(ends)
    best = i64(-1)
    best_cost = i64(1) << 40
    while ends != NOTHING:
        p = lowest_bit(ends)
        ends &= ends - ONE
        cost = i64(0)
        sides = NOTHING
        if p > 0:
            sides |= ONE << u64(p - 1)
        if p + n < 64:
            sides |= ONE << u64(p + n)
        for t in range(start, end):
            x = free[t] & sides
            if x != NOTHING:
                cost += 8
                if x == sides and x & (x - ONE) != NOTHING:
                    cost += 8
        part = block(p, n)
        # cells taken from what was free before, or given back for what comes after, move apps about
        if start > 0:
            cost += before * count_bits(free[start - 1] & part)
        if end < T:
            cost += after * count_bits(free[end] & part)
        if p % n != 0:
            cost += 8
        if noise > 0:
            cost += below(chance, noise)
        if cost < best_cost:
            best_cost = cost
            best = p
    return best


@njit_forced
def put(j: Any, s: Any, p: Any, jobs: Ints, free: Words, room: Ints) -> Any:
    """Job ``j`` runs from step ``s`` on the block from GPU ``p``."""
    keep = ~block(p, jobs[j, SIZE])
    for t in range(s, min(free.size, s + jobs[j, DURATION])):
        free[t] &= keep
        room[t] -= jobs[j, SIZE]
    jobs[j, START] = s
    jobs[j, FIRST] = p


@njit_forced
def drop(j: Any, jobs: Ints, free: Words, room: Ints) -> Any:
    """Job ``j`` gives its cells back."""
    cells = block(jobs[j, FIRST], jobs[j, SIZE])
    for t in range(jobs[j, START], min(free.size, jobs[j, START] + jobs[j, DURATION])):
        free[t] |= cells
        room[t] += jobs[j, SIZE]
    jobs[j, START] = -1


@njit_forced
def eject(j: Any, jobs: Ints, free: Words, room: Ints, earns: Ints, value: Any, low: Any, high: Any) -> Any:
    """Take job ``j`` out; what the plan is worth without it, and the steps ``low .. high - 1`` widened by its own."""
    low = min(low, jobs[j, START])
    high = max(high, min(free.size, jobs[j, START] + jobs[j, DURATION]))
    drop(j, jobs, free, room)
    return value - earns[j], low, high


@njit_forced
def enqueue(j: Any, x: Any, key: Ints, queue: Ints, n: Any) -> Any:
    """Put job ``j`` into a queue of ``n`` sorted by key; its length then. Of equal keys the first stays first."""
    q = n
    while q > 0 and key[q - 1] > x:
        key[q] = key[q - 1]
        queue[q] = queue[q - 1]
        q -= 1
    key[q] = x
    queue[q] = j
    return n + 1


@njit_forced
def insert(
    j: Any,
    low: Any,
    high: Any,
    blink: Any,
    before: Any,
    after: Any,
    noise: Any,
    jobs: Ints,
    options: Ints,
    fits: Words,
    free: Words,
    room: Ints,
    weight_sum: Ints,
    chance: Words,
) -> Any:
    """Put job ``j`` at its earliest feasible step in ``low .. high``; what it earns there, 0 without a place.

    Of several sizes the one that earns most (now and then a random one). A feasible step is passed
    over with probability ``blink``.
    """
    first, last = jobs[j, OPTION], jobs[j, OPTION] + jobs[j, CHOICES] - 1
    if first < last and below(chance, 4) == 0:
        first = last = first + below(chance, jobs[j, CHOICES])
    most, size = i64(0), i64(-1)
    start, blocks, common = i64(-1), NOTHING, NOTHING
    for k in range(first, last + 1):
        n, d = options[k, O_SIZE], options[k, O_DURATION]
        c = i64(0)
        while (1 << c) < n:
            c += 1
        s = max(jobs[j, EARLIEST], low - d + 1)
        end = min(high, options[k, O_LATEST])
        if options[k, O_LATEST] < 0 or fits[c] == NOTHING:
            continue
        while True:
            s, found, shared = find(free, room, n, d, s, end, fits[c])
            if s < 0 or blink == 0 or below(chance, PARTS) >= blink:
                break
            s += 1
        if s < 0:
            continue
        e = min(free.size, s + d)
        worth = options[k, O_PRIORITY] * n * (weight_sum[e] - weight_sum[s])
        if worth > most:
            most, size, start, blocks, common = worth, k, s, found, shared
    if size < 0:
        return i64(0)
    if jobs[j, CHOICES] > 1:
        choose(jobs, j, options, size)
    e = min(free.size, start + jobs[j, DURATION])
    put(
        j,
        start,
        snuggest(free, blocks, common, start, e, jobs[j, SIZE], before, after, noise, chance),
        jobs,
        free,
        room,
    )
    return most


# ---------------------------------------------------------------------------------- the search


@njit
def improve(
    moves: Any,
    heat: Any,
    cooling: Any,
    tuning: Ints,
    logs: Floats,
    chance: Words,
    state: Ints,
    jobs: Ints,
    options: Ints,
    rank: Ints,
    fits: Words,
    base: Words,
    weight_sum: Ints,
    order: Ints,
    want: Ints,
    floor: Ints,
    most: Ints,
    need: Ints,
    takes: Ints,
    lets: Ints,
    budget: Ints,
    apps: Ints,
    hold: Words,
    best_jobs: Ints,
    best_hold: Words,
) -> Any:
    """Make moves from the plan of ``jobs``, and keep the best plan seen.

    Parameters
    ----------
    moves : int
    heat, cooling : float
        Temperature before the first move (in units of worth), its factor from move to move.
    tuning : int64[ENTRIES]
        How often what is done.
    logs : float64[PARTS]
        Negative logarithms of evenly spread shares of 1.
    chance : uint64[1]
        State of the random numbers, not 0 (overwritten).
    state : int64[4]
        `WORTH` of the current and `BEST` of the best plan, moves `DONE`, times `IMPROVED`
        (overwritten). `BEST` -1 << 62: ``best_jobs`` and ``best_hold`` hold nothing yet.
    jobs : int64[J, 9]
        Jobs that may move, `FIRST` in the window; the current plan (overwritten).
    options : int64[N, 4]
    rank : int64[3, J]
        Orders in which jobs go in, as ranks: by worth, by size, by priority.
    fits : uint64[C]
        First GPUs of blocks of ``2**c`` in the window.
    base : uint64[T]
        GPUs of the window that nobody else has.
    weight_sum : int64[T + 1]
    order : int64[R]
        Apps in the order in which they are laid (overwritten).
    want, floor, most, need, takes, lets : int64[R, T]
        See `lay`; all of the window alone.
    budget : int64[R]
        Swaps left for the window.
    apps : int64[R, 7]
    hold : uint64[R, T + 1]
        GPUs held in the window, entry 0 before step 0 (the rest is overwritten).
    best_jobs, best_hold
        The best plan (overwritten).
    """
    T, J, R = base.size, jobs.shape[0], want.shape[0]
    free, trial_free, app_free = np.empty(T, np.uint64), np.empty(T, np.uint64), np.empty(T, np.uint64)
    room, usable, begin = np.empty(T, np.int64), np.empty(T, np.int64), np.empty(T, np.int64)
    wanted, needed = np.zeros(T, np.int64), np.zeros(T, np.int64)
    kept = jobs.copy()
    earns = np.zeros(J, np.int64)
    touched, queue = np.empty(J, np.int64), np.empty(J, np.int64)
    marked = np.full(J, -1, np.int64)
    key = np.empty(J, np.int64)
    cheapest = i64(1) << 60
    for r in range(R):
        cheapest = min(cheapest, apps[r, COST])
        for t in range(T):
            wanted[t] += want[r, t]
            needed[t] += need[r, t]
    for t in range(T):
        free[t] = base[t]
        room[t] = count_bits(base[t]) - wanted[t]
    worth = i64(0)
    n_placed = 0
    for j in range(J):
        if jobs[j, START] >= 0:
            put(j, jobs[j, START], jobs[j, FIRST], jobs, free, room)
            earns[j] = worth_of(j, jobs[j, START], jobs, weight_sum)
            worth += earns[j]
            n_placed += 1
    cost = i64(0)
    if R > 0:
        cost = lay(free, app_free, order, want, floor, most, need, takes, lets, budget, apps, hold)
    if cost < 0:
        # the plan to start from lays its apps otherwise: whatever is found must be better
        cost = worth - state[WORTH]
    elif worth - cost > state[BEST]:
        state[BEST] = worth - cost
        for i in range(J):
            for k in range(FIRST + 1):
                best_jobs[i, k] = jobs[i, k]
        for r in range(R):
            for t in range(T + 1):
                best_hold[r, t] = hold[r, t]
    state[WORTH] = worth - cost
    temperature = heat
    for move in range(moves):
        temperature *= cooling
        threshold = float(state[WORTH]) - temperature * logs[below(chance, PARTS)]
        value = worth
        n_touched = 0
        low: Any = T
        high: Any = i64(0)
        slack = i64(0)
        if R > 0:
            dice = below(chance, PARTS)
            if dice < tuning[LITTLE_SLACK]:
                slack = 1 + below(chance, 2)
            elif dice < tuning[MUCH_SLACK]:
                slack = 1 + below(chance, 64)
        for t in range(T):
            trial_free[t] = free[t]
            begin[t] = max(room[t], i64(0)) + slack
            usable[t] = begin[t]
        # -------------------------------------------------------------- ruin
        dice = below(chance, PARTS)
        forced = i64(-1)
        if dice < tuning[FORCE]:
            j = below(chance, J)
            if dice < tuning[FORCE_UNPLACED]:
                for _ in range(6):
                    if jobs[j, START] < 0:
                        break
                    j = below(chance, J)
            size = jobs[j, OPTION]
            if jobs[j, CHOICES] > 1:
                size += below(chance, jobs[j, CHOICES])
            n, d = options[size, O_SIZE], options[size, O_DURATION]
            last = options[size, O_LATEST]
            if jobs[j, START] >= 0 and jobs[j, CHOICES] == 1:
                last = min(last, jobs[j, START])
            if last < jobs[j, EARLIEST]:
                continue
            s = jobs[j, EARLIEST] + below(chance, last - jobs[j, EARLIEST] + 1)
            e = min(T, s + d)
            c = i64(0)
            while (1 << c) < n:
                c += 1
            common = ALL
            for t in range(s, e):
                common &= base[t]
            h = 1
            while h < n:
                common &= common >> u64(h)
                h *= 2
            common &= fits[c]
            if common == NOTHING:
                continue
            p = below(chance, 64)
            if below(chance, 2) == 1:
                p = p // n * n
            rest = common >> u64(p)
            p = lowest_bit(common) if rest == NOTHING else p + lowest_bit(rest)
            if jobs[j, START] == s and jobs[j, FIRST] == p and jobs[j, SIZE] == n:
                continue
            if jobs[j, START] >= 0:
                value, low, high = eject(j, jobs, trial_free, usable, earns, value, low, high)
            touched[0] = j
            marked[j] = move
            n_touched = 1
            for i in range(J):
                if (
                    jobs[i, START] >= 0
                    and jobs[i, START] < e
                    and jobs[i, START] + jobs[i, DURATION] > s
                    and jobs[i, FIRST] < p + n
                    and jobs[i, FIRST] + jobs[i, SIZE] > p
                ):
                    value, low, high = eject(i, jobs, trial_free, usable, earns, value, low, high)
                    touched[n_touched] = i
                    marked[i] = move
                    n_touched += 1
            if jobs[j, CHOICES] > 1:
                choose(jobs, j, options, size)
            put(j, s, p, jobs, trial_free, usable)
            low, high = min(low, s), max(high, e)
            forced = j
            value += worth_of(j, s, jobs, weight_sum)
            tolerance = i64(0)
            dice = below(chance, PARTS)
            if dice < tuning[OUTBID]:
                tolerance = i64(64)
            elif dice < tuning[OVERDRAW]:
                tolerance = below(chance, 3)
            for t in range(s, e):
                tries = 0
                while usable[t] < -tolerance and tries < 40:
                    tries += 1
                    i = below(chance, J)
                    if (
                        i != j
                        and jobs[i, START] >= 0
                        and jobs[i, START] <= t < jobs[i, START] + jobs[i, DURATION]
                    ):
                        value, low, high = eject(i, jobs, trial_free, usable, earns, value, low, high)
                        touched[n_touched] = i
                        marked[i] = move
                        n_touched += 1
        elif dice < tuning[BAND]:
            j = below(chance, J)
            if jobs[j, START] < 0:
                a, p = below(chance, T), below(chance, 64)
            else:
                a, p = jobs[j, START], jobs[j, FIRST]
            suffix = dice >= tuning[SPAN]
            b = i64(T) if suffix else a + 1 + below(chance, max(2, T * tuning[SPAN_LENGTH] // PARTS))
            width = 1 + below(chance, max(2, tuning[GPUS] * tuning[BAND_HEIGHT] // PARTS))
            bottom = p - below(chance, width + 1)
            top = bottom + width + jobs[j, SIZE]
            for i in range(J):
                if (
                    jobs[i, START] >= 0
                    and jobs[i, START] < b
                    and (jobs[i, START] >= a or (not suffix and jobs[i, START] + jobs[i, DURATION] > a))
                    and jobs[i, FIRST] < top
                    and jobs[i, FIRST] + jobs[i, SIZE] > bottom
                ):
                    touched[n_touched] = i
                    n_touched += 1
        else:
            for _ in range(1 + below(chance, tuning[FEW])):
                i = below(chance, J)
                if jobs[i, START] >= 0 and marked[i] != move:
                    marked[i] = move
                    touched[n_touched] = i
                    n_touched += 1
        if forced < 0:
            if n_touched == 0:
                continue
            for q in range(n_touched):
                i = touched[q]
                marked[i] = move
                value, low, high = eject(i, jobs, trial_free, usable, earns, value, low, high)
        # ---------------------------------------------------------- recreate
        scatter = J * tuning[LITTLE_DISORDER + below(chance, 2)] // PARTS
        dice = below(chance, PARTS)
        which = 0
        if dice < tuning[BY_PRIORITY]:
            which = 1 if dice < tuning[BY_SIZE] else 2
        # jobs keep their starts and only change places, or go in again wherever they earn most
        keeps = forced < 0 and below(chance, PARTS) < tuning[KEEP]
        n_queue = 0
        for i in range(J):
            if jobs[i, START] < 0:
                x = rank[which, i] * 256
                if keeps:
                    x += i64(1) << 40
                    if marked[i] == move:
                        x = (
                            (kept[i, START] << 20)
                            - (jobs[i, SIZE] << 10)
                            + below(chance, tuning[KEEP_DISORDER])
                        )
                elif scatter > 0:
                    x += below(chance, scatter * 256)
                n_queue = enqueue(i, x, key, queue, n_queue)
        first_step = low
        patience = TRIES
        for q in range(n_queue):
            i = queue[q]
            if marked[i] != move and patience == 0:
                continue
            if keeps and marked[i] == move:
                s = kept[i, START]
                gain = insert(
                    i,
                    s + jobs[i, DURATION] - 1,
                    s,
                    i64(0),
                    tuning[BEFORE],
                    tuning[AFTER],
                    tuning[KEEP_NOISE],
                    jobs,
                    options,
                    fits,
                    trial_free,
                    usable,
                    weight_sum,
                    chance,
                )
                if gain > 0:
                    value += gain
                    continue
            # a job that had no place before can only gain one where something was freed
            until = i64(T) if marked[i] == move or slack > 0 else high - 1
            gain = insert(
                i,
                first_step,
                until,
                tuning[BLINK],
                tuning[BEFORE],
                tuning[AFTER],
                tuning[NOISE],
                jobs,
                options,
                fits,
                trial_free,
                usable,
                weight_sum,
                chance,
            )
            if gain > 0:
                value += gain
                if marked[i] != move:
                    marked[i] = move
                    touched[n_touched] = i
                    n_touched += 1
            elif marked[i] != move:
                patience -= 1
        # ------------------------------------------------------------- judge
        accepted = float(value) >= threshold
        if accepted and R > 0:
            unmet = i64(0)
            for t in range(T):
                # cells free of batch work are what `usable` says more or less than before
                cells = room[t] + wanted[t] + usable[t] - begin[t]
                unmet += max(i64(0), needed[t] - cells)
            accepted = float(value - cheapest * unmet) >= threshold
            if accepted:
                swap_a, swap_b = i64(0), i64(0)
                if R > 1 and below(chance, PARTS) < tuning[APP_ORDER]:
                    swap_a, swap_b = below(chance, R), below(chance, R)
                    order[swap_a], order[swap_b] = order[swap_b], order[swap_a]
                new_cost = lay(
                    trial_free, app_free, order, want, floor, most, need, takes, lets, budget, apps, hold
                )
                accepted = new_cost >= 0 and float(value - new_cost) >= threshold
                if accepted:
                    cost = new_cost
                else:
                    order[swap_a], order[swap_b] = order[swap_b], order[swap_a]
        if accepted:
            worth = value
            state[WORTH] = worth - cost
            for t in range(T):
                free[t] = trial_free[t]
                room[t] += usable[t] - begin[t]
            for q in range(n_touched):
                i = touched[q]
                for k in range(FIRST + 1):
                    kept[i, k] = jobs[i, k]
                earns[i] = worth_of(i, jobs[i, START], jobs, weight_sum) if jobs[i, START] >= 0 else i64(0)
            if state[WORTH] > state[BEST]:
                state[BEST] = state[WORTH]
                state[IMPROVED] += 1
                for i in range(J):
                    for k in range(FIRST + 1):
                        best_jobs[i, k] = jobs[i, k]
                for r in range(R):
                    for t in range(T + 1):
                        best_hold[r, t] = hold[r, t]
        else:
            for q in range(n_touched):
                i = touched[q]
                for k in range(FIRST + 1):
                    jobs[i, k] = kept[i, k]
    state[DONE] += moves


# ------------------------------------------------------------------------- when, before where


@njit
def level_cost(cells: Ints, targets: Ints, order: Ints, demand: Ints, apps: Ints, level: Ints) -> Any:
    """What unmet demand costs where apps may hold ``cells`` [T] GPUs and keep their caps, or -1.

    One app after the other, each as close to its curve as cells and cap allow. -1 where an app
    would hold less than it must. ``cells`` and ``level`` int64[R, T] are overwritten.
    """
    R, T = demand.shape
    cost = i64(0)
    for i in range(R):
        r = order[i]
        cap = apps[r, CAP]
        for t in range(T):
            level[r, t] = min(targets[CURVE, r, t], max(i64(0), cells[t]))
        for t in range(1, T):
            level[r, t] = min(level[r, t], level[r, t - 1] + cap)
        for t in range(T - 2, -1, -1):
            level[r, t] = min(level[r, t], level[r, t + 1] + cap)
        unmet = i64(0)
        for t in range(T):
            if level[r, t] < targets[HELD, r, t] or level[r, t] < targets[LEAST, r, t]:
                return i64(-1)
            unmet += max(i64(0), demand[r, t] - level[r, t])
            cells[t] -= level[r, t]
        cost += unmet * apps[r, COST]
    return cost


@njit_forced
def give(j: Any, jobs: Ints, room: Ints, classes: Ints, class_room: Ints, sign: Any) -> Any:
    """Add (``sign`` 1) or take (-1) the GPUs of job ``j``, from its `START`, to or from all rooms."""
    n = jobs[j, SIZE] * sign
    end = min(room.size, jobs[j, START] + jobs[j, DURATION])
    for t in range(jobs[j, START], end):
        room[t] += n
    for z in range(classes.size):
        if jobs[j, SIZE] >= classes[z]:
            for t in range(jobs[j, START], end):
                class_room[z, t] += n


@njit_forced
def withdraw(
    j: Any,
    jobs: Ints,
    room: Ints,
    classes: Ints,
    class_room: Ints,
    earns: Ints,
    value: Any,
    low: Any,
    high: Any,
) -> Any:
    """Take job ``j`` out; what the starts are worth then, and the steps ``low .. high - 1`` widened by its own."""
    low = min(low, jobs[j, START])
    high = max(high, min(room.size, jobs[j, START] + jobs[j, DURATION]))
    give(j, jobs, room, classes, class_room, 1)
    jobs[j, START] = -1
    return value - earns[j], low, high


@njit_forced
def earliest(
    s: Any,
    last: Any,
    n: Any,
    d: Any,
    blink: Any,
    overdraw: Any,
    room: Ints,
    classes: Ints,
    class_room: Ints,
    chance: Words,
) -> Any:
    """Earliest step in ``s .. last`` with room for ``n`` GPUs, less ``overdraw``, for ``d`` steps, or -1."""
    T = room.size
    while s <= last:
        t = min(T, s + d) - 1
        while t >= s and room[t] >= n - overdraw:
            t -= 1
        if t < s:
            for z in range(classes.size):
                if n >= classes[z]:
                    step = min(T, s + d) - 1
                    while step >= s and class_room[z, step] >= n:
                        step -= 1
                    t = max(t, step)
        if t < s:
            if blink > 0 and below(chance, PARTS) < blink:
                s += 1
                continue
            return s
        s = t + 1
    return i64(-1)


@njit
def schedule(
    moves: Any,
    heat: Any,
    cooling: Any,
    tuning: Ints,
    logs: Floats,
    chance: Words,
    state: Ints,
    jobs: Ints,
    options: Ints,
    rank: Ints,
    cells: Ints,
    classes: Ints,
    class_cells: Ints,
    weight_sum: Ints,
    targets: Ints,
    order: Ints,
    demand: Ints,
    apps: Ints,
    best_jobs: Ints,
) -> Any:
    """Ruin and recreate on starts alone: how many GPUs are free in a step counts, not which.

    Parameters are those of `improve`, and

    Parameters
    ----------
    tuning : int64[ENTRIES]
        How often what is done.
    cells : int64[T]
        GPUs that jobs and apps may share.
    classes, class_cells : int64[Z], int64[Z, T]
        Sizes from which on blocks find fewer GPUs than there are, and the GPUs that such blocks can cover.
    best_jobs : int64[J, 9]
        The best starts and sizes (overwritten). ``state`` has their worth, which no plan with
        these starts exceeds.
    """
    T, J, R, Z = cells.size, jobs.shape[0], demand.shape[0], classes.size
    room, usable, begin = np.empty(T, np.int64), np.empty(T, np.int64), np.empty(T, np.int64)
    wanted, needed = np.zeros(T, np.int64), np.zeros(T, np.int64)
    spare, level = np.empty(T, np.int64), np.empty((R, T), np.int64)
    class_room, class_kept = class_cells.copy(), class_cells.copy()
    kept = jobs.copy()
    earns = np.zeros(J, np.int64)
    key, queue = np.empty(J, np.int64), np.empty(J, np.int64)
    removed = np.full(J, -1, np.int64)
    cheapest = i64(1) << 60
    for r in range(R):
        cheapest = min(cheapest, apps[r, COST])
        for t in range(T):
            wanted[t] += targets[CURVE, r, t]
            needed[t] += demand[r, t]
    short = False
    for t in range(T):
        room[t] = cells[t] - wanted[t]
    worth = i64(0)
    for j in range(J):
        if jobs[j, START] >= 0:
            give(j, jobs, room, classes, class_room, -1)
            earns[j] = worth_of(j, jobs[j, START], jobs, weight_sum)
            worth += earns[j]
    for z in range(Z):
        for t in range(T):
            class_kept[z, t] = class_room[z, t]
    for t in range(T):
        spare[t] = wanted[t] + room[t]
        short |= room[t] < 0
    cost = i64(0)
    if short:
        cost = level_cost(spare, targets, order, demand, apps, level)
        if cost < 0:
            cost = worth - state[WORTH]
    state[WORTH] = worth - cost
    if state[WORTH] > state[BEST]:
        state[BEST] = state[WORTH]
        for i in range(J):
            for k in range(FIRST):
                best_jobs[i, k] = jobs[i, k]
    temperature = heat
    for move in range(moves):
        temperature *= cooling
        threshold = float(state[WORTH]) - temperature * logs[below(chance, PARTS)]
        slack = i64(0)
        if R > 0:
            dice = below(chance, PARTS)
            if dice < tuning[LITTLE_SLACK]:
                slack = 1 + below(chance, 2)
            elif dice < tuning[MUCH_SLACK]:
                slack = 1 + below(chance, 16)
        for t in range(T):
            begin[t] = max(i64(0), room[t]) + slack
            usable[t] = begin[t]
        value = worth
        low: Any = i64(T)
        high: Any = i64(0)
        n_removed = 0
        legal = True
        dice = below(chance, PARTS)
        if dice < tuning[FORCE]:
            j = below(chance, J)
            for _ in range(6):
                if jobs[j, START] < 0:
                    break
                j = below(chance, J)
            size = jobs[j, OPTION]
            if jobs[j, CHOICES] > 1:
                size += below(chance, jobs[j, CHOICES])
            last = options[size, O_LATEST]
            if jobs[j, START] >= 0 and jobs[j, CHOICES] == 1:
                last = min(last, jobs[j, START])
            if last < jobs[j, EARLIEST]:
                continue
            s = jobs[j, EARLIEST] + below(chance, last - jobs[j, EARLIEST] + 1)
            if s == jobs[j, START] and options[size, O_SIZE] == jobs[j, SIZE]:
                continue
            if jobs[j, START] >= 0:
                value, low, high = withdraw(j, jobs, usable, classes, class_room, earns, value, low, high)
            removed[j] = move
            n_removed += 1
            choose(jobs, j, options, size)
            jobs[j, START] = s
            e = min(T, s + jobs[j, DURATION])
            low, high = min(low, s), max(high, e)
            give(j, jobs, usable, classes, class_room, -1)
            value += worth_of(j, s, jobs, weight_sum)
            tolerance = i64(0)
            dice = below(chance, PARTS)
            if R > 0 and dice < tuning[OUTBID]:
                tolerance = 64
            elif R > 0 and dice < tuning[OVERDRAW]:
                tolerance = below(chance, 3)
            for t in range(s, e):
                tries = 0
                while tries < 60:
                    full = usable[t] < -tolerance
                    tight = False
                    for z in range(Z):
                        tight |= class_room[z, t] < 0
                    if not full and not tight:
                        break
                    tries += 1
                    i = below(chance, J)
                    if (
                        i != j
                        and jobs[i, START] >= 0
                        and jobs[i, START] <= t < jobs[i, START] + jobs[i, DURATION]
                    ):
                        value, low, high = withdraw(
                            i, jobs, usable, classes, class_room, earns, value, low, high
                        )
                        removed[i] = move
                for z in range(Z):
                    legal = legal and class_room[z, t] >= 0
        else:
            a, b, share = i64(0), i64(T), i64(tuning[SHARE])
            if dice < tuning[SPAN]:
                a = below(chance, T)
                b = a + 1 + below(chance, max(2, T * tuning[SPAN_LENGTH] // PARTS))
                share = i64(PARTS)
            elif dice < tuning[BAND]:
                a = max(i64(0), jobs[below(chance, J), START])
                share = tuning[BAND_LEAST] + below(chance, PARTS - tuning[BAND_LEAST])
            for i in range(J):
                s = jobs[i, START]
                if s < 0 or s >= b or (s < a and (b == T or s + jobs[i, DURATION] <= a)):
                    continue
                if below(chance, PARTS) < share:
                    value, low, high = withdraw(i, jobs, usable, classes, class_room, earns, value, low, high)
                    removed[i] = move
                    n_removed += 1
            if n_removed == 0:
                continue
        scatter = J * tuning[LITTLE_DISORDER + below(chance, 2)] // PARTS
        dice = below(chance, PARTS)
        which = 0
        if dice < tuning[BY_PRIORITY]:
            which = 1 if dice < tuning[BY_SIZE] else 2
        n_queue = 0
        for i in range(J):
            if jobs[i, START] < 0:
                x = rank[which, i] * 256
                if scatter > 0:
                    x += below(chance, scatter * 256)
                n_queue = enqueue(i, x, key, queue, n_queue)
        patience = TRIES
        bold, most_overdrawn = i64(-1), i64(0)
        if R > 0 and n_queue > 0 and below(chance, PARTS) < tuning[BOLD]:
            bold = queue[below(chance, n_queue)]
            most_overdrawn = 1 + below(chance, tuning[BOLD_MOST])
        for q in range(n_queue):
            i = queue[q]
            if removed[i] != move and patience == 0:
                continue
            overdraw = most_overdrawn if i == bold else i64(0)
            until = i64(T) if removed[i] == move or slack > 0 or overdraw > 0 else high - 1
            first, after = jobs[i, OPTION], jobs[i, OPTION] + jobs[i, CHOICES]
            if after - first > 1 and below(chance, 4) == 0:
                first += below(chance, jobs[i, CHOICES])
                after = first + 1
            most, size, start = i64(0), i64(-1), i64(-1)
            for k in range(first, after):
                n, d = options[k, O_SIZE], options[k, O_DURATION]
                s = earliest(
                    max(jobs[i, EARLIEST], low - d + 1),
                    min(options[k, O_LATEST], until),
                    n,
                    d,
                    tuning[BLINK],
                    overdraw,
                    usable,
                    classes,
                    class_room,
                    chance,
                )
                if s >= 0:
                    gain = options[k, O_PRIORITY] * n * (weight_sum[min(T, s + d)] - weight_sum[s])
                    if gain > most:
                        most, size, start = gain, k, s
            if size >= 0:
                if jobs[i, CHOICES] > 1:
                    choose(jobs, i, options, size)
                jobs[i, START] = start
                give(i, jobs, usable, classes, class_room, -1)
                value += most
            elif removed[i] != move:
                patience -= 1
        accepted = legal and float(value) >= threshold
        new_cost = i64(0)
        if accepted and R > 0:
            short = False
            unmet = i64(0)
            for t in range(T):
                now = room[t] + usable[t] - begin[t]
                spare[t] = wanted[t] + now
                short |= now < 0
                unmet += max(i64(0), needed[t] - spare[t])
            accepted = float(value - cheapest * unmet) >= threshold
            if accepted and short:
                new_cost = level_cost(spare, targets, order, demand, apps, level)
                accepted = new_cost >= 0 and float(value - new_cost) >= threshold
        if accepted:
            worth, cost = value, new_cost
            state[WORTH] = worth - cost
            for t in range(T):
                room[t] += usable[t] - begin[t]
            for z in range(Z):
                for t in range(T):
                    class_kept[z, t] = class_room[z, t]
            for i in range(J):
                if jobs[i, START] != kept[i, START] or jobs[i, SIZE] != kept[i, SIZE]:
                    for k in range(FIRST):
                        kept[i, k] = jobs[i, k]
                    earns[i] = (
                        worth_of(i, jobs[i, START], jobs, weight_sum) if jobs[i, START] >= 0 else i64(0)
                    )
            if state[WORTH] > state[BEST]:
                state[BEST] = state[WORTH]
                state[IMPROVED] += 1
                for i in range(J):
                    for k in range(FIRST):
                        best_jobs[i, k] = jobs[i, k]
        else:
            for i in range(J):
                if jobs[i, START] != kept[i, START] or jobs[i, SIZE] != kept[i, SIZE]:
                    for k in range(FIRST):
                        jobs[i, k] = kept[i, k]
            for z in range(Z):
                for t in range(T):
                    class_room[z, t] = class_kept[z, t]
    state[DONE] += moves


@njit_forced
def take_in(
    j: Any,
    low: Any,
    last: Any,
    jobs: Ints,
    room: Ints,
    classes: Ints,
    class_room: Ints,
    weight_sum: Ints,
    chance: Words,
) -> Any:
    """Put job ``j``, in its size, at the earliest step in ``low .. last`` with room; what it earns there, else 0."""
    nothing = i64(0)
    s = earliest(
        max(low, jobs[j, EARLIEST]),
        min(last, jobs[j, LATEST]),
        jobs[j, SIZE],
        jobs[j, DURATION],
        nothing,
        nothing,
        room,
        classes,
        class_room,
        chance,
    )
    jobs[j, START] = s
    if s < 0:
        return nothing
    give(j, jobs, room, classes, class_room, -1)
    return worth_of(j, s, jobs, weight_sum)


@njit
def exchange(
    trials: Any,
    chance: Words,
    state: Ints,
    jobs: Ints,
    options: Ints,
    cells: Ints,
    classes: Ints,
    class_cells: Ints,
    weight_sum: Ints,
    targets: Ints,
) -> Any:
    """Let jobs change places in time, pair by pair, until no pair gains by it (or after so many trials).

    The one that starts later, or has no place, goes in first, where the other one was or before; then
    the other one: both as early as there is room. Apps are left no less than before. Some twenty trials take
    as long as a move of `schedule`, whose parameters these are; ``jobs`` (its best) and `BEST` are overwritten.
    """
    T, J = cells.size, jobs.shape[0]
    room, class_room = cells.copy(), class_cells.copy()
    for r in range(targets.shape[1]):
        for t in range(T):
            room[t] -= targets[CURVE, r, t]
    for j in range(J):
        if jobs[j, START] >= 0:
            give(j, jobs, room, classes, class_room, -1)
    for t in range(T):
        room[t] = max(i64(0), room[t])
    quiet = i64(0)
    i, j = i64(0), i64(0)
    while trials > 0 and quiet < J * J:
        quiet += 1
        j += 1
        if j == J:
            j = i64(0)
            i = i + 1 if i + 1 < J else i64(0)
        si, sj = jobs[i, START], jobs[j, START]
        if si < 0 or i == j or 0 <= sj <= si:
            continue
        if sj < 0 and jobs[j, CHOICES] > 1:
            choose(jobs, j, options, jobs[j, OPTION] + below(chance, jobs[j, CHOICES]))
        low = si - jobs[j, DURATION] + 1
        last = si + jobs[i, DURATION]
        if sj >= 0:
            last = min(last, sj - 1)
        if last < jobs[j, EARLIEST] or low > jobs[j, LATEST]:
            continue
        trials -= 1
        had = worth_of(i, si, jobs, weight_sum)
        give(i, jobs, room, classes, class_room, 1)
        if sj >= 0:
            had += worth_of(j, sj, jobs, weight_sum)
            give(j, jobs, room, classes, class_room, 1)
        jobs[i, START] = -1
        now = take_in(j, low, last, jobs, room, classes, class_room, weight_sum, chance)
        if now > 0:
            low = min(si, jobs[j, START]) - jobs[i, DURATION] + 1
            now += take_in(i, low, i64(T), jobs, room, classes, class_room, weight_sum, chance)
        if now > had:
            state[BEST] += now - had
            quiet = 0
            continue
        for x in (i, j):
            if jobs[x, START] >= 0:
                give(x, jobs, room, classes, class_room, 1)
        jobs[i, START], jobs[j, START] = si, sj
        give(i, jobs, room, classes, class_room, -1)
        if sj >= 0:
            give(j, jobs, room, classes, class_room, -1)


@njit
def place_all(
    sequence: Ints,
    turn: Ints,
    with_apps: Any,
    beside: Any,
    noise: Any,
    chance: Words,
    state: Ints,
    jobs: Ints,
    fits: Words,
    base: Words,
    weight_sum: Ints,
    targets: Ints,
    order: Ints,
    demand: Ints,
    apps: Ints,
    hold: Words,
    best_jobs: Ints,
    best_hold: Words,
) -> Any:
    """Give each job of ``sequence`` a block at its `START`; one without a block loses its place.

    Job ``sequence[i]`` is placed after all apps' runs of GPUs that begin before step ``turn[i]`` (ascending).

    ``with_apps`` 1: what apps may hold beside these starts is cut into runs of one GPU each, the last to come the
    first to go, and these are placed with the jobs: no app has to change GPUs. Jobs that lost their place start
    wherever they then find one. `WORTH` of ``state`` is then
    what this plan is worth, where it is legal, else -1 << 62; it is kept where it is better than the best one.
    What a cell costs that is free just before or after a block is ``beside``, ``noise`` is random. ``jobs``, ``hold``
    and what `improve` overwrites are overwritten.
    """
    T, R = base.size, demand.shape[0]
    free, room = base.copy(), np.full(T, 64, np.int64)
    spare, level = np.empty(T, np.int64), np.zeros((R, T), np.int64)
    legal = with_apps > 0
    cost = i64(0)
    if legal:
        for t in range(T):
            spare[t] = count_bits(base[t])
        for i in range(sequence.size):
            j = sequence[i]
            if jobs[j, START] >= 0:
                for t in range(jobs[j, START], min(T, jobs[j, START] + jobs[j, DURATION])):
                    spare[t] -= jobs[j, SIZE]
        cost = level_cost(spare, targets, order, demand, apps, level)
        legal = cost >= 0
        for r in range(R):
            for t in range(1, T + 1):
                hold[r, t] = NOTHING
    nothing = i64(0)
    worth = i64(0)
    i = i64(0)
    for step in range(T):
        # before the first step those apps come first that hold GPUs already: they stay where they are
        for late in range(2):
            if late == 1:
                while i < sequence.size and turn[i] <= step:
                    j = sequence[i]
                    i += 1
                    n, s = jobs[j, SIZE], jobs[j, START]
                    jobs[j, START] = -1
                    if s < 0:
                        continue
                    c = i64(0)
                    while (1 << c) < n:
                        c += 1
                    s, blocks, common = find(free, room, n, jobs[j, DURATION], s, s, fits[c])
                    if s >= 0:
                        e = min(T, s + jobs[j, DURATION])
                        p = snuggest(free, blocks, common, s, e, n, beside, beside, noise, chance)
                        put(j, s, p, jobs, free, room)
                        worth += worth_of(j, s, jobs, weight_sum)
            for x in range(R if legal else 0):
                r = order[x]
                if (late == 0) != (step == 0 and apps[r, KNOWN] > 0):
                    continue
                low = level[r, step - 1] if step > 0 else nothing
                for k in range(low, level[r, step]):
                    e = i64(step + 1)
                    while e < T and level[r, e] > k:
                        e += 1
                    # one GPU all the while where there is one, else another one as late as can be
                    s = i64(step)
                    while s < e:
                        common = free[s]
                        if late == 0 and s == step and common & hold[r, 0] != NOTHING:
                            common &= hold[r, 0]
                        if common == NOTHING:
                            legal = False
                            break
                        end = s + 1
                        while end < e and common & free[end] != NOTHING:
                            common &= free[end]
                            end += 1
                        p = snuggest(free, common, common, s, end, i64(1), beside, beside, noise, chance)
                        for t in range(s, end):
                            free[t] &= ~(ONE << u64(p))
                            hold[r, t + 1] |= ONE << u64(p)
                        s = end
    for r in range(R if legal else 0):
        left = apps[r, LEFT]
        for t in range(T):
            if t == 0 and apps[r, KNOWN] == 0:
                continue
            taken = count_bits(hold[r, t + 1] & ~hold[r, t])
            left -= taken
            if taken > apps[r, CAP] or count_bits(hold[r, t] & ~hold[r, t + 1]) > apps[r, CAP]:
                legal = False
        legal = legal and left >= 0
    state[WORTH] = -(i64(1) << 62)
    if legal:
        for i in range(sequence.size):
            j = sequence[i]
            if jobs[j, START] >= 0 or jobs[j, LATEST] < 0:
                continue
            n, d = jobs[j, SIZE], jobs[j, DURATION]
            c = i64(0)
            while (1 << c) < n:
                c += 1
            for t in range(T):
                room[t] = 64
            s, blocks, common = find(free, room, n, d, jobs[j, EARLIEST], jobs[j, LATEST], fits[c])
            if s >= 0:
                e = min(T, s + d)
                p = snuggest(free, blocks, common, s, e, n, beside, beside, noise, chance)
                put(j, s, p, jobs, free, room)
                worth += worth_of(j, s, jobs, weight_sum)
        state[WORTH] = worth - cost
        if state[WORTH] > state[BEST]:
            state[BEST] = state[WORTH]
            for j in range(jobs.shape[0]):
                for k in range(FIRST + 1):
                    best_jobs[j, k] = jobs[j, k]
            for r in range(R):
                for t in range(T + 1):
                    best_hold[r, t] = hold[r, t]


@njit
def tidy(jobs: Ints, options: Ints, fits: Words, base: Words, weight_sum: Ints, hold: Words) -> Any:
    """Move jobs of a finished plan to earlier free places, put in what still fits; what that gains.

    Apps keep what they hold (``hold`` uint64[R, T + 1]), so the plan stays legal. ``jobs`` is overwritten.
    """
    T = base.size
    free, room = base.copy(), np.full(T, 64, np.int64)
    chance = np.ones(1, np.uint64)
    for r in range(hold.shape[0]):
        for t in range(T):
            free[t] &= ~hold[r, t + 1]
    for j in range(jobs.shape[0]):
        if jobs[j, START] >= 0:
            put(j, jobs[j, START], jobs[j, FIRST], jobs, free, room)
    for t in range(T):
        room[t] = 64
    gain = i64(0)
    moved = True
    while moved:
        moved = False
        for j in range(jobs.shape[0]):
            old, place = jobs[j, START], jobs[j, FIRST]
            first, after = jobs[j, OPTION], jobs[j, OPTION] + jobs[j, CHOICES]
            had = i64(-1)
            if old >= 0:
                if old == jobs[j, EARLIEST]:
                    continue
                had = worth_of(j, old, jobs, weight_sum)
                drop(j, jobs, free, room)
                while options[first, O_SIZE] != jobs[j, SIZE]:
                    first += 1
                after = first + 1
            most, size, start, blocks, common = had, i64(-1), i64(-1), NOTHING, NOTHING
            for k in range(first, after):
                if options[k, O_LATEST] < 0:  # larger than the cluster, perhaps
                    continue
                n, d = options[k, O_SIZE], options[k, O_DURATION]
                c = i64(0)
                while (1 << c) < n:
                    c += 1
                last = options[k, O_LATEST] if old < 0 else min(options[k, O_LATEST], old - 1)
                s, found, shared = find(free, room, n, d, jobs[j, EARLIEST], last, fits[c])
                if s >= 0:
                    worth = options[k, O_PRIORITY] * n * (weight_sum[min(T, s + d)] - weight_sum[s])
                    if worth > most or (worth == most and old >= 0 and size < 0):
                        most, size, start, blocks, common = worth, k, s, found, shared
            if size >= 0:
                choose(jobs, j, options, size)
                e = min(T, start + jobs[j, DURATION])
                p = snuggest(free, blocks, common, start, e, jobs[j, SIZE], i64(0), i64(0), i64(0), chance)
                put(j, start, p, jobs, free, room)
                gain += most - max(i64(0), had)
                moved = True
            elif old >= 0:
                put(j, old, place, jobs, free, room)
            for t in range(T):
                room[t] = 64
    return gain
