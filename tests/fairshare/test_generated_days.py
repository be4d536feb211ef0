"""Days of the generated workload, crowded and on nodes, against the slow simulator: what tiny clusters do not show."""

from dataclasses import replace

import pytest

from fairshare.test_against_reference import agree
from gpuplan.fairshare.model import BudgetNode, FairshareScenario, Generate, Pool
from gpuplan.fairshare.problem import compile_problem

PROGRAMMES = (
    BudgetNode(
        "language", 60, (BudgetNode("pretraining", 50), BudgetNode("alignment", 30), BudgetNode("data", 20))
    ),
    BudgetNode("vision", 30, (BudgetNode("video", 60), BudgetNode("images", 40))),
    BudgetNode("robotics", 10),
)


@pytest.mark.parametrize(
    ("policy", "nodes", "seed"),
    [
        ("fair-share", 6, 1),
        ("fair-share", 10, 3),
        ("fair-share", 4, 5),
        ("priority-tiers", 6, 4),
        ("easy", 6, 5),
        ("fair-tree", 6, 6),
    ],
)
def test_a_crowded_day_goes_as_the_rules_say(policy: str, nodes: int, seed: int) -> None:
    until = 20 * 3600
    asked = FairshareScenario(
        "a day",
        (Pool(nodes, 8),),
        PROGRAMMES,
        generate=Generate(days=until / 86400, oversubscription=2.5, seed=seed),
        until_s=until,
    )
    made = replace(asked, jobs=compile_problem(asked).jobs, generate=None)
    agree(made, policy)
