"""What NVIDIA's DCGM exporter publishes: names of metrics with their units, labels, and its signs for "no value".

Sources: NVIDIA, "DCGM Exporter" (names, units and labels of the metrics) and "DCGM API reference" (blank values).
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Measure:
    """A metric: what it is called here, in which unit, what turns a reading into it, and its range.

    `most` None: no upper end. A `counter` becomes its increase in a second.
    """

    name: str
    unit: str
    scale: float = 1.0
    most: float | None = None
    counter: bool = False


_MIB = 1 / 1024

#: Metrics by their name; shares from 0 to 1, memory in GiB (the exporter says MiB), power in watts.
MEASURES: Mapping[str, Measure] = {
    "DCGM_FI_DEV_GPU_UTIL": Measure("utilization", "share of time", 0.01, 1.0),
    "DCGM_FI_DEV_MEM_COPY_UTIL": Measure("memory_copy", "share of time", 0.01, 1.0),
    "DCGM_FI_PROF_GR_ENGINE_ACTIVE": Measure("engine_active", "share of time", 1.0, 1.0),
    "DCGM_FI_PROF_SM_ACTIVE": Measure("sm_active", "share of time", 1.0, 1.0),
    "DCGM_FI_PROF_SM_OCCUPANCY": Measure("sm_occupancy", "share of warps", 1.0, 1.0),
    "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE": Measure("tensor_active", "share of time", 1.0, 1.0),
    "DCGM_FI_PROF_DRAM_ACTIVE": Measure("memory_active", "share of time", 1.0, 1.0),
    "DCGM_FI_DEV_FB_USED": Measure("memory_used", "GiB", _MIB),
    "DCGM_FI_DEV_FB_FREE": Measure("memory_free", "GiB", _MIB),
    "DCGM_FI_DEV_FB_RESERVED": Measure("memory_reserved", "GiB", _MIB),
    "DCGM_FI_DEV_FB_TOTAL": Measure("memory_total", "GiB", _MIB),
    "DCGM_FI_DEV_POWER_USAGE": Measure("power", "W"),
    # millijoules since the driver was loaded
    "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION": Measure("energy_power", "W", 0.001, None, counter=True),
}

#: Labels of a GPU and of what runs on it, with their other spellings (a server that renames puts "exported_" in front).
LABELS: Mapping[str, tuple[str, ...]] = {
    "uuid": ("UUID", "uuid", "gpu_uuid"),
    "instance": ("GPU_I_ID", "gpu_instance_id"),
    "host": ("Hostname", "hostname", "node", "instance"),
    "number": ("gpu", "minor_number"),
    "model": ("modelName", "model_name", "model"),
    "pod": ("exported_pod", "pod", "pod_name"),
    "namespace": ("exported_namespace", "namespace", "pod_namespace"),
    "container": ("exported_container", "container", "container_name"),
    "job": ("hpc_job", "exported_hpc_job"),
}

#: Labels of what runs on a GPU: they change while the GPU stays.
HOLDERS = ("job", "namespace", "pod", "container")

#: First of four blank values each: of 32-bit numbers, of doubles, of 64-bit numbers. (Not specified, not found, not
#: supported, not permitted; 64-bit ones are one and the same number once they are doubles.)
_BLANKS = (float(0x7FFFFFF0), 140_737_488_355_328.0, float(0x7FFFFFFFFFFFFFF0))


def is_blank(values: Floats) -> npt.NDArray[np.bool_]:
    """Readings that stand for "no value", bool as `values`: DCGM writes it as one of twelve enormous numbers."""
    found = np.zeros(values.shape, np.bool_)
    for first in _BLANKS:
        found |= (values >= first) & (values <= first + 3)
    return found


def label_of(labels: Mapping[str, str], kind: str) -> str:
    """The value of a label in any of its spellings; empty where there is none."""
    return next((labels[name] for name in LABELS[kind] if labels.get(name)), "")
