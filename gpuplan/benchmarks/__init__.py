"""Benchmarks: what is measured, against which target, and whether the answer was right.

A file of this folder holds the measures of one part; `all_entries` lists them in the order of the table.
"""

from gpuplan.benchmarks.frame import Measure


def all_entries() -> tuple[Measure, ...]:
    """All measures, in the order of the table."""
    from gpuplan.benchmarks import (
        allocation,
        exact,
        fairshare,
        imports,
        imports_jobs,
        packing,
        packing_static,
        pages,
        quality,
        rolling,
        startup,
        sweeps,
    )

    return (
        *startup.ENTRIES,
        *allocation.entries(),
        *rolling.entries(),
        *fairshare.entries(),
        *packing.entries(),
        *packing_static.entries(),
        *quality.entries(),
        *exact.entries(),
        *imports.entries(),
        *imports_jobs.entries(),
        *sweeps.entries(),
        *pages.entries(),
    )
