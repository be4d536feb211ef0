// Buttons that copy or save what Python hands over; access.js, which comes before, mends the explorer around them.

function download(text, name) {
  const url = URL.createObjectURL(new Blob(["\ufeff", text], { type: "text/csv" }));
  const a = document.createElement("a");
  a.href = url;
  a.download = name;
  a.click();
  setTimeout(() => URL.revokeObjectURL(url), 10000);
}

async function copy(text, box) {
  try {
    await navigator.clipboard.writeText(text);      // absent on pages that are neither https nor local
    return true;
  } catch {
    box.focus();
    box.select();
    return document.execCommand("copy");
  }
}

function render({ model, el }) {
  const root = document.createElement("div");
  root.className = "gp-actions";
  root.dataset.lmSuppressShortcuts = "true";
  const said = document.createElement("span");
  said.className = "gp-actions-said";
  said.setAttribute("role", "status");
  for (const { id, label, title } of model.get("buttons")) {
    const button = document.createElement("button");
    button.type = "button";
    button.className = `gp-button gp-${id}`;
    button.textContent = label;
    button.title = title;
    button.addEventListener("click", () => { said.textContent = "…"; model.send({ do: id }); });
    root.append(button);
  }
  const details = document.createElement("details");
  details.className = "gp-copied";
  details.hidden = true;
  const summary = document.createElement("summary");
  summary.textContent = "What was copied";
  const box = document.createElement("textarea");
  box.readOnly = true;
  box.rows = 8;
  box.className = "gp-copied-text";
  box.setAttribute("aria-label", "What was copied");
  details.append(summary, box);
  root.append(said, details);
  el.append(root);

  const heard = async (message) => {
    if (message.say) said.textContent = message.say;
    if (message.download) download(message.download.text, message.download.name);
    if (message.copy === undefined) return;
    box.value = message.copy;
    details.hidden = false;
    if (!await copy(message.copy, box)) {
      details.open = true;
      said.textContent = "The browser does not allow copying; the text is selected below.";
    }
  };
  model.on("msg:custom", heard);

  const near = () => el.closest(".gp-explorer");
  function band() {
    const [from, to] = model.get("band");
    near()?.style.setProperty("--gp-band-from", from + "%");
    near()?.style.setProperty("--gp-band-to", to + "%");
  }
  const timers = [0, 300, 1500].map((ms) => setTimeout(band, ms));
  model.on("change:band", band);
  const mute = accessible(el);
  return () => {
    timers.forEach(clearTimeout);
    mute();
    model.off("msg:custom", heard);
    model.off("change:band", band);
    root.remove();
  };
}

export default { render };
