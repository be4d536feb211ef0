"""Pydantic models of the fair-share scenario file: what each key means, its unit, its limits.

They exist at the border only; `gpuplan.fairshare.schema` turns them into the frozen value that policies work with.
"""

from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from gpuplan.fairshare.job_limits import MOST_GPUS, MOST_JOB_GPUS, MOST_PRIORITY, MOST_S, gpu_rule
from gpuplan.fairshare.model import DAY, BudgetChange, BudgetNode, Contract, Drain, Generate, Pool
from gpuplan.inputs.fields import (
    Choice,
    Flag,
    Real,
    Text,
    Whole,
    as_list_or_empty,
    as_list_or_none,
    as_mapping,
    as_section,
    broken,
    is_null,
)
from gpuplan.inputs.spans import Span

#: Deepest tree of budgets.
DEEPEST_TREE = 50

MOST_ROWS = 100_000

#: Most instants at which budgets change.
MOST_CHANGES = 1_000

#: Pools are bits of a 64-bit whole number in the simulator.
MOST_POOLS = 60

#: Longest window and longest generated workload: ten years.
LONGEST_S = 3_660 * DAY


_CONTRACT, _GENERATE = Contract(), Generate()


class BudgetName(Text):
    """The name of a budget: text without ``/``, which joins the names of a path."""

    def read(self, value: Any) -> str:
        """The text as written."""
        text = Text.read(self, value)
        if "/" in text:
            raise broken("must not hold /, which joins the names of a path")
        return text


class GpuType(Text):
    """A GPU type of a pool: text without ``|``, with which jobs name several."""

    def read(self, value: Any) -> str:
        """The text as written."""
        text = Text.read(self, value)
        if "|" in text or text != text.strip():
            raise broken("must not hold |, with which jobs name several types, nor blanks at its ends")
        return text


class GpuTypes(Text):
    """The GPU types that a job accepts, joined by ``|``; nothing: any."""

    def read(self, value: Any) -> str:
        """The text as written."""
        text = "" if is_null(value) else Text.read(self, value)
        rule = gpu_rule(text)
        if rule:
            raise broken(rule)
        return text


class Limit(Span):
    """A limit in seconds; -1, null and nothing: unknown, which is no limit."""

    def read(self, value: Any) -> int | None:
        """The limit in whole seconds."""
        if value == -1 or value == "-1":
            return None
        return Span.read(self, value)


