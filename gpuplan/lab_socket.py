"""JupyterLab's socket to a kernel without the wait of Nagle's algorithm.

A drag sends many small messages. With Nagle's algorithm each waits for the acknowledgement of the
one before, which the other side delays by up to 40 ms (RFC 896, RFC 1122 section 4.2.3.2): a slider
then answers in 50 ms instead of 20 ms, whatever the work behind it.
"""

from typing import Any

from jupyter_server.services.kernels.connection.channels import ZMQChannelsWebsocketConnection


class PromptConnection(ZMQChannelsWebsocketConnection):
    """The usual connection, with ``TCP_NODELAY`` set on the browser's side."""

    def connect(self) -> Any:
        """Connect as usual, after small messages were told not to wait."""
        self.websocket_handler.set_nodelay(True)
        return super().connect()
