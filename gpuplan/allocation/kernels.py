"""The allocation kernels: occupancy as bits, arrays in, arrays out, nothing validated.

Bit ``g % 64`` of word ``g // 64`` stands for GPU ``g``. ``free[k, t, w]`` has a bit set where the
GPU is free in all of the steps ``t .. t + 2**k - 1``: a table of windows by doubling, so that the
GPUs free in any window of steps are the AND of two words.

Shapes used throughout: ``G`` GPUs, ``T`` steps, ``W = ceil(G / 64)`` words, ``J`` batch jobs,
``R`` real-time apps, ``K`` doubling levels. Amounts of value and penalty are 64-bit integers in
the unit that `gpuplan.allocation.problem` chose. ``-1`` means "none".

Tables that go through most functions (few arguments keep calls and compilation short):

- ``jobs`` int64[J, 9], a row per batch job with the columns `SIZE` (GPUs), `DURATION` (steps),
  `EARLIEST` and `LATEST` (first and last step at which it may start; `LATEST` -1: never), `PRIORITY`, what the
  plan says, `START` (step) and `FIRST` (GPU), and `OPTION` and `CHOICES`, the first of its rows in
  ``options`` and their number; where there are several, a pass that places the job writes those of the size
  that it chose;
- ``options`` int64[N, 4], a row per job and size that it may run on, ascending, with `O_SIZE`, `O_DURATION`,
  `O_PRIORITY` and `O_LATEST` (-1: never fits), which take the place of `SIZE` ... `LATEST` in ``jobs``;
- ``apps`` int64[R, 7], a row per real-time app with `CAP`, `MINIMUM`, `MAXIMUM`, `LEFT` (what
  remains of the swap budget), `KNOWN` (1 where the GPUs held before step 0 are known), `N_HELD`
  (their number, -1 unknown) and `COST` (of a GPU-step of unmet demand);
- ``hold`` uint64[R, T + 1, W], the GPUs that each app holds: entry 0 before step 0, entry
  ``t + 1`` in step ``t``.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from gpuplan.jit import njit, njit_inline

Words = npt.NDArray[np.uint64]
Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

u64 = np.uint64
NOTHING = u64(0)
ONE = u64(1)
ALL = u64(0xFFFFFFFFFFFFFFFF)

# numba compiles a callee once more for each literal argument: numbers that go into calls start as
# plain 64-bit integers instead
i64 = np.int64

# columns of ``jobs`` and ``apps``
SIZE, DURATION, EARLIEST, LATEST, PRIORITY, START, FIRST, OPTION, CHOICES = range(9)
O_SIZE, O_DURATION, O_PRIORITY, O_LATEST = range(4)
CAP, MINIMUM, MAXIMUM, LEFT, KNOWN, N_HELD, COST = range(7)

# rows of an app's ledger: GPUs held in a step, acquired and let go between it and the one before
HOLDS, TAKES, LETS = range(3)

# instructions of a pass, see `run_program`
LOWEST, SNUG = range(2)
EARLY_LARGEST, WORTHIEST, SMALLEST = (0, 2, 4)
CURVE, HELD, LEAST, ROOM = range(4)
ANY_ROOM = 1 << 40


# ------------------------------------------------------------------------------------ bits


@njit
def lowest_bit(x: Any) -> Any:
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
def highest_gpu(words: Words) -> Any:
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
def lowest_gpu(words: Words) -> Any:
    """Number of the lowest GPU in a set of words, -1 where it is empty."""
    for w in range(words.size):
        if words[w] != NOTHING:
            return w * 64 + lowest_bit(words[w])
    return -1


@njit
def count_bits(x: Any) -> Any:
    """Number of set bits of a word."""
    x = x - ((x >> ONE) & u64(0x5555555555555555))
    x = (x & u64(0x3333333333333333)) + ((x >> u64(2)) & u64(0x3333333333333333))
    x = (x + (x >> u64(4))) & u64(0x0F0F0F0F0F0F0F0F)
    x = x + (x >> u64(8))
    x = x + (x >> u64(16))
    x = x + (x >> u64(32))
    return np.int64(x & u64(0x7F))


@njit
def block_word(first: Any, n: Any, w: Any) -> Any:
    """The part of the block ``first .. first + n - 1`` that lies in word ``w``."""
    low = max(first - 64 * w, 0)
    high = min(first + n - 64 * w, 64)
    if high - low == 64:
        return ALL
    return ((ONE << u64(high - low)) - ONE) << u64(low)


# ------------------------------------------------------------------------------- windows


@njit
def level_of(length: Any) -> Any:
    """Largest ``k`` with ``2**k <= length``."""
    k = 0
    while (2 << k) <= length:
        k += 1
    return k


@njit
def double(free: Words) -> Any:
    """Fill the levels above 0 of ``free`` [K, T, W] (overwritten) from level 0."""
    K, T, W = free.shape
    for k in range(1, K):
        h = 1 << (k - 1)
        for t in range(T - 2 * h + 1):
            for w in range(W):
                free[k, t, w] = free[k - 1, t, w] & free[k - 1, t + h, w]


@njit
def window(free: Words, start: Any, end: Any, out: Words) -> Any:
    """GPUs free in all steps ``start .. end - 1`` (``end > start``) into ``out`` [W]; True if any."""
    k = min(level_of(end - start), free.shape[0] - 1)
    h = 1 << k
    last = end - h
    some = NOTHING
    for w in range(out.size):
        x = free[k, last, w]
        for t in range(start, last, h):
            x &= free[k, t, w]
        out[w] = x
        some |= x
    return some != NOTHING


@njit
def take(free: Words, start: Any, end: Any, first: Any, n: Any) -> Any:
    """Mark a block busy in steps ``start .. end - 1`` at every level of ``free`` (overwritten)."""
    K, T, _ = free.shape
    for w in range(first // 64, (first + n - 1) // 64 + 1):
        keep = ~block_word(first, n, w)
        for k in range(K):
            h = 1 << k
            for t in range(max(0, start - h + 1), min(end, T - h + 1)):
                free[k, t, w] &= keep


@njit
def block_starts(words: Words, n: Any) -> Any:
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
def find_start(
    free: Words, room: Ints, n: Any, duration: Any, first: Any, last: Any, allowed: Words, out: Words
) -> Any:
    """Earliest step in ``first .. last`` at which a block of ``n`` is free for ``duration``, or -1.

    ``room`` [T] bounds the GPUs that batch work may still use in a step, ``allowed`` [C, W] the first
    GPUs of blocks of ``2**c``. The possible first GPUs are left in ``out`` [W].
    """
    T = free.shape[1]
    if out.size == 1:
        return find_start_narrow(free, room, n, duration, first, last, allowed, out)
    c = level_of(n)
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
                out[w] &= allowed[c, w]
                some |= out[w]
            if some != NOTHING:
                return s
        s += 1
    return i64(-1)


@njit_inline
def find_start_narrow(
    free: Words, room: Ints, n: Any, duration: Any, first: Any, last: Any, allowed: Words, out: Words
) -> Any:
    """`find_start` for up to 64 GPUs: windows are read from their end, a dead end is jumped over."""
    T = free.shape[1]
    fits = allowed[level_of(n), 0]
    s = first
    while s <= last:
        blocks = ALL
        common = ALL
        t = min(T, s + duration) - 1
        while t >= s:
            x = common & free[0, t, 0]
            if x != common:
                common = x
                h = 1
                while h < n:
                    x &= x >> u64(h)
                    h *= 2
                blocks = x & fits
            if blocks == NOTHING or room[t] < n:
                break
            t -= 1
        if t < s:
            out[0] = blocks
            return s
        s = t + 1
    return i64(-1)


@njit_inline
def snuggest(free: Words, firsts: Words, start: Any, end: Any, n: Any) -> Any:
    """Of the possible first GPUs [W], the one whose block leaves the fewest free neighbours.

    Only ends of runs of positions are compared: a block in the middle of a free stretch touches
    nothing. A block that is not aligned to its own size pays one neighbour for each end.
    """
    W = free.shape[2]
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


@njit_inline
def open_sides(free: Words, start: Any, end: Any, first: Any, n: Any) -> Any:
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


@njit_inline
def place(
    j: Any,
    floor: Any,
    snug: Any,
    jobs: Ints,
    free: Words,
    room: Ints,
    allowed: Words,
    known: Ints,
    out: Words,
) -> Any:
    """Put job ``j`` at its earliest feasible step ``>= floor``; True if it found a place.

    ``snug`` chooses the snuggest block, otherwise the lowest GPU. ``known[c, d]`` is a step before
    which no job of size class ``c`` and duration ``d`` can start, ``known[c, 0]`` a duration from
    which on none of this size fits anywhere: the grid only fills up during a pass, so what was
    found infeasible stays so. Overwrites ``free``, ``room``, ``known``, ``out`` and the job's
    `START` and `FIRST`.
    """
    T = free.shape[1]
    n, d = jobs[j, SIZE], jobs[j, DURATION]
    c, length = level_of(n), min(d, T)
    if d >= known[c, 0]:
        return False
    low = max(jobs[j, EARLIEST], floor)
    s = find_start(free, room, n, d, max(low, known[c, length]), jobs[j, LATEST], allowed, out)
    if low <= known[c, length] and d <= T:
        if s >= 0:
            known[c, length] = s
        else:
            for larger in range(c, known.shape[0]):
                known[larger, 0] = min(known[larger, 0], d)
    if s < 0:
        return False
    e = min(T, s + d)
    p = snuggest(free, out, s, e, n) if snug == SNUG else lowest_gpu(out)
    take(free, s, e, p, n)
    for t in range(s, e):
        room[t] -= n
    jobs[j, START] = s
    jobs[j, FIRST] = p
    return True


@njit
def choose(j: Any, option: Any, jobs: Ints, options: Ints) -> Any:
    """Give job ``j`` the size of a row of ``options``."""
    jobs[j, SIZE] = options[option, O_SIZE]
    jobs[j, DURATION] = options[option, O_DURATION]
    jobs[j, PRIORITY] = options[option, O_PRIORITY]
    jobs[j, LATEST] = options[option, O_LATEST]


@njit
def choose_size(
    j: Any,
    floor: Any,
    rule: Any,
    jobs: Ints,
    options: Ints,
    weight_sum: Ints,
    free: Words,
    room: Ints,
    allowed: Words,
    known: Ints,
    out: Words,
) -> Any:
    """Give job ``j`` the size that `place` is to put it on, by ``rule``; False where none finds a place.

    `EARLY_LARGEST`: the earliest start over all sizes and of the sizes that fit there the largest, as a batch
    system does with ``--nodes=min-max``. `WORTHIEST`: each size at its earliest start, the one that earns most,
    of equal ones the one with the fewest GPU-steps. `SMALLEST`: the smallest that finds a place.
    Overwrites ``out`` and, where a size fits, the job's columns of its size.
    """
    T = free.shape[1]
    best, start = i64(-1), i64(-1)
    most, cells = i64(-1), i64(0)
    for option in range(jobs[j, OPTION], jobs[j, OPTION] + jobs[j, CHOICES]):
        n, d, last = options[option, O_SIZE], options[option, O_DURATION], options[option, O_LATEST]
        if last < 0 or (rule == SMALLEST and best >= 0):
            continue
        c = level_of(n)
        if d >= known[c, 0]:
            continue
        low = max(jobs[j, EARLIEST], floor, known[c, min(d, T)])
        s = find_start(free, room, n, d, low, last, allowed, out)
        if s < 0:
            continue
        worth = options[option, O_PRIORITY] * n * (weight_sum[min(T, s + d)] - weight_sum[s])
        better = best < 0 or s <= start
        if rule == WORTHIEST:
            better = worth > most or (worth == most and n * d < cells)
        if better:
            best, start = i64(option), i64(s)
            most, cells = i64(worth), i64(n * d)
    if best < 0:
        return False
    choose(j, best, jobs, options)
    return True


# ----------------------------------------------------------------------------- real-time apps


@njit
def reserve_peaks(available: Words, jobs: Ints, peak: Ints, held: Words) -> Any:
    """GPUs that each app reserves for the whole horizon, as words [R, W].

    First every app keeps what it holds (the highest ``peak`` of them), then in file order each takes
    the highest GPUs that are available, run no inherited work (jobs whose `FIRST` is not -1) and are
    held by nobody.
    """
    R, W = held.shape
    reserved = np.zeros((R, W), np.uint64)
    open_ = np.empty(W, np.uint64)
    source = np.empty(W, np.uint64)
    for w in range(W):
        open_[w] = available[w]
    for j in range(jobs.shape[0]):
        first, n = jobs[j, FIRST], jobs[j, SIZE]
        if first >= 0:
            for w in range(first // 64, (first + n - 1) // 64 + 1):
                open_[w] &= ~block_word(first, n, w)
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
def demand_curve(demand: Ints, app: Ints, curve: Ints) -> Any:
    """The smallest holding that covers demand within the cap, into ``curve`` [T].

    ``curve(t) = max over s of (demand(s) - cap * abs(t - s))``, clipped to the app's range and to
    what the GPUs held before step 0 let it reach (``app`` is a row of ``apps``). Where acquiring
    costs more than the swap budget, the shortest valleys are filled by one GPU at a time (holding
    on costs no swap), then the narrowest peaks are cut.
    """
    cap, n_held = app[CAP], app[N_HELD]
    T = demand.size
    for t in range(T):
        curve[t] = min(max(demand[t], app[MINIMUM]), app[MAXIMUM])
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
    while swaps > app[LEFT]:
        swaps -= 1
        if not fill_valley(curve, n_held):
            cut_peak(curve, app[MINIMUM], n_held)


@njit
def fill_valley(curve: Ints, n_held: Any) -> Any:
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
def cut_peak(curve: Ints, minimum: Any, n_held: Any) -> Any:
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


@njit_inline
def hold_on(r: Any, g: Any, start: Any, end: Any, free: Words, hold: Words, ledger: Ints) -> Any:
    """App ``r`` holds GPU ``g`` in steps ``start .. end - 1``."""
    take(free, start, end, g, i64(1))
    w, bit = g // 64, ONE << u64(g % 64)
    for t in range(start, end):
        hold[r, t + 1, w] |= bit
        ledger[HOLDS, r, t] += 1


@njit_inline
def release_step(
    r: Any, must: Ints, end: Any, free: Words, ledger: Ints, apps: Ints, words: Words, spare: Words
) -> Any:
    """A step after ``must`` at which app ``r`` may let go a GPU of ``words`` [W], free up to ``end``.

    ``end`` itself where the cap allows it, else the next later step up to which one of the GPUs
    stays free (``words`` is narrowed to those), else an earlier one, else -1. Overwrites ``spare``.
    """
    T, W = free.shape[1], free.shape[2]
    cap = apps[r, CAP]
    if end == T or ledger[LETS, r, end] < cap:
        return end
    for w in range(W):
        spare[w] = words[w]
    e = end
    while e < T and ledger[HOLDS, r, e] < apps[r, MAXIMUM]:
        some = NOTHING
        for w in range(W):
            spare[w] &= free[0, e, w]
            some |= spare[w]
        if some == NOTHING:
            break
        e += 1
        if e == T or ledger[LETS, r, e] < cap:
            for w in range(W):
                words[w] = spare[w]
            return e
    for e in range(end - 1, must, -1):
        if ledger[LETS, r, e] < cap:
            return e
    return i64(-1)


@njit_inline
def longest_run(free: Words, start: Any, end: Any, words: Words) -> Any:
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


@njit_inline
def fitting(free: Words, start: Any, end: Any, snug: Any, words: Words, spare: Words) -> Any:
    """One GPU of ``words`` [W]: the highest; with ``snug`` first those that are busy just outside.

    Overwrites ``spare`` [W].
    """
    if snug == SNUG:
        T, W = free.shape[1], free.shape[2]
        for sides in range(2):
            some = NOTHING
            for w in range(W):
                before = free[0, start - 1, w] if start > 0 else NOTHING
                after = free[0, end, w] if end < T else NOTHING
                x = words[w] & ~(before | after) if sides == 0 else words[w] & ~(before & after)
                spare[w] = x
                some |= x
            if some != NOTHING:
                return highest_gpu(spare)
    return highest_gpu(words)


@njit_inline
def extend(r: Any, t: Any, end: Any, free: Words, hold: Words, ledger: Ints, apps: Ints, out: Words) -> Any:
    """Keep a GPU that app ``r`` lets go at step ``t`` longer, up to ``end``; the step reached or -1.

    Costs no swap: the release moves from ``t`` to a later step. ``out`` [2, W] is overwritten.
    """
    some = NOTHING
    for w in range(out.shape[1]):
        out[0, w] = hold[r, t, w] & ~hold[r, t + 1, w] & free[0, t, w]
        some |= out[0, w]
    if some == NOTHING:
        return i64(-1)
    e = longest_run(free, t, end, out[0])
    e = release_step(r, t, e, free, ledger, apps, out[0], out[1])
    if e < 0:
        return i64(-1)
    hold_on(r, highest_gpu(out[0]), t, e, free, hold, ledger)
    ledger[LETS, r, t] -= 1
    if e < free.shape[1]:
        ledger[LETS, r, e] += 1
    return e


@njit_inline
def acquire(
    r: Any, t: Any, end: Any, snug: Any, free: Words, hold: Words, ledger: Ints, apps: Ints, out: Words
) -> Any:
    """Take a GPU for app ``r`` from step ``t`` (earlier where the cap is used up); step reached or -1.

    ``out`` [2, W] is overwritten.
    """
    T, W = free.shape[1], free.shape[2]
    for w in range(W):
        out[0, w] = free[0, t, w]
    a = t
    while True:
        some = NOTHING
        for w in range(W):
            some |= out[0, w]
        if some == NOTHING:
            return i64(-1)
        if a == 0 and apps[r, KNOWN] == 0:
            break
        if ledger[TAKES, r, a] < apps[r, CAP] and apps[r, LEFT] > 0:
            break
        a -= 1
        if a < 0 or ledger[HOLDS, r, a] >= apps[r, MAXIMUM]:
            return i64(-1)
        for w in range(W):
            out[0, w] &= free[0, a, w]
    e = longest_run(free, t, end, out[0])
    e = release_step(r, t, e, free, ledger, apps, out[0], out[1])
    if e < 0:
        return i64(-1)
    hold_on(r, fitting(free, a, e, snug, out[0], out[1]), a, e, free, hold, ledger)
    if a > 0 or apps[r, KNOWN] == 1:
        ledger[TAKES, r, a] += 1
        apps[r, LEFT] -= 1
    if e < T:
        ledger[LETS, r, e] += 1
    return e


@njit_inline
def lay(
    r: Any, target: Ints, snug: Any, free: Words, hold: Words, ledger: Ints, apps: Ints, out: Words
) -> Any:
    """Give app ``r`` GPUs until it holds ``target`` [T] per step, as far as cells and caps allow.

    Level by level, the lowest (longest) first: every stretch of steps in which the app holds less
    than the level is covered by keeping GPUs that it lets go there or by acquiring others. Legal
    by construction: the ledger [3, R, T] counts what is acquired and let go between a step and the
    one before it, `LEFT` what remains of the swap budget. Overwrites ``free``, ``hold``,
    ``ledger``, the app's `LEFT`, ``out`` [2, W].
    """
    T = target.size
    highest = 0
    for wanted in target:
        highest = max(highest, wanted)
    for level in range(1, highest + 1):
        t = i64(0)
        while t < T:
            if ledger[HOLDS, r, t] >= level or target[t] < level:
                t += 1
                continue
            b = t + 1
            while b < T and ledger[HOLDS, r, b] < level and target[b] >= level:
                b += 1
            while t < b:
                e = extend(r, t, b, free, hold, ledger, apps, out)
                if e < 0:
                    e = acquire(r, t, b, snug, free, hold, ledger, apps, out)
                t = e if e > t else t + 1


# ------------------------------------------------------------------------------------ allocate


@njit_inline
def run_program(
    program: Ints,
    strict: Any,
    targets: Ints,
    free: Words,
    room: Ints,
    hold: Words,
    ledger: Ints,
    apps: Ints,
    jobs: Ints,
    options: Ints,
    weight_sum: Ints,
    allowed: Words,
    known: Ints,
    out: Words,
) -> Any:
    """Carry out one pass: a list of instructions, each a job to place or something about an app.

    ``program`` holds the flavour of the pass first: `SNUG` (blocks go where they leave the fewest free
    neighbours) or `LOWEST` (to the lowest GPU), plus how sizes are chosen where a job has several,
    `EARLY_LARGEST`, `WORTHIEST` or `SMALLEST` (see `choose_size`); then instructions up to the first -1: ``j`` places
    job ``j`` where it has no place yet; ``J + 4 * r + k`` is about app ``r``: for ``k = CURVE``,
    ``HELD`` or ``LEAST`` it is given GPUs up to ``targets[k, r]``, for ``k = ROOM`` only the
    number that its curve wants is kept free of batch work; `ANY_ROOM` lifts all such limits.
    """
    J, T, W = jobs.shape[0], free.shape[1], free.shape[2]
    snug, rule = program[0] & 1, program[0] & 6
    floor = i64(0)
    for i in range(1, program.size):
        step = program[i]
        if step == -1:
            break
        if step == ANY_ROOM:
            clear(known, room, 64 * W)
        elif step < J:
            if jobs[step, START] >= 0:
                continue
            placed = jobs[step, CHOICES] == 1 or choose_size(
                step, floor, rule, jobs, options, weight_sum, free, room, allowed, known, out[0]
            )
            placed = placed and place(step, floor, snug, jobs, free, room, allowed, known, out[0])
            if strict:
                if not placed:
                    break
                floor = jobs[step, START]
        else:
            r, k = (step - J) // 4, (step - J) % 4
            if k == ROOM:
                for t in range(T):
                    room[t] -= max(0, targets[CURVE, r, t] - ledger[HOLDS, r, t])
            else:
                lay(r, targets[k, r], snug, free, hold, ledger, apps, out)


@njit
def clear(known: Ints, room: Ints, gpus: Any) -> Any:
    """Forget what is known of jobs' earliest steps, and give batch work ``gpus`` in every step."""
    for t in range(room.size):
        room[t] = gpus
        for c in range(known.shape[0]):
            known[c, t + 1] = 0
    for c in range(known.shape[0]):
        known[c, 0] = np.int64(1) << 40


