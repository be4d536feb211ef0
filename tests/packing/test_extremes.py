"""Whatever the border accepts can be run: the largest numbers that files may hold stay within 64 bits."""

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from gpuplan.packing.file_models import EVICTIONS, ORDERS, PLACEMENTS
from gpuplan.packing.limits import MOST_BYTES, MOST_KV_BYTES, MOST_SERVICE_US, MOST_TOKENS, MOST_US
from gpuplan.packing.model import (
    Admission,
    Contention,
    Gpus,
    PackingScenario,
    Pieces,
    Preemption,
    Retry,
    ServedModel,
)
from gpuplan.packing.run import PackRun, pack
from gpuplan.packing.schema import from_mapping
from gpuplan.packing.tasks import tasks

from .test_schema_round_trip import scenarios


def sound(run: PackRun) -> None:
    """The check finds nothing, every task is somewhere, memory stays within its bounds."""
    assert run.check() == []
    counts = ("tasks_done", "tasks_rejected", "tasks_failed", "tasks_timed_out", "tasks_in_system")
    assert sum(int(run.figures[name] or 0) for name in counts) == run.figures["tasks_arrived"]


@settings(max_examples=60)
@given(scenarios())
def test_any_scenario_of_a_file_runs(scenario: PackingScenario) -> None:
    if scenario.generate is not None:
        scenario = replace(
            scenario, generate=replace(scenario.generate, count=min(scenario.generate.count, 40))
        )
    sound(pack(scenario))


edges = st.sampled_from([0, 1, 999_999, MOST_SERVICE_US - 1, MOST_SERVICE_US])


@settings(max_examples=60)
@given(st.data())
def test_numbers_at_their_limits_run(data: st.DataObject) -> None:
    def size(most: int) -> int:
        return data.draw(st.sampled_from([0, 1, most // 3, most // 2 + 1, most]))

    count = data.draw(st.integers(1, 3))
    served = tuple(
        ServedModel(f"m{k}", size(MOST_BYTES), actual := size(MOST_BYTES), size(MOST_BYTES // 2), size(MOST_BYTES // 2),
                    size(MOST_KV_BYTES), min(actual, size(MOST_BYTES)), data.draw(st.sampled_from([1e-300, 1.0, 1e9])),
                    gpus=data.draw(st.integers(1, count)))
        for k in range(data.draw(st.integers(1, 3)))
    )  # fmt: skip
    n = data.draw(st.integers(1, 8))
    columns = [data.draw(st.lists(values, min_size=n, max_size=n)) for values in (
        st.sampled_from([0, 1, 10**6, MOST_US]), st.integers(0, len(served) - 1), st.integers(0, 2), edges, edges,
        st.sampled_from([0, 1, MOST_TOKENS]), st.sampled_from([0, 1, MOST_TOKENS]),
    )]  # fmt: skip
    arrival, model, priority, service, predicted, came, made = columns
    scenario = PackingScenario(
        "extreme",
        Gpus(
            count,
            data.draw(st.sampled_from([1, MOST_BYTES])),
            data.draw(st.sampled_from([10**6, 10**15])),
            data.draw(st.sampled_from([10**6, 10**15])),
            data.draw(edges),
            data.draw(st.sampled_from([None, 1, 10**6])),
        ),
        served,
        Admission(
            data.draw(st.sampled_from([0, 10_000_000])),
            0,
            on=data.draw(st.sampled_from(["declared", "free"])),
        ),
        Preemption("always", 0, data.draw(edges), data.draw(edges)),
        Contention(
            data.draw(st.sampled_from(["none", "sharing", "slowdown"])),
            data.draw(st.sampled_from([0.0, 1e3])),
        ),
        Retry(data.draw(st.integers(0, 3)), data.draw(edges)),
        Pieces(
            data.draw(st.sampled_from(PLACEMENTS)),
            data.draw(st.sampled_from(ORDERS)),
            data.draw(st.sampled_from(EVICTIONS)),
            data.draw(st.sampled_from([0, 16])),
            data.draw(edges),
        ),
        tasks=tasks(arrival, model, "t", priority, service, predicted, came, made),
    )
    assert from_mapping(scenario.to_dict()) == scenario  # the border accepts it
    sound(pack(scenario))
