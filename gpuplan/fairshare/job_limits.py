"""What every way of writing jobs shares: limits, defaults, the keys of a job and what a fraction of a second means."""

from gpuplan.fairshare.model import HOUR

#: Longest time of a job or of a submission after the start, seconds: 317 years.
MOST_S = 10_000_000_000

#: Most GPUs that a job may want: more than any cluster has, so that it is set aside with its reason.
MOST_JOB_GPUS = 10_000_000

#: Most GPUs of a scenario.
MOST_GPUS = 1_000_000

MOST_PRIORITY = 1_000_000_000

#: Most GPU-seconds of all jobs together: sums stay within 64 bits.
MOST_GPU_SECONDS = 1 << 61

#: Minimum run time of a job that declares none: this, or its limit where that is shorter.
USUAL_MINIMUM_S = HOUR

REQUIRED = ("job", "submit_s", "gpus", "run_s")

#: Columns that may be absent or have empty cells.
OPTIONAL = ("team", "limit_s", "min_runtime_s", "resumable", "priority", "gpu", "one_node")

COLUMNS = ("job", "team", "submit_s", "gpus", "run_s", *OPTIONAL[1:])

#: The defaults, as sentences of the account.
DEFAULTS = {
    "limit_s": "An empty limit_s, or -1, is unknown: the job has no limit.",
    "min_runtime_s": "An empty min_runtime_s counts as min(limit, 1 h).",
    "resumable": "An empty resumable counts as yes.",
    "priority": "An empty priority counts as 0.",
    "gpu": "An empty gpu means any type.",
    "one_node": "An empty one_node counts as no.",
}

ROUNDING = "Times are rounded to whole seconds, half a second up."


def gpu_rule(text: str) -> str:
    """The rule that the GPU types of a job break ("" where they are right): ``A100``, ``A100|T4``, nothing for any."""
    if text and not all(part.strip() and part == part.strip() for part in text.split("|")):
        return "must be a GPU type, or several joined by | (A100|T4)"
    return ""
