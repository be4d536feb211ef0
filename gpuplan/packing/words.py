"""Amounts as people read them."""

from gpuplan.packing.model import GIB, SECOND


def gib(amount: int) -> str:
    """Bytes as GiB with the digits that matter: ``79.3 GiB``, ``0.5 GiB``."""
    return f"{round(amount / GIB, 2):,.10g} GiB"


def seconds(time_us: int) -> str:
    """Microseconds as seconds with at most three decimals: ``1.25 s``."""
    return f"{round(time_us / SECOND, 3):,.12g} s"
