"""How long a page with live controls takes to build, and how large it is."""

import time

from gpuplan.benchmarks.frame import Finding, Measure

#: Points of the page: penalties x sizes of the cluster (whole nodes), under three policies.
SCENARIO, PENALTIES, SIZES = "two-apps", range(1, 21), range(8, 88, 8)


def entries() -> tuple[Measure, ...]:
    """All measures of pages."""
    shape = f"{len(PENALTIES)} x {len(SIZES)} x 3"
    return (
        Measure(f"page with live controls: {SCENARIO}, {shape}, below 5 MB", _built, 15.0),
        Measure(f"page with live controls: all {len(PENALTIES) * len(SIZES)} points verified", _verified),
    )


def _page() -> str:
    from gpuplan.allocation.plan import warm_up
    from gpuplan.reports.grid import grid

    warm_up()
    return grid(SCENARIO, penalties=PENALTIES, gpus=SIZES).html


def _built() -> Finding:
    from gpuplan.allocation.plan import compare
    from gpuplan.loading import load_allocation
    from gpuplan.reports.grid import grid
    from gpuplan.reports.live_page import MOST_BYTES

    _page()
    began = time.perf_counter()
    found = grid(SCENARIO, penalties=PENALTIES, gpus=SIZES)
    size = len(found.html.encode())
    seconds = time.perf_counter() - began
    assert len(found.points) == len(PENALTIES) * len(SIZES), "points are missing"
    assert size < MOST_BYTES, "the page is too large"
    assert 'id="left-out"' not in found.html, "pictures are left out"
    assert not found.broken, "plans break rules"
    effort = {"seed": found.choices.seed, "iterations": found.choices.iterations}
    for place in range(0, len(found.points), 23):
        penalty, gpus = (axis.values[k] for axis, k in zip(found.axes, found.space.stops(place), strict=True))
        changed = {"objective.shortfall_penalty": penalty, "cluster.gpus": int(gpus)}
        plans = compare(load_allocation(SCENARIO).replace(changed), found.choices.policies, **effort).plans
        computed = [list(plan.figures.values()) for plan in plans.values()]
        assert found.points[place].figures == computed, "a point has other figures"
    return Finding(seconds, f"{size / 1e6:.1f} MB")


def _verified() -> Finding:
    from gpuplan.reports.verify_grid import verify_grid

    text = _page()
    began = time.perf_counter()
    found = verify_grid("page.html", text)
    seconds = time.perf_counter() - began
    assert found.holds, "the page does not hold"
    return Finding(seconds, f"{len(found.figures):,} figures")
