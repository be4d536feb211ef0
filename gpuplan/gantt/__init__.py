"""The one Gantt chart that all slices draw: GPUs downwards, time to the right, blocks of work as bars.

The *spec* (`spec`) depends on a `Frame` alone and names its data sets; the *data* (`bar_columns` and friends)
are dicts of columns. A live page embeds the spec once and patches data; `inline` puts the data in for good.
"""

from gpuplan.gantt.columns import Columns, add_unmet, bar_columns, frame_columns, mark_columns, row_columns
from gpuplan.gantt.frame import STRIP_PX, Frame, gantt_height, safe_text, time_axis
from gpuplan.gantt.layers import (
    SCHEMA,
    Links,
    Spec,
    field,
    inline,
    mark,
    pixels_wide,
    records,
    spec,
    still,
    still_param,
)  # fmt: skip

__all__ = [
    "SCHEMA",
    "STRIP_PX",
    "Columns",
    "Frame",
    "Links",
    "Spec",
    "add_unmet",
    "bar_columns",
    "field",
    "frame_columns",
    "gantt_height",
    "inline",
    "mark",
    "mark_columns",
    "pixels_wide",
    "records",
    "row_columns",
    "safe_text",
    "spec",
    "still",
    "still_param",
    "time_axis",
]
