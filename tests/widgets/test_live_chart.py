import base64
import sys
from pathlib import Path

import altair as alt
import numpy as np
import pytest
from playwright.sync_api import Page

from gpuplan_widgets import LiveChart
from widgets.stage import staged

SPEC = (
    alt.Chart(alt.NamedData("bars"), title="Held")
    .mark_bar()
    .encode(x="step:O", y="gpus:Q", tooltip="job:N")
    .properties(width=120, height=60)
    .to_dict()
)
HOSTILE = [
    '<img src=x onerror="alert(1)">',
    "=1+1",
    "../../etc/passwd",
    "</script><b>",
    "\u202egnp.exe",
    "🚀",
]


def data(count: int = 3) -> dict[str, dict[str, object]]:
    return {"bars": {"step": list(range(count)), "gpus": np.arange(count), "job": HOSTILE[:count]}}


def test_new_data_count_the_revision_and_leave_the_specification_alone():
    chart = LiveChart(SPEC, data())
    sent = []
    chart.observe(lambda change: sent.append(change["name"]), ["spec", "payload"])
    chart.show(data(2))
    chart.show(data(1), spec=dict(SPEC))
    assert chart.rev == 3
    assert sent == ["payload", "payload"]
    assert chart.payload["data"]["bars"] == {"step": [0], "gpus": [0], "job": HOSTILE[:1]}


def test_another_specification_is_sent_together_with_its_data():
    chart = LiveChart(SPEC, data())
    chart.old = True
    chart.show(data(1), spec={**SPEC, "width": 300})
    assert chart.spec["width"] == 300
    assert not chart.old


def test_numpy_values_become_plain_numbers():
    values = LiveChart(SPEC, data()).payload["data"]["bars"]["gpus"]
    assert [type(value) for value in values] == [int, int, int]


def test_the_repr_is_stable():
    assert repr(LiveChart(SPEC, data(), label="Plans")) == "LiveChart('Plans')"


def test_a_picture_stands_in_where_there_is_no_kernel():
    bundle, _ = LiveChart(SPEC, data())._repr_mimebundle_()
    assert base64.b64decode(bundle["image/png"]).startswith(b"\x89PNG")
    assert "application/vnd.jupyter.widget-view+json" in bundle


@pytest.mark.parametrize("picture", [True, False])
def test_a_table_stands_in_without_vl_convert_and_its_names_stay_text(monkeypatch, picture):
    if picture:
        monkeypatch.setitem(sys.modules, "vl_convert", None)  # what an import of an absent package meets
    chart = LiveChart(SPEC, data(6), label="<i>Plans</i>", picture=picture)
    bundle, _ = chart._repr_mimebundle_()
    assert "image/png" not in bundle
    assert "&lt;img src=x onerror=&quot;alert(1)&quot;&gt;" in bundle["text/html"]
    assert "<img" not in bundle["text/html"]
    assert "<i>" not in bundle["text/html"]


def test_a_long_table_says_that_it_is_cut():
    many = {"bars": {"step": list(range(250)), "gpus": [1] * 250, "job": ["a"] * 250}}
    page = LiveChart(SPEC, many).html_table()
    assert "the first 200 of 250 rows" in page
    assert page.count("<tr>") == 201


def test_a_picture_asks_for_no_gesture_and_the_page_does():
    params = [{"name": "brush", "select": "interval"}, {"name": "still", "value": False}]
    chart = LiveChart({**SPEC, "params": params}, data())
    assert chart.static_spec()["params"][1] == {"name": "still", "value": True}
    assert chart.spec["params"] == params


def test_every_module_is_sent_as_text_not_as_a_watched_file():
    assert "export default" in LiveChart(SPEC, data()).get_state()["_esm"]


