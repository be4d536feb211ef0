// A Vega-Lite chart that is embedded once and then only given new data.
const KEY = Symbol.for("gpuplan.vega");

// The data set that decides the size of a picture of one specification: the labels beside its rows.
const SIZING = "rows";

function shelf() {
  if (!globalThis[KEY]) {
    const s = {};
    s.ready = new Promise((resolve) => { s.resolve = resolve; });
    globalThis[KEY] = s;
  }
  return globalThis[KEY];
}

// Entries of the list of what can be picked.
const MOST_PICKED = 60;

const isDark = () => document.body.dataset.jpThemeLight === "false";

function toRows(columns) {
  const names = Object.keys(columns);
  const n = names.length ? columns[names[0]].length : 0;
  const rows = new Array(n);
  for (let i = 0; i < n; i++) {
    const row = {};
    for (const name of names) row[name] = columns[name][i];
    rows[i] = row;
  }
  return rows;
}

// New numbers in the rows that Vega has: it keeps their marks, which costs half of what new rows do.
function rewrite(view, name, columns, before, rows) {
  const place = new Map(rows.map((row, i) => [row, i]));
  const changes = view.changeset();
  for (const [column, values] of Object.entries(columns))
    if (JSON.stringify(values) !== JSON.stringify(before[column]))
      changes.modify(() => true, column, (row) => values[place.get(row)]);
  view.change(name, changes);
}

// Whether two data sets have the same columns and as many rows.
function sameShape(columns, before) {
  const names = Object.keys(columns);
  return names.length > 0 && names.join("\n") === Object.keys(before ?? {}).join("\n")
    && columns[names[0]].length === before[names[0]].length;
}

