"""The terms of the glossary: name, one plain sentence, unit, where it is shown, other words for it."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Term:
    """A term of the field.

    Attributes
    ----------
    name
        The term.
    sentence
        What it is, in one plain sentence.
    unit
        Unit of its number; a dash where it has none.
    shown
        Where in gpuplan it is seen.
    also
        Other words for it, in lower case.
    """

    name: str
    sentence: str
    unit: str
    shown: str
    also: tuple[str, ...] = ()

    def __str__(self) -> str:
        unit = "" if self.unit == "-" else f" Unit: {self.unit}."
        return f"{self.name}: {self.sentence}{unit} Shown in: {self.shown}."


COMMON = (
    Term(
        "idle",
        "Doing nothing of use: a GPU that is free, or held for nothing.",
        "GPU-hours",
        "white and pale parts of the Gantt chart",
    ),
    Term(
        "GPU-hour",
        "One GPU for one hour; 8 GPUs have 192 of them in a day.",
        "GPU-hours",
        "every table",
        ("gpu hour",),
    ),
    Term(
        "job",
        "A piece of work that holds one or more GPUs from its start to its end.",
        "-",
        "bars of the Gantt chart",
    ),
    Term(
        "policy",
        "The rule that decides which work gets which GPUs, and when.",
        "-",
        "the two lists above the charts",
    ),
    Term(
        "scenario",
        "A file with a cluster, the work and the rules: all that a run depends on.",
        "-",
        "scenarios/",
    ),
    Term(
        "Gantt chart",
        "A picture of work over time: a row per GPU, a bar per job, as long as it runs.",
        "-",
        "every explorer",
        ("gantt",),
    ),
    Term(
        "first in, first out",
        "Work starts in the order in which it came, the oldest first.",
        "-",
        "policy fifo",
        ("fifo", "first come, first served", "arrival"),
    ),
    Term(
        "priority",
        "A number that says how much more one piece of work counts than another.",
        "-",
        "job tables",
        ("priorities",),
    ),
    Term(
        "queue",
        "The work that has come and has not started.",
        "jobs or tasks",
        "explanations of why work waits",
    ),
    Term(
        "wait",
        "The time from coming (or from the earliest start) to starting.",
        "hours or seconds",
        "figures wait_...",
        ("waits",),
    ),
    Term(
        "percentile",
        "Half of the waits are at most p50 long, nine in ten at most p90, 99 in 100 at most p99.",
        "as the value",
        "figures ..._p50, ..._p90, ..._p99",
        ("p50", "p90", "p95", "p99", "median"),
    ),
    Term(
        "point",
        "The difference of two shares: from 50 % to 60 % is 10 points, though it is a fifth more.",
        "percentage points",
        "sentences above the charts",
        ("percentage point",),
    ),
    Term(
        "capacity",
        "How much useful work a cluster can do: its GPUs, and what the policy makes of them.",
        "GPUs or GPU-hours",
        "lesson 1",
    ),
    Term(
        "preemption",
        "Ending or pausing running work so that other work can start.",
        "preemptions",
        "figure preemptions",
        ("preempted", "interrupted"),
    ),
    Term(
        "makespan",
        "The time from the first submission to the last end.",
        "seconds",
        "figure makespan_s",
    ),
    Term(
        "fingerprint",
        "A code computed from a scenario's content: equal codes, equal input.",
        "-",
        "reports and --json",
    ),
    Term(
        "seed",
        "The number that random choices begin with: the same seed gives the same run.",
        "-",
        "scenarios and reports",
    ),
    Term(
        "set aside",
        "Work that can never run on this cluster; it blocks nobody and is in no wait.",
        "jobs",
        "notes under the figures",
        ("jobs set aside", "rejected"),
    ),
    Term(
        "row account",
        "What became of every row of a file: used, left out with its reason, unknown.",
        "rows",
        "gpuplan import",
        ("account",),
    ),
    Term(
        "interval",
        "The range in which a mean over seeds lies with 95 % confidence; where two overlap, read no "
        "difference.",
        "as the value",
        "charts of studies",
        ("confidence interval",),
    ),
)

ALLOCATION = (
    Term(
        "cost",
        "GPU-hours times their price: of all GPUs, of useful ones, of idle ones.",
        "price unit",
        "figures cost, cost_useful, cost_idle",
    ),
    Term(
        "app",
        "A service that answers people now; it needs more GPUs at its peak than at night.",
        "-",
        "striped bars",
        ("real-time app", "real-time inference"),
    ),
    Term(
        "demand",
        "The GPUs that an app wants, step by step.",
        "GPUs",
        "demand chart and curve editor",
        ("demand curve", "traffic"),
    ),
    Term(
        "curve",
        "Holding for an app what it wants in each hour, and no more.",
        "GPUs",
        "policies curve-...",
        ("follows its curve",),
    ),
    Term(
        "block",
        "GPUs side by side that one job holds from start to end: 1, 2, 4, 8 and so on.",
        "GPUs",
        "bars of the Gantt chart",
    ),
    Term("step", "The shortest time that is planned, as a rule an hour.", "hours", "axis of the Gantt chart"),
    Term("horizon", "How far a plan looks ahead.", "hours", "axis of the Gantt chart", ("whole horizon",)),
    Term(
        "reservation",
        "GPUs kept for an app all the time, as many as it needs at its peak.",
        "GPUs",
        "pale, lined bars",
        ("reserve", "reserves its peak"),
    ),
    Term(
        "useful",
        "Doing work: a GPU that is reserved but idle is held, and not useful.",
        "GPU-hours",
        "figure utilization",
    ),
    Term(
        "utilization",
        "Useful GPU-hours out of all available ones.",
        "%",
        "headline above the charts",
        ("utilisation",),
    ),
    Term("held", "GPU-hours held by anyone, used or not, out of all available ones.", "%", "figures"),
    Term(
        "value",
        "GPU-hours of jobs times their priorities, a little less the later they are done; apps earn none.",
        "priority-weighted GPU-hours",
        "figures value, value_undecayed",
        ("priority-weighted gpu-hour", "value undecayed"),
    ),
    Term(
        "half-life",
        "Work done that many hours later is worth half.",
        "hours",
        "scenario, objective.half_life_hours",
        ("decay",),
    ),
    Term(
        "penalty",
        "What a GPU-hour of unserved demand costs, in GPU-hours of jobs of the same priority; and the sum of "
        "it.",
        "priority-weighted GPU-hours",
        "slider and figure penalty",
    ),
    Term(
        "objective",
        "Value less penalty: what a plan is judged by.",
        "priority-weighted GPU-hours",
        "figure objective",
    ),
    Term("coverage", "The share of the demand that is served.", "%", "figure coverage", ("demand served",)),
    Term(
        "shortfall",
        "Demand that is not served.",
        "GPU-hours",
        "figure shortfall_gpu_hours",
        ("shortfall gpu hour", "unserved demand"),
    ),
    Term(
        "swap cap",
        "How many GPUs an app may acquire, and release, from one step to the next.",
        "GPUs per step",
        "slider swap cap",
        ("swap", "max swap"),
    ),
    Term(
        "order",
        "Which job is placed first; who comes first gets the room that others then lack.",
        "-",
        "policies ...-fifo and ...-priority",
    ),
    Term(
        "backfill",
        "Letting a later, smaller job into a gap where it delays nobody in front of it.",
        "-",
        "policies easy and conservative",
        ("easy backfill",),
    ),
    Term(
        "bound",
        "A number that the objective of no legal plan can pass.",
        "priority-weighted GPU-hours",
        "line in the comparison, figure bound",
        ("upper bound",),
    ),
    Term(
        "gap",
        "How far a plan's objective is below the bound, as a share of the bound: at most so much can be "
        "gained.",
        "%",
        "figure gap",
    ),
    Term(
        "interaction",
        "What two changes give together beyond the sum of what each gives alone.",
        "as the figure",
        "the gain taken apart",
    ),
    Term("churn", "The share of promised starts that the very next plan changed.", "%", "rolling runs"),
    Term(
        "forecast bias",
        "By how much a forecast is too high or too low on average.",
        "%",
        "rolling explorer",
        ("bias",),
    ),
    Term(
        "forecast noise",
        "By how much a forecast is off from hour to hour, in both directions.",
        "%",
        "rolling explorer",
        ("noise",),
    ),
    Term(
        "slack",
        "GPUs that are free or held beyond what is wanted: what is left when more traffic comes.",
        "GPUs",
        "gpuplan.coverage_risk",
        ("coverage risk",),
    ),
    Term(
        "idle window",
        "When, how long and how large a block of GPUs stands idle in a plan.",
        "GPUs and hours",
        "gpuplan.idle_windows",
    ),
)
