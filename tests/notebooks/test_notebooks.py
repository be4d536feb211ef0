"""Committed notebooks: executed, clean, drawable without a network, and the same in every fresh kernel."""

import copy
import os
import re
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

from notebooks.execute import METADATA, WIDGET_VIEW, clean

pytestmark = pytest.mark.notebook

FOLDER = Path(__file__).resolve().parents[2] / "notebooks"
NAMES = sorted(path.name for path in FOLDER.glob("*.ipynb"))
LESSON = "01-why-order-is-capacity.ipynb"

#: A page of text and links; the others draw.
CONTENTS = "00-contents.ipynb"
DRAWN = [name for name in NAMES if name != CONTENTS]

#: What a script, a style sheet or a picture would be loaded from.
OUTSIDE = re.compile(
    r"""(?:src|href)\s*=\s*["']?\s*(?:https?:)?//|url\(\s*["']?https?:|import\b[^;\n]{0,80}https?:"""
)

#: What differs from machine to machine or from run to run.
UNSTABLE = re.compile(
    r"/home/|/root/|/tmp/|/Users/|[A-Z]:\\|site-packages|at 0x[0-9a-f]|altair-viz-|[0-9a-f]{32}"
)


def read(name: str) -> Any:
    return nbformat.read(FOLDER / name, as_version=4)


def code_cells(notebook: Any) -> list[Any]:
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def texts(notebook: Any) -> list[tuple[str, str]]:
    """Every output of the code cells that is text: its kind and what it says."""
    found = []
    for cell in code_cells(notebook):
        for output in cell.outputs:
            if output.output_type == "stream":
                found.append((output.name, output.text))
            else:
                found += [
                    (kind, "".join(text))
                    for kind, text in sorted(output.data.items())
                    if kind.startswith("text/")
                ]
    return found


def test_the_notebooks_of_the_issue_are_there() -> None:
    assert {
        CONTENTS,
        LESSON,
        "02-how-good-is-good.ipynb",
        "03-when-forecasts-are-wrong.ipynb",
        "04-budgets-not-priorities.ipynb",
        "05-what-fits-where.ipynb",
        "06-your-own-cluster.ipynb",
        "real-philly-day.ipynb",
        "real-days-as-they-unfold.ipynb",
        "real-weeks-of-virtual-clusters.ipynb",
        "real-openb-and-tenants.ipynb",
    } <= set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_every_code_cell_was_executed_once_in_order_without_error(name: str) -> None:
    cells = code_cells(read(name))
    assert [cell.execution_count for cell in cells] == list(range(1, len(cells) + 1))
    outputs = [output for cell in cells for output in cell.outputs]
    assert outputs
    assert [output for output in outputs if output.output_type == "error"] == []
    assert [output for output in outputs if output.get("name") == "stderr"] == []


@pytest.mark.parametrize("name", NAMES)
def test_nothing_is_kept_that_differs_from_run_to_run(name: str) -> None:
    notebook = read(name)
    cleaned = copy.deepcopy(notebook)
    clean(cleaned)
    assert cleaned == notebook
    assert notebook.metadata == METADATA
    for kind, text in texts(notebook):
        assert UNSTABLE.findall(text) == [], kind


@pytest.mark.parametrize("name", NAMES)
def test_a_notebook_is_small_and_its_cells_have_readable_names(name: str) -> None:
    assert (FOLDER / name).stat().st_size < 500_000
    ids = [cell.id for cell in read(name).cells]
    assert len(set(ids)) == len(ids)
    assert all(re.fullmatch(r"[a-z][a-z-]+", id) for id in ids)  # random ones would change when it is saved


