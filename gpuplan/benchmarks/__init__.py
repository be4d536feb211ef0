"""Benchmarks: what is measured, against which target, and whether the answer was right.

A file of this folder holds the measures of one part; `ENTRIES` lists them in the order of the table.
"""

from gpuplan.benchmarks import startup
from gpuplan.benchmarks.frame import Measure

#: All measures, in the order of the table.
ENTRIES: tuple[Measure, ...] = (*startup.ENTRIES,)
