"""What README and docs/ say is so: every block runs, every link leads somewhere, nothing in them is stale."""

import importlib.util
import math
import re
import shlex
import tomllib
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from documents import CHECKOUT, PAGES, SCENARIO_FILES, Block, anchors, blocks, files_for, links

DOCS = CHECKOUT / "docs"
WITH_PYTHON = [page for page in PAGES if blocks(page, "python")]
WITH_COMMANDS = [page for page in PAGES if blocks(page, "console")]

#: Commands that are understood here and not run: they serve until they are ended, or last long.
NOT_RUN = {"lab", "app", "bench"}

#: A file below it works only with the change of the kernel that stands beside it.
NEEDS_A_BRANCH = "gpuplan/packing/policies/"


def script(name: str) -> ModuleType:
    """A script of docs/ as a module."""
    spec = importlib.util.spec_from_file_location(f"docs_{name}", DOCS / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("page", WITH_PYTHON, ids=lambda page: page.stem)
def test_the_python_of_a_page_runs(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each page alone, from top to bottom, as a reader would; files that it shows belong to the how-to's own test."""
    files_for(page, tmp_path)
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    for block in blocks(page, "python"):
        if block.file is None or not block.file.startswith(NEEDS_A_BRANCH):
            exec(compile(block.text, str(block), "exec"), names)


def test_the_scenarios_of_the_pages_are_scenarios(tmp_path: Path) -> None:
    from gpuplan.loading import load

    seen = set()
    for page in PAGES:
        files_for(page, tmp_path)
        whole = ""
        for block in blocks(page, "yaml"):
            kind = re.match(r"kind: (\w+)", block.text)
            if kind is not None:
                whole = block.text
                seen.add(kind[1])
                assert load(tmp_path / SCENARIO_FILES[kind[1]]).kind == kind[1], str(block)
            else:  # a job that stands alone in the text is a row of the batch above
                (tmp_path / "more.yaml").write_text(whole + block.text, encoding="utf-8")
                more: Any = load(tmp_path / "more.yaml")
                assert len(more.batch) >= 1 + block.text.count("- {"), str(block)
    assert seen == set(SCENARIO_FILES)


def commands(block: Block) -> list[list[str]]:
    """The commands of gpuplan in a block, as words."""
    lines = (line.split(" #")[0] for line in block.text.replace("\\\n", " ").split("\n"))
    return [shlex.split(line)[1:] for line in lines if line.startswith("gpuplan ")]


def is_run(words: list[str]) -> bool:
    """Whether a command is run here; reports of notebooks have tests of their own (tests/reports)."""
    return words[0] not in NOT_RUN and not any(word.endswith(".ipynb") for word in words)


@pytest.mark.parametrize("page", WITH_COMMANDS, ids=lambda page: page.stem)
def test_the_commands_of_a_page_are_commands(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """They end well and say something; where the page shows what they print, they print it."""
    from gpuplan.cli import _parser, main

    monkeypatch.chdir(tmp_path)
    files_for(page, tmp_path)
    printed = ""
    for block in blocks(page):
        if block.language == "console":
            for words in commands(block):
                if not is_run(words):
                    assert _parser().parse_args(words).command == words[0]
                    continue
                assert main(words) == 0, words
                printed = capsys.readouterr().out
                assert printed, words
        elif block.language == "text":
            assert set(block.text.splitlines()) <= set(printed.splitlines()), str(block)


def test_every_link_of_a_page_leads_somewhere() -> None:
    """Within the checkout: other pages, their headings, pictures; nothing points outside."""
    for page in PAGES:
        for link in links(page):
            path, _, anchor = link.partition("#")
            target = (page.parent / path).resolve() if path else page
            assert target.is_relative_to(CHECKOUT), (page.name, link)
            assert target.exists(), (page.name, link)
            if anchor:
                assert anchor in anchors(target), (page.name, link)


def test_every_page_is_reached_from_the_readme_and_from_the_contents() -> None:
    pages = {page.name for page in PAGES if page.parent == DOCS} - {"index.md"}
    for start in (CHECKOUT / "README.md", DOCS / "index.md"):
        told = {Path(link.partition("#")[0]).name for link in links(start)}
        contents = (line for block in blocks(start) for line in block.text.split("\n"))
        told |= {f"{line.strip()}.md" for line in contents}
        assert pages <= told, pages - told


@pytest.mark.parametrize("name", ["figures", "glossary"])
def test_a_page_that_the_library_writes_is_what_it_says_today(name: str) -> None:
    made = script(name)
    assert made.PAGE.read_text(encoding="utf-8") == made.page(), f"run: python docs/{name}.py"


def test_the_floor_plan_is_that_of_the_package_and_of_its_contract() -> None:
    text = (DOCS / "how-it-is-built.md").read_text(encoding="utf-8")
    plan, _, layers = text.partition("## Who imports whom")
    rooms = {path.parent.name for path in (CHECKOUT / "gpuplan").glob("*/__init__.py")}
    assert {room for room in rooms if not re.search(rf"`(?:gpuplan/)?{room}`", plan)} == set()
    project = tomllib.loads((CHECKOUT / "pyproject.toml").read_text(encoding="utf-8"))
    told = project["tool"]["importlinter"]["contracts"][0]["layers"]
    assert (
        len(re.findall(r"^\d+\. ", layers, re.MULTILINE)) == len(told) - 1
    )  # __main__ only calls the command line


def test_the_limits_of_the_app_on_its_page_are_those_of_the_command() -> None:
    from gpuplan.app.options import Options
    from gpuplan.cli_app import LIMITS

    text = (DOCS / "serve.md").read_text(encoding="utf-8")
    said = dict(re.findall(r"^\| `(--\w+)` \|.*\| (\S+) \|$", text, re.MULTILINE))
    assert said == {flag: f"{getattr(Options(), name):g}" for flag, name, *_ in LIMITS}


def test_measured_errors_on_the_page_of_limits_are_those_of_today(shared: Path) -> None:
    from gpuplan.traces.model_memory import compare_with_measured

    rows = compare_with_measured(shared / "traces" / "model-memory").dropna(subset="error_percent")
    worst = rows.groupby("quantity")["error_percent"].apply(lambda errors: errors.abs().max())
    text = " ".join((DOCS / "limits.md").read_text(encoding="utf-8").split())
    weights, room, tokens = (math.ceil(10 * worst[name]) / 10 for name in ("weights", "room", "tokens"))
    assert f"against {len(rows)} measured figures" in text
    assert f"weights are within {weights} %, the room for the cache within {room} %" in text
    assert f"its tokens within {tokens} %" in text
    assert f"up to {worst['context']:.0f} % (of 1.8 GiB) and {worst['workspace']:.0f} % (of 0.24 GiB)" in text


def test_the_picture_shows_what_the_library_computes() -> None:
    """What is drawn, not its bytes: where letters stand depends on the fonts of a machine."""
    picture = script("picture")
    drawn = picture.chart()
    text = picture.PICTURE.read_text(encoding="utf-8")
    assert picture.MARK + picture.fingerprint(drawn) in text, "run: python docs/picture.py"
    both = picture.gp.compare(picture.SCENARIO, picture.POLICIES)
    readme = (CHECKOUT / "README.md").read_text(encoding="utf-8")
    for plan in both.plans.values():
        share = f"{100 * plan.figures['utilization']:.1f}"
        assert f"{plan.policy}: utilization {share} %" in text
        assert f"{share} %" in readme, "the words below the picture name its figures"


def test_the_readme_begins_with_the_two_commands() -> None:
    lines = (CHECKOUT / "README.md").read_text(encoding="utf-8").split("\n")
    assert [line.split("#")[0].strip() for line in lines[2:4]] == ["make lab", "make test"]
