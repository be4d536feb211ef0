"""Two complaints of users of other tools, in the terms of scenario files.

The cases lie in ../shared/cases: `yaml-sexagesimal` (limits and names that YAML turns into
numbers and bools) and `impossible-request` (a request that can never be met blocks everybody).
"""

from collections import Counter

import pytest

from gpuplan import InputError, plan
from gpuplan.allocation.model import AllocationScenario
from gpuplan.allocation.schema import from_mapping
from gpuplan.inputs.yaml_file import parse_yaml


def read(text: str) -> AllocationScenario:
    document = parse_yaml(text, "input.yaml")
    return from_mapping(document.data, document.source, document.line, document.mistakes)


HEAD = "kind: allocation\nname: case\ncluster: {gpus: 8}\nhorizon: {steps: 48}\n"


def job(name: str, hours: str) -> str:
    return f"  - {{name: {name}, kind: training, gpus: 1, hours: {hours}, priority: 1}}\n"


#: The limits of the case and how they are written here, with their unit; the seconds they mean.
LIMITS = {
    "a": ("90min", 5400),
    "b": ("90s", 90),
    "c": ('"90s"', 90),
    "d": ("510s", 510),
    "e": ("8.5min", 510),
    "f": ("12h", 43200),
    "g": ('"12h"', 43200),
    "h": ("1.5d", 129600),
}


def test_limits_with_units_mean_the_right_seconds() -> None:
    scenario = read(HEAD + "batch:\n" + "".join(job(name, text) for name, (text, _) in LIMITS.items()))
    seconds = {row.name: round(row.hours * 3600) for row in scenario.batch}
    assert seconds == {name: expected for name, (_, expected) in LIMITS.items()}


@pytest.mark.parametrize("limit", ["1:30", "08:30", "8:30", "12:00:00"])
def test_limits_with_colons_are_refused_with_a_clear_message_quoted_or_not(limit: str) -> None:
    """`refusing_b_e_f_with_a_clear_message_is_also_right`; c, d and g are refused alike."""
    messages = set()
    for text in (limit, f'"{limit}"', f"'{limit}'"):
        with pytest.raises(InputError) as caught:
            read(HEAD + "batch:\n" + job("a", text))
        messages.add(str(caught.value))
    assert messages == {
        "input.yaml: 1 mistake\n  batch.0.hours: must name its unit, as in 90min, 90s or 1.5h: "
        f"with colons it may mean two things (got '{limit}')"
    }


def test_days_and_hours_with_a_dash_are_neither_a_date_nor_minus_eleven() -> None:
    with pytest.raises(InputError, match=r"batch\.0\.hours: must be a number of hours.*\(got '1-12'\)"):
        read(HEAD + "batch:\n" + job("h", "1-12"))


def test_queue_names_are_texts_and_quotes_make_no_difference() -> None:
    """Queues of the case as the first word of job names, and as names of their own."""
    rows = ["prod", "on", "no", "0123"]
    scenario = read(HEAD + "batch:\n" + "".join(job(name, "1") for name in rows))
    assert [row.name for row in scenario.batch] == rows
    with pytest.raises(InputError, match=r"batch\.1\.name: must be unique, but batch\.0 has the same name"):
        read(HEAD + "batch:\n" + job("no", "1") + job('"no"', "1"))
    tagged = ["prod-a", "prod-b", "prod-c", "on-d", "no-e", "no-f", "no-g", "0123-h"]
    scenario = read(HEAD + "batch:\n" + "".join(job(name, "1") for name in tagged))
    assert Counter(row.name.split("-")[0] for row in scenario.batch) == {
        "prod": 3,
        "on": 1,
        "no": 3,
        "0123": 1,
    }


@pytest.mark.parametrize("name", ["1e3", "0x10", "8_0", "3.10", "~", "null", "2026-03-02"])
def test_the_same_fault_in_other_clothes(name: str) -> None:
    assert read(HEAD + "batch:\n" + job(name, "1")).batch[0].name == name


#: Ten GPUs, nodes of 3 (3, 3, 3, 1), steps of an hour. GPUs 6 and 7 run a job for two more hours
#: (the node that is away until minute 120 of the case).
IMPOSSIBLE = """\
kind: allocation
name: impossible-request
cluster: {gpus: 10, gpus_per_node: 3, unavailable: [8]}
horizon: {steps: 4}
rules: {within_node: true}
batch:
  - {name: n3, kind: training, gpus: 2, hours: 2, priority: 1, running_on: 6}
  - {name: J1, kind: training, gpus: 16, hours: 1, priority: 1}
  - {name: J2, kind: training, gpus: 4, hours: 1, priority: 1}
  - {name: J3, kind: training, gpus: 2, hours: 2, priority: 1}
  - {name: J4, kind: training, gpus: 1, hours: 5, priority: 1}
  - {name: J5, kind: training, gpus: 2, hours: 2, priority: 1}
  - {name: J6, kind: training, gpus: 2, hours: 1, priority: 1}
  - {name: J7, kind: training, gpus: 2, hours: 2, priority: 1}
"""


@pytest.mark.parametrize("policy", ["fifo", "fifo-strict", "curve-fifo"])
def test_what_can_never_be_met_is_set_aside_with_its_reason_and_blocks_nobody(policy: str) -> None:
    """J1 exceeds the cluster, J2 a node without filling nodes, J4 the horizon: set aside at once.

    J3 takes GPUs 0-1 and J5 GPUs 3-4 at step 0. J6 and J7 only have to wait: at step 2 the three
    pairs (0-1, 3-4, 6-7) are free again, so both start there.
    """
    result = plan(read(IMPOSSIBLE), policy)
    starts = {row.name: int(start) for row, start in zip(result.scenario.batch, result.start, strict=True)}
    assert starts == {"n3": 0, "J1": -1, "J2": -1, "J3": 0, "J4": -1, "J5": 0, "J6": 2, "J7": 2}
    assert set(result.set_aside) == {"J1", "J2", "J4"}
    assert result.check() == []
    assert (result.figures["jobs_set_aside"], result.figures["jobs_unplaced"]) == (3, 3)
    # Waits of J3, J5, J6, J7: 0, 0, 2, 2; the median stands at index floor(0.5 x 4) = 2.
    assert result.figures["wait_p50_hours"] == 2.0


@pytest.mark.parametrize(
    ("gpus", "rule"), [("0", "at least 1"), ("-2", "at least 1"), ("2.5", "a whole number")]
)
def test_requests_that_mean_nothing_are_refused_at_the_border(gpus: str, rule: str) -> None:
    with pytest.raises(InputError, match=rf"batch\.1\.gpus: must be {rule}"):
        read(IMPOSSIBLE.replace("J1, kind: training, gpus: 16", f"J1, kind: training, gpus: {gpus}"))
