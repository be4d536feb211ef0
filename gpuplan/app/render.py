"""From a page's cells to HTML, cell by cell: prose as it is, what code shows in its place, no code, no traceback."""

import json
from collections.abc import AsyncIterator
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
    """Runs and writes one page.

    Parameters
    ----------
    kernel
        Manager of the page's kernel.
    options
        With the longest computation.
    log
        Takes what must not be on the page.
    """

    def __init__(self, kernel: Any, options: Options, log: Any) -> None:
        self._kernel, self._options, self._log = kernel, options, log

    async def parts(self, page: Page) -> AsyncIterator[str]:
        """HTML of the page's cells, each as soon as it is there."""
        notebook = nbformat.v4.new_notebook(
            cells=[
                (nbformat.v4.new_code_cell if is_code else nbformat.v4.new_markdown_cell)(text)
                for is_code, text in page.cells
            ]
        )
        executor = VoilaExecutor(notebook, km=self._kernel, timeout=round(2 * self._options.seconds))
        executor.kc = await executor.async_start_new_kernel_client()
        try:
            count = len(notebook.cells)
            for number, cell in enumerate(notebook.cells):
                yield f"<script>gpuplanApp.progress({number}, {count})</script>\n"
                if cell.cell_type == "markdown":
                    yield markdown(cell.source)
                    continue
                wrong = await self._run(executor, cell, number)
                yield outputs(cell.outputs) if wrong is None else said(wrong)
                if wrong == ENDED:
                    return
        finally:
            executor.kc.stop_channels()

    async def _run(self, executor: Any, cell: Any, number: int) -> str | None:
        """Run a cell; None, or a sentence in place of what it would have shown."""
        try:
            await executor.async_execute_cell(cell, number, store_history=False)
        except CellExecutionError as error:
            self._log.error("A cell of a page failed: %s", error)
            return FAILED
        except CellTimeoutError:
            return TOO_LONG
        except (DeadKernelError, RuntimeError):
            return ENDED
        return None


def markdown(source: str) -> str:
    """A cell of prose."""
    renderer = IPythonRenderer(escape=False, anchor_link_text="")
    text = MarkdownWithMath(renderer=renderer).render(source)
    return (
        '<div class="jp-Cell jp-MarkdownCell gp-app-prose"><div class="jp-RenderedHTMLCommon jp-RenderedMarkdown '
        f'jp-MarkdownOutput" data-mime-type="text/markdown">{text}</div></div>\n'
    )


def outputs(found: list[Any]) -> str:
    """What a cell shows; the front end draws it."""
    drawn = "".join(_output(one) for one in found)
    return (
        f'<div class="jp-Cell jp-CodeCell"><div class="jp-OutputArea jp-Cell-outputArea">{drawn}</div></div>\n'
        if drawn
        else ""
    )


def _output(one: Any) -> str:
    if one.output_type == "stream":
        if one.name != "stdout":
            return ""
        text = f"<pre>{escape(one.text)}</pre>"
        return f'<div class="jp-OutputArea-child"><div class="jp-RenderedText jp-OutputArea-output">{text}</div></div>'
    if one.output_type not in ("display_data", "execute_result"):
        return ""
    plain = json.dumps({**one, "trusted": True}).replace("<", "\\u003c")
    script = f'<script type="application/vnd.voila.cell-output+json">{plain}</script>'
    return f'<div class="jp-OutputArea-child">{script}</div>'


def said(sentence: str) -> str:
    """A sentence in place of an output."""
    return f'<div class="gp-app-said" role="alert">{escape(sentence)}</div>\n'
