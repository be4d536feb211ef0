"""What a Gantt is drawn in: GPUs, hours, pixels; its time axis; names as safe text."""

import math
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

#: Pixels of the strip above the first GPU that marks unmet demand.
STRIP_PX = 12

#: Invisible signs that belong to words and emoji.
_JOINERS = "\u200c\u200d"

#: Height of the drawing by number of GPUs, in few steps: a change of cluster size rarely changes the spec.
_HEIGHTS = ((4, 110), (8, 170), (16, 220), (32, 280), (64, 350))


@dataclass(frozen=True, slots=True)
class Frame:
    """What a Gantt is drawn in: so many GPUs for so many hours on so many pixels.

    Parameters
    ----------
    gpus, node_size
        Number of GPUs, and GPUs of a node.
    hours
        Length of the horizon in hours.
    start
        Clock time of hour 0; ``None`` labels the axis with hours of the horizon.
    width, height
        Pixels of the drawing area; no height takes the one that suits the number of GPUs.
    """

    gpus: int
    hours: float
    node_size: int
    start: datetime | None = None
    width: int = 640
    height: int = 0

    def __post_init__(self) -> None:
        if self.height == 0:
            object.__setattr__(self, "height", gantt_height(self.gpus))

    @property
    def px_per_gpu(self) -> float:
        """Pixels of a GPU's row."""
        return (self.height - STRIP_PX) / self.gpus

    @property
    def strip(self) -> float:
        """Height of the strip of unmet demand, in rows."""
        return STRIP_PX / self.px_per_gpu

    def clock(self, hour: float) -> str:
        """Hour of the horizon as text: ``"14:30"``, ``"Tue 14:30"`` beyond a day, or ``"3.5"``."""
        if self.start is None:
            return f"{round(hour, 2):g}"
        moment = self.start + timedelta(seconds=round(hour * 3600))
        return moment.strftime("%H:%M" if self.hours <= 24 else "%a %H:%M")


def gantt_height(gpus: int) -> int:
    """Pixels of a Gantt for a number of GPUs."""
    return next((height for most, height in _HEIGHTS if gpus <= most), 420)


def safe_text(name: str, limit: int = 200) -> str:
    """Name as one line of visible text: what moves a cursor or turns the line round becomes a blank."""
    if not name.isprintable():
        name = "".join(sign if sign.isprintable() or sign in _JOINERS else " " for sign in name)
    return name if len(name) <= limit else name[: limit - 1] + "…"


def time_axis(frame: Frame, *, title: bool = True, labels: bool = True) -> dict[str, Any]:
    """Axis of hours with round ticks, clock times where the frame has a start; a zoom thins its labels."""
    every = next(
        (step for step in (1, 2, 3, 6, 12, 24) if frame.hours / step <= 50),
        24 * math.ceil(frame.hours / 1200),
    )
    axis: dict[str, Any] = {
        "values": [every * number for number in range(math.floor(frame.hours / every) + 1)],
        "title": None,
        "labels": labels,
        "ticks": labels,
        "labelOverlap": "parity",
        "labelSeparation": 4,
        "format": "~g",
    }
    if title:
        axis["title"] = (
            "hour of the horizon" if frame.start is None else f"time (from {frame.start:%Y-%m-%d %H:%M})"
        )
    if frame.start is not None:
        moment = frame.start
        origin = f"utc({moment.year},{moment.month - 1},{moment.day},{moment.hour},{moment.minute})"
        pattern = "%H:%M" if frame.hours <= 24 else "%a %H:%M"
        axis["labelExpr"] = f"utcFormat({origin}+datum.value*3600000,'{pattern}')"
    return axis