@njit
def copy_state(
    free: Words,
    hold: Words,
    ledger: Ints,
    apps: Ints,
    free_to: Words,
    hold_to: Words,
    ledger_to: Ints,
    apps_to: Ints,
) -> Any:
    """Copy free words and the apps' state (GPUs held, ledger, budgets) into the last four."""
    K, T, W = free.shape
    for k in range(K):
        for t in range(T):
            for w in range(W):
                free_to[k, t, w] = free[k, t, w]
    for r in range(hold.shape[0]):
        apps_to[r, LEFT] = apps[r, LEFT]
        for t in range(T + 1):
            for w in range(W):
                hold_to[r, t, w] = hold[r, t, w]
        for t in range(T):
            for k in range(3):
                ledger_to[k, r, t] = ledger[k, r, t]


@njit
def plan_worth(jobs: Ints, apps: Ints, ledger: Ints, demand: Ints, weight_sum: Ints) -> Any:
    """Objective of a plan: what its batch work earns less what its unmet demand costs."""
    R, T = demand.shape
    total = i64(0)
    for j in range(jobs.shape[0]):
        if jobs[j, START] >= 0:
            total += job_worth(j, jobs[j, START], jobs, weight_sum)
    for r in range(R):
        unmet = i64(0)
        for t in range(T):
            unmet += max(0, demand[r, t] - ledger[HOLDS, r, t])
        total -= apps[r, COST] * unmet
    return total


