"""What a person who serves the app may decide, with its defaults."""

from dataclasses import dataclass

#: Addresses of this machine that no other machine can reach.
LOOPBACK = ("127.0.0.1", "::1", "localhost")


@dataclass(frozen=True, slots=True)
class Options:
    """Settings of the app.

    Attributes
    ----------
    ip, port
        Where it listens; ``port`` None: 8866, or the next that is free.
    browser
        Whether a browser is opened.
    token
        What a visitor must know; empty: nothing is asked (on loopback only, or behind a proxy).
    base_url
        Path of the home page, with a slash at both ends.
    proxy_header
        Header in which a proxy tells who the visitor is; empty: there is none.
    hosts
        Names under which the app is reached; other ``Host`` headers are refused. Empty: those of loopback where
        the app listens there, any name elsewhere.
    users
        Most pages with a kernel at once.
    idle_min, life_min
        Minutes after which a page without input, or any page, loses its kernel.
    memory_mb, cpu_min
        Memory (beyond what all kernels share) and CPU time of a kernel.
    upload_mb
        Largest upload.
    seconds
        Longest computation.
    """

    ip: str = "127.0.0.1"
    port: int | None = None
    browser: bool = True
    token: str = ""
    base_url: str = "/"
    proxy_header: str = ""
    hosts: tuple[str, ...] = ()
    users: int = 20
    idle_min: float = 30.0
    life_min: float = 480.0
    memory_mb: int = 2000
    cpu_min: float = 30.0
    upload_mb: int = 50
    seconds: float = 30.0

    @property
    def open_to_others(self) -> bool:
        """Whether other machines can reach it."""
        return self.ip not in LOOPBACK
