"""What the app answers: home, pages, the state and the end of a kernel, files of the front end."""

import asyncio
from typing import Any

from jupyter_server.auth.login import LoginFormHandler
from jupyter_server.base.handlers import JupyterHandler
from tornado import web
from tornado.iostream import StreamClosedError

from gpuplan.app.kernel_pool import Full, Kernels
from gpuplan.app.render import Renderer, page_config
from gpuplan.app.shelf import Page, catalogue, explorers, lessons

KERNEL_ID = r"(?P<kernel_id>[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})"

#: What a page may load and run: nothing from elsewhere. Vega and anywidget need eval and blob.
POLICY = (
    "default-src 'self'; script-src 'self' 'unsafe-inline' 'unsafe-eval' blob: data:; "
    "style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; font-src 'self' data:; "
    "connect-src 'self' data: blob:; object-src 'none'; base-uri 'self'; form-action 'self'; frame-ancestors 'self'"
)

#: What went wrong, by status, for people.
SENTENCES = {
    400: ("This request cannot be answered", "The address is not one of this app's."),
    403: ("You cannot come in here", "The address, or the name of the machine in it, is not allowed here."),
    404: (
        "There is no such page",
        "The address may have a letter too many, or the page may have been renamed.",
    ),
    405: ("This page cannot be asked that way", "It is only to be read."),
    503: (
        "All places are taken",
        "As many people as this machine can serve are using the app at the moment.",
    ),
}
OTHERWISE = (
    "Something went wrong",
    "The fault is on our side; the person who runs the app finds it in its log.",
)


class Handler(JupyterHandler):
    """What all answers share: headers, and errors in a sentence."""

    @property
    def content_security_policy(self) -> str:
        """What pages may load."""
        return POLICY

    def set_default_headers(self) -> None:
        """Nobody else frames, caches or sniffs what we answer."""
        super().set_default_headers()
        self.set_header("Cache-Control", "no-store")
        self.set_header("Referrer-Policy", "same-origin")

    @property
    def kernels(self) -> Kernels:
        """All kernels."""
        found: Kernels = self.settings["kernel_manager"]
        return found

    @property
    def visitor(self) -> str:
        """Who asks."""
        return str(self.current_user.username)

    def draw(self, template: str, **more: Any) -> str:
        """A page of ours."""
        text: str = self.settings["jinja2_env"].get_template(template).render(base_url=self.base_url, **more)
        return text

    def write_error(self, status_code: int, **kwargs: Any) -> None:
        """A page with a sentence; what went wrong inside is for the log alone."""
        title, sentence = SENTENCES.get(status_code, OTHERWISE)
        self.set_header("Content-Type", "text/html; charset=utf-8")
        retry = 20 if status_code == 503 else 0
        self.finish(self.draw("error.html", title=title, sentence=sentence, status=status_code, retry=retry))

    def without_token(self) -> bool:
        """Send a visitor who came with a token on to the same address without it."""
        if "token" not in self.request.query_arguments:
            return False
        from urllib.parse import parse_qsl, urlencode

        rest = [(key, value) for key, value in parse_qsl(self.request.query) if key != "token"]
        self.redirect(self.request.path + ("?" + urlencode(rest) if rest else ""))
        return True


class Home(Handler):
    """The list of explorers and lessons."""

    async def get(self) -> None:
        """Show it."""
        if not self.without_token():
            self.finish(self.draw("home.html", explorers=explorers(), lessons=lessons()))


class Missing(Handler):
    """Whatever is not there."""

    async def get(self) -> None:
        """Say so."""
        raise web.HTTPError(404)

    post = put = delete = patch = get


class Show(Handler):
    """A page with a kernel."""

    async def get(self, address: str) -> None:
        """Start its kernel, run it, and write it part by part."""
        page = catalogue().get(address)
        if page is None:
            raise web.HTTPError(404)
        if self.without_token():
            return
        if page.computes and not self.kernels.has_room():
            raise web.HTTPError(503)
        await self._write(page)

    async def _write(self, page: Page) -> None:
        self.set_header("Content-Type", "text/html; charset=utf-8")
        self.set_header("X-Accel-Buffering", "no")  # a proxy shows what is there
        _ = self.xsrf_token  # a cookie, with which the page can say that it is closed
        self.write(self.draw("head.html", page=page, upload_mb=self.settings["options"].upload_mb))
        await self.flush()
        start = asyncio.create_task(self._start(page)) if page.computes else None
        try:
            async for part in Renderer(page, self.settings["options"], self.log).parts(start):
                self.write(part)
                await self.flush()
        except Full:
            self.finish(self.draw("stop.html", sentence=" ".join(SENTENCES[503]), retry=20))
            return
        except StreamClosedError:
            return  # the visitor has gone; so will the kernel
        except Exception:
            self.log.exception("%s could not be written", page.address)
            self.finish(self.draw("stop.html", sentence="This page could not be started.", retry=0))
            return
        kernel_id = start.result().kernel_id if start else None
        config = page_config(self.settings, kernel_id) if kernel_id else None
        self.finish(self.draw("foot.html", kernel_id=kernel_id, config=config))
        self.kernels.written(kernel_id)

    async def _start(self, page: Page) -> Any:
        """The page's kernel."""
        return self.kernels.get_kernel(await self.kernels.start_for(self.visitor, self._environment(page)))

    def _environment(self, page: Page) -> dict[str, str]:
        return {"GPUPLAN_APP_QUERY": self.request.query[:20_000], "GPUPLAN_APP_PAGE": page.address}


class Kernel(Handler):
    """Whether a page's kernel is alive, and why not; its end."""

    async def get(self, kernel_id: str) -> None:
        """Tell."""
        alive = self.kernels.is_of(kernel_id, self.visitor)
        why = "" if alive else self.kernels.reasons.get(kernel_id, "The app was started anew meanwhile.")
        self.finish({"alive": alive, "why": why})

    async def post(self, kernel_id: str) -> None:
        """End it: its page is closed."""
        if self.kernels.is_of(kernel_id, self.visitor):
            await self.kernels.end(kernel_id, "The page was closed.")
        self.set_status(204)
        self.finish()


class Model(Handler):
    """What the front end asks about its kernel before it connects."""

    async def get(self, kernel_id: str) -> None:
        """Its name and number, for the visitor alone whose kernel it is."""
        if not self.kernels.is_of(kernel_id, self.visitor):
            raise web.HTTPError(404)
        self.finish({"id": kernel_id, "name": "python3", "connections": 0, "execution_state": "idle"})


class Files(Handler, web.StaticFileHandler):
    """Files of the front end, for whoever may come in."""

    def set_extra_headers(self, path: str) -> None:
        """They change with a new version only."""
        self.set_header("Cache-Control", "private, max-age=3600")


class Login(Handler, LoginFormHandler):
    """Asks for the token."""

    def _render(self, message: Any = None) -> None:
        """The form, or that a proxy lets people in here."""
        if self.settings["options"].proxy_header:
            raise web.HTTPError(403)
        self.set_header("Content-Type", "text/html; charset=utf-8")
        next_page = self.get_argument("next", default=self.base_url)
        self.write(
            self.draw("login.html", wrong=bool(message), xsrf=self.xsrf_form_html(), next_page=next_page)
        )
