"""The allocation kernels: occupancy as bits, arrays in, arrays out, nothing validated.

Bit ``g % 64`` of word ``g // 64`` stands for GPU ``g``. ``free[k, t, w]`` has a bit set where the
GPU is free in all of the steps ``t .. t + 2**k - 1``: a table of windows by doubling, so that the
GPUs free in any window of steps are the AND of two words.

Shapes used throughout: ``G`` GPUs, ``T`` steps, ``W = ceil(G / 64)`` words, ``J`` batch jobs,
``R`` real-time apps, ``K`` doubling levels. Amounts of value and penalty are 64-bit integers in
the unit that `gpuplan.allocation.problem` chose. ``-1`` means "none".
"""

import numpy as np

from gpuplan.jit import njit

u64 = np.uint64
NOTHING = u64(0)
ONE = u64(1)
ALL = u64(0xFFFFFFFFFFFFFFFF)

# numba compiles a callee once more for each literal argument: numbers that go into calls start as
# plain 64-bit integers instead
i64 = np.int64

# instructions of a pass, see `run_program`
LOWEST, SNUG = 0, 1
CURVE, HELD, LEAST, ROOM = 0, 1, 2, 3
ANY_ROOM = 1 << 40


# ------------------------------------------------------------------------------------ bits


@njit
def lowest_bit(x):  # type: ignore[no-untyped-def]
    """Index of the lowest set bit of a word that is not zero."""
    p = 0
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


@njit
def highest_gpu(words):  # type: ignore[no-untyped-def]
    """Number of the highest GPU in a set of words, -1 where it is empty."""
    for w in range(words.size - 1, -1, -1):
        x = words[w]
        if x != NOTHING:
            p = 0
            for h in (32, 16, 8, 4, 2, 1):
                if x >> u64(h) != NOTHING:
                    p += h
                    x >>= u64(h)
            return w * 64 + p
    return -1


@njit
def lowest_gpu(words):  # type: ignore[no-untyped-def]
    """Number of the lowest GPU in a set of words, -1 where it is empty."""
    for w in range(words.size):
        if words[w] != NOTHING:
            return w * 64 + lowest_bit(words[w])
    return -1


@njit
def count_bits(x):  # type: ignore[no-untyped-def]
    """Number of set bits of a word."""
    x = x - ((x >> ONE) & u64(0x5555555555555555))
    x = (x & u64(0x3333333333333333)) + ((x >> u64(2)) & u64(0x3333333333333333))
    x = (x + (x >> u64(4))) & u64(0x0F0F0F0F0F0F0F0F)
    x = x + (x >> u64(8))
    x = x + (x >> u64(16))
    x = x + (x >> u64(32))
    return np.int64(x & u64(0x7F))


@njit
def block_word(first, n, w):  # type: ignore[no-untyped-def]
    """The part of the block ``first .. first + n - 1`` that lies in word ``w``."""
    low = max(first - 64 * w, 0)
    high = min(first + n - 64 * w, 64)
    if high - low == 64:
        return ALL
    return ((ONE << u64(high - low)) - ONE) << u64(low)


# ------------------------------------------------------------------------------- windows


@njit
def level_of(length):  # type: ignore[no-untyped-def]
    """Largest ``k`` with ``2**k <= length``."""
    k = 0
    while (2 << k) <= length:
        k += 1
    return k


@njit
def double(free):  # type: ignore[no-untyped-def]
    """Fill the levels above 0 of ``free`` [K, T, W] (overwritten) from level 0."""
    K, T, W = free.shape
    for k in range(1, K):
        h = 1 << (k - 1)
        for t in range(T - 2 * h + 1):
            for w in range(W):
                free[k, t, w] = free[k - 1, t, w] & free[k - 1, t + h, w]


@njit
def window(free, start, end, out):  # type: ignore[no-untyped-def]
    """GPUs free in all steps ``start .. end - 1`` (``end > start``) into ``out`` [W]; True if any."""
    k = level_of(end - start)
    last = end - (1 << k)
    some = NOTHING
    for w in range(out.size):
        x = free[k, start, w] & free[k, last, w]
        out[w] = x
        some |= x
    return some != NOTHING


