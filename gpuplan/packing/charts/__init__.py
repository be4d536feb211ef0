"""Charts of the packing slice; each imports Altair when it is drawn."""

from gpuplan.packing.charts.fragmentation import fragmentation_chart

__all__ = ["fragmentation_chart"]
