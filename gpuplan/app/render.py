"""From a page's cells to HTML, cell by cell: prose as it is, what code shows in its place, no code, no traceback."""

import json
from collections.abc import AsyncIterator, Awaitable, Iterable
from html import escape
from typing import Any

import nbformat
from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError
from nbconvert.filters.markdown_mistune import IPythonRenderer, MarkdownWithMath
from voila.configuration import VoilaConfiguration
from voila.execute import VoilaExecutor
from voila.utils import get_page_config

from gpuplan.app.options import Options
from gpuplan.app.shelf import Page

#: What JupyterLab's front end loads beside its core, and no more.
EXTENSIONS = ("anywidget", "@jupyter-widgets/jupyterlab-manager", "@voila-dashboards/widgets-manager8")

#: Said in place of what a cell would have shown.
FAILED = "This part could not be computed."
TOO_LONG = "This part takes longer than is allowed here."
ENDED = "The page stopped here: its computation was ended."


def page_config(settings: dict[str, Any], kernel_id: str) -> dict[str, Any]:
    """What the front end must know: where its files are and which kernel is its own."""
    made = VoilaConfiguration(extension_allowlist=list(EXTENSIONS))
    config: dict[str, Any] = get_page_config(
        base_url=settings["base_url"], settings=settings, log=settings["log"], voila_configuration=made
    )
    kept = {
        "baseUrl",
        "appUrl",
        "fullStaticUrl",
        "fullLabextensionsUrl",
        "federated_extensions",
        "appVersion",
    }
    plain = {key: value for key, value in config.items() if key in kept}
    # None, None: formulas are set by JupyterLab's own copy of MathJax; anything else asks a CDN
    own: dict[str, Any] = {"mathjaxConfig": None, "fullMathjaxUrl": None, "terminalsAvailable": False}
    return {**plain, **own, "kernelId": kernel_id, "jupyterLabTheme": "light"}


class Renderer:
    """Writes one page.

    Parameters
    ----------
    page
        What is written.
    options
        With the longest computation.
    log
        Takes what must not be on the page.
    """

    def __init__(self, page: Page, options: Options, log: Any) -> None:
        self._page, self._options, self._log = page, options, log
        self._executor: Any = None
        self._ended = False

    async def parts(self, kernel: Awaitable[Any] | None) -> AsyncIterator[str]:
        """HTML of the page's cells, each as soon as it is there.

        Parameters
        ----------
        kernel
            Manager of the page's kernel once there is one; None for a page that needs none.
        """
        cells = self._page.cells
        try:
            for number, cell in enumerate(cells):
                if cell.fate == "prose":
                    yield markdown(cell.text)
                elif cell.fate == "kept":
                    yield kept(cell.outputs)
                else:
                    assert kernel is not None
                    yield f"<script>gpuplanApp.progress({number}, {len(cells)})</script>\n"
                    shown, wrong = await self._run(kernel, cell.text, number)
                    if cell.fate == "run":
                        yield kept(cell.outputs)
                    else:
                        yield said(wrong) if wrong else outputs(shown)
        finally:
            if self._executor is not None:
                self._executor.kc.stop_channels()

    async def _run(self, kernel: Awaitable[Any], code: str, number: int) -> tuple[list[Any], str]:
        """Run a cell: what it shows, and a sentence if that is nothing."""
        if self._ended:
            return [], ENDED
        if self._executor is None:
            manager = await kernel
            empty = nbformat.v4.new_notebook()
            self._executor = VoilaExecutor(empty, km=manager, timeout=round(2 * self._options.seconds))
            self._executor.kc = await self._executor.async_start_new_kernel_client()
        cell = nbformat.v4.new_code_cell(code)
        self._executor.nb.cells = [cell]
        try:
            await self._executor.async_execute_cell(cell, 0, store_history=False)
        except CellExecutionError as error:
            self._log.error("cell %d of %s failed: %s", number, self._page.address, error)
            return [], FAILED
        except CellTimeoutError:
            return [], TOO_LONG
        except (DeadKernelError, RuntimeError):
            self._ended = True
            return [], ENDED
        return cell.outputs, ""


def markdown(source: str) -> str:
    """A cell of prose."""
    renderer = IPythonRenderer(escape=False, exclude_anchor_links=True)
    text = MarkdownWithMath(renderer=renderer).render(source)
    return (
        '<div class="jp-Cell jp-MarkdownCell gp-app-prose"><div class="jp-RenderedHTMLCommon jp-RenderedMarkdown '
        f'jp-MarkdownOutput" data-mime-type="text/markdown">{text}</div></div>\n'
    )


def kept(found: Iterable[Any]) -> str:
    """What a cell showed when it was committed."""
    drawn = "".join(f'<div class="jp-OutputArea-child">{_kept(one)}</div>' for one in found)
    return f'<div class="jp-Cell jp-CodeCell gp-app-kept">{drawn}</div>\n' if drawn else ""


def _kept(one: Any) -> str:
    data = one.get("data", {})
    plain = _text(data.get("text/plain", one.get("text", "")))
    if "image/png" in data:
        return f'<img alt="{escape(plain)}" src="data:image/png;base64,{_text(data["image/png"]).strip()}">'
    if "text/markdown" in data:
        return markdown(_text(data["text/markdown"]))
    if "text/html" in data:
        return f'<div class="jp-RenderedHTMLCommon jp-RenderedHTML">{_text(data["text/html"])}</div>'
    # long lines scroll, and keys must reach what scrolls
    return f'<div class="jp-RenderedText"><pre tabindex="0">{escape(plain)}</pre></div>' if plain else ""


def outputs(found: Iterable[Any]) -> str:
    """What a cell shows now; the front end draws it."""
    drawn = "".join(_output(one) for one in found)
    box = '<div class="jp-Cell jp-CodeCell"><div class="jp-OutputArea jp-Cell-outputArea">'
    return f"{box}{drawn}</div></div>\n" if drawn else ""


def _output(one: Any) -> str:
    if one["output_type"] == "stream":
        return kept([one]) if one["name"] == "stdout" else ""
    if one["output_type"] not in ("display_data", "execute_result"):
        return ""
    plain = json.dumps({**one, "trusted": True}).replace("<", "\\u003c")
    script = f'<script type="application/vnd.voila.cell-output+json">{plain}</script>'
    return f'<div class="jp-OutputArea-child">{script}</div>'


def said(sentence: str) -> str:
    """A sentence in place of an output."""
    return f'<div class="gp-app-said" role="alert">{escape(sentence)}</div>\n'


def _text(value: Any) -> str:
    return value if isinstance(value, str) else "".join(value)
