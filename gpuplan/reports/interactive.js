// The live part of an interactive page: controls over computed points; a picture, a table and two charts that follow.
const { vegaEmbed } = await globalThis[Symbol.for("gpuplan.vega")].ready;
const byId = (id) => document.getElementById(id);
const read = (id) => JSON.parse(byId(id).textContent);
const grid = read("grid"), pictures = read("grid-pictures"), configs = read("chart-configs");
const dark = matchMedia("(prefers-color-scheme: dark)");
const sliders = grid.axes.map((axis) => byId(axis.name));
const WIDTHS = { wide: 1000, medium: 660, narrow: 0 };
const SETTLED_MS = 350;

const stops = () => sliders.map((slider) => Number(slider.value));
const placeOf = ([first, second]) => first * grid.axes[1].values.length + second;
const said = ([first, second]) => `${grid.axes[1].said[second]} and ${grid.axes[0].said[first]}`;
const chosen = (id, otherwise) => byId(id) ? Number(byId(id).value) : otherwise;

// A computed figure, as a number and as people read it (texts are made where figures are computed).
function cell(place, policy, figure) {
  const found = grid.at[place];
  if (typeof found === "string") return { value: null, says: "–" };
  const [values, texts] = grid.rows[found[policy]];
  return { value: values[figure], says: grid.texts[texts[figure]] };
}

// ---------------------------------------------------------------- data of the charts

// Only what was computed is drawn: a mark for every point, nothing between two of them.
function figureData() {
  const here = stops(), figure = Number(byId("figure").value);
  const scale = grid.figures[figure].unit.startsWith("share") ? 100 : 1;
  const over = (number) => grid.axes[number].values.flatMap((x, stop) => grid.policies.flatMap((policy, k) => {
    const at = here.map((one, i) => i === number ? stop : one);
    const { value, says } = cell(placeOf(at), k, figure);
    return value === null ? []
      : [{ x, stop, axis: number, here: stop === here[number], policy, value: scale * value, says,
        where: grid.axes[number].said[stop] }];
  }));
  return { over_0: over(0), over_1: over(1) };
}

const column = (number) => {
  const found = pictures.columns[number];
  if (Array.isArray(found)) return found;
  return found.t ? found.t.map((text) => pictures.texts[text]) : new Array(found.n).fill(found.c);
};

function rowsOf(name, table) {
  const names = pictures.names[name], columns = pictures.tables[table].map(column);
  return (columns[0] ?? []).map((_, i) => Object.fromEntries(names.map((key, k) => [key, columns[k][i]])));
}

// The data sets of the picture at the chosen point; null where it is not in the file.
function pictureData() {
  const found = pictures.at[placeOf(stops())];
  if (!found) return null;
  const [shared, own] = found, sets = {};
  pictures.shared.forEach((name, k) => { sets[name] = rowsOf(name, shared[k]); });
  if (pictures.sided) {
    const sides = { left: chosen("left", 0), right: chosen("right", 0) };
    for (const [side, policy] of Object.entries(sides))
      pictures.own.forEach((name, k) => { sets[`${side}_${name}`] = rowsOf(name, own[policy][k]); });
  } else pictures.own.forEach((name, k) => { sets[name] = own.flatMap((tables) => rowsOf(name, tables[k])); });
  return sets;
}

const pictureSignals = () => byId("chosen") ? { chosen: pictures.choices[chosen("chosen", 0)] } : {};

// ---------------------------------------------------------------- tables and words

function cells(tag, texts) {
  return texts.map((text) => {
    const made = document.createElement(tag);
    made.textContent = text;
    if (tag === "th") made.scope = "col";
    return made;
  });
}

function tableOf(caption, titles, rows, most = 300) {
  const table = document.createElement("table");
  table.createCaption().textContent =
    rows.length > most ? `${caption} (the first ${most} of ${rows.length} rows)` : caption;
  table.createTHead().insertRow().append(...cells("th", titles));
  const body = table.createTBody();
  for (const row of rows.slice(0, most)) body.insertRow().append(...cells("td", row.map((v) => v ?? "–")));
  const wide = document.createElement("div");
  wide.className = "wide";
  wide.tabIndex = 0;
  wide.setAttribute("role", "region");
  wide.setAttribute("aria-label", caption);
  wide.append(table);
  return wide;
}

function pictureTables() {
  const sets = byId("picture-details").open ? pictureData() : null;
  byId("picture-tables").replaceChildren(...(sets === null ? [] : pictures.tables_of.map(
    ({ data, caption, columns }) => tableOf(caption, Object.values(columns),
      sets[data].map((row) => Object.keys(columns).map((key) => row[key]))))));
}

function figureTables() {
  const sets = byId("grid-details").open ? figureData() : {};
  const name = grid.figures[Number(byId("figure").value)].name;
  byId("grid-tables").replaceChildren(...Object.values(sets).map((rows, number) =>
    tableOf(`${name}, ${grid.axes[number].short}`, ["at", "policy", name],
      rows.map(({ where, policy, says }) => [where, policy, says]))));
}

