"""The automated accessibility check: axe-core, from its installed file, on a part of a page."""

from collections.abc import Sequence
from importlib import resources
from typing import Any

from playwright.sync_api import Page

#: What counts: findings of these weights keep somebody from using the page.
GRAVE = ("critical", "serious")

_RUN = """
async ([part, grave, rules]) => {
  const runOnly = rules.length ? { runOnly: { type: "rule", values: rules } } : {};
  const where = part ? { include: [part] } : document;
  const { violations } = await axe.run(where, { resultTypes: ["violations"], ...runOnly });
  return violations.filter((found) => grave.includes(found.impact)).flatMap((found) => found.nodes.map((node) =>
    `${found.impact} ${found.id}: ${node.target.join(" ")} | ${node.failureSummary.replace(/\\s+/g, " ")}`));
}
"""


def findings(page: Page, part: str = "", rules: Sequence[str] = ()) -> list[str]:
    """Serious and critical findings, a line each.

    Parameters
    ----------
    page
        A page that is drawn.
    part
        Selector of the part that is ours, where the rest of the page is another program's; empty: the whole page.
    rules
        Only these; empty: all.
    """
    if not page.evaluate("() => 'axe' in globalThis"):
        source = resources.files("axe_playwright_python") / "axe.min.js"
        page.evaluate(source.read_text(encoding="utf-8"))
    found: list[Any] = page.evaluate(_RUN, [part, list(GRAVE), list(rules)])
    return [str(one) for one in found]


# A target of less than 24 pixels is enough where no other one is within 12 of its middle, or where its words are a
# target too (a box with its label).
_SMALL = """
(part) => {
  const parts = [...document.querySelectorAll(`${part} :is(select, input, button, summary, a, .noUi-handle,
      .jupyter-widget-Collapse-header)`)].filter((one) => one.checkVisibility() && one.type !== "file");
  const boxes = parts.map((one) => (one.closest("label") ?? one).getBoundingClientRect());
  const middles = boxes.map((box) => [(box.left + box.right) / 2, (box.top + box.bottom) / 2]);
  const near = (i) => boxes.some((box, k) => k !== i && parts[k].closest("label") !== (parts[i].closest("label") ?? 0)
    && box.left < middles[i][0] + 12 && box.right > middles[i][0] - 12
    && box.top < middles[i][1] + 12 && box.bottom > middles[i][1] - 12);
  return parts.filter((one, i) => boxes[i].width > 4 && (boxes[i].width < 23.5 || boxes[i].height < 23.5) && near(i))
    .map((one) => `${one.tagName.toLowerCase()}.${one.getAttribute("class")} ${one.ariaLabel ?? one.textContent}`);
}
"""


def small_targets(page: Page, part: str) -> list[str]:
    """What a finger misses: targets below 24 x 24 CSS pixels beside others (WCAG 2.2, 2.5.8)."""
    found: list[str] = page.evaluate(_SMALL, part)
    return found
