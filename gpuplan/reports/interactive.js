// The live part of an interactive page: two sliders over computed points, a table and two charts that follow.
const { vegaEmbed } = await globalThis[Symbol.for("gpuplan.vega")].ready;
const read = (id) => JSON.parse(document.getElementById(id).textContent);
const grid = read("grid"), configs = read("chart-configs"), spec = read("grid-chart");
const dark = matchMedia("(prefers-color-scheme: dark)");
const narrow = matchMedia("(max-width: 700px)");
const byId = (id) => document.getElementById(id);
const at = { penalty: byId("penalty"), gpus: byId("gpus"), figure: byId("figure") };
const share = (figure) => grid.units[figure].startsWith("share");

// A computed figure, as a number and as people read it (texts are made where figures are computed).
function cell(penalty, gpus, policy, figure) {
  const at = grid.figures.indexOf(figure);
  return { value: grid.values[penalty][gpus][policy][at], says: grid.texts[penalty][gpus][policy][at] };
}

// Only what was computed is drawn: a mark for every point, nothing between two of them.
function rows() {
  const [p, g, figure] = [Number(at.penalty.value), Number(at.gpus.value), at.figure.value];
  const scale = share(figure) ? 100 : 1;
  const row = (x, here, { value, says }, policy) =>
    value === null ? [] : [{ x, here, policy, value: scale * value, says }];
  const over = (stops, now, pick) => stops.flatMap((x, i) => grid.policies.flatMap(
    (policy, k) => row(x, i === now, pick(i, k), policy)));
  return {
    over_penalty: over(grid.penalties, p, (i, k) => cell(i, g, k, figure)),
    over_gpus: over(grid.gpus, g, (i, k) => cell(p, i, k, figure)),
  };
}

function table() {
  const [p, g] = [Number(at.penalty.value), Number(at.gpus.value)];
  byId("penalty-now").textContent = String(grid.penalties[p]);
  byId("gpus-now").textContent = String(grid.gpus[g]);
  at.penalty.setAttribute("aria-valuetext", `penalty ${grid.penalties[p]}`);
  at.gpus.setAttribute("aria-valuetext", `${grid.gpus[g]} GPUs`);
  for (const one of document.querySelectorAll("td[data-figure]"))
    one.textContent = cell(p, g, Number(one.dataset.policy), one.dataset.figure).says;
  const own = grid.penalties[p] === grid.own.penalty && grid.gpus[g] === grid.own.gpus;
  byId("state").textContent =
    `Computed for ${grid.gpus[g]} GPUs and a penalty of ${grid.penalties[p]}${own ? ": the scenario as it is" : ""}.`;
}

let view = null;
async function draw() {
  const mode = dark.matches ? "dark" : "light";
  const whole = structuredClone(spec);
  if (narrow.matches) {
    whole.vconcat = whole.hconcat.map((panel) => ({ ...panel, width: 230 }));
    delete whole.hconcat;
  }
  whole.datasets = rows();
  whole.config = configs[mode];
  const inner = document.createElement("div");
  byId("grid-picture").replaceChildren(inner);
  const made = await vegaEmbed(inner, whole,
    { mode: "vega-lite", renderer: "svg", actions: false, logLevel: 1, tooltip: { theme: mode } });
  view = made.view;
}

async function follow() {
  table();
  if (view === null) return;
  for (const [name, found] of Object.entries(rows())) view.data(name, found);
  await view.runAsync();
  document.documentElement.dataset.rev = String(1 + Number(document.documentElement.dataset.rev ?? 0));
}

for (const control of Object.values(at)) control.addEventListener("input", follow);
dark.addEventListener("change", draw);
narrow.addEventListener("change", draw);
table();
await draw();
document.documentElement.dataset.charts = "drawn";