let announcing = 0;
function words() {
  const at = stops(), place = placeOf(at);
  grid.axes.forEach((axis, k) => {
    byId(`${axis.name}-now`).textContent = axis.said[at[k]];
    sliders[k].setAttribute("aria-valuetext", axis.said[at[k]]);
  });
  for (const one of document.querySelectorAll("#figures td[data-figure]"))
    one.textContent = cell(place, Number(one.dataset.policy), Number(one.dataset.figure)).says;
  const own = grid.axes.every((axis, k) => axis.own === at[k]);
  const refused = typeof grid.at[place] === "string" ? grid.at[place] : "";
  const text = refused ? `Not computed for ${said(at)}: ${refused}`
    : `Computed for ${said(at)}${own ? ": the scenario as it is" : ""}.`;
  byId("state").textContent = text;
  byId("caption-now").textContent = said(at);
  byId("back").disabled = own;
  const figure = grid.figures[Number(byId("figure").value)];
  byId("meaning").textContent = `${figure.unit}. ${figure.means}`;
  // Read aloud once the controls rest, not at every stop of a drag.
  clearTimeout(announcing);
  announcing = setTimeout(() => {
    const now = Number(byId("figure").value);
    const each = grid.policies.map((policy, k) => `${policy} ${cell(place, k, now).says}`);
    byId("announced").textContent = `${text} ${figure.name}: ${each.join(", ")}.`;
  }, SETTLED_MS);
}

// ---------------------------------------------------------------- charts

// One of the two charts: embedded once per layout and mode, then only given new data; the newest state wins.
class Chart {
  constructor(host, paper, specs, data, signals, click) {
    Object.assign(this, { host: byId(host), paper: byId(paper), specs, data, signals, click });
    this.view = null;
    this.looks = "";
    this.running = false;
    this.again = false;
  }

  get layout() {
    const room = this.host.parentElement.clientWidth;
    return Object.keys(WIDTHS).find((name) => room >= WIDTHS[name] && name in this.specs);
  }

  async follow() {
    this.again = true;
    if (this.running) return;
    this.running = true;
    try {
      while (this.again) {
        this.again = false;
        await this.show();
      }
    } catch (error) {
      console.error(error);
      this.host.textContent = `The chart could not be drawn: ${error.message}`;
    } finally {
      this.running = false;
    }
  }

  async show() {
    const sets = this.data(), mode = dark.matches ? "dark" : "light";
    const looks = `${this.layout} ${mode}`;
    this.host.hidden = sets === null;
    if (sets === null) return;
    if (this.view === null || looks !== this.looks) {
      const made = await this.embed(this.host, sets, mode);
      this.view?.finalize();
      this.view = made;
      this.looks = looks;
      this.view.addEventListener("click", (_, item) => this.click(item?.datum ?? {}));
    } else {
      for (const [name, value] of Object.entries(this.signals())) this.view.signal(name, value);
      for (const [name, rows] of Object.entries(sets)) this.view.data(name, rows);
      await this.view.resize().runAsync();
    }
    this.host.dataset.drawn = looks;
    // Paper is white, whatever the screen is.
    clearTimeout(this.printing);
    this.printing = setTimeout(() => this.forPaper(), SETTLED_MS);
  }

  async forPaper() {
    const sets = dark.matches ? this.data() : null;
    if (sets === null) this.paper.replaceChildren();
    else await this.embed(this.paper, sets, "light");
  }

  async embed(host, sets, mode) {
    const spec = structuredClone(this.specs[this.layout]);
    const values = { ...this.signals(), dark: mode === "dark" };
    for (const param of spec.params ?? []) if (param.name in values) param.value = values[param.name];
    spec.datasets = sets;
    spec.config = configs[mode];
    const inner = document.createElement("div"); // Vega gives it a style of its own
    host.replaceChildren(inner);
    const { view } = await vegaEmbed(inner, spec,
      { mode: "vega-lite", renderer: "svg", actions: false, logLevel: 1, tooltip: { theme: mode } });
    return view;
  }
}

const picture = new Chart("picture", "picture-paper", read("picture-charts"), pictureData, pictureSignals,
  ({ team }) => choose("chosen", pictures.choices.indexOf(team)));
const charts = new Chart("grid-picture", "grid-paper", read("grid-charts"), figureData, () => ({}),
  ({ axis, stop }) => choose(grid.axes[axis]?.name, stop));

function choose(id, value) {
  const control = byId(id);
  if (!control || value === undefined || value < 0) return;
  control.value = String(value);
  control.dispatchEvent(new Event("input"));
}

function noPicture() {
  const place = placeOf(stops()), refused = typeof grid.at[place] === "string";
  byId("no-picture").hidden = Boolean(pictures.at[place]);
  byId("no-picture").textContent = refused ? "There is no picture: this point could not be computed."
    : "The picture of this point is left out; its figures are below.";
}

async function follow() {
  words();
  noPicture();
  pictureTables();
  figureTables();
  await Promise.all([picture.follow(), charts.follow()]);
  document.documentElement.dataset.rev = String(1 + Number(document.documentElement.dataset.rev ?? 0));
}

// ---------------------------------------------------------------- start

byId("figure").append(...grid.figures.map(({ name }, k) => new Option(name, String(k), k === grid.first, k === grid.first)));
for (const control of document.querySelectorAll("main input, main select")) control.addEventListener("input", follow);
byId("back").addEventListener("click", () => {
  grid.axes.forEach((axis, k) => { sliders[k].value = String(axis.own); });
  sliders[0].focus(); // the button is of no use now, and the focus must not be lost
  follow();
});
byId("picture-details").addEventListener("toggle", pictureTables);
byId("grid-details").addEventListener("toggle", figureTables);
const redraw = () => { picture.follow(); charts.follow(); };
dark.addEventListener("change", redraw);
let resizing = 0;
addEventListener("resize", () => { clearTimeout(resizing); resizing = setTimeout(redraw, 150); });
await follow();
document.documentElement.dataset.charts = "drawn";
