"""The wheel holds both packages and all data; the project file, constraints and README agree."""

import gzip
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


def blocks(checkout: Path, language: str) -> list[str]:
    readme = (checkout / "README.md").read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```", readme, re.MULTILINE | re.DOTALL)


def files_of_the_readme(checkout: Path, folder: Path) -> None:
    """The files that commands and code of the README name: three scenarios, logs, tables, traffic."""
    names = {"allocation": "tiny.yaml", "fairshare": "mine.yaml", "packing": "node.yaml"}
    for block in blocks(checkout, "yaml"):
        kind = re.match(r"kind: (\w+)", block)
        if kind is not None:
            (folder / names[kind[1]]).write_text(block, encoding="utf-8")
    rows = (f"{k} {60 * k} -1 600 4 -1 -1 4 900 -1 1 {k % 3} 1 -1 1 -1 -1 -1" for k in range(1, 20))
    log = "; MaxProcs: 512\n" + "\n".join(rows)
    (folder / "log.swf").write_text(log, encoding="utf-8")
    (folder / "log.swf.gz").write_bytes(gzip.compress(log.encode()))
    files_of_a_cluster(folder)


def files_of_a_cluster(folder: Path) -> None:
    """What a cluster has: an export of sacct with a job on each of two days, a table of jobs, traffic of a day."""
    columns = (
        "JobIDRaw,JobID,User,Account,QOS,Partition,State,Submit,Start,End,Elapsed,Timelimit,AllocTRES,ReqTRES"
    )
    lines = [columns.replace(",", "|")]
    for job, day in ((1, "2026-03-03"), (2, "2026-03-04")):
        times = f"{day}T08:00:00|{day}T09:00:00|{day}T11:00:00|02:00:00|04:00:00"
        lines.append(f"{job}|{job}|ann|lab|high|gpu|COMPLETED|{times}|gres/gpu=4|gres/gpu=4")
    (folder / "sacct.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    table = "id,submit_s,Cards,Used\na,0,4,60\nb,60,2,30\n"
    (folder / "jobs.csv").write_text(table, encoding="utf-8")
    hours = range(24)
    first = 1772582400  # 2026-03-04 00:00 UTC
    values = [[first + 3600 * hour, str(10 + hour)] for hour in hours]
    series = {"metric": {"__name__": "requests", "model": "chat"}, "values": values}
    answer = {"status": "success", "data": {"resultType": "matrix", "result": [series]}}
    (folder / "traffic.json").write_text(json.dumps(answer), encoding="utf-8")
    traffic = "".join(f"2026-03-04 {hour:02}:00,{10 + hour}\n" for hour in hours)
    (folder / "traffic.csv").write_text("hour,requests\n" + traffic, encoding="utf-8")


def test_the_python_of_the_readme_runs(
    checkout: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files_of_the_readme(checkout, tmp_path)
    monkeypatch.chdir(tmp_path)
    found = blocks(checkout, "python")
    assert found
    names: dict[str, Any] = {}
    for block in found:
        exec(compile(block, "README.md", "exec"), names)


def test_the_scenario_of_the_readme_is_one(checkout: Path, tmp_path: Path) -> None:
    from gpuplan.loading import load

    files_of_the_readme(checkout, tmp_path)
    assert load(tmp_path / "mine.yaml").kind == "fairshare"
    assert load(tmp_path / "node.yaml").kind == "packing"
    others = ("kind: fairshare", "kind: packing")
    whole, *jobs = (block for block in blocks(checkout, "yaml") if not block.startswith(others))
    for more in ("", *jobs):  # jobs stand alone in the text and are rows of the scenario's batch
        (tmp_path / "readme.yaml").write_text(whole + more, encoding="utf-8")
        assert len(load(tmp_path / "readme.yaml").batch) >= 1 + more.count("\n")


def test_the_commands_of_the_readme_are_commands(
    checkout: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from gpuplan.cli import main

    monkeypatch.chdir(tmp_path)
    files_of_the_readme(checkout, tmp_path)
    commands = [
        line.split("#")[0].split() for block in blocks(checkout, "console") for line in block.split("\n")
    ]
    asked = [words[1:] for words in commands if words[:1] == ["gpuplan"] and words[1:2] != ["lab"]]
    asked = [words for words in asked if words != ["bench"]]  # takes long
    assert asked
    for words in asked:
        assert main(words) == 0, words
        assert capsys.readouterr().out


def test_no_tracked_file_names_this_machine(checkout: Path) -> None:
    git = shutil.which("git")
    if git is None or not (checkout / ".git").exists():
        return  # an unpacked archive has no list of tracked files
    tracked = subprocess.run([git, "ls-files", "-z"], cwd=checkout, capture_output=True, check=True).stdout
    for name in filter(None, tracked.decode().split("\0")):
        path = checkout / name
        for place in (checkout, Path.home() / ".cache", Path(sys.prefix)):
            assert not path.is_file() or str(place).encode() not in path.read_bytes(), (name, place)
