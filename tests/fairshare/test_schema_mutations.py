"""Damaged fair-share files and job tables: always a scenario or sentences, never another exception, never a hang.

`SCENARIO_MUTATIONS=10000 pytest tests/fairshare/test_schema_mutations.py` is the soak.
"""

import os
import random
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from allocation.test_schema_mutations import drop_lines, flip_bytes, mutant, repeat_lines, truncate
from hypothesis import given
from hypothesis import strategies as st

from gpuplan import load, shipped
from gpuplan.fairshare.model import FairshareScenario
from gpuplan.fairshare.schema import from_mapping
from gpuplan.inputs.errors import InputError

COUNT = int(os.environ.get("SCENARIO_MUTATIONS", "200"))

#: Seconds that no file of this size may take, on a machine shared with others.
LONGEST = 30.0

TABLE = b"job,team,submit_s,gpus,run_s,limit_s,min_runtime_s,resumable,priority,gpu\n" + b"".join(
    b"%d,%s,%d,%d,%d,%d,900,yes,0,A100|T4\n" % (k, b"red" if k % 2 else b"blue", k, 1 + k % 4, 60 * k, 90 * k)
    for k in range(1, 25)
)

CELLS = [b"", b"-1", b"x", b"2.5", b"nan", b"1e400", b'"', b"\xff", b"9" * 30, b"7", b"0", b"\n", b"yes"]

WITH_TABLE = """\
kind: fairshare
name: tabled
cluster: {gpus: 8}
budget: [{name: red, weight: 1}, {name: blue, weight: 2}]
workload: {file: jobs.csv}
"""


def outcome(path: Path, number: int) -> str:
    """``read`` or ``refused``; anything else fails the test."""
    begin = time.perf_counter()
    try:
        scenario = load(path)
    except InputError as error:
        text = str(error)
        printable = all(letter.isprintable() or letter == "\n" for letter in text)
        if not printable or not error.mistakes or len(text) > 20_000:
            pytest.fail(f"mutant {number}: no fit message: {text[:500]!r}")
        found = "refused"
    except Exception as error:  # any other exception is what this test looks for
        pytest.fail(f"mutant {number}: {type(error).__name__}: {error}")
    else:
        found = "read"
        if type(scenario) is not FairshareScenario:
            pytest.fail(f"mutant {number}: {scenario!r}")
    if time.perf_counter() - begin > LONGEST:
        pytest.fail(f"mutant {number}: took {time.perf_counter() - begin:.1f} s")
    return found


def test_mutated_files_are_scenarios_or_sentences(tmp_path: Path) -> None:
    originals = [scenario.path.read_bytes() for scenario in shipped() if scenario.kind == "fairshare"]
    path = tmp_path / "mutant.yaml"
    seen: Counter[str] = Counter()
    for number in range(COUNT):
        path.write_bytes(mutant(number, originals))
        seen[outcome(path, number)] += 1
    assert seen["refused"] > COUNT // 2  # most damage is noticed
    assert seen["read"] > COUNT // 50  # and not everything is refused out of hand


def test_mutated_job_tables_are_scenarios_or_sentences(tmp_path: Path) -> None:
    path = tmp_path / "tabled.yaml"
    path.write_text(WITH_TABLE)
    seen: Counter[str] = Counter()
    for number in range(COUNT):
        rng = random.Random(number)
        if number % 2:
            data = rng.choice([flip_bytes, drop_lines, repeat_lines, truncate])(TABLE, rng)
        else:
            cells = TABLE.split(b",")
            cells[rng.randrange(10, len(cells))] = rng.choice(CELLS)
            data = b",".join(cells)
        (tmp_path / "jobs.csv").write_bytes(data)
        seen[outcome(path, number)] += 1
    assert seen["refused"] > COUNT // 2
    assert seen["read"] > COUNT // 50


scalars = st.one_of(
    st.none(), st.booleans(), st.integers(-(10**30), 10**30), st.floats(), st.text(max_size=8), st.just("7d")
)
values = st.recursive(
    scalars,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(
            st.sampled_from(
                ["name", "weight", "children", "gpus", "nodes", "job", "team", "run_s", "from", "node"]
            ),
            inner,
            max_size=4,
        ),
    ),
    max_leaves=8,
)


@given(
    st.dictionaries(
        st.sampled_from(
            ["cluster", "pools", "window", "contract", "budget", "workload", "behaviour", "drains", "until"]
        ),
        values,
        max_size=5,
    )
)
def test_any_mapping_is_a_scenario_or_sentences(parts: dict[str, Any]) -> None:
    whole = {"kind": "fairshare", "name": "x", "cluster": {"gpus": 8}, "workload": {"generate": {}}, **parts}
    try:
        scenario = from_mapping(whole)
    except InputError as error:
        if not error.mistakes or not all(letter.isprintable() or letter == "\n" for letter in str(error)):
            pytest.fail(f"no fit message: {error}")
    else:
        assert from_mapping(scenario.to_dict()) == scenario


@given(values)
def test_any_rows_of_jobs_are_jobs_or_sentences(rows: Any) -> None:
    whole = {"kind": "fairshare", "name": "x", "cluster": {"gpus": 8}, "workload": {"jobs": rows}}
    try:
        scenario = from_mapping(whole)
    except InputError as error:
        assert str(error)  # noqa: PT017 # there is nothing to expect in particular
    else:
        assert scenario.jobs is not None
