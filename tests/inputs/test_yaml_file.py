"""YAML stays text, every value has its line, and whatever is no such file is refused in a sentence."""

import os
import sys
from pathlib import Path

import pytest

from gpuplan.inputs.errors import InputError
from gpuplan.inputs.yaml_file import DEEPEST, LARGEST_FILE, Plain, parse_yaml, read_yaml


@pytest.mark.parametrize(
    "text",
    [
        "no",
        "on",
        "y",
        "true",
        "1:30",
        "12:00:00",
        "0123",
        "3.10",
        "1e3",
        "0x10",
        "8_0",
        "null",
        "~",
        "2026-03-02",
        ".inf",
    ],
)
def test_a_plain_scalar_is_the_text_that_was_written(text: str) -> None:
    assert parse_yaml(f"key: {text}").data["key"] == text
    assert parse_yaml(f"{{key: {text}}}").data["key"] == text


def test_plain_and_quoted_null_can_be_told_apart() -> None:
    data = parse_yaml("a: null\nb: 'null'\nc:\nd: ''\ne: ~").data
    nulls = {key: isinstance(value, Plain) and value.is_null for key, value in data.items()}
    assert nulls == {"a": True, "b": False, "c": True, "d": False, "e": True}


def test_every_value_knows_its_line() -> None:
    document = parse_yaml("a: 1\nrows:\n  - {x: 1}\n  - x: 1\n    y:\n      - 5\n      - 6\n")
    lines = {
        ("a",): 1,
        ("rows",): 2,
        ("rows", 0, "x"): 3,
        ("rows", 1, "y"): 5,
        ("rows", 1, "y", 1): 7,
        ("rows", 1, "missing"): 4,  # a missing value has the line of its closest parent
        ("rows", 9): 2,
        ("other",): None,
    }
    assert {path: document.line(path) for path in lines} == lines


def test_a_key_given_twice_is_a_mistake_with_both_lines() -> None:
    document = parse_yaml("a: 1\nb: [{c: 1}, {c: 1, c: 2}]\na: 2\n", "f.yaml")
    assert [(m.path, m.rule, m.line) for m in document.mistakes] == [
        ("b.1.c", "must be given once, but stands twice on line 2", 2),
        ("a", "must be given once, but stands on lines 1 and 3", 3),
    ]
    assert document.data["a"] == "1"


def test_a_quoted_and_a_plain_key_are_the_same_key() -> None:
    assert len(parse_yaml('no: 1\n"no": 2').mistakes) == 1


def test_harmless_aliases_work() -> None:
    assert parse_yaml("a: &x [1, 2]\nb: *x").data == {"a": ["1", "2"], "b": ["1", "2"]}


