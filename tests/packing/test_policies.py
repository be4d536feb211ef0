"""The contract that every piece of a policy keeps, and how policies are written."""

from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from gpuplan.inputs.errors import InputError
from gpuplan.jit import plain_copy
from gpuplan.packing import engine, kernels, policies
from gpuplan.packing.model import (
    NEVER,
    Admission,
    Contention,
    Gpus,
    PackingScenario,
    Pieces,
    Preemption,
    Retry,
    ServedModel,
)
from gpuplan.packing.policies import KINDS, Piece, pieces_named
from gpuplan.packing.problem import Problem, compile_problem
from gpuplan.packing.raw import DONE, PREEMPTED, WAITING, RawPack
from gpuplan.packing.run import pack
from gpuplan.packing.tasks import Tasks, tasks

ALL = [(kind, piece) for kind, pieces in KINDS.items() for piece in pieces]
IDS = [piece.name for _, piece in ALL]
each_piece = pytest.mark.parametrize(("kind", "piece"), ALL, ids=IDS)

#: In bytes and microseconds: nodes whose memory runs out, with everything that there is.
SIZES = (30, 45, 20, 60, 12, 25)

#: GPUs of the models of these sizes.
SPREADS = (1, 1, 1, 2, 1, 3)


def crowd(count: int = 240, seed: int = 1, order: list[int] | None = None) -> Tasks:
    """Tasks with two priorities, wrong predictions, contexts that grow, and some deadlines."""
    draw = np.random.default_rng(seed)
    service = draw.integers(1, 90, count)
    columns = {
        "arrival_us": draw.integers(0, 12 * count, count),
        "model": draw.integers(0, len(SIZES), count),
        "priority": (draw.random(count) < 0.4).astype(np.int64),
        "service_us": service,
        "predicted_us": np.maximum(service + draw.integers(-20, 20, count), 0),
        "tokens_in": draw.integers(0, 5, count),
        "tokens_out": draw.integers(0, 12, count),
        "deadline_us": np.where(draw.random(count) < 0.1, draw.integers(0, 15 * count, count), NEVER),
    }
    by = np.arange(count) if order is None else np.array(order)
    return tasks(**{name: column[by] for name, column in columns.items()})  # type: ignore[arg-type]


def crowded(found: Tasks, count: int = 3) -> PackingScenario:
    models = tuple(
        ServedModel(
            f"m{k}",
            declared_bytes=size,
            actual_bytes=size + 3,
            context_bytes=2,
            kv_bytes_per_token=1 + k % 2,
            asleep_bytes=k % 2,
            popularity=1.0 + k,
            resident=(0,) if k == 2 else (),
            max_tasks=(None, 2, 3)[k % 3],
            gpus=SPREADS[k],
        )
        for k, size in enumerate(SIZES)
    )
    return PackingScenario(
        "crowded",
        Gpus(count, 110, host_bytes_per_s=4_000_000, disk_bytes_per_s=2_500_000, release_us=3, max_tasks=2),
        models,
        admission=Admission(margin=100_000),
        preemption=Preemption("threshold", threshold_us=4, save_us=5, restore_us=2),
        contention=Contention("slowdown", 0.15),
        retry=Retry(3, 10),
        policy=Pieces(keep_alive_us=40),
        tasks=found,
    )


@lru_cache(maxsize=1)
def problem() -> Problem:
    return compile_problem(crowded(crowd()))


def pieces_with(kind: str, piece: Piece) -> Pieces:
    return replace(problem().scenario.policy, **{kind: piece.name})  # type: ignore[arg-type]


def columns(raw: RawPack) -> list[list[int]]:
    """All that a run found, as lists."""
    parts = [
        getattr(part, name)
        for part in (raw.stages, raw.copies, raw.breaches)
        for name in type(part).__slots__
    ]
    return [
        column.tolist() for column in (*parts, raw.state, raw.left_us, raw.failures, np.array([raw.end_us]))
    ]


# ------------------------------------------------------------------------ what they are


def test_the_pieces_are_those_of_the_design() -> None:
    assert {kind: tuple(piece.name for piece in pieces) for kind, pieces in KINDS.items()} == {
        "placement": (
            "round-robin",
            "round-robin-skip",
            "first-fit",
            "best-fit",
            "worst-fit",
            "predicted-fit",
            "fgd",
        ),
        "order": ("fifo", "backfill", "shortest", "by-model"),
        "eviction": ("lru", "lfu", "cost", "keep-alive"),
    }


@each_piece
def test_a_piece_has_a_name_a_sentence_a_code_and_a_file(kind: str, piece: Piece) -> None:
    assert type(piece).__name__.lower() == kind
    assert piece.about[0].isupper()
    assert piece.about.endswith(".")
    assert piece.code == KINDS[kind].index(piece)
    assert piece.code == getattr(kernels, piece.name.replace("-", "_").upper())
    folder = Path(policies.__file__).parent
    assert (folder / f"{piece.name.replace('-', '_')}.py").is_file()


