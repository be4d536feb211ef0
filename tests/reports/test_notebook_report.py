"""Reports of notebooks that a kernel runs: parameters, pages that repeat, figures computed anew, what goes wrong."""

import builtins
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import gpuplan as gp
from gpuplan.inputs.errors import InputError
from gpuplan.reports import notebook_run
from gpuplan.reports.notebook import NotebookReport
from gpuplan.reports.notebook_file import Cell, Notebook
from reports.notebooks import PARAMETERS, SCENARIO, write

pytestmark = pytest.mark.notebook

Run = Callable[..., tuple[int, str, str]]

FOLDER = Path(__file__).resolve().parents[2] / "notebooks"


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("notebook")


@pytest.fixture(scope="module")
def made(place: Path) -> NotebookReport:
    """A day with two tables, charts of ours and of Altair, text, warnings; its last cell leaves a trace."""
    path = write(
        place / "day.ipynb",
        ("markdown", "# A day, *twice*"),
        ("code", PARAMETERS, "parameters"),
        ("code", "hidden = 'SECRET'; print(hidden)", "remove-cell"),
        (
            "code",
            f"import gpuplan as gp\nscenario = gp.load({SCENARIO!r} | {{'name': name, 'cluster': {{'gpus': gpus}}}})\n"
            "gp.report_figures(scenario, policies)",
        ),
        ("code", "day = gp.compare(scenario.replace({'objective.shortfall_penalty': 0}))\nday"),
        ("code", "gp.report(scenario).pictures[0]"),
        (
            "code",
            "import altair as alt, pandas as pd\n"
            "alt.Chart(pd.DataFrame({'a': [1, 2]})).mark_bar(color='teal').encode(x='a:O')",
        ),
        ("code", "import sys\nprint(object(), {'b', 'a', 'c'})\nprint('careful', file=sys.stderr)"),
        ("code", "gp.compare(scenario, ['search'], iterations=9)"),
        ("code", "day.plans['fifo']"),
        ("code", "open('trace', 'a').write('ran\\n');"),
    )
    return gp.report_notebook(path, {"gpus": "3", "name": "a & b"}, code=True)


@pytest.fixture(scope="module")
def page(made: NotebookReport, place: Path) -> Path:
    made.save(place / "report.html")
    return place / "report.html"


def test_a_page_shows_what_the_notebook_says_with_its_parameters(made: NotebookReport) -> None:
    text = made.html
    assert "<title>Report: A day, twice</title>" in text
    assert made.values == {"gpus": 3, "name": "a & b", "policies": ["fifo", "aware"]}
    assert "gpus = 3  # of the cluster" in text
    assert "<td>&#x27;a &amp; b&#x27;</td>" in text
    plans = gp.compare(gp.load({**SCENARIO, "name": "a & b", "cluster": {"gpus": 3}}))
    for number, plan in enumerate(plans.plans.values()):
        for figure, value in plan.figures.items():
            exact = "none" if value is None else repr(value)
            assert f'data-policy="{number}" data-figure="{figure}" data-value="{exact}">' in text
    assert text.count('<figure class="chart"') == 2
    assert text.count('"color":"teal"') >= 1
    assert ">&lt;object object at 0x…&gt; {" in text
    assert "SECRET" not in re.sub(
        r'<script type="application/json" id="notebook-source">.*?</script>', "", text
    )


def test_a_page_tells_what_it_leaves_out_and_where_it_comes_from(made: NotebookReport) -> None:
    notes = re.search(r'<section id="notes">.*?</section>', made.html, re.DOTALL)
    assert notes is not None
    for words in (
        "1 cell tagged remove-cell is not shown.",
        "what it wrote to the error stream (warnings, progress) is left out.",
        "not computed anew by gpuplan verify: policies: needs its seed and its iterations",
    ):
        assert words in notes[0]
    assert "careful" not in re.sub(r"<script.*?</script>|<pre.*?</pre>", "", made.html, flags=re.DOTALL)
    run_here = {mark for _, _, mark in made.ran.scenarios}
    scenario = gp.load({**SCENARIO, "name": "a & b", "cluster": {"gpus": 3}})
    assert {
        scenario.fingerprint,
        scenario.replace({"objective.shortfall_penalty": 0}).fingerprint,
    } == run_here
    assert all(mark in made.html for mark in run_here)
    assert made.notebook.fingerprint in made.html
    assert str(Path.home()) not in made.html


