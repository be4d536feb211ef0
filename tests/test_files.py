"""Files are written whole or not at all."""

import os
from pathlib import Path

import pytest

from gpuplan.files import write_whole


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()], ids=str)
def test_an_older_file_stays_where_the_new_one_is_not_written(
    error: BaseException, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "report.html"
    write_whole(path, b"old")
    with monkeypatch.context() as patched:

        def stop(_: int) -> None:
            raise error

        patched.setattr(os, "fsync", stop)
        with pytest.raises(type(error)):
            write_whole(path, b"new")
    assert path.read_bytes() == b"old"
    assert [found.name for found in tmp_path.iterdir()] == ["report.html"]
    write_whole(path, b"new")
    assert path.read_bytes() == b"new"


def test_a_link_stays_a_link_and_a_device_a_device(tmp_path: Path) -> None:
    link, target = tmp_path / "link", tmp_path / "target"
    link.symlink_to(target)
    write_whole(link, b"through")
    assert link.is_symlink()
    assert target.read_bytes() == b"through"
    write_whole(Path(os.devnull), b"gone")
    assert not Path(os.devnull).is_file()
