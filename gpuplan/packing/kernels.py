"""The packing kernel: an event-driven simulator of one node, arrays in, arrays out, nothing validated.

Shapes used throughout: ``J`` tasks in order of arrival, ``M`` models, ``G`` GPUs, ``L`` lines (one, or one per GPU),
``X`` places for tasks in the system, ``C`` parts of copies of models (one per GPU of a copy). Times are microseconds,
memory is bytes, both int64; ``NEVER`` (2**60) is an instant that never comes, ``-1`` means "none".

The simulator jumps from one instant to the next at which something can change. At one instant: what ends (releases,
transfers, saves, restores, services), loads begin, memory that ran over, expiries, arrivals and deadlines, placement.
What takes no time ends at the instant of its start: the same instant comes again.

A copy of a *wide* model lies on several GPUs at once; so does a task of it. Tasks on one GPU are listed there, those
that run in a heap by what they have left on the clock of that GPU; the few wide ones are in a list of their own and
count what they have left themselves, at the least speed of their GPUs.

State travels in tables; their columns are named below, their widths beside the names: whoever makes a table takes it
from there. A task in the system has a row of ``w`` (its place ``x``), which the next one takes when it has left.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from gpuplan.jit import njit_kernel, njit_leaf, njit_step

Ints = npt.NDArray[np.int64]

#: A 64-bit whole number: numpy's, or Python's where nothing is compiled.
Number = Any

i64 = np.int64

NEVER = 1 << 60
# a microsecond of service at full speed
SCALE = 1 << 20
# clocks of GPUs start again from 0 before their numbers grow too large
REBASE = 1 << 61
# a byte of a transfer: rates are per second, time is in microseconds
PER_BYTE = 1_000_000

# (2**k) % 37 differs for k = 0 .. 35: the index of a lone bit by one remainder
_BIT = np.zeros(37, np.int64)
for _k in range(32):
    _BIT[(1 << _k) % 37] = _k
WORD = (1 << 32) - 1

# pieces of policies
ROUND_ROBIN, ROUND_ROBIN_SKIP, FIRST_FIT, BEST_FIT, WORST_FIT, PREDICTED_FIT, FGD = range(7)
FIFO, BACKFILL, SHORTEST, BY_MODEL = range(4)
LRU, LFU, COST, KEEP_ALIVE = range(4)
PREEMPT_NEVER, PREEMPT_ALWAYS, PREEMPT_THRESHOLD = range(3)
NO_CONTENTION, SHARING, SLOWDOWN = range(3)

# ``s`` int64[SETTING_COLUMNS]: the scenario and the policy, ...
(
    HORIZON,
    MEMORY,
    HOST_RATE,
    DISK_RATE,
    RELEASE_US,
    GPU_TASKS,
    HOST_CACHE,
    ON_FREE,
    PREEMPT,
    THRESHOLD_US,
    SAVE_US,
    RESTORE_US,
    CONTENTION,
    RETRY_MOST,
    RETRY_US,
    PLACEMENT,
    ORDER,
    EVICTION,
    DEPTH,
    ALIVE_US,
    LEAST_RANK,
    WIDEST,
) = range(22)
# ... where the simulation is, ...
T, PAUSED, ARRIVED, DEADLINES, FRESH, STAMP, WAITING_NOW, ATTACHED_NOW = range(22, 30)
# ... the GPU and the copy of the last placement, whether lines have to be looked at once more at this instant, ...
LAST_GPU, LAST_COPY, ONCE_MORE = range(30, 33)
# ... how much of the tables is in use, ...
N_STAGES, N_COPIES, N_PARTS, N_BREACHES, N_PLACES, FREE_PLACE, N_MOVING, N_STARTABLE = range(33, 41)
# ... when transfers were last brought up to date and when the next one ends, ...
MOVED_AT, NEXT_MOVE = range(41, 43)
# ... first and last of what waits for a fixed time: leaving copies, idle ones, saves, restores, returns, ...
LEAVING, LEAVING_END, IDLE, IDLE_END, SAVES, SAVES_END, RESTORES, RESTORES_END, RETURNS, RETURNS_END = range(
    43, 53
)
# ... first and last of the wide tasks on GPUs, ...
WIDE, WIDE_END = range(53, 55)
# ... and the last position that backfill looked at in vain (-1: it has to look), where there is one line
REACH = 55
SETTING_COLUMNS = 56

# ``tasks`` int64[TASK_COLUMNS, J], a column per task: what it asks for and where it stands in line, ...
A_ARRIVAL, A_MODEL, A_PRIORITY, A_SERVICE, A_PREDICTED, A_CAME, A_MADE, A_DEADLINE, A_REJECTED, A_WHERE = (
    range(10)
)
# ... its position and that of its group (line, priority, model) among tasks sorted by group, and its place
A_GROUPED, A_GROUP_FROM, A_GROUP_TO, A_PLACE = range(10, 14)
TASK_COLUMNS = 14
# ``w`` int64[X, WORK_COLUMNS], a row per task in the system: what it asks for, ...
TASK, MODEL, PRIORITY, SERVICE, PREDICTED, CAME, MADE, DEADLINE, LINE = range(9)
# ... how it is: stage, whether its progress is saved, whether it ever ran, failures, its copy, row of the log, ...
STAGE, KEPT, SERVED, FAILURES, COPY, ROW, WAITS, TAG, BEGAN, FOR_PLACE = range(9, 19)
# ... whether it is on several GPUs, whether it is counted as a victim of such a one, ...
IS_WIDE, TAKEN_AWAY = range(19, 21)
# ... neighbours among tasks of its GPU (or wide ones), links of the heap of running ones, next among those that wait
# for a fixed time
AFTER, BEFORE, CHILD, BESIDE, ABOVE, FOLLOWS = range(21, 27)
WORK_COLUMNS = 27
# ... and, of a wide one that runs, in the place of two links: its speed, and since when
PACE, SINCE = CHILD, BESIDE
# stages of a task in the system
QUEUED, OUTSIDE, STARTING, RUNS, SAVING, RESTORING = range(6)

# ``models`` int64[M, MODEL_COLUMNS], bytes but `WHOLE` on each GPU; the last two are a table of their own: models
# sorted by need
(
    NEED,
    TAKEN,
    ASLEEP,
    WEIGHTS,
    PER_TOKEN,
    PINNED,
    MODEL_TASKS,
    PLACED,
    IN_HOST,
    FAILED_AT,
    SPREAD,
    WHOLE,
    NEED_SORTED,
    POPULAR,
) = range(14)
MODEL_COLUMNS = 14
# ``gpus`` int64[G, GPU_COLUMNS]: ledgers (reserved; taken without KV; KV frozen; most KV of running tasks), ...
RESERVED, FIXED, FROZEN, MOST_KV, IDLE_NEED, IDLE_TAKEN, PENDING_NEED = range(7)
# ... tasks attached, running ones (wide ones count, but are not listed), and the clock of their service, ...
HELD, FIRST, LAST, ROOT, RUNNING, CLOCK, CLOCK_AT, SPEED, ENDS, RUNS_OVER, DIRTY = range(7, 18)
# ... copies that take tasks, those that may start loading, transfers
LIVE_COPIES, STARTABLE, TRANSFERS = range(18, 21)
# ... how often it changed, and for whom victims did not suffice since then
VERSION, VAIN_MODEL, VAIN_RANK = range(21, 24)
# ... and what is thought of while a wide task is placed: how a part fits, two scores (or victims), whether one goes
# there, victims counted as gone, bytes counted as free
JUDGED, SCORE, THEN, CHOSEN, TAKEN_HERE, GAIN = range(24, 30)
GPU_COLUMNS = 30
# ``cells`` int64[G, M, CELL_COLUMNS]: the copy that takes tasks, parts of all such copies, copies in memory, leftover,
# the version of the GPU at which a task of the model did not fit
AT, LIVE, LOADED, LEFTOVER, FAILS = range(5)
CELL_COLUMNS = 5
# ``lines`` int64[L, LINE_COLUMNS]: positions, the task that blocks it, the last task placed, followers in a row
FROM, TO, BLOCKED, PLACED_LAST, IN_A_ROW = range(5)
LINE_COLUMNS = 5

# ``c`` int64[C, COPY_COLUMNS], a row per part of a copy, in a row those of one copy by rising GPU; the first is the
# copy (`C_HEAD`, and how many there are `C_WIDTH`): what it is and how, ...
(
    C_MODEL,
    C_GPU,
    C_STATE,
    C_HELD,
    C_HEAD,
    C_WIDTH,
    C_USED,
    C_LEFT,
    C_RATE,
    C_DISK,
    C_LIVE,
    C_CLAIMER,
    C_FOR,
    C_DUE,
    C_VICTIMS,
) = range(15)
# ... the next that leaves, neighbours among idle ones, ...
C_FOLLOWS, C_AFTER, C_BEFORE = range(15, 18)
# ... how many of its parts are still transferred, its column in the log
C_TO_COME, C_LOG = range(18, 20)
COPY_COLUMNS = 20
# states of a copy (a pending one waits for memory, a going one for its last task to be saved)
PENDING, LOADING, READY, GOING, LEAVES, GONE = range(6)

# rows of ``stages`` int64[9, .], ``copies`` int64[9, .], ``breaches`` int64[4, .]: columns of the results
L_TASK, L_GPU, L_KIND, L_OUTCOME, L_START, L_END, L_FROZEN, L_ATTEMPT, L_COPY = range(9)
STAGE_ROWS = 9
LOAD, RUN, SAVE, RESTORE = range(4)
WENT_ON, PREEMPTED, OUT_OF_MEMORY, CUT = range(4)
K_MODEL, K_GPU, K_CLAIMED, K_LOAD, K_READY, K_EVICTED, K_RELEASED, K_DISK, K_TASK = range(9)
COPY_ROWS = 9
B_TIME, B_GPU, B_TASK, B_MODEL = range(4)
BREACH_ROWS = 4
# rows of ``fate`` int64[3, J]
F_STATE, F_LEFT, F_FAILURES = range(3)
DONE, REJECTED, FAILED, TIMED_OUT, WAITING, ON_GPU = range(6)
FATE_ROWS = 3

# answers of `choose_wide` that are no copy: a new one on the GPUs that are `CHOSEN`, or none
NEW_COPY, NOWHERE = -2, -1

# answers of `run_pack`
ENDED, TOO_SHORT = range(2)


# ----------------------------------------------------------- sets of positions


@njit_leaf
def words_below(n: int) -> Number:
    """Words of 32 bits that hold ``n`` bits and one behind them."""
    return (n >> 5) + 2


@njit_leaf
def join(q: Ints, n: int, p: int) -> None:
    """Position ``p`` below ``n`` becomes a member."""
    o1 = words_below(n)
    o2 = o1 + words_below(o1)
    w = p >> 5
    u = w >> 5
    q[w] |= i64(1) << (p & 31)
    q[o1 + u] |= i64(1) << (w & 31)
    q[o2 + (u >> 5)] |= i64(1) << (u & 31)


@njit_leaf
def part(q: Ints, n: int, p: int) -> None:
    """Position ``p`` is a member no more."""
    o1 = words_below(n)
    o2 = o1 + words_below(o1)
    w = p >> 5
    u = w >> 5
    q[w] &= ~(i64(1) << (p & 31))
    if q[w] == 0:
        q[o1 + u] &= ~(i64(1) << (w & 31))
        if q[o1 + u] == 0:
            q[o2 + (u >> 5)] &= ~(i64(1) << (u & 31))


@njit_leaf
def following(q: Ints, n: int, p: int, end: int) -> Number:
    """First member in ``p .. end - 1``; -1: none."""
    if p >= end:
        return -1
    w = p >> 5
    bits = q[w] & (WORD << (p & 31))
    if bits == 0:
        o1 = words_below(n)
        o2 = o1 + words_below(o1)
        w += 1
        u = w >> 5
        above = q[o1 + u] & (WORD << (w & 31))
        if above == 0:
            u += 1
            v = u >> 5
            top = q[o2 + v] & (WORD << (u & 31))
            while top == 0:
                v += 1
                if (v << 15) >= end:
                    return -1
                top = q[o2 + v]
            u = (v << 5) + _BIT[(top & -top) % 37]
            above = q[o1 + u]
        w = (u << 5) + _BIT[(above & -above) % 37]
        bits = q[w]
    at = (w << 5) + _BIT[(bits & -bits) % 37]
    return at if at < end else -1


# ----------------------------------------------------- the heap of running tasks


@njit_leaf
def merged(w: Ints, a: int, b: int) -> Number:
    """The root of two heaps (neither empty) put together: least tag, then the lower row, first."""
    if w[b, TAG] < w[a, TAG] or (w[b, TAG] == w[a, TAG] and w[b, TASK] < w[a, TASK]):
        a, b = b, a
    first = w[a, CHILD]
    w[b, BESIDE] = first
    if first >= 0:
        w[first, ABOVE] = b
    w[b, ABOVE] = a
    w[a, CHILD] = b
    return a


@njit_step
def merged_children(w: Ints, x: int) -> Number:
    """The root of all heaps below ``x``, which loses them; -1: there were none."""
    child = w[x, CHILD]
    w[x, CHILD] = -1
    pairs = i64(-1)
    while child >= 0:
        a = child
        b = w[a, BESIDE]
        child = i64(-1)
        w[a, ABOVE] = -1
        w[a, BESIDE] = -1
        if b >= 0:
            child = w[b, BESIDE]
            w[b, BESIDE] = -1
            w[b, ABOVE] = -1
            a = merged(w, a, b)
        w[a, BESIDE] = pairs
        pairs = a
    root = i64(-1)
    while pairs >= 0:
        a = pairs
        pairs = w[a, BESIDE]
        w[a, BESIDE] = -1
        root = a if root < 0 else merged(w, root, a)
    return root


@njit_step
def leave_heap(gpus: Ints, w: Ints, g: int, x: int) -> None:
    """Task ``x`` runs no more; its clock is up to date, its tag becomes what it has left."""
    if gpus[g, ROOT] == x:
        gpus[g, ROOT] = merged_children(w, x)
    else:
        up = w[x, ABOVE]
        beside = w[x, BESIDE]
        if w[up, CHILD] == x:
            w[up, CHILD] = beside
        else:
            w[up, BESIDE] = beside
        if beside >= 0:
            w[beside, ABOVE] = up
        w[x, BESIDE] = -1
        below = merged_children(w, x)
        if below >= 0:
            gpus[g, ROOT] = merged(w, gpus[g, ROOT], below)
    w[x, TAG] -= gpus[g, CLOCK]


@njit_leaf
def settle(gpus: Ints, w: Ints, g: int, t: int) -> None:
    """Bring the clock of a GPU's service up to ``t``."""
    if gpus[g, ROOT] >= 0:
        gpus[g, CLOCK] += gpus[g, SPEED] * (t - gpus[g, CLOCK_AT])
        if gpus[g, CLOCK] >= REBASE:
            x = gpus[g, FIRST]
            while x >= 0:
                if w[x, STAGE] == RUNS:
                    w[x, TAG] -= gpus[g, CLOCK]
                x = w[x, AFTER]
            gpus[g, CLOCK] = 0
    else:
        gpus[g, CLOCK] = 0
    gpus[g, CLOCK_AT] = t


