// What a page of the app does beside its widgets: progress, dark mode, and a way back when its computation has ended.
(() => {
  const base = document.currentScript.dataset.base;
  let kernel = null;
  let told = false;
  const dark = matchMedia("(prefers-color-scheme: dark)");

  function theme() {
    const set = () => {
      document.body.dataset.jpThemeLight = dark.matches ? "false" : "true";
      document.body.dataset.jpThemeName = dark.matches ? "JupyterLab Dark" : "JupyterLab Light";
    };
    set();
    dark.addEventListener("change", set);
  }

  function progress(done, count) {
    const bar = document.querySelector("#gp-app-loading progress");
    if (!bar) return;
    document.querySelector("#gp-app-loading p").textContent =
      count > 1 ? `Computing, part ${done + 1} of ${count} …` : "Computing …";
    bar.max = count;
    bar.value = done;
  }

  function show() {
    document.getElementById("gp-app-loading")?.remove();
    document.getElementById("rendered_cells").style.visibility = "";
  }

  function stop(sentence, retry) {
    document.getElementById("gp-app-loading")?.remove();
    end(sentence);
    if (retry) setTimeout(() => location.reload(), 1000 * retry);
  }

  function end(sentence) {
    if (told) return;
    told = true;
    const box = document.getElementById("gp-app-ended");
    box.hidden = false;
    box.firstElementChild.textContent = sentence;
    box.querySelector("button").addEventListener("click", () => location.reload());
  }

  async function ask() {
    if (told || !kernel) return;
    try {
      const answer = await fetch(`${base}kernels/${kernel}`, { headers: { Accept: "application/json" } });
      if (!answer.ok) return;
      const { alive, why } = await answer.json();
      if (!alive) end(`The computation of this page has ended. ${why} What the controls say is kept in the address.`);
    } catch {
      end("The app cannot be reached at the moment.");
    }
  }

  function loaded(id) {
    kernel = id;
    window.voila_finish = show;
    window.themeLoaded = true;
    show();
    setInterval(ask, 15000);
    addEventListener("pagehide", () => {
      const form = new FormData();
      form.append("_xsrf", document.cookie.match(/(?:^|; )_xsrf=([^;]*)/)?.[1] ?? "");
      navigator.sendBeacon(`${base}kernels/${kernel}`, form);
    });
  }

  // The front end does not say when it has lost its kernel; its socket does.
  const Plain = WebSocket;
  window.WebSocket = class extends Plain {
    constructor(...given) {
      super(...given);
      this.addEventListener("close", () => setTimeout(ask, 300));
    }
  };

  window.gpuplanApp = { theme, progress, loaded, stop };
  window.voila_heartbeat = window.voila_process = () => {};
  window.voila_finish = () => {};
})();
