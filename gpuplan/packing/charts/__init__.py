"""Charts of the packing slice: memory, Gantt, latency split, what still fits, throughput; live or alone.

The live page (`live_spec`, `live_data`) needs no Altair; charts that stand alone import it when they are drawn.
"""

from gpuplan.packing.charts.fit import fit_chart
from gpuplan.packing.charts.fragmentation import fragmentation_chart
from gpuplan.packing.charts.gantt import gantt_chart
from gpuplan.packing.charts.live import live_data, live_spec
from gpuplan.packing.charts.memory import memory_chart
from gpuplan.packing.charts.split import split_chart
from gpuplan.packing.charts.throughput import latency_throughput_chart

__all__ = [
    "fit_chart",
    "fragmentation_chart",
    "gantt_chart",
    "latency_throughput_chart",
    "live_data",
    "live_spec",
    "memory_chart",
    "split_chart",
]
