// What a page of the app does beside its widgets: progress, dark mode, and a way back when its computation has ended.
(() => {
  const { base, upload } = document.currentScript.dataset;
  let kernel = null;
  let told = false;
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const loading = () => document.getElementById("gp-app-loading");

  function theme() {
    const set = () => {
      document.body.dataset.jpThemeLight = dark.matches ? "false" : "true";
      document.body.dataset.jpThemeName = dark.matches ? "JupyterLab Dark" : "JupyterLab Light";
    };
    set();
    dark.addEventListener("change", set);
  }

  function say(words, done, count) {
    const box = loading();
    if (!box) return;
    box.querySelector("p").textContent = words;
    const bar = box.querySelector("progress");
    bar.max = count;
    bar.value = done;
  }

  function progress(done, count) {
    say(count > 1 ? `Computing the live parts of this page (part ${done + 1} of ${count}) …` : "Computing …", done + 1, count + 2);
  }

  function end(sentence) {
    if (told) return;
    told = true;
    loading()?.remove();
    const box = document.getElementById("gp-app-ended");
    box.hidden = false;
    box.firstElementChild.textContent = sentence;
    box.querySelector("button").addEventListener("click", () => location.reload());
  }

  function stop(sentence, retry) {
    end(retry ? `${sentence} This page tries again by itself in ${retry} seconds.` : sentence);
    if (retry) setTimeout(() => location.reload(), 1000 * retry);
  }

  // The front end does not say when it has lost its kernel; its socket does, and the server knows why.
  async function ask() {
    if (told || !kernel) return;
    try {
      const answer = await fetch(`${base}kernels/${kernel}`);
      if (!answer.ok) return;
      const { alive, why } = await answer.json();
      if (!alive) end(`The computation behind this page has ended. ${why} The address keeps what the controls say.`);
    } catch {
      end("The app cannot be reached at the moment.");
    }
  }

  const Plain = WebSocket;
  window.WebSocket = class extends Plain {
    constructor(...given) {
      super(...given);
      this.addEventListener("close", () => setTimeout(ask, 300));
    }
  };

  // A file that is too large is not even read: nothing of it is sent. Files chosen together are read in one go.
  const most = Number(upload) * 1e6;
  const read = FileReader.prototype.readAsArrayBuffer;
  let chosen = 0;
  FileReader.prototype.readAsArrayBuffer = function (blob) {
    if (!chosen) setTimeout(() => { chosen = 0; });
    chosen += blob.size;
    const fold = document.querySelector(".gp-file");
    fold?.parentElement.querySelector(".gp-app-upload")?.remove();
    if (chosen <= most) {
      read.call(this, blob);
      return;
    }
    const box = document.createElement("div");
    box.className = "gp-app-said gp-app-upload";
    box.setAttribute("role", "alert");
    box.textContent = `This is too large: at most ${upload} MB may be uploaded here, and these are ` +
      `${(chosen / 1e6).toFixed(1)} MB. Nothing was sent.`;
    fold?.after(box);
  };

  function written(id) {
    kernel = id;
    say("Drawing …", 2, 3);
    const drawn = new MutationObserver(() => {
      if (!document.querySelector(".jupyter-widgets")) return;
      drawn.disconnect();
      loading()?.remove();
    });
    drawn.observe(document.body, { childList: true, subtree: true });
    setInterval(ask, 15000);
    // The front end says farewell before a page is left; phones tell only that it was hidden for good.
    addEventListener("pagehide", () => {
      const form = new FormData();
      form.append("_xsrf", document.cookie.match(/(?:^|; )_xsrf=([^;]*)/)?.[1] ?? "");
      navigator.sendBeacon(`${base}kernels/${kernel}`, form);
    });
  }

  window.gpuplanApp = { theme, progress, written, stop };
})();
