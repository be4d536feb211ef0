"""Rebuild the Vega bundle that the charts share: ``python -m gpuplan_widgets.build_bundle``.

The bundle (vega-embed, vega-lite, vega) is committed as package data, because every default of
Altair fetches from outside and JupyterLab's own Vega is one version behind. vl-convert carries the
JavaScript, so rebuilding needs no network. A test compares its Vega-Lite with Altair's.
"""

import json
from importlib.metadata import version
from pathlib import Path

#: Folder of the package's JavaScript and style sheets.
STATIC = Path(__file__).parent / "static"

#: The bundle, an ES module whose default export is an anywidget without a view.
BUNDLE = STATIC / "vega_runtime.js"

#: Versions inside the bundle.
VERSIONS = STATIC / "vega_runtime.json"

# The shelf is shared with live_chart.js: whoever comes first puts a promise on it.
_SNIPPET = """
const KEY = Symbol.for("gpuplan.vega");
function shelf() {
  if (!globalThis[KEY]) {
    const s = {};
    s.ready = new Promise((resolve) => { s.resolve = resolve; });
    globalThis[KEY] = s;
  }
  return globalThis[KEY];
}
function initialize() { shelf().resolve({ vegaEmbed }); }
export default { initialize };
"""

# Only used by a menu entry that is never shown; a packaged file should not name it at all.
_EDITOR = "https://vega.github.io/editor/"


def build() -> tuple[str, dict[str, str]]:
    """Make the bundle with vl-convert.

    Returns
    -------
    tuple
        The JavaScript text, and the versions of what is in it and of vl-convert, which made it.

    Raises
    ------
    RuntimeError
        Where vl-convert carries no Vega-Lite of Altair's version.
    """
    import altair
    import vl_convert

    wanted = altair.SCHEMA_VERSION.lstrip("v")
    short = ".".join(wanted.split(".")[:2])
    if short not in vl_convert.get_vegalite_versions():
        raise RuntimeError(f"vl-convert has no Vega-Lite {short}, which this Altair writes")
    text = vl_convert.javascript_bundle(_SNIPPET, vl_version=short)
    if f'"{wanted}"' not in text:
        raise RuntimeError(f"the bundle does not carry Vega-Lite {wanted}, which this Altair writes")
    versions = {
        "vega": vl_convert.get_vega_version(),
        "vega-lite": wanted,
        "vega-embed": vl_convert.get_vega_embed_version(),
        "vl-convert": version("vl-convert-python"),
    }
    return text.replace(_EDITOR, "about:blank"), versions


def main() -> None:
    """Write the bundle and its versions into the package."""
    text, versions = build()
    BUNDLE.write_text(text, encoding="utf-8")
    VERSIONS.write_text(json.dumps(versions, indent=2) + "\n", encoding="utf-8")
    print(f"{BUNDLE.name}: {len(text):,} characters, {versions}")


if __name__ == "__main__":
    main()