def test_figures_are_computed_anew_without_running_anything(
    page: Path, made: NotebookReport, run: Run
) -> None:
    before = (page.parent / "trace").read_text()
    status, out, err = run("verify", page)
    assert (status, err) == (0, "")
    n = sum(len(plan.figures) + 1 for plan in gp.compare(gp.load(SCENARIO)).plans.values())
    assert f"{5 * n // 2} of {5 * n // 2} figures hold, in 3 tables." in out
    assert "they were not compared (--run-notebook runs it" in out
    assert (page.parent / "trace").read_text() == before


def test_the_notebook_in_a_page_gives_the_same_page_letter_for_letter(page: Path, run: Run) -> None:
    """What a page holds is enough: its own notebook, run elsewhere, in another kernel."""
    (page.parent / "elsewhere").mkdir()
    status, out, _ = run("verify", page, "--run-notebook", "--folder", page.parent / "elsewhere")
    assert status == 0, out
    assert "The whole page is, letter for letter, what running its notebook gives." in out
    assert (page.parent / "elsewhere" / "trace").read_text() == "ran\n"


CELL = 'data-figure="jobs_placed" data-value="1">1<'
SECOND = 'data-set="1" data-policy="0" data-figure="value"'


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        (CELL, CELL.replace('"1">1', '"2">2'), "another value"),
        (CELL, CELL.replace('"1">1', '"1">2'), "shown otherwise"),
        (SECOND, SECOND.replace('"1"', '"7"'), "no such table"),
        (SECOND, SECOND.replace("data-set", "data-other"), "missing in the report"),
        (SECOND, SECOND.replace("value", "glory"), "there is no such figure"),
        ("gpus: 3", "gpus: 4", "not the one whose fingerprint it names"),
        ("gp.load({'kind'", "gp.loan({'kind'", "not the one whose fingerprint it names"),
        (">jobs placed</th>", ">jobs lost</th>", "Something else in the page (a table, an assumption)"),
        ("3 GPUs, 4 steps", "8 GPUs, 4 steps", "Something else in the page (a table, an assumption)"),
    ],
)
def test_what_does_not_hold_is_named(
    old: str, new: str, words: str, page: Path, tmp_path: Path, run: Run
) -> None:
    text = page.read_text(encoding="utf-8")
    place = text.rindex(old) if "gp.load" in old else text.index(old)  # the cell's code is shown before
    (tmp_path / "r.html").write_text(text[:place] + new + text[place + len(old) :], encoding="utf-8")
    status, out, _ = run("verify", tmp_path / "r.html")
    assert status == 2
    assert words in out


def test_other_versions_are_said_and_the_rest_not_compared(page: Path, tmp_path: Path) -> None:
    text = page.read_text(encoding="utf-8")
    (tmp_path / "r.html").write_text(re.sub(r'"nh3":"[^"]*"', '"nh3":"0.1"', text), encoding="utf-8")
    found = gp.verify_report(tmp_path / "r.html")
    assert (found.holds, found.page_holds, found.versions["nh3"][0]) == (True, None, "0.1")


@pytest.mark.parametrize(
    ("pattern", "new", "words"),
    [
        (r"gpuplan-notebook-report 1", "gpuplan-notebook-report 9", "in form 9"),
        (r'(id="notebook-record">).*?</script>', r"\1{</script>", "notebook record is missing or no JSON"),
        (r'(id="notebook-record">).*?</script>', r"\1{}</script>", "its record cannot be read"),
        (
            r'(id="notebook-source">).*?</script>',
            r'\1{"parameters":{},"cells":[1]}</script>',
            "notebook cannot be read",
        ),
        (r'"policies":\["fifo","aware"\]', '"policies":["exact"]', "must repeat in a report"),
        (r'"policies":\["fifo","aware"\]', '"policies":7', "the record of a table cannot be read"),
        (r"kind: allocation\n", "kind: allocation\nfoo: 1\n", "unknown key"),
    ],
)
def test_damaged_pages_get_a_sentence(
    pattern: str, new: str, words: str, page: Path, tmp_path: Path, run: Run
) -> None:
    changed, n = re.subn(pattern, new, page.read_text(encoding="utf-8"), flags=re.DOTALL)
    assert n
    (tmp_path / "r.html").write_text(changed, encoding="utf-8")
    status, out, err = run("verify", tmp_path / "r.html")
    assert (status, out) == (2, "")
    assert words in err
    assert "Traceback" not in err


