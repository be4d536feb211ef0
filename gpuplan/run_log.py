"""Which scenarios were run in this process, for a report of the notebook that ran them; off unless it is begun."""

from __future__ import annotations

from typing import Any

#: Scenarios that are kept at most; more are counted.
MOST = 1_000

_heard: dict[str, tuple[str, str]] | None = None
_more = 0


def begin() -> None:
    """Keep from now on which scenarios are run."""
    global _heard, _more
    _heard, _more = {}, 0


def ran(scenario: Any) -> None:
    """Say that a scenario is run; without `begin` nothing happens."""
    global _more
    if _heard is None:
        return
    if len(_heard) >= MOST:
        _more += 1
    else:
        _heard.setdefault(scenario.fingerprint, (scenario.kind, scenario.name))


def told() -> tuple[list[tuple[str, str, str]], int]:
    """Kind, name and fingerprint of every scenario that was run, in order, and how many runs came after the last."""
    return [(kind, name, mark) for mark, (kind, name) in (_heard or {}).items()], _more
