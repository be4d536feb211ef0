"""Files as text: encodings, line ends, archives; what is no text is refused with a sentence."""

import gzip
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuplan.inputs.errors import InputError
from gpuplan.traces import plain_text
from gpuplan.traces.plain_text import MEMORY_PER_BYTE, read_text

TABLE = "job;note\n1;für alle\n2;ﬁn – Ωmega\n"
LATIN = "job;note\r\n1;für alle – „so“\r\n"


def write(folder: Path, data: bytes, name: str = "file.csv") -> Path:
    path = folder / name
    path.write_bytes(data)
    return path


def rule(path: Path, **options: object) -> str:
    with pytest.raises(InputError) as found:
        read_text(path, **options)  # type: ignore[arg-type]
    (mistake,) = found.value.mistakes
    return mistake.rule


@pytest.mark.parametrize(
    ("encoding", "note"),
    [
        ("utf-8", ()),
        ("utf-8-sig", ()),
        ("utf-16", ("The file is UTF-16 text.",)),
        ("utf-16-le", ("The file is UTF-16 text.",)),
        ("utf-16-be", ("The file is UTF-16 text.",)),
        ("utf-32", ("The file is UTF-32 text.",)),
    ],
)
def test_encodings(tmp_path: Path, encoding: str, note: tuple[str, ...]) -> None:
    found = read_text(write(tmp_path, TABLE.encode(encoding)))
    assert (found.text, found.notes, found.source) == (TABLE, note, "file.csv")
    packed = read_text(write(tmp_path, gzip.compress(TABLE.encode(encoding)), "file.gz"))
    assert packed.text == TABLE


def test_windows_1252(tmp_path: Path) -> None:
    found = read_text(write(tmp_path, LATIN.encode("cp1252")))
    assert found.text == LATIN.replace("\r\n", "\n")
    assert found.notes == ("Not UTF-8, so read as Windows-1252: line 2.",)


def test_two_encodings_in_one_file(tmp_path: Path) -> None:
    """Lines 2 and 4 are UTF-8, line 3 is not: each line is read as what it is."""
    lines = [b"job;note", "1;für".encode(), "2;für".encode("cp1252"), "3;Ω".encode()]
    found = read_text(write(tmp_path, b"\n".join(lines)))
    assert found.text == "job;note\n1;für\n2;für\n3;Ω"
    assert found.notes == ("Not UTF-8, so read as Windows-1252: line 3.",)


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_line_ends(tmp_path: Path, end: str) -> None:
    assert read_text(write(tmp_path, end.join(["a,b", "1,2", ""]).encode())).text == "a,b\n1,2\n"


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "empty file"),
        (b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n1 0 obj", "a PDF"),
        (b"PK\x03\x04\x14\x00\x06\x00", "workbook"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "workbook"),
        (b"PAR1\x15\x04", "Parquet"),
        (b"\x28\xb5\x2f\xfdrest", "zstd"),
        (b"\x89PNG\r\n", "picture"),
        (b"\x00\x01\x02\x0a", "not a text table"),
        (b"a,b\n1,\x1b[31m2\n", "not a text table"),
        (b"\x1f\x8b\x08\x00rest that is no gzip data", "damaged or cut off"),
    ],
)
def test_what_is_no_text(tmp_path: Path, data: bytes, words: str) -> None:
    assert words in rule(write(tmp_path, data))


def test_a_gzip_file_that_was_cut_off(tmp_path: Path) -> None:
    whole = gzip.compress(TABLE.encode() * 1000)
    for length in (10, 20, len(whole) // 2, len(whole) - 1):
        assert "damaged or cut off" in rule(write(tmp_path, whole[:length], "cut.csv.gz"))


def test_a_folder_a_device_and_nothing(tmp_path: Path) -> None:
    assert rule(tmp_path) == "must be a file, not a folder or a device"
    assert rule(Path("/dev/null")) == "must be a file, not a folder or a device"
    assert rule(tmp_path / "absent.csv") == "there is no such file"
    with pytest.raises(InputError, match="cannot be read"):
        read_text(f"{tmp_path}/null\0byte")


def test_a_pipe_does_not_hang(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    assert rule(path) == "must be a file, not a folder or a device"


def test_what_is_too_large_is_refused_before_it_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path, b"a,b\n" * 1000)
    assert "is too large" in rule(path, most_bytes=3_999)
    assert len(read_text(path, most_bytes=4_000).text) == 4_000
    monkeypatch.setattr(plain_text, "free_memory", lambda: 3_999 * MEMORY_PER_BYTE)
    assert "is too large" in rule(path)
    packed = write(tmp_path, gzip.compress(b"a,b\n" * 10_000_000), "small.gz")
    assert packed.stat().st_size < 100_000  # 40 MB of text: known only while it is unpacked
    assert "is too large" in rule(packed)


def test_a_hole_of_four_gigabytes(tmp_path: Path) -> None:
    """A file of 4 GB is refused by its size alone."""
    path = tmp_path / "large.csv"
    with path.open("wb") as file:
        file.write(b"a,b\n")
        file.truncate(4 << 30)
    assert "is too large" in rule(path, most_bytes=2 << 30)


def test_free_memory_is_told() -> None:
    free = plain_text.free_memory()
    assert free is not None
    assert free > 1 << 20


def test_progress(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plain_text, "_BLOCK", 1000)
    seen: list[tuple[int, int]] = []
    read_text(write(tmp_path, b"a,b\n" * 1000), progress=lambda done, total: seen.append((done, total)))
    assert seen == [(done, 4000) for done in range(1000, 4001, 1000)]


def test_the_first_lines_only(tmp_path: Path) -> None:
    path = write(tmp_path, b"abc,def\n" * 1000)
    assert read_text(path, first=20).text == "abc,def\n" * 2
    assert read_text(path, first=10**6).text == "abc,def\n" * 1000


def test_a_file_that_is_being_written(tmp_path: Path) -> None:
    path = write(tmp_path, b"a,b\n1,2\n")

    def more(done: int, total: int) -> None:
        with path.open("ab") as file:
            file.write(b"3,4\n")

    with pytest.raises(InputError, match="changed while it was read"):
        read_text(path, progress=more)


@given(st.binary(max_size=300))
def test_any_bytes_are_text_or_refused(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    path = tmp_path_factory.mktemp("any") / "file"
    path.write_bytes(data)
    try:
        found = read_text(path)
    except InputError:
        return
    assert "\0" not in found.text
    assert "\r" not in found.text
