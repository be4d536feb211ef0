"""Numbers of a run as words of a sentence."""

from gpuplan.fairshare.model import DAY, HOUR, NEVER, Int64


def span(seconds: int) -> str:
    """A length of time for people: 45 s, 12 min, 3.4 h, 2.1 d."""
    if seconds >= NEVER:
        return "ever"
    if seconds < 120:
        return f"{seconds} s"
    if seconds < 2 * HOUR:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / HOUR:.1f} h" if seconds < 2 * DAY else f"{seconds / DAY:.1f} d"


def ordinal(n: int) -> str:
    """1st, 2nd, 3rd, 4th, 11th..."""
    last = "th" if n % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(n % 10, "th")
    return f"{n:,}{last}"


def gpus_text(n: int, kind: str = "") -> str:
    """GPUs by number: 1 GPU, 12 GPUs, 16 A100."""
    return f"{n:,} {kind or ('GPU' if n == 1 else 'GPUs')}"


def nodes_text(nodes: Int64) -> str:
    """Nodes by number, the first few of many."""
    if len(nodes) == 1:
        return f"node {nodes[0]}"
    listed = ", ".join(map(str, nodes[:4].tolist()))
    return f"nodes {listed}" + (f" and {len(nodes) - 4} more" if len(nodes) > 4 else "")
