"""Pydantic models of the allocation scenario file: what each key means, its unit, its limits.

They exist at the border only. `build` turns each into the frozen value that gpuplan works with.
"""

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BeforeValidator, Discriminator, Field, Tag

from gpuplan.allocation.file_jobs import BatchFile, JobRows, RangeFile
from gpuplan.allocation.file_parts import (
    MOST_DEMAND,
    MOST_GPUS,
    MOST_HOURS,
    MOST_STEPS,
    GpuNumbers,
    Level,
    Name,
    Priority,
    Strict,
)
from gpuplan.allocation.model import (
    AllocationScenario,
    DemandShape,
    Horizon,
    Objective,
    RealtimeApp,
    Rules,
)
from gpuplan.cluster import Cluster
from gpuplan.inputs.errors import dotted
from gpuplan.inputs.fields import (
    Choice,
    Flag,
    Hours,
    Moment,
    Real,
    Text,
    Whole,
    as_list,
    as_list_or_empty,
    as_list_or_none,
    as_mapping,
    as_section,
)


class ClusterFile(Strict):
    """The GPUs, in one line of equal nodes."""

    gpus: Annotated[int, Whole(1, MOST_GPUS)] = Field(description="Number of GPUs.")
    gpus_per_node: Annotated[int | None, Whole(1, MOST_GPUS, optional=True)] = Field(
        default=None, description="GPUs of a node; the last node may be smaller. null: all GPUs on one node."
    )
    unavailable: Annotated[GpuNumbers, BeforeValidator(as_list_or_empty)] = Field(
        default=(), description="Numbers (from 0) of the GPUs that nobody may use."
    )
    price_per_gpu_hour: Annotated[float | None, Real(0, 1e6, optional=True)] = Field(
        default=None, description="Price of one GPU for one hour, in any currency; adds cost figures."
    )

    def build(self) -> Cluster:
        """The cluster, unavailable GPUs in ascending order."""
        away = tuple(sorted(self.unavailable))
        return Cluster(self.gpus, self.gpus_per_node, away, self.price_per_gpu_hour)


class HorizonFile(Strict):
    """The time that is planned, cut into equal steps."""

    steps: Annotated[int, Whole(1, MOST_STEPS)] = Field(default=24, description="Number of steps.")
    step_hours: Annotated[float, Hours(1, 168, whole_seconds=True)] = Field(
        default=1.0, description="Length of a step in hours, or text with a unit (30min); whole seconds."
    )
    start: Annotated[str | None, Moment(optional=True)] = Field(
        default=None, description="Date and hour of step 0, local time; labels the axis only."
    )

    def build(self) -> Horizon:
        """The horizon."""
        return Horizon(self.steps, round(self.step_hours * 3600), self.start)


class ObjectiveFile(Strict):
    """Value of batch work minus the penalty of unmet demand."""

    shortfall_penalty: Annotated[float, Real(0, 1_000_000, decimals=6)] = Field(
        default=8.0,
        description="Cost of a GPU-step of unmet demand, in GPU-steps of batch work of the same priority.",
    )
    half_life_hours: Annotated[float | None, Hours(1, MOST_HOURS, optional=True)] = Field(
        default=24.0,
        description="Hours after which batch work is worth half, or text with a unit; null: no decay.",
    )

    def build(self) -> Objective:
        """The objective."""
        return Objective(self.shortfall_penalty, self.half_life_hours)


class RulesFile(Strict):
    """What a legal plan must respect beyond the laws of the grid."""

    must_finish: Annotated[bool, Flag()] = Field(
        default=True, description="A job starts only if it also ends inside the horizon."
    )
    within_node: Annotated[bool, Flag()] = Field(
        default=False,
        description="A block up to the size of a node lies on one node; a larger one takes whole nodes.",
    )

    def build(self) -> Rules:
        """The rules."""
        return Rules(self.must_finish, self.within_node)


class ShapeFile(Strict):
    """A raised-cosine day of demand, repeated every 24 hours."""

    base: Level = Field(description="GPUs wanted outside the peak.")
    peak: Level = Field(description="GPUs wanted at the peak.")
    peak_hour: Annotated[float, Hours(0, MOST_HOURS)] = Field(
        description="Hour of the peak, from the start of the horizon."
    )
    width_hours: Annotated[float, Hours(1, MOST_HOURS)] = Field(description="Width of the peak in hours.")

    def build(self) -> DemandShape:
        """The shape."""
        return DemandShape(self.base, self.peak, self.peak_hour, self.width_hours)


def _demand_form(value: Any) -> str:
    return "shape" if isinstance(value, (Mapping, ShapeFile)) else "list"


Steps = Annotated[tuple[Annotated[int, Whole(0, MOST_DEMAND)], ...], BeforeValidator(as_list)]
Demand = Annotated[
    Annotated[Steps, Tag("list")]
    | Annotated[Annotated[ShapeFile, BeforeValidator(as_mapping)], Tag("shape")],
    Discriminator(_demand_form),
]