def test_the_shipped_report_takes_a_file_of_ones_own(
    tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Notebook 07 on a file beside whoever types the command, of another kind than the one it was committed with."""
    mapping = {
        "kind": "fairshare",
        "name": "two teams",
        "cluster": {"gpus": 4},
        "budget": [{"name": "red", "weight": 1}, {"name": "blue", "weight": 1}],
        "workload": {
            "jobs": [
                {"job": "a", "team": "red", "submit_s": 0, "gpus": 4, "run_s": 7200, "min_runtime_s": 3600},
                {"job": "b", "team": "blue", "submit_s": 60, "gpus": 2, "run_s": 3600, "min_runtime_s": 3600},
            ]
        },
    }
    (tmp_path / "mine.yaml").write_text(gp.load(mapping).to_yaml(), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    words = ("-p", "scenario=mine.yaml", "-p", "policies=fifo,fair-share")
    assert run("report", FOLDER / "07-report.ipynb", *words, "-o", "r.html") == (0, "wrote r.html\n", "")
    text = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert "<h1>two teams</h1>" in text
    assert "&#x27;mine.yaml&#x27;" in text
    assert str(tmp_path) not in text
    direct = gp.report(mapping, ["fifo", "fair-share"])
    for picture in direct.pictures:
        assert f"<h3>{picture.title}</h3>" in text
    assert text.count('<figure class="chart"') == len(direct.pictures)
    status, out, _ = run("verify", "r.html", "--json")
    assert (status, json.loads(out)["holds"]) == (0, True)
    figures = {(one["policy"], one["figure"]): one["report"] for one in json.loads(out)["figures"]}
    assert {policy for policy, _ in figures} == {"fifo", "fair-share"}
    assert len(figures) == sum(len(one.figures) + 1 for one in direct.comparison.results.values())


def test_a_failing_cell_gets_a_sentence_and_no_page(
    tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(
        tmp_path / "bad.ipynb",
        ("markdown", "# t"),
        ("code", "a = 1"),
        ("code", "import gpuplan as gp\ngp.load({'kind': 'allocation', 'cluster': {'gpus': -1}})"),
    )
    status, out, err = run("report", path, "-o", tmp_path / "r.html")
    assert (status, out) == (2, "")
    assert err.startswith("gpuplan: bad.ipynb: 1 mistake\n  code cell 2: InputError: ")
    assert "cluster.gpus: must be at least 1 (got -1)" in err
    assert "Traceback" not in err
    assert not (tmp_path / "r.html").exists()


def test_a_kernel_that_ends_waits_or_talks_for_ever_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(source: str, **options: Any) -> str:
        notebook = Notebook("n", (Cell("code", source),))
        with pytest.raises(InputError) as caught:
            notebook_run.run_notebook(notebook, tmp_path, "n.ipynb", **options)
        return str(caught.value)

    assert "code cell 1: ended the kernel" in refused("import os; os._exit(3)")
    assert "code cell 1: was not done when 1 s were over" in refused(
        "import time; time.sleep(60)", time_limit_s=1
    )
    monkeypatch.setattr(notebook_run, "MOST_OUTPUT", 2_000_000)
    assert "code cell 1: said more than 2 million characters" in refused("while True: print('x' * 100_000)")


def test_what_is_missing_or_cannot_be_is_said_before_anything_runs(
    tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path / "n.ipynb", ("code", "seed = 1", "parameters"))
    out = tmp_path / "r.html"
    for words, said in [
        (("-o", tmp_path / "no" / "r.html"), "there is no folder"),
        (("-o", tmp_path / "r.txt"), "must end in .html or .pdf"),
        (("-o", out, "--seed", "1"), "--seed is for scenarios; a notebook has parameters"),
        (("-o", out, "-p", "seed"), "-p wants NAME=VALUE (got seed)"),
        (("-o", out, "-p", "seed=1", "-p", "seed=2"), "-p seed is given more than once"),
        (("-o", out, "-p", "sead=1"), "did you mean seed?"),
        (("-o", out, "--time-limit", "0"), "must be seconds from 1 to 1,000,000 (got 0)"),
    ]:
        status, _, err = run("report", path, *words)
        assert status == 2
        assert said in err
    status, _, err = run("report", "two-apps", "-o", out, "-p", "a=1", "--code")
    assert (status, "-p, --code is for notebooks" in err) == (2, True)
    real = builtins.__import__

    def without(name: str, *rest: Any, **more: Any) -> Any:
        if name == "ipykernel":
            raise ModuleNotFoundError("No module named 'ipykernel'", name="ipykernel")
        return real(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", without)
    status, _, err = run("report", path, "-o", out)
    assert status == 2
    assert "a report of a notebook needs ipykernel: pip install 'gpuplan[export]'" in err
    assert not out.exists()
