"""The folder of a sweep: resumed, never computed twice, locked, whole on a full disk."""

import errno
import json
import os
import subprocess
import sys
from concurrent.futures import Future, ProcessPoolExecutor
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow
import pyarrow.parquet as parquet
import pytest

import gpuplan
from gpuplan.inputs.errors import InputError
from gpuplan.sweeps import store as stores
from sweeps.executors import Here, parts

PENALTY, GPUS = "objective.shortfall_penalty", "cluster.gpus"


def sweep(to: Path, penalties: Any = range(6), policies: Any = "aware", **more: Any) -> Any:
    here = more.pop("executor", None) or Here()
    return gpuplan.sweep("two-apps", {PENALTY: penalties}, policies, executor=here, to=to, **more)


def test_the_same_call_computes_nothing_and_gives_the_same_table(tmp_path: Path) -> None:
    here = Here()
    one = sweep(tmp_path, executor=here)
    two = sweep(tmp_path, executor=here)
    assert (one.computed, two.computed, here.points) == (6, 0, 6)
    pd.testing.assert_frame_equal(one.table, two.table)
    kept = pd.read_parquet(tmp_path / "results.parquet")
    pd.testing.assert_frame_equal(kept.drop(columns="error"), one.table.drop(columns="error"))
    assert kept["error"].isna().all()
    assert kept["version"].str.startswith(gpuplan.__version__ + "+").all()


def test_more_values_and_policies_compute_only_what_is_new(tmp_path: Path) -> None:
    here = Here()
    sweep(tmp_path, executor=here)
    wider = sweep(tmp_path, [0, 1, 2.5], ["fifo", "aware"], executor=here)
    assert wider.computed == 4  # fifo at three penalties, aware at 2.5
    assert wider.table[PENALTY].tolist() == [0, 0, 1, 1, 2.5, 2.5]
    assert sweep(tmp_path, executor=here).computed == 0  # what the wider one had no use for is still there


def test_errors_of_points_are_kept_too(tmp_path: Path) -> None:
    for computed in (2, 0):
        found = gpuplan.sweep("two-apps", {GPUS: [8, -1]}, "aware", executor=Here(), to=tmp_path)
        assert found.computed == computed
        assert found.errors["error"].tolist() == ["cluster.gpus: must be at least 1 (got -1)"]


class Interrupted(Here):
    """Ctrl-C comes after some chunks."""

    def __init__(self, after: int) -> None:
        super().__init__()
        self.after = after

    def submit(self, call: Any, /, *given: Any, **named: Any) -> Future[Any]:
        if self.chunks == self.after:
            raise KeyboardInterrupt
        return super().submit(call, *given, **named)


def test_an_interrupted_sweep_keeps_what_is_done_and_goes_on(tmp_path: Path) -> None:
    interrupted = Interrupted(after=5)
    with pytest.raises(KeyboardInterrupt):
        sweep(tmp_path, range(40), executor=interrupted)
    done = interrupted.points
    assert 0 < done < 40
    assert sum(len(parquet.read_table(path)) for path in parts(tmp_path)) == done
    here = Here()
    assert sweep(tmp_path, range(40), executor=here).computed == here.points == 40 - done


def test_a_second_sweep_in_the_folder_is_refused_and_a_dead_one_is_no_hindrance(tmp_path: Path) -> None:
    program = (
        "import sys, time, gpuplan.sweeps.store as s; from pathlib import Path\n"
        "lock = s._locked(Path(sys.argv[1]) / 'sweep.lock'); print('locked', flush=True); time.sleep(60)"
    )
    sweep(tmp_path)
    with subprocess.Popen([sys.executable, "-c", program, tmp_path], stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"locked\n"
        with pytest.raises(InputError, match="another sweep writes into it; wait until that has ended"):
            sweep(tmp_path)
        other.kill()
    assert sweep(tmp_path).computed == 0


def test_a_sweep_inside_of_a_sweep_of_the_same_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="another sweep writes into it"):
        sweep(tmp_path, progress=lambda done, points: sweep(tmp_path))
    assert sweep(tmp_path).computed == 6


def test_a_folder_of_another_scenario_is_refused(tmp_path: Path) -> None:
    sweep(tmp_path)
    with pytest.raises(InputError, match="holds a sweep of another scenario \\('two-apps'\\)"):
        gpuplan.sweep("mixed-day", {PENALTY: [1]}, executor=Here(), to=tmp_path)
    (tmp_path / "sweep.json").write_text(json.dumps([1]), encoding="utf-8")
    with pytest.raises(InputError, match=r"holds a sweep\.json that is no account of a sweep"):
        sweep(tmp_path)


