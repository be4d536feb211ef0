// Shares of a budget tree. Python owns the weights; this side sends what the person did and shows what comes back.
const MANY = 40;              // trees with more budgets than this start folded
let serial = 0;

function node(tag, className, text) {
  const n = document.createElement(tag);
  if (className) n.className = className;
  if (text !== undefined) n.textContent = text;
  return n;
}

const percent = (value) => `${value.toFixed(1)}\u00a0%`;

function render({ model, el }) {
  const prefix = "gp-budget-" + ++serial;
  const root = node("div", "gp-budgets");
  root.dataset.lmSuppressShortcuts = "true";   // arrow keys and letters are for the sliders, not for the notebook
  root.setAttribute("role", "group");
  root.setAttribute("aria-label", "Budget tree: shares among siblings, always 100 % together");
  const help = node("div", "gp-budgets-help",
    "A slider sets a budget's share among its siblings, which give or take in proportion; each group is always "
    + "100 %. Keys: ←/→ 1 point, Page up/down 10.");
  help.id = prefix + "-help";
  const list = node("div", "gp-budgets-list");
  const more = node("div", "gp-budgets-help");
  root.append(help, list, more);
  el.append(root);

  let lines = [];
  // One message under way; of what is dragged meanwhile the newest value of each budget waits, in order.
  let waiting = [];
  let under = null;
  let sent = model.get("seen");

  function post(message) {
    waiting = waiting.filter((one) => !(one.row === message.row && one.type === "share" && message.type === "share"));
    waiting.push(message);
    flush();
  }
  function flush() {
    if (under || !waiting.length) return;
    under = waiting.shift();
    sent = Math.max(sent, model.get("seen")) + 1;   // another view of this tree may have spoken
    under.seq = sent;
    model.send(under);
  }
  const onSeen = () => {
    if (under && model.get("seen") >= under.seq) under = null;
    fill();
    flush();
  };

  function makeLine(budget, row) {
    const line = { row, budget, element: node("div", "gp-budget"), children: null };
    line.element.style.setProperty("--gp-depth", budget.depth);
    const head = node("span", "gp-budget-name");
    if (!budget.leaf) {
      const fold = node("button", "gp-budget-fold", "▾");
      fold.type = "button";
      fold.setAttribute("aria-label", `Budgets below ${budget.name}`);
      fold.addEventListener("click", () => open(line, line.children.hidden));
      line.fold = fold;
      head.append(fold);
    } else {
      const swatch = node("span", "gp-budget-swatch");
      swatch.setAttribute("aria-hidden", "true");
      if (/^#[0-9a-f]{6}$/i.test(budget.colour)) swatch.style.background = budget.colour;
      head.append(swatch);
    }
    const name = node("span", "gp-budget-text", budget.name);
    name.dir = "auto";
    name.title = budget.path;
    head.append(name);
    const slider = node("input", "gp-budget-slider");
    Object.assign(slider, { type: "range", min: 0, max: 100, step: 0.1 });
    slider.dataset.row = row;
    slider.setAttribute("aria-label", `Share of ${budget.path} among its siblings`);
    slider.setAttribute("aria-describedby", help.id);
    const share = node("span", "gp-budget-share");
    const whole = node("span", "gp-budget-whole");
    const mute = node("button", "gp-button gp-budget-mute");
    mute.type = "button";
    mute.dataset.row = row;
    slider.addEventListener("input", () => move(line));
    slider.addEventListener("keydown", (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      const now = Number(slider.value);
      const step = { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1, PageUp: 10, PageDown: -10 }[event.key];
      if (step === undefined) { event.stopPropagation(); return; }
      event.preventDefault();
      event.stopPropagation();       // the notebook has its own use for arrow keys
      // to whole per cents, which the largest remainder may have left by a little
      const next = step > 0 ? Math.floor(now + step + 1e-6) : Math.ceil(now + step - 1e-6);
      slider.value = Math.min(100, Math.max(0, next));
      move(line);
    });
    mute.addEventListener("click", () => post({ type: "mute", row, on: !line.muted }));
    line.element.append(head, slider, share, whole, mute);
    return Object.assign(line, { slider, share, whole, mute });
  }

  function move(line) {
    line.share.textContent = percent(Number(line.slider.value));
    post({ type: "share", row: line.row, share: Number(line.slider.value) / 100 });
  }

  function open(line, on) {
    line.children.hidden = !on;
    line.fold.textContent = on ? "▾" : "▸";
    line.fold.setAttribute("aria-expanded", String(on));
  }

  function build() {
    const budgets = model.get("budgets");
    waiting = [];
    under = null;
    list.replaceChildren();
    lines = budgets.map(makeLine);
    for (const line of lines) {
      if (!line.budget.leaf) line.children = node("div", "gp-budget-children");
    }
    for (const line of lines) {
      const parent = lines[line.budget.parent];
      let home = parent?.children;
      if (!home) { home = node("div", "gp-budget-card"); list.append(home); }
      home.append(line.element);
      if (line.children) home.append(line.children);
    }
    for (const line of lines) if (line.fold) open(line, lines.length <= MANY);
    const hidden = model.get("hidden");
    more.textContent = hidden ? `${hidden} more budgets are not shown; they keep their weights.` : "";
    fill();
  }

  function fill() {
    const numbers = model.get("numbers");
    lines.forEach((line, row) => {
      const found = numbers[row];
      if (!found) return;
      const [share, whole, gpus, muted, fixed] = found;
      const held = under?.row === row || waiting.some((one) => one.row === row);
      if (!held) {            // the hand on a slider knows better; what comes after is shown
        line.slider.value = share;
        line.share.textContent = percent(share);
      }
      const said = `${percent(whole)} of all, ${gpus.toLocaleString("en", { maximumFractionDigits: 1 })} GPUs`;
      line.whole.textContent = said;
      line.slider.setAttribute("aria-valuetext", muted ? "muted: nothing" : `${percent(share)}, ${said}`);
      line.muted = muted;
      line.slider.disabled = line.mute.disabled = fixed;
      line.mute.textContent = muted ? "unmute" : "mute";
      line.mute.setAttribute("aria-pressed", String(muted));
      line.mute.setAttribute("aria-label", `Mute ${line.budget.path}`);
      line.mute.title = fixed ? "The only one with a share here cannot be muted"
        : muted ? "Give it back the share it had" : "Give it no share; its siblings get it in proportion";
      line.element.classList.toggle("gp-budget-muted", muted);
    });
  }

  const events = [["change:budgets", build], ["change:numbers", fill], ["change:seen", onSeen]];
  for (const [name, handler] of events) model.on(name, handler);
  build();
  return () => {
    for (const [name, handler] of events) model.off(name, handler);
    root.remove();
  };
}

export default { render };
