"""Nobody is let in where they do not belong: every address of the running app, asked by people who may and may not."""

import os
import re
import signal
from pathlib import Path

import pytest
import websocket
from browser.app_server import App
from browser.desk import until

import gpuplan.app.server as server
from app.conftest import PLACES, TOKEN
from app.visitor import Visitor, heard, message
from gpuplan.app.options import Options

#: All that the app answers to. A new address must be decided upon here and below.
ADDRESSES = {
    "/": "Home",
    "/login": "Login",
    "/((?:explore|lessons)/[^/]+)": "Show",
    "/api/kernels/ID": "Model",
    "/api/kernels/ID/channels": "WidgetSocket",
    "/kernels/ID": "Kernel",
    "/voila/api/shutdown/ID": "Kernel",
    "/voila/static/(.*)": "Files",
    "/voila/labextensions/anywidget/(.*)": "Files",
    "/voila/labextensions/@jupyter-widgets/jupyterlab-manager/(.*)": "Files",
    "/voila/labextensions/@voila-dashboards/widgets-manager8/(.*)": "Files",
    "/sheets/((?:index|theme-light|theme-dark)\\.css)": "Files",
    "/app/(.*)": "Files",
}

NOBODYS = "00000000-0000-4000-8000-000000000000"

#: What servers of Jupyter and Voila answer to elsewhere, and paths that lead out of folders.
CLOSED = (
    "/api",
    "/api/contents",
    "/api/contents/etc/passwd",
    "/api/kernels",
    "/api/kernelspecs",
    "/api/sessions",
    "/api/status",
    "/api/terminals",
    "/api/me",
    "/files/etc/passwd",
    "/lab",
    "/tree",
    "/terminals/websocket/1",
    "/nbconvert/html/x.ipynb",
    "/notebooks/01-why-order-is-capacity.ipynb",
    "/voila/api/contents",
    "/voila/api/themes/x",
    "/voila/files/01-why-order-is-capacity.ipynb",
    "/voila/render/01-why-order-is-capacity.ipynb",
    "/voila/templates/lab/static/voila.js",
    "/voila/execution/" + NOBODYS,
    "/voila/query/" + NOBODYS,
    "/app/../nursery.py",
    "/app/%2e%2e/nursery.py",
    "/app/..%2fnursery.py",
    "/sheets/%2e%2e/x.css",
    "/voila/static/%2e%2e/%2e%2e/conf.json",
    "/voila/static/..%2f..%2f..%2f..%2fetc%2fpasswd",
    "/explore/no-such-explorer",
    "/explore/..%2fallocation",
    "/lessons/99-none.ipynb",
    "/lessons/real-philly-day.ipynb",
    "/lessons/%3Cscript%3E",
)


def test_every_address_is_known() -> None:
    uuid = re.escape(server.h.KERNEL_ID)
    found = {re.sub(uuid, "ID", rule[0]): rule[1].__name__ for rule in server.rules(Options())}
    assert found == ADDRESSES


def test_without_the_token_nothing_but_the_question_for_it_is_answered(outsider: Visitor) -> None:
    for address in ("/", "/explore/allocation", "/lessons/02-how-good-is-good.ipynb", "/app/app.js", *CLOSED):
        answer = outsider.ask(address)
        assert answer.status in (302, 403, 404), address
        assert answer.status != 302 or answer.headers["location"].startswith("/login?next="), address
        assert answer.status == 404 or len(answer.text) < 3000
        assert "passwd" not in answer.text
        assert "root:" not in answer.text
    for method in ("POST", "PUT", "DELETE", "PATCH"):
        assert outsider.ask("/api/kernels", method, "{}").status in (403, 404)
    for path in (
        f"/kernels/{NOBODYS}",
        f"/api/kernels/{NOBODYS}",
        "/voila/static/voila.js",
        "/sheets/index.css",
    ):
        assert outsider.ask(path).status == 302
    with pytest.raises(websocket.WebSocketBadStatusException, match="403"):
        outsider.socket(NOBODYS)
    form = outsider.ask("/login?next=/explore/packing")
    assert form.status == 200
    assert "This app asks for a token" in form.text


def test_the_token_opens_the_door_once_and_does_not_stay_in_the_address(outsider: Visitor) -> None:
    xsrf = re.search(r'name="_xsrf" value="([^"]+)"', outsider.ask("/login").text)
    assert xsrf is not None
    form = {"Content_Type": "application/x-www-form-urlencoded"}
    wrong = outsider.ask("/login", "POST", f"_xsrf={xsrf[1]}&token=guess", **form)
    assert (wrong.status, "This is not the token" in wrong.text) == (401, True)
    assert outsider.ask("/login", "POST", "token=guess", **form).status == 403  # another site's form
    away = outsider.ask("/login?next=//evil.example/", "POST", f"_xsrf={xsrf[1]}&token={TOKEN}", **form)
    assert (away.status, away.headers["location"]) == (302, "/")
    assert outsider.ask("/").status == 200
    someone = Visitor(outsider.url)
    answer = someone.ask(f"/explore/packing?scenario=four-gpus&token={TOKEN}")
    assert (answer.status, answer.headers["location"]) == (302, "/explore/packing?scenario=four-gpus")
    assert {"HttpOnly", "SameSite=Lax"} <= set(re.split("; ", answer.headers["set-cookie"]))


