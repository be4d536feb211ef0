"""The wheel holds both packages and all data; the project file, constraints and README agree."""

import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tomllib
import zipfile
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name


@pytest.fixture(scope="module")
def project(checkout: Path) -> dict[str, Any]:
    whole = tomllib.loads((checkout / "pyproject.toml").read_text(encoding="utf-8"))
    section: dict[str, Any] = whole["project"]
    return section


@pytest.fixture(scope="module")
def wheel(checkout: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(build, cwd=checkout, check=True, capture_output=True)
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The bin folder of a fresh environment with the wheel; the checkout is not on its path.

    The dependencies are those of this environment: a folder named in a .pth file is searched, but
    the .pth files in it (the editable install of the checkout) are not read.
    """
    folder = tmp_path_factory.mktemp("fresh")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder / "venv"], check=True)
    bin_folder = folder / "venv" / "bin"
    pip = [sys.executable, "-m", "pip", "--python", bin_folder / "python", "install", "--quiet"]
    subprocess.run([*pip, "--no-deps", "--no-index", wheel], check=True)
    (site,) = (folder / "venv" / "lib").glob("python*/site-packages")
    (site / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n", encoding="utf-8")
    return bin_folder


def run(*command: str | Path, cwd: Path) -> str:
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    environment["NUMBA_DISABLE_JIT"] = "1"  # the same numbers (tests/test_jit.py) without compiling afresh
    done = subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_wheel_holds_what_it_should_and_nothing_else(checkout: Path, wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    for source, target in (("scenarios", "gpuplan/scenarios"), ("notebooks", "gpuplan/notebooks")):
        for path in (checkout / source).rglob("*"):
            if path.suffix in {".yaml", ".ipynb"} and ".ipynb_checkpoints" not in path.parts:
                assert f"{target}/{path.relative_to(checkout / source).as_posix()}" in names
    for path in (checkout / "widgets" / "gpuplan_widgets").rglob("*"):
        if path.suffix in {".py", ".js", ".css"}:
            assert path.relative_to(checkout / "widgets").as_posix() in names
    assert {"gpuplan/py.typed", "gpuplan_widgets/py.typed"} <= names
    assert "gpuplan/jupyter_config/labconfig/default_setting_overrides.json" in names
    assert any(name.endswith("licenses/LICENSE") for name in names)
    assert {name.split("/")[0].split("-")[0] for name in names} == {"gpuplan", "gpuplan_widgets"}


def test_the_description_of_the_wheel_is_the_readme_without_links_that_lead_nowhere(
    checkout: Path, wheel: Path
) -> None:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        told = archive.read(name).decode()
    readme = (checkout / "README.md").read_text(encoding="utf-8")
    assert "Description-Content-Type: text/markdown" in told
    for line in ("    make lab ", "## A first result", "gpuplan compare training-rush", "## Offline"):
        assert line in readme
        assert line in told
    assert re.findall(r"\]\((?!https?:)[^)\n]*\)", readme)
    assert not re.findall(r"\]\((?!https?:)[^)\n]*\)", told)


@pytest.mark.slow
def test_installed_wheel_works_without_the_checkout(checkout: Path, installed: Path, tmp_path: Path) -> None:
    program = "import gpuplan, gpuplan_widgets; print(gpuplan.__file__, gpuplan_widgets.__file__)"
    for place in run(installed / "python", "-c", program, cwd=tmp_path).split():
        assert Path(place).is_relative_to(installed.parent)
    listed = run(installed / "gpuplan", "scenarios", cwd=tmp_path)
    for path in (checkout / "scenarios" / "allocation").glob("*.yaml"):
        assert path.stem in listed
    compared = json.loads(run(installed / "gpuplan", "compare", "training-rush", "--json", cwd=tmp_path))
    assert list(compared["policies"]) == ["fifo", "aware"]


@pytest.mark.slow
def test_lab_copies_notebooks_of_a_wheel_and_keeps_those_already_there(
    checkout: Path, installed: Path, tmp_path: Path
) -> None:
    mine = tmp_path / "gpuplan-notebooks" / "01-why-order-is-capacity.ipynb"
    mine.parent.mkdir()
    mine.write_text("my notes", encoding="utf-8")
    program = "from gpuplan.lab import notebooks_to_open; print(notebooks_to_open(None))"
    out = run(installed / "python", "-c", program, cwd=tmp_path)
    assert f"kept your own {mine.relative_to(tmp_path)}" in out
    assert mine.read_text(encoding="utf-8") == "my notes"
    copied = {path.name for path in mine.parent.glob("*.ipynb")}
    assert copied == {path.name for path in (checkout / "notebooks").glob("*.ipynb")}


def test_the_editable_checkout_finds_its_own_data(checkout: Path) -> None:
    from gpuplan.inputs.folders import data_folder

    for name in ("scenarios", "notebooks"):
        assert data_folder(name).samefile(checkout / name)


def test_every_requirement_has_a_pin_that_meets_it(checkout: Path, project: dict[str, Any]) -> None:
    lines = (checkout / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pins = dict(line.split("==") for line in lines if "==" in line)
    pins = {canonicalize_name(name): version for name, version in pins.items()}
    extras = project["optional-dependencies"]
    for text in (*project["dependencies"], *(text for extra in extras.values() for text in extra)):
        requirement = Requirement(text)
        assert requirement.specifier.contains(pins[canonicalize_name(requirement.name)]), text
        assert ">=" in text, f"{text} has no lower bound"


def test_changelog_starts_with_this_version(checkout: Path, project: dict[str, Any]) -> None:
    changelog = (checkout / "CHANGELOG.md").read_text(encoding="utf-8")
    first = re.search(r"^## (\S+)", changelog, re.MULTILINE)
    assert first is not None
    assert first[1] == project["version"]


def test_no_tracked_file_names_this_machine(checkout: Path) -> None:
    git = shutil.which("git")
    if git is None or not (checkout / ".git").exists():
        return  # an unpacked archive has no list of tracked files
    tracked = subprocess.run([git, "ls-files", "-z"], cwd=checkout, capture_output=True, check=True).stdout
    for name in filter(None, tracked.decode().split("\0")):
        path = checkout / name
        for place in (checkout, Path.home() / ".cache", Path(sys.prefix)):
            assert not path.is_file() or str(place).encode() not in path.read_bytes(), (name, place)
