"""Parts of notebook reports without a kernel: reading, parameters, outputs as HTML, figures as data, the page."""

import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

import gpuplan as gp
from gpuplan.inputs.errors import InputError
from gpuplan.reports.figures import is_record
from gpuplan.reports.notebook_file import Cell, Notebook, from_json, read_notebook
from gpuplan.reports.notebook_kernel import CHART, FIGURES
from gpuplan.reports.notebook_outputs import MOST_TEXT, Told, cleaned, markdown
from gpuplan.reports.notebook_page import notebook_page
from gpuplan.reports.notebook_parameters import defaults, typed, with_parameters
from reports.notebooks import SCENARIO, shown, write

HOSTILE = "</script></section></main><script>alert(1)</script><img src=x onerror=alert(2)>"


def page_of(*bundles: dict[str, Any]) -> str:
    notebook, ran = shown(*bundles)
    return notebook_page(notebook, {}, ran, None)


def elements(text: str) -> list[tuple[str, dict[str, str | None]]]:
    found: list[tuple[str, dict[str, str | None]]] = []

    class Reader(HTMLParser):
        def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
            found.append((tag, dict(attrs)))

    reader = Reader()
    reader.feed(text)
    reader.close()
    return found


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "is no notebook: it is not JSON"),
        (b"\xff\xfe", "is no notebook: it is not JSON"),
        (b"[]", "is no notebook: it has no nbformat"),
        (b'{"nbformat": "4"}', "is no notebook: it has no nbformat"),
        (b'{"nbformat": 5, "cells": []}', "of a later format than 4"),
        (b'{"nbformat": 4, "metadata": {}, "cells": [{"cell_type": "code"}]}', "is a damaged notebook"),
        (b'{"nbformat": 4, "metadata": {}, "cells": []}', "has no code cell"),
        (b"[" * 100_000, "is no notebook: it is not JSON"),
    ],
)
def test_files_that_are_no_notebooks_get_a_sentence(content: bytes, words: str, tmp_path: Path) -> None:
    path = tmp_path / "a.ipynb"
    path.write_bytes(content)
    with pytest.raises(InputError, match=words):
        read_notebook(path)


def test_other_languages_and_absent_files_are_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "r.ipynb", ("code", "1"), metadata={"language_info": {"name": "R"}})
    with pytest.raises(InputError, match=r"must be a notebook of Python.*'R'"):
        read_notebook(path)
    with pytest.raises(InputError, match="cannot be read: No such file"):
        read_notebook(tmp_path / "absent.ipynb")
    with pytest.raises(InputError, match=r"gpuplan\.report_notebook takes it"):
        gp.report(path)


def test_outputs_numbers_and_old_formats_do_not_change_a_fingerprint(tmp_path: Path) -> None:
    one = write(tmp_path / "a.ipynb", ("markdown", "# Hi"), ("code", "x = 1\nx"))
    whole = json.loads(one.read_text(encoding="utf-8"))
    whole["cells"][1]["outputs"] = [{"output_type": "stream", "name": "stdout", "text": "1"}]
    whole["cells"][1]["source"] = ["x = 1\n", "x"]
    whole["nbformat_minor"] = 2
    for cell in whole["cells"]:
        del cell["id"]
    (tmp_path / "b.ipynb").write_text(json.dumps(whole), encoding="utf-8")
    old = {
        "nbformat": 3,
        "nbformat_minor": 0,
        "metadata": {},
        "worksheets": [
            {
                "cells": [
                    {"cell_type": "heading", "level": 1, "source": "Hi", "metadata": {}},
                    {
                        "cell_type": "code",
                        "language": "python",
                        "input": "x = 1\nx",
                        "outputs": [],
                        "metadata": {},
                    },
                ],
                "metadata": {},
            }
        ],
    }
    (tmp_path / "c.ipynb").write_text(json.dumps(old), encoding="utf-8")
    marks = {read_notebook(tmp_path / name).fingerprint for name in ("a.ipynb", "b.ipynb", "c.ipynb")}
    assert len(marks) == 1
    read = read_notebook(one)
    assert from_json(json.loads(json.dumps(read.as_json())), "page") == read


def test_parameters_take_the_place_of_defaults_and_nothing_else() -> None:
    source = (
        'a = 1  # é, then\nb: float = -2.5\nc = "x"; d = ["u", "v"]\ne = None\nf = max(1, 2)\ng, h = 1, 2\n'
    )
    notebook = Notebook(
        "n", (Cell("markdown", "# t"), Cell("code", source, ("parameters",)), Cell("code", "a"))
    )
    assert {name: one.value for name, one in defaults(notebook, "n").items()} == {
        "a": 1, "b": -2.5, "c": "x", "d": ["u", "v"], "e": None,
    }  # fmt: skip
    given = {"a": "42", "b": "3", "c": "it's \"; import os #\n", "d": 'p, q"', "e": "7"}
    made, values = with_parameters(notebook, given, "n")
    assert values == {"a": 42, "b": 3.0, "c": given["c"], "d": ["p", 'q"'], "e": 7}
    held: dict[str, Any] = {}
    exec(made.cells[1].source, held)
    assert {name: held[name] for name in values} == values
    assert made.cells[1].source.splitlines()[0] == "a = 42  # é, then"
    assert made.cells[2] == notebook.cells[2]
    assert made.fingerprint != notebook.fingerprint


