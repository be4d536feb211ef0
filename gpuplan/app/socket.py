"""The socket between a page and its kernel, on which nothing but widgets may speak."""

import json
import time
from typing import Any

from jupyter_server.services.kernels.connection.base import deserialize_msg_from_ws_v1
from tornado import web
from voila.tornado.kernel_websocket_handler import VoilaKernelWebsocketHandler

from gpuplan.app.kernel_pool import MESSAGES, Kernels
from gpuplan.lab_socket import PromptConnection

#: The one comm that a page may open: it asks for the state of all widgets.
CONTROL = "jupyter.widget.control"


class WidgetConnection(PromptConnection):
    """Lets messages of widgets through and drops all others."""

    def handle_incoming_message(self, incoming_msg: Any) -> None:
        """Pass a message on if it may pass."""
        kind = self._kind(incoming_msg)
        if kind is None:
            self.log.warning("A message that pages do not send was dropped.")
            return
        kernels: Kernels = self.multi_kernel_manager
        guest = kernels.guests.get(self.kernel_id)
        if guest is not None and kind == "comm_msg":
            guest.touched = time.monotonic()
        super().handle_incoming_message(incoming_msg)

    def _kind(self, message: Any) -> str | None:
        """The type of a message that may pass, else None."""
        try:
            if self.subprotocol == "v1.kernel.websocket.jupyter.org":
                channel, parts = deserialize_msg_from_ws_v1(message)
                header, content = json.loads(bytes(parts[0])), json.loads(bytes(parts[3]))
            else:
                return None
            kind = header["msg_type"]
            if channel != "shell" or kind not in MESSAGES:
                return None
            if kind == "comm_open" and content["target_name"] != CONTROL:
                return None
        except Exception:
            return None
        return str(kind)


class WidgetSocket(VoilaKernelWebsocketHandler):
    """The handler of that socket: for the visitor alone whose kernel it is."""

    async def pre_get(self) -> None:
        """Refuse whoever has no business here."""
        kernels: Kernels = self.kernel_manager
        user = self.current_user
        if not kernels.is_of(self.kernel_id, None if user is None else user.username):
            raise web.HTTPError(404)
        if self.get_argument("session_id", None) is None:
            raise web.HTTPError(400)
        await super().pre_get()

    async def open(self, kernel_id: str) -> None:
        """Note that the page is there."""
        guest = self.kernel_manager.guests.get(kernel_id)
        if guest is None:
            self.close(4001, "ended")
            return
        guest.sockets.add(self)
        guest.left = None
        await super().open(kernel_id)

    def on_close(self) -> None:
        """Note that the page has gone."""
        guest = self.kernel_manager.guests.get(self.kernel_id)
        if guest is not None:
            guest.sockets.discard(self)
            if not guest.sockets:
                guest.left = time.monotonic()
        if getattr(self, "connection", None) is not None:
            super().on_close()
