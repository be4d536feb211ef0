"""Damaged packing files: always a scenario or sentences, never another exception, never a hang.

`SCENARIO_MUTATIONS=10000 pytest tests/packing/test_schema_mutations.py` is the soak.
"""

import os
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from allocation.test_schema_mutations import mutant
from hypothesis import given
from hypothesis import strategies as st

from gpuplan import load, shipped
from gpuplan.inputs.errors import InputError
from gpuplan.packing.model import PackingScenario
from gpuplan.packing.schema import from_mapping

COUNT = int(os.environ.get("SCENARIO_MUTATIONS", "200"))

#: Seconds that no file of this size may take, on a machine shared with others.
LONGEST = 30.0


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
        if type(scenario) is not PackingScenario:
            pytest.fail(f"mutant {number}: {scenario!r}")
    if time.perf_counter() - begin > LONGEST:
        pytest.fail(f"mutant {number}: took {time.perf_counter() - begin:.1f} s")
    return found


def test_mutated_files_are_scenarios_or_sentences(tmp_path: Path) -> None:
    originals = [scenario.path.read_bytes() for scenario in shipped() if scenario.kind == "packing"]
    path = tmp_path / "mutant.yaml"
    seen: Counter[str] = Counter()
    for number in range(COUNT):
        try:
            damaged = mutant(number, originals)
        except ValueError:  # nothing is left of a small file that could be damaged further
            continue
        path.write_bytes(damaged)
        seen[outcome(path, number)] += 1
    assert seen["refused"] > COUNT // 2  # most damage is noticed
    assert seen["read"] > COUNT // 50  # and not everything is refused out of hand


scalars = st.one_of(
    st.none(), st.booleans(), st.integers(-(10**30), 10**30), st.floats(), st.text(max_size=8), st.just("8GiB"),
    st.sampled_from(["chat", "90s", "1e400", "0.1", "always", "fifo"]),
)  # fmt: skip
KEYS = (
    "name", "declared_gib", "actual_gib", "resident", "gpus", "count", "memory_gib", "margin", "file", "generate",
    "rows", "rate_per_s", "service_s", "mean", "cv", "model", "arrival_s", "when", "queue", "on", "most", "beta",
)  # fmt: skip
values = st.recursive(
    scalars,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.sampled_from(KEYS), inner, max_size=4)
    ),
    max_leaves=10,
)

LEAST = {
    "kind": "packing",
    "name": "x",
    "gpus": {"count": 2, "memory_gib": 80},
    "models": [{"name": "chat", "declared_gib": 16}],
    "tasks": {"rows": [{"arrival_s": 1, "model": "chat", "service_s": 2}]},
}

FIELDS = (
    "count", "memory_gib", "host_gb_per_s", "release_s", "margin", "context_gib", "on", "when", "save_s", "model",
    "beta", "most", "after_s", "placement", "queue", "depth", "keep_alive_s", "max_tasks", "host_cache",
)  # fmt: skip

SECTIONS = (
    "gpus",
    "admission",
    "models",
    "tasks",
    "preemption",
    "contention",
    "retry",
    "policy",
    "until_s",
    "about",
)


@given(st.dictionaries(st.sampled_from(SECTIONS), values, max_size=4))
def test_any_mapping_is_a_scenario_or_sentences(parts: dict[str, Any]) -> None:
    try:
        scenario = from_mapping({**LEAST, **parts})
    except InputError as error:
        if not error.mistakes or not all(letter.isprintable() or letter == "\n" for letter in str(error)):
            pytest.fail(f"no fit message: {error}")
    else:
        assert from_mapping(scenario.to_dict()) == scenario


@given(
    st.sampled_from(["gpus", "admission", "preemption", "contention", "retry", "policy"]),
    st.sampled_from(FIELDS),
    scalars,
)  # fmt: skip
def test_any_value_of_a_section_is_read_or_refused_in_a_sentence(section: str, key: str, value: Any) -> None:
    whole = {**LEAST, section: {**LEAST.get(section, {}), key: value}}  # type: ignore[dict-item]
    try:
        scenario = from_mapping(whole)
    except InputError as error:
        found = [mistake for mistake in error.mistakes if mistake.path == f"{section}.{key}"]
        if not found or not str(error).replace("\n", "").isprintable():
            pytest.fail(f"no fit message: {error}")
    else:
        assert from_mapping(scenario.to_dict()) == scenario


@given(values, values)
def test_any_models_and_rows_are_read_or_refused_in_sentences(models: Any, rows: Any) -> None:
    try:
        from_mapping({**LEAST, "models": [*LEAST["models"], models], "tasks": {"rows": [rows]}})  # type: ignore[misc]
    except InputError as error:
        assert str(error)  # noqa: PT017 # there is nothing to expect in particular
