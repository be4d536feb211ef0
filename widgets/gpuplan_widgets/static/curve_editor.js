// Demand curves, one whole number of GPUs per step, edited by dragging, sweeping or with keys.
const NS = "http://www.w3.org/2000/svg";
const HEIGHT = 200, LEFT = 46, BOTTOM = 38, TOP = 10, RIGHT = 10;
const MANY = 64;             // above this many steps one handle walks along the curve
const DASHES = ["", "6 3", "2 3", "8 3 2 3"];
let serial = 0;

function make(tag, attributes, parent) {
  const node = document.createElementNS(NS, tag);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  parent.append(node);
  return node;
}

function niceTicks(max, wanted) {
  const raw = max / wanted;
  const power = 10 ** Math.floor(Math.log10(Math.max(raw, 1)));
  const step = [1, 2, 5, 10].map((m) => m * power).find((s) => s >= raw) ?? 1;
  const out = [];
  for (let q = 0; q <= max; q += step) out.push(q);
  return out;
}

function render({ model, el }) {
  const id = "gp-curve-" + ++serial;
  const root = document.createElement("div");
  root.className = "gp-curve";
  root.dataset.lmSuppressShortcuts = "true";   // arrow keys are for the curve, not for the notebook
  const bar = document.createElement("div");
  bar.className = "gp-curve-bar";
  const chooserLabel = document.createElement("label");
  const chooser = document.createElement("select");
  chooser.className = "gp-curve-app";
  chooserLabel.append("Demand of ", chooser);
  const readout = document.createElement("span");
  readout.className = "gp-curve-value";
  bar.append(chooserLabel, readout);
  const help = document.createElement("div");
  help.className = "gp-curve-help";
  help.id = id + "-help";
  help.textContent =
    "Drag or sweep over the points. Keys: ←/→ another point, ↑/↓ one GPU, Page up/down a tenth of the scale, Home/End least/most.";
  const svg = make("svg", {
    class: "gp-curve-svg", height: HEIGHT, role: "group",
    "aria-label": "Demand curve, GPUs per step", "aria-describedby": help.id,
  }, root);
  root.prepend(bar);
  root.append(help);
  el.append(root);
  const axes = make("g", { class: "gp-curve-axes", "aria-hidden": "true" }, svg);
  const others = make("g", { class: "gp-curve-others", "aria-hidden": "true" }, svg);
  const edited = make("g", {}, svg);
  const area = make("path", { class: "gp-curve-area" }, edited);
  const line = make("path", { class: "gp-curve-line", fill: "none" }, edited);
  const points = make("g", {}, edited);

  let width = 600;                // pixels, as wide as the page lets it be
  let curves = [];
  let app = 0;
  let values = [];
  let dragging = false;
  let current = 0;                // the step that has, or would get, the focus
  let last = -1, lastValue = 0;

  const names = () => model.get("names");
  const vmax = () => Math.max(1, model.get("vmax"));
  const span = () => (width - LEFT - RIGHT) / Math.max(1, values.length);
  const x = (i) => LEFT + span() * (i + 0.5);
  const y = (q) => TOP + (HEIGHT - TOP - BOTTOM) * (1 - q / vmax());
  const clamp = (q) => Math.min(vmax(), Math.max(0, Math.round(q)));
  const many = () => values.length > MANY;
  const colourClass = (k) => "gp-colour-" + (k % DASHES.length);

  function hourText(i) {
    const h = i * model.get("step_hours");
    return Number.isInteger(h) ? String(h) : h.toFixed(2).replace(/0$/, "");
  }

  function stepLine(v) {
    let d = "";
    v.forEach((q, i) => {
      d += `${i ? "L" : "M"}${(LEFT + span() * i).toFixed(2)} ${y(q).toFixed(2)}H${(LEFT + span() * (i + 1)).toFixed(2)}`;
    });
    return d;
  }

  function drawAxes() {
    axes.replaceChildren();
    for (const q of niceTicks(vmax(), 4)) {
      make("line", { x1: LEFT, x2: width - RIGHT, y1: y(q), y2: y(q), class: "gp-curve-grid" }, axes);
      make("text", { x: LEFT - 6, y: y(q) + 4, "text-anchor": "end" }, axes).textContent = q;
    }
    const hours = values.length * model.get("step_hours");
    const every = [0.25, 0.5, 1, 2, 3, 6, 12, 24, 48].find((s) => hours / s <= Math.max(4, width / 45)) ?? 168;
    for (let h = 0; h <= hours + 1e-9; h += every) {
      const px = LEFT + (width - LEFT - RIGHT) * h / Math.max(hours, 1e-9);
      make("line", { x1: px, x2: px, y1: y(0), y2: y(0) + 4, class: "gp-curve-tick" }, axes);
      make("text", { x: px, y: y(0) + 17, "text-anchor": "middle" }, axes).textContent = h;
    }
    make("text", { x: (LEFT + width - RIGHT) / 2, y: HEIGHT - 5, "text-anchor": "middle" }, axes).textContent = "hour";
    make("text", {
      x: 12, y: (TOP + HEIGHT - BOTTOM) / 2, "text-anchor": "middle",
      transform: `rotate(-90 12 ${(TOP + HEIGHT - BOTTOM) / 2})`,
    }, axes).textContent = "GPUs";
  }

  function drawOthers() {
    others.replaceChildren();
    curves.forEach((v, k) => {
      if (k === app || !v.length) return;
      make("path", {
        d: stepLine(v), fill: "none", stroke: "currentColor", class: colourClass(k),
        "stroke-dasharray": DASHES[k % DASHES.length],
      }, others);
    });
  }

  function point(k) {
    let dot = points.children[k];
    if (!dot) {
      dot = make("circle", { class: "gp-curve-point", role: "slider", "aria-valuemin": 0,
        "aria-orientation": "vertical", "aria-describedby": help.id }, points);
    }
    return dot;
  }

  function drawPoint(k, i) {
    const dot = point(k);
    dot.dataset.step = i;
    dot.setAttribute("r", many() ? 6 : Math.min(5.5, span() / 2.4).toFixed(2));
    dot.setAttribute("cx", x(i).toFixed(2));
    dot.setAttribute("cy", y(values[i]).toFixed(2));
    dot.setAttribute("tabindex", i === current ? 0 : -1);
    dot.setAttribute("aria-valuenow", values[i]);
    dot.setAttribute("aria-valuemax", vmax());
    dot.setAttribute("aria-valuetext", `${values[i]} GPUs`);
    dot.setAttribute("aria-label", `${names()[app] ?? "demand"}, hour ${hourText(i)}`);
  }

  function draw() {
    current = Math.min(Math.max(0, current), Math.max(0, values.length - 1));
    const d = stepLine(values);
    line.setAttribute("d", d);
    edited.setAttribute("class", colourClass(app));
    area.setAttribute("d", values.length ? `${d}V${y(0)}H${LEFT}Z` : "");
    const shown = values.length === 0 ? 0 : many() ? 1 : values.length;
    for (let k = 0; k < shown; k++) drawPoint(k, many() ? current : k);
    while (points.children.length > shown) points.lastChild.remove();
    readout.textContent = values.length
      ? `hour ${hourText(current)}: ${values[current]} GPU${values[current] === 1 ? "" : "s"}` : "no real-time app";
  }

  function fit() {
    const room = Math.min(760, root.clientWidth);
    if (room < 100 || Math.abs(room - width) < 4) return;
    width = room;
    load();
  }

  function load() {
    if (dragging) return;           // a hand on the curve knows better; what comes after is loaded
    curves = model.get("curves").map((v) => [...v]);
    app = Math.min(model.get("app"), Math.max(0, curves.length - 1));
    values = curves[app] ?? [];
    const texts = names();
    chooserLabel.hidden = !texts.length;
    if (chooser.children.length !== texts.length || [...chooser.children].some((o, k) => o.textContent !== texts[k])) {
      chooser.replaceChildren(...texts.map((text, k) => {
        const option = document.createElement("option");
        option.value = k;
        option.textContent = text;
        return option;
      }));
    }
    chooser.value = app;
    chooser.disabled = texts.length < 2;
    svg.setAttribute("viewBox", `0 0 ${width} ${HEIGHT}`);
    drawAxes();
    drawOthers();
    draw();
  }

  function commit(final) {
    curves[app] = values;
    model.set("curves", curves.map((v) => [...v]));
    if (final) model.set("edits", model.get("edits") + 1);
    model.save_changes();
  }

  let frame = 0;
  function live() {
    frame ||= requestAnimationFrame(() => { frame = 0; if (model.get("continuous")) commit(false); });
  }
  function flush() {
    if (frame) cancelAnimationFrame(frame);
    frame = 0;
  }

  // A drag keeps the place that the curve had at its beginning: what is written above may grow meanwhile.
  let box = null;
  function where(event) {
    const px = (event.clientX - box.left) * width / box.width;
    const py = (event.clientY - box.top) * HEIGHT / box.height;
    const i = Math.floor((px - LEFT) / span());
    return [i, clamp((1 - (py - TOP) / (HEIGHT - TOP - BOTTOM)) * vmax())];
  }

  svg.addEventListener("pointerdown", (event) => {
    if (!values.length || event.button > 0) return;
    box = svg.getBoundingClientRect();
    const [i, q] = where(event);
    if (i < 0 || i >= values.length) return;
    event.preventDefault();
    dragging = true;
    svg.setPointerCapture(event.pointerId);
    current = last = i;
    values[i] = lastValue = q;
    draw();
    (many() ? point(0) : point(i)).focus({ preventScroll: true });
    live();
  });
  svg.addEventListener("pointermove", (event) => {
    if (!dragging) return;
    const [raw, q] = where(event);
    const i = Math.min(values.length - 1, Math.max(0, raw));
    const towards = Math.sign(i - last);
    for (let j = last; j !== i; j += towards)   // a fast sweep skips no point
      values[j] = clamp(lastValue + (q - lastValue) * Math.abs(j - last) / Math.abs(i - last));
    values[i] = q;
    current = last = i;
    lastValue = q;
    draw();
    live();
  });
  function release() {
    if (!dragging) return;
    dragging = false;
    flush();
    commit(true);
    if (document.activeElement?.closest?.(".gp-curve") === root && !many()) point(current).focus({ preventScroll: true });
  }
  svg.addEventListener("pointerup", release);
  svg.addEventListener("pointercancel", release);
  svg.addEventListener("lostpointercapture", release);

  // Not on the drawing itself, which Chromium would make a stop of its own for the tab key.
  root.addEventListener("focusin", (event) => {
    const step = Number(event.target.dataset?.step ?? NaN);
    if (Number.isInteger(step) && step !== current) { current = step; draw(); }
  });
  svg.addEventListener("keydown", (event) => {
    if (!values.length || event.ctrlKey || event.metaKey || event.altKey) return;
    const i = current;
    const page = Math.max(1, Math.round(vmax() / 10));
    const up = { ArrowUp: 1, ArrowDown: -1, PageUp: page, PageDown: -page, Home: -vmax(), End: vmax() }[event.key];
    const aside = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (up === undefined && aside === undefined) return;
    event.preventDefault();
    event.stopPropagation();         // the notebook has its own use for arrow keys
    if (aside !== undefined) {
      current = Math.min(values.length - 1, Math.max(0, i + aside));
      draw();
      (many() ? point(0) : point(current)).focus();
      return;
    }
    const q = clamp(values[i] + up);
    if (q === values[i]) return;
    values[i] = q;
    draw();
    commit(true);
  });
  chooser.addEventListener("change", () => {
    model.set("app", Number(chooser.value));
    model.save_changes();
    load();
  });

  const events = ["change:curves", "change:names", "change:app", "change:vmax", "change:step_hours"];
  for (const name of events) model.on(name, load);
  load();
  const sizes = new ResizeObserver(fit);
  sizes.observe(root);
  return () => {
    flush();
    sizes.disconnect();
    for (const name of events) model.off(name, load);
    root.remove();
  };
}

export default { render };