# -------------------------------------------------------------------------- memory


@njit_leaf
def lies_on(c: Ints, i: int, g: int) -> Number:
    """Whether a part of copy ``i`` is on GPU ``g``."""
    k = i
    end = i + c[i, C_WIDTH]
    while k < end and c[k, C_GPU] != g:
        k += 1
    return k < end


@njit_leaf
def next_wide(w: Ints, c: Ints, x: int, g: int) -> Number:
    """The first of the wide tasks from ``x`` on that is on GPU ``g``; -1: none."""
    while x >= 0 and not lies_on(c, w[x, COPY], g):
        x = w[x, AFTER]
    return x


@njit_leaf
def left_of(gpus: Ints, w: Ints, g: int, x: int, t: int) -> Number:
    """What a task on GPU ``g`` has left, in microseconds x `SCALE`."""
    if w[x, STAGE] != RUNS:
        return w[x, TAG]
    if w[x, IS_WIDE]:
        return w[x, TAG] - w[x, PACE] * (t - w[x, SINCE])
    return w[x, TAG] - gpus[g, CLOCK] - gpus[g, SPEED] * (t - gpus[g, CLOCK_AT])


@njit_leaf
def done_of(w: Ints, x: int, left: int) -> Number:
    """Whole microseconds of service that a task has had."""
    return w[x, SERVICE] - ((left + SCALE - 1) >> 20)


@njit_leaf
def cache_of(models: Ints, w: Ints, x: int, left: int) -> Number:
    """KV of a task in bytes, on each of its GPUs."""
    per_token = models[w[x, MODEL], PER_TOKEN]
    if per_token == 0:
        return i64(0)
    tokens = w[x, CAME]
    if w[x, SERVICE] > 0:
        tokens += w[x, MADE] * done_of(w, x, left) // w[x, SERVICE]
    return per_token * tokens


@njit_step
def growing(s: Ints, gpus: Ints, models: Ints, w: Ints, c: Ints, g: int, t: int) -> Number:
    """KV of the running tasks of a GPU at ``t``."""
    total = i64(0)
    if gpus[g, MOST_KV] == 0:
        return total
    passed = gpus[g, CLOCK] + gpus[g, SPEED] * (t - gpus[g, CLOCK_AT])
    x = gpus[g, FIRST]
    while x >= 0:
        if w[x, STAGE] == RUNS:
            total += cache_of(models, w, x, w[x, TAG] - passed)
        x = w[x, AFTER]
    if s[WIDE] >= 0:
        total += growing_wide(s, gpus, models, w, c, g, t)
    return total


@njit_step
def growing_wide(s: Ints, gpus: Ints, models: Ints, w: Ints, c: Ints, g: int, t: int) -> Number:
    """KV of the running wide tasks of a GPU at ``t``."""
    total = i64(0)
    x = next_wide(w, c, s[WIDE], g)
    while x >= 0:
        if w[x, STAGE] == RUNS:
            total += cache_of(models, w, x, left_of(gpus, w, g, x, t))
        x = next_wide(w, c, w[x, AFTER], g)
    return total


@njit_leaf
def actual(s: Ints, gpus: Ints, models: Ints, w: Ints, c: Ints, g: int, t: int) -> Number:
    """Bytes that fill the memory of a GPU at ``t``."""
    return gpus[g, FIXED] + gpus[g, FROZEN] + growing(s, gpus, models, w, c, g, t)


@njit_leaf
def room_of(s: Ints, gpus: Ints, models: Ints, w: Ints, c: Ints, g: int, t: int) -> Number:
    """Bytes into which a model has to fit, by what admission looks at."""
    if s[ON_FREE]:
        return monitored_room(s, gpus, models, w, c, g, t)
    return s[MEMORY] - gpus[g, RESERVED]


@njit_step
def monitored_room(s: Ints, gpus: Ints, models: Ints, w: Ints, c: Ints, g: int, t: int) -> Number:
    """Bytes that are free on a GPU, less what those need that wait for memory."""
    return s[MEMORY] - actual(s, gpus, models, w, c, g, t) - gpus[g, PENDING_NEED]


