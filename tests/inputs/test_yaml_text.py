"""What is written for people reads back, here and in other YAML readers."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ruamel.yaml import YAML
from strategies import HOSTILE_NAMES, LETTERS

from gpuplan.inputs.fields import Hours
from gpuplan.inputs.yaml_file import parse_yaml
from gpuplan.inputs.yaml_text import WIDTH, hours_text, write_yaml


@pytest.mark.parametrize("name", HOSTILE_NAMES)
def test_hostile_names_stay_text_in_every_reader(name: str) -> None:
    text = write_yaml({"name": name, "rows": [{"name": name}]}, frozenset({"rows"}))
    assert parse_yaml(text).data == {"name": name, "rows": [{"name": name}]}
    for version in (None, (1, 1)):
        reader = YAML(typ="safe", pure=True)
        reader.version = version
        assert reader.load(text) == {"name": name, "rows": [{"name": name}]}


@given(st.text(st.one_of(LETTERS, st.sampled_from("\n\t :#-'\"{}[],&*!|>%@`\\"))))
def test_any_text_reads_back(text: str) -> None:
    for written in ({"a": text}, {"a": {"b": text}}, {"a": [{"b": text}]}):
        assert parse_yaml(write_yaml(written)).data == written


def test_layout_for_people() -> None:
    document: dict[str, Any] = {
        "name": "tiny",
        "about": "word " * 30 + "end",
        "cluster": {"gpus": 8, "unavailable": [1]},
        "flags": {"yes": True, "none": None},
        "apps": [{"name": "no", "demand": list(range(40))}],
        "jobs": [{"name": "a b", "gpus": 4}],
    }
    text = write_yaml(document, frozenset({"jobs"}))
    assert text.startswith("name: tiny\nabout: >-\n  word word")
    assert "cluster: {gpus: 8, unavailable: [1]}\nflags: {yes: true, none: null}\n" in text
    assert '  - name: "no"\n    demand:\n      [0, 1, 2,' in text
    assert text.endswith("jobs:\n  - {name: a b, gpus: 4}\n")
    assert max(map(len, text.splitlines())) <= WIDTH


@pytest.mark.parametrize(
    ("hours", "text"), [(6.0, 6), (0.5, 0.5), (1 / 3, "20min"), (77 / 3600, "77s"), (0.1234567, 0.1234567)]
)
def test_hours_as_people_write_them(hours: float, text: int | float | str) -> None:
    assert hours_text(hours) == text
    assert Hours(1, 1e6).read(text) == hours


@given(st.floats(1 / 3600, 1e6))
def test_hours_read_back_exactly(hours: float) -> None:
    assert Hours(1, 1e6).read(hours_text(hours)) == hours
