// What ipywidgets leaves out for people without a mouse or without sight, on the explorer that holds `el`:
// folds that keys open, names and values of sliders, states of buttons, and what a control changed, said aloud.

// A change is said once it has rested so long (milliseconds): a drag is one change.
const REST = 900;
const PLAY = [["fa-play", "Play"], ["fa-pause", "Pause"], ["fa-stop", "Stop, back to the first plan"]];
// Of what an explorer writes: the change in words, and the moment that is shown.
const NEWS = ".gp-headline, .gp-roll-where .widget-html-content";

function put(node, name, value) {
  if (node.getAttribute(name) !== value) node.setAttribute(name, value);
}

function labelOf(part) {
  return part.closest(".widget-inline-hbox")?.querySelector(".widget-label")?.textContent.trim() ?? "";
}

// Sliders have a visible description but no accessible name, and their value is said as it is shown ("24 h").
function nameSliders(root) {
  for (const handle of root.querySelectorAll(".noUi-handle")) {
    const label = labelOf(handle);
    const readout = handle.closest(".widget-inline-hbox")?.querySelector(".widget-readout");
    if (label) put(handle, "aria-label", label);
    const off = handle.closest(".noUi-target")?.hasAttribute("disabled") ?? false;
    put(handle, "aria-disabled", String(off));
    const text = readout?.textContent.trim();
    if (text) put(handle, "aria-valuetext", text);
    // ipywidgets lets people type over the name of a choice, and pays no attention.
    if (readout?.isContentEditable && readout.closest(".gp-choices")) readout.contentEditable = "false";
    if (label && readout?.isContentEditable) {
      put(readout, "role", "textbox");
      put(readout, "aria-label", `${label}, typed`);
    }
  }
}

function namePlay(root) {
  for (const button of root.querySelectorAll(".widget-play button")) {
    const icon = button.querySelector("i");
    const words = PLAY.find(([css]) => icon?.classList.contains(css))?.[1];
    if (!words) continue;
    put(button, "aria-label", words);
    put(button, "title", words);
  }
}

function nameChoices(root) {
  for (const button of root.querySelectorAll(".widget-toggle-button"))
    put(button, "aria-pressed", String(button.classList.contains("mod-active")));
}

let serial = 0;

// The head of a fold is a plain box that hears clicks only.
function openFolds(root) {
  for (const head of root.querySelectorAll(".jupyter-widget-Collapse-header")) {
    const contents = head.nextElementSibling;
    if (!contents) continue;
    contents.id ||= `gp-fold-${++serial}`;
    put(head, "role", "button");
    put(head, "tabindex", "0");
    put(head, "aria-controls", contents.id);
    put(head, "aria-expanded", String(!contents.classList.contains("lm-mod-hidden")));
  }
}

// A table that is larger than its box is scrolled by keys once its box can have the focus.
function reachTables(root) {
  for (const table of root.querySelectorAll(".widget-html table")) {
    const box = table.closest(".widget-html-content");
    const own = box !== null && !table.closest("[tabindex]:not(.widget-html-content)");
    if (!own || box.clientWidth === 0) continue;
    if (box.scrollWidth <= box.clientWidth + 1 && box.scrollHeight <= box.clientHeight + 1) {
      box.removeAttribute("tabindex");
      continue;
    }
    put(box, "tabindex", "0");
    put(box, "role", "group");
    put(box, "aria-label", `${table.caption?.textContent.trim().slice(0, 80) || "Table"}, scrolls`);
  }
}

function accessible(el) {
  const spoken = document.createElement("div");
  spoken.className = "gp-unseen gp-spoken";
  spoken.setAttribute("role", "status");
  let root = null;
  let said = null;
  let resting = 0;
  let waiting = 0;
  let settling = 0;

  // What was there from the beginning is read with the page.
  function listen() {
    const news = [...root.querySelectorAll(NEWS)].map((part) => part.textContent.trim()).join(" ");
    if (said === null && news) said = news;
    if (!news || news === said) return;
    clearTimeout(resting);
    resting = setTimeout(() => {
      said = spoken.textContent = [...root.querySelectorAll(NEWS)].map((part) => part.textContent.trim()).join(" ");
    }, REST);
  }

  function mend() {
    waiting = 0;
    for (const step of [nameSliders, namePlay, nameChoices, openFolds]) step(root);
    listen();
    settle();
  }
  function settle() {
    clearTimeout(settling);
    settling = setTimeout(() => reachTables(root), 200);
  }
  const sizes = new ResizeObserver(settle);
  const watch = new MutationObserver(() => { waiting ||= requestAnimationFrame(mend); });

  function keyed(event) {
    const head = event.target.closest?.(".jupyter-widget-Collapse-header");
    if (!head || head !== event.target || !["Enter", " "].includes(event.key)) return;
    event.preventDefault();
    event.stopPropagation();       // the notebook has its own use for these keys
    head.click();
  }

  // The explorer takes this part in only after it is made.
  function begin() {
    if (root) return;
    root = el.closest(".gp-explorer");
    if (!root) return;
    root.append(spoken);
    root.addEventListener("keydown", keyed);
    watch.observe(root, {
      subtree: true, childList: true, characterData: true, attributes: true,
      attributeFilter: ["class", "disabled", "aria-valuetext"],
    });
    sizes.observe(root);
    mend();
  }
  const timers = [0, 300, 1500].map((ms) => setTimeout(begin, ms));
  return () => {
    timers.forEach(clearTimeout);
    clearTimeout(resting);
    clearTimeout(settling);
    sizes.disconnect();
    cancelAnimationFrame(waiting);
    watch.disconnect();
    root?.removeEventListener("keydown", keyed);
    spoken.remove();
  };
}