@pytest.mark.browser
def test_a_saved_picture_asks_for_no_gesture_and_the_page_goes_on_asking(chromium: str, tmp_path: Path):
    title = {"text": {"expr": "'Held' + (still ? '' : ' (drag to zoom)')"}}
    chart = LiveChart({**SPEC, "title": title, "params": [{"name": "still", "value": False}]}, data())
    state = {**chart.get_state(), "renderer": "svg"}
    with staged(chromium, tmp_path, [chart.runtime._esm, chart._esm], state, chart._css) as page:
        heading = page.locator(".gp-chart-host svg .role-title-text")
        heading.wait_for()
        note = page.locator(".gp-old-note")
        page.evaluate("window.change('status', 'Compiling')")
        assert note.text_content() == "Compiling"
        page.evaluate("window.change('busy', true)")
        assert page.locator(".gp-working").text_content() == "Computing …"
        page.evaluate("window.change('busy', false), window.change('status', '')")
        assert note.text_content() == ""
        assert heading.text_content() == "Held (drag to zoom)"
        with page.expect_download() as saved:
            page.locator(".gp-save-svg").click()
        picture = Path(saved.value.path()).read_text(encoding="utf-8")
        assert "Held</text>" in picture
        assert "drag" not in picture
        page.wait_for_function(
            "document.querySelector('.gp-chart-host svg .role-title-text').textContent.includes('drag')"
        )


WATCHED = """async () => {
  const shelf = await globalThis[Symbol.for("gpuplan.vega")].ready;
  const embed = shelf.vegaEmbed;
  window.calls = [];
  shelf.vegaEmbed = async (...given) => {
    const made = await embed(...given);
    const { data, resize } = made.view;
    made.view.data = (name, rows) => {
      window.calls.push(name);
      if (window.torn) throw new Error("torn");
      return data.call(made.view, name, rows);
    };
    made.view.resize = () => { window.calls.push("resize"); return resize.call(made.view); };
    return made;
  };
}"""


@pytest.mark.browser
def test_only_what_differs_from_the_picture_is_drawn_again(chromium: str, tmp_path: Path):
    layers = [
        {"data": {"name": name}, "mark": "point", "encoding": SPEC["encoding"]} for name in ("bars", "rows")
    ]
    spec = {"$schema": SPEC["$schema"], "layer": layers}
    chart = LiveChart(spec, {"bars": data(2)["bars"], "rows": data(3)["bars"]})

    def after(page: Page, bars: int, rows: int, *, torn: bool = False) -> list[str]:
        chart.show({"bars": data(bars)["bars"], "rows": data(rows)["bars"]})
        page.evaluate("(torn) => { window.calls = []; window.torn = torn; }", torn)
        page.evaluate("(payload) => window.change('payload', payload)", dict(chart.payload))
        done = ".gp-chart-error:not(:empty)" if torn else f".gp-chart[data-rev='{chart.rev}']"
        page.wait_for_selector(done, state="attached")
        return page.evaluate("window.calls")

    with staged(chromium, tmp_path, [chart.runtime._esm, chart._esm], chart.get_state(), chart._css) as page:
        page.wait_for_selector(".gp-chart[data-rev='1']")
        page.evaluate(WATCHED)
        page.evaluate("(spec) => window.change('spec', spec)", {**spec, "title": "another"})
        page.wait_for_selector(".gp-chart[data-paints='2']")
        assert after(page, 2, 3) == []
        assert after(page, 3, 3) == ["bars"]
        assert after(page, 3, 4) == ["rows", "resize"]
        # What a failed change has left in the view is not known: the next one sends everything.
        assert after(page, 1, 4, torn=True) == ["bars"]
        assert after(page, 3, 4) == ["bars", "rows", "resize"]
        assert after(page, 3, 4) == []


@pytest.mark.browser
def test_a_page_that_turns_dark_tells_the_chart(chromium: str, tmp_path: Path):
    title = {"text": {"expr": "dark ? 'at night' : 'by day'"}}
    chart = LiveChart({**SPEC, "title": title, "params": [{"name": "dark", "value": False}]}, data())
    state = {**chart.get_state(), "renderer": "svg"}
    heading = "document.querySelector('.gp-chart-host svg .role-title-text')?.textContent"
    with staged(chromium, tmp_path, [chart.runtime._esm, chart._esm], state, chart._css) as page:
        page.wait_for_function(f"{heading} === 'by day'")
        page.evaluate("document.body.dataset.jpThemeLight = 'false'")
        page.wait_for_function(f"{heading} === 'at night'")
        page.evaluate("document.body.dataset.jpThemeLight = 'true'")
        page.wait_for_function(f"{heading} === 'by day'")
