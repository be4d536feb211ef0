// Draws the charts of a report; runs behind Vega in one module, without any request.
const { vegaEmbed } = await globalThis[Symbol.for("gpuplan.vega")].ready;
const configs = JSON.parse(document.getElementById("chart-configs").textContent);
const dark = matchMedia("(prefers-color-scheme: dark)");
const narrow = matchMedia("(max-width: 700px)");

function specOf(figure, shape, mode) {
  const found = JSON.parse(figure.querySelector(".chart-data").textContent);
  const spec = found[shape];
  spec.datasets = shape === "narrow" ? { ...found.datasets, ...found.narrowDatasets } : found.datasets;
  spec.config = { ...configs[mode], ...found.config };
  for (const param of spec.params ?? []) if (param.name === "dark") param.value = mode === "dark";
  return spec;
}

async function draw(figure, host, shape, mode) {
  const quiet = { actions: false, logLevel: 1 }; // no menu, errors only
  const options = { mode: "vega-lite", renderer: "svg", tooltip: { theme: mode }, ...quiet };
  const inner = document.createElement("div"); // Vega gives it a style of its own
  host.replaceChildren(inner);
  await vegaEmbed(inner, specOf(figure, shape, mode), options);
}

let turn = 0;
async function drawAll() {
  const mine = ++turn;
  const shape = narrow.matches ? "narrow" : "wide";
  const mode = dark.matches ? "dark" : "light";
  for (const figure of document.querySelectorAll("figure.chart")) {
    if (mine !== turn) return;
    try {
      await draw(figure, figure.querySelector(".on-screen"), shape, mode);
      // Paper is white, whatever the screen is.
      const paper = figure.querySelector(".on-paper");
      if (mode === "dark") await draw(figure, paper, shape, "light");
      else paper.replaceChildren();
      figure.dataset.drawn = `${shape} ${mode}`;
    } catch (error) {
      console.error(error);
      figure.dataset.drawn = "not";
      figure.querySelector("details").open = true;
    }
  }
  document.documentElement.dataset.charts = "drawn";
}

dark.addEventListener("change", drawAll);
narrow.addEventListener("change", drawAll);
await drawAll();