BOMB = "a: &a [1,1,1,1,1,1,1,1,1,1]\n" + "".join(
    f"{name}: &{name} [{','.join(['*' + before] * 10)}]\n"
    for before, name in zip("abcdefgh", "bcdefghi", strict=True)
)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "must not be empty"),
        ("# only a comment\n", "must not be empty"),
        ("~", "must not be empty"),
        ("a: b: c", "must be valid YAML: mapping values are not allowed here"),
        ("a: [1, 2", "must be valid YAML"),
        ("a:\n\t- b", "line 2: must be indented with spaces, not with a tab"),
        ("a: 1\n---\nb: 2", "line 2: must hold one document"),
        ("a: !!int 5", "must not use YAML tags"),
        ("!!python/object/apply:os.system [true]", "must not use YAML tags"),
        ("? [a]\n: b", "must have plain words as keys"),
        ("? {a: 1}\n: b", "must have plain words as keys"),
        ("&a [*a]", "must not hold itself"),
        ("a: &a {b: *a}", "must not hold itself"),
        ("a: *b", "there is no &b"),
        (BOMB, "must not hold more than 250,000 keys and values"),
        ("a: \x00", "line 1: must be text, but holds the control character U+0000"),
        ("a: 1\nb: \x1b[2J", "line 2: must be text, but holds the control character U+001B"),
        ('a: "\\UFFFFFFFF"', "must be YAML"),
        ("%YAML 3.0\n---\na: 1", "must be valid YAML"),
        ("[" * 100_000, f"must not be nested more than {DEEPEST} levels deep"),
        ("{a: " * 10_000, f"must not be nested more than {DEEPEST} levels deep"),
        ("- " * 50_000, f"must not be nested more than {DEEPEST} levels deep"),
        ("".join(f"{' ' * depth}a:\n" for depth in range(400)), "must not be nested more than"),
    ],
)
def test_what_is_no_plain_document_is_refused_in_a_sentence(text: str, sentence: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_yaml(text, "f.yaml")
    assert str(caught.value).startswith("f.yaml: 1 mistake\n")
    assert sentence in str(caught.value)


def test_values_are_counted_with_aliases_written_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gpuplan.inputs.yaml_file.MOST_VALUES", 9)
    nine = "a: &a [1, 2]\nb: *a\nc: {d: 3}"  # a 1 2, b and [1 2] once more (3), c d 3: 3 + 4 + 3
    with pytest.raises(InputError, match=r"line 3: must not hold more than 9 keys and values"):
        parse_yaml(nine)
    assert parse_yaml(nine.replace("c: {d: 3}", "c: 3")).data["c"] == "3"


def test_the_deepest_nesting_allowed_is_read() -> None:
    assert parse_yaml("[" * DEEPEST + "]" * DEEPEST).data is not None


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        (b"", "must not be empty"),
        (b"\xef\xbb\xbf", "must not be empty"),
        (b"\x00" * 100, "control character U+0000"),
        (bytes(range(256)) * 10, "must be"),
        ("name: caf\u00e9".encode("latin-1"), "line 1: must be UTF-8 text, but holds the byte 0xe9"),
        ("kind: allocation".encode("utf-16"), "must be UTF-8 text, but is UTF-16"),
        ("kind: allocation".encode("utf-32"), "must be UTF-8 text, but is UTF-32"),
        (b"\x89PNG\r\n\x1a\n\x00", "must be UTF-8 text"),
    ],
)
def test_files_that_are_no_text_are_refused(tmp_path: Path, data: bytes, sentence: str) -> None:
    path = tmp_path / "f.yaml"
    path.write_bytes(data)
    with pytest.raises(InputError, match=r": 1 mistake\n") as caught:
        read_yaml(path)
    assert sentence in str(caught.value)


def test_a_byte_order_mark_and_windows_line_ends_are_fine(tmp_path: Path) -> None:
    path = tmp_path / "f.yaml"
    path.write_bytes(b"\xef\xbb\xbfa: 1\r\nb: 2\r\n")
    assert read_yaml(path).data == {"a": "1", "b": "2"}


def test_a_file_of_100_mb_is_refused_before_it_is_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "big.yaml"
    with path.open("wb") as file:
        file.truncate(100_000_000)  # sparse: says its size without filling the disk

    def refuse(*_: object) -> None:
        raise AssertionError("opened")

    monkeypatch.setattr("builtins.open", refuse)
    with pytest.raises(InputError, match=r"must not be larger than 2 MB, but has 100\.0 MB"):
        read_yaml(path)


def test_a_file_just_above_the_limit_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "big.yaml"
    path.write_bytes(b"#" * (LARGEST_FILE + 1))
    with pytest.raises(InputError, match="must not be larger"):
        read_yaml(path)


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    for source, sentence in (
        (tmp_path, "is a folder"),
        (tmp_path / "absent.yaml", "there is no such file"),
        (tmp_path / ("x" * 5000), "cannot be read"),
        ("a\0b.yaml", "cannot be read"),
    ):
        with pytest.raises(InputError, match=sentence) as caught:
            read_yaml(source)
        assert len(caught.value.mistakes) == 1
        assert "mistake" not in caught.value.mistakes[0].rule


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no named pipes in folders")
def test_a_pipe_is_refused_instead_of_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.yaml")
    with pytest.raises(InputError, match="must be an ordinary file"):
        read_yaml(tmp_path / "pipe.yaml")


def test_a_file_that_may_not_be_read_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "secret.yaml"
    path.write_text("a: 1")

    def refuse(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("builtins.open", refuse)  # root may read everything, so the refusal is played
    with pytest.raises(InputError, match="may not be read: permission denied"):
        read_yaml(path)