@njit
def take(free, start, end, first, n):  # type: ignore[no-untyped-def]
    """Mark a block busy in steps ``start .. end - 1`` at every level of ``free`` (overwritten)."""
    K, T, _ = free.shape
    for w in range(first // 64, (first + n - 1) // 64 + 1):
        keep = ~block_word(first, n, w)
        for k in range(K):
            h = 1 << k
            for t in range(max(0, start - h + 1), min(end, T - h + 1)):
                free[k, t, w] &= keep


@njit
def block_starts(words, n):  # type: ignore[no-untyped-def]
    """Overwrite a set of free GPUs [W] by the first GPUs of free blocks of ``n`` (a power of 2)."""
    W = words.size
    have = 1
    while have < n:
        if have < 64:
            near = u64(have)
            far = u64(64 - have)
            for w in range(W - 1):
                words[w] &= (words[w] >> near) | (words[w + 1] << far)
            words[W - 1] &= words[W - 1] >> near
        else:
            skip = have // 64
            for w in range(W - skip):
                words[w] &= words[w + skip]
            for w in range(max(0, W - skip), W):
                words[w] = NOTHING
        have *= 2


# --------------------------------------------------------------------------- batch-like work


@njit
def find_start(free, room, n, duration, first, must_finish, allowed, out):  # type: ignore[no-untyped-def]
    """Earliest step ``>= first`` at which a block of ``n`` is free for ``duration``, or -1.

    ``room`` [T] bounds the GPUs that batch work may still use in a step, ``allowed`` [W] the first
    GPUs of blocks of this size. The possible first GPUs are left in ``out`` [W].
    """
    T = free.shape[1]
    last = T - duration if must_finish else T - 1
    s = first
    while s <= last:
        e = min(T, s + duration)
        tight = -1
        for t in range(e - 1, s - 1, -1):
            if room[t] < n:
                tight = t
                break
        if tight >= 0:
            s = tight + 1
            continue
        if window(free, s, e, out):
            block_starts(out, n)
            some = NOTHING
            for w in range(out.size):
                out[w] &= allowed[w]
                some |= out[w]
            if some != NOTHING:
                return s
        s += 1
    return -1


@njit
def snuggest(free, firsts, start, end, n):  # type: ignore[no-untyped-def]
    """Of the possible first GPUs [W], the one whose block leaves the fewest free neighbours.

    Only ends of runs of positions are compared: a block in the middle of a free stretch touches
    nothing. A block that is not aligned to its own size pays one neighbour for each end.
    """
    T, W = free.shape[1], free.shape[2]
    best = -1
    best_cost = np.int64(1) << 62
    for w in range(W):
        x = firsts[w]
        if x == NOTHING:
            continue
        below = x << ONE
        above = x >> ONE
        if w > 0:
            below |= firsts[w - 1] >> u64(63)
        if w < W - 1:
            above |= firsts[w + 1] << u64(63)
        ends = x & ~(below & above)
        while ends != NOTHING:
            bit = lowest_bit(ends)
            ends &= ends - ONE
            p = 64 * w + bit
            cost = open_sides(free, start, end, p, n) * 8
            if p % n != 0:
                cost += 16
            if cost < best_cost:
                best_cost = cost
                best = p
    return best


@njit
def open_sides(free, start, end, first, n):  # type: ignore[no-untyped-def]
    """Free cells beside a block in its steps, one less for each end in time that is closed."""
    T, W = free.shape[1], free.shape[2]
    cost = 0
    if first > 0:
        w, shift = (first - 1) // 64, u64((first - 1) % 64)
        for t in range(start, end):
            if (free[0, t, w] >> shift) & ONE != NOTHING:
                cost += 1
    if first + n < 64 * W:
        w, shift = (first + n) // 64, u64((first + n) % 64)
        for t in range(start, end):
            if (free[0, t, w] >> shift) & ONE != NOTHING:
                cost += 1
    w = first // 64
    part = block_word(first, n, w)
    if end < T and free[0, end, w] & part == NOTHING:
        cost -= 1
    if start > 0 and free[0, start - 1, w] & part == NOTHING:
        cost -= 1
    return cost


@njit
def place(
    j, floor, snug, free, room, size, duration, earliest, must_finish, allowed, known, out, start, first_gpu
):  # type: ignore[no-untyped-def]
    """Put job ``j`` at its earliest feasible step ``>= floor``; True if it found a place.

    ``snug`` chooses the snuggest block, otherwise the lowest GPU. ``known[c, d]`` is a step before
    which no job of size class ``c`` and duration ``d`` can start: the grid only fills up during a
    pass, so what was found infeasible stays so. Overwrites ``free``, ``room``, ``known``,
    ``start[j]``, ``first_gpu[j]``, ``out``.
    """
    T = free.shape[1]
    n, d = size[j], duration[j]
    c = level_of(n)
    length = min(d, T)
    low = max(earliest[j], floor)
    s = find_start(free, room, n, d, max(low, known[c, length]), must_finish, allowed[c], out)
    if low <= known[c, length] and d <= T:
        known[c, length] = T if s < 0 else s
    if s < 0:
        return False
    e = min(T, s + d)
    p = snuggest(free, out, s, e, n) if snug == 1 else lowest_gpu(out)
    take(free, s, e, p, n)
    for t in range(s, e):
        room[t] -= n
    start[j] = s
    first_gpu[j] = p
    return True


# ----------------------------------------------------------------------------- real-time apps


@njit
def reserve_peaks(available, size, running, peak, held):  # type: ignore[no-untyped-def]
    """GPUs that each app reserves for the whole horizon, as words [R, W].

    First every app keeps what it holds (the highest ``peak`` of them), then in file order each
    takes the highest GPUs that are available, run no inherited work and are held by nobody.
    """
    R, W = held.shape
    reserved = np.zeros((R, W), np.uint64)
    open_ = np.empty(W, np.uint64)
    source = np.empty(W, np.uint64)
    for w in range(W):
        open_[w] = available[w]
    for j in range(size.size):
        if running[j] >= 0:
            for w in range(running[j] // 64, (running[j] + size[j] - 1) // 64 + 1):
                open_[w] &= ~block_word(running[j], size[j], w)
    for turn in range(2):
        for r in range(R):
            missing = peak[r]
            for w in range(W):
                missing -= count_bits(reserved[r, w])
                source[w] = held[r, w] if turn == 0 else open_[w]
            while missing > 0:
                g = highest_gpu(source)
                if g < 0:
                    break
                bit = ONE << u64(g % 64)
                source[g // 64] &= ~bit
                open_[g // 64] &= ~bit
                reserved[r, g // 64] |= bit
                missing -= 1
    return reserved


@njit
def demand_curve(demand, cap, minimum, maximum, n_held, budget, curve):  # type: ignore[no-untyped-def]
    """The smallest holding that covers demand within the cap, into ``curve`` [T].

    ``curve(t) = max over s of (demand(s) - cap * abs(t - s))``, clipped to ``minimum``,
    ``maximum`` and to what ``n_held`` GPUs before step 0 (-1: not known) let the app reach. Where
    acquiring costs more than ``budget`` swaps, the shortest valleys are filled by one GPU at a
    time (holding on costs no swap), then the narrowest peaks are cut.
    """
    T = demand.size
    for t in range(T):
        curve[t] = min(max(demand[t], minimum), maximum)
    for t in range(1, T):
        curve[t] = max(curve[t], curve[t - 1] - cap)
    for t in range(T - 2, -1, -1):
        curve[t] = max(curve[t], curve[t + 1] - cap)
    if n_held >= 0:
        for t in range(T):
            reach = cap * (t + 1)
            curve[t] = min(max(curve[t], n_held - reach), n_held + reach)
    swaps = max(0, curve[0] - n_held) if n_held >= 0 else 0
    for t in range(1, T):
        swaps += max(0, curve[t] - curve[t - 1])
    while swaps > budget:
        swaps -= 1
        if not fill_valley(curve, n_held):
            cut_peak(curve, minimum, n_held)


@njit
def fill_valley(curve, n_held):  # type: ignore[no-untyped-def]
    """Raise the shortest valley of ``curve`` by one GPU, which saves one swap; False if none."""
    T = curve.size
    best = T + 1
    best_a = best_b = 0
    a = 0
    for t in range(1, T + 1):
        if t < T and curve[t] == curve[t - 1]:
            continue
        opens = a > 0 and curve[a - 1] > curve[a]
        if a == 0:
            opens = n_held < 0 or n_held > curve[0]
        if opens and t < T and curve[t] > curve[a] and t - a < best:
            best = t - a
            best_a, best_b = a, t
        a = t
    if best > T:
        return False
    for t in range(best_a, best_b):
        curve[t] += 1
    return True


@njit
def cut_peak(curve, minimum, n_held):  # type: ignore[no-untyped-def]
    """Lower the narrowest peak of ``curve`` above ``minimum`` by one GPU, which saves one swap."""
    T = curve.size
    best = T + 1
    best_a = best_b = 0
    a = 0
    for t in range(1, T + 1):
        if t < T and curve[t] == curve[t - 1]:
            continue
        rises = curve[a - 1] < curve[a] if a > 0 else 0 <= n_held < curve[0]
        falls = t == T or curve[t] < curve[a]
        if rises and falls and curve[a] > minimum and t - a < best:
            best = t - a
            best_a, best_b = a, t
        a = t
    for t in range(best_a, best_b):
        curve[t] -= 1


@njit
def hold_on(r, g, start, end, free, hold, count):  # type: ignore[no-untyped-def]
    """App ``r`` holds GPU ``g`` in steps ``start .. end - 1``."""
    take(free, start, end, g, i64(1))
    w, bit = g // 64, ONE << u64(g % 64)
    for t in range(start, end):
        hold[r, t, w] |= bit
        count[r, t] += 1


@njit
def release_step(r, must, end, free, count, rel, cap, maximum, words):  # type: ignore[no-untyped-def]
    """A step after ``must`` at which app ``r`` may let go a GPU of ``words`` [W], free up to ``end``.

    ``end`` itself where the cap allows it, else the next later step up to which one of the GPUs
    stays free (``words`` is narrowed to those), else an earlier one, else -1.
    """
    T, W = free.shape[1], free.shape[2]
    if end == T or rel[r, end] < cap:
        return end
    later = np.empty(W, np.uint64)
    for w in range(W):
        later[w] = words[w]
    e = end
    while e < T and count[r, e] < maximum:
        some = NOTHING
        for w in range(W):
            later[w] &= free[0, e, w]
            some |= later[w]
        if some == NOTHING:
            break
        e += 1
        if e == T or rel[r, e] < cap:
            for w in range(W):
                words[w] = later[w]
            return e
    for e in range(end - 1, must, -1):
        if rel[r, e] < cap:
            return e
    return -1


@njit
def longest_run(free, start, end, words):  # type: ignore[no-untyped-def]
    """Narrow ``words`` [W] to the GPUs free longest from ``start``; the step at which they end."""
    W = words.size
    e = start + 1
    while e < end:
        some = NOTHING
        for w in range(W):
            some |= words[w] & free[0, e, w]
        if some == NOTHING:
            break
        for w in range(W):
            words[w] &= free[0, e, w]
        e += 1
    return e


@njit
def fitting(free, start, end, tight, words):  # type: ignore[no-untyped-def]
    """One GPU of ``words`` [W]: the highest; with ``tight`` first those that are busy just outside."""
    if tight == 1:
        T, W = free.shape[1], free.shape[2]
        closed = np.empty(W, np.uint64)
        for sides in range(2):
            some = NOTHING
            for w in range(W):
                before = free[0, start - 1, w] if start > 0 else NOTHING
                after = free[0, end, w] if end < T else NOTHING
                x = words[w] & ~(before | after) if sides == 0 else words[w] & ~(before & after)
                closed[w] = x
                some |= x
            if some != NOTHING:
                return highest_gpu(closed)
    return highest_gpu(words)


@njit
def extend(r, t, end, free, hold, count, rel, cap, maximum, held, out):  # type: ignore[no-untyped-def]
    """Keep a GPU that app ``r`` lets go at step ``t`` longer, up to ``end``; the step reached or -1.

    Costs no swap: the release moves from ``t`` to a later step.
    """
    W = out.size
    some = NOTHING
    for w in range(W):
        before = hold[r, t - 1, w] if t > 0 else held[r, w]
        out[w] = before & ~hold[r, t, w] & free[0, t, w]
        some |= out[w]
    if some == NOTHING:
        return -1
    e = longest_run(free, t, end, out)
    e = release_step(r, t, e, free, count, rel, cap, maximum, out)
    if e < 0:
        return -1
    hold_on(r, highest_gpu(out), t, e, free, hold, count)
    rel[r, t] -= 1
    if e < free.shape[1]:
        rel[r, e] += 1
    return e


@njit
def acquire(r, t, end, tight, free, hold, count, acq, rel, cap, maximum, left, known, out):  # type: ignore[no-untyped-def]
    """Take a GPU for app ``r`` from step ``t`` (earlier where the cap is used up); step reached or -1."""
    T, W = free.shape[1], free.shape[2]
    for w in range(W):
        out[w] = free[0, t, w]
    a = t
    while True:
        some = NOTHING
        for w in range(W):
            some |= out[w]
        if some == NOTHING:
            return -1
        if (a == 0 and not known) or (acq[r, a] < cap and left[r] > 0):
            break
        a -= 1
        if a < 0 or count[r, a] >= maximum:
            return -1
        for w in range(W):
            out[w] &= free[0, a, w]
    e = longest_run(free, t, end, out)
    e = release_step(r, t, e, free, count, rel, cap, maximum, out)
    if e < 0:
        return -1
    hold_on(r, fitting(free, a, e, tight, out), a, e, free, hold, count)
    if a > 0 or known:
        acq[r, a] += 1
        left[r] -= 1
    if e < T:
        rel[r, e] += 1
    return e


@njit
def lay(r, target, tight, free, hold, count, acq, rel, cap, maximum, left, known, held, out):  # type: ignore[no-untyped-def]
    """Give app ``r`` GPUs until it holds ``target`` [T] per step, as far as cells and caps allow.

    Level by level, the lowest (longest) first: every stretch of steps in which the app holds less
    than the level is covered by keeping GPUs that it lets go there or by acquiring others. Legal
    by construction: ``acq`` and ``rel`` [R, T] count what is acquired and let go between a step
    and the one before it, ``left`` [R] what remains of the swap budget. Overwrites ``free``,
    ``hold`` [R, T, W], ``count`` [R, T], ``acq``, ``rel``, ``left``, ``out`` [W].
    """
    T = target.size
    highest = 0
    for t in range(T):
        highest = max(highest, target[t])
    for level in range(1, highest + 1):
        t = i64(0)
        while t < T:
            if count[r, t] >= level or target[t] < level:
                t += 1
                continue
            b = t + 1
            while b < T and count[r, b] < level and target[b] >= level:
                b += 1
            while t < b:
                e = -1
                if t > 0 or known[r]:
                    e = extend(r, t, b, free, hold, count, rel, cap[r], maximum[r], held, out)
                if e < 0:
                    e = acquire(
                        r, t, b, tight, free, hold, count, acq, rel, cap[r], maximum[r], left, known[r], out
                    )
                t = e if e > t else t + 1


# ------------------------------------------------------------------------------------ allocate


@njit
def plan_worth(start, size, duration, priority, weight_sum, count, demand, cost):  # type: ignore[no-untyped-def]
    """Objective of a plan: what its batch work earns less what its unmet demand costs."""
    R, T = demand.shape
    total = np.int64(0)
    for j in range(start.size):
        if start[j] >= 0:
            total += job_worth(j, start[j], size, duration, priority, weight_sum)
    for r in range(R):
        unmet = np.int64(0)
        for t in range(T):
            unmet += max(0, demand[r, t] - count[r, t])
        total -= cost[r] * unmet
    return total


@njit
def job_worth(j, s, size, duration, priority, weight_sum):  # type: ignore[no-untyped-def]
    """What job ``j`` earns from step ``s`` to its end or the end of the horizon."""
    return priority[j] * size[j] * (weight_sum[min(weight_sum.size - 1, s + duration[j])] - weight_sum[s])


@njit
def served_total(count, demand):  # type: ignore[no-untyped-def]
    """GPU-steps of demand that are met."""
    total = np.int64(0)
    for r in range(demand.shape[0]):
        for t in range(demand.shape[1]):
            total += min(count[r, t], demand[r, t])
    return total


@njit
def run_program(program, strict, targets, free, room, hold, ledger, left, known_held, held, cap, maximum, size, duration, earliest, must_finish, allowed, known, out, start, first_gpu):  # type: ignore[no-untyped-def]
    """Carry out one pass: a list of instructions, each a job to place or something about an app.

    ``program`` holds `SNUG` or `LOWEST` first, then instructions up to the first -1: ``j`` places
    job ``j`` where it has no place yet; ``J + 4 * r + k`` is about app ``r``: for ``k = CURVE``,
    ``HELD`` or ``LEAST`` it is given GPUs up to ``targets[k, r]``, for ``k = ROOM`` only the
    number that its curve wants is kept free of batch work; `ANY_ROOM` lifts all such limits.
    ``ledger`` [3, R, T]: GPUs held, acquired and let go.
    """
    J, T, W = size.size, free.shape[1], free.shape[2]
    snug = program[0]
    floor = i64(0)
    for i in range(1, program.size):
        step = program[i]
        if step == -1:
            break
        if step == ANY_ROOM:
            for t in range(T):
                room[t] = 64 * W
            for c in range(known.shape[0]):
                for t in range(T + 1):
                    known[c, t] = 0
        elif step < J:
            if start[step] >= 0:
                continue
            placed = place(
                step, floor, snug, free, room, size, duration, earliest, must_finish, allowed, known, out, start, first_gpu
            )
            if strict:
                if not placed:
                    break
                floor = start[step]
        else:
            r, k = (step - J) // 4, (step - J) % 4
            if k == ROOM:
                for t in range(T):
                    room[t] -= max(0, targets[CURVE, r, t] - ledger[0, r, t])
            else:
                lay(
                    r, targets[k, r], snug, free, hold, ledger[0], ledger[1], ledger[2], cap, maximum, left, known_held,
                    held, out,
                )


@njit
def copy_state(free, hold, ledger, left, free_to, hold_to, ledger_to, left_to):  # type: ignore[no-untyped-def]
    """Copy free words [K, T, W] and apps' holdings [R, T, W], [3, R, T], [R] into the last four."""
    K, T, W = free.shape
    R = hold.shape[0]
    for k in range(K):
        for t in range(T):
            for w in range(W):
                free_to[k, t, w] = free[k, t, w]
    for r in range(R):
        left_to[r] = left[r]
        for t in range(T):
            for w in range(W):
                hold_to[r, t, w] = hold[r, t, w]
            for k in range(3):
                ledger_to[k, r, t] = ledger[k, r, t]


@njit
def best_outbid(
    j, free, spare, cheapest, size, duration, earliest, priority, weight_sum, must_finish, allowed, out
):  # type: ignore[no-untyped-def]
    """The step at which job ``j`` gains most over served demand, and that gain (0: nowhere).

    ``free`` leaves real-time GPUs out, ``spare`` [T] are the GPUs free of served demand: each GPU
    beyond costs at least ``cheapest`` per step, so the gain is an upper estimate.
    """
    T = free.shape[1]
    n = size[j]
    last = T - duration[j] if must_finish else T - 1
    best = -1
    best_gain = np.int64(0)
    for s in range(earliest[j], last + 1):
        gain = job_worth(j, s, size, duration, priority, weight_sum)
        for t in range(s, min(T, s + duration[j])):
            gain -= cheapest * max(0, n - spare[t])
        if gain > best_gain and window(free, s, min(T, s + duration[j]), out):
            block_starts(out, n)
            some = NOTHING
            for w in range(out.size):
                some |= out[w] & allowed[level_of(n), w]
            if some != NOTHING:
                best_gain = gain
                best = s
    return best, best_gain


@njit
def least_harm(free, hold, cost, firsts, start, end, n):  # type: ignore[no-untyped-def]
    """Of the possible first GPUs [W], the one whose block takes the cheapest real-time GPUs."""
    R, W = hold.shape[0], hold.shape[2]
    best = -1
    best_cost = np.int64(0)
    for w in range(W):
        x = firsts[w]
        while x != NOTHING:
            p = 64 * w + lowest_bit(x)
            x &= x - ONE
            harm = np.int64(0)
            for v in range(p // 64, (p + n - 1) // 64 + 1):
                part = block_word(p, n, v)
                for r in range(R):
                    for t in range(start, end):
                        harm += cost[r] * count_bits(hold[r, t, v] & part)
            if best < 0 or harm < best_cost:
                best = p
                best_cost = harm
    return best


@njit
def outbid(tried, order, batch_free, served, hold, cost, cheapest, size, duration, earliest, priority, weight_sum, must_finish, allowed, spare, out, start, first_gpu):  # type: ignore[no-untyped-def]
    """Put the next job without a place where it gains most over served demand; the job or -1.

    ``order`` [M] from position ``tried[0]`` on (overwritten). ``batch_free`` [K, T, W] leaves
    real-time GPUs out; ``served`` [T] is the demand that is met with GPUs that apps need not hold.
    Overwrites ``start`` and ``first_gpu`` of the job, ``spare``, ``out``.
    """
    T, W = batch_free.shape[1], batch_free.shape[2]
    for t in range(T):
        spare[t] = -served[t]
        for w in range(W):
            spare[t] += count_bits(batch_free[0, t, w])
    while tried[0] < order.size:
        j = order[tried[0]]
        tried[0] += 1
        if start[j] >= 0:
            continue
        s, _ = best_outbid(
            j, batch_free, spare, cheapest, size, duration, earliest, priority, weight_sum, must_finish, allowed, out
        )
        if s < 0:
            continue
        n, e = size[j], min(T, s + duration[j])
        window(batch_free, s, e, out)
        block_starts(out, n)
        for w in range(W):
            out[w] &= allowed[level_of(n), w]
        start[j] = s
        first_gpu[j] = least_harm(batch_free, hold, cost, out, s, e, n)
        return j
    return i64(-1)


@njit
def allocate(programs, strict, trials, order, base, size, duration, earliest, running, priority, must_finish, allowed, weight_sum, demand, cap, minimum, maximum, budget, known_held, held, n_held, cost):  # type: ignore[no-untyped-def]
    """Build a plan per program, keep the best, then let jobs outbid served demand.

    Every pass starts from what apps must hold anyway: first what they hold already and cannot let
    go in time, then their minimums. The plan with the largest objective is kept (of equal ones
    the one that serves more demand, then the first). Then up to ``trials`` jobs without a place
    are put where they gain most, the last program lays the apps around them, and such a plan is
    kept where its objective is larger.

    Parameters
    ----------
    programs : int64[N, M]
        See `run_program`. The last one is for outbidding and lays apps only; with ``trials`` 0 it
        is not used.
    strict : bool
        Starts never decrease along a program and a job without a place ends it.
    trials : int
        Largest number of outbidding plans that are built.
    order : int64[M]
        Jobs in the order in which they may outbid.
    base : uint64[T, W]
        GPUs that are available and free of inherited work (and of reservations).
    size, duration, earliest, running, priority : int64[J]
    allowed : uint64[C, W]
        First GPUs of blocks of ``2**c`` GPUs.
    weight_sum : int64[T + 1]
        Sums of the value weights of the steps before.
    demand : int64[R, T]
    cap, minimum, maximum, budget, n_held, cost : int64[R]
        ``n_held`` is -1 where unknown; ``cost`` is the price of one unmet GPU-step.
    known_held : bool[R]
    held : uint64[R, W]

    Returns
    -------
    start, first_gpu : int64[J]
    hold : uint64[R, T, W]
    """
    T, W = base.shape
    J, R = size.size, demand.shape[0]
    longest = T if R > 0 else 1
    for j in range(J):
        longest = max(longest, min(T, duration[j]))
    K = level_of(longest) + 1
    targets = np.empty((3, R, T), np.int64)
    first_program = np.full(1 + 2 * R + 1, -1, np.int64)
    first_program[0] = LOWEST
    clean = np.empty((K, T, W), np.uint64)
    must_hold = np.zeros((R, T, W), np.uint64)
    must = np.zeros((3, R, T), np.int64)
    must_left = np.empty(R, np.int64)
    cheapest = np.int64(1) << 62
    for r in range(R):
        demand_curve(demand[r], cap[r], minimum[r], maximum[r], n_held[r], budget[r], targets[CURVE, r])
        cheapest = min(cheapest, cost[r])
        must_left[r] = budget[r]
        n = max(n_held[r], 0)
        must[2, r, 0] = n
        for t in range(T):
            targets[HELD, r, t] = max(min(minimum[r], n), n - cap[r] * (t + 1))
            targets[LEAST, r, t] = minimum[r]
        first_program[1 + r] = J + 4 * r + HELD
        first_program[1 + R + r] = J + 4 * r + LEAST
    for t in range(T):
        for w in range(W):
            clean[0, t, w] = base[t, w]
    double(clean)
    free = np.empty((K, T, W), np.uint64)
    hold = np.empty((R, T, W), np.uint64)
    ledger = np.empty((3, R, T), np.int64)
    left = np.empty(R, np.int64)
    start = np.full(J, -1, np.int64)
    first_gpu = np.full(J, -1, np.int64)
    best_start = np.full(J, -1, np.int64)
    best_gpu = np.full(J, -1, np.int64)
    best_hold = np.empty((R, T, W), np.uint64)
    known = np.empty((allowed.shape[0], T + 1), np.int64)
    room = np.empty(T, np.int64)
    spare = np.empty(T, np.int64)
    served = np.empty(T, np.int64)
    tried = np.zeros(1, np.int64)
    out = np.empty(W, np.uint64)
    best = np.int64(0)
    best_served = np.int64(-1)
    N = programs.shape[0] - 1
    i = -1
    while i < N + trials:
        for c in range(known.shape[0]):
            for t in range(T + 1):
                known[c, t] = 0
        outbidding = i64(-1)
        if i >= N:
            # ``clean`` is free of the best plan's batch work from the first trial on
            for j in range(J):
                if i == N and best_start[j] >= 0 and running[j] < 0:
                    take(clean, best_start[j], min(T, best_start[j] + duration[j]), best_gpu[j], size[j])
                start[j] = best_start[j]
                first_gpu[j] = best_gpu[j]
            outbidding = outbid(
                tried, order, clean, served, best_hold, cost, cheapest, size, duration, earliest, priority, weight_sum,
                must_finish, allowed, spare, out, start, first_gpu,
            )
            if outbidding < 0:
                break
        else:
            for j in range(J):
                start[j] = 0 if running[j] >= 0 else -1
                first_gpu[j] = running[j]
        copy_state(clean, must_hold, must, must_left, free, hold, ledger, left)
        program = first_program if i < 0 else programs[min(i, N)]
        if outbidding >= 0:
            e = min(T, start[outbidding] + duration[outbidding])
            take(free, start[outbidding], e, first_gpu[outbidding], size[outbidding])
        for t in range(T):
            room[t] = 0
            for w in range(W):
                room[t] += count_bits(free[0, t, w])
        run_program(
            program, strict, targets, free, room, hold, ledger, left, known_held, held, cap, maximum, size, duration,
            earliest, must_finish, allowed, known, out, start, first_gpu,
        )
        if i < 0:
            copy_state(free, hold, ledger, left, clean, must_hold, must, must_left)
            i += 1
            continue
        worth = plan_worth(start, size, duration, priority, weight_sum, ledger[0], demand, cost)
        total = served_total(ledger[0], demand)
        if best_served < 0 or worth > best or (worth == best and total > best_served and i < N):
            best, best_served = worth, total
            for j in range(J):
                best_start[j] = start[j]
                best_gpu[j] = first_gpu[j]
            for t in range(T):
                served[t] = 0
                for r in range(R):
                    served[t] += max(0, min(ledger[0, r, t], demand[r, t]) - must[0, r, t])
                    for w in range(W):
                        best_hold[r, t, w] = hold[r, t, w]
            if outbidding >= 0:
                e = min(T, start[outbidding] + duration[outbidding])
                take(clean, start[outbidding], e, first_gpu[outbidding], size[outbidding])
        i += 1
    return best_start, best_gpu, best_hold


# ------------------------------------------------------------------------------------- bound


@njit
def price_bound(
    capacity, size, duration, earliest, priority, must_finish, weight_sum, demand, least, most, cost, rounds
):  # type: ignore[no-untyped-def]
    """Upper bound on the objective: a price for each GPU-step instead of the limit on their number.

    Lagrangian relaxation of "which GPU": every job takes the start at which it earns most above
    the price of its GPU-steps, every app holds a GPU where its demand is worth the price. Any
    prices give a bound; subgradient steps towards a target just below the best bound (Polyak's
    step length, see Bertsekas, Nonlinear Programming, section 6.3) lower it.

    Parameters
    ----------
    capacity : int64[T]
        GPUs that jobs not yet running and apps may share.
    size, duration, earliest, priority : int64[N]
        Jobs that may be placed.
    least, most : int64[R, T]
        GPUs that each app must hold and may hold at most.
    rounds : int
        Subgradient steps.

    Returns
    -------
    float
        In the unit of ``priority`` x weight; inherited work is not counted.
    """
    T, N, R = capacity.size, size.size, demand.shape[0]
    price = np.zeros(T)
    used = np.zeros(T)
    paid = np.zeros(T + 1)
    direction = np.zeros(T)
    best = np.inf
    best_price = np.zeros(T)
    eager = 0.5
    stale = 0
    for _ in range(rounds):
        value = 0.0
        for t in range(T):
            value += price[t] * capacity[t]
            used[t] = 0.0
            paid[t + 1] = paid[t] + price[t]
        for j in range(N):
            last = T - duration[j] if must_finish else T - 1
            gain, start = 0.0, -1
            for s in range(earliest[j], last + 1):
                e = min(T, s + duration[j])
                worth = float(priority[j]) * float(weight_sum[e] - weight_sum[s]) - (paid[e] - paid[s])
                if worth > gain:
                    gain, start = worth, s
            if start >= 0:
                value += gain * size[j]
                for t in range(start, min(T, start + duration[j])):
                    used[t] += size[j]
        for r in range(R):
            for t in range(T):
                wanted = demand[r, t] if cost[r] > price[t] else 0
                n = min(max(wanted, least[r, t]), most[r, t])
                value -= price[t] * n + float(cost[r]) * max(0, demand[r, t] - n)
                used[t] += n
        if value < best - 1e-3 * abs(best) or best == np.inf:
            stale = 0
        else:
            stale += 1
        if value < best:
            best = value
            for t in range(T):
                best_price[t] = price[t]
        if stale >= 6:
            eager *= 0.5
            stale = 0
            for t in range(T):
                price[t] = best_price[t]
                direction[t] = 0.0
        steep = 0.0
        for t in range(T):
            direction[t] = used[t] - capacity[t] + 0.5 * direction[t]
            steep += direction[t] * direction[t]
        if steep == 0.0:
            break
        step = (value - best + eager * 0.1 * abs(best) + 1e-9) / steep
        for t in range(T):
            price[t] = max(0.0, price[t] + step * direction[t])
    return best
