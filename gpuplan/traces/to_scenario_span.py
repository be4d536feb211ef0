"""A span of a history as a fair-share scenario: who used the cluster becomes a tree of budgets."""

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from gpuplan.fairshare.job_limits import MOST_GPU_SECONDS
from gpuplan.fairshare.jobs import Jobs
from gpuplan.fairshare.jobs import jobs as make_jobs
from gpuplan.fairshare.model import HOUR, BudgetNode, FairshareScenario, Pool
from gpuplan.inputs.account import Account
from gpuplan.inputs.errors import InputError, Mistake, did_you_mean
from gpuplan.inputs.spans import span_text
from gpuplan.text import printable
from gpuplan.traces.history import NO_LIMIT, History, Int64, Strings
from gpuplan.traces.names import counted, mapped, safe_names
from gpuplan.traces.to_scenario import (
    Choices,
    Size,
    account_of,
    priorities_of,
    size_of,
    span_of,
)
from gpuplan.traces.wish import Budget, Wish
from gpuplan.traces.work import Work, at_once, sampled, work_of

#: The budget where there is one team.
EVERYONE = "everyone"

#: GPUs of an unknown type in a cluster with pools of types.
_NO_TYPE = ""


def fairshare_of(
    history: History,
    wish: Wish,
    name: str,
    *,
    hint: int | None = None,
    usual_budget: Budget = "team",
    priority: npt.NDArray[np.float64] | None = None,
    choices: Choices | None = None,
    codes: Mapping[str, Mapping[str, str]] | None = None,
) -> tuple[FairshareScenario, Account, Work]:
    """A scenario of the jobs of a span.

    Parameters
    ----------
    history
        Of any reader; names of jobs are safe (`gpuplan.traces.names`).
    wish
        The choices.
    name
        Of the scenario, where the wish has none.
    hint
        GPUs of the cluster, where the file tells them.
    usual_budget
        Whose budgets, where the wish leaves that open and the names are known.
    priority
        Priority of each row, where it was found before (names may be codes by now).
    choices
        What was said already.
    codes
        Codes in the place of names, by column: weights are by the names of the file.

    Returns
    -------
    scenario, account, work
        The account covers every row of the file.

    Raises
    ------
    InputError
        If the span has no job, or a choice cannot be.
    """
    said = Choices() if choices is None else choices
    first, last = span_of(history, wish, said)
    work = sampled(work_of(history, first, last, before=wish.before), wish.every)
    if not len(work):
        raise InputError(history.source, [Mistake("", "has no job with GPUs and a run time in this span")])
    if work.gpu_seconds > MOST_GPU_SECONDS:
        raise InputError(
            history.source, [Mistake("", f"has more than {MOST_GPU_SECONDS:,} GPU-seconds of work")]
        )
    ranked = priorities_of(history, wish, said) if priority is None else priority
    size = size_of(work, wish, hint, said)
    pools, kinds = _pools(work, wish, size, said)
    team, tree = _budgets(work, wish, usual_budget, said, codes or {})
    jobs = _jobs(work, team, ranked, kinds, wish, said)
    about = _about(work, said)
    scenario = FairshareScenario(
        name=wish.name or name, pools=pools, budget=tree, jobs=jobs, about=about, notes=said.lines()
    )
    return scenario.replace({}), account_of(work, said), work  # held to the rules of a file


def _about(work: Work, choices: Choices) -> str:
    text = f"{counted(len(work), 'job')} of {work.history.source}. " + " ".join(choices.lines())
    return text if len(text) <= 3_900 else text[:3_900] + "..."


def _jobs(
    work: Work, team: Strings, ranked: npt.NDArray[np.float64], kinds: Strings, wish: Wish, choices: Choices
) -> Jobs:
    limit = work.limit_s
    known = limit != NO_LIMIT
    over = int((work.run_s > limit).sum())
    cut = f"; {over:,} ran longer and end at it" if over else ""
    without = int((~known).sum())
    choices.say(
        "Limits",
        f"known for {int(known.sum()):,} of {len(work):,} jobs{cut}"
        + (f"; {without:,} have none." if without else "."),
    )
    choices.say(
        "Minimum run time",
        f"{span_text(wish.minimum_s)} for every job, or its limit where that is shorter; "
        f"every job {'can' if wish.resumable else 'cannot'} go on from a checkpoint (files do not say so).",
    )
    whole = np.floor(ranked[work.row] + 0.5).astype(np.int64)
    if (whole != ranked[work.row]).any():
        choices.say("Priority", "Fractions are rounded.")
    return make_jobs(
        work.history.job[work.row].tolist(),
        work.submit_s,  # type: ignore[arg-type]  # arrays are sequences
        work.gpus,  # type: ignore[arg-type]
        work.run_s,  # type: ignore[arg-type]
        team=team.tolist(),
        limit_s=limit,  # type: ignore[arg-type]
        minimum_s=np.minimum(limit, wish.minimum_s),  # type: ignore[arg-type]
        resumable=wish.resumable,
        priority=0 if wish.priority == "none" else whole,  # type: ignore[arg-type]
        gpu=kinds.tolist(),
    )


