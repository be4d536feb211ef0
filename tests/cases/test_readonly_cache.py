"""Case `num-readonly-cache`: without a place for a cache the package imports and gives the same numbers.

That kernels compile, are cached where they can be, and give the same plans in all settings is tested in
`tests/test_jit.py`; here the shares of the case, with all kernels imported.
"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

CASE = "num-readonly-cache"

PROBE = """
import json, sys
import gpuplan.allocation.kernels, gpuplan.fairshare.kernels, gpuplan.packing.kernels
from gpuplan.fairshare.model import BudgetNode
from gpuplan.fairshare.shares import share_out

given = json.loads(sys.argv[1])
budget = [BudgetNode(queue["name"], float(queue["weight"])) for queue in given["queues"]]
shares = share_out(budget, {queue["name"]: queue["demand"] for queue in given["queues"]}, given["cluster"]["gpus"])
print(json.dumps({"file": gpuplan.fairshare.kernels.__file__, "values": {k: float(v) for k, v in shares.items()}}))
"""

NOWHERE = "/dev/null"


@pytest.fixture(scope="module")
def given(case: Path) -> str:
    return json.dumps(YAML(typ="safe").load(case / "input.yaml"))


@pytest.fixture(scope="module")
def site(checkout: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the package in which no cache can be written, not even by root."""
    folder = tmp_path_factory.mktemp("site")
    shutil.copytree(checkout / "gpuplan", folder / "gpuplan", ignore=shutil.ignore_patterns("__pycache__"))
    for inner in [path for path in folder.rglob("*") if path.is_dir()]:
        (inner / "__pycache__").write_text("a file where the folder of the cache would be", encoding="utf-8")
    return folder


def _start(given: str, *, absent: tuple[str, ...] = (), **settings: str | Path) -> subprocess.Popen[str]:
    environment = {k: v for k, v in os.environ.items() if not k.startswith("NUMBA_") and k not in absent}
    environment |= {name: str(value) for name, value in settings.items()}
    return subprocess.Popen(
        [sys.executable, "-P", "-c", PROBE, given],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def _check(process: subprocess.Popen[str], expected: dict[str, Any], place: Path | None = None) -> None:
    out, err = process.communicate(timeout=300)
    assert process.returncode == 0, err
    assert len(err.splitlines()) <= expected["warnings_lines_max"]
    found = json.loads(out)
    assert found["values"] == expected["values"]
    assert place is None or Path(found["file"]).is_relative_to(place)


def test_normal(given: str, expected: dict[str, Any]) -> None:
    """Setting 1."""
    assert expected["import_ok_in_settings"] == [1, 2, 3, 4, 5, 6]
    _check(_start(given), expected)


def test_a_read_only_package_twice_at_once(
    given: str, expected: dict[str, Any], site: Path, tmp_path: Path
) -> None:
    """Setting 2."""
    home = {"HOME": tmp_path, "XDG_CACHE_HOME": tmp_path / "cache", "PYTHONPATH": site}
    for process in [_start(given, **home) for _ in range(2)]:
        _check(process, expected, site)


@pytest.mark.parametrize("nowhere", [("HOME", "XDG_CACHE_HOME"), ("HOME", "XDG_CACHE_HOME", "TMPDIR")])
def test_no_place_at_all(given: str, expected: dict[str, Any], site: Path, nowhere: tuple[str, ...]) -> None:
    """Settings 3 and 4."""
    _check(_start(given, PYTHONPATH=site, **dict.fromkeys(nowhere, NOWHERE)), expected, site)


def test_no_home_is_set(given: str, expected: dict[str, Any], site: Path) -> None:
    _check(_start(given, absent=("HOME", "XDG_CACHE_HOME", "TMPDIR"), PYTHONPATH=site), expected, site)


def test_inside_a_zip(given: str, expected: dict[str, Any], checkout: Path, tmp_path: Path) -> None:
    """Setting 5."""
    folder = tmp_path / "plain"
    shutil.copytree(checkout / "gpuplan", folder / "gpuplan", ignore=shutil.ignore_patterns("__pycache__"))
    bundle = Path(shutil.make_archive(str(tmp_path / "bundle"), "zip", folder))
    _check(_start(given, PYTHONPATH=bundle, HOME=NOWHERE, XDG_CACHE_HOME=NOWHERE), expected, bundle)


@pytest.mark.parametrize("way", ["absent", "switched off"])
def test_without_a_compiler(given: str, expected: dict[str, Any], tmp_path: Path, way: str) -> None:
    """Setting 6."""
    (tmp_path / "numba.py").write_text("raise ImportError('no numba here')", encoding="utf-8")
    settings = {"PYTHONPATH": str(tmp_path)} if way == "absent" else {"NUMBA_DISABLE_JIT": "1"}
    _check(_start(given, **settings), expected)
