"""Charts of allocation plans: Gantts, demand, GPUs in use, comparison; for a live page or alone.

The live page (`dashboard_spec`, `dashboard_data`) needs no Altair; charts that stand alone import it when asked for.
"""

from typing import TYPE_CHECKING, Any

from gpuplan.allocation.charts.live import dashboard_data, dashboard_spec
from gpuplan.allocation.charts.words import describe, table

if TYPE_CHECKING:
    from gpuplan.allocation.charts.alone import (
        comparison_chart,
        dashboard,
        demand_chart,
        gantt,
        gantt_pair,
        to_html,
        utilization_chart,
    )
    from gpuplan.allocation.charts.gain import waterfall_chart
    from gpuplan.allocation.charts.hours import gpu_hours, hours_chart
    from gpuplan.allocation.charts.rolling import (
        error_map_chart,
        horizon_chart,
        lookahead_chart,
        promise_chart,
    )
    from gpuplan.allocation.charts.sensitivity import sensitivity_chart

__all__ = [
    "comparison_chart",
    "dashboard",
    "dashboard_data",
    "dashboard_spec",
    "demand_chart",
    "describe",
    "error_map_chart",
    "gantt",
    "gantt_pair",
    "gpu_hours",
    "horizon_chart",
    "hours_chart",
    "lookahead_chart",
    "promise_chart",
    "sensitivity_chart",
    "table",
    "to_html",
    "utilization_chart",
    "waterfall_chart",
]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from gpuplan.allocation.charts import alone, gain, hours, rolling, sensitivity

    homes = {
        "waterfall_chart": gain,
        "sensitivity_chart": sensitivity,
        "gpu_hours": hours,
        "hours_chart": hours,
    }
    home = homes.get(name, rolling if hasattr(rolling, name) else alone)
    return getattr(home, name)
