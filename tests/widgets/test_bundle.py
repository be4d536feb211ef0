import json
import re

import altair as alt

from gpuplan_widgets.build_bundle import BUNDLE, STATIC, VERSIONS, build
from gpuplan_widgets.runtime import VegaRuntime, runtime


def test_the_bundles_vega_lite_is_altairs():
    version = alt.SCHEMA_VERSION.removeprefix("v")
    assert json.loads(VERSIONS.read_text())["vega-lite"] == version
    assert f'"{version}"' in BUNDLE.read_text(encoding="utf-8")


def test_the_committed_bundle_is_what_the_script_builds():
    text, versions = build()
    committed = json.loads(VERSIONS.read_text())
    assert committed["vega-lite"] == versions["vega-lite"]
    if committed["vl-convert"] == versions["vl-convert"]:  # another vl-convert may order things otherwise
        assert committed == versions
        assert BUNDLE.read_text(encoding="utf-8") == text


def test_no_file_of_the_page_names_an_address_that_could_be_fetched():
    # What remains are names of XML vocabularies and of a schema, and an issue named in a warning.
    harmless = {"www.w3.org", "vega.github.io/schema/vega/v6.json", "github.com/vega/vega-lite/issues/2415"}
    for path in STATIC.iterdir():
        for address in re.findall(r"https?://([\w./-]+)", path.read_text(encoding="utf-8")):
            assert any(address.startswith(start) for start in harmless), (path.name, address)


def test_all_charts_share_one_runtime_and_a_closed_one_is_made_anew():
    first = runtime()
    assert runtime() is first
    assert first.get_state()["_esm"] == BUNDLE.read_text(encoding="utf-8")
    first.close()
    second = runtime()
    assert second is not first
    assert isinstance(second, VegaRuntime)
    assert second.comm is not None