def test_every_file_is_in_the_lists() -> None:
    files = {path.stem for path in Path(policies.__file__).parent.glob("*.py")} - {"__init__", "base"}
    assert files == {name.replace("-", "_") for name in IDS}


# ------------------------------------------------------------------------ what they do


@each_piece
def test_a_run_keeps_all_rules(kind: str, piece: Piece) -> None:
    raw = engine.run(problem(), pieces_with(kind, piece))
    assert (raw.state != WAITING).all()
    assert (raw.state == DONE).sum() > 30
    assert len(raw.breaches) > 0
    assert (raw.stages.outcome == PREEMPTED).any()
    name = piece.name if kind == "placement" else f"best-fit+{piece.name}"
    assert pack(problem().scenario, name).check() == []


@each_piece
def test_the_order_of_rows_does_not_matter(kind: str, piece: Piece) -> None:
    n = len(problem().tasks)
    shuffled = crowd(order=np.random.default_rng(3).permutation(n).tolist())
    there = compile_problem(replace(problem().scenario, tasks=shuffled))
    assert columns(engine.run(there, pieces_with(kind, piece))) == columns(
        engine.run(problem(), pieces_with(kind, piece))
    )


@pytest.fixture(scope="module")
def plain() -> ModuleType:
    return plain_copy(kernels)