@pytest.mark.parametrize(
    ("value", "default", "made"),
    [
        ("true", False, True),
        ("No", True, False),
        ("-3", 1, -3),
        ("1e3", 1.0, 1000.0),
        (2, 1.5, 2.0),
        ("", "x", ""),
        ("a,b", ["x"], ["a", "b"]),
        ('["a,b"]', [], ["a,b"]),
        ("1, 2", (3,), (1, 2)),
        ("", ["x"], []),
        ("none", None, None),
        ("2.5", None, 2.5),
        ("easy", None, "easy"),
    ],
)
def test_a_value_is_read_as_its_default_is(value: Any, default: Any, made: Any) -> None:
    found = typed(value, default)
    assert (found, type(found)) == (made, type(made))


@pytest.mark.parametrize(
    ("value", "default"),
    [
        ("2.5", 1),
        ("x", 1.0),
        ("nan", 1.0),
        ("inf", 1.0),
        (True, 1),
        ("1", True),
        (3, "x"),
        ("[1", [1]),
        ({}, None),
    ],
)
def test_a_value_of_another_kind_is_refused(value: Any, default: Any) -> None:
    with pytest.raises(ValueError, match=r"must be|as its default is"):
        typed(value, default)


def test_every_wrong_parameter_is_named_at_once() -> None:
    notebook = Notebook("n", (Cell("code", "seed = 1\nname = 'x'", ("parameters",)),))
    with pytest.raises(InputError) as caught:
        with_parameters(notebook, {"sed": "2", "seed": "two"}, "n.ipynb")
    said = str(caught.value)
    assert "sed: is no parameter of the notebook; there are seed, name; did you mean seed?" in said
    assert "seed: must be a whole number, as its default is (got 'two')" in said
    bare = Notebook("n", (Cell("code", "seed = 1"),))
    assert with_parameters(bare, {}, "n") == (bare, {})
    with pytest.raises(InputError, match="no cell tagged parameters"):
        with_parameters(bare, {"seed": "2"}, "n")
    twice = Notebook("n", (Cell("code", "a = 1", ("parameters",)), Cell("code", "b = 1", ("parameters",))))
    with pytest.raises(InputError, match=r"more than one cell tagged parameters \(code cells 1, 2\)"):
        with_parameters(twice, {}, "n")
    magic = Notebook("n", (Cell("code", "%pip install x\na = 1", ("parameters",)),))
    with pytest.raises(InputError, match=r"no plain Python \(line 1\)"):
        with_parameters(magic, {}, "n")


def test_html_of_a_notebook_runs_fetches_and_closes_nothing() -> None:
    told = Told()
    text = (
        f'<b onclick="x()" style="color:red;position:fixed;background:url(http://a/b)">bold</b>{HOSTILE}'
        '<table><tr><td data-set="0" data-figure="value" id="notebook-record">9</td></tr></table><style>b{}</style>'
        '<img src="https://a.example/x.png" alt="there"><a href="javascript:x()">y</a><iframe src="//a"></iframe>'
        '<div class="wide" tabindex="0">w</div><div class="controls" tabindex="5">c</div>'
    )
    made = cleaned(text, told, 3)
    names = {name for _, attrs in elements(made) for name in attrs}
    assert names <= {"style", "rel", "class", "tabindex"}
    assert {tag for tag, _ in elements(made)} == {"b", "em", "table", "tbody", "tr", "td", "a", "div"}
    assert '<b style="color:red">bold</b>' in made
    assert "<em>[there]</em>" in made
    assert made.count('class="wide"') == 1
    assert "controls" not in made
    assert "alert" not in made
    assert "</main>" not in made
    told.note(0, "a picture that is neither in the notebook nor beside it is left out.")
    told.note(4, "a picture that is neither in the notebook nor beside it is left out.")
    assert told.notes == [
        "Code cell 3: <iframe> is left out: nothing of a notebook runs in a report.",
        "Code cell 3: <script> is left out: nothing of a notebook runs in a report.",
        "Code cells 3, 4 and a text: a picture that is neither in the notebook nor beside it is left out.",
        "Code cell 3: a link that leads nowhere from a page alone is left as text.",
    ]


def test_texts_keep_tables_code_and_pictures_beside_the_notebook(tmp_path: Path) -> None:
    png = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
    import base64

    (tmp_path / "dot.png").write_bytes(base64.b64decode(png))
    told = Told()
    cell = Cell(
        "markdown",
        "# A *day*\n\n|a|b|\n|-|-|\n|1|2|\n\n`x<y` and $p < q$ ![dot](dot.png) ![at](attachment:at.png) ![no](no.png)",
        (),
        {"at.png": {"image/png": png}},
    )
    made = markdown(cell, tmp_path, told)
    assert "<h1>A <em>day</em></h1>" in made
    assert "<code>x&lt;y</code> and $p &lt; q$" in made
    assert made.count("data:image/png;base64,iVBOR") == 2
    assert "<em>[no]</em>" in made
    assert len(told.notes) == 1