@njit
def job_worth(j: Any, s: Any, jobs: Ints, weight_sum: Ints) -> Any:
    """What job ``j`` earns from step ``s`` to its end or the end of the horizon."""
    e = min(weight_sum.size - 1, s + jobs[j, DURATION])
    return jobs[j, PRIORITY] * jobs[j, SIZE] * (weight_sum[e] - weight_sum[s])


@njit_inline
def best_outbid(
    j: Any,
    jobs: Ints,
    batch_free: Words,
    spare: Ints,
    cheapest: Any,
    weight_sum: Ints,
    allowed: Words,
    out: Words,
) -> Any:
    """The step at which job ``j`` gains most over served demand, -1 where it gains nothing; and the gain.

    ``batch_free`` leaves real-time GPUs out, ``spare`` [T] are the GPUs free of served demand: each
    GPU beyond costs at least ``cheapest`` per step, so the gain is an upper estimate. The possible
    first GPUs are left in ``out`` [2, W] (row 0).
    """
    T, W = batch_free.shape[1], batch_free.shape[2]
    n, d = jobs[j, SIZE], jobs[j, DURATION]
    best: Any = i64(-1)
    best_gain = i64(0)
    missing = i64(0)
    known_end = jobs[j, EARLIEST]
    for s in range(jobs[j, EARLIEST], jobs[j, LATEST] + 1):
        e = min(T, s + d)
        for t in range(known_end, e):
            missing += max(0, n - spare[t])
        known_end = e
        gain = job_worth(j, s, jobs, weight_sum) - cheapest * missing
        missing -= max(0, n - spare[s])
        if gain > best_gain and window(batch_free, s, e, out[1]):
            block_starts(out[1], n)
            some = NOTHING
            for w in range(W):
                out[1, w] &= allowed[level_of(n), w]
                some |= out[1, w]
            if some != NOTHING:
                best_gain = gain
                best = s
                for w in range(W):
                    out[0, w] = out[1, w]
    return best, best_gain