@each_piece
def test_plain_python_gives_the_same_numbers(
    kind: str, piece: Piece, plain: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = columns(engine.run(problem(), pieces_with(kind, piece)))
    monkeypatch.setattr(engine, "kernels", plain)
    assert columns(engine.run(problem(), pieces_with(kind, piece))) == found


@each_piece
def test_tables_that_are_too_short_grow(kind: str, piece: Piece) -> None:
    """A run that has to stop for longer tables again and again is the same run."""
    pieces = pieces_with(kind, piece)
    tables = engine.Tables(problem(), pieces)
    tables.work, tables.room = tables.work[:1], tables.room[:2]
    # contiguous, as real ones are: the kernel would be compiled anew for others, half a minute
    tables.copies, tables.stages, tables.breaches = (
        np.ascontiguousarray(table[:, :width])
        for table, width in ((tables.copies, 2), (tables.stages, 8), (tables.breaches, 8))
    )
    stops = 0
    while kernels.run_pack(*tables.still, *tables.growing) == kernels.TOO_SHORT:
        tables.grow()
        stops += 1
        assert stops < 400
    assert stops > 5
    assert columns(tables.raw()) == columns(engine.run(problem(), pieces))


@each_piece
def test_nothing_can_be_written_into_a_result(kind: str, piece: Piece) -> None:
    raw = engine.run(problem(), pieces_with(kind, piece))
    for array in (raw.stages.task, raw.copies.model, raw.breaches.gpu, raw.state, raw.left_us, raw.failures):
        assert not array.flags.writeable


# ----------------------------------------------------------- where they differ, by hand


def placed_on(placement: str, models: tuple[ServedModel, ...], asked: list[int]) -> list[int]:
    """The GPUs that tasks of these models go to, one after the other, on two GPUs of 100 bytes."""
    rows = [10 * k for k in range(len(asked))]
    scenario = PackingScenario(
        "two", Gpus(2, 100), models, Admission(0, 0), tasks=tasks(rows, asked, service_us=10**6)
    )
    raw = engine.run(compile_problem(scenario), Pieces(placement))
    return raw.stages.gpu[np.argsort(raw.stages.task, kind="stable")][::2].tolist()


@pytest.mark.parametrize(
    ("placement", "gpus"),
    [
        ("round-robin", [0, 1, 0, 1]),
        ("round-robin-skip", [0, 1, 0, 1]),
        ("first-fit", [0, 0, 1, 0]),  # 60, 30; 40 does not fit beside 90; 10 does
        ("best-fit", [0, 0, 1, 0]),  # 10 left before 50 left
        ("worst-fit", [0, 1, 1, 0]),  # 40 left before 10; 30 + 40 beside 60; 40 left before 30
    ],
)
def test_where_models_go(placement: str, gpus: list[int]) -> None:
    models = tuple(ServedModel(f"m{size}", size, size) for size in (60, 30, 40, 10))
    assert placed_on(placement, models, [0, 1, 2, 3]) == gpus


def test_predicted_fit_goes_to_the_gpu_with_the_least_to_do() -> None:
    """GPU 0 has a task of 10 s, GPU 1 one of 1 s, though more memory is left on GPU 0."""
    models = tuple(ServedModel(f"m{k}", size, size) for k, size in enumerate((50, 60, 20)))
    work = tasks([0, 1, 2], [0, 1, 2], service_us=[10_000_000, 1_000_000, 5])
    scenario = PackingScenario("two", Gpus(2, 100), models, Admission(0, 0), tasks=work)
    for placement, gpu in (("predicted-fit", 1), ("worst-fit", 0), ("best-fit", 1), ("first-fit", 0)):
        raw = engine.run(compile_problem(scenario), Pieces(placement))
        assert raw.stages.gpu[raw.stages.task == 2].tolist() == [gpu, gpu]


def test_fgd_keeps_room_for_what_is_popular() -> None:
    """After 60 on GPU 0 and 30 on GPU 1 (40 and 70 left) comes 20.

    Models of 60 and 30 are asked for half the time each, that of 20 never. On GPU 0: before, 40 x 1/2 (60 does not
    fit); after, 20 x 1 (nor does 30): +0. On GPU 1: before, 0; after, 50 x 1/2: +25. Worst fit takes GPU 1.
    """
    models = tuple(
        ServedModel(f"m{k}", size, size, popularity=p)
        for k, (size, p) in enumerate(((60, 1.0), (30, 1.0), (20, 0.0)))
    )
    # placed by fgd, 30 would go to GPU 0 too; so it is there from the start
    models = (models[0], replace(models[1], resident=(1,)), models[2])
    assert placed_on("fgd", models, [0, 2])[1:] == [0]
    assert placed_on("worst-fit", models, [0, 2])[1:] == [1]


def copies_of(placement: str, models: tuple[ServedModel, ...], asked: list[int]) -> list[list[int]]:
    """The GPUs of the copies that tasks of these models ask for, one after the other, on three GPUs of 100 bytes."""
    work = tasks([10 * k for k in range(len(asked))], asked, service_us=10**6)
    scenario = PackingScenario("three", Gpus(3, 100), models, Admission(0, 0), tasks=work)
    copies = engine.run(compile_problem(scenario), Pieces(placement)).copies
    assert copies.gpu.tolist() == copies.on[copies.starts[:-1]].tolist()
    return [on.tolist() for on in np.split(copies.on, copies.starts[1:-1])]


@pytest.mark.parametrize(
    ("placement", "gpus"),
    [
        ("round-robin", [[0], [1], [0, 2]]),  # GPU 2 and the next in the circle
        ("round-robin-skip", [[0], [1], [0, 2]]),
        ("first-fit", [[0], [0], [0, 1]]),  # 30 + 50 + 20
        ("best-fit", [[0], [0], [0, 1]]),  # 0, 80 and 80 left
        ("worst-fit", [[0], [1], [0, 2]]),  # 50, 30 and 80 left
        ("predicted-fit", [[0], [1], [0, 2]]),  # 2 has nothing to do, 0 least of the others
        ("fgd", [[0], [1], [0, 2]]),  # after 20 on GPU 1, the 30 bytes left are lost for the model of 50
    ],
)
def test_where_a_model_over_two_gpus_goes(placement: str, gpus: list[list[int]]) -> None:
    """Models of 30 and 50 bytes, then one with 20 on each of two GPUs."""
    models = (ServedModel("a", 30, 30), ServedModel("b", 50, 50), ServedModel("wide", 40, 40, gpus=2))
    assert copies_of(placement, models, [0, 1, 2]) == gpus


# ----------------------------------------------------------------------- how they are written


def test_a_policy_names_its_pieces_in_any_order() -> None:
    base = Pieces("fgd", "shortest", "cost", 5, 7)
    assert pieces_named("best-fit", base) == Pieces("best-fit", "shortest", "cost", 5, 7)
    assert pieces_named("lfu + best-fit+backfill", base) == Pieces("best-fit", "backfill", "lfu", 5, 7)
    assert pieces_named("keep-alive", base) == Pieces("fgd", "shortest", "keep-alive", 5, 7)
    assert policies.name_of(base) == "fgd+shortest+cost"
    assert pieces_named(policies.name_of(base)) == Pieces("fgd", "shortest", "cost")


def test_all_mistakes_of_a_policy_are_named() -> None:
    with pytest.raises(InputError) as caught:
        pieces_named("bestfit+lru+lfu+=1+1+keep-alive")
    message = str(caught.value)
    assert "did you mean best-fit?" in message
    assert "must name one eviction, not also lru" in message
    assert "'=1'" in message
    assert len(caught.value.mistakes) == 5  # bestfit, lfu, =1, 1, keep-alive


def test_keep_alive_needs_its_time() -> None:
    with pytest.raises(InputError, match="keep_alive_s"):
        pieces_named("best-fit+keep-alive")


@pytest.mark.parametrize("policy", ["", "+", " ", "best-fit+"])
def test_an_empty_name_is_refused(policy: str) -> None:
    with pytest.raises(InputError, match="best-fit"):
        pieces_named(policy)
