"""Names for the buttons of ipywidgets' Play, which are icons without words."""

import anywidget

_ESM = """
const NAMES = [["fa-play", "Play"], ["fa-pause", "Pause"], ["fa-stop", "Stop, back to the first plan"]];

function render({ el }) {
  const root = document.createElement("span");
  el.append(root);
  const near = () => el.closest(".gp-explorer")?.querySelectorAll(".gp-roll-play button") ?? [];
  const watch = new MutationObserver(name);
  const watched = new Set();
  function name() {
    for (const button of near()) {
      const icon = button.querySelector("i");
      const words = NAMES.find(([css]) => icon?.classList.contains(css))?.[1];
      if (words && button.getAttribute("aria-label") !== words) {
        button.setAttribute("aria-label", words);
        button.title = words;
      }
      if (!watched.has(button)) {
        watched.add(button);
        watch.observe(button, { subtree: true, childList: true, attributes: true, attributeFilter: ["class"] });
      }
    }
  }
  const timers = [0, 300, 1500].map((ms) => setTimeout(name, ms));
  return () => {
    timers.forEach(clearTimeout);
    watch.disconnect();
    root.remove();
  };
}

export default { render };
"""


class PlayNames(anywidget.AnyWidget):
    """An invisible widget that gives the Play buttons of its explorer accessible names and tooltips."""

    _esm = _ESM

    def __repr__(self) -> str:
        return "PlayNames()"