@njit
def best_outbid_size(
    j: Any,
    jobs: Ints,
    options: Ints,
    batch_free: Words,
    spare: Ints,
    cheapest: Any,
    weight_sum: Ints,
    allowed: Words,
    out: Words,
) -> Any:
    """`best_outbid` over all sizes of job ``j``, which is given the one that gains most (the smallest of equals).

    The size stays as it was where none gains anything.
    """
    best = i64(-1)
    most = i64(0)
    n, d, priority, latest = jobs[j, SIZE], jobs[j, DURATION], jobs[j, PRIORITY], jobs[j, LATEST]
    for option in range(jobs[j, OPTION], jobs[j, OPTION] + jobs[j, CHOICES]):
        if options[option, O_LATEST] >= 0:
            choose(j, option, jobs, options)
            s, gain = best_outbid(j, jobs, batch_free, spare, cheapest, weight_sum, allowed, out)
            if s >= 0 and gain > most:
                most = gain
                best = i64(option)
    if best < 0:
        jobs[j, SIZE], jobs[j, DURATION], jobs[j, PRIORITY], jobs[j, LATEST] = n, d, priority, latest
        return i64(-1)
    choose(j, best, jobs, options)
    s, gain = best_outbid(j, jobs, batch_free, spare, cheapest, weight_sum, allowed, out)
    return s


