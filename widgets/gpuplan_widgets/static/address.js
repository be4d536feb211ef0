// Keeps the address of the page in step with what the explorer shows, and copies it.

const REST_MS = 400;

function render({ model, el }) {
  const root = document.createElement("div");
  root.className = "gp-actions gp-address";
  const button = document.createElement("button");
  button.type = "button";
  button.className = "gp-button gp-copy-link";
  button.textContent = "Copy link";
  button.title = "An address that shows somebody else what you see now";
  const copied = document.createElement("span");
  copied.className = "gp-actions-said";
  copied.setAttribute("role", "status");
  const said = document.createElement("div");
  said.className = "gp-message gp-address-said";
  said.setAttribute("role", "status");
  root.append(button, copied);
  el.append(root, said);

  let timer = 0;
  let wanted = false;

  function show() {
    const query = model.get("query");
    history.replaceState(history.state, "", location.pathname + (query ? `?${query}` : "") + location.hash);
    said.textContent = model.get("said");
  }
  const ask = () => { clearTimeout(timer); model.send({ do: "tell" }); };
  const moved = () => { clearTimeout(timer); timer = setTimeout(ask, REST_MS); copied.textContent = ""; };

  async function copy() {
    wanted = false;
    if (!model.get("query")) {
      copied.textContent = "There is nothing to copy.";
      return;
    }
    try {
      await navigator.clipboard.writeText(location.href);   // absent on pages that are neither https nor local
      copied.textContent = "The link is copied.";
    } catch {
      copied.textContent = "The browser does not allow copying; the address above is the link.";
    }
  }
  const told = () => {
    if (model.get("told") < model.get("rev")) return;
    show();
    if (wanted) copy();
  };
  button.addEventListener("click", () => {
    if (model.get("told") >= model.get("rev")) { copy(); return; }
    wanted = true;
    ask();
  });
  model.on("change:rev", moved);
  model.on("change:told change:query change:said", told);
  show();
  return () => {
    clearTimeout(timer);
    model.off("change:rev", moved);
    model.off("change:told change:query change:said", told);
    root.remove();
    said.remove();
  };
}

export default { render };
