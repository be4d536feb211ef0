"""Generated jobs that stay when shares change."""

from dataclasses import replace
from functools import lru_cache

from gpuplan.fairshare import workloads
from gpuplan.fairshare.model import FairshareScenario
from gpuplan.fairshare.tree import tree_of


@lru_cache(maxsize=4)
def keep_jobs(scenario: FairshareScenario) -> FairshareScenario:
    """The scenario with the jobs that its generator makes now as jobs of its own: they stay, whatever changes later.

    A generated team asks for a multiple of its share, so that who gets a larger share would also submit more. With
    jobs of its own a scenario tells what a share alone does. Habits (`Behaviour`) still apply when it runs; which jobs
    have them is drawn from another seed than that of the generated workload.

    Parameters
    ----------
    scenario
        Returned as it is where it has jobs already.
    """
    asked = scenario.generate
    if asked is None or scenario.jobs is not None:
        return scenario
    made = workloads.generate(asked, scenario.pools, tree_of(scenario.budget))
    note = (
        f"Jobs generated for the shares as they were: {asked.days:g} days, GPU-hours submitted / available "
        f"{asked.oversubscription:g}, debug share {asked.debug_share:.0%}, seed {asked.seed}."
    )
    return replace(scenario, jobs=made, generate=None, notes=(*scenario.notes, note))
