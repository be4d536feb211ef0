"""The shipped situations show what their texts say."""

from typing import Any

import pytest

import gpuplan as gp
from gpuplan import load, shipped
from gpuplan.packing.model import GIB, PackingScenario
from gpuplan.packing.raw import LOAD
from gpuplan.packing.run import PackRun, pack

NAMES = (
    "asleep-but-heavy", "behind-a-large-load", "context-too-long", "embedder-evicts-chat", "evicted-but-wanted",
    "four-gpus", "no-two-gpus-free", "one-gpu-idles", "spread-too-thin",
)  # fmt: skip


def shown(name: str, policy: str | None = None, **changes: Any) -> PackRun:
    """A shipped scenario under its own policy, or another, with values changed (``__`` for the dots of a path)."""
    scenario: PackingScenario = load(name)  # type: ignore[assignment]
    made = pack(scenario.replace({path.replace("__", "."): value for path, value in changes.items()}), policy)
    assert made.raw.end_us > 0
    return made


def column(run: PackRun, name: str, model: str | None = None) -> list[Any]:
    table = run.tasks if model is None else run.tasks[run.tasks["model"] == model]
    found: list[Any] = table[name].tolist()
    return found


def test_all_are_shipped_with_a_text_that_explains_them() -> None:
    found = {one.name: one for one in shipped() if one.kind == "packing"}
    assert sorted(found) == sorted(NAMES)
    for name, one in found.items():
        assert len(one.about) > 200, name
        assert load(name).notes == (), name  # type: ignore[union-attr]


def test_four_gpus_is_the_contracts_example_with_more_models() -> None:
    scenario: PackingScenario = load("four-gpus")  # type: ignore[assignment]
    assert scenario.gpus.count == 4
    assert sum(model.declared_bytes for model in scenario.models) == 196 * GIB
    over = [model.actual_bytes / model.declared_bytes - 1 for model in scenario.models]
    assert (min(over), max(over)) == (pytest.approx(3 / 62), 0.125)  # "by 5 to 12.5 %"
    loads = {policy: pack(scenario, policy).figures["loads"] for policy in ("round-robin", "best-fit")}
    assert loads["round-robin"] > 3 * loads["best-fit"]
    assert pack(scenario, "best-fit").figures["out_of_memory"] == 0


def test_two_models_are_sent_to_gpu_0_while_gpu_1_idles() -> None:
    """Beside each other 20, 10 and 5 s take 40, 20 and 10 s."""
    packed, spread = shown("one-gpu-idles"), shown("one-gpu-idles", "worst-fit")
    assert set(column(packed, "gpu")) == {0}
    assert column(packed, "service_s") == [40, 40, 20, 20, 10, 10]
    assert set(column(spread, "gpu", "chat")) == {0}
    assert set(column(spread, "gpu", "code")) == {1}
    assert column(spread, "service_s") == [20, 20, 10, 10, 5, 5]


def test_a_small_embedder_evicts_the_chat_model() -> None:
    """17.5 + 0.5 + 4 + 0.5 = 22.5 GiB; 1.2 x (16 + 3.5) + 2 x 0.5 = 24.4."""
    own = shown("embedder-evicts-chat")
    scenario = own.scenario
    assert sum(scenario.taken(model) for model in scenario.models) == 22.5 * GIB
    assert sum(scenario.needed(model) for model in scenario.models) == pytest.approx(24.4 * GIB)
    assert own.figures["evictions"] == 7  # every request but the first throws out the other model
    assert all(load_s > 1 for load_s in column(own, "load_s")[1:])
    narrow = shown("embedder-evicts-chat", admission__margin=0.1)
    assert (narrow.figures["evictions"], narrow.figures["out_of_memory"]) == (0, 0)
    assert column(narrow, "wait_s")[2:] == [0] * 6
    pinned = shown("embedder-evicts-chat", models__0__pinned=True)
    assert column(pinned, "state", "embedder") == ["waiting"] * 4
    assert column(pinned, "state", "chat") == ["done"] + ["waiting"] * 3
    around = shown("embedder-evicts-chat", "backfill", models__0__pinned=True)
    assert column(around, "state", "chat") == ["done"] * 4


def test_an_eviction_target_keeps_receiving_requests() -> None:
    """The last chat comes at 236 s and ends at 242; eviction takes 1 s, 15 GiB from the disk at 2 GB/s 8.05 s."""
    own, strict = shown("evicted-but-wanted"), shown("evicted-but-wanted", "fifo")
    load_s = 15 * GIB / 2e9
    assert column(own, "wait_s", "code") == [pytest.approx(242 - 10 + 1 + load_s, abs=1e-5)]
    # strictly: the chat of 8 s ends at 14 s
    assert column(strict, "wait_s", "code") == [pytest.approx(14 - 10 + 1 + load_s, abs=1e-5)]
    assert column(own, "wait_s", "code") == [pytest.approx(241, abs=0.5)]  # as its text says
    assert column(strict, "wait_s", "code") == [pytest.approx(13, abs=0.5)]
    assert set(column(own, "state")) == set(column(strict, "state")) == {"done"}


