"""A visitor of the app without a browser: cookies, requests that follow nothing by themselves, a page's socket."""

import http.client
import itertools
import json
import re
import struct
import uuid
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlparse

import websocket

PROTOCOL = "v1.kernel.websocket.jupyter.org"


@dataclass
class Answer:
    status: int
    headers: dict[str, str]
    text: str


@dataclass
class Visitor:
    """Somebody with cookies of their own."""

    url: str
    cookies: dict[str, str] = field(default_factory=dict)

    @property
    def host(self) -> str:
        return urlparse(self.url).netloc

    @property
    def cookie(self) -> str:
        return "; ".join(f"{name}={value}" for name, value in self.cookies.items())

    def ask(self, path: str, method: str = "GET", body: str | None = None, **headers: str) -> Answer:
        """One request, with headers (underscores for dashes); redirects are answers, too."""
        connection = http.client.HTTPConnection(self.host, timeout=60)
        sent = {"Cookie": self.cookie} if self.cookies else {}
        sent |= {name.replace("_", "-"): value for name, value in headers.items()}
        try:
            connection.request(method, path, body=body, headers=sent)
            answer = connection.getresponse()
            text = answer.read().decode("utf-8", "replace")
        finally:
            connection.close()
        for name, value in answer.getheaders():
            if name.lower() == "set-cookie":
                key, _, rest = value.partition("=")
                self.cookies[key] = rest.partition(";")[0]
        return Answer(answer.status, {k.lower(): v for k, v in answer.getheaders()}, text)

    def open(self, address: str = "explore/allocation") -> str:
        """Open a page with a kernel; the kernel's id."""
        answer = self.ask(f"/{address}")
        assert answer.status == 200, answer.text[-500:]
        found = re.search(r'gpuplanApp\.written\("([0-9a-f-]{36})"\)', answer.text)
        assert found is not None, answer.text[-500:]
        return found[1]

    def socket(self, kernel: str, **headers: str) -> websocket.WebSocket:
        """The socket of a kernel."""
        address = f"ws://{self.host}/api/kernels/{kernel}/channels?session_id={uuid.uuid4().hex}"
        sent = [f"{name}: {value}" for name, value in ({"Cookie": self.cookie} | headers).items()]
        return websocket.create_connection(
            address, timeout=60, header=sent, subprotocols=[PROTOCOL], suppress_origin="Origin" in headers
        )


def message(kind: str, content: dict[str, Any], channel: str = "shell") -> bytes:
    """A message of Jupyter's first protocol for sockets: offsets of its parts, then the parts."""
    header = {"msg_id": uuid.uuid4().hex, "msg_type": kind, "session": "s", "username": "", "version": "5.4"}
    parts = [
        channel.encode(),
        *(json.dumps(part).encode() for part in (header, {}, {"version": "1.0.0"}, content)),
    ]
    offsets = [8 * (len(parts) + 2)]
    for part in parts:
        offsets.append(offsets[-1] + len(part))
    return struct.pack(f"<{len(offsets) + 1}Q", len(offsets), *offsets) + b"".join(parts)


def heard(data: bytes) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    """Header, parent's header and content of what the server says."""
    count = struct.unpack_from("<Q", data)[0]
    offsets = struct.unpack_from(f"<{count}Q", data, 8)
    parts = [data[a:b] for a, b in itertools.pairwise(offsets)]
    return json.loads(parts[1]), json.loads(parts[2]), json.loads(parts[4])
