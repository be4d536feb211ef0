"""Charts of allocation plans: Gantts, demand, GPUs in use, comparison; for a live page or alone."""

from gpuplan.allocation.charts.dashboard import dashboard_data, dashboard_spec

__all__ = ["dashboard_data", "dashboard_spec"]
