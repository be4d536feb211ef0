"""Charts of fair-share runs: Gantt, allocation against owed, waits, delivered, pyramid, studies; live or alone.

The live page (`live_spec`, `live_data`) needs no Altair; charts that stand alone import it when they are drawn.
"""

from gpuplan.fairshare.charts.allocation import allocation_chart
from gpuplan.fairshare.charts.bars import delivered_chart, pyramid_chart
from gpuplan.fairshare.charts.gantt import gantt_chart
from gpuplan.fairshare.charts.live import live_data, live_spec
from gpuplan.fairshare.charts.studies import study_chart
from gpuplan.fairshare.charts.waits import wait_chart

__all__ = [
    "allocation_chart",
    "delivered_chart",
    "gantt_chart",
    "live_data",
    "live_spec",
    "pyramid_chart",
    "study_chart",
    "wait_chart",
]