@pytest.mark.parametrize("name", DRAWN)
def test_every_picture_has_a_second_form_with_its_numbers(name: str) -> None:
    """Case `nb-offline-charts`: a viewer without charts shows numbers."""
    drawn = 0
    for cell in code_cells(read(name)):
        for output in cell.outputs:
            data = output.get("data", {})
            assert not any(
                "vega" in kind for kind in data
            )  # JupyterLab's own Vega cannot draw Altair's charts
            if "image/png" in data:
                drawn += 1
                # the waterfall states changes with their sign, the curves where each begins and ends, charts of
                # rolling runs and of forecasts shares and hours, studies means with their intervals
                said = (
                    r"utilization \d+\.\d %|: \w[\w ]* [+−±][\d,]+\.\d|objective -?[\d,]+\.\d to -?[\d,]+\.\d"
                    r"|\d+\.\d ?%|in \d+ hours|loss \d+\.\d+ h|: [\d.]+ \(-?[\d.]+ to [\d.]+\)"
                    r"|p50 / p90 / p99 \d|wait of urgent tasks \d+\.\d s|queue \d[\d.]* s"
                )
                assert re.search(said, data["text/plain"])
            if "Explorer" in data.get("text/plain", ""):
                drawn += 1
                assert re.search(
                    r"(utilization|objective|goodput|latency mean).*\d+\.\d", data["text/html"], re.DOTALL
                )
    assert drawn >= 3


@pytest.mark.parametrize("name", NAMES)
def test_no_outside_address_is_needed_to_draw(name: str) -> None:
    notebook = read(name)
    for kind, text in texts(notebook):
        assert OUTSIDE.findall(text) == [], kind
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            assert "http" not in re.sub(
                r"\]\(https?://[^)]+\)", "", cell.source
            )  # a link may be followed, not loaded


@pytest.mark.parametrize("name", NAMES)
def test_an_exported_page_needs_no_outside_address(name: str) -> None:
    """With nbconvert's own addresses of MathJax and others left out, nothing of ours brings one in."""
    from nbconvert import HTMLExporter

    exporter = HTMLExporter(require_js_url="", mathjax_url="", mermaid_js_url="", jquery_url="")
    page, _ = exporter.from_notebook_node(read(name))
    assert re.findall(r"""<(?:script|img|link|iframe)\b[^>]*(?:src|href)=["']?(?:https?:)?//""", page) == []
    assert page.count("data:image/png;base64") >= (2 if name in DRAWN else 0)


def test_the_lesson_has_three_questions_with_folded_answers() -> None:
    cells = read(LESSON).cells
    asked = next(cell.source for cell in cells if cell.id == "questions")
    assert re.findall(r"^\*\*(\d)\.\*\* .*", asked, re.MULTILINE) == ["1", "2", "3"]
    assert (
        len(
            re.findall(r"\?\n\n<details><summary>Answer</summary>\n\n.{80,}?\n\n</details>", asked, re.DOTALL)
        )
        == 3
    )
    after = cells[[cell.id for cell in cells].index("questions") + 1]
    assert (after.cell_type, after.id) == ("code", "answers")  # the check of the numbers


def test_the_lesson_predicts_drags_and_explains() -> None:
    notebook = read(LESSON)
    prose = "\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")
    said = "\n".join(text for _, text in texts(notebook))
    assert prose.count("Predict") >= 3
    assert (prose + said).count("**Explain.**") >= 5
    assert any("gp.explore(" in cell.source for cell in code_cells(notebook))
    for policy in ("fifo", "curve-fifo", "peak-priority", "curve-priority", "aware"):
        assert policy in said


def test_the_lesson_takes_a_quarter_of_an_hour_up_to_its_questions() -> None:
    """200 words a minute, a minute and a half for what is drawn on paper, half a minute for a guess."""
    words, minutes = 0, 0.0
    for cell in read(LESSON).cells:
        if cell.cell_type == "markdown":
            words += len(re.sub(r"<details>.*?</details>", "", cell.source, flags=re.DOTALL).split())
            if cell.id == "questions":
                break
            continue
        if asked := re.fullmatch(r'gp\.ask\("1\.(.)"\)', cell.source):
            minutes += 1.5 if asked.group(1).isdigit() else 0.5
        for output in cell.outputs:
            data = output.get("data", {"text/plain": output.get("text", "")})
            if "image/png" not in data:
                words += len("".join(data.get("text/markdown", data["text/plain"])).split())
    assert words > 1000
    assert minutes + words / 200 <= 15


