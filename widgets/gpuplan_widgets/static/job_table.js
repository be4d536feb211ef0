// An editable table of batch jobs. Python owns the rows; this side sends what the person did.
const FIELDS = ["name", "kind", "gpus", "hours", "priority"];
const HEADS = {
  name: "Job", kind: "Kind", gpus: "GPUs", hours: "Hours", priority: "Priority", note: "Also", act: "Order",
};
const HINTS = {
  name: "any text, used once", gpus: "a power of two: 1, 2, 4, 8 …; ↑/↓ doubles and halves; 2-8: the policy chooses",
  hours: "hours, or text with a unit such as 90min; ↑/↓ one hour; for a range of GPUs the work in GPU-hours", priority: "larger is more important; ↑/↓ one",
  kind: "kind of work", note: "set in the scenario file", act: "order of arrival",
};
let serial = 0;

// What a cell shows while nobody edits it: hours with at most two decimals, less than one hour in minutes.
function brief(field, text) {
  if (field !== "hours" || !/^\d*\.\d{3,}$/.test(text)) return text;
  const hours = Number(text);
  if (hours >= 1) return String(+hours.toFixed(2));
  return hours > 0 ? `${+(hours * 60).toPrecision(3)} min` : text;
}

function node(tag, className, text) {
  const n = document.createElement(tag);
  if (className) n.className = className;
  if (text !== undefined) n.textContent = text;
  return n;
}