def test_outputs_take_the_best_of_their_forms_and_nothing_is_left_out_in_silence() -> None:
    page = page_of(
        {"text/plain": "<Thing at 0x7f3a12>", "text/html": "<i>html</i>"},
        {"text/plain": "a <b>\x1b[31mred\x1b[0m at 0xdead\n" + "y" * MOST_TEXT},
        {"image/svg+xml": "<svg onload=alert(1)/>", "text/plain": 'a "drawing"'},
        {"application/vnd.jupyter.widget-view+json": {}, "text/plain": "IntSlider(value=0)"},
        {"application/x-unknown": {"a": 1}},
        {CHART: {"wide": {"mark": "bar", "data": {"url": "https://a.example/x.csv"}}}, "text/plain": "Chart"},
        {FIGURES: {"kind": "allocation"}, "text/plain": "no record"},
    )
    assert "<i>html</i>" in page
    assert "a &lt;b&gt;red at 0x…" in page
    assert '<img src="data:image/svg+xml;base64,' in page
    assert 'alt="a &quot;drawing&quot;"' in page
    assert "IntSlider(value=0)" in page
    assert "no record" in page
    notes = re.search(r'<section id="notes">.*?</section>', page, re.DOTALL)
    assert notes is not None
    for words in (
        f"the first {MOST_TEXT:,} are shown",
        "controls work in a live notebook",
        "no form that a page can show (application/x-unknown)",
        "takes its data from an address",
    ):
        assert words in notes[0]
    assert "<script" in page
    assert 'type="module"' not in page  # no chart is left: nothing needs to be drawn


def test_a_page_lets_its_own_script_run_alone_and_asks_nobody() -> None:
    chart = {
        "wide": {
            "description": f"bars {HOSTILE}",
            "mark": "bar",
            "data": {"name": "d"},
            "datasets": {"d": []},
        }
    }
    plain = {"wide": {**chart["wide"], "description": "bars"}}
    page = page_of({CHART: chart}, {"text/html": HOSTILE})
    policy = next(
        str(attrs["content"]) for tag, attrs in elements(page) if tag == "meta" and "http-equiv" in attrs
    )
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    assert "unsafe-inline" not in policy.partition("style-src")[0]
    tags, tame = ([tag for tag, _ in elements(text)] for text in (page, page_of({CHART: plain})))
    assert [tags.count(tag) for tag in ("script", "section", "main", "figure", "img")] == [
        tame.count(tag) for tag in ("script", "section", "main", "figure", "img")
    ]
    assert page.endswith("</script>\n</body>\n</html>\n")
    asked = {str(attrs[name]) for _, attrs in elements(page) for name in ("src", "href") if name in attrs}
    assert {place[0] for place in asked} == {"#"}


def test_figures_come_with_all_that_is_needed_to_compute_them_again() -> None:
    both = gp.compare(gp.load(SCENARIO))
    made = gp.report_figures(both)
    record = json.loads(json.dumps(made.record))
    assert is_record(record)
    assert record["policies"] == ["fifo", "aware"]
    assert record["figures"]["value"] == [repr(float(plan.figures["value"])) for plan in both.plans.values()]
    assert record["figures"]["violations"] == ["0", "0"]
    assert record["fingerprint"] == gp.load(SCENARIO).fingerprint
    assert gp.report_figures(gp.plan(gp.load(SCENARIO), "fifo")).record["policies"] == ["fifo"]
    assert gp.report_figures(gp.report(SCENARIO)).record == record
    assert gp.report_figures(SCENARIO, ["aware"]).record["policies"] == ["aware"]
    assert made._repr_mimebundle_()["text/plain"] == repr(both)
    for key, wrong in {
        "policies": [],
        "seed": True,
        "iterations": -1,
        "units": {},
        "shown": {"value": ["1"]},
    }.items():
        assert not is_record({**record, key: wrong}), key


def test_results_that_do_not_come_out_again_are_refused() -> None:
    searched = gp.compare(gp.load(SCENARIO), ["search"], iterations=50, seed=3)
    with pytest.raises(InputError, match="needs its seed and its iterations"):
        gp.report_figures(searched)
    record = gp.report_figures(searched, seed=3, iterations=50).record
    assert (record["seed"], record["iterations"]) == (3, 50)
    with pytest.raises(InputError, match="is for a scenario; results have the policies"):
        gp.report_figures(searched, ["fifo"])
    with pytest.raises(InputError, match="must repeat in a report"):
        gp.report_figures(SCENARIO, ["exact"])
    changed = gp.compare(gp.load(SCENARIO), ["search"], iterations=50, seed=3)
    changed.plans["search"].figures["value"] += 1
    with pytest.raises(InputError, match="do not come out again from their scenario"):
        gp.report_figures(changed, seed=3, iterations=50)
