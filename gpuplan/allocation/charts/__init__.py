"""Charts of allocation plans: Gantts, demand, GPUs in use, comparison; for a live page or alone."""

from gpuplan.allocation.charts.alone import (
    comparison_chart,
    dashboard,
    demand_chart,
    gantt,
    gantt_pair,
    to_html,
    utilization_chart,
)
from gpuplan.allocation.charts.live import dashboard_data, dashboard_spec
from gpuplan.allocation.charts.words import describe, table

__all__ = [
    "comparison_chart",
    "dashboard",
    "dashboard_data",
    "dashboard_spec",
    "demand_chart",
    "describe",
    "gantt",
    "gantt_pair",
    "table",
    "to_html",
    "utilization_chart",
]
