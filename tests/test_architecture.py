"""The floor plan: who imports whom."""

import ast
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest


@pytest.fixture(scope="module")
def layers(checkout: Path) -> list[str]:
    """Every module that the layers contract names."""
    settings = tomllib.loads((checkout / "pyproject.toml").read_text(encoding="utf-8"))
    contract = settings["tool"]["importlinter"]["contracts"][0]
    assert contract["type"] == "layers"
    words = " ".join(contract["layers"]).replace("|", " ").replace(":", " ").split()
    return [word.strip("()") for word in words]


def test_import_contract_holds(checkout: Path) -> None:
    lint = Path(sys.executable).with_name("lint-imports")
    run = subprocess.run([lint, "--no-cache"], cwd=checkout, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr
    assert "0 broken" in run.stdout


def test_every_room_has_a_layer(checkout: Path, layers: list[str]) -> None:
    rooms = {
        f"gpuplan.{path.stem}"
        for path in (checkout / "gpuplan").iterdir()
        if path.suffix == ".py" or (path / "__init__.py").exists()
    }
    assert rooms - {"gpuplan.__init__"} <= set(layers)


@pytest.mark.parametrize("room", ["allocation", "fairshare", "packing"])
def test_no_kernel_constant_is_named_twice(checkout: Path, room: str) -> None:
    """A column named like another one silently takes its place in the whole file."""
    for path in (checkout / "gpuplan" / room).glob("*kernels.py"):
        names: list[str] = []
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            for target in node.targets if isinstance(node, ast.Assign) else []:
                parts = target.elts if isinstance(target, ast.Tuple) else [target]
                names += [part.id for part in parts if isinstance(part, ast.Name)]
        assert len(names) == len(set(names)), sorted(name for name in names if names.count(name) > 1)


def imported_modules(source: str) -> set[str]:
    """Modules named by the import statements of a file, wherever in the file they stand."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found.add("." * node.level + (node.module or ""))
    return found


def test_kernels_import_numpy_and_jit_alone(checkout: Path) -> None:
    kernels = sorted((checkout / "gpuplan").rglob("*kernels.py"))
    assert checkout / "gpuplan" / "allocation" / "kernels.py" in kernels
    for path in kernels:
        allowed = {
            "numpy",
            "numpy.typing",
            "gpuplan.jit",
            "typing",
        }  # annotations need the second and the last
        extra = imported_modules(path.read_text(encoding="utf-8")) - allowed
        assert not extra, f"{path.relative_to(checkout)} also imports {sorted(extra)}"


@pytest.mark.parametrize(
    ("source", "modules"),
    [
        ("import numpy as np", {"numpy"}),
        ("from gpuplan.jit import njit", {"gpuplan.jit"}),
        ("def f():\n    import pandas.api", {"pandas.api"}),
        ("from . import model", {"."}),
    ],
)
def test_imports_are_found(source: str, modules: set[str]) -> None:
    assert imported_modules(source) == modules