class Strict(BaseModel):
    """Frozen, and unknown keys are refused."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class ClusterFile(Strict):
    """Equal nodes, or one flat pool of GPUs."""

    gpus: Annotated[int | None, Whole(1, MOST_GPUS, optional=True)] = Field(
        default=None, description="GPUs of one flat pool, not divided into nodes."
    )
    nodes: Annotated[int | None, Whole(1, MOST_GPUS, optional=True)] = Field(
        default=None, description="Number of nodes."
    )
    gpus_per_node: Annotated[int | None, Whole(1, MOST_GPUS, optional=True)] = Field(
        default=None, description="GPUs of every node."
    )

    def build(self, gpu: str = "") -> Pool:
        """The pool; a flat one is one node."""
        if self.gpus is not None:
            return Pool(1, self.gpus, gpu)
        return Pool(self.nodes or 1, self.gpus_per_node or 1, gpu)


class PoolFile(ClusterFile):
    """Equal nodes of one GPU type (or a flat pool of it)."""

    gpu: Annotated[str, GpuType(1, 100)] = Field(description="GPU type, which jobs name.")


class ContractFile(Strict):
    """What a workload is promised, and what a preemption costs."""

    max_min_runtime: Annotated[int, Span(0, LONGEST_S)] = Field(
        default=_CONTRACT.max_min_runtime_s,
        description="Cap on the declared minimum run time, with a unit (8h).",
    )
    checkpoint_every: Annotated[int, Span(1, LONGEST_S)] = Field(
        default=_CONTRACT.checkpoint_every_s,
        description="Run time between two checkpoints, with a unit (30min).",
    )
    restart_cost: Annotated[int, Span(0, LONGEST_S)] = Field(
        default=_CONTRACT.restart_cost_s, description="Time that a restart needs, with a unit (5min)."
    )
    hysteresis: Annotated[float | None, Real(0, 1_000, optional=True)] = Field(
        default=None,
        description="How much lower a budget's ratio must be to preempt another's work; "
        "null: max_min_runtime / window.",
    )

    def build(self) -> Contract:
        """The contract."""
        return Contract(self.max_min_runtime, self.checkpoint_every, self.restart_cost, self.hysteresis)


class BudgetFile(Strict):
    """A budget: a weight among its siblings; without children it is a team."""

    name: Annotated[str, BudgetName(1, 200)] = Field(description="Name, unique among its siblings.")
    weight: Annotated[float | None, Real(0, 1e9, optional=True)] = Field(
        default=None, description="Weight among its siblings; null: 1."
    )
    children: Annotated[
        tuple[Annotated["BudgetFile", BeforeValidator(as_mapping)], ...], BeforeValidator(as_list_or_empty)
    ] = Field(default=(), description="Budgets into which this one is divided.")

    def build(self) -> BudgetNode:
        """The budget and those below it."""
        weight = 1.0 if self.weight is None else self.weight
        return BudgetNode(self.name, weight, tuple(child.build() for child in self.children))


class ChangeFile(Strict):
    """Other weights of budgets from an instant on."""

    at: Annotated[int, Span(0, LONGEST_S)] = Field(
        description="When budgets change, after the start, with a unit (14d)."
    )
    weights: Annotated[dict[str, Annotated[float, Real(0, 1e9)]], BeforeValidator(as_mapping)] = Field(
        description="New weight among its siblings by path of the budget (language/pretraining); others keep theirs."
    )

    def build(self) -> BudgetChange:
        """The change, its weights by path."""
        return BudgetChange(self.at, tuple(sorted((str(path), w) for path, w in self.weights.items())))


class GenerateFile(Strict):
    """A workload made by the generator."""

    days: Annotated[int, Span(60, LONGEST_S, unit="d")] = Field(
        default=round(_GENERATE.days * DAY),
        description="Length in days, or text with a unit; the run stops there.",
    )
    oversubscription: Annotated[float, Real(0, 10)] = Field(
        default=_GENERATE.oversubscription, description="GPU-hours submitted / available over the days."
    )
    debug_share: Annotated[float, Real(0, 1)] = Field(
        default=_GENERATE.debug_share, description="Share of the jobs that are debug jobs."
    )
    seed: Annotated[int, Whole(0, 2**53)] = Field(
        default=_GENERATE.seed, description="Seed: the same workload every time."
    )

    def build(self) -> Generate:
        """What the generator is asked for."""
        return Generate(self.days / DAY, self.oversubscription, self.debug_share, self.seed)


class JobFile(Strict):
    """A job; the keys are the columns of a job table."""

    job: Annotated[str, Text(1, 200)] = Field(description="Id, unique.")
    team: Annotated[str | None, Text(1, 20_000)] = Field(
        default=None,
        description="Path of a leaf of the tree, or its name where that is unique; may be left out where there is one.",
    )
    submit_s: Annotated[int, Span(0, MOST_S, unit="s")] = Field(
        default=0, description="Submission: seconds after the start, or text with a unit."
    )
    gpus: Annotated[int, Whole(1, MOST_JOB_GPUS)] = Field(description="GPUs, all at once.")
    run_s: Annotated[int, Span(0, MOST_S, unit="s")] = Field(
        description="Run time in seconds without interruption, or text with a unit."
    )
    limit_s: Annotated[int | None, Limit(0, MOST_S, unit="s", optional=True)] = Field(
        default=None, description="Limit of the run time in seconds; null or -1: none is known."
    )
    min_runtime_s: Annotated[int | None, Span(0, MOST_S, unit="s", optional=True)] = Field(
        default=None, description="Declared minimum run time in seconds; null: min(limit, 1 h)."
    )
    resumable: Annotated[bool, Flag()] = Field(default=True, description="Goes on from its last checkpoint.")
    priority: Annotated[int, Whole(-MOST_PRIORITY, MOST_PRIORITY)] = Field(
        default=0, description="Declared priority; larger is more important."
    )
    gpu: Annotated[str, GpuTypes(0, 1_000)] = Field(
        default="", description="GPU types that will do, joined by |; nothing: any."
    )
    one_node: Annotated[bool, Flag()] = Field(default=False, description="Refuses to be spread over nodes.")


JobRows = Annotated[tuple[Annotated[JobFile, BeforeValidator(as_mapping)], ...], Field(max_length=MOST_ROWS)]


class WorkloadFile(Strict):
    """Where the jobs come from: a table, the generator, or rows that stand here."""

    file: Annotated[str | None, Text(1, 4_000)] = Field(
        default=None, description="A job table (.csv or .csv.gz), relative to the scenario file."
    )
    generate: Annotated[GenerateFile | None, BeforeValidator(lambda value: _or_none(value))] = Field(
        default=None, description="A generated workload."
    )
    jobs: Annotated[JobRows | None, BeforeValidator(as_list_or_none)] = Field(
        default=None, description="The jobs themselves, with the columns of a job table as keys."
    )


def _or_none(value: Any) -> Any:
    return None if is_null(value) else as_mapping(value)


class BehaviourFile(Strict):
    """Habits of the old world, as rates."""

    inflation: Annotated[float, Real(0, 1)] = Field(
        default=0.0, description="Share of jobs that declare the highest priority."
    )
    squatting: Annotated[float, Real(0, 1)] = Field(
        default=0.0, description="Share of debug jobs for which GPUs are held by a no-op job instead."
    )
    opt_out: Annotated[float, Real(0, 1)] = Field(
        default=0.0, description="Share of jobs that opt out of preemption (priority-tiers)."
    )
    opt_out_limit_gpus: Annotated[int, Whole(0, MOST_GPUS)] = Field(
        default=16, description="GPUs that a team may hold with jobs that opted out."
    )


class DrainFile(Strict):
    """A node that takes no new work from a time on, and is repaired once it is empty."""

    node: Annotated[int, Whole(0, MOST_GPUS)] = Field(
        description="Number of the node, from 0, through all pools."
    )
    since: Annotated[int, Span(0, LONGEST_S)] = Field(
        alias="from", description="When it stops to take work, with a unit (2d)."
    )
    repair: Annotated[int, Span(0, LONGEST_S)] = Field(
        description="How long the repair takes, with a unit (4h)."
    )

    def build(self) -> Drain:
        """The drain."""
        return Drain(self.node, self.since, self.repair)


class ScenarioFile(Strict):
    """A gpuplan scenario file: one cluster over weeks, a tree of budgets, a contract, jobs."""

    kind: Annotated[str, Choice(("fairshare",))] = Field(description="Which question the scenario asks.")
    name: Annotated[str, Text(1, 10_000)] = Field(description="Name of the scenario.")
    about: Annotated[str, Text(0, 4_000, lines=True)] = Field(
        default="", description="One paragraph for people."
    )
    cluster: Annotated[ClusterFile | None, BeforeValidator(_or_none)] = Field(
        default=None, description="Equal nodes, or one flat pool; null where there are pools."
    )
    pools: Annotated[
        tuple[Annotated[PoolFile, BeforeValidator(as_mapping)], ...],
        BeforeValidator(as_list_or_empty),
        Field(max_length=MOST_POOLS),
    ] = Field(default=(), description="Pools of GPU types; null where there is one cluster.")
    window: Annotated[int, Span(1, LONGEST_S)] = Field(
        default=7 * DAY, description="Window over which budgets are kept, with a unit (7d)."
    )
    contract: Annotated[ContractFile, BeforeValidator(as_section)] = Field(
        default_factory=ContractFile, description="What a workload is promised."
    )
    budget: Annotated[
        tuple[Annotated[BudgetFile, BeforeValidator(as_mapping)], ...],
        BeforeValidator(as_list_or_empty),
        Field(max_length=MOST_ROWS),
    ] = Field(default=(), description="The tree of budgets; null: one team, everyone.")
    budget_changes: Annotated[
        tuple[Annotated[ChangeFile, BeforeValidator(as_mapping)], ...],
        BeforeValidator(as_list_or_empty),
        Field(max_length=MOST_CHANGES),
    ] = Field(default=(), description="Instants from which budgets have other weights.")
    workload: Annotated[WorkloadFile, BeforeValidator(as_mapping)] = Field(
        description="Where the jobs come from."
    )
    behaviour: Annotated[BehaviourFile, BeforeValidator(as_section)] = Field(
        default_factory=BehaviourFile, description="Habits of the old world."
    )
    drains: Annotated[
        tuple[Annotated[DrainFile, BeforeValidator(as_mapping)], ...],
        BeforeValidator(as_list_or_empty),
        Field(max_length=MOST_ROWS),
    ] = Field(default=(), description="Nodes that are drained and repaired.")
    until: Annotated[int | None, Span(1, LONGEST_S, optional=True)] = Field(
        default=None,
        description="The run stops there, with a unit; null: after the days of a generated workload, "
        "otherwise when nothing is left to do.",
    )


BudgetFile.model_rebuild()

#: The model at each place of a scenario file; a star stands for every row.
MODELS: dict[str, type[Strict]] = {
    "": ScenarioFile,
    "cluster": ClusterFile,
    "pools.*": PoolFile,
    "contract": ContractFile,
    "budget.*": BudgetFile,
    "budget_changes.*": ChangeFile,
    "workload": WorkloadFile,
    "workload.generate": GenerateFile,
    "workload.jobs.*": JobFile,
    "behaviour": BehaviourFile,
    "drains.*": DrainFile,
}