@njit_inline
def least_harm(hold: Words, apps: Ints, firsts: Words, start: Any, end: Any, n: Any) -> Any:
    """Of the possible first GPUs [W], the one whose block takes the cheapest real-time GPUs."""
    R, W = hold.shape[0], hold.shape[2]
    best = i64(-1)
    best_cost = i64(0)
    for w in range(W):
        x = firsts[w]
        while x != NOTHING:
            p = 64 * w + lowest_bit(x)
            x &= x - ONE
            harm = i64(0)
            for v in range(p // 64, (p + n - 1) // 64 + 1):
                part = block_word(p, n, v)
                for r in range(R):
                    for t in range(start, end):
                        harm += apps[r, COST] * count_bits(hold[r, t + 1, v] & part)
            if best < 0 or harm < best_cost:
                best = i64(p)
                best_cost = harm
    return best


@njit_inline
def outbid(
    program: Ints,
    tried: Ints,
    jobs: Ints,
    options: Ints,
    apps: Ints,
    batch_free: Words,
    served: Ints,
    hold: Words,
    weight_sum: Ints,
    allowed: Words,
    spare: Ints,
    out: Words,
) -> Any:
    """Put the next job without a place where it gains most over served demand; the job or -1.

    Jobs go in the order of ``program`` from position ``tried[0]`` on (overwritten). ``batch_free``
    [K, T, W] leaves real-time GPUs out; ``served`` [T] is the demand met with GPUs that apps need
    not hold. Overwrites the job's `START`, `FIRST` and size, ``spare`` [T], ``out`` [2, W].
    """
    T, W = batch_free.shape[1], batch_free.shape[2]
    cheapest = apps[0, COST]
    for r in range(apps.shape[0]):
        cheapest = min(cheapest, apps[r, COST])
    for t in range(T):
        spare[t] = -served[t]
        for w in range(W):
            spare[t] += count_bits(batch_free[0, t, w])
    while tried[0] < program.size and program[tried[0]] >= 0:
        j = program[tried[0]]
        tried[0] += 1
        if j >= jobs.shape[0] or jobs[j, START] >= 0:
            continue
        if jobs[j, CHOICES] == 1:
            s, _ = best_outbid(j, jobs, batch_free, spare, cheapest, weight_sum, allowed, out)
        else:
            s = best_outbid_size(j, jobs, options, batch_free, spare, cheapest, weight_sum, allowed, out)
        if s >= 0:
            e = min(T, s + jobs[j, DURATION])
            jobs[j, START] = s
            jobs[j, FIRST] = least_harm(hold, apps, out[0], s, e, jobs[j, SIZE])
            return j
    return i64(-1)


@njit
def promote(program: Ints, loser: Any, n_jobs: Any, copy: Ints) -> Any:
    """Copy a program with job ``loser``, one of its jobs, before the first; -1 fills up ``copy``."""
    copy[0] = program[0]
    k = 1
    moved = False
    left_out = False
    for i in range(1, program.size):
        step = program[i]
        if not moved and 0 <= step < n_jobs:
            copy[k] = loser
            k += 1
            moved = True
        if step == loser and not left_out:
            left_out = True
            continue
        copy[k] = step
        k += 1
    for i in range(k, copy.size):
        copy[i] = -1


@njit
def worst_loss(jobs: Ints, options: Ints, weight_sum: Ints, tried: Ints) -> Any:
    """The job that earns most less than it could at its earliest step, not yet ``tried`` [J], or -1.

    What it could earn is that on its best size.
    """
    T = weight_sum.size - 1
    worst = i64(-1)
    most = i64(0)
    for j in range(jobs.shape[0]):
        s = jobs[j, EARLIEST]
        if tried[j] == 0 and jobs[j, START] != s and jobs[j, LATEST] >= s:
            loss = job_worth(j, s, jobs, weight_sum)
            if jobs[j, CHOICES] > 1:
                for option in range(jobs[j, OPTION], jobs[j, OPTION] + jobs[j, CHOICES]):
                    if options[option, O_LATEST] >= s:
                        end = min(T, s + options[option, O_DURATION])
                        worth = options[option, O_PRIORITY] * options[option, O_SIZE]
                        loss = max(loss, worth * (weight_sum[end] - weight_sum[s]))
            if jobs[j, START] >= 0:
                loss -= job_worth(j, jobs[j, START], jobs, weight_sum)
            if loss > most:
                most = loss
                worst = i64(j)
    return worst


@njit_inline
def attempt(
    program: Ints,
    strict: Any,
    first: Any,
    targets: Ints,
    clean: Words,
    must_hold: Words,
    must: Ints,
    must_apps: Ints,
    free: Words,
    hold: Words,
    ledger: Ints,
    apps: Ints,
    jobs: Ints,
    options: Ints,
    weight_sum: Ints,
    allowed: Words,
    known: Ints,
    room: Ints,
    out: Words,
) -> Any:
    """Carry out a program on what apps must hold, after job ``first`` (-1: none) where it stands.

    Overwrites the state (``free``, ``hold``, ``ledger``, ``apps``), ``jobs`` and the work arrays.
    """
    copy_state(clean, must_hold, must, must_apps, free, hold, ledger, apps)
    if first >= 0:
        end = min(free.shape[1], jobs[first, START] + jobs[first, DURATION])
        take(free, jobs[first, START], end, jobs[first, FIRST], jobs[first, SIZE])
    clear(known, room, 0)
    for t in range(room.size):
        for w in range(free.shape[2]):
            room[t] += count_bits(free[0, t, w])
    run_program(
        program,
        strict,
        targets,
        free,
        room,
        hold,
        ledger,
        apps,
        jobs,
        options,
        weight_sum,
        allowed,
        known,
        out,
    )


@njit
def copy_plan(jobs: Ints, hold: Words, jobs_to: Ints, hold_to: Words) -> Any:
    """Copy where jobs and apps stand, and on which size, into the last two."""
    for j in range(jobs.shape[0]):
        jobs_to[j, START] = jobs[j, START]
        jobs_to[j, FIRST] = jobs[j, FIRST]
        if jobs[j, CHOICES] > 1:
            jobs_to[j, SIZE] = jobs[j, SIZE]
            jobs_to[j, DURATION] = jobs[j, DURATION]
            jobs_to[j, PRIORITY] = jobs[j, PRIORITY]
            jobs_to[j, LATEST] = jobs[j, LATEST]
    for r in range(hold.shape[0]):
        for t in range(hold.shape[1]):
            for w in range(hold.shape[2]):
                hold_to[r, t, w] = hold[r, t, w]


@njit
def demand_served(ledger: Ints, must: Ints, demand: Ints, served: Ints) -> Any:
    """Demand met per step with GPUs that apps need not hold, into ``served`` [T]."""
    for t in range(served.size):
        served[t] = 0
        for r in range(demand.shape[0]):
            served[t] += max(0, min(ledger[HOLDS, r, t], demand[r, t]) - must[HOLDS, r, t])


@njit
def allocate(
    programs: Ints,
    strict: Any,
    promotions: Any,
    trials: Any,
    base: Words,
    jobs: Ints,
    options: Ints,
    allowed: Words,
    weight_sum: Ints,
    demand: Ints,
    apps: Ints,
    held: Words,
) -> Any:
    """Build a plan per program, keep the best, improve it by promoting jobs and by outbidding demand.

    Every pass starts from what apps must hold anyway: first what they hold already and cannot let
    go in time, then their minimums. The plan with the largest objective is kept (of equal ones the
    first). Then, up to ``promotions`` times, the job that loses most against its earliest start goes
    before the other jobs of the best plan's program, and the new plan and program are kept where the
    objective is larger. At last, up to ``trials`` times, a job without a place is put where it gains
    most over served demand, the last program lays the apps around it, and the plan is kept where its
    objective is larger.

    Parameters
    ----------
    programs : int64[N + 1, M]
        See `run_program`; -1 fills up. The last one is for outbidding and lays apps only.
    strict : bool
        Starts never decrease along a program and a job without a place ends it.
    base : uint64[T, W]
        GPUs that are available and free of inherited work (and of reservations).
    jobs : int64[J, 9]
        `START` and `FIRST` are those of inherited work, else -1; of a job with several sizes one that fits.
    options : int64[N, 4]
        The sizes of the jobs.
    allowed : uint64[C, W]
        First GPUs of blocks of ``2**c`` GPUs.
    weight_sum : int64[T + 1]
        Sums of the value weights of the steps before.
    demand : int64[R, T]
    apps : int64[R, 7]
        `LEFT` is the whole budget.
    held : uint64[R, W]
        GPUs held before step 0.

    Returns
    -------
    jobs : int64[J, 9]
        With `START` and `FIRST` of the best plan, and the size (`SIZE`, `DURATION`, `PRIORITY`, `LATEST`) that it
        chose where a job has several; a job without a place keeps the size it came with.
    hold : uint64[R, T + 1, W]
    worth : int
        Its objective.
    """
    T, W = base.shape
    J, R = jobs.shape[0], demand.shape[0]
    longest = 1
    for option in range(options.shape[0]):
        longest = max(longest, min(T, options[option, O_DURATION]))
    # one word is read faster step by step than a table of windows is kept up to date
    K = 1 if W == 1 else level_of(longest) + 1
    M, N = programs.shape[1], programs.shape[0] - 1
    targets = np.empty((3, R, T), np.int64)
    program = np.full(2 * R + M, -1, np.int64)
    clean = np.empty((K, T, W), np.uint64)
    must_hold = np.zeros((R, T + 1, W), np.uint64)
    must = np.zeros((3, R, T), np.int64)
    program[0] = LOWEST
    for r in range(R):
        n = max(apps[r, N_HELD], 0)
        must[LETS, r, 0] = n
        demand_curve(demand[r], apps[r], targets[CURVE, r])
        for t in range(T):
            targets[HELD, r, t] = max(min(apps[r, MINIMUM], n), n - apps[r, CAP] * (t + 1))
            targets[LEAST, r, t] = apps[r, MINIMUM]
        for w in range(W):
            must_hold[r, 0, w] = held[r, w]
        program[1 + r] = J + 4 * r + HELD
        program[1 + R + r] = J + 4 * r + LEAST
    for t in range(T):
        for w in range(W):
            clean[0, t, w] = base[t, w]
    double(clean)
    free = np.empty((K, T, W), np.uint64)
    hold = np.empty((R, T + 1, W), np.uint64)
    best_hold = np.empty((R, T + 1, W), np.uint64)
    ledger = np.empty((3, R, T), np.int64)
    must_apps, now_apps = apps.copy(), apps.copy()
    now, best_jobs = jobs.copy(), jobs.copy()
    known = np.empty((allowed.shape[0], T + 1), np.int64)
    room = np.empty(T, np.int64)
    spare = np.empty(T, np.int64)
    served = np.zeros(T, np.int64)
    tried = np.zeros(J + 1, np.int64)
    out = np.empty((2, W), np.uint64)
    best = i64(0)
    current = np.full(M, -1, np.int64)
    # turn -1 is what apps must hold, then come the passes, the promotions, the trials
    last_pass, last_promotion = N - 1, N - 1 + promotions
    turn = -1
    while turn <= last_promotion + trials:
        chosen = program
        first = i64(-1)
        if turn <= last_promotion:
            copy_plan(jobs, must_hold, now, hold)
            if 0 <= turn <= last_pass:
                chosen = programs[turn]
            elif turn > last_pass:
                loser = worst_loss(best_jobs, options, weight_sum, tried)
                if loser < 0:
                    turn = last_promotion + 1
                    continue
                tried[loser] = 1
                promote(current, loser, J, program)
        else:
            if R == 0:
                break
            if turn == last_promotion + 1:
                # from here on ``clean`` is free of the best plan's batch work
                tried[0] = 1
                for j in range(J):
                    if best_jobs[j, START] >= 0 and jobs[j, START] < 0:
                        end = min(T, best_jobs[j, START] + best_jobs[j, DURATION])
                        take(clean, best_jobs[j, START], end, best_jobs[j, FIRST], best_jobs[j, SIZE])
            copy_plan(best_jobs, must_hold, now, hold)
            first = outbid(
                programs[0],
                tried,
                now,
                options,
                apps,
                clean,
                served,
                best_hold,
                weight_sum,
                allowed,
                spare,
                out,
            )
            if first < 0:
                break
            chosen = programs[N]
        attempt(
            chosen,
            strict,
            first,
            targets,
            clean,
            must_hold,
            must,
            must_apps,
            free,
            hold,
            ledger,
            now_apps,
            now,
            options,
            weight_sum,
            allowed,
            known,
            room,
            out,
        )
        if turn < 0:
            copy_state(free, hold, ledger, now_apps, clean, must_hold, must, must_apps)
        else:
            worth = plan_worth(now, apps, ledger, demand, weight_sum)
            if turn == 0 or worth > best:
                best = worth
                copy_plan(now, hold, best_jobs, best_hold)
                demand_served(ledger, must, demand, served)
                if first >= 0:
                    end = min(T, now[first, START] + now[first, DURATION])
                    take(clean, now[first, START], end, now[first, FIRST], now[first, SIZE])
                else:
                    for k in range(M):
                        current[k] = chosen[k]
        turn += 1
    return best_jobs, best_hold, best
