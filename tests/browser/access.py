"""The automated accessibility check: axe-core, from its installed file, on a part of a page."""

from importlib import resources
from typing import Any

from playwright.sync_api import Page

#: What counts: findings of these weights keep somebody from using the page.
GRAVE = ("critical", "serious")

_RUN = """
async ([part, grave]) => {
  const { violations } = await axe.run(part ? { include: [part] } : document, { resultTypes: ["violations"] });
  return violations.filter((found) => grave.includes(found.impact)).flatMap((found) => found.nodes.map((node) =>
    `${found.impact} ${found.id}: ${node.target.join(" ")} | ${node.failureSummary.replace(/\\s+/g, " ")}`));
}
"""


def findings(page: Page, part: str = "") -> list[str]:
    """Serious and critical findings, a line each.

    Parameters
    ----------
    page
        A page that is drawn.
    part
        Selector of the part that is ours, where the rest of the page is another program's; empty: the whole page.
    """
    if not page.evaluate("() => 'axe' in globalThis"):
        source = resources.files("axe_playwright_python") / "axe.min.js"
        page.evaluate(source.read_text(encoding="utf-8"))
    found: list[Any] = page.evaluate(_RUN, [part, list(GRAVE)])
    return [str(one) for one in found]