class RealtimeFile(Strict):
    """A real-time app: an elastic demand curve."""

    name: Name = Field(description="Name, unique over apps and jobs.")
    priority: Priority = Field(description="More than 0, at most three decimals; larger is more important.")
    demand: Demand = Field(
        description="GPUs wanted in each step (one number per step), or a shape of the day."
    )
    max_swap: Annotated[int | None, Whole(0, MOST_GPUS, optional=True)] = Field(
        default=None,
        description="Most GPUs acquired, and most released, from one step to the next; null: no cap.",
    )
    min_gpus: Annotated[int, Whole(0, MOST_GPUS)] = Field(
        default=0, description="GPUs held at least, in every step."
    )
    max_gpus: Annotated[int | None, Whole(0, MOST_GPUS, optional=True)] = Field(
        default=None, description="GPUs held at most, in every step; null: all."
    )
    held: Annotated[GpuNumbers | None, BeforeValidator(as_list_or_none)] = Field(
        default=None,
        description="Numbers of the GPUs held before step 0; null: unknown, the cap counts from step 1.",
    )
    swap_budget: Annotated[int | None, Whole(0, MOST_GPUS * MOST_STEPS, optional=True)] = Field(
        default=None, description="Most GPUs acquired over the whole horizon; null: no budget."
    )

    def build(self, horizon: Horizon) -> RealtimeApp:
        """The app, a shape written out over the horizon."""
        shape = self.demand.build() if isinstance(self.demand, ShapeFile) else None
        demand = (
            self.demand if not isinstance(self.demand, ShapeFile) else self.demand.build().demand(horizon)
        )
        return RealtimeApp(
            self.name,
            self.priority,
            demand,
            shape,
            self.max_swap,
            self.min_gpus,
            self.max_gpus,
            self.held,
            self.swap_budget,
        )


AppRows = tuple[Annotated[RealtimeFile, BeforeValidator(as_mapping)], ...]


class ScenarioFile(Strict):
    """A gpuplan scenario file: one horizon on one cluster, real-time apps and batch jobs."""

    kind: Annotated[str, Choice(("allocation",))] = Field(description="Which question the scenario asks.")
    name: Name = Field(description="Name of the scenario.")
    about: Annotated[str, Text(0, 4000, lines=True)] = Field(
        default="", description="One paragraph for people."
    )
    cluster: Annotated[ClusterFile, BeforeValidator(as_mapping)] = Field(description="The GPUs.")
    horizon: Annotated[HorizonFile, BeforeValidator(as_section)] = Field(
        default_factory=HorizonFile, description="The time that is planned."
    )
    objective: Annotated[ObjectiveFile, BeforeValidator(as_section)] = Field(
        default_factory=ObjectiveFile, description="What a plan is worth."
    )
    rules: Annotated[RulesFile, BeforeValidator(as_section)] = Field(
        default_factory=RulesFile, description="What is legal."
    )
    realtime: Annotated[AppRows, BeforeValidator(as_list_or_empty), Field(max_length=1_000)] = Field(
        default=(), description="Real-time apps."
    )
    batch: Annotated[JobRows, BeforeValidator(as_list_or_empty), Field(max_length=100_000)] = Field(
        default=(), description="Batch jobs, in order of arrival."
    )

    def build(self) -> AllocationScenario:
        """The scenario that policies are functions of."""
        horizon = self.horizon.build()
        return AllocationScenario(
            name=self.name,
            cluster=self.cluster.build(),
            horizon=horizon,
            objective=self.objective.build(),
            rules=self.rules.build(),
            realtime=tuple(app.build(horizon) for app in self.realtime),
            batch=tuple(job.build() for job in self.batch),
            about=self.about,
        )


#: The model at each place of a scenario file; a star stands for every row.
MODELS: dict[str, type[Strict]] = {
    "": ScenarioFile,
    "cluster": ClusterFile,
    "horizon": HorizonFile,
    "objective": ObjectiveFile,
    "rules": RulesFile,
    "realtime.*": RealtimeFile,
    "realtime.*.demand": ShapeFile,
    "batch.*": BatchFile,
    "batch.*.gpus": RangeFile,
}

_NO_DEMAND = {"base": 0, "peak": 0, "peak_hour": 0, "width_hours": 1}

#: Stand-ins for required values that are wrong, so lenient that no other rule complains of them.
NEUTRAL: dict[str, Any] = {
    "kind": "allocation",
    "name": "unnamed",
    "cluster": {"gpus": MOST_GPUS},
    "cluster.gpus": MOST_GPUS,
    "realtime.*": lambda path: {"name": dotted(path), "priority": 1, "demand": _NO_DEMAND},
    "realtime.*.name": dotted,
    "realtime.*.priority": 1,
    "realtime.*.demand": _NO_DEMAND,
    "batch.*": lambda path: {"name": dotted(path), "kind": "training", "gpus": 1, "hours": 1, "priority": 1},
    "batch.*.name": dotted,
    "batch.*.kind": "training",
    "batch.*.gpus": 1,
    "batch.*.hours": 1,
    "batch.*.gpu_hours": 1,
    "batch.*.priority": 1,
}
