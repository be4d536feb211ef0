"""Damaged scenario files through the command line: a table, or a sentence and exit code 2, in a process of its own."""

import subprocess
import sys
from pathlib import Path

import pytest
from allocation.test_schema_mutations import mutant

from gpuplan.loading import shipped

#: Seconds that a damaged file may take, the start of Python and a loaded machine included.
LONGEST_S = 60


@pytest.mark.parametrize("number", range(12))
def test_a_damaged_file_ends_in_a_table_or_in_sentences(number: int, tmp_path: Path) -> None:
    originals = [known.path.read_bytes() for known in shipped() if known.kind == "allocation"]
    (tmp_path / "damaged.yaml").write_bytes(mutant(number, originals))
    command = [sys.executable, "-m", "gpuplan", "compare", "damaged.yaml", "--policies", "fifo"]
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, timeout=LONGEST_S)
    out, err = ended.stdout.decode(), ended.stderr.decode()
    if ended.returncode == 0:
        assert "utilization" in out
        assert err == ""
    else:
        assert ended.returncode == 2, err
        assert out == ""
        assert err.startswith("gpuplan: damaged.yaml: ")
        assert "mistake" in err
    assert "Traceback" not in err


def test_some_of_the_damaged_files_are_refused(tmp_path: Path) -> None:
    """Otherwise the test above would show nothing."""
    from gpuplan.inputs.errors import InputError
    from gpuplan.loading import load

    originals = [known.path.read_bytes() for known in shipped() if known.kind == "allocation"]
    refused = 0
    for number in range(12):
        (tmp_path / "damaged.yaml").write_bytes(mutant(number, originals))
        try:
            load(tmp_path / "damaged.yaml")
        except InputError:
            refused += 1
    assert refused >= 6


def test_a_file_of_100_mb_is_refused_at_once(tmp_path: Path) -> None:
    with (tmp_path / "huge.yaml").open("wb") as huge:
        huge.truncate(100_000_000)
    command = [sys.executable, "-m", "gpuplan", "compare", "huge.yaml"]
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, timeout=LONGEST_S)
    assert ended.returncode == 2
    assert ended.stderr.decode().startswith("gpuplan: huge.yaml: 1 mistake\n")