def test_a_user_finds_pages_and_nothing_else(user: Visitor) -> None:
    for address in CLOSED:
        answer = user.ask(address)
        assert answer.status in (403, 404), address
        assert "root:" not in answer.text
        assert "Traceback" not in answer.text
        assert "<script>" not in answer.text
    missing = user.ask("/explore/no-such-explorer").text
    assert "There is no such page" in missing
    assert "All explorers and lessons" in missing
    home = user.ask("/")
    assert home.headers["content-security-policy"].startswith("default-src 'self';")
    assert not re.search(r"(?:https?:)?//[a-z]", home.text)
    assert user.ask("/api/kernels", "POST", "{}").status == 403
    strange = user.ask("/", Host="evil.example")
    assert strange.status == 403
    assert "evil.example" not in strange.text


def test_kernels_are_their_visitors_own_and_do_not_run_code(
    served: App, user: Visitor, other: Visitor, tmp_path: Path
) -> None:
    kernel = user.open("explore/allocation?scenario=two-apps&changes=%3Cscript%3E")
    assert user.ask(f"/api/kernels/{kernel}").status == 200
    # another visitor who knows its number
    assert other.ask(f"/api/kernels/{kernel}").status == 404
    assert '"alive": false' in other.ask(f"/kernels/{kernel}").text
    with pytest.raises(websocket.WebSocketBadStatusException, match="404"):
        other.socket(kernel)
    theirs = other.open("explore/packing")
    answer = other.ask(f"/kernels/{kernel}", "POST", "", X_XSRFToken=other.cookies["_xsrf"])
    assert answer.status == 204  # and nothing has ended
    other.ask(f"/kernels/{theirs}", "POST", "", X_XSRFToken=other.cookies["_xsrf"])
    assert '"alive": true' in user.ask(f"/kernels/{kernel}").text
    # another site on the visitor's own browser
    with pytest.raises(websocket.WebSocketBadStatusException, match="403"):
        user.socket(kernel, Origin="http://evil.example")

    proof = tmp_path / "ran"
    code = f"open({str(proof)!r}, 'w')"
    asked = {"code": code, "silent": False, "store_history": False, "user_expressions": {"x": code}}
    socket = user.socket(kernel)
    for kind in (
        "execute_request",
        "inspect_request",
        "complete_request",
        "history_request",
        "debug_request",
    ):
        for channel in ("shell", "control", "stdin"):
            socket.send_binary(message(kind, {**asked, "cursor_pos": 0}, channel))
    for kind in ("input_reply", "shutdown_request", "interrupt_request", "is_complete_request"):
        socket.send_binary(message(kind, {"value": code, "restart": False}, "control"))
    socket.send_binary(message("comm_open", {"comm_id": "c", "target_name": "jupyter.widget", "data": {}}))
    socket.send_binary(b"\x05\0\0\0\0\0\0\0nothing that can be read")
    socket.send_binary(message("comm_info_request", {"target_name": "jupyter.widget"}))
    while True:
        header, _, content = heard(socket.recv())
        assert header["msg_type"] not in ("execute_reply", "inspect_reply", "complete_reply", "history_reply")
        if header["msg_type"] == "comm_info_reply":
            break
    assert len(content["comms"]) > 20  # the explorer's widgets
    assert "c" not in content["comms"]
    assert not proof.exists()

    # a kernel that is killed says so, and its folder goes
    folders = list(served.folder.glob(f"gpuplan-app-*/{kernel}"))
    assert len(folders) == 1
    assert folders[0].stat().st_mode & 0o077 == 0
    pid = next(p for p in Path("/proc").glob("[0-9]*") if kernel in _where(p))
    os.kill(int(pid.name), signal.SIGKILL)
    until(lambda: '"alive": false' in user.ask(f"/kernels/{kernel}").text, "the kernel lives on")
    assert "ended from outside" in user.ask(f"/kernels/{kernel}").text
    until(lambda: not folders[0].exists(), "its folder is still there")
    socket.close()


def _where(process: Path) -> str:
    """Working folder of a process; empty where that is not to be known."""
    try:
        return str((process / "cwd").resolve(strict=True))
    except OSError:
        return ""


def test_pages_are_limited_in_number_and_show_no_code(user: Visitor) -> None:
    kernels = [user.open() for _ in range(PLACES)]
    answer = user.ask("/explore/packing")
    assert answer.status == 503
    assert "All places are taken" in answer.text
    assert "tries again by itself" in answer.text
    lesson = user.ask("/lessons/02-how-good-is-good.ipynb")
    assert lesson.status == 503
    assert user.ask(f"/kernels/{kernels[0]}", "POST", "").status == 403  # another site's form
    for kernel in kernels:
        assert user.ask(f"/kernels/{kernel}", "POST", "", X_XSRFToken=user.cookies["_xsrf"]).status == 204
    until(lambda: user.ask("/lessons/02-how-good-is-good.ipynb").status == 200, "no place became free")
    text = user.ask("/lessons/02-how-good-is-good.ipynb").text
    assert "A bound at once" in text  # prose
    assert "data:image/png;base64," in text  # pictures as they were committed
    assert "take_apart(" not in text  # no code
    assert not re.search(r"(?:src|href)=\"(?:https?:)?//", text)