def test_a_folder_that_cannot_be_is_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(InputError, match=r"to: cannot be written: .*directory"):
        sweep(tmp_path / "file" / "under")


def no_room(path: Path, data: bytes) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))


def test_a_full_disk_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sweep(tmp_path, range(3))
    before = [path.read_bytes() for path in parts(tmp_path)]
    with monkeypatch.context() as full:
        full.setattr(stores, "write_whole", no_room)
        with pytest.warns(UserWarning, match="the disk is full; 4 results are in this table only"):
            found = sweep(tmp_path, range(7))
    assert found.table["objective"].notna().sum() == 7
    assert "make room, and the same call goes on from there" in found.notes[0]
    assert [path.read_bytes() for path in parts(tmp_path)] == before
    again = sweep(tmp_path, range(7))
    assert again.computed == 4
    pd.testing.assert_frame_equal(again.table, found.table)


def test_room_that_comes_back_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real, failed = stores.write_whole, []

    def once(path: Path, data: bytes) -> None:
        if not failed and path.suffix == ".parquet":
            failed.append(path)
            no_room(path, data)
        real(path, data)

    monkeypatch.setattr(stores, "write_whole", once)
    monkeypatch.setattr(stores, "EVERY_S", 0.0)
    found = sweep(tmp_path)
    assert failed
    assert found.notes == ()
    assert sweep(tmp_path).computed == 0


def test_a_file_cut_short_by_a_real_limit_leaves_nothing_behind(tmp_path: Path) -> None:
    resource = pytest.importorskip("resource")
    path = tmp_path / "part.parquet"
    stores.write_whole(path, b"old")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limits[1]))
    try:
        with pytest.raises(OSError, match="large"):
            stores.write_whole(path, b"x" * 5000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert [file.name for file in tmp_path.iterdir()] == ["part.parquet"]
    assert path.read_bytes() == b"old"


def test_a_damaged_part_is_told_set_aside_and_computed_again(tmp_path: Path) -> None:
    sweep(tmp_path)
    (part,) = parts(tmp_path)
    part.write_bytes(part.read_bytes()[:100])
    with pytest.warns(UserWarning, match=r"000001\.parquet cannot be read; its results are computed again"):
        assert sweep(tmp_path).computed == 6
    assert part.with_suffix(".damaged").exists()


def test_parts_are_joined(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stores, "JOINED", 3)
    for last in range(1, 8):
        assert sweep(tmp_path, range(last)).computed == 1
    sweep(tmp_path, ["2.5"])  # a number as text: another type of column, which stays in a file of its own
    assert len(parts(tmp_path)) <= 4
    keys = [key for path in parts(tmp_path) for key in parquet.read_table(path)["key"].to_pylist()]
    assert len(keys) == len(set(keys)) == 8
    assert sweep(tmp_path, range(7)).computed == 0


def test_columns_are_numbers_where_values_are(tmp_path: Path) -> None:
    axes = {"seed": [1, 2], PENALTY: [1, 2.5], "rules.within_node": [True, False], "horizon.start": [None]}
    gpuplan.sweep("two-apps", axes, "fifo", executor=Here(), to=tmp_path)
    schema = parquet.read_table(tmp_path / "results.parquet").schema
    assert [schema.field(name).type for name in axes] == [
        pyarrow.int64(),
        pyarrow.float64(),
        pyarrow.string(),
        pyarrow.string(),
    ]


def test_without_pyarrow_a_sentence_and_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(InputError, match=r"to: needs pyarrow to be written: pip install 'gpuplan\[data\]'"):
        sweep(tmp_path / "new")
    assert not (tmp_path / "new").exists()
    assert gpuplan.sweep("two-apps", {PENALTY: [1]}, executor=Here()).computed == 2


def test_a_pool_that_lives_on_does_not_keep_the_folder(tmp_path: Path) -> None:
    """Forked workers hold the file of the lock open too."""
    with ProcessPoolExecutor(1) as pool:
        first = sweep(tmp_path, [1], executor=pool)
        second = sweep(tmp_path, [1, 2], executor=pool)
    assert (first.computed, second.computed) == (1, 1)


def test_half_of_a_letter_is_no_value(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="must be numbers, words"):
        sweep(tmp_path, ["a\udc80", 1])
    assert sweep(tmp_path, [1]).computed == 1  # and the folder is free


def test_a_part_that_cannot_be_read_now_is_not_set_aside(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sweep(tmp_path)
    with monkeypatch.context() as patched:

        def refused(*_: Any) -> Any:
            raise OSError(errno.EMFILE, "Too many open files")

        patched.setattr(parquet, "read_table", refused)
        with pytest.raises(InputError, match="cannot be read: Too many open files"):
            sweep(tmp_path)
    assert sweep(tmp_path).computed == 0