def test_a_context_too_long_for_all_memory_is_rejected_and_nothing_spins() -> None:
    run = shown("context-too-long")
    assert column(run, "state") == ["done", "rejected", "done", "done"]
    kv_bytes = 64_000 * run.scenario.models[0].kv_bytes_per_token
    assert kv_bytes / GIB == pytest.approx(7.8, abs=0.05)
    (reason,) = run.problem.rejected.values()
    assert "64,000 tokens" in reason
    assert column(run, "left_s")[1] == 1  # at its arrival
    assert column(run, "failures") == [0, 0, 1, 0]
    assert run.figures["out_of_memory"] == 1
    assert run.end_s == 27  # 2 s, a failure, 5 s, then 20 s of service
    alone = shown("context-too-long", tasks={"rows": [run.scenario.to_dict()["tasks"]["rows"][2]]})
    assert (column(alone, "state"), alone.figures["out_of_memory"]) == (["done"], 0)


def test_5_and_3_spread_so_that_8_fits_nowhere() -> None:
    spread, packed = shown("spread-too-thin"), shown("spread-too-thin", "best-fit")
    assert column(spread, "gpu") == [0, 1, 0]
    assert column(packed, "gpu") == [0, 0, 1]
    assert column(spread, "queue_s", "pod-8")[0] > 590  # until the pod of 600 s ends
    assert column(packed, "queue_s", "pod-8") == [0]


def test_no_two_gpus_are_free_for_a_large_model() -> None:
    """Half of it needs 66 x 1.1 + 0.5 = 73.1 GiB; the small ones 18.1, 31.3 and 26.9, together 76.3 of 79.3."""
    spread, packed = shown("no-two-gpus-free"), shown("no-two-gpus-free", "best-fit")
    scenario = spread.scenario
    needs = [scenario.needed(model) / GIB for model in scenario.models]
    assert needs == pytest.approx([73.1, 18.1, 31.3, 26.9])
    assert 4 * 79.3 - sum(needs[1:]) == pytest.approx(241, abs=0.2)
    assert column(spread, "gpus") == ["0", "1", "2", "0 3", "2", "1", "2"]
    # it is placed when the first of the small ones is idle, and what is behind it right after it
    idle = column(spread, "left_s")[0]
    assert column(spread, "queue_s")[3:] == pytest.approx(
        [idle - came for came in (10, 20, 30, 40)], abs=1e-5
    )
    assert idle - 10 == pytest.approx(298, abs=0.5)
    assert column(packed, "queue_s") == [0] * 7
    assert column(packed, "gpus") == ["0", "0", "0", "1 2", "0", "0", "0"]
    slower = [now / 100 / alone for now, alone in zip(column(packed, "service_s"), (3, 4, 5), strict=False)]
    assert [1.3 > times > 1.2 for times in slower] == [True] * 3
    for run in (spread, packed):
        # two GPUs read 70 GiB each from the disk at 5 GB/s, after what else is read or freed
        assert column(run, "load_s", "large-70b")[0] >= 140 * GIB / 5e9
        assert column(run, "service_s", "large-70b") == [60]
        assert run.check() == []
    four, four_packed = (
        shown("no-two-gpus-free", policy, models__0__gpus=4) for policy in (None, "best-fit")
    )
    assert column(four, "gpus", "large-70b") == ["0 1 2 3"]
    assert column(four, "queue_s", "large-70b") == [0]
    assert column(four, "service_s", "large-70b") == [
        pytest.approx(60 * 1.15, abs=1e-4)
    ]  # beside one other each
    assert column(four_packed, "queue_s", "large-70b")[0] > 500
    # whole it is larger than a GPU
    whole = shown("no-two-gpus-free", models__0__gpus=1)
    assert column(whole, "state", "large-70b") == ["rejected"]


def test_a_sleeping_engine_keeps_16_gb() -> None:
    """61 GiB + 0.5 are put to sleep and leave 14.9; 66.5 more are too much for 79.3."""
    own = shown("asleep-but-heavy")
    assert column(own, "state") == ["done", "failed", "done"]
    assert own.figures["out_of_memory"] == 4  # the first try and three retries
    awake = shown("asleep-but-heavy", models__0__asleep_gib=0)
    assert (column(awake, "state"), awake.figures["out_of_memory"]) == (["done"] * 3, 0)
    free = shown("asleep-but-heavy", admission__on="free")
    assert column(free, "state") == ["done", "waiting", "waiting"]
    assert free.figures["out_of_memory"] == 1


def test_a_short_request_stands_behind_a_large_load() -> None:
    """60 GiB at 5 GB/s take 12.88 s, then 5 s of service; the short one came half a second later."""
    load_s = 60 * GIB / 5e9
    own, two = shown("behind-a-large-load"), shown("behind-a-large-load", gpus__max_tasks=2)
    assert column(own, "wait_s", "small") == [pytest.approx(load_s + 5 - 0.5, abs=1e-5)]
    assert column(two, "wait_s", "small") == [0]
    assert column(two, "latency_s", "large") == column(own, "latency_s", "large")
    stages = own.stages
    assert (stages.end_us - stages.start_us)[stages.kind == LOAD].max() / 1e6 == pytest.approx(
        load_s, abs=1e-5
    )


def test_pack_takes_what_load_takes_and_names_its_policy() -> None:
    assert gp.pack("spread-too-thin").policy == "worst-fit+fifo+lru"
    named = gp.pack(load("spread-too-thin"), "best-fit+backfill")
    assert (named.pieces.placement, named.pieces.order, named.pieces.eviction) == (
        "best-fit",
        "backfill",
        "lru",
    )
    assert gp.pack("spread-too-thin").fingerprint == gp.pack(load("spread-too-thin").to_dict()).fingerprint
    with pytest.raises(gp.InputError, match="did you mean best-fit"):
        gp.pack("spread-too-thin", "best-fitt")