def _pools(work: Work, wish: Wish, size: Size, choices: Choices) -> tuple[tuple[Pool, ...], Strings]:
    """The pools, and the GPU type of each job (``""``: any)."""
    named = work.history.gpu_type
    # a job on several types, or on a type that others cannot name, may run anywhere
    single = {k: "" if set(k) & set(":,|") else " ".join(printable(k).split()) for k in set(named.tolist())}
    recorded = mapped(named, single)
    kinds = recorded[work.row]
    found = sorted({kind for kind in kinds.tolist() if kind})
    flat = (
        Pool(1, size.gpus)
        if size.gpus_per_node is None
        else Pool(size.gpus // size.gpus_per_node, size.gpus_per_node)
    )
    if not wish.types:
        if len(found) > 1:
            choices.say(
                "GPU types",
                f"{len(found)} are named in the file and are not told apart, as they are where types are asked for.",
            )
        return (flat,), np.full(len(work), _NO_TYPE, object)
    if wish.gpus is not None or wish.nodes is not None:
        rule = "must be left out with types: how many there are of each type is inferred"
        raise InputError("import", [Mistake("gpus" if wish.gpus is not None else "nodes", rule)])
    if not found:
        raise InputError(work.history.source, [Mistake("types", "must be named in the file; none is")])
    pools = []
    node = size.gpus_per_node or 1
    for kind in found:
        most = max(at_once(work.history, recorded == kind), int(work.gpus[kinds == kind].max()))
        nodes = -(-most // node)
        pools.append(Pool(nodes, node, kind) if size.gpus_per_node else Pool(1, most, kind))
    listed = ", ".join(f"{pool.gpus:,} {pool.gpu}" for pool in pools)
    choices.said["Cluster"] = (
        f"{listed}, inferred: the most of each type that were held at once (there may be more)."
    )
    return tuple(pools), kinds


def _budgets(
    work: Work, wish: Wish, usual: Budget, choices: Choices, codes: Mapping[str, Mapping[str, str]]
) -> tuple[Strings, tuple[BudgetNode, ...]]:
    """Path of the team of each job, object[J], and the tree."""
    columns = _columns(work, wish, usual)
    how = "as asked" if wish.budget != "auto" else "the names that the file has"
    if not columns:
        choices.say(
            "Budgets", f"one for everybody, {how if wish.budget != 'auto' else 'for the file names nobody'}."
        )
        return np.full(len(work), EVERYONE, object), (BudgetNode(EVERYONE),)
    parts, safe = [], []
    for column in columns:
        found = getattr(work.history, column)[work.row]
        safe.append(safe_names(sorted(set(found.tolist())), slash="-"))
        parts.append(mapped(found, safe[-1]))
    coded = codes.get(columns[0])
    names = safe[0] if coded is None else {k: safe[0][v] for k, v in coded.items() if v in safe[0]}
    weights = _weights(work, wish, names, parts[0], choices)
    tree = []
    for top in sorted(set(parts[0].tolist())):
        inner = sorted(set(parts[1][parts[0] == top].tolist())) if len(parts) > 1 else []
        tree.append(BudgetNode(top, weights.get(top, 1.0), tuple(BudgetNode(name) for name in inner)))
    plural = {"team": "teams", "user": "users", "qos": "QOS", "partition": "partitions"}
    levels = ", in each of them of its ".join(plural[column] for column in columns)
    choices.say("Budgets", f"of {levels}: {len(tree):,} at the top, {how}.")
    paths = parts[0] if len(parts) == 1 else parts[0] + "/" + parts[1]
    return paths, tuple(tree)


def _columns(work: Work, wish: Wish, usual: Budget) -> list[str]:
    if wish.budget == "none":
        return []
    if wish.budget != "auto":
        return wish.budget.split("/")
    named = [column for column in usual.split("/") if (getattr(work.history, column)[work.row] != "").any()]
    if named:
        return named
    return ["user"] if (work.history.user[work.row] != "").any() else []


def _weights(
    work: Work, wish: Wish, names: Mapping[str, str], top: Strings, choices: Choices
) -> Mapping[str, float]:
    """Weight of each budget at the top, by its name; `names` are those of the file and ours."""
    if isinstance(wish.weights, Mapping):
        absent = [name for name in wish.weights if name not in names]
        if absent:
            rule = "must be at the top of the tree of budgets"
            near = {name: "" if wish.anonymise else did_you_mean(name, names) for name in absent}
            raise InputError(
                work.history.source, [Mistake("weights", rule + near[name], name) for name in absent]
            )
        others = len(names) - len(wish.weights)
        rest = f"; {others:,} others have 1" if others else ""
        choices.say("Weights", f"as asked for {counted(len(wish.weights), 'name')}{rest}.")
        return {names[name]: weight for name, weight in wish.weights.items()}
    if wish.weights == "equal":
        choices.say("Weights", "equal.")
        return {}
    used: Int64 = work.gpus * work.run_s
    choices.say("Weights", "by the GPU-hours of the span: who used much has much.")
    return {name: round(int(used[top == name].sum()) / HOUR, 3) for name in set(top.tolist())}