function render({ model, el }) {
  const prefix = "gp-jobs-" + ++serial;
  const root = node("div", "gp-jobs");
  root.dataset.lmSuppressShortcuts = "true";   // the notebook's one-letter commands stay away
  const scroller = node("div", "gp-jobs-scroll");
  const table = node("table", "gp-jobs-table");
  const caption = node("caption", "gp-jobs-caption");
  const head = node("thead");
  const headRow = node("tr");
  for (const field of [...FIELDS, "note", "act"]) {
    const th = node("th", "gp-jobs-head-" + field, HEADS[field]);
    th.scope = "col";
    th.title = HINTS[field];
    headRow.append(th);
  }
  head.append(headRow);
  const body = node("tbody");
  table.append(caption, head, body);
  scroller.append(table);
  const add = node("button", "gp-button gp-jobs-add", "Add a job");
  add.type = "button";
  const said = node("span", "gp-jobs-said");
  said.setAttribute("role", "status");
  const foot = node("div", "gp-jobs-foot");
  foot.append(add, said);
  const past = node("button", "gp-button gp-jobs-past", "Past the jobs");
  past.type = "button";
  past.addEventListener("click", () => add.focus());
  root.append(past, scroller, foot);
  el.append(root);

  const lines = new Map();      // row id -> { tr, inputs, messages, ... }
  let sent = model.get("seen");
  let focusNew = false;

  function send(type, more) {
    sent = Math.max(sent, model.get("seen")) + 1;   // another view of this table may have spoken
    model.send({ type, seq: sent, ...more });
  }

  function commit(input) {
    const line = lines.get(Number(input.dataset.id));
    const { field } = input.dataset;
    if (!line || input.value === line.row[field]) return;
    line.row = { ...line.row, [field]: input.value };
    send("edit", { id: line.row.id, field, value: input.value });
  }

  function nudge(input, up) {
    const field = input.dataset.field;
    const now = Number(input.value);
    if (!Number.isFinite(now) || input.value.trim() === "") return;
    let next = up ? now + 1 : now - 1;
    if (field === "gpus") next = up ? Math.max(1, now * 2) : Math.max(1, Math.floor(now / 2));
    if (next <= 0) return;
    input.value = String(+next.toFixed(3));
    commit(input);
  }

  function cell(line, field) {
    const td = node("td", "gp-jobs-" + field);
    let input;
    if (field === "kind") {
      input = node("select", "gp-cell");
      for (const kind of model.get("kinds")) {
        const option = node("option", "", kind);
        option.value = kind;
        input.append(option);
      }
    } else {
      input = node("input", "gp-cell");
      input.type = "text";
      input.autocomplete = "off";
      input.spellcheck = false;
      if (field !== "name") input.inputMode = "decimal";
      else { input.dir = "auto"; input.maxLength = 400; }
    }
    input.dataset.field = field;
    const message = node("div", "gp-cell-message gp-message");
    message.id = `${prefix}-${line.id}-${field}`;
    td.append(input, message);
    line.inputs[field] = input;
    line.messages[field] = message;
    return td;
  }

  function button(line, action, sign) {
    const b = node("button", `gp-button gp-jobs-${action}`, sign);
    b.type = "button";
    b.dataset.action = action;
    line.buttons[action] = b;
    return b;
  }

  function makeLine(id) {
    const line = { id, row: {}, tr: node("tr"), inputs: {}, messages: {}, buttons: {} };
    line.tr.dataset.id = id;
    for (const field of FIELDS) line.tr.append(cell(line, field));
    for (const input of Object.values(line.inputs)) input.dataset.id = id;
    line.note = node("td", "gp-jobs-note");
    line.noteText = node("span");
    line.messages[""] = node("div", "gp-cell-message gp-message");
    line.note.append(line.noteText, line.messages[""]);
    const act = node("td", "gp-jobs-act");
    act.append(button(line, "up", "↑"), button(line, "down", "↓"), button(line, "delete", "✕"));
    line.tr.append(line.note, act);
    return line;
  }

  function fill(line, row, place, count) {
    line.row = row;
    const name = row.name || "unnamed job";
    for (const field of FIELDS) {
      const input = line.inputs[field];
      const edited = input === document.activeElement;
      const text = edited ? row[field] : brief(field, row[field]);
      if (!(edited && input.dataset.typing) && input.value !== text) input.value = text;
      input.title = text === row[field] ? HINTS[field] : `exactly ${row[field]}; ${HINTS[field]}`;
      input.setAttribute("aria-label", `${HEADS[field]} of ${name}`);
    }
    line.noteText.textContent = row.note;
    line.buttons.up.setAttribute("aria-label", `Move ${name} up`);
    line.buttons.down.setAttribute("aria-label", `Move ${name} down`);
    line.buttons.delete.setAttribute("aria-label", `Delete ${name}`);
    line.buttons.up.disabled = place === 0;
    line.buttons.down.disabled = place === count - 1;
  }

  function load() {
    if (model.get("seen") < sent) return;    // a newer answer is on its way
    const rows = model.get("rows");
    const keep = new Set(rows.map((row) => row.id));
    const focused = document.activeElement;
    for (const [id, line] of lines) if (!keep.has(id)) { line.tr.remove(); lines.delete(id); }
    let made = null;
    rows.forEach((row, place) => {
      let line = lines.get(row.id);
      if (!line) { line = makeLine(row.id); lines.set(row.id, line); made = line; }
      if (body.children[place] !== line.tr) body.insertBefore(line.tr, body.children[place] ?? null);
      fill(line, row, place, rows.length);
    });
    const hidden = model.get("hidden");
    caption.textContent = `Batch jobs in order of arrival (${rows.length})`
      + (hidden ? `, and ${hidden} more that are planned but not listed` : "");
    if (focusNew && made) { made.inputs.name.focus(); made.inputs.name.select(); focusNew = false; }
    else if (focused && root.contains(focused) && focused !== document.activeElement) focused.focus();
    marks();
  }

  function marks() {
    const byCell = new Map(model.get("mistakes").map((m) => [`${m.id}/${m.field}`, m.text]));
    for (const [id, line] of lines) {
      for (const field of [...FIELDS, ""]) {
        const text = byCell.get(`${id}/${field}`) ?? "";
        const message = line.messages[field];
        if (message.textContent !== text) message.textContent = text;
        const input = line.inputs[field];
        if (!input) continue;
        if (text) {
          input.setAttribute("aria-invalid", "true");
          input.setAttribute("aria-describedby", message.id);
        } else {
          input.removeAttribute("aria-invalid");
          input.removeAttribute("aria-describedby");
        }
      }
    }
  }

  body.addEventListener("input", (event) => { event.target.dataset.typing = "1"; });
  body.addEventListener("change", (event) => { delete event.target.dataset.typing; commit(event.target); });
  // A cell that is edited shows the exact value, and shortens it again when it is left.
  body.addEventListener("focusin", ({ target }) => {
    const line = lines.get(Number(target.dataset?.id));
    const exact = line?.row[target.dataset.field];
    if (exact === undefined || target.value === exact) return;
    target.value = exact;
    target.select();     // as it was chosen before; typing replaces it
  });
  body.addEventListener("focusout", ({ target }) => {
    if (!target.dataset) return;
    delete target.dataset.typing;
    const line = lines.get(Number(target.dataset.id));
    const { field } = target.dataset;
    if (line && field && target.value === line.row[field]) target.value = brief(field, target.value);
  });
  body.addEventListener("keydown", (event) => {
    const input = event.target;
    const line = lines.get(Number(input.dataset?.id));
    if (!line || !input.dataset.field) return;
    const vertical = event.key === "ArrowUp" || event.key === "ArrowDown";
    if (vertical && event.altKey) {
      event.preventDefault();
      act(line, event.key === "ArrowUp" ? "up" : "down");
    } else if (vertical && ["gpus", "hours", "priority"].includes(input.dataset.field)) {
      event.preventDefault();
      nudge(input, event.key === "ArrowUp");
    } else if (event.key === "Enter" && input.tagName === "INPUT") {
      delete input.dataset.typing;
      commit(input);
    } else if (event.key === "Escape" && input.tagName === "INPUT") {
      input.value = line.row[input.dataset.field];
      delete input.dataset.typing;
    }
  });
  root.addEventListener("keydown", (event) => {
    if (!(event.ctrlKey || event.metaKey || event.shiftKey)) event.stopPropagation();
  });

  function act(line, action) {
    const name = line.row.name || "unnamed job";
    if (action === "delete") {
      const next = line.tr.nextElementSibling ?? line.tr.previousElementSibling;
      send("delete", { id: line.id });
      (next?.querySelector(".gp-jobs-delete") ?? add).focus();
      said.textContent = `${name} deleted`;
    } else {
      send("move", { id: line.id, by: action === "up" ? -1 : 1 });
      said.textContent = `${name} moved ${action}`;
    }
  }
  body.addEventListener("click", (event) => {
    const b = event.target.closest("button");
    if (b) act(lines.get(Number(b.closest("tr").dataset.id)), b.dataset.action);
  });
  add.addEventListener("click", () => { focusNew = true; send("add", {}); said.textContent = "a job added"; });

  const onRows = () => load();
  model.on("change:rows", onRows);
  model.on("change:seen", onRows);
  model.on("change:mistakes", marks);
  load();
  return () => {
    model.off("change:rows", onRows);
    model.off("change:seen", onRows);
    model.off("change:mistakes", marks);
    root.remove();
  };
}

export default { render };