def test_points_of_the_lesson_add_up_in_both_orders() -> None:
    account = next(cell for cell in read(LESSON).cells if cell.id == "account").outputs[0].data["text/plain"]
    rows = re.findall(r"([+-]\d+) = ([+-]\d+\.\d) points", account)
    assert len(rows) == 8
    for column in (rows[0::2], rows[1::2]):
        hours, points = ([float(row[n]) for row in column] for n in (0, 1))
        assert sum(hours[:3]) == hours[3] == 73
        assert sum(points[:3]) == pytest.approx(points[3], abs=0.1)


def test_contents_list_the_lessons_as_they_are() -> None:
    from gpuplan.lessons.course import LESSONS

    prose = "\n".join(cell.source for cell in read(CONTENTS).cells if cell.cell_type == "markdown")
    rows = re.findall(
        r"^\| (\d) \| \[(.+?)\]\((.+?)\) \| (.+?) \| (\d+) min \| (.+?) \|$", prose, re.MULTILINE
    )
    assert rows == [
        (
            str(one.number),
            one.title,
            one.notebook,
            one.teaches,
            str(one.minutes),
            ", ".join(map(str, one.needs)) or "nothing",
        )
        for one in LESSONS
    ]
    for lesson in LESSONS:
        assert read(lesson.notebook).cells[0].source.startswith(f"# {lesson.title}\n")
        asked = [
            found.group(1)
            for cell in code_cells(read(lesson.notebook))
            if (found := re.fullmatch(r'gp\.ask\("(.+?)"\)', cell.source))
        ]
        assert sorted(asked) == sorted(one.id for one in lesson.exercises)  # each of them once


@pytest.mark.parametrize("name", [name for name in NAMES if name[0] == "0"])
def test_links_between_lessons_lead_to_notebooks(name: str) -> None:
    prose = "\n".join(cell.source for cell in read(name).cells if cell.cell_type == "markdown")
    links = re.findall(r"\]\((?!http)([^)#]+)(?:#[^)]*)?\)", prose)
    assert {link for link in links if not (FOLDER / link).is_file()} == set()
    if name in (one for one in NAMES if re.match(r"0[1-6]-", one)):
        assert CONTENTS in links


def test_real_days_say_what_they_do_not_show_and_where_the_gain_turns() -> None:
    notebook = read("real-days-as-they-unfold.ipynb")
    prose = "\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")
    for words in ("Open loop", "No priorities", "Two companies", "Ten days", "CC BY 4.0", "Apache-2.0"):
        assert words in prose
    said = "\n".join(text for _, text in texts(notebook))
    assert "It turns negative" in said


def test_budgets_are_predicted_explained_and_limited() -> None:
    notebook = read("04-budgets-not-priorities.ipynb")
    prose = "\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")
    assert len(re.findall(r"\*\*?Predict\*", prose)) >= 5
    for words in ("An invented workload", "Open loop", "Hosts do not fail", "Ai2"):
        assert words in prose
    said = "\n".join(text for _, text in texts(notebook))
    assert said.count("**Explain.**") >= 4
    for words in ("of the GPU-time is lost", "aim at least", "missed by", "in 3 of 3 seeds"):
        assert words in said


def test_claims_about_packing_are_predicted_explained_and_limited() -> None:
    notebook = read("05-what-fits-where.ipynb")
    prose = "\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")
    assert len(re.findall(r"\*\*?Predict\*", prose)) >= 6
    for words in (
        "Invented workloads",
        "written down before the first run",
        "Open loop",
        "Contention is a formula",
    ):
        assert words in prose
    said = "\n".join(text for _, text in texts(notebook))
    assert said.count("**Explain.**") >= 6
    for words in (
        "23 % is not a constant",
        "3 GB needs 31.7 %",
        "from 16.26 to 16.95 GB",
        "not 1 s",
        "Backfill saves",
    ):
        assert words in said


