"""A widget's own JavaScript on an empty page, with a model that only remembers."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from playwright.sync_api import Page, sync_playwright

_PAGE = """<!doctype html><meta charset="utf-8"><style>{css}</style><div id="stage"></div><input id="elsewhere">
<script type="module">
const url = (text) => URL.createObjectURL(new Blob([text], {{ type: "text/javascript" }}));
const texts = {texts};
const state = {state};
const heard = {{}};
window.sent = [];
const model = {{
  get: (name) => state[name],
  set: (name, value) => {{ state[name] = value; }},
  save_changes: () => {{}},
  send: (message) => window.sent.push(message),
  on: (name, handler) => {{ (heard[name] ??= []).push(handler); }},
  off: () => {{}},
}};
window.change = (name, value) => {{
  state[name] = value;
  for (const handler of heard["change:" + name] ?? []) handler();
}};
for (const text of texts) {{
  const {{ default: widget }} = await import(url(text));
  widget.initialize?.({{ model }});
  widget.render?.({{ model, el: document.querySelector("#stage") }});
}}
window.drawn = true;
</script>"""


@contextmanager
def staged(
    chromium: str, folder: Path, modules: list[str], state: Mapping[str, Any], css: str = ""
) -> Iterator[Page]:
    """Show a widget in Chromium; `window.sent` holds what it says, `window.change` sets a trait."""
    dumped = (json.dumps(part).replace("</", "<\\/") for part in (modules, dict(state)))
    texts, traits = dumped
    file = folder / "stage.html"
    file.write_text(_PAGE.format(css=css, texts=texts, state=traits), encoding="utf-8")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1000, "height": 700})
        page.goto(file.as_uri())
        page.wait_for_function("window.drawn")
        yield page
        browser.close()
