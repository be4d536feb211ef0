// A question with fields, a button, and a place for what is said to the answer. Python judges; the page shows.

function labelled(tag, text, className) {
  const node = document.createElement(tag);
  node.textContent = text;
  if (className) node.className = className;
  return node;
}

function render({ model, el }) {
  const root = document.createElement("form");
  root.className = "gp-exercise";
  root.noValidate = true;
  root.dataset.lmSuppressShortcuts = "true";
  root.setAttribute("aria-label", `${model.get("heading")} ${model.get("number")}`);

  const group = document.createElement("fieldset");
  const legend = document.createElement("legend");
  legend.append(
    labelled("span", `${model.get("heading")} ${model.get("number")}`, "gp-exercise-number"),
    labelled("span", model.get("question"), "gp-exercise-question"),
  );
  group.append(legend);

  const name = `gp-${Math.random().toString(36).slice(2)}`;
  const inputs = model.get("fields").map(({ label, unit, option }, place) => {
    const row = document.createElement("label");
    row.className = "gp-exercise-field";
    const input = document.createElement("input");
    if (option) {
      input.type = "radio";
      input.name = name;
      input.value = label;
      row.append(input, labelled("span", label));
    } else {
      input.type = "text";
      input.inputMode = "decimal";
      input.autocomplete = "off";
      input.maxLength = 80;
      input.size = 12;
      row.append(labelled("span", label), input);
      if (unit) row.append(labelled("span", unit, "gp-exercise-unit"));
    }
    input.dataset.place = String(place);
    group.append(row);
    return input;
  });
  const button = labelled("button", model.get("button"), "gp-button gp-exercise-check");
  button.type = "submit";
  group.append(button);

  const said = document.createElement("p");
  said.className = "gp-exercise-said";
  said.setAttribute("role", "status");        // polite: read out after what the person is doing
  root.append(group, said);
  el.append(root);

  const fill = () => {
    const given = model.get("given");
    inputs.forEach((input, place) => {
      if (input.type === "radio") input.checked = given[place] === input.value;
      else if (given[place] !== undefined && document.activeElement !== input) input.value = given[place];
    });
  };
  const show = () => {
    const verdict = model.get("verdict");
    root.dataset.verdict = verdict;
    root.dataset.replies = String(model.get("replies"));
    const [head, text] = model.get("reply");
    said.replaceChildren();
    if (head) said.append(labelled("strong", head), " ");
    said.append(text ?? "");
    const done = model.get("done");
    button.disabled = done;
    inputs.forEach((input) => { input.disabled = done; });
    fill();
  };
  root.addEventListener("submit", (event) => {
    event.preventDefault();
    if (button.disabled) return;
    const values = inputs.map((input) => (input.type === "radio" && !input.checked ? "" : input.value));
    said.replaceChildren("…");
    model.send({ answer: values });
  });
  // JupyterLab runs cells at Shift+Enter and the like; inside a field keys belong to the field.
  root.addEventListener("keydown", (event) => event.stopPropagation());
  model.on("change:replies", show);
  show();
  return () => {
    model.off("change:replies", show);
    root.remove();
  };
}

export default { render };
