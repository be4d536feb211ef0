"""Draws docs/picture.svg, the picture of the README: one day under two policies.

``python docs/picture.py`` writes it anew. Where letters stand depends on the fonts of a machine; what is drawn
does not: its fingerprint is in the file, and a test compares it with what the library computes today.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import TYPE_CHECKING

import gpuplan as gp

if TYPE_CHECKING:
    from gpuplan.gantt.offline import OfflineChart

PICTURE = Path(__file__).with_name("picture.svg")
SCENARIO = "training-rush"
POLICIES = ("fifo", "aware")
MARK = "drawn from "


def chart() -> OfflineChart:
    """Both plans of the day, at one scale."""
    from gpuplan.allocation.charts import gantt_pair

    both = gp.compare(SCENARIO, POLICIES)
    left, right = (both.plans[name] for name in POLICIES)
    return gantt_pair(left, right, width=980)


def fingerprint(drawn: OfflineChart) -> str:
    """SHA-256 of everything that is drawn: specification and data."""
    whole = json.dumps(drawn.to_dict(), sort_keys=True, default=str)
    return hashlib.sha256(whole.encode()).hexdigest()


def svg(drawn: OfflineChart) -> str:
    """The picture, on white, with its fingerprint as its description."""
    import vl_convert

    from gpuplan.gantt import still

    text: str = vl_convert.vegalite_to_svg({**still(drawn.to_dict()), "background": "white"})
    head, rest = text.split(">", 1)
    return f"{head}><desc>{MARK}{fingerprint(drawn)}</desc>{rest}\n"


if __name__ == "__main__":
    PICTURE.write_text(svg(chart()), encoding="utf-8")
