"""Words of a history: what is unknown, states and their groups, reasons for which a row is left out."""

from collections.abc import Mapping

from gpuplan.fairshare.model import NEVER

#: A number that is not known.
UNKNOWN = -1

#: A limit that is known to be none.
NO_LIMIT = NEVER

#: Why a row is no attempt of a job, by code; 0: it is one.
REASONS = (
    "",
    "cannot be read",
    "a step of a job, which has a row of its own",
    "a step of a job that has no row here",
    "the same line as an earlier one",
    "a later record of the same attempt stands in its place",
    "a summary line, not a job",
    "never arrived: no submission is told",
    "processors or GPUs contradict the cluster",
)
USED, UNREADABLE, STEP, LONE_STEP, REPEAT, SUPERSEDED, SUMMARY, NO_SUBMISSION, CONTRADICTION = range(9)

#: States as every reader names them, and the group of each.
STATES: Mapping[str, str] = {
    "completed": "completed",
    "cancelled": "cancelled",
    "failed": "failed",
    "timeout": "failed",
    "out_of_memory": "failed",
    "node_fail": "failed",
    "deadline": "failed",
    "boot_fail": "failed",
    "launch_failed": "failed",
    "reconfig_fail": "failed",
    "preempted": "preempted",
    "requeued": "preempted",
    "revoked": "revoked",
    "running": "running",
    "suspended": "running",
    "completing": "running",
    "configuring": "running",
    "resizing": "running",
    "signaling": "running",
    "stage_out": "running",
    "stopped": "running",
    "power_up_node": "running",
    "pending": "pending",
    "requeue_hold": "pending",
    "requeue_fed": "pending",
    "resv_del_hold": "pending",
    "special_exit": "pending",
    "unknown": "unknown",
}

#: Groups of states, in the order of tables and charts.
GROUPS = ("completed", "failed", "cancelled", "preempted", "revoked", "running", "pending", "unknown")

#: Columns of texts, and of numbers (with what stands where a reader has none).
TEXTS = ("job", "parent", "user", "team", "partition", "qos", "name", "cluster", "gpu_type", "state")
NUMBERS = (
    "submit_s",
    "eligible_s",
    "start_s",
    "end_s",
    "elapsed_s",
    "limit_s",
    "gpus",
    "requested_gpus",
    "priority",
    "together",
)
