"""The claims about memory as charts: the margin that is needed, and the staircase of a smaller one."""

import math
from typing import TYPE_CHECKING

from gpuplan import theme
from gpuplan.gantt import field, mark
from gpuplan.packing.charts import claims_words as words
from gpuplan.packing.charts.claims_panels import COLOURS, columns_of, finished, line_panel, rule
from gpuplan.packing.margin_studies import ADVISED_MARGIN, MarginStudy, StairStudy, copies, copies_fit
from gpuplan.packing.model import ContentionModel
from gpuplan.packing.studies import means

if TYPE_CHECKING:
    from gpuplan.gantt.offline import OfflineChart


def margin_chart(found: MarginStudy, *, width: int = 980, mode: theme.Mode = "light") -> "OfflineChart":
    """The margin needed over declared size and uncounted context: formula (lines), simulated (dots), the advised 20 %.

    A dot is the least margin tried from which on nothing failed on a GPU that reservations fill to the byte, a cross
    that on a GPU of 80 GB.
    """
    import pandas as pd

    least = found.least()
    contexts = sorted(set(least["uncounted_gb"]))
    lines = [f"{value:g} GB not counted" for value in contexts]
    named = dict(zip(contexts, lines, strict=True))
    formula = least[least["gpu"] == "filled"].assign(
        line=lambda t: t["uncounted_gb"].map(named),
        needed=lambda t: 100 * t["needed"],
        low=math.nan,
        high=math.nan,
    )
    sets = {"needed": columns_of(formula.assign(seeds=1), "line", "declared_gb", "needed")}
    for gpu in ("filled", "80 GB"):
        tried = least[least["gpu"] == gpu]
        sets[gpu.replace(" ", "_")] = {
            "line": [named[value] for value in tried["uncounted_gb"]],
            "x": tried["declared_gb"].astype(float).tolist(),
            "mean": [round(100 * value, 2) for value in tried["least"]],
        }
    sets["advised"] = {"y": [100 * ADVISED_MARGIN]}
    sizes = sorted(set(least["declared_gb"]))
    scale_x = {"type": "log", "base": 2}
    x = field("x", scale={"nice": False, "padding": 10, **scale_x})
    fill = field(
        "line", "nominal", scale={"domain": lines, "range": list(COLOURS[: len(lines)])}, legend=None
    )
    at = {"x": x, "y": field("mean"), "fill": fill}
    shapes = [
        mark("filled", {"type": "point", "shape": "circle", "size": 90, "filled": True, "opacity": 0.55}, at),
        mark("80_GB", {"type": "point", "shape": "diamond", "size": 45, "filled": True, "opacity": 0.9}, at),
        rule("advised", {"y": field("y")}),
    ]
    panel = line_panel(
        "needed",
        lines,
        "margin needed (%)",
        "declared size (GB)",
        width - 90,
        scale_x=scale_x,
        ticks=sizes,
        extra=shapes,
    )
    panel["height"] = 280
    small = pd.Series({size: 15 + 50 / size for size in sizes})
    said = ", ".join(f"{size:g} GB: {value:.1f} %" for size, value in small.items())
    notes = words.of_margins(found)
    return finished(
        [panel],
        1,
        "Is a margin of 20 % enough?",
        notes,
        width,
        sets,
        mode,
        f"0.5 GB not counted needs {said}",
    )


def stair_chart(
    found: StairStudy,
    contention: ContentionModel = "slowdown",
    *,
    width: int = 980,
    mode: theme.Mode = "light",
) -> "OfflineChart":
    """Models per GPU, throughput, time on the GPU and tasks given up over the margin, a line per declared size.

    Parameters
    ----------
    found
        From `gpuplan.packing.margin_studies.stair_study`.
    contention
        How tasks on the GPU slow each other down; one of those of the study.
    width, mode
        As in `wait_map`.
    """
    mine = found.table[found.table["contention"] == contention]
    sizes = list(dict.fromkeys(mine["declared_gb"]))
    lines = [f"{size:g} GB" for size in sizes]
    table = mine.assign(line=mine["declared_gb"].map(dict(zip(sizes, lines, strict=True))))
    table = table.assign(margin=100 * table["margin"], failed=100 * table["failed"])
    figures = {
        "copies": "models per GPU that the scheduler admits",
        "throughput_gain": "throughput against a margin of 20 % (%)",
        "on_gpu_gain": "time on the GPU against a margin of 20 % (%)",
        "failed": "tasks given up for memory (%)",
    }
    sets, panels = {}, []
    for name, title in figures.items():
        sets[name] = columns_of(means(table, ["line", "margin"], name), "line", "margin", name)
        bounds = (
            (-60, 60) if name.endswith("_gain") else None
        )  # where nearly all is given up, intervals are wide
        panels.append(
            line_panel(name, lines, title, "margin (%)", (width - 130) // 2, step=True, bounds=bounds)
        )
    notes = words.of_stairs(found, contention)
    no_margin = [
        f"{size:g} GB: {copies(size, ADVISED_MARGIN)} to {copies(size, 0)} models, "
        + ("fits" if copies_fit(size, copies(size, 0)) else "out of memory")
        for size in sizes
    ]
    gains = found.without_margin()
    at = gains[gains["contention"] == contention].set_index("declared_gb")["throughput_gain"]
    said = "; ".join(
        f"{text}, throughput {at[size]:+.1f} %" for text, size in zip(no_margin, sizes, strict=True)
    )
    return finished(panels, 2, "What does a smaller margin win?", notes, width, sets, mode, said)
