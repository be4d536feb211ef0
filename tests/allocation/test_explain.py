"""Why a job waits, in sentences worked out by hand."""

from typing import Any

from gpuplan.allocation.plan import plan


def day(**more: Any) -> dict[str, Any]:
    return {
        "kind": "allocation",
        "name": "day",
        "horizon": {"steps": 6},
        "objective": {"half_life_hours": None},
    } | more


def job(name: str, gpus: int, hours: float, **more: Any) -> dict[str, Any]:
    return {"name": name, "kind": "training", "gpus": gpus, "hours": hours, "priority": 1} | more


def test_a_late_job_names_what_holds_its_place_and_until_when() -> None:
    """2 GPUs: ``first`` holds both for 4 h, so ``second`` starts at hour 4; nothing was free before."""
    made = plan(day(cluster={"gpus": 2}, batch=[job("first", 2, 4), job("second", 2, 2)]), "fifo")
    assert made.why("second") == (
        "second waits 4 h, from hour 0 to hour 4, then runs on GPUs 0-1. Before that, no GPU was ever free; "
        "the place easiest to clear at hour 0, GPUs 0-1, has 2 GPUs held by first until hour 4."
    )


def test_a_free_block_too_small_is_said_with_its_size() -> None:
    """4 GPUs: ``half`` takes GPUs 0-1 for all 6 h, 2 GPUs stay free, 4 are wanted."""
    made = plan(day(cluster={"gpus": 4}, batch=[job("half", 2, 6), job("whole", 4, 3)]), "fifo")
    assert made.why("whole") == (
        "whole finds no place of 4 GPUs for 3 h in the horizon. From hour 0 on, of what stays free for 3 h, the "
        "largest block was 2 GPUs (hour 0); the place easiest to clear at hour 0, GPUs 0-3, has 2 GPUs held by half "
        "until hour 6."
    )


def test_a_block_free_for_too_short_a_time_is_said_too() -> None:
    """2 GPUs; from hour 2 the traffic wants both, so 2 GPUs are free for 2 h only."""
    app = {"name": "chat", "priority": 1, "demand": [0, 0, 2, 2, 2, 2]}
    made = plan(day(cluster={"gpus": 2}, realtime=[app], batch=[job("long", 2, 3)]), "curve-fifo")
    assert made.why("long") == (
        "long finds no place of 2 GPUs for 3 h in the horizon. From hour 0 on, no GPU was free for 3 h at a stretch; "
        "the largest block free at any moment was 2 GPUs (hour 0); the place easiest to clear at hour 0, GPUs 0-1, "
        "has 2 GPUs held by chat until hour 6."
    )


def test_a_reservation_is_called_one() -> None:
    """The peak of 1 GPU is reserved all day: of 2 GPUs one is left, and the job wants 2."""
    app = {"name": "chat", "priority": 1, "demand": [0, 0, 0, 0, 0, 1]}
    made = plan(day(cluster={"gpus": 2}, realtime=[app], batch=[job("pair", 2, 1)]), "fifo")
    assert "1 GPU reserved by chat until hour 6" in made.why("pair")
    assert "the largest block was 1 GPU (hour 0)" in made.why("pair")


def test_blocks_are_measured_within_nodes_where_the_rule_says_so() -> None:
    """Two nodes of 2 with one GPU taken in each: 2 GPUs are free, but no node has 2."""
    batch = [job("a", 1, 6, running_on=0), job("b", 1, 6, running_on=3), job("pair", 2, 1)]
    cluster = {"gpus": 4, "gpus_per_node": 2}
    apart = plan(day(cluster=cluster, rules={"within_node": True}, batch=batch), "fifo")
    assert "the largest block was 1 GPU (hour 0)" in apart.why("pair")
    across = plan(day(cluster=cluster, batch=batch), "fifo")
    assert across.why("pair") == "pair starts at hour 0, as early as it may, on GPUs 1-2."


def test_whole_nodes_are_measured_in_whole_nodes() -> None:
    """Three nodes of 2, the middle one half taken: two nodes are free but not side by side."""
    batch = [job("a", 1, 6, running_on=2), job("four", 4, 1)]
    made = plan(
        day(cluster={"gpus": 6, "gpus_per_node": 2}, rules={"within_node": True}, batch=batch), "fifo"
    )
    assert "the largest block was 2 GPUs (hour 0)" in made.why("four")


def test_set_aside_and_inherited_jobs_say_so() -> None:
    batch = [job("huge", 8, 1), job("old", 1, 3, running_on=1)]
    made = plan(day(cluster={"gpus": 2}, batch=batch), "aware")
    assert made.why("huge") == "huge is set aside: 8 GPUs wanted, 2 exist."
    assert made.why("old") == "old was running already on GPU 1 and stays there for 3 h more."


def test_a_gpu_that_is_free_too_late_to_finish_is_still_said_to_be_free() -> None:
    """1 GPU, 4 steps: ``long`` holds hours 0-2; hour 3 is free, but ``pair`` needs 2 h."""
    made = plan(
        day(cluster={"gpus": 1}, horizon={"steps": 4}, batch=[job("long", 1, 3), job("pair", 1, 2)]), "fifo"
    )
    assert "the largest block free at any moment was 1 GPU (hour 3)" in made.why("pair")
