"""How fast the app answers: the first picture, twenty people who move a slider at once, memory of each.

Nineteen of the twenty are sockets that say what a browser says when an arrow key moves the slider (the time to the new
figures is taken); the twentieth is a page in Chromium (the time from the key to the repainted chart).
Twenty Chromium pages on the machine of the server would measure Chromium.
"""

import html
import re
import sys
import threading
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import psutil
from app.visitor import Visitor, heard, message

import gpuplan as gp
from browser.app_server import App
from browser.screen import Screen, _percent
from browser.timing import Bench, Stopwatch, Table, percentile, run

ADDRESS = "explore/allocation?scenario=two-apps"

USERS, MOVES, REST_S = 20, 20, 1.0

FIRST_S, ANSWER_S = 3.0, 1.0

#: First pages that are opened; the median counts.
OPENED = 3


def first_picture(table: Table, bench: Bench, app: App) -> None:
    """From the address to the first chart, in a browser that has nothing of the app, and in one that has its files."""
    for name, fresh in (("a browser's first visit", True), ("files of the app at hand", False)):
        took = []
        page = bench.visitor()
        page.goto(f"{app.url}/{ADDRESS}")
        Screen(page).ready()
        for _ in range(OPENED):
            page = bench.visitor() if fresh else page
            page.goto("about:blank")
            began = time.perf_counter()
            page.goto(f"{app.url}/{ADDRESS}", wait_until="commit")
            screen = Screen(page).ready()
            took.append(time.perf_counter() - began)
            screen.await_scenario(gp.load("two-apps"))
        table.seconds(f"app: first picture, {name}, median of {OPENED}", percentile(took, 0.5), FIRST_S)


class Mover(threading.Thread):
    """Somebody who moves the penalty slider of their own page, without a browser."""

    def __init__(
        self, app: App, number: int, gate: threading.Barrier, moves: list[tuple[float, str]]
    ) -> None:
        super().__init__(daemon=True)
        self.visitor, self.gate, self.number = Visitor(app.url), gate, number
        self.took: list[float] = []
        self.error = "did not end"
        self.moves = moves
        kernel = self.visitor.open(ADDRESS)
        self.socket = self.visitor.socket(kernel)
        self.slider = self._slider()

    def _slider(self) -> str:
        """The slider's number among the widgets."""
        self.socket.send_binary(message("kernel_info_request", {}))
        while heard(self.socket.recv())[0]["msg_type"] != "kernel_info_reply":
            pass  # before that, the server does not pass on what widgets say
        comm = "c" * 32
        opened = {"comm_id": comm, "target_name": "jupyter.widget.control", "data": {}}
        self.socket.send_binary(message("comm_open", opened))
        self.socket.send_binary(message("comm_msg", {"comm_id": comm, "data": {"method": "request_states"}}))
        while True:
            header, _, content = heard(self.socket.recv())
            if header["msg_type"] == "comm_msg" and "states" in content["data"]:
                break
        states: dict[str, Any] = content["data"]["states"]
        found = [k for k, one in states.items() if one["state"].get("description", "").startswith("Penalty")]
        assert len(found) == 1
        return found[0]

    def run(self) -> None:
        try:
            self.gate.wait(120)
            time.sleep(REST_S * self.number / USERS)
            for move in range(MOVES):
                value, words = self.moves[(move + self.number) % len(self.moves)]
                began = time.perf_counter()
                data = {"method": "update", "state": {"value": value}, "buffer_paths": []}
                self.socket.send_binary(message("comm_msg", {"comm_id": self.slider, "data": data}))
                while words not in _plain(str(heard(self.socket.recv())[2])):
                    pass  # a slow answer comes from a thread, as no reply to this message
                self.took.append(time.perf_counter() - began)
                time.sleep(max(0.0, REST_S - self.took[-1]))
            self.error = ""
        except Exception as error:
            self.error = f"{type(error).__name__}: {error}"


def _plain(text: str) -> str:
    """HTML as a person reads it, with plain blanks."""
    return html.unescape(re.sub(r"<[^>]*>", "", text)).replace("\xa0", " ")


def distinct_moves() -> list[tuple[float, str]]:
    """Penalties that bring different figures, and how the page says what is computed here."""
    day = gp.load("two-apps")
    found: dict[str, float] = {}
    for step in range(1, 80):
        changed = day.replace({"objective.shortfall_penalty": 0.25 * step})
        left, right = (_percent(gp.plan(changed, policy)) for policy in ("fifo", "aware"))
        found.setdefault(f"utilization {left} % → {right} %", 0.25 * step)
    assert len(found) > 1
    return [(value, words) for words, value in found.items()]


def many(table: Table, bench: Bench, app: App) -> None:
    """Everybody moves once a second, not all in the same moment."""
    gate, moves = threading.Barrier(USERS), distinct_moves()
    movers = [Mover(app, number, gate, moves) for number in range(1, USERS)]
    page = bench.visitor()
    page.goto(f"{app.url}/{ADDRESS}")
    screen = Screen(page).ready()
    watch = Stopwatch(page)
    screen.slide("penalty", ["Home"])
    page.wait_for_timeout(1000)
    for mover in movers:
        mover.start()
    gate.wait(120)
    seen = []
    for _ in range(MOVES):
        seen.append(watch.press("ArrowRight"))
        page.wait_for_timeout(1000 * max(0.0, REST_S - seen[-1]))
    for mover in movers:
        mover.join(120)
    wrong = [mover.error for mover in movers if mover.error]
    assert wrong == [], wrong[0]
    screen.await_scenario(gp.load("two-apps").replace({"objective.shortfall_penalty": 0.25 * MOVES}))
    took = [one for mover in movers for one in mover.took]
    name = f"app: {USERS} users move a slider once a second"
    table.seconds(f"{name}: key to repainted chart, p95", percentile(seen, 0.95), ANSWER_S, "one in Chromium")
    table.seconds(
        f"{name}: message to new figures, p95", percentile(took, 0.95), ANSWER_S, f"{USERS - 1} sockets"
    )
    table.seconds(f"{name}: message to new figures, median", percentile(took, 0.5))
    memory(table, app)


def memory(table: Table, app: App) -> None:
    """What a kernel has for itself and its part of what all share (PSS); beside it the server and the nursery."""
    everybody = psutil.Process(app.process.pid).children(recursive=True)
    kernels = [one for one in everybody if "gpuplan-app-" in one.cwd()]
    others = [app.process.pid, *(one.pid for one in everybody if one not in kernels)]
    pss = sorted(_pss(one.pid) for one in kernels)
    assert len(pss) >= USERS
    note = f"{len(pss)} kernels, largest {pss[-1]:.0f} MB; server and nursery {sum(map(_pss, others)):.0f} MB"
    table.text("app: memory per user (PSS, mean)", f"{sum(pss) / len(pss):.0f} MB", note=note)


def _pss(pid: int) -> float:
    text = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii")
    found = re.search(r"^Pss:\s+(\d+) kB", text, re.MULTILINE)
    assert found is not None
    return int(found[1]) / 1000


def bench(table: Table, bench: Bench) -> None:
    app = bench.app("--users", str(USERS + OPENED + 5))
    with table.answers("app: first picture"):
        first_picture(table, bench, app)
    with table.answers(f"app: {USERS} users"):
        many(table, bench, app)


if __name__ == "__main__":
    run(bench)
