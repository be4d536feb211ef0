"""Reports: a page with everything in it, that repeats byte for byte, and whose figures are computed once more."""

import json
import re
import shutil
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

import gpuplan as gp
from gpuplan.inputs.errors import InputError
from gpuplan.reports import pdf
from gpuplan.reports.page import in_script
from gpuplan.reports.reading import read_page
from gpuplan.reports.tables import text
from gpuplan.side_by_side import as_text

Run = Callable[..., tuple[int, str, str]]

#: A name that is markup, a script's end, a comment, a formula and a change of direction at once.
HOSTILE = "</script><script>alert(1)</script><!-- <img src=x onerror=alert(2)> & =1+1 \u202eneercs"

ALLOCATION = {
    "kind": "allocation",
    "name": "small",
    "cluster": {"gpus": 4},
    "horizon": {"steps": 4},
    "realtime": [{"name": "chat", "priority": 2, "demand": [0, 1, 2, 1]}],
    "batch": [
        {"name": "tune", "kind": "training", "gpus": 2, "hours": 2, "priority": 1},
        {"name": "quant", "kind": "quantization", "gpus": 1, "hours": 1, "priority": 1},
    ],
}
FAIRSHARE = {
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
PACKING = {
    "kind": "packing",
    "name": "two models",
    "gpus": {"count": 1, "memory_gib": 80, "host_gb_per_s": 24, "disk_gb_per_s": 5},
    "models": [{"name": "chat", "declared_gib": 16}, {"name": "code", "declared_gib": 30}],
    "tasks": {
        "rows": [
            {"arrival_s": 0, "model": "chat", "service_s": 5},
            {"arrival_s": 1, "model": "code", "service_s": 5},
        ]
    },
}
KINDS = {"allocation": ALLOCATION, "fairshare": FAIRSHARE, "packing": PACKING}


class Outline(HTMLParser):
    """Elements with their attributes, and the text of each kind of element."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.scripts: list[tuple[dict[str, str | None], str]] = []
        self.styles: list[str] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag == "script":
            self.scripts.append((dict(attrs), ""))

    def handle_data(self, data: str) -> None:
        tag, attrs = self.elements[-1] if self.elements else ("", {})
        if tag == "script" and self.scripts[-1][0] == attrs:
            self.scripts[-1] = (attrs, self.scripts[-1][1] + data)
        if tag == "style":
            self.styles.append(data)

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attrs for name, attrs in self.elements if name == tag]


@pytest.fixture(scope="module")
def reports() -> dict[str, Any]:
    return {kind: gp.report(mapping) for kind, mapping in KINDS.items()}


@pytest.mark.parametrize("kind", KINDS)
def test_every_figure_stands_in_the_table_with_its_unit(
    kind: str, reports: dict[str, Any], tmp_path: Path
) -> None:
    made = reports[kind]
    made.save(tmp_path / "r.html")
    found = {(one.policy, one.figure): one for one in read_page(tmp_path / "r.html").figures}
    results = made.comparison.results
    for number, result in enumerate(results.values()):
        for figure, value in result.figures.items():
            shown = found.pop((number, figure))
            assert shown.text == as_text(value, made.comparison.units[figure])
            assert shown.value == ("none" if value is None else repr(value))
        assert found.pop((number, "violations")).value == "0"
        assert f"<td>{result.fingerprint}</td>" in made.html
    assert found == {}
    for unit in set(made.comparison.units.values()) & {"seconds", "jobs", "GPU-hours"}:
        assert f'<td class="unit">{unit}</td>' in made.html


@pytest.mark.parametrize("kind", KINDS)
def test_a_page_asks_nobody_for_anything(kind: str, reports: dict[str, Any]) -> None:
    outline = Outline(reports[kind].html)
    places = {"src", "href", "srcset", "data", "action", "poster", "background"}
    asked = [
        (tag, name, value)
        for tag, attrs in outline.elements
        for name, value in attrs.items()
        if name in places and not str(value).startswith("#")
    ]
    assert asked == []
    assert [attrs for attrs in outline.all("link")] == []
    assert not re.search(r"url\(|@import|https?:", "".join(outline.styles))
    policy = next(
        m["content"] for m in outline.all("meta") if m.get("http-equiv") == "Content-Security-Policy"
    )
    assert str(policy).startswith("default-src 'none';")
    assert "http" not in str(policy)
    (module,) = [text for attrs, text in outline.scripts if attrs.get("type") == "module"]
    assert not re.search(r"\bimport\s*\(|\bimport\s*[\w{*\"'].*?from\s*[\"']|\bimport\s*[\"']", module)
    # Names of languages and namespaces, and a link in a message of Vega-Lite: nothing is loaded from them.
    known = re.compile(
        r"https?://(?:www\.w3\.org/|vega\.github\.io/schema/|github\.com/vega/vega-lite/issues/)"
    )
    assert [found for found in re.findall(r"https?://\S{45}", module) if not known.match(found)] == []
    data = [text for attrs, text in outline.scripts if attrs.get("type") == "application/json"]
    assert len(data) == len(outline.all("figure")) + 2
    assert not any("http" in text for text in data)
    assert len(outline.scripts) == len(data) + 1


@pytest.mark.parametrize("kind", KINDS)
def test_every_chart_has_a_heading_words_and_a_table(kind: str, reports: dict[str, Any]) -> None:
    page = reports[kind].html
    figures = re.findall(r'<figure class="chart".*?</figure>', page, re.DOTALL)
    assert len(figures) >= 4
    for figure in figures:
        outline = Outline(figure)
        assert len(outline.all("h3")) == 1
        (picture,) = [div for div in outline.all("div") if div.get("role") == "img"]
        assert len(str(picture["aria-label"])) > 40
        assert outline.all("table")
        assert outline.all("td")
        drawn = json.loads(outline.scripts[0][1])
        assert drawn["datasets"]
        assert {"wide", "narrow"} <= set(drawn)
    outline = Outline(page)
    assert [tag for tag, _ in outline.elements if tag == "h1"] == ["h1"]
    assert len(outline.all("caption")) == len(outline.all("table"))
    assert outline.all("html") == [{"lang": "en"}]


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_scenario_gives_the_same_bytes(kind: str, reports: dict[str, Any], tmp_path: Path) -> None:
    again = gp.report(gp.load(KINDS[kind]))
    assert again.html == reports[kind].html
    again.save(tmp_path / "a.html")
    assert (tmp_path / "a.html").read_bytes() == again.html.encode()
    assert not re.search(
        r"\b20\d\d-\d\d-\d\d\b", re.sub(r"<script.*?</script>", "", again.html, flags=re.DOTALL)
    )


@pytest.mark.parametrize("kind", KINDS)
def test_a_report_verifies(kind: str, reports: dict[str, Any], tmp_path: Path, run: Run) -> None:
    path = tmp_path / "r.html"
    reports[kind].save(path)
    status, out, err = run("verify", path)
    assert (status, err) == (0, "")
    n = sum(len(result.figures) + 1 for result in reports[kind].comparison.results.values())
    assert f"{n} of {n} figures hold." in out
    assert "letter for letter" in out


def test_a_page_with_line_ends_of_another_system_still_verifies(
    reports: dict[str, Any], tmp_path: Path
) -> None:
    path = tmp_path / "r.html"
    path.write_bytes(reports["allocation"].html.replace("\n", "\r\n").encode())
    assert gp.verify_report(path).holds


def changed(page: str, old: str, new: str) -> str:
    assert page.count(old) >= 1
    return page.replace(old, new, 1)


def test_what_does_not_hold_is_named(reports: dict[str, Any], tmp_path: Path, run: Run) -> None:
    """Work by hand: the 5 GPU-hours of batch and 4 of demand all fit, so both jobs are placed under aware."""
    page = reports["allocation"].html
    cell = 'data-policy="1" data-figure="jobs_placed" data-value="2">2<'
    path = tmp_path / "r.html"
    edits = {
        "another value": cell.replace('"2">2', '"3">3'),
        "shown otherwise than it is recorded": cell.replace(">2<", ">3<"),
        "missing in the report": cell.replace("data-figure", "data-other"),
    }
    for reason, new in edits.items():
        path.write_text(changed(page, cell, new), encoding="utf-8")
        status, out, _ = run("verify", path)
        assert status == 2
        (line,) = [line for line in out.splitlines() if "does not hold" in line]
        assert line.split()[:2] == ["aware", "jobs_placed"]
        assert line.endswith(f"does not hold: {reason}")
        assert "37 of 38 figures hold." in out or reason.startswith("missing")


def test_a_forged_chart_scenario_or_sentence_is_noticed(
    reports: dict[str, Any], tmp_path: Path, run: Run
) -> None:
    page = reports["allocation"].html
    path = tmp_path / "r.html"
    path.write_text(changed(page, "<h2>Figures</h2>", "<h2>Better figures</h2>"), encoding="utf-8")
    found = gp.verify_report(path)
    assert (found.holds, found.page_holds, all(v.holds for v in found.figures)) == (False, False, True)
    assert "Something else in the page" in found.sentences[-1]
    before, tag, after = page.partition('<pre id="scenario-yaml"')
    path.write_text(before + tag + changed(after, "gpus: 4", "gpus: 8"), encoding="utf-8")
    found = gp.verify_report(path)
    assert (found.holds, found.fingerprint_holds) == (False, False)
    assert not all(verdict.holds for verdict in found.figures)
    status, out, _ = run("verify", path, "--json")
    assert (status, json.loads(out)["holds"]) == (2, False)


def test_other_versions_are_said_and_charts_not_compared(reports: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "r.html"
    record = re.search(r'"numpy":"([^"]*)"', reports["allocation"].html)
    assert record is not None
    path.write_text(reports["allocation"].html.replace(record[0], '"numpy":"1.0"'), encoding="utf-8")
    found = gp.verify_report(path)
    assert found.holds
    assert found.page_holds is None
    assert found.versions == {"numpy": ("1.0", record[1])}
    assert "charts and texts were not compared" in found.sentences[-1]


def test_files_that_are_no_reports_get_a_sentence(reports: dict[str, Any], tmp_path: Path, run: Run) -> None:
    page = reports["allocation"].html
    record = re.search(r'(<script type="application/json" id="report-record">)(.*?)(</script>)', page)
    assert record is not None
    files = {
        "empty.html": (b"", "is no report of gpuplan"),
        "other.html": (b"<p>hello</p>", "is no report of gpuplan"),
        "binary.html": (b"\xff\xfe\x00", "not text in UTF-8"),
        "a.pdf": (b"%PDF-1.4 \xff", "a PDF cannot be verified"),
        "half.html": (page[: len(page) // 50].encode(), "is damaged"),
        "later.html": (page.replace("gpuplan-report 1", "gpuplan-report 2").encode(), "in form 2"),
        "record.html": (page.replace(record[2], "{").encode(), "its record is no JSON"),
        "fields.html": (page.replace(record[2], '{"seed":-1}').encode(), "no usable policies, seed"),
        "yaml.html": (
            page.replace("kind: allocation\n", "kind: allocation\nfoo: 1\n", 1).encode(),
            "unknown key",
        ),
    }
    for name, (content, words) in files.items():
        (tmp_path / name).write_bytes(content)
        status, out, err = run("verify", tmp_path / name)
        assert (status, out) == (2, ""), name
        assert words in err, name
        assert "Traceback" not in err
    status, _, err = run("verify", tmp_path / "absent.html")
    assert status == 2
    assert "cannot be read" in err


def test_a_scenario_in_a_page_may_not_reach_for_files(tmp_path: Path, reports: dict[str, Any]) -> None:
    (tmp_path / "secret.csv").write_text("job,team,submit_s,gpus,run_s\na,red,0,1,1\n", encoding="utf-8")
    page = reports["fairshare"].html
    found = re.search(r"workload:\n  jobs:\n(    - .*\n)+", page)
    assert found is not None
    path = tmp_path / "r.html"
    path.write_text(page.replace(found[0], "workload: {file: secret.csv}\n"), encoding="utf-8")
    with pytest.raises(InputError, match="must not be there: a report stands alone"):
        gp.verify_report(path)


@pytest.mark.parametrize("kind", KINDS)
def test_hostile_names_stay_text(kind: str, tmp_path: Path) -> None:
    mapping = json.loads(json.dumps(KINDS[kind]))
    mapping["name"] = HOSTILE
    mapping["about"] = HOSTILE
    if kind == "allocation":
        mapping["batch"][0]["name"] = mapping["realtime"][0]["name"] = HOSTILE
        mapping["realtime"][0]["name"] += "2"
    elif kind == "fairshare":
        mapping["workload"]["jobs"][0]["job"] = HOSTILE
    else:
        mapping["models"][0]["name"] = mapping["tasks"]["rows"][0]["model"] = HOSTILE
    made = gp.report(mapping)
    plain = json.loads(json.dumps(mapping).replace(json.dumps(HOSTILE)[1:-1], "plain"))
    assert [tag for tag, _ in Outline(made.html).elements if tag != "bdi"] == [
        tag for tag, _ in Outline(gp.report(plain).html).elements if tag != "bdi"
    ]
    assert "<img src=x" not in made.html
    assert "<script>alert" not in made.html
    assert "\u202e" not in re.sub(r"<pre.*?</pre>|<script.*?</script>", "", made.html, flags=re.DOTALL)
    made.save(tmp_path / "r.html")
    assert gp.verify_report(tmp_path / "r.html").holds


def test_json_in_a_script_ends_no_script() -> None:
    written = in_script({"name": HOSTILE + "\u2028"})
    assert not set(written) & set("<>&\u2028\u202e")
    assert json.loads(written) == {"name": HOSTILE + "\u2028"}


def test_text_is_escaped_on_one_line() -> None:
    assert text("a<b>\n\"c'&") == "a&lt;b&gt; &quot;c&#x27;&amp;"
    assert text("שלום") == "<bdi>שלום</bdi>"


def test_a_table_beside_a_scenario_goes_into_the_page(tmp_path: Path) -> None:
    rows = "job,team,submit_s,gpus,run_s\na,red,0,4,7200\nb,blue,60,2,3600\n"
    (tmp_path / "jobs.csv").write_text(rows, encoding="utf-8")
    lines = "kind: fairshare\nname: t\ncluster: {gpus: 4}\nbudget: [{name: red, weight: 1}, {name: blue, weight: 1}]\n"
    (tmp_path / "s.yaml").write_text(lines + "workload: {file: jobs.csv}\n", encoding="utf-8")
    made = gp.report(tmp_path / "s.yaml")
    assert made.scenario.fingerprint == gp.load(tmp_path / "s.yaml").fingerprint
    made.save(tmp_path / "r.html")
    (tmp_path / "jobs.csv").unlink()
    assert gp.verify_report(tmp_path / "r.html").holds


@pytest.mark.parametrize(
    ("kind", "old", "new", "words"),
    [
        (
            "allocation",
            '"policies":["fifo","aware"]',
            '"policies":["fifo","exact"]',
            "must repeat in a report",
        ),
        ("allocation", '"seed":null', '"seed":3', "name it among the policies"),
        ("allocation", '"kind":"allocation"', '"kind":"packing"', "do not fit each other"),
        ("fairshare", '"seed":null', '"seed":3', "do not fit each other"),
        (
            "fairshare",
            '"policies":["easy","fair-share"]',
            '"policies":["easy","easy"]',
            "do not fit each other",
        ),
        ("packing", '"iterations":null', '"iterations":9', "policy search of allocation scenarios"),
    ],
)
def test_what_a_page_asks_for_passes_the_border_too(
    kind: str, old: str, new: str, words: str, reports: dict[str, Any], tmp_path: Path
) -> None:
    path = tmp_path / "r.html"
    path.write_text(changed(reports[kind].html, old, new), encoding="utf-8")
    with pytest.raises(InputError, match=words):
        gp.verify_report(path)


def test_a_search_is_steered_by_moves_and_a_seed(tmp_path: Path, run: Run) -> None:
    made = gp.report(ALLOCATION, ["fifo", "search"])
    assert made.choices.iterations is not None
    assert made.choices.seed == 0
    seeded = gp.report(ALLOCATION, ["search"], seed=7, iterations=50)
    assert "search: 50 moves with seed 7" in seeded.html
    seeded.save(tmp_path / "r.html")
    found = gp.verify_report(tmp_path / "r.html")
    assert found.holds
    assert {verdict.policy for verdict in found.figures} == {"search"}


def test_the_seed_of_a_generated_workload_can_be_set() -> None:
    mapping = {key: value for key, value in PACKING.items() if key != "tasks"}
    mapping["tasks"] = {
        "generate": {"rate_per_s": 1, "count": 20, "service_s": {"mean": 2, "cv": 1}, "seed": 1}
    }
    mapping["models"] = [{"name": "chat", "declared_gib": 16, "popularity": 1}]
    assert gp.report(mapping, ["best-fit"]).choices.seed == 1
    made = gp.report(mapping, ["best-fit"], seed=5)
    assert made.choices.seed == 5
    assert made.scenario.generate.seed == 5
    assert "generated with seed 5" in made.html


@pytest.mark.parametrize(
    ("mapping", "options", "words"),
    [
        (ALLOCATION, {"policies": ["exact"]}, "must repeat in a report"),
        (ALLOCATION, {"policies": []}, "must name at least one policy"),
        (ALLOCATION, {"policies": ["awere"]}, "did you mean aware"),
        (ALLOCATION, {"seed": 1}, "name it among the policies"),
        (ALLOCATION, {"policies": ["search"], "iterations": 10**18}, "must be at most 50,000,000"),
        (FAIRSHARE, {"seed": 1}, "is for generated workloads"),
        (PACKING, {"iterations": 5}, "policy search of allocation scenarios"),
    ],
)
def test_what_cannot_be_is_refused(mapping: dict[str, Any], options: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        gp.report(mapping, **options)


def test_the_command_writes_a_page(tmp_path: Path, run: Run) -> None:
    path = tmp_path / "out.html"
    status, out, err = run("report", "two-apps", "-o", path, "--policies", "fifo, aware")
    assert (status, out, err) == (0, f"wrote {path}\n", "")
    assert path.read_text(encoding="utf-8") == gp.report("two-apps").html
    assert path.stat().st_size < 5_000_000
    status, _, err = run("report", "two-apps", "-o", tmp_path / "out.txt")
    assert status == 2
    assert "must end in .html or .pdf" in err
    status, _, err = run("report", "two-apps", "-o", tmp_path / "none" / "out.html")
    assert status == 2
    assert "cannot write" in err


def test_a_pdf_without_a_browser_is_a_sentence(
    tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None)
    assert pdf.browser_at_hand() is None
    status, out, err = run("report", "two-apps", "-o", tmp_path / "out.pdf")
    assert (status, out) == (2, "")
    assert "a PDF needs a browser" in err
    assert not (tmp_path / "out.pdf").exists()


def test_a_browser_that_prints_nothing_is_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    older = tmp_path / "out.pdf"
    older.write_bytes(b"%PDF older")
    monkeypatch.setattr(pdf, "browser_at_hand", lambda: shutil.which("true"))
    with pytest.raises(InputError, match="made no PDF"):
        pdf.print_pdf("<p>", older)
    assert older.read_bytes() == b"%PDF older"
