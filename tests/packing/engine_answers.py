"""What the engine did, in the form of `packing.reference`."""

from gpuplan.packing.engine import run
from gpuplan.packing.model import PackingScenario, Pieces
from gpuplan.packing.problem import compile_problem
from gpuplan.packing.raw import Breaches, Copies, Stages
from packing.reference_things import Outcome, by_claim, by_start


def engine(scenario: PackingScenario, pieces: Pieces) -> Outcome:
    """The run of a scenario by a policy on the engine."""
    raw = run(compile_problem(scenario), pieces)
    stages, copies = rows(raw.stages), rows(raw.copies)
    assert [s[4] for s in stages] == sorted(s[4] for s in stages), (
        "stages are not in the order of their starts"
    )
    assert [c[2] for c in copies] == sorted(c[2] for c in copies), (
        "copies are not in the order of their claims"
    )
    return Outcome(
        by_start(stages),
        by_claim(copies),
        rows(raw.breaches),
        raw.state.tolist(),
        raw.left_us.tolist(),
        raw.failures.tolist(),
        int(raw.end_us),
    )


def rows(table: Stages | Copies | Breaches) -> list[tuple[int, ...]]:
    """A table of columns as rows, in the order of its columns (those of the reference)."""
    names = [name for name in type(table).__slots__ if name not in ("on", "starts", "copy")]
    return list(zip(*(getattr(table, name).tolist() for name in names), strict=True))
