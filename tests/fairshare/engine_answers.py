"""What the engine did, in the form of `fairshare.reference`."""

from fairshare.reference import Outcome, Stretch
from gpuplan.fairshare.model import FairshareScenario
from gpuplan.fairshare.policies import ALL
from gpuplan.fairshare.problem import compile_problem


def engine(scenario: FairshareScenario, policy: str) -> Outcome:
    """The run of a scenario by the policy on the engine."""
    problem = compile_problem(scenario)
    raw = next(p for p in ALL if p.name == policy).run(problem)
    s = raw.stretches
    nodes: list[dict[int, int]] = [{} for _ in range(len(s))]
    for k, node, gpus in zip(
        s.place_stretch.tolist(), s.place_node.tolist(), s.place_gpus.tolist(), strict=True
    ):
        assert node not in nodes[k]
        nodes[k][node] = gpus
    stretches = [
        Stretch(
            int(s.job[k]),
            str(problem.jobs.name[s.job[k]]),
            int(s.start_s[k]),
            int(s.end_s[k]),
            int(s.outcome[k]),
            bool(s.allocated[k]),
            int(s.protected_until_s[k]),
            nodes[k],
            int(s.overhead_s[k]),
            int(s.kept_s[k]),
        )
        for k in range(len(s))
    ]
    repairs = list(zip(raw.repair_start_s.tolist(), raw.repair_end_s.tolist(), strict=True))
    return Outcome(stretches, int(raw.end_s), repairs, {int(j) for j in raw.set_aside})
