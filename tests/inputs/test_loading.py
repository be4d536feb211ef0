"""A name, a path or a mapping becomes a scenario; the shipped scenarios are what they say."""

from pathlib import Path
from typing import Any

import pytest

from gpuplan import load, plan, shipped
from gpuplan.inputs.errors import InputError
from gpuplan.inputs.folders import data_folder

#: The seven of the published comparison are tested in tests/allocation/test_benchmarks_found.py.
BENCHMARKS = "benchmark-"

SHIPPED = ["big-day", "elastic-training", "mixed-day", "on-paper", "training-rush", "two-apps"]


def test_shipped_scenarios_are_listed_by_kind_and_name() -> None:
    found = [scenario for scenario in shipped() if scenario.kind == "allocation"]
    names = [scenario.name for scenario in found]
    assert names == sorted(names)
    assert [name for name in names if not name.startswith(BENCHMARKS)] == SHIPPED
    assert all(scenario.about and scenario.path.stem == scenario.name for scenario in found)


@pytest.mark.parametrize("name", SHIPPED)
def test_a_shipped_scenario_is_found_by_name_by_path_and_by_mapping(name: str) -> None:
    scenario = load(name)
    assert scenario.name == name
    path = data_folder("scenarios") / "allocation" / f"{name}.yaml"
    assert load(path) == load(str(path)) == load(scenario.to_dict()) == load(scenario) == scenario


def test_shapes_of_the_shipped_scenarios() -> None:
    """What the issue asks for: sizes of clusters, nodes, steps, jobs, apps."""
    sizes = {
        name: (s.cluster.gpus, s.cluster.node_size, s.horizon.steps, len(s.batch), len(s.realtime))
        for name, s in ((name, load(name)) for name in SHIPPED)
    }
    assert sizes == {
        "big-day": (64, 8, 48, 60, 3),
        "elastic-training": (16, 8, 24, 12, 1),
        "mixed-day": (8, 8, 24, 10, 1),
        "on-paper": (4, 4, 6, 4, 1),
        "training-rush": (8, 8, 24, 16, 1),
        "two-apps": (16, 8, 24, 16, 2),
    }
    big, rush = load("big-day"), load("training-rush")
    assert big.horizon.step_hours == 0.5
    assert big.cluster.unavailable == (37,)
    assert sum(job.running_on is not None for job in big.batch) == 3
    assert {job.kind for job in rush.batch} == {"training"}
    caps = [app.max_swap for app in load("two-apps").realtime]
    assert len(set(caps)) == 2


def test_fifo_on_training_rush_meets_the_published_figure() -> None:
    """53.6 % of 8 GPUs x 24 hours: 103 useful GPU-hours of 192, 44 of them chat."""
    figures = plan(load("training-rush"), "fifo").figures
    assert figures["utilization"] == pytest.approx(103 / 192)
    assert sum(load("training-rush").realtime[0].demand) == 44


def test_a_reconstruction_says_so() -> None:
    about = load("training-rush").about
    assert "reconstruction" in about
    assert "53.6 %" in about


@pytest.mark.parametrize(
    ("source", "sentence"),
    [
        (
            "traning-rush",
            "there is no shipped scenario and no file of this name; did you mean training-rush? (shipped: ",
        ),
        (
            "nothing-like-it",
            "there is no shipped scenario and no file of this name (shipped: benchmark-",
        ),
        ("absent.yaml", "there is no such file"),
        ("../absent", "there is no such file"),
        ("", "there is no such file"),
        ("a\0b", "cannot be read"),
        ("x" * 10_000, "cannot be read"),
        ("\ud800", "no file of this name"),
        (".", "is a folder"),
        (Path("absent"), "there is no such file"),
        (3, "must be a shipped name, a path or a mapping (got 3)"),
        (None, "must be a shipped name, a path or a mapping (got nothing)"),
        ([], "must be a shipped name, a path or a mapping (got [])"),
    ],
)
def test_what_cannot_be_found_is_a_sentence(source: Any, sentence: str) -> None:
    with pytest.raises(InputError) as caught:
        load(source)
    assert sentence in str(caught.value)
    assert str(caught.value).isprintable() or len(str(caught.value).splitlines()) == 2


def test_a_file_in_the_working_folder_needs_no_suffix(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    load("mixed-day").replace({"name": "mine"}).save(tmp_path / "mine")
    monkeypatch.chdir(tmp_path)
    assert load("mine").name == "mine"


def test_a_missing_data_folder_is_named() -> None:
    with pytest.raises(FileNotFoundError, match="no folder 'nothing'"):
        data_folder("nothing")


def test_plan_and_compare_take_what_load_takes() -> None:
    import gpuplan

    made = gpuplan.plan("mixed-day", "fifo")
    assert made.fingerprint == gpuplan.compare("mixed-day", ["fifo"])["fifo"].fingerprint
    assert made.fingerprint == gpuplan.plan(load("mixed-day"), "fifo").fingerprint
    with pytest.raises(InputError, match="mixed-day"):
        gpuplan.plan("mixed-dya")
