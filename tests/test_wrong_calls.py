"""What strangers get wrong, on the command line and in Python: a sentence with place, rule and value, code 2."""

from collections.abc import Callable
from pathlib import Path

import pytest

import gpuplan as gp
from gpuplan.inputs.errors import InputError

Run = Callable[..., tuple[int, str, str]]

FILES = {
    "empty.yaml": b"",
    "binary.yaml": b"\xbf\x00\xfe" * 900,
    "negative.yaml": b"kind: allocation\nname: x\ncluster: {gpus: -4}\n",
    "kind.yaml": b"kind: nonsense\nname: x\n",
    "list.yaml": b"- 1\n- 2\n",
    "deep.yaml": b"a: " + b"[" * 5_000,
    "tab.yaml": b"kind: allocation\n\tname: x\n",
    "huge.yaml": b"kind: allocation\nbatch:\n" + b"  - {name: j}\n" * 200_000,
    "no.ipynb": b"{}",
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, content in FILES.items():
        (tmp_path / name).write_bytes(content)
    (tmp_path / "folder.yaml").mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("report nosuch", "nosuch: 1 mistake\n  there is no shipped scenario and no file of this name"),
        ("report ../../etc/nosuch", "../../etc/nosuch: 1 mistake\n  there is no such file"),
        ("report folder.yaml", "folder.yaml: 1 mistake\n  must be a file, but is a folder"),
        ("report empty.yaml", "empty.yaml: 1 mistake\n  must not be empty"),
        ("report binary.yaml", "line 1: must be UTF-8 text, but holds the byte 0xbf"),
        ("report negative.yaml", "cluster.gpus: must be at least 1 (got -4)"),
        ("report kind.yaml", "kind: must be one of allocation, fairshare, packing (got 'nonsense')"),
        ("report list.yaml", "must be a mapping that starts with kind: allocation (got a list of 2)"),
        ("report deep.yaml", "line 1: must not be nested more than 120 levels deep"),
        ("report tab.yaml", "line 2: must be indented with spaces, not with a tab"),
        ("report huge.yaml", "must not be larger than 2 MB, but has 2.8 MB"),
        ("report no.ipynb", "no.ipynb: 1 mistake\n  is no notebook: it has no nbformat"),
        ("report two-apps --policies awere", "did you mean aware? (got 'awere')"),
        ("report first-hours --policies aware", "policy: must be one of fifo, fifo-skip,"),
        ("report two-apps --interactive --policies nope", "(got 'nope')"),
        ("verify nosuch.html", "nosuch.html: 1 mistake\n  cannot be read: No such file or directory"),
        ("verify folder.yaml", "folder.yaml: 1 mistake\n  cannot be read: Is a directory"),
        ("verify binary.yaml", "is no report of gpuplan: it is not text in UTF-8"),
        ("verify negative.yaml", "is no report of gpuplan: a page that gpuplan report wrote is wanted"),
        ("compare first-hours", "kind: must be allocation here; fairshare scenarios are run by simulate"),
        ("simulate two-apps", "kind: must be fairshare here"),
        ("pack two-apps", "kind: must be packing here"),
        ("compare two-apps --policies ,", "policies: must name at least one policy"),
        ("compare <script>", "<script>: 1 mistake\n  there is no shipped scenario"),
    ],
)
def test_wrong_command_lines_end_with_2_and_a_sentence(
    run: Run, folder: Path, words: str, sentence: str
) -> None:
    command, *rest = words.split()
    target = ("-o", folder / "r.html") if command == "report" else ()
    status, out, err = run(command, *rest, *target)
    assert (status, out) == (2, "")
    assert err.startswith("gpuplan: ")
    assert sentence in err
    assert "Traceback" not in err
    assert not (folder / "r.html").exists()


@pytest.mark.parametrize("target", ["r.txt", "folder.yaml", "missing/r.html"])
def test_a_report_that_cannot_be_written_is_refused_by_name(run: Run, folder: Path, target: str) -> None:
    status, _, err = run("report", "first-hours", "-o", folder / target)
    assert (status, target in err, "Traceback" in err) == (2, True, False)


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: gp.sweep("two-apps", {"objective.penalti": [1]}), "objective.penalti: unknown path"),
        (lambda: gp.sweep("two-apps", {"cluster.gpus": []}), "cluster.gpus: must have at least one value"),
        (lambda: gp.sweep("two-apps", {"cluster.gpus": "48"}), "must be a list of values (got '48')"),
        (lambda: gp.sweep("two-apps", {"seed": ["a"]}), "seed: must be whole numbers of at least 0"),
        (lambda: gp.sweep(None, {"seed": [1]}), "must be a shipped name, a path or a mapping (got nothing)"),
        (lambda: gp.report(3), "must be a shipped name, a path or a mapping (got 3)"),
        (lambda: gp.verify_report(3), "path: must be a path, as text (got 3)"),
        (lambda: gp.verify_report("a\0b"), "no file can have this name"),
        (lambda: gp.import_file(3), "files: must be a path, or a list of paths (got 3)"),
        (lambda: gp.import_file("a\0b.csv"), "cannot be read"),
        (lambda: gp.load("a\0b.yaml"), "1 mistake"),
        (lambda: gp.load({}), "kind: must be given"),
    ],
)
def test_wrong_calls_are_a_sentence(call: Callable[[], object], sentence: str) -> None:
    with pytest.raises(InputError) as error:
        call()
    assert sentence in str(error.value)