// A text that a spreadsheet would run as a formula gets an apostrophe, and one that has it already another;
// numbers stay numbers.
function csvCell(value) {
  if (value === null || value === undefined) return "";
  if (typeof value === "number" || typeof value === "boolean") return String(value);
  let text = String(value);
  if (/^['=+\-@\t\r\n\uff1d\uff0b\uff0d\uff20]/.test(text)) text = "'" + text;
  return '"' + text.replace(/"/g, '""') + '"';
}

function toCsv(data) {
  const columns = ["table"];
  for (const set of Object.values(data))
    for (const name of Object.keys(set)) if (!columns.includes(name)) columns.push(name);
  const lines = [columns.map(csvCell).join(",")];
  for (const [table, set] of Object.entries(data))
    for (const row of toRows(set))
      lines.push(columns.map((c, i) => csvCell(i === 0 ? table : row[c])).join(","));
  return lines.join("\r\n") + "\r\n";
}

function download(href, name) {
  const a = document.createElement("a");
  a.href = href;
  a.download = name;
  a.click();
}

const REFUSE = {
  load: () => Promise.reject(new Error("charts load nothing from outside")),
  sanitize: () => Promise.reject(new Error("charts link nowhere")),
};

// Where a scale follows its data, Vega-Lite 6 moves a brush with it and fails while there is no brush.
const MOVED_BRUSH = /^\[scale\((".*?"), (\w+)\[0\]\), scale\(\1, \2\[1\]\)\]$/;

function guardBrushes(spec) {
  for (const signal of spec.signals ?? [])
    for (const handler of Array.isArray(signal.on) ? signal.on : []) {
      const found = typeof handler.update === "string" && MOVED_BRUSH.exec(handler.update);
      if (found) handler.update = `isArray(${found[2]}) ? ${handler.update} : []`;
    }
  for (const mark of spec.marks ?? []) guardBrushes(mark);
  return spec;
}

// A legend that picks what stands out hears clicks only; the same choice as a list, for keys too.
function pickedByKeys(choose) {
  const element = document.createElement("select");
  element.className = "gp-chart-pick";
  element.setAttribute("aria-label", "Highlight in the chart");
  element.title = "What stands out in the chart, as a click in its legend";
  element.hidden = true;
  let param = null;
  element.addEventListener("change", () => {
    choose(`${param.name}_${param.select.fields[0]}_legend`, element.value || null);
  });
  element.addEventListener("keydown", (event) => event.stopPropagation());
  return {
    element,
    // Another specification: nothing is picked in it yet.
    embedded(spec, view) {
      param = (spec.params ?? []).find((one) => one.bind === "legend" && one.select?.fields?.length === 1) ?? null;
      element.value = "";
      if (!param) return;
      const { name, select: { fields: [field] } } = param;
      view.addSignalListener(name, (_, picked) => {
        const values = picked[field] ?? [];
        element.value = values.length === 1 ? values[0] : "";
      });
    },
    offer(data) {
      const field = param?.select.fields[0];
      const values = new Set();
      for (const [name, columns] of Object.entries(data ?? {}))
        if (name.endsWith("_bars")) for (const value of columns[field] ?? []) if (value) values.add(value);
      element.hidden = values.size < 2;
      const texts = ["", ...values].slice(0, MOST_PICKED);
      if (texts.length === element.options.length && texts.every((text, i) => element.options[i].value === text)) return;
      const before = element.value;
      element.replaceChildren(...texts.map((text) => {
        const option = document.createElement("option");
        option.value = text;
        option.textContent = text || "highlight: nothing";
        return option;
      }));
      element.value = values.has(before) ? before : "";
    },
  };
}

function render({ model, el }) {
  const root = document.createElement("div");
  root.className = "gp-chart";
  root.setAttribute("role", "figure");
  const bar = document.createElement("div");
  bar.className = "gp-chart-bar";
  const note = document.createElement("span");
  note.className = "gp-old-note";
  note.setAttribute("role", "status");
  // What only the eye needs: the figure is busy, which a screen reader is told by the figure itself.
  const working = document.createElement("span");
  working.className = "gp-working";
  working.setAttribute("aria-hidden", "true");
  bar.append(note, working);
  const chooser = pickedByKeys((signal, value) => view?.signal(signal, value).runAsync());
  bar.append(chooser.element);
  const scroller = document.createElement("div");
  scroller.className = "gp-chart-scroll";
  scroller.tabIndex = 0;
  scroller.setAttribute("role", "group");
  scroller.setAttribute("aria-label", "Chart, scrolls where the page is narrow");
  const failure = document.createElement("div");
  failure.className = "gp-chart-error gp-message";
  failure.setAttribute("role", "alert");
  let host = document.createElement("div");
  host.className = "gp-chart-host";
  host.textContent = "Loading the chart library …";
  scroller.append(host);
  root.append(bar, failure, scroller);
  el.append(root);

  let result = null;
  let view = null;
  let shown = null;          // the payload on screen
  let held = {};             // the data sets that `view` holds; none while that is not sure
  let rows = {};             // their rows, of those that were replaced since the chart was embedded
  let running = false;
  let newSpec = true;
  let newData = false;
  let dead = false;

  async function embed() {
    const { vegaEmbed } = await shelf().ready;
    if (dead) return;
    const payload = model.get("payload");
    const spec = structuredClone(model.get("spec"));
    for (const param of spec.params ?? []) if (param.name === "dark") param.value = isDark();
    spec.datasets = {};
    for (const [name, columns] of Object.entries(payload.data ?? {})) spec.datasets[name] = toRows(columns);
    // The new picture is drawn out of sight and then exchanged, so that the page does not jump.
    const fresh = document.createElement("div");
    fresh.className = "gp-chart-host";
    fresh.style.cssText = "position:absolute;visibility:hidden";
    scroller.append(fresh);
    let made;
    try {
      made = await vegaEmbed(fresh, spec, {
        actions: false, renderer: model.get("renderer"), loader: REFUSE, mode: "vega-lite",
        config: model.get(isDark() ? "config_dark" : "config_light"), patch: guardBrushes,
      });
      // Vega's own 10,000 marks that have left the picture would be kept per data set.
      made.view.cleanThreshold = 200;
      for (const [name, value] of Object.entries(payload.signals ?? {})) made.view.signal(name, value);
      await made.view.resize().runAsync();
    } catch (error) {
      fresh.remove();
      throw error;
    }
    if (dead) { made.finalize(); return; }
    const [top, left] = [scroller.scrollTop, scroller.scrollLeft];
    result?.finalize();
    host.remove();
    fresh.style.cssText = "";
    host = fresh;
    [scroller.scrollTop, scroller.scrollLeft] = [top, left];
    result = made;
    view = made.view;
    held = { ...payload.data };
    rows = {};               // Vega-Lite has copied them
    chooser.embedded(spec, view);
    done(payload);
  }

  async function patch() {
    const payload = model.get("payload");
    const before = held;
    held = {};               // a change that fails half-way leaves nothing to rely on
    let frame = !(SIZING in (payload.data ?? {}));
    for (const [name, columns] of Object.entries(payload.data ?? {})) {
      if (JSON.stringify(columns) === JSON.stringify(before[name])) continue;
      if (rows[name] && sameShape(columns, before[name])) rewrite(view, name, columns, before[name], rows[name]);
      else view.data(name, rows[name] = toRows(columns));
      frame ||= name === SIZING;
    }
    for (const [name, value] of Object.entries(payload.signals ?? {})) view.signal(name, value);
    // Measuring every text anew takes most of the time of a change.
    if (frame) view.resize();
    await view.runAsync();
    held = { ...before, ...payload.data };
    done(payload);
  }

  function done(payload) {
    shown = payload;
    chooser.offer(payload.data);
    failure.textContent = "";
    root.dataset.rev = payload.rev ?? "";
    root.dataset.paints = String(1 + Number(root.dataset.paints ?? 0));
  }

  // One change is drawn at a time; what arrives meanwhile replaces what waited.
  async function pump() {
    if (running || dead) return;
    running = true;
    while (!dead && (newSpec || newData)) {
      try {
        if (newSpec || !view) { newSpec = newData = false; await embed(); }
        else { newData = false; await patch(); }
      } catch (error) {
        failure.textContent = "The chart could not be drawn: " + error.message;
      }
    }
    running = false;
  }

  async function save(format) {
    const name = (model.get("file_name") || "gpuplan").replace(/[^\p{L}\p{N}._-]+/gu, "_").slice(0, 80);
    if (format === "csv") {
      const url = URL.createObjectURL(new Blob(["\ufeff", toCsv(shown?.data ?? {})], { type: "text/csv" }));
      download(url, name + ".csv");
      setTimeout(() => URL.revokeObjectURL(url), 10000);
    } else if (view) {
      download(await picture(format), name + "." + format);
    }
  }

  // Nothing can be dragged in a saved picture, so its titles do not ask for it.
  async function picture(format) {
    const drawn = view;
    const asks = model.get("spec").params?.some((param) => param.name === "still");
    if (asks) await drawn.signal("still", true).runAsync();
    try {
      return await drawn.toImageURL(format, format === "png" ? 2 : 1);
    } finally {
      if (asks && drawn === view) await drawn.signal("still", false).runAsync();
    }
  }

  for (const format of ["png", "svg", "csv"]) {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "gp-button gp-save-" + format;
    button.textContent = format.toUpperCase();
    const what = format === "csv" ? "the numbers on screen" : "the picture on screen";
    button.title = `Save ${what} as ${format.toUpperCase()}`;
    button.setAttribute("aria-label", button.title);
    button.addEventListener("click", () => {
      save(format).catch((error) => { failure.textContent = "Not saved: " + error.message; });
    });
    bar.append(button);
  }

  function put(place, text) {
    if (place.textContent !== text) place.textContent = text;
  }

  function marks() {
    const old = model.get("old");
    const busy = model.get("busy");
    root.classList.toggle("gp-old", old);
    root.classList.toggle("gp-busy", busy);
    root.setAttribute("aria-busy", String(busy));
    put(note, old ? model.get("note") : model.get("status"));
    put(working, busy && !old ? "Computing …" : "");
    root.setAttribute("aria-label", (old ? model.get("note") + ". " : "") + model.get("label"));
  }

  // The page says how wide it is; what is drawn for that width comes back as a new specification.
  let started = false;
  let waiting = 0;
  function measure() {
    const width = Math.floor(root.clientWidth / 20) * 20;
    if (width < 100 || Math.abs(width - model.get("room")) < 40) return false;
    model.set("room", width);
    model.save_changes();
    return true;
  }
  function start() {
    if (started || dead) return;
    started = true;
    const asked = measure() && model.get("adapts");
    waiting = setTimeout(() => { waiting = 0; pump(); }, asked ? 600 : 0);
  }
  const sizes = new ResizeObserver(() => {
    if (root.clientWidth < 100) return;
    if (!started) start();
    else if (!waiting) measure();
  });

  const onSpec = () => {
    newSpec = true;
    if (!started) return;
    clearTimeout(waiting);
    waiting = 0;
    pump();
  };
  const onData = () => { newData = true; if (started && !waiting) pump(); };
  const events = [
    ["change:spec", onSpec], ["change:config_light", onSpec], ["change:config_dark", onSpec],
    ["change:payload", onData],
    ["change:old", marks], ["change:busy", marks], ["change:note", marks], ["change:label", marks],
    ["change:status", marks],
  ];
  for (const [name, handler] of events) model.on(name, handler);
  let dark = isDark();
  const theme = new MutationObserver(() => {
    if (isDark() !== dark) { dark = isDark(); onSpec(); }
  });
  theme.observe(document.body, { attributes: true, attributeFilter: ["data-jp-theme-light"] });
  const patience = setTimeout(() => {
    if (!view) failure.textContent = "The chart library has not arrived; run the cell again.";
  }, 30000);
  marks();
  sizes.observe(root);
  const late = setTimeout(start, 500);         // a page that is not laid out yet is drawn all the same
  return () => {
    dead = true;
    clearTimeout(patience);
    clearTimeout(waiting);
    clearTimeout(late);
    sizes.disconnect();
    theme.disconnect();
    for (const [name, handler] of events) model.off(name, handler);
    result?.finalize();
    view = result = shown = null;
    root.remove();
  };
}

export default { render };
