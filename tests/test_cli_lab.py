"""`gpuplan lab`: which folder it opens, and that JupyterLab understands what it is told."""

import subprocess
import sys
from pathlib import Path

import pytest

from gpuplan import lab
from gpuplan.cli import main


def test_in_the_checkout_it_opens_the_notebooks_themselves(checkout: Path) -> None:
    assert lab.notebooks_to_open(None).samefile(checkout / "notebooks")


def test_a_named_folder_gets_a_copy(
    checkout: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "deep" / "course"
    names = {path.name for path in (checkout / "notebooks").glob("*.ipynb")}
    assert lab.notebooks_to_open(folder) == folder
    assert {path.name for path in folder.iterdir()} == names
    assert capsys.readouterr().out == ""
    for path in folder.iterdir():
        path.write_text("mine", encoding="utf-8")
    lab.notebooks_to_open(folder)
    assert {path.read_text(encoding="utf-8") for path in folder.iterdir()} == {"mine"}
    assert capsys.readouterr().out.count("kept your own") == len(names)


def test_a_folder_that_cannot_be_is_the_callers_fault(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    assert main(["lab", str(tmp_path / "file")]) == 2
    assert "cannot copy the notebooks" in capsys.readouterr().err


def test_without_jupyterlab_it_says_how_to_get_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert main(["lab"]) == 2
    assert "pip install 'gpuplan[lab]'" in capsys.readouterr().err


def test_kernels_are_compiled_before_jupyterlab_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []
    monkeypatch.setattr("gpuplan.allocation.plan.warm_up", lambda: calls.append("compiled"))
    monkeypatch.setattr(lab, "open_lab", lambda *_, **__: calls.append("opened") or 0)
    assert main(["lab"]) == 0
    assert calls == ["compiled", "opened"]


BARE = """
import sys
for name in ("pandas", "pydantic", "ruamel", "altair", "ipywidgets", "anywidget", "ortools", "IPython"):
    sys.modules[name] = None
from gpuplan.lab import compile_kernels
compile_kernels()
from gpuplan.allocation import bound_kernels, kernels, search_kernels
from gpuplan.fairshare import flat_kernels, kernels as fairshare
from gpuplan.packing import kernels as packing
for kernel in (
    kernels.allocate, kernels.reserve_peaks, bound_kernels.price_bound, search_kernels.schedule,
    search_kernels.exchange, search_kernels.place_all, search_kernels.improve, fairshare.run_queue,
    fairshare.run_conservative, fairshare.run_contract, flat_kernels.run_fifo, flat_kernels.run_easy, packing.run_pack,
):
    print(kernel.__name__, len(kernel.signatures))
"""


def test_every_kernel_is_compiled_where_only_numpy_and_numba_are_installed() -> None:
    """OR-Tools is optional; and `make` compiles while everything else is being installed."""
    done = subprocess.run([sys.executable, "-c", BARE], capture_output=True, text=True, check=True)
    assert [line for line in done.stdout.splitlines() if not line.endswith(" 1")] == []


UNDERSTOOD = """
import sys
from jupyterlab.labapp import LabApp
app = LabApp()
app.parse_command_line(sys.argv[1:])
print(app.news_url, app.check_for_updates_class.__name__, app.extension_manager, app.default_url)
from jupyterlab_server.settings_utils import _get_overrides
print(_get_overrides("")[0]["@jupyterlab/apputils-extension:notification"])
print(app.config.ServerApp.root_dir, app.config.ServerApp.port, app.config.ServerApp.open_browser)
"""


@pytest.mark.slow
def test_jupyterlab_understands_what_it_is_told(checkout: Path, tmp_path: Path) -> None:
    (tmp_path / lab.FIRST_NOTEBOOK).touch()
    python, module, name, *options = lab.lab_command(tmp_path, browser=False, port=4711)
    assert (module, name) == ("-m", "jupyterlab")
    command = [python, "-c", UNDERSTOOD, *options]
    done = subprocess.run(
        command,
        cwd=tmp_path,
        env=lab.lab_environment(),
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert done.stdout.splitlines() == [
        f"None NeverCheckForUpdate readonly /lab/tree/{lab.FIRST_NOTEBOOK}",
        "{'fetchNews': 'false', 'checkForUpdates': False}",
        f"{tmp_path.resolve()} 4711 False",
    ]
