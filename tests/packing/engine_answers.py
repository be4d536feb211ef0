"""What the engine did, in the form of `packing.reference`."""

from itertools import pairwise

from gpuplan.packing.engine import run
from gpuplan.packing.model import PackingScenario, Pieces
from gpuplan.packing.problem import compile_problem
from gpuplan.packing.raw import Breaches, Copies, RawPack, Stages
from packing.reference_things import Outcome, by_start


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
    # by claim, then GPU, then model, as `by_claim`
    order = sorted(range(len(copies)), key=lambda c: (copies[c][2], copies[c][1], copies[c][0]))
    place = {row: k for k, row in enumerate(order)}
    sets = gpu_sets(raw)
    return Outcome(
        sorted(((*s[:8], place[s[8]]) for s in stages), key=by_start),
        [copies[c] for c in order],
        [sets[c] for c in order],
        rows(raw.breaches),
        raw.state.tolist(),
        raw.left_us.tolist(),
        raw.failures.tolist(),
        int(raw.end_us),
    )


def rows(table: Stages | Copies | Breaches) -> list[tuple[int, ...]]:
    """A table of columns as rows, in the order of its columns (where copies lie: `gpu_sets`)."""
    names = [name for name in type(table).__slots__ if name not in ("on", "starts")]
    return list(zip(*(getattr(table, name).tolist() for name in names), strict=True))


def gpu_sets(raw: RawPack) -> list[tuple[int, ...]]:
    """The GPUs of each copy."""
    on, starts = raw.copies.on.tolist(), raw.copies.starts.tolist()
    assert starts[0] == 0
    assert starts[-1] == len(on)
    return [tuple(on[a:b]) for a, b in pairwise(starts)]
