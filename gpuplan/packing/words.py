"""Amounts as people read them."""

from collections.abc import Sequence

from gpuplan.packing.model import GIB, SECOND


def gib(amount: int) -> str:
    """Bytes as GiB with the digits that matter: ``79.3 GiB``, ``0.5 GiB``."""
    return f"{round(amount / GIB, 2):,.10g} GiB"


def seconds(time_us: int) -> str:
    """Microseconds as seconds with at most three decimals: ``1.25 s``."""
    return f"{round(time_us / SECOND, 3):,.12g} s"


def amount(size: int) -> str:
    """Bytes for people: 19.7 GiB, or as they are where that is nothing."""
    return f"{size:,} bytes" if 0 < size < GIB // 100 else gib(size)


def apart(size: int, limit: int) -> tuple[str, str]:
    """Bytes beside a limit that they exceed, for people: in whole bytes where GiB would make them look alike."""
    said = amount(size), amount(limit)
    return said if said[0] != said[1] else (f"{size:,} bytes", f"{limit:,} bytes")


def on_gpus(gpus: Sequence[int]) -> str:
    """GPUs by number: ``GPU 0``, ``GPUs 0 and 2``, ``GPUs 0, 1 and 3``."""
    if len(gpus) == 1:
        return f"GPU {gpus[0]}"
    return f"GPUs {', '.join(map(str, gpus[:-1]))} and {gpus[-1]}"
