"""Runs of the packing engine for laws, and what can be read from their stages and copies without its figures."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from gpuplan.packing.engine import run
from gpuplan.packing.model import Admission, Gpus, PackingScenario, Pieces, ServedModel
from gpuplan.packing.problem import compile_problem
from gpuplan.packing.raw import DONE, LOAD, RUN, RawPack
from gpuplan.packing.tasks import Tasks

Whole = npt.NDArray[np.int64]
Numbers = npt.NDArray[np.int64] | npt.NDArray[np.float64] | npt.NDArray[np.bool_]

#: Microseconds of a mean service.
MEAN = 1_000_000

#: Batches of the standard error, and the part of the run that is left out at its start.
BATCHES, LEFT_OUT = 40, 0.1

#: A link that brings any of the laws' models within a microsecond.
AT_ONCE = 10**15


def arrivals(rng: np.random.Generator, n: int, rate_per_mean: float) -> Whole:
    """Instants of a Poisson process of so many arrivals per mean service."""
    return np.cumsum(rng.exponential(MEAN / rate_per_mean, n)).astype(np.int64)


def exponential(rng: np.random.Generator, n: int, mean: float = MEAN) -> Whole:
    return np.maximum(1, rng.exponential(mean, n)).astype(np.int64)


@dataclass
class Seen:
    """A run, and per task: when it was placed first, when it began to run first, when it left."""

    raw: RawPack
    tasks: Tasks
    placed: Whole
    began: Whole
    left: Whole

    @property
    def queue(self) -> Whole:
        return self.placed - self.tasks.arrival_us

    @property
    def wait(self) -> Whole:
        return self.began - self.tasks.arrival_us

    @property
    def system(self) -> Whole:
        return self.left - self.tasks.arrival_us

    @property
    def cold(self) -> npt.NDArray[np.bool_]:
        """Tasks for which a copy had to be claimed."""
        found = np.zeros(len(self.tasks), bool)
        claims = self.raw.copies.for_task
        found[claims[claims >= 0]] = True
        return found


def serve(
    models: list[ServedModel], work: Tasks, policy: str = "first-fit", order: str = "fifo", **other: Any
) -> Seen:
    """Serves tasks until all are done; no margins, no context, unless told otherwise."""
    pieces = other.pop("pieces", Pieces(policy, order))
    other.setdefault("admission", Admission(0, 0))
    scenario = PackingScenario("law", models=tuple(models), tasks=work, **other)
    raw = run(compile_problem(scenario), pieces)
    assert (raw.state == DONE).all()
    return Seen(raw, work, first(raw, LOAD, len(work)), first(raw, RUN, len(work)), raw.left_us)


def kept_for(keep_alive_us: int) -> Pieces:
    """A policy that evicts a model that was idle for so long."""
    return Pieces("first-fit", eviction="keep-alive", keep_alive_us=keep_alive_us)


def first(raw: RawPack, kind: int, n: int) -> Whole:
    """Start of the first stage of a kind, per task."""
    found = np.full(n, -1, np.int64)
    of_kind = np.flatnonzero(raw.stages.kind == kind)[::-1]
    found[raw.stages.task[of_kind]] = raw.stages.start_us[of_kind]
    return found


def servers(count: int, spread: bool = True) -> tuple[list[ServedModel], Gpus]:
    """A resident model on GPUs of one slot, or on one GPU of so many slots: `count` servers."""
    gpus = count if spread else 1
    slots = 1 if spread else count
    model = ServedModel("m", 1, 1, resident=tuple(range(gpus)))
    return [model], Gpus(gpus, 10, max_tasks=slots)


def mean_and_error(values: Numbers) -> tuple[float, float]:
    """The mean, and its standard error by batch means, without the start of the run."""
    steady = values[int(LEFT_OUT * len(values)) :]
    batches = [float(batch.mean()) for batch in np.array_split(steady, BATCHES)]
    return float(steady.mean()), float(np.std(batches, ddof=1)) / math.sqrt(BATCHES)


def agrees(values: Numbers, formula: float, most_error: float = 0.05) -> None:
    """The mean lies within three standard errors of the formula, and the standard error is small."""
    mean, error = mean_and_error(values)
    assert error < most_error * formula, f"the run is too short to say anything: {mean:.6g} +- {error:.2g}"
    assert abs(mean - formula) < 3 * error, f"{mean:.6g} against {formula:.6g} +- {error:.2g}"