@njit_leaf
def speed_of(beta: float, s: Ints, n: int) -> Number:
    """Service x `SCALE` per microsecond of each of ``n`` tasks that run on a GPU."""
    speed = i64(SCALE)
    if n > 1 and s[CONTENTION] == SHARING:
        speed = i64(SCALE // n)
    elif n > 1 and s[CONTENTION] == SLOWDOWN:
        speed = i64(SCALE / (1.0 + beta * (n - 1)))
    return max(speed, i64(1))


@njit_step
def set_paces(beta: float, s: Ints, gpus: Ints, w: Ints, c: Ints, t: int) -> None:
    """After all changes of an instant: the speed of wide tasks; where it changed, their GPUs have changed too."""
    for g in range(len(gpus)):
        if gpus[g, DIRTY] and gpus[g, RUNNING] > 0:
            settle(gpus, w, g, t)
            gpus[g, SPEED] = speed_of(beta, s, gpus[g, RUNNING])
    x = s[WIDE]
    while x >= 0:
        if w[x, STAGE] == RUNS:
            i = w[x, COPY]
            pace = gpus[c[i, C_GPU], SPEED]
            for k in range(i + 1, i + c[i, C_WIDTH]):
                pace = min(pace, gpus[c[k, C_GPU], SPEED])
            if pace != w[x, PACE]:
                w[x, TAG] -= w[x, PACE] * (t - w[x, SINCE])
                w[x, PACE] = pace
                w[x, SINCE] = t
                touch(gpus, c, i)
        x = w[x, AFTER]


@njit_leaf
def touch(gpus: Ints, c: Ints, i: int) -> None:
    """Something has changed on all GPUs of copy ``i``."""
    gpus[c[i, C_GPU], DIRTY] = 1
    if c[i, C_WIDTH] > 1:
        for k in range(i + 1, i + c[i, C_WIDTH]):
            gpus[c[k, C_GPU], DIRTY] = 1


@njit_step
def refresh_wide(s: Ints, gpus: Ints, w: Ints, c: Ints, g: int) -> None:
    """The next end of service of a GPU, its wide tasks included."""
    x = next_wide(w, c, s[WIDE], g)
    while x >= 0:
        if w[x, STAGE] == RUNS:
            left = max(w[x, TAG], 0)
            gpus[g, ENDS] = min(gpus[g, ENDS], w[x, SINCE] + (left + w[x, PACE] - 1) // w[x, PACE])
        x = next_wide(w, c, w[x, AFTER], g)


@njit_step
def refresh(beta: float, s: Ints, gpus: Ints, models: Ints, w: Ints, c: Ints, g: int, t: int) -> None:
    """After all changes of an instant: the speed of service, the next end, and when memory runs over before that."""
    settle(gpus, w, g, t)
    gpus[g, DIRTY] = 0
    gpus[g, VERSION] += 1
    gpus[g, VAIN_MODEL] = -1
    gpus[g, ENDS] = NEVER
    gpus[g, RUNS_OVER] = NEVER
    n = gpus[g, RUNNING]
    if n == 0:
        return
    speed = speed_of(beta, s, n)
    gpus[g, SPEED] = speed
    if gpus[g, ROOT] >= 0:
        left = max(w[gpus[g, ROOT], TAG] - gpus[g, CLOCK], 0)
        gpus[g, ENDS] = t + (left + speed - 1) // speed
    if s[WIDE] >= 0:
        refresh_wide(s, gpus, w, c, g)
    free = s[MEMORY] - gpus[g, FIXED] - gpus[g, FROZEN]
    if gpus[g, MOST_KV] <= free:
        return
    low = t
    high = gpus[g, ENDS] - 1
    if (
        high <= t
        or growing(s, gpus, models, w, c, g, high) <= free
        or growing(s, gpus, models, w, c, g, t) > free
    ):
        return
    while high - low > 1:
        middle = (low + high) >> 1
        if growing(s, gpus, models, w, c, g, middle) > free:
            high = middle
        else:
            low = middle
    gpus[g, RUNS_OVER] = high


# -------------------------------------------------------------------------- copies


@njit_leaf
def begin_idle(s: Ints, gpus: Ints, models: Ints, c: Ints, i: int) -> None:
    """A ready copy has no task any more."""
    m = c[i, C_MODEL]
    if models[m, PINNED]:
        return
    gpus[c[i, C_GPU], IDLE_NEED] += models[m, NEED]
    gpus[c[i, C_GPU], IDLE_TAKEN] += models[m, TAKEN]
    if c[i, C_WIDTH] > 1:
        for k in range(i + 1, i + c[i, C_WIDTH]):
            gpus[c[k, C_GPU], IDLE_NEED] += models[m, NEED]
            gpus[c[k, C_GPU], IDLE_TAKEN] += models[m, TAKEN]
    if s[ALIVE_US] < NEVER:
        last = s[IDLE_END]
        c[i, C_BEFORE] = last
        c[i, C_AFTER] = -1
        if last >= 0:
            c[last, C_AFTER] = i
        else:
            s[IDLE] = i
        s[IDLE_END] = i


@njit_leaf
def end_idle(s: Ints, gpus: Ints, models: Ints, c: Ints, i: int) -> None:
    """An idle copy gets a task, or goes."""
    m = c[i, C_MODEL]
    if models[m, PINNED]:
        return
    gpus[c[i, C_GPU], IDLE_NEED] -= models[m, NEED]
    gpus[c[i, C_GPU], IDLE_TAKEN] -= models[m, TAKEN]
    if c[i, C_WIDTH] > 1:
        for k in range(i + 1, i + c[i, C_WIDTH]):
            gpus[c[k, C_GPU], IDLE_NEED] -= models[m, NEED]
            gpus[c[k, C_GPU], IDLE_TAKEN] -= models[m, TAKEN]
    if s[ALIVE_US] < NEVER:
        before = c[i, C_BEFORE]
        after = c[i, C_AFTER]
        if before >= 0:
            c[before, C_AFTER] = after
        else:
            s[IDLE] = after
        if after >= 0:
            c[after, C_BEFORE] = before
        else:
            s[IDLE_END] = before


@njit_leaf
def add_live(gpus: Ints, cells: Ints, c: Ints, i: int) -> None:
    """A copy takes tasks from now on."""
    for k in range(i, i + c[i, C_WIDTH]):
        g = c[k, C_GPU]
        last = gpus[g, LIVE_COPIES]
        c[k, C_LIVE] = last
        cells[g, last, LIVE] = k
        gpus[g, LIVE_COPIES] = last + 1
        cells[g, c[i, C_MODEL], AT] = i


@njit_leaf
def drop_live(s: Ints, gpus: Ints, cells: Ints, c: Ints, i: int) -> None:
    """A copy takes no more tasks."""
    for k in range(i, i + c[i, C_WIDTH]):
        g = c[k, C_GPU]
        last = gpus[g, LIVE_COPIES] - 1
        other = cells[g, last, LIVE]
        cells[g, c[k, C_LIVE], LIVE] = other
        c[other, C_LIVE] = c[k, C_LIVE]
        gpus[g, LIVE_COPIES] = last
        cells[g, c[i, C_MODEL], AT] = -1
    if c[i, C_WIDTH] > 1:
        s[STAMP] += 1  # one that did not take tasks on one GPU may have been in the way on another


@njit_step
def evict(s: Ints, gpus: Ints, w: Ints, c: Ints, copies: Ints, i: int, x: int, t: int) -> None:
    """A copy without tasks, live no more, begins to give its memory back, for the task at ``x`` (-1: nobody)."""
    c[i, C_STATE] = LEAVES
    c[i, C_FOR] = x
    c[i, C_DUE] = t + s[RELEASE_US]
    c[i, C_FOLLOWS] = -1
    if s[LEAVING_END] >= 0:
        c[s[LEAVING_END], C_FOLLOWS] = i
    else:
        s[LEAVING] = i
    s[LEAVING_END] = i
    copies[K_EVICTED, c[i, C_LOG]] = t
    if x >= 0:
        w[x, WAITS] += 1


@njit_step
def next_out(
    s: Ints, gpus: Ints, models: Ints, cells: Ints, c: Ints, g: int, t: int, key: int, row: int
) -> Number:
    """The next copy of a GPU to evict after ``(key, row)`` in the order of the policy; -1: none.

    A copy is idle where it has no other tasks than those that are counted as its victims.
    """
    best = i64(-1)
    best_key = i64(0)
    best_row = i64(0)
    for k in range(gpus[g, LIVE_COPIES]):
        i = c[cells[g, k, LIVE], C_HEAD]
        m = c[i, C_MODEL]
        if c[i, C_STATE] != READY or c[i, C_HELD] > c[i, C_VICTIMS] or models[m, PINNED]:
            continue
        mine = eviction_key(s, models, c, i, t)
        if mine < key or (mine == key and m <= row):
            continue
        if best < 0 or mine < best_key or (mine == best_key and m < best_row):
            best = i
            best_key = mine
            best_row = m
    return best


@njit_leaf
def eviction_key(s: Ints, models: Ints, c: Ints, i: int, t: int) -> Number:
    """What the eviction policy sorts idle copies by."""
    m = c[i, C_MODEL]
    if s[EVICTION] == LFU:
        return models[m, PLACED]
    if s[EVICTION] == COST:
        return models[m, PLACED] * models[m, WHOLE]
    return t if c[i, C_HELD] > 0 else c[i, C_USED]


@njit_step
def evicted_need(
    s: Ints, gpus: Ints, models: Ints, cells: Ints, c: Ints, g: int, t: int, lacks: int
) -> Number:
    """What the copies reserve that would be evicted where ``lacks`` bytes are missing."""
    total = i64(0)
    key = i64(-1)
    row = i64(-1)
    while lacks > 0:
        i = next_out(s, gpus, models, cells, c, g, t, key, row)
        if i < 0:
            break
        key = eviction_key(s, models, c, i, t)
        row = c[i, C_MODEL]
        total += models[row, NEED]
        lacks -= models[row, TAKEN] if s[ON_FREE] else models[row, NEED]
    return total


@njit_step
def move(s: Ints, c: Ints, moving: Ints, t: int) -> None:
    """Bring all transfers up to ``t``."""
    passed = t - s[MOVED_AT]
    if passed > 0:
        for k in range(s[N_MOVING]):
            i = moving[k]
            c[i, C_LEFT] -= c[i, C_RATE] * passed
    s[MOVED_AT] = t


@njit_step
def share_links(s: Ints, gpus: Ints, c: Ints, moving: Ints, t: int) -> None:
    """Rates of all transfers, up to date at ``t``, and when the first of them ends."""
    from_disk = i64(0)
    for k in range(s[N_MOVING]):
        from_disk += c[moving[k], C_DISK]
    s[NEXT_MOVE] = NEVER
    for k in range(s[N_MOVING]):
        i = moving[k]
        rate = max(s[HOST_RATE] // gpus[c[i, C_GPU], TRANSFERS], 1)
        if c[i, C_DISK]:
            rate = min(rate, max(s[DISK_RATE] // from_disk, 1))
        c[i, C_RATE] = rate
        s[NEXT_MOVE] = min(s[NEXT_MOVE], t + max((c[i, C_LEFT] + rate - 1) // rate, 0))


# --------------------------------------------------------------- stages of a task


@njit_leaf
def log_stage(s: Ints, w: Ints, c: Ints, stages: Ints, x: int, kind: int, t: int) -> None:
    """A stage of a task on its copy begins."""
    n = s[N_STAGES]
    i = w[x, COPY]
    stages[L_TASK, n] = w[x, TASK]
    stages[L_GPU, n] = c[i, C_GPU]
    stages[L_KIND, n] = kind
    stages[L_OUTCOME, n] = CUT
    stages[L_START, n] = t
    stages[L_END, n] = NEVER
    stages[L_FROZEN, n] = NEVER if kind == RESTORE else t
    stages[L_ATTEMPT, n] = w[x, FAILURES]
    stages[L_COPY, n] = c[i, C_LOG]
    w[x, ROW] = n
    s[N_STAGES] = n + 1


@njit_leaf
def end_stage(w: Ints, stages: Ints, x: int, outcome: int, t: int) -> None:
    """The stage of a task ends."""
    n = w[x, ROW]
    stages[L_END, n] = t
    stages[L_OUTCOME, n] = outcome
    if stages[L_FROZEN, n] == NEVER:
        stages[L_FROZEN, n] = t


@njit_step
def run(s: Ints, gpus: Ints, models: Ints, w: Ints, c: Ints, stages: Ints, x: int, t: int) -> None:
    """A task is served from now on."""
    i = w[x, COPY]
    g = c[i, C_GPU]
    end_stage(w, stages, x, WENT_ON, t)
    log_stage(s, w, c, stages, x, RUN, t)
    w[x, STAGE] = RUNS
    w[x, SERVED] = 1
    w[x, BEGAN] = t
    if w[x, TAG] <= 0:
        gpus[g, ENDS] = t
    most = models[w[x, MODEL], PER_TOKEN] * (w[x, CAME] + w[x, MADE])
    if w[x, IS_WIDE]:
        w[x, PACE] = 0  # until the speeds of its GPUs are known
        w[x, SINCE] = t
        for k in range(i, i + c[i, C_WIDTH]):
            count_running(gpus, c[k, C_GPU], 1, most)
        return
    settle(gpus, w, g, t)
    w[x, TAG] += gpus[g, CLOCK]
    w[x, CHILD] = -1
    w[x, BESIDE] = -1
    w[x, ABOVE] = -1
    gpus[g, ROOT] = x if gpus[g, ROOT] < 0 else merged(w, gpus[g, ROOT], x)
    count_running(gpus, g, 1, most)


@njit_leaf
def count_running(gpus: Ints, g: int, more: int, bytes: int) -> None:
    """Running tasks of a GPU are more by one that may have so much KV, or fewer."""
    gpus[g, RUNNING] += more
    gpus[g, MOST_KV] += bytes
    gpus[g, DIRTY] = 1


@njit_step
def stop(s: Ints, gpus: Ints, models: Ints, w: Ints, c: Ints, x: int, t: int) -> None:
    """A task runs no more; its tag becomes what it has left."""
    i = w[x, COPY]
    most = models[w[x, MODEL], PER_TOKEN] * (w[x, CAME] + w[x, MADE])
    if w[x, IS_WIDE]:
        w[x, TAG] -= w[x, PACE] * (t - w[x, SINCE])
        for k in range(i, i + c[i, C_WIDTH]):
            count_running(gpus, c[k, C_GPU], -1, -most)
        return
    g = c[i, C_GPU]
    settle(gpus, w, g, t)
    leave_heap(gpus, w, g, x)
    count_running(gpus, g, -1, -most)


@njit_leaf
def freeze(gpus: Ints, c: Ints, i: int, bytes: int) -> None:
    """KV on each GPU of copy ``i`` that does not grow is more by ``bytes``."""
    gpus[c[i, C_GPU], FROZEN] += bytes
    gpus[c[i, C_GPU], DIRTY] = 1
    if c[i, C_WIDTH] > 1:
        for k in range(i + 1, i + c[i, C_WIDTH]):
            gpus[c[k, C_GPU], FROZEN] += bytes
            gpus[c[k, C_GPU], DIRTY] = 1


@njit_step
def start(s: Ints, gpus: Ints, models: Ints, w: Ints, c: Ints, stages: Ints, x: int, t: int) -> None:
    """A task whose copy is ready and whose waits are over is served, or restored before."""
    if not w[x, KEPT]:
        run(s, gpus, models, w, c, stages, x, t)
        return
    w[x, STAGE] = RESTORING
    w[x, BEGAN] = t
    stages[L_FROZEN, w[x, ROW]] = t
    freeze(gpus, c, w[x, COPY], cache_of(models, w, x, w[x, TAG]))
    w[x, FOLLOWS] = -1
    if s[RESTORES_END] >= 0:
        w[s[RESTORES_END], FOLLOWS] = x
    else:
        s[RESTORES] = x
    s[RESTORES_END] = x


@njit_step
def waited(s: Ints, gpus: Ints, models: Ints, w: Ints, c: Ints, stages: Ints, x: int, t: int) -> None:
    """One of the things that the task at ``x`` waits for is over (-1: nobody waits)."""
    if x < 0:
        return
    w[x, WAITS] -= 1
    if w[x, WAITS] > 0:
        return
    i = w[x, COPY]
    if c[i, C_STATE] == PENDING and c[i, C_CLAIMER] == x:
        gpus[c[i, C_GPU], STARTABLE] += 1
        s[N_STARTABLE] += 1
    elif c[i, C_STATE] == READY:
        start(s, gpus, models, w, c, stages, x, t)


@njit_step
def attach(s: Ints, gpus: Ints, w: Ints, c: Ints, x: int, i: int) -> None:
    """A task belongs to copy ``i``."""
    w[x, COPY] = i
    w[x, TAKEN_AWAY] = 0
    c[i, C_HELD] += 1
    s[ATTACHED_NOW] += 1
    if c[i, C_WIDTH] > 1:
        attach_wide(s, gpus, w, c, x, i)
        return
    g = c[i, C_GPU]
    w[x, IS_WIDE] = 0
    last = gpus[g, LAST]
    w[x, BEFORE] = last
    w[x, AFTER] = -1
    if last >= 0:
        w[last, AFTER] = x
    else:
        gpus[g, FIRST] = x
    gpus[g, LAST] = x
    gpus[g, HELD] += 1


@njit_step
def attach_wide(s: Ints, gpus: Ints, w: Ints, c: Ints, x: int, i: int) -> None:
    """A task that belongs to copy ``i`` joins the list of wide ones, and counts on all its GPUs."""
    w[x, IS_WIDE] = 1
    last = s[WIDE_END]
    w[x, BEFORE] = last
    w[x, AFTER] = -1
    if last >= 0:
        w[last, AFTER] = x
    else:
        s[WIDE] = x
    s[WIDE_END] = x
    for k in range(i, i + c[i, C_WIDTH]):
        gpus[c[k, C_GPU], HELD] += 1


@njit_step
def detach(s: Ints, gpus: Ints, models: Ints, w: Ints, c: Ints, x: int, t: int) -> None:
    """A task leaves its copy."""
    i = w[x, COPY]
    g = c[i, C_GPU]
    before = w[x, BEFORE]
    after = w[x, AFTER]
    if before >= 0:
        w[before, AFTER] = after
    elif w[x, IS_WIDE]:
        s[WIDE] = after
    else:
        gpus[g, FIRST] = after
    if after >= 0:
        w[after, BEFORE] = before
    elif w[x, IS_WIDE]:
        s[WIDE_END] = before
    else:
        gpus[g, LAST] = before
    gpus[g, HELD] -= 1
    if w[x, IS_WIDE]:
        for k in range(i + 1, i + c[i, C_WIDTH]):
            gpus[c[k, C_GPU], HELD] -= 1
    s[ATTACHED_NOW] -= 1
    w[x, COPY] = -1
    c[i, C_HELD] -= 1
    c[i, C_USED] = t
    if c[i, C_HELD] == 0 and c[i, C_STATE] == READY:
        begin_idle(s, gpus, models, c, i)


@njit_leaf
def gone(s: Ints, w: Ints, fate: Ints, x: int, how: int, t: int) -> None:
    """A task leaves the system; its place is free."""
    fate[F_STATE, w[x, TASK]] = how
    fate[F_LEFT, w[x, TASK]] = t
    w[x, FOLLOWS] = s[FREE_PLACE]
    s[FREE_PLACE] = x


@njit_step
def enter_line(s: Ints, tasks: Ints, w: Ints, q: Ints, grouped: Ints, fate: Ints, x: int, t: int) -> None:
    """A task joins its line, unless its deadline has passed and it was never served."""
    j = w[x, TASK]
    w[x, STAGE] = QUEUED
    if w[x, DEADLINE] <= t and not w[x, SERVED]:
        gone(s, w, fate, x, TIMED_OUT, t)
        return
    join(q, tasks.shape[1], tasks[A_WHERE, j])
    if tasks[A_WHERE, j] < s[REACH]:
        s[REACH] = -1
    if s[ORDER] == BY_MODEL:
        join(grouped, tasks.shape[1], tasks[A_GROUPED, j])
    s[WAITING_NOW] += 1


@njit_leaf
def leave_line(s: Ints, tasks: Ints, w: Ints, q: Ints, grouped: Ints, x: int) -> None:
    """A task waits no more."""
    j = w[x, TASK]
    part(q, tasks.shape[1], tasks[A_WHERE, j])
    if tasks[A_WHERE, j] <= s[REACH]:
        s[REACH] = -1
    if s[ORDER] == BY_MODEL:
        part(grouped, tasks.shape[1], tasks[A_GROUPED, j])
    s[WAITING_NOW] -= 1


@njit_step
def fail(
    s: Ints, gpus: Ints, models: Ints, w: Ints, c: Ints, stages: Ints, fate: Ints, x: int, t: int
) -> None:
    """A task on a GPU fails for memory: all its progress is lost, and it comes back later, or never."""
    if w[x, STAGE] == RUNS:
        stop(s, gpus, models, w, c, x, t)
    elif w[x, STAGE] == RESTORING:
        freeze(gpus, c, w[x, COPY], -cache_of(models, w, x, w[x, TAG]))
        forget_restore(s, w, x)
    elif w[x, WAITS] > 0:
        forget_waits(s, w, c, x)
    touch(gpus, c, w[x, COPY])
    end_stage(w, stages, x, OUT_OF_MEMORY, t)
    detach(s, gpus, models, w, c, x, t)
    w[x, KEPT] = 0
    w[x, TAG] = w[x, SERVICE] << 20
    w[x, FAILURES] += 1
    fate[F_FAILURES, w[x, TASK]] = w[x, FAILURES]
    if w[x, FAILURES] > s[RETRY_MOST]:
        gone(s, w, fate, x, FAILED, t)
        return
    w[x, STAGE] = OUTSIDE
    w[x, BEGAN] = t + s[RETRY_US]
    w[x, FOLLOWS] = -1
    if s[RETURNS_END] >= 0:
        w[s[RETURNS_END], FOLLOWS] = x
    else:
        s[RETURNS] = x
    s[RETURNS_END] = x


@njit_step
def forget_restore(s: Ints, w: Ints, x: int) -> None:
    """Take a task out of the list of those that are being restored."""
    before = i64(-1)
    y = s[RESTORES]
    while y != x:
        before = y
        y = w[y, FOLLOWS]
    if before >= 0:
        w[before, FOLLOWS] = w[x, FOLLOWS]
    else:
        s[RESTORES] = w[x, FOLLOWS]
    if s[RESTORES_END] == x:
        s[RESTORES_END] = before


@njit_step
def forget_waits(s: Ints, w: Ints, c: Ints, x: int) -> None:
    """Nobody saves or leaves for a task any more."""
    y = s[SAVES]
    while y >= 0:
        if w[y, FOR_PLACE] == x:
            w[y, FOR_PLACE] = -1
        y = w[y, FOLLOWS]
    i = s[LEAVING]
    while i >= 0:
        if c[i, C_FOR] == x:
            c[i, C_FOR] = -1
        i = c[i, C_FOLLOWS]
    w[x, WAITS] = 0


# ------------------------------------------------------------------ what ends


@njit_step
def end_releases(
    s: Ints, gpus: Ints, models: Ints, cells: Ints, w: Ints, c: Ints, stages: Ints, copies: Ints, t: int
) -> None:
    """Evicted copies give their memory back."""
    while s[LEAVING] >= 0 and c[s[LEAVING], C_DUE] <= t:
        i = s[LEAVING]
        s[LEAVING] = c[i, C_FOLLOWS]
        if s[LEAVING] < 0:
            s[LEAVING_END] = -1
        m = c[i, C_MODEL]
        c[i, C_STATE] = GONE
        copies[K_RELEASED, c[i, C_LOG]] = t
        for k in range(i, i + c[i, C_WIDTH]):
            g = c[k, C_GPU]
            gpus[g, RESERVED] -= models[m, NEED]
            gpus[g, FIXED] -= models[m, TAKEN]
            cells[g, m, LOADED] -= 1
            if cells[g, m, LOADED] == 0:
                cells[g, m, LEFTOVER] = 1
                gpus[g, FIXED] += models[m, ASLEEP]
            gpus[g, DIRTY] = 1
        s[FRESH] = 1
        waited(s, gpus, models, w, c, stages, c[i, C_FOR], t)


@njit_step
def end_transfers(
    s: Ints, gpus: Ints, models: Ints, w: Ints, c: Ints, moving: Ints, stages: Ints, copies: Ints, t: int
) -> None:
    """Copies of which all transfers are over are ready; their tasks start."""
    move(s, c, moving, t)
    n = i64(0)
    for k in range(s[N_MOVING]):
        part_of = moving[k]
        if c[part_of, C_LEFT] > 0:
            moving[n] = part_of
            n += 1
            continue
        g = c[part_of, C_GPU]
        gpus[g, TRANSFERS] -= 1
        i = c[part_of, C_HEAD]
        c[i, C_TO_COME] -= 1
        if c[i, C_TO_COME] > 0:
            continue
        models[c[i, C_MODEL], IN_HOST] = 1
        c[i, C_STATE] = READY
        copies[K_READY, c[i, C_LOG]] = t
        x = gpus[g, FIRST] if c[i, C_WIDTH] == 1 else s[WIDE]
        while x >= 0:
            if w[x, COPY] == i and w[x, WAITS] == 0:
                start(s, gpus, models, w, c, stages, x, t)
            x = w[x, AFTER]
    s[N_MOVING] = n
    s[FRESH] = 1
    share_links(s, gpus, c, moving, t)


@njit_step
def end_saves(
    s: Ints,
    tasks: Ints,
    gpus: Ints,
    models: Ints,
    w: Ints,
    c: Ints,
    stages: Ints,
    copies: Ints,
    q: Ints,
    grouped: Ints,
    fate: Ints,
    t: int,
) -> None:
    """Saved tasks go back to their line; copies that were to go do so with their last task."""
    while s[SAVES] >= 0 and w[s[SAVES], BEGAN] + s[SAVE_US] <= t:
        x = s[SAVES]
        s[SAVES] = w[x, FOLLOWS]
        if s[SAVES] < 0:
            s[SAVES_END] = -1
        i = w[x, COPY]
        freeze(gpus, c, i, -cache_of(models, w, x, w[x, TAG]))
        end_stage(w, stages, x, WENT_ON, t)
        detach(s, gpus, models, w, c, x, t)
        w[x, KEPT] = 1
        enter_line(s, tasks, w, q, grouped, fate, x, t)
        if c[i, C_STATE] == GOING and c[i, C_HELD] == 0:
            evict(s, gpus, w, c, copies, i, c[i, C_FOR], t)
        s[FRESH] = 1
        waited(s, gpus, models, w, c, stages, w[x, FOR_PLACE], t)


@njit_step
def end_restores(s: Ints, gpus: Ints, models: Ints, w: Ints, c: Ints, stages: Ints, t: int) -> None:
    """Restored tasks run on."""
    while s[RESTORES] >= 0 and w[s[RESTORES], BEGAN] + s[RESTORE_US] <= t:
        x = s[RESTORES]
        s[RESTORES] = w[x, FOLLOWS]
        if s[RESTORES] < 0:
            s[RESTORES_END] = -1
        freeze(gpus, c, w[x, COPY], -cache_of(models, w, x, w[x, TAG]))
        w[x, KEPT] = 0
        s[FRESH] = 1
        run(s, gpus, models, w, c, stages, x, t)


@njit_step
def end_services(
    s: Ints, gpus: Ints, models: Ints, w: Ints, c: Ints, stages: Ints, fate: Ints, t: int
) -> None:
    """Tasks of which nothing is left are done."""
    any_ends = 0
    for g in range(len(gpus)):
        if gpus[g, ENDS] > t:
            continue
        settle(gpus, w, g, t)
        while gpus[g, ROOT] >= 0 and w[gpus[g, ROOT], TAG] <= gpus[g, CLOCK]:
            end_service(s, gpus, models, w, c, stages, fate, gpus[g, ROOT], t)
        gpus[g, ENDS] = NEVER
        gpus[g, DIRTY] = 1
        s[FRESH] = 1
        any_ends = 1
    if any_ends and s[WIDE] >= 0:
        end_wide_services(s, gpus, models, w, c, stages, fate, t)


@njit_step
def end_wide_services(
    s: Ints, gpus: Ints, models: Ints, w: Ints, c: Ints, stages: Ints, fate: Ints, t: int
) -> None:
    """Wide tasks of which nothing is left are done."""
    x = s[WIDE]
    while x >= 0:
        after = w[x, AFTER]
        if w[x, STAGE] == RUNS and w[x, TAG] - w[x, PACE] * (t - w[x, SINCE]) <= 0:
            end_service(s, gpus, models, w, c, stages, fate, x, t)
        x = after


@njit_step
def end_service(
    s: Ints, gpus: Ints, models: Ints, w: Ints, c: Ints, stages: Ints, fate: Ints, x: int, t: int
) -> None:
    """A task is done."""
    stop(s, gpus, models, w, c, x, t)
    end_stage(w, stages, x, WENT_ON, t)
    detach(s, gpus, models, w, c, x, t)
    gone(s, w, fate, x, DONE, t)


@njit_step
def begin_loads(
    s: Ints,
    gpus: Ints,
    models: Ints,
    cells: Ints,
    w: Ints,
    c: Ints,
    moving: Ints,
    stages: Ints,
    copies: Ints,
    breaches: Ints,
    fate: Ints,
    t: int,
) -> None:
    """Pending copies whose waits are over start loading, or fail for memory."""
    move(s, c, moving, t)
    for g in range(len(gpus)):
        while gpus[g, STARTABLE] > 0:
            i = i64(-1)
            for k in range(gpus[g, LIVE_COPIES]):
                other = cells[g, k, LIVE]
                if c[other, C_HEAD] != other or c[other, C_STATE] != PENDING:
                    continue  # one that begins on a lower GPU has begun, or waits
                if w[c[other, C_CLAIMER], WAITS] > 0:
                    continue
                if i < 0 or c[other, C_MODEL] < c[i, C_MODEL]:
                    i = other
            m = c[i, C_MODEL]
            gpus[g, STARTABLE] -= 1
            s[N_STARTABLE] -= 1
            copies[K_LOAD, c[i, C_LOG]] = t
            from_disk = 0 if models[m, IN_HOST] and s[HOST_CACHE] else 1
            copies[K_DISK, c[i, C_LOG]] = from_disk
            s[FRESH] = 1
            fails_on = i64(-1)
            for k in range(i, i + c[i, C_WIDTH]):
                h = c[k, C_GPU]
                gpus[h, PENDING_NEED] -= models[m, NEED]
                gpus[h, DIRTY] = 1
                takes = models[m, TAKEN] - (models[m, ASLEEP] if cells[h, m, LEFTOVER] else 0)
                if fails_on < 0 and actual(s, gpus, models, w, c, h, t) + takes > s[MEMORY]:
                    fails_on = h
            if fails_on >= 0:
                fail_load(s, gpus, models, cells, w, c, stages, copies, breaches, fate, i, fails_on, t)
                continue
            c[i, C_STATE] = LOADING
            c[i, C_TO_COME] = c[i, C_WIDTH]
            for k in range(i, i + c[i, C_WIDTH]):
                h = c[k, C_GPU]
                gpus[h, FIXED] += models[m, TAKEN] - (models[m, ASLEEP] if cells[h, m, LEFTOVER] else 0)
                cells[h, m, LEFTOVER] = 0
                cells[h, m, LOADED] += 1
                c[k, C_DISK] = from_disk
                c[k, C_LEFT] = models[m, WEIGHTS] * PER_BYTE
                gpus[h, TRANSFERS] += 1
                moving[s[N_MOVING]] = k
                s[N_MOVING] += 1
    share_links(s, gpus, c, moving, t)


@njit_step
def fail_load(
    s: Ints,
    gpus: Ints,
    models: Ints,
    cells: Ints,
    w: Ints,
    c: Ints,
    stages: Ints,
    copies: Ints,
    breaches: Ints,
    fate: Ints,
    i: int,
    g: int,
    t: int,
) -> None:
    """A load does not find its memory on GPU ``g``: the copy is gone, its tasks fail."""
    m = c[i, C_MODEL]
    copies[K_EVICTED, c[i, C_LOG]] = t
    copies[K_RELEASED, c[i, C_LOG]] = t
    for k in range(i, i + c[i, C_WIDTH]):
        gpus[c[k, C_GPU], RESERVED] -= models[m, NEED]
    drop_live(s, gpus, cells, c, i)
    c[i, C_STATE] = GONE
    log_breach(s, breaches, t, g, i64(-1), m)
    x = gpus[g, FIRST] if c[i, C_WIDTH] == 1 else s[WIDE]
    while x >= 0:
        after = w[x, AFTER]
        if w[x, COPY] == i:
            fail(s, gpus, models, w, c, stages, fate, x, t)
        x = after


@njit_leaf
def log_breach(s: Ints, breaches: Ints, t: int, g: int, j: int, m: int) -> None:
    """Memory ran over."""
    n = s[N_BREACHES]
    breaches[B_TIME, n] = t
    breaches[B_GPU, n] = g
    breaches[B_TASK, n] = j
    breaches[B_MODEL, n] = m
    s[N_BREACHES] = n + 1


@njit_leaf
def began_later(w: Ints, x: int, victim: int) -> Number:
    """Which of two tasks fails first where memory runs over: one that runs or is restored, since later."""
    if w[x, STAGE] != RUNS and w[x, STAGE] != RESTORING:
        return victim
    if (
        victim < 0
        or w[x, BEGAN] > w[victim, BEGAN]
        or (w[x, BEGAN] == w[victim, BEGAN] and w[x, TASK] > w[victim, TASK])
    ):
        return x
    return victim


@njit_step
def run_over(
    s: Ints,
    gpus: Ints,
    models: Ints,
    w: Ints,
    c: Ints,
    stages: Ints,
    breaches: Ints,
    fate: Ints,
    g: int,
    t: int,
) -> Number:
    """As long as the memory of a GPU runs over, its task that began last fails; 1 where one did."""
    failed = 0
    gpus[g, DIRTY] = 1
    while gpus[g, FIXED] + gpus[g, FROZEN] + gpus[g, MOST_KV] > s[MEMORY]:
        if actual(s, gpus, models, w, c, g, t) <= s[MEMORY]:
            break
        victim = i64(-1)
        x = gpus[g, FIRST]
        while x >= 0:
            victim = began_later(w, x, victim)
            x = w[x, AFTER]
        if s[WIDE] >= 0:
            x = next_wide(w, c, s[WIDE], g)
            while x >= 0:
                victim = began_later(w, x, victim)
                x = next_wide(w, c, w[x, AFTER], g)
        if victim < 0:
            break
        log_breach(s, breaches, t, g, w[victim, TASK], w[victim, MODEL])
        fail(s, gpus, models, w, c, stages, fate, victim, t)
        failed = 1
        s[FRESH] = 1
        s[STAMP] += 1
    return failed


@njit_step
def run_over_there(
    s: Ints, gpus: Ints, models: Ints, w: Ints, c: Ints, stages: Ints, breaches: Ints, fate: Ints, t: int
) -> None:
    """After a placement: memory of the GPUs of its copy may have run over."""
    i = s[LAST_COPY]
    for k in range(i, i + c[i, C_WIDTH]):
        run_over(s, gpus, models, w, c, stages, breaches, fate, c[k, C_GPU], t)


@njit_step
def expire(s: Ints, gpus: Ints, models: Ints, cells: Ints, w: Ints, c: Ints, copies: Ints, t: int) -> None:
    """Copies that were idle for the keep-alive time go."""
    while s[IDLE] >= 0 and c[s[IDLE], C_USED] + s[ALIVE_US] <= t:
        i = s[IDLE]
        end_idle(s, gpus, models, c, i)
        drop_live(s, gpus, cells, c, i)
        evict(s, gpus, w, c, copies, i, i64(-1), t)
        s[FRESH] = 1


# --------------------------------------------------------------------- arrivals


@njit_leaf
def place_among(tasks: Ints, deadlines: Ints, j: int) -> Number:
    """Where task ``j`` stands among those with a deadline."""
    low = i64(0)
    high = i64(len(deadlines) - 1)
    while low < high:
        middle = (low + high) >> 1
        k = deadlines[middle]
        if tasks[A_DEADLINE, k] < tasks[A_DEADLINE, j] or (
            tasks[A_DEADLINE, k] == tasks[A_DEADLINE, j] and k < j
        ):
            low = middle + 1
        else:
            high = middle
    return low


@njit_step
def arrive(
    s: Ints, tasks: Ints, w: Ints, q: Ints, grouped: Ints, deadlines: Ints, by_gpu: int, fate: Ints, t: int
) -> Number:
    """Tasks arrive or come back, and join their lines; 1 where there is no place for one of them."""
    while s[RETURNS] >= 0 and w[s[RETURNS], BEGAN] <= t:
        x = s[RETURNS]
        s[RETURNS] = w[x, FOLLOWS]
        if s[RETURNS] < 0:
            s[RETURNS_END] = -1
        s[FRESH] = 1
        if not w[x, SERVED] and w[x, DEADLINE] < NEVER:
            s[DEADLINES] = min(s[DEADLINES], place_among(tasks, deadlines, w[x, TASK]))
        enter_line(s, tasks, w, q, grouped, fate, x, t)
    while s[ARRIVED] < tasks.shape[1] and tasks[A_ARRIVAL, s[ARRIVED]] <= t:
        j = s[ARRIVED]
        if tasks[A_REJECTED, j]:
            fate[F_STATE, j] = REJECTED
            fate[F_LEFT, j] = t
            s[ARRIVED] = j + 1
            continue
        x = s[FREE_PLACE]
        if x >= 0:
            s[FREE_PLACE] = w[x, FOLLOWS]
        else:
            x = s[N_PLACES]
            if x == len(w):
                return 1
            s[N_PLACES] = x + 1
        tasks[A_PLACE, j] = x
        w[x, TASK] = j
        w[x, MODEL] = tasks[A_MODEL, j]
        w[x, PRIORITY] = tasks[A_PRIORITY, j]
        w[x, SERVICE] = tasks[A_SERVICE, j]
        w[x, PREDICTED] = tasks[A_PREDICTED, j]
        w[x, CAME] = tasks[A_CAME, j]
        w[x, MADE] = tasks[A_MADE, j]
        w[x, DEADLINE] = tasks[A_DEADLINE, j]
        w[x, LINE] = j % by_gpu
        w[x, KEPT] = 0
        w[x, SERVED] = 0
        w[x, FAILURES] = 0
        w[x, WAITS] = 0
        w[x, COPY] = -1
        w[x, TAG] = w[x, SERVICE] << 20
        s[ARRIVED] = j + 1
        enter_line(s, tasks, w, q, grouped, fate, x, t)
    return 0


@njit_leaf
def waits_unserved(s: Ints, tasks: Ints, w: Ints, fate: Ints, j: int) -> Number:
    """Whether task ``j`` is in line and was never served."""
    if j >= s[ARRIVED] or fate[F_STATE, j] != WAITING:
        return False
    x = tasks[A_PLACE, j]
    return w[x, STAGE] == QUEUED and w[x, SERVED] == 0


@njit_step
def next_deadline(s: Ints, tasks: Ints, w: Ints, deadlines: Ints, fate: Ints) -> Number:
    """The next deadline of a task in line that was never served; those that do not matter any more are passed."""
    while s[DEADLINES] < len(deadlines):
        j = deadlines[s[DEADLINES]]
        if waits_unserved(s, tasks, w, fate, j):
            return tasks[A_DEADLINE, j]
        if j >= s[ARRIVED] and tasks[A_DEADLINE, j] >= tasks[A_ARRIVAL, j]:
            return NEVER  # it arrives before anybody's next deadline
        s[DEADLINES] += 1
    return NEVER


@njit_step
def time_out(
    s: Ints, tasks: Ints, w: Ints, q: Ints, grouped: Ints, deadlines: Ints, fate: Ints, t: int
) -> None:
    """Tasks in line that were never served leave at their deadlines."""
    while s[DEADLINES] < len(deadlines):
        j = deadlines[s[DEADLINES]]
        if tasks[A_DEADLINE, j] > t:
            break
        if waits_unserved(s, tasks, w, fate, j):
            x = tasks[A_PLACE, j]
            leave_line(s, tasks, w, q, grouped, x)
            gone(s, w, fate, x, TIMED_OUT, t)
        s[DEADLINES] += 1


# -------------------------------------------------------------------- placement


@njit_step
def part_fits(s: Ints, gpus: Ints, models: Ints, w: Ints, c: Ints, g: int, m: int, t: int) -> Number:
    """Whether a new copy of model ``m`` fits on ``g``: 2 as it is, 3 after evictions, 0 not."""
    lacks = models[m, NEED] - room_of(s, gpus, models, w, c, g, t)
    if lacks <= 0:
        return 2
    return 3 if lacks <= (gpus[g, IDLE_TAKEN] if s[ON_FREE] else gpus[g, IDLE_NEED]) else 0


@njit_leaf
def fits(s: Ints, gpus: Ints, models: Ints, cells: Ints, w: Ints, c: Ints, g: int, m: int, t: int) -> Number:
    """How a task of model ``m`` can be placed on ``g``: 1 beside others, 2 with a new copy, 3 after evictions.

    What is known costs no call: on many GPUs the calls would cost more than the rest of the simulation.
    """
    if cells[g, m, FAILS] == gpus[g, VERSION] and not gpus[g, DIRTY]:
        return 0
    return fits_now(s, gpus, models, cells, w, c, g, m, t)


@njit_step
def fits_now(
    s: Ints, gpus: Ints, models: Ints, cells: Ints, w: Ints, c: Ints, g: int, m: int, t: int
) -> Number:
    """`fits`, where it is not known from the last time that it does not."""
    if gpus[g, HELD] < s[GPU_TASKS]:
        i = cells[g, m, AT]
        if i >= 0:
            if c[i, C_HELD] < models[m, MODEL_TASKS]:
                return 1
        else:
            lacks = models[m, NEED] - room_of(s, gpus, models, w, c, g, t)
            if lacks <= 0:
                return 2
            if lacks <= (gpus[g, IDLE_TAKEN] if s[ON_FREE] else gpus[g, IDLE_NEED]):
                return 3
    cells[g, m, FAILS] = gpus[g, VERSION]
    return 0


@njit_leaf
def fragmentation(models: Ints, free: int) -> Number:
    """Free bytes x popularity of the models that do not fit into them."""
    low = 0
    high = len(models)
    while low < high:
        middle = (low + high) >> 1
        if models[middle, NEED_SORTED] > free:
            high = middle
        else:
            low = middle + 1
    return free * models[low, POPULAR] if low < len(models) else i64(0)


@njit_step
def predicted_left(s: Ints, gpus: Ints, w: Ints, c: Ints, g: int, t: int) -> Number:
    """Predicted service left of all tasks of a GPU."""
    total = i64(0)
    x = gpus[g, FIRST]
    while x >= 0:
        total += max(w[x, PREDICTED] - done_of(w, x, left_of(gpus, w, g, x, t)), 0)
        x = w[x, AFTER]
    if s[WIDE] >= 0:
        x = next_wide(w, c, s[WIDE], g)
        while x >= 0:
            total += max(w[x, PREDICTED] - done_of(w, x, left_of(gpus, w, g, x, t)), 0)
            x = next_wide(w, c, w[x, AFTER], g)
    return total


@njit_leaf
def scores(
    s: Ints, gpus: Ints, models: Ints, cells: Ints, w: Ints, c: Ints, g: int, m: int, kind: int, t: int
) -> tuple[Number, Number]:
    """What the placement policy sorts GPUs of a class by (see `fits`), the least first; then by the second."""
    how = s[PLACEMENT]
    if how == FIRST_FIT:
        return i64(0), i64(0)
    free = s[MEMORY] - gpus[g, RESERVED]
    left = free
    if kind > 1:
        left -= models[m, NEED]
    if kind == 3:
        lacks = models[m, NEED] - room_of(s, gpus, models, w, c, g, t)
        left += evicted_need(s, gpus, models, cells, c, g, t, lacks)
    if how == FGD:
        return fragmentation(models, left) - fragmentation(models, free), i64(0)
    if how == PREDICTED_FIT:
        return predicted_left(s, gpus, w, c, g, t), left
    return (left if how == BEST_FIT else -left), i64(0)


@njit_step
def choose(s: Ints, gpus: Ints, models: Ints, cells: Ints, w: Ints, c: Ints, x: int, t: int) -> Number:
    """The GPU for a task of a model on one GPU by the placement policy; -1: it cannot be placed."""
    m = w[x, MODEL]
    how = s[PLACEMENT]
    if how == ROUND_ROBIN:
        return w[x, LINE] if fits(s, gpus, models, cells, w, c, w[x, LINE], m, t) else i64(-1)
    best = i64(-1)
    if how == ROUND_ROBIN_SKIP:
        for k in range(len(gpus)):
            g = (s[LAST_GPU] + 1 + k) % len(gpus)
            kind = fits(s, gpus, models, cells, w, c, g, m, t)
            if kind == 1 or kind == 2:
                return g
            if kind == 3 and best < 0:
                best = i64(g)
        return best
    best_kind = 4
    least = i64(0)
    then = i64(0)
    for g in range(len(gpus)):
        kind = fits(s, gpus, models, cells, w, c, g, m, t)
        if kind == 0 or kind > best_kind:
            continue
        first, second = scores(s, gpus, models, cells, w, c, g, m, kind, t)
        if kind < best_kind or first < least or (first == least and second < then):
            best = i64(g)
            best_kind = kind
            least = first
            then = second
    return best


@njit_step
def place(
    s: Ints,
    gpus: Ints,
    models: Ints,
    cells: Ints,
    w: Ints,
    c: Ints,
    stages: Ints,
    copies: Ints,
    x: int,
    g: int,
    lacks: int,
    waits: int,
    t: int,
) -> None:
    """A task of a model on one GPU goes to ``g``, after ``waits`` saves; ``lacks`` bytes are missing for a new copy."""
    i = cells[g, w[x, MODEL], AT]
    s[LAST_GPU] = g
    w[x, WAITS] = waits
    if i >= 0:
        join_copy(s, gpus, models, w, c, stages, x, i, t)
        return
    key = i64(-1)
    row = i64(-1)
    while lacks > 0:
        i = next_out(s, gpus, models, cells, c, g, t, key, row)
        row = c[i, C_MODEL]
        key = eviction_key(s, models, c, i, t)
        lacks -= models[row, TAKEN] if s[ON_FREE] else models[row, NEED]
        send_off(s, gpus, models, cells, w, c, copies, i, x, t)
    i = s[N_PARTS]
    c[i, C_GPU] = g
    claim(s, gpus, models, cells, w, c, stages, copies, x, i64(1), t)


@njit_step
def join_copy(
    s: Ints, gpus: Ints, models: Ints, w: Ints, c: Ints, stages: Ints, x: int, i: int, t: int
) -> None:
    """A task is placed on copy ``i``, which takes tasks; it starts there if there is nothing to wait for."""
    if c[i, C_HELD] == 0:
        end_idle(s, gpus, models, c, i)
    attach(s, gpus, w, c, x, i)
    begin_stay(s, models, w, c, stages, x, t)
    if c[i, C_STATE] == READY and w[x, WAITS] == 0:
        start(s, gpus, models, w, c, stages, x, t)


@njit_leaf
def begin_stay(s: Ints, models: Ints, w: Ints, c: Ints, stages: Ints, x: int, t: int) -> None:
    """A task that belongs to a copy from now on waits for it."""
    models[w[x, MODEL], PLACED] += 1
    s[LAST_COPY] = w[x, COPY]
    w[x, STAGE] = STARTING
    log_stage(s, w, c, stages, x, RESTORE if w[x, KEPT] else LOAD, t)


@njit_step
def send_off(
    s: Ints,
    gpus: Ints,
    models: Ints,
    cells: Ints,
    w: Ints,
    c: Ints,
    copies: Ints,
    i: int,
    x: int,
    t: int,
) -> None:
    """A copy has to go for the task at ``x``: now, or when its victims are saved."""
    drop_live(s, gpus, cells, c, i)
    if c[i, C_HELD] == 0:
        end_idle(s, gpus, models, c, i)
        evict(s, gpus, w, c, copies, i, x, t)
    else:
        c[i, C_STATE] = GOING
        c[i, C_FOR] = x


@njit_step
def claim(
    s: Ints,
    gpus: Ints,
    models: Ints,
    cells: Ints,
    w: Ints,
    c: Ints,
    stages: Ints,
    copies: Ints,
    x: int,
    width: int,
    t: int,
) -> None:
    """A task gets a new copy of its model, whose GPUs the next ``width`` rows of ``c`` name."""
    m = w[x, MODEL]
    i = s[N_PARTS]
    s[N_PARTS] = i + width
    n = s[N_COPIES]
    s[N_COPIES] = n + 1
    c[i, C_MODEL] = m
    c[i, C_STATE] = PENDING
    c[i, C_HELD] = 0
    c[i, C_USED] = t
    c[i, C_CLAIMER] = x
    c[i, C_FOR] = -1
    c[i, C_VICTIMS] = 0
    c[i, C_WIDTH] = width
    c[i, C_LOG] = n
    for k in range(i, i + width):
        c[k, C_HEAD] = i
        gpus[c[k, C_GPU], RESERVED] += models[m, NEED]
        gpus[c[k, C_GPU], PENDING_NEED] += models[m, NEED]
    add_live(gpus, cells, c, i)
    copies[K_MODEL, n] = m
    copies[K_GPU, n] = c[i, C_GPU]
    copies[K_CLAIMED, n] = t
    copies[K_LOAD, n] = NEVER
    copies[K_READY, n] = NEVER
    copies[K_EVICTED, n] = NEVER
    copies[K_RELEASED, n] = NEVER
    copies[K_DISK, n] = 0
    copies[K_TASK, n] = w[x, TASK]
    attach(s, gpus, w, c, x, i)
    begin_stay(s, models, w, c, stages, x, t)
    if w[x, WAITS] == 0:
        gpus[c[i, C_GPU], STARTABLE] += 1
        s[N_STARTABLE] += 1


# ------------------------------------------------------------------- preemption


@njit_step
def next_victim(s: Ints, gpus: Ints, w: Ints, c: Ints, g: int, rank: int, t: int, after: int) -> Number:
    """The running task of a GPU to be taken next after task ``after`` (-1: first) for one of priority ``rank``."""
    best = i64(-1)
    best_left = i64(0)
    bar = i64(0)
    if after >= 0:
        bar = max(w[after, PREDICTED] - done_of(w, after, left_of(gpus, w, g, after, t)), i64(0))
    passed = gpus[g, CLOCK] + gpus[g, SPEED] * (t - gpus[g, CLOCK_AT])
    x = gpus[g, FIRST]
    while x >= 0:
        if w[x, STAGE] == RUNS and w[x, PRIORITY] < rank and not w[x, TAKEN_AWAY]:
            left = max(w[x, PREDICTED] - done_of(w, x, w[x, TAG] - passed), i64(0))
            if may_go(s, w, x, left, after, bar) and (best < 0 or goes_before(w, x, left, best, best_left)):
                best = x
                best_left = left
        x = w[x, AFTER]
    if s[WIDE] < 0:
        return best
    x = next_wide(w, c, s[WIDE], g)
    while x >= 0:
        if w[x, STAGE] == RUNS and w[x, PRIORITY] < rank and not w[x, TAKEN_AWAY]:
            left = max(w[x, PREDICTED] - done_of(w, x, left_of(gpus, w, g, x, t)), i64(0))
            if may_go(s, w, x, left, after, bar) and (best < 0 or goes_before(w, x, left, best, best_left)):
                best = x
                best_left = left
        x = next_wide(w, c, w[x, AFTER], g)
    return best


@njit_leaf
def may_go(s: Ints, w: Ints, x: int, left: int, after: int, bar: int) -> Number:
    """Whether a task with ``left`` predicted to go may be interrupted, and comes after ``after`` (-1: any does)."""
    if s[PREEMPT] == PREEMPT_THRESHOLD and left < s[THRESHOLD_US]:
        return False
    return after < 0 or goes_before(w, after, bar, x, left)


@njit_leaf
def goes_before(w: Ints, x: int, left: int, y: int, other_left: int) -> Number:
    """Whether victim ``x`` is taken before ``y``: lower priority, then longer to go, then the larger row."""
    if w[x, PRIORITY] != w[y, PRIORITY]:
        return w[x, PRIORITY] < w[y, PRIORITY]
    if left != other_left:
        return left > other_left
    return w[x, TASK] > w[y, TASK]


@njit_step
def evictable(s: Ints, gpus: Ints, models: Ints, cells: Ints, c: Ints, g: int) -> Number:
    """Bytes of the copies of a GPU that would be idle without the victims that are counted at copies."""
    gain = i64(0)
    for k in range(gpus[g, LIVE_COPIES]):
        i = c[cells[g, k, LIVE], C_HEAD]
        m = c[i, C_MODEL]
        if c[i, C_STATE] == READY and c[i, C_HELD] == c[i, C_VICTIMS] and not models[m, PINNED]:
            gain += models[m, TAKEN] if s[ON_FREE] else models[m, NEED]
    return gain


@njit_step
def lacks_without(
    s: Ints,
    gpus: Ints,
    models: Ints,
    cells: Ints,
    w: Ints,
    c: Ints,
    x: int,
    g: int,
    n: int,
    freed: int,
    t: int,
) -> Number:
    """Bytes missing for a task on a GPU whose ``n`` victims are counted at their copies; NEVER: cannot be placed."""
    m = w[x, MODEL]
    if gpus[g, HELD] - n >= s[GPU_TASKS]:
        return NEVER
    i = cells[g, m, AT]
    if i >= 0:
        return i64(0) if c[i, C_HELD] - c[i, C_VICTIMS] < models[m, MODEL_TASKS] else NEVER
    lacks = models[m, NEED] - room_of(s, gpus, models, w, c, g, t)
    if s[ON_FREE]:
        lacks -= freed
    if lacks > 0 and evictable(s, gpus, models, cells, c, g) < lacks:
        return NEVER
    return max(lacks, 0)


@njit_step
def victims_needed(
    s: Ints, gpus: Ints, models: Ints, cells: Ints, w: Ints, c: Ints, x: int, g: int, most: int, t: int
) -> Number:
    """How many tasks of GPU ``g`` have to go for task ``x``, -1: more than ``most``; they stay counted at copies."""
    n = i64(0)
    freed = i64(0)
    y = i64(-1)
    while n < most:
        y = next_victim(s, gpus, w, c, g, w[x, PRIORITY], t, y)
        if y < 0:
            break
        n += 1
        c[w[y, COPY], C_VICTIMS] += 1
        if s[ON_FREE]:
            freed += cache_of(models, w, y, left_of(gpus, w, g, y, t))
        if lacks_without(s, gpus, models, cells, w, c, x, g, n, freed, t) < NEVER:
            return n
    return i64(-1)


@njit_leaf
def forget_victims(gpus: Ints, cells: Ints, c: Ints, g: int) -> None:
    """No copy of the GPU has victims."""
    for k in range(gpus[g, LIVE_COPIES]):
        c[c[cells[g, k, LIVE], C_HEAD], C_VICTIMS] = 0


@njit_step
def preempt(
    s: Ints,
    gpus: Ints,
    models: Ints,
    cells: Ints,
    w: Ints,
    c: Ints,
    stages: Ints,
    copies: Ints,
    x: int,
    t: int,
) -> Number:
    """Place a task where the fewest others have to be saved for it; 1 where that is possible."""
    best = i64(-1)
    fewest = i64(NEVER)
    for g in range(len(gpus)):
        if gpus[g, RUNNING] == 0 or (s[PLACEMENT] == ROUND_ROBIN and g != w[x, LINE]):
            continue
        if not gpus[g, DIRTY] and gpus[g, VAIN_MODEL] == w[x, MODEL] and gpus[g, VAIN_RANK] == w[x, PRIORITY]:
            continue  # there are no more victims than then
        n = victims_needed(s, gpus, models, cells, w, c, x, i64(g), fewest - 1, t)
        forget_victims(gpus, cells, c, g)
        if n > 0:
            best = i64(g)
            fewest = n
        elif best < 0:
            gpus[g, VAIN_MODEL] = w[x, MODEL]
            gpus[g, VAIN_RANK] = w[x, PRIORITY]
    if best < 0:
        return 0
    g = best
    freed = i64(0)
    y = i64(-1)
    for _ in range(fewest):
        y = next_victim(s, gpus, w, c, g, w[x, PRIORITY], t, y)
        c[w[y, COPY], C_VICTIMS] += 1
        freed += cache_of(models, w, y, left_of(gpus, w, g, y, t))
    lacks = lacks_without(s, gpus, models, cells, w, c, x, g, fewest, freed, t)
    place(s, gpus, models, cells, w, c, stages, copies, x, g, lacks, fewest, t)
    for _ in range(fewest):
        y = next_victim(s, gpus, w, c, g, w[x, PRIORITY], t, i64(-1))
        save(s, gpus, models, w, c, stages, y, x, t)
    return 1


@njit_step
def save(s: Ints, gpus: Ints, models: Ints, w: Ints, c: Ints, stages: Ints, y: int, x: int, t: int) -> None:
    """Victim ``y`` is interrupted and saves its progress, for the task at ``x``."""
    c[w[y, COPY], C_VICTIMS] = 0
    stop(s, gpus, models, w, c, y, t)
    end_stage(w, stages, y, PREEMPTED, t)
    log_stage(s, w, c, stages, y, SAVE, t)
    w[y, STAGE] = SAVING
    w[y, BEGAN] = t
    w[y, FOR_PLACE] = x
    freeze(gpus, c, w[y, COPY], cache_of(models, w, y, w[y, TAG]))
    w[y, FOLLOWS] = -1
    if s[SAVES_END] >= 0:
        w[s[SAVES_END], FOLLOWS] = y
    else:
        s[SAVES] = y
    s[SAVES_END] = y


# ------------------------------------------------- placement on several GPUs at once


@njit_step
def forget_thoughts(s: Ints, gpus: Ints, cells: Ints, w: Ints, c: Ints) -> None:
    """Nothing counts as gone or free for a wide task any more."""
    for g in range(len(gpus)):
        if gpus[g, TAKEN_HERE] > 0:
            forget_victims(gpus, cells, c, g)
            x = gpus[g, FIRST]
            while x >= 0:
                w[x, TAKEN_AWAY] = 0
                x = w[x, AFTER]
        gpus[g, TAKEN_HERE] = 0
        gpus[g, GAIN] = 0
    x = s[WIDE]
    while x >= 0:
        w[x, TAKEN_AWAY] = 0
        x = w[x, AFTER]


@njit_leaf
def copy_takes(s: Ints, gpus: Ints, models: Ints, c: Ints, i: int) -> Number:
    """Whether copy ``i`` takes one more task: a slot is free in it and on each of its GPUs."""
    takes = c[i, C_HELD] < models[c[i, C_MODEL], MODEL_TASKS]
    for k in range(i, i + c[i, C_WIDTH]):
        takes &= gpus[c[k, C_GPU], HELD] < s[GPU_TASKS]
    return takes


@njit_step
def choose_wide(s: Ints, gpus: Ints, models: Ints, cells: Ints, w: Ints, c: Ints, x: int, t: int) -> Number:
    """The copy that a task of a wide model joins by the placement policy, or `NEW_COPY`, or `NOWHERE`."""
    m = w[x, MODEL]
    how = s[PLACEMENT]
    forget_thoughts(s, gpus, cells, w, c)
    for g in range(len(gpus)):
        gpus[g, CHOSEN] = 0
        gpus[g, JUDGED] = 0
        if cells[g, m, AT] < 0 and gpus[g, HELD] < s[GPU_TASKS]:
            gpus[g, JUDGED] = part_fits(s, gpus, models, w, c, g, m, t)
    if how == ROUND_ROBIN:
        return choose_set(s, gpus, models, cells, c, w[x, LINE], m)
    if how == ROUND_ROBIN_SKIP:
        return choose_around(s, gpus, models, cells, c, m)
    best = best_copy(s, gpus, models, cells, w, c, m, t)
    if best >= 0:
        return best
    for g in range(len(gpus)):
        if gpus[g, JUDGED]:
            first, second = scores(s, gpus, models, cells, w, c, g, m, gpus[g, JUDGED], t)
            gpus[g, SCORE] = first
            gpus[g, THEN] = second
    return choose_best(gpus, models[m, SPREAD])


@njit_step
def choose_set(s: Ints, gpus: Ints, models: Ints, cells: Ints, c: Ints, line: int, m: int) -> Number:
    """`choose_wide` for tasks whose GPUs are ``line`` and those behind it, whatever is there."""
    n = len(gpus)
    i = copy_nearby(gpus, models, cells, line, m)
    if i >= 0:
        return i if copy_takes(s, gpus, models, c, i) else NOWHERE
    for k in range(models[m, SPREAD]):
        g = (line + k) % n
        if gpus[g, JUDGED] == 0:
            return NOWHERE
        gpus[g, CHOSEN] = 1
    return NEW_COPY


@njit_leaf
def copy_nearby(gpus: Ints, models: Ints, cells: Ints, line: int, m: int) -> Number:
    """The first copy that takes tasks on GPU ``line`` and those behind it over which a model is spread; -1: none."""
    for k in range(models[m, SPREAD]):
        i = cells[(line + k) % len(gpus), m, AT]
        if i >= 0:
            return i
    return i64(-1)


@njit_step
def choose_around(s: Ints, gpus: Ints, models: Ints, cells: Ints, c: Ints, m: int) -> Number:
    """`choose_wide` for GPUs in turn: first where no evictions are needed, then with them."""
    n = len(gpus)
    for most in range(2, 4):
        good = 0
        for g in range(n):
            good += 0 < gpus[g, JUDGED] <= most
        for k in range(n):
            g = (s[LAST_GPU] + 1 + k) % n
            i = cells[g, m, AT]
            if i >= 0 and copy_takes(s, gpus, models, c, i):
                s[LAST_GPU] = g
                return i
            if i >= 0 or good < models[m, SPREAD] or not 0 < gpus[g, JUDGED] <= most:
                continue
            s[LAST_GPU] = g
            lacking = models[m, SPREAD]
            for beside in range(n):
                h = (g + beside) % n
                if lacking > 0 and 0 < gpus[h, JUDGED] <= most:
                    gpus[h, CHOSEN] = 1
                    lacking -= 1
            return NEW_COPY
    return NOWHERE


@njit_step
def best_copy(s: Ints, gpus: Ints, models: Ints, cells: Ints, w: Ints, c: Ints, m: int, t: int) -> Number:
    """The best copy of a wide model that takes one more task; -1: none does.

    Scores of its GPUs are added up; of predicted service left, the most counts.
    """
    best = i64(-1)
    least = i64(0)
    then = i64(0)
    for g in range(len(gpus)):
        i = cells[g, m, AT]
        if i < 0 or c[i, C_GPU] != g or not copy_takes(s, gpus, models, c, i):
            continue
        first = i64(0)
        second = i64(0)
        for k in range(i, i + c[i, C_WIDTH]):
            one, other = scores(s, gpus, models, cells, w, c, c[k, C_GPU], m, i64(1), t)
            first = max(first, one) if s[PLACEMENT] == PREDICTED_FIT else first + one
            second += other
        if s[PLACEMENT] == FGD:
            first = i64(0)
        if best < 0 or first < least or (first == least and second < then):
            best = i
            least = first
            then = second
    return best


@njit_step
def choose_best(gpus: Ints, width: int) -> Number:
    """Choose the best ``width`` of the GPUs that were judged: `NEW_COPY`, or `NOWHERE` where they are too few."""
    for _ in range(width):
        best = i64(-1)
        for g in range(len(gpus)):
            if gpus[g, JUDGED] and not gpus[g, CHOSEN] and (best < 0 or is_better(gpus, g, best)):
                best = i64(g)
        if best < 0:
            return NOWHERE
        gpus[best, CHOSEN] = 1
    return NEW_COPY


@njit_leaf
def is_better(gpus: Ints, g: int, h: int) -> Number:
    """Whether GPU ``g`` comes before GPU ``h``, with the same index at most."""
    if gpus[g, JUDGED] != gpus[h, JUDGED]:
        return gpus[g, JUDGED] < gpus[h, JUDGED]
    if gpus[g, SCORE] != gpus[h, SCORE]:
        return gpus[g, SCORE] < gpus[h, SCORE]
    return gpus[g, THEN] < gpus[h, THEN]


@njit_step
def place_wide(
    s: Ints,
    gpus: Ints,
    models: Ints,
    cells: Ints,
    w: Ints,
    c: Ints,
    stages: Ints,
    copies: Ints,
    x: int,
    i: int,
    waits: int,
    t: int,
) -> None:
    """A task joins copy ``i`` or gets a new one on the GPUs that are `CHOSEN`, after ``waits`` saves.

    Copies are evicted GPU by GPU; those that went for one GPU are gone on the others.
    """
    w[x, WAITS] = waits
    if i >= 0:
        join_copy(s, gpus, models, w, c, stages, x, i, t)
        return
    m = w[x, MODEL]
    width = i64(0)
    for g in range(len(gpus)):
        if not gpus[g, CHOSEN]:
            continue
        c[s[N_PARTS] + width, C_GPU] = g
        width += 1
        lacks = models[m, NEED] - room_of(s, gpus, models, w, c, g, t)
        while lacks > gpus[g, GAIN]:
            i = next_out(s, gpus, models, cells, c, g, t, i64(-1), i64(-1))
            other = c[i, C_MODEL]
            for k in range(i, i + c[i, C_WIDTH]):
                gpus[c[k, C_GPU], GAIN] += models[other, TAKEN] if s[ON_FREE] else models[other, NEED]
            send_off(s, gpus, models, cells, w, c, copies, i, x, t)
    claim(s, gpus, models, cells, w, c, stages, copies, x, width, t)


# ------------------------------------------------ preemption on several GPUs at once


@njit_step
def take_away(s: Ints, gpus: Ints, models: Ints, w: Ints, c: Ints, g: int, y: int, t: int) -> None:
    """A running task of GPU ``g`` counts as gone, on all its GPUs."""
    i = w[y, COPY]
    w[y, TAKEN_AWAY] = 1
    c[i, C_VICTIMS] += 1
    freed = i64(0)
    if s[ON_FREE]:
        freed = cache_of(models, w, y, left_of(gpus, w, g, y, t))
    for k in range(i, i + c[i, C_WIDTH]):
        gpus[c[k, C_GPU], TAKEN_HERE] += 1
        gpus[c[k, C_GPU], GAIN] += freed


@njit_step
def victims_for_copy(s: Ints, gpus: Ints, models: Ints, w: Ints, c: Ints, x: int, i: int, t: int) -> Number:
    """Take tasks away until copy ``i`` takes the task at ``x``: how many; -1: it cannot be."""
    m = w[x, MODEL]
    n = i64(0)
    for k in range(i, i + c[i, C_WIDTH]):
        g = c[k, C_GPU]
        while (
            gpus[g, HELD] - gpus[g, TAKEN_HERE] >= s[GPU_TASKS]
            or c[i, C_HELD] - c[i, C_VICTIMS] >= models[m, MODEL_TASKS]
        ):
            y = next_victim(s, gpus, w, c, g, w[x, PRIORITY], t, i64(-1))
            if y < 0:
                return i64(-1)
            take_away(s, gpus, models, w, c, g, y, t)
            n += 1
    return n


@njit_step
def victims_for_part(
    s: Ints, gpus: Ints, models: Ints, cells: Ints, w: Ints, c: Ints, x: int, g: int, t: int
) -> Number:
    """Take tasks away until a part of a new copy can be on GPU ``g``: how many; -1: it cannot be."""
    m = w[x, MODEL]
    n = i64(0)
    while True:
        if gpus[g, HELD] - gpus[g, TAKEN_HERE] < s[GPU_TASKS]:
            lacks = models[m, NEED] - room_of(s, gpus, models, w, c, g, t) - gpus[g, GAIN]
            if lacks <= 0 or lacks <= evictable(s, gpus, models, cells, c, g):
                return n
        y = next_victim(s, gpus, w, c, g, w[x, PRIORITY], t, i64(-1))
        if y < 0:
            return i64(-1)
        take_away(s, gpus, models, w, c, g, y, t)
        n += 1


@njit_step
def victims_for_new(
    s: Ints, gpus: Ints, models: Ints, cells: Ints, w: Ints, c: Ints, x: int, t: int
) -> Number:
    """Take tasks away until a new copy can be on the GPUs that need the fewest, then `CHOSEN`; -1: it cannot be."""
    m = w[x, MODEL]
    for g in range(len(gpus)):
        gpus[g, CHOSEN] = 0
        gpus[g, JUDGED] = 0
        if cells[g, m, AT] >= 0 or s[PLACEMENT] == ROUND_ROBIN:
            continue
        gpus[g, SCORE] = victims_for_part(s, gpus, models, cells, w, c, x, i64(g), t)
        gpus[g, THEN] = 0
        gpus[g, JUDGED] = gpus[g, SCORE] >= 0
        forget_thoughts(s, gpus, cells, w, c)
    if s[PLACEMENT] == ROUND_ROBIN:
        for k in range(models[m, SPREAD]):
            gpus[(w[x, LINE] + k) % len(gpus), CHOSEN] = 1
    elif choose_best(gpus, models[m, SPREAD]) == NOWHERE:
        return i64(-1)
    n = i64(0)
    for g in range(len(gpus)):
        if gpus[g, CHOSEN]:
            more = victims_for_part(s, gpus, models, cells, w, c, x, i64(g), t)
            if more < 0:
                return i64(-1)
            n += more
    return n


@njit_leaf
def first_chosen(gpus: Ints) -> Number:
    """The lowest of the GPUs that are `CHOSEN`."""
    g = i64(0)
    while not gpus[g, CHOSEN]:
        g += 1
    return g


@njit_step
def preempt_wide(
    s: Ints,
    gpus: Ints,
    models: Ints,
    cells: Ints,
    w: Ints,
    c: Ints,
    stages: Ints,
    copies: Ints,
    x: int,
    t: int,
) -> Number:
    """Place a task of a wide model where the fewest others have to be saved for it; 1 where that is possible."""
    m = w[x, MODEL]
    own = i64(-1)
    if s[PLACEMENT] == ROUND_ROBIN:
        own = copy_nearby(gpus, models, cells, w[x, LINE], m)
    best = i64(NOWHERE)
    fewest = i64(NEVER)
    forget_thoughts(s, gpus, cells, w, c)
    for g in range(len(gpus)):
        i = cells[g, m, AT]
        if i < 0 or c[i, C_GPU] != g or (s[PLACEMENT] == ROUND_ROBIN and i != own):
            continue
        n = victims_for_copy(s, gpus, models, w, c, x, i, t)
        forget_thoughts(s, gpus, cells, w, c)
        if 0 <= n < fewest:
            best = i
            fewest = n
    if own < 0:
        n = victims_for_new(s, gpus, models, cells, w, c, x, t)
        if 0 <= n < fewest or (n == fewest and first_chosen(gpus) < c[best, C_GPU]):
            best = i64(NEW_COPY)
            fewest = n
    if best == NOWHERE:
        forget_thoughts(s, gpus, cells, w, c)
        return 0
    if best >= 0:
        forget_thoughts(s, gpus, cells, w, c)
        victims_for_copy(s, gpus, models, w, c, x, best, t)
    place_wide(s, gpus, models, cells, w, c, stages, copies, x, best, fewest, t)
    s[LAST_GPU] = c[w[x, COPY], C_GPU]
    save_all(s, gpus, models, w, c, stages, x, t)
    forget_thoughts(s, gpus, cells, w, c)
    return 1


@njit_step
def save_all(s: Ints, gpus: Ints, models: Ints, w: Ints, c: Ints, stages: Ints, x: int, t: int) -> None:
    """All tasks that count as gone are interrupted and save their progress, for the task at ``x``."""
    for g in range(len(gpus)):
        y = gpus[g, FIRST]
        while y >= 0:
            if w[y, TAKEN_AWAY]:
                save(s, gpus, models, w, c, stages, y, x, t)
                w[y, TAKEN_AWAY] = 0
            y = w[y, AFTER]
    y = s[WIDE]
    while y >= 0:
        if w[y, TAKEN_AWAY]:
            save(s, gpus, models, w, c, stages, y, x, t)
            w[y, TAKEN_AWAY] = 0
        y = w[y, AFTER]


# --------------------------------------------------------------------- the lines


@njit_leaf
def no_room(s: Ints, stages: Ints, copies: Ints, breaches: Ints) -> Number:
    """Whether what may be logged before the next look does not fit into the tables."""
    more = 2 * s[ATTACHED_NOW] + 8
    return (
        s[N_STAGES] + more > stages.shape[1]
        or s[N_PARTS] + s[WIDEST] + 1 > copies.shape[1]
        or s[N_BREACHES] + more > breaches.shape[1]
    )


@njit_step
def next_in_line(
    s: Ints, tasks: Ints, order: Ints, by_group: Ints, w: Ints, q: Ints, grouped: Ints, lines: Ints, line: int
) -> Number:
    """The place of the task whose turn it is; -1: nobody waits."""
    p = following(q, tasks.shape[1], lines[line, FROM], lines[line, TO])
    if p < 0:
        return -1
    j = order[p]
    last = lines[line, PLACED_LAST]
    if s[ORDER] != BY_MODEL or last < 0 or lines[line, IN_A_ROW] >= s[DEPTH]:
        return tasks[A_PLACE, j]
    if tasks[A_PRIORITY, last] == tasks[A_PRIORITY, j]:
        p = following(grouped, tasks.shape[1], tasks[A_GROUP_FROM, last], tasks[A_GROUP_TO, last])
        if p >= 0:
            j = by_group[p]
    return tasks[A_PLACE, j]


@njit_step
def took_turn(s: Ints, tasks: Ints, w: Ints, q: Ints, grouped: Ints, lines: Ints, x: int, line: int) -> None:
    """A task was placed: it leaves its line."""
    leave_line(s, tasks, w, q, grouped, x)
    lines[line, BLOCKED] = -1  # a copy that it claimed may take others too
    if len(lines) > 1 and s[WIDEST] > 1:
        s[ONCE_MORE] = 1  # and so may other lines, whose turn is over
    if s[ORDER] == BY_MODEL:
        j = w[x, TASK]
        last = lines[line, PLACED_LAST]
        same = last >= 0 and tasks[A_GROUP_FROM, last] == tasks[A_GROUP_FROM, j]
        follows = same and lines[line, IN_A_ROW] < s[DEPTH]
        lines[line, IN_A_ROW] = lines[line, IN_A_ROW] + 1 if follows else 1
        lines[line, PLACED_LAST] = j


@njit_step
def try_place(
    s: Ints,
    gpus: Ints,
    models: Ints,
    cells: Ints,
    w: Ints,
    c: Ints,
    stages: Ints,
    copies: Ints,
    x: int,
    may_preempt: int,
    t: int,
) -> Number:
    """Place a task if that is possible; 1 where it was."""
    m = w[x, MODEL]
    if models[m, FAILED_AT] != s[STAMP]:  # nothing has become free since a task of this model failed
        if models[m, SPREAD] > 1:
            i = choose_wide(s, gpus, models, cells, w, c, x, t)
            if i != NOWHERE:
                place_wide(s, gpus, models, cells, w, c, stages, copies, x, i, i64(0), t)
                return 1
        else:
            g = choose(s, gpus, models, cells, w, c, x, t)
            if g >= 0:
                lacks = i64(0)
                if cells[g, m, AT] < 0:
                    lacks = models[m, NEED] - room_of(s, gpus, models, w, c, g, t)
                place(s, gpus, models, cells, w, c, stages, copies, x, g, lacks, i64(0), t)
                return 1
        models[m, FAILED_AT] = s[STAMP]
    if not may_preempt or s[PREEMPT] == PREEMPT_NEVER or w[x, PRIORITY] <= s[LEAST_RANK]:
        return 0
    if models[m, SPREAD] > 1:
        done = preempt_wide(s, gpus, models, cells, w, c, stages, copies, x, t)
    else:
        done = preempt(s, gpus, models, cells, w, c, stages, copies, x, t)
    if done:
        models[m, FAILED_AT] = 0  # others of the model may join it
    return done


@njit_step
def place_line(
    s: Ints,
    tasks: Ints,
    order: Ints,
    by_group: Ints,
    gpus: Ints,
    models: Ints,
    cells: Ints,
    w: Ints,
    c: Ints,
    stages: Ints,
    copies: Ints,
    breaches: Ints,
    q: Ints,
    grouped: Ints,
    lines: Ints,
    fate: Ints,
    line: int,
    t: int,
) -> Number:
    """Place tasks of a line until none can be placed; 1 where a table is too short."""
    n = tasks.shape[1]
    while True:
        x = next_in_line(s, tasks, order, by_group, w, q, grouped, lines, line)
        if x < 0:
            return 0
        if no_room(s, stages, copies, breaches):
            return 1
        head = lines[line, BLOCKED] == w[x, TASK] and not s[FRESH]
        if head and (s[ORDER] != BACKFILL or s[REACH] >= 0):
            return 0  # it could not be placed before, nor could those behind it, and nothing has become free
        if not head and try_place(s, gpus, models, cells, w, c, stages, copies, x, 1, t):
            took_turn(s, tasks, w, q, grouped, lines, x, line)
            run_over_there(s, gpus, models, w, c, stages, breaches, fate, t)
            continue
        lines[line, BLOCKED] = w[x, TASK]
        if s[ORDER] != BACKFILL:
            return 0
        again = 0
        p = tasks[A_WHERE, w[x, TASK]]
        for _ in range(s[DEPTH]):
            p = following(q, n, p + 1, lines[line, TO])
            if p < 0:
                break
            if models[tasks[A_MODEL, order[p]], FAILED_AT] == s[STAMP]:
                continue
            if no_room(s, stages, copies, breaches):
                return 1
            x = tasks[A_PLACE, order[p]]
            stamp = s[STAMP]
            if try_place(s, gpus, models, cells, w, c, stages, copies, x, 0, t):
                took_turn(s, tasks, w, q, grouped, lines, x, line)
                again = 1
                run_over_there(s, gpus, models, w, c, stages, breaches, fate, t)
                if s[STAMP] != stamp:
                    break  # something has become free: the first may have its turn
        if not again:
            if len(lines) == 1:
                s[REACH] = p if p >= 0 else i64(NEVER)
            return 0


# --------------------------------------------------------------------- the kernel


@njit_step
def next_instant(s: Ints, tasks: Ints, gpus: Ints, w: Ints, c: Ints, deadlines: Ints, fate: Ints) -> Number:
    """The next instant at which something can change."""
    if s[N_STARTABLE] > 0 or s[ONCE_MORE]:
        return s[T]
    instant = min(i64(NEVER), s[NEXT_MOVE])
    if s[ARRIVED] < tasks.shape[1]:
        instant = min(instant, tasks[A_ARRIVAL, s[ARRIVED]])
    if s[LEAVING] >= 0:
        instant = min(instant, c[s[LEAVING], C_DUE])
    if s[IDLE] >= 0:
        instant = min(instant, c[s[IDLE], C_USED] + s[ALIVE_US])
    if s[SAVES] >= 0:
        instant = min(instant, w[s[SAVES], BEGAN] + s[SAVE_US])
    if s[RESTORES] >= 0:
        instant = min(instant, w[s[RESTORES], BEGAN] + s[RESTORE_US])
    if s[RETURNS] >= 0:
        instant = min(instant, w[s[RETURNS], BEGAN])
    for g in range(len(gpus)):
        instant = min(instant, min(gpus[g, ENDS], gpus[g, RUNS_OVER]))
    if s[WAITING_NOW] > 0:
        instant = min(instant, next_deadline(s, tasks, w, deadlines, fate))
    return instant


@njit_step
def cut_off(s: Ints, gpus: Ints, w: Ints, stages: Ints, fate: Ints, t: int) -> None:
    """The run ends: stages that go on are cut, tasks on GPUs stay there."""
    for g in range(len(gpus)):
        x = gpus[g, FIRST]
        while x >= 0:
            end_stage(w, stages, x, CUT, t)
            fate[F_STATE, w[x, TASK]] = ON_GPU
            x = w[x, AFTER]
    x = s[WIDE]
    while x >= 0:
        end_stage(w, stages, x, CUT, t)
        fate[F_STATE, w[x, TASK]] = ON_GPU
        x = w[x, AFTER]


@njit_kernel
def run_pack(
    beta: float,
    s: Ints,
    tasks: Ints,
    order: Ints,
    by_group: Ints,
    deadlines: Ints,
    models: Ints,
    gpus: Ints,
    cells: Ints,
    lines: Ints,
    q: Ints,
    grouped: Ints,
    moving: Ints,
    fate: Ints,
    w: Ints,
    c: Ints,
    stages: Ints,
    copies: Ints,
    breaches: Ints,
) -> Number:
    """Simulate a node.

    Everything but ``beta``, ``order``, ``by_group`` and ``deadlines`` is overwritten.

    Parameters
    ----------
    beta
        Of the slowdown 1 + beta (n - 1).
    s : int64[SETTING_COLUMNS]
        The scenario and the policy up to `ALIVE_US`; then where the simulation is: 0 but for what begins as -1 or
        `NEVER` (see `gpuplan.packing.engine`).
    tasks : int64[TASK_COLUMNS, J]
    order : int64[J]
        Tasks by line, falling priority and their turn in it (their positions are `A_WHERE`).
    by_group : int64[J]
        Tasks by line, falling priority, model and row (positions `A_GROUPED`); empty but for `BY_MODEL`.
    deadlines : int64[D]
        Tasks that have one, by deadline.
    models : int64[M, MODEL_COLUMNS], gpus : int64[G, GPU_COLUMNS], cells : int64[G, M, CELL_COLUMNS]
    lines : int64[L, LINE_COLUMNS]
    q, grouped : int64[.]
        Empty sets of positions: bits, and bits that say which words below are not empty, twice.
    moving : int64[G M]
    fate : int64[3, J]
        `WAITING`, `NEVER`, 0 at first.
    w : int64[X, WORK_COLUMNS], c : int64[C, COPY_COLUMNS]
    stages : int64[9, .], copies : int64[9, C] (a column per copy), breaches : int64[4, .]
        The logs.

    Returns
    -------
    int
        `ENDED`, or `TOO_SHORT`: to be called again with longer ``w``, ``c`` and logs.
    """
    while True:
        t = s[T]
        if s[PAUSED] == 0:
            if no_room(s, stages, copies, breaches):
                return TOO_SHORT
            t = next_instant(s, tasks, gpus, w, c, deadlines, fate)
            if t >= s[HORIZON]:
                if s[HORIZON] < NEVER:
                    s[T] = s[HORIZON]
                break
            s[T] = t
            s[FRESH] |= s[ONCE_MORE]
            s[ONCE_MORE] = 0
            # services and restores first: what starts at this instant ends in the next round of it at the earliest
            end_services(s, gpus, models, w, c, stages, fate, t)
            if s[RESTORES] >= 0:
                end_restores(s, gpus, models, w, c, stages, t)
            if s[LEAVING] >= 0:
                end_releases(s, gpus, models, cells, w, c, stages, copies, t)
            if s[NEXT_MOVE] <= t:
                end_transfers(s, gpus, models, w, c, moving, stages, copies, t)
            if s[SAVES] >= 0:
                end_saves(s, tasks, gpus, models, w, c, stages, copies, q, grouped, fate, t)
            if s[N_STARTABLE] > 0:
                begin_loads(s, gpus, models, cells, w, c, moving, stages, copies, breaches, fate, t)
            for g in range(len(gpus)):
                if gpus[g, DIRTY] or gpus[g, RUNS_OVER] <= t:
                    run_over(s, gpus, models, w, c, stages, breaches, fate, i64(g), t)
            if s[IDLE] >= 0:
                expire(s, gpus, models, cells, w, c, copies, t)
            s[STAMP] += s[FRESH]
        if s[PAUSED] <= 1:
            s[PAUSED] = 0
            if arrive(s, tasks, w, q, grouped, deadlines, len(lines), fate, t):
                s[PAUSED] = 1
                return TOO_SHORT
            time_out(s, tasks, w, q, grouped, deadlines, fate, t)
        s[PAUSED] = 0
        if s[WAITING_NOW] > 0:
            for line in range(len(lines)):
                if len(lines) > 1:
                    s[STAMP] += 1
                if place_line(
                    s,
                    tasks,
                    order,
                    by_group,
                    gpus,
                    models,
                    cells,
                    w,
                    c,
                    stages,
                    copies,
                    breaches,
                    q,
                    grouped,
                    lines,
                    fate,
                    line,
                    t,
                ):
                    s[PAUSED] = 2
                    return TOO_SHORT
        s[FRESH] = 0
        if s[WIDE] >= 0:
            set_paces(beta, s, gpus, w, c, t)
        for g in range(len(gpus)):
            if gpus[g, DIRTY]:
                refresh(beta, s, gpus, models, w, c, g, t)
    cut_off(s, gpus, w, stages, fate, s[T])
    return ENDED