def test_real_weeks_say_that_earth_is_generated_and_whose_the_data_are() -> None:
    notebook = read("real-weeks-of-virtual-clusters.ipynb")
    prose = "\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")
    for words in (
        "The jobs below are generated",
        "Open loop",
        "Weights of Philly are invented",
        "CC BY 4.0",
        "MIT",
    ):
        assert words in prose


def test_real_pods_and_tenants_are_accounted_for_and_limited() -> None:
    notebook = read("real-openb-and-tenants.ipynb")
    prose = "\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")
    for words in (
        "Open loop",
        "Service times are a rule",
        "Three services were never on one node",
        "Apache-2.0",
        "4.0",
    ):
        assert words in prose
    said = "\n".join(text for _, text in texts(notebook))
    for words in ("The published order comes out", "8 of 8 cases", "no reservation counts the KV cache"):
        assert words in said


def test_the_real_day_says_what_it_does_not_show() -> None:
    prose = "\n".join(
        cell.source for cell in read("real-philly-day.ipynb").cells if cell.cell_type == "markdown"
    )
    for words in ("Open loop", "No priorities", "Half of the work", "CC BY 4.0", "Apache-2.0"):
        assert words in prose


@pytest.mark.slow
def test_a_fresh_kernel_without_the_compiler_says_the_same_text() -> None:
    """Case `nb-nbval-stable`: another seed of text hashing and no compiler; nbval runs it with one."""
    notebook = read(LESSON)
    committed = texts(notebook)
    client = NotebookClient(
        notebook,
        timeout=300,
        kernel_name="python3",
        coalesce_streams=True,
        resources={"metadata": {"path": str(FOLDER)}},
    )
    client.execute(env={**os.environ, "PYTHONHASHSEED": "4242", "NUMBA_DISABLE_JIT": "1"})
    assert (
        WIDGET_VIEW
        in next(output for cell in notebook.cells if cell.id == "explore" for output in cell.outputs).data
    )
    clean(notebook)
    assert texts(notebook) == committed


def test_the_moves_by_hand_give_what_the_moves_in_code_give() -> None:
    """The four moves that the lesson asks for, made with the explorer's own controls, against its table."""
    from gpuplan_widgets import AllocationExplorer

    data = next(cell for cell in read(LESSON).cells if cell.id == "moves").outputs[0].data["text/html"]
    rows = re.findall(r"<th>([^<]+)</th>\s*<td>([\d.]+)%</td>\s*<td>([\d.]+)</td>", data)
    in_code = {name: (utilization, value) for name, utilization, value in rows}

    explorer = AllocationExplorer("training-rush")

    def shown() -> tuple[str, str]:
        assert explorer.message == ""
        figures = explorer.plans["right"].figures
        explorer_value = f"{100 * figures['utilization']:.1f}", f"{figures['value']:.1f}"
        explorer.reset()
        return explorer_value

    by_hand = {"as it was": shown()}
    explorer.controls.penalty.value = 0
    by_hand["penalty 0"] = shown()
    curve = list(explorer.curve.curves[0])
    explorer.curve.curves = [[7 if gpus == max(curve) else gpus for gpus in curve]]
    by_hand["peak of 7 GPUs"] = shown()
    explorer.controls.swap.value = 1
    by_hand["swap cap 1"] = shown()
    row = next(row for row in explorer.table.rows if row["name"] == "cpt-1b-portuguese")
    explorer.table.edit(row["id"], "priority", "20")
    by_hand["priority 20"] = shown()
    assert by_hand == in_code
    assert len(set(by_hand.values())) == 5
