"""`import gpuplan` is cheap, and everything public is found when asked for."""

import json
import subprocess
import sys

import pytest

import gpuplan

HEAVY = (
    "numpy",
    "numba",
    "pandas",
    "pydantic",
    "ruamel",
    "altair",
    "ipywidgets",
    "anywidget",
    "ortools",
    "IPython",
)


def imported(code: str) -> set[str]:
    """Top-level modules that a fresh interpreter holds after `code`."""
    script = (
        f"{code}\nimport json, sys\nprint(json.dumps(sorted({{name.split('.')[0] for name in sys.modules}})))"
    )
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return set(json.loads(run.stdout))


def test_importing_gpuplan_imports_nothing_heavy() -> None:
    assert imported("import gpuplan; dir(gpuplan); gpuplan.explore").isdisjoint(HEAVY)


def test_loading_a_scenario_needs_neither_numba_nor_charts() -> None:
    modules = imported("import gpuplan; gpuplan.load('mixed-day')")
    assert {"pydantic", "ruamel"} <= modules
    assert modules.isdisjoint({"numba", "pandas", "altair", "ipywidgets"})


def test_every_public_name_is_there_and_listed() -> None:
    assert set(gpuplan.__all__) <= set(dir(gpuplan))
    for name in gpuplan.__all__:
        assert getattr(gpuplan, name) is not None
    assert {"load", "plan", "compare", "explore", "InputError", "POLICIES", "__version__"} <= set(
        gpuplan.__all__
    )


def test_public_names_are_the_objects_of_their_homes() -> None:
    from gpuplan.loading import compare, load, plan

    assert (gpuplan.plan, gpuplan.compare, gpuplan.load) == (plan, compare, load)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'gpuplan' has no attribute 'plann'"):
        gpuplan.plann  # noqa: B018 # the access itself is what fails


def test_explore_is_the_door_to_the_explorer() -> None:
    from gpuplan_widgets import AllocationExplorer

    explorer = gpuplan.explore("two-apps")
    assert type(explorer) is AllocationExplorer
    assert explorer.scenario == gpuplan.load("two-apps")
