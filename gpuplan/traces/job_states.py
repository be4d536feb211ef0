"""The words that tables of jobs have for the end of a job, and what is meant by them."""

import re
from collections.abc import Mapping

_SIGNS = re.compile(r"[^a-z0-9]+")

#: Words for states, in small letters and without signs, as `gpuplan.traces.history.STATES` names them.
_STATE_WORDS: Mapping[str, str] = {
    "completed": "completed complete success succeeded successful pass passed done finished ok cd",
    "failed": "failed fail failure error errored crashed f",
    "cancelled": "cancelled canceled killed aborted stopped ca userkilled",
    "timeout": "timeout timedout to walltime",
    "out_of_memory": "outofmemory oom oomkilled",
    "node_fail": "nodefail nodefailure nf",
    "preempted": "preempted evicted pr",
    "requeued": "requeued rq",
    "running": "running r active",
    "pending": "pending waiting queued pd",
    "suspended": "suspended s paused",
    "deadline": "deadline dl",
    "boot_fail": "bootfail bf",
    "unknown": "unknown",
}
STATE_WORDS: Mapping[str, str] = {
    word: state for state, words in _STATE_WORDS.items() for word in words.split()
}


def state_of(text: str, own: Mapping[str, str]) -> str:
    """The state that a word tells: ``CANCELLED by 1001`` is ``cancelled``; a word that is not known stays as it is."""
    bare = _SIGNS.sub("", text.split(" by ")[0][:60].lower())
    return own.get(bare) or STATE_WORDS.get(bare) or text.strip().lower()[:60] or "unknown"
