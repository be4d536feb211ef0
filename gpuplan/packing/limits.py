"""Limits of what a packing scenario may hold, so that the simulator's whole numbers stay within 64 bits."""

from gpuplan.packing.model import GIB, SECOND

#: Largest memory of a GPU and largest part of a model: a transfer counts bytes x 1,000,000.
MOST_BYTES = 4_096 * GIB

#: Largest KV cache of one token.
MOST_KV_BYTES = GIB

MOST_TOKENS = 1 << 20

#: Longest service, save, restore, release, retry and keep-alive: a million seconds (service x 2**20 is counted).
MOST_SERVICE_US = 1_000_000 * SECOND

#: Last arrival, deadline and end of a run: ten years after the start.
MOST_US = 3_660 * 86_400 * SECOND

MOST_GPUS = 1_024
MOST_MODELS = 10_000
MOST_SLOTS = 1_000_000
#: Tasks that may stand in a scenario file; more belong into a table.
MOST_ROWS = 10_000
MOST_GENERATED = 5_000_000
MOST_PRIORITY = 1_000_000_000

#: Slowest and fastest link, bytes per second.
LEAST_RATE, MOST_RATE = 1_000_000, 10**15
