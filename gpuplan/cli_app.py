"""The command ``gpuplan app``: serves explorers and lessons to people without Python."""

import argparse
import dataclasses
import importlib.util
import re
import secrets
import sys
from collections.abc import Callable

from gpuplan.app.options import Options

#: Limits: flag, name of the option, what it limits, least and most.
LIMITS = (
    ("--users", "users", "pages that may have a kernel at once", 1, 10_000),
    ("--idle", "idle_min", "minutes without input after which a page ends", 0.1, 100_000),
    ("--life", "life_min", "minutes after which any page ends", 0.1, 100_000),
    ("--memory", "memory_mb", "megabytes of a page's kernel, beyond what all kernels share", 300, 10**7),
    ("--cpu", "cpu_min", "minutes of processor time of a page's kernel", 0.1, 100_000),
    ("--upload", "upload_mb", "megabytes of all files that a page holds", 1, 2_000),
    ("--seconds", "seconds", "seconds of one computation", 1, 3600),
)


def add_app(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    usual = Options()
    where = parser.add_argument_group("where")
    port = _number(int, 1, 65_535)
    where.add_argument(
        "--port", type=port, help="listen on this port, and on no other (default: 8866, or the next)"
    )
    where.add_argument(
        "--ip", default=usual.ip, help=f"address to listen on (default: {usual.ip}, this machine alone)"
    )
    where.add_argument(
        "--base-url", default=usual.base_url, metavar="PATH", help="path of the home page (default: /)"
    )
    where.add_argument("--no-browser", action="store_true", help="print the address and open no browser")
    who = parser.add_argument_group("who comes in")
    who.add_argument(
        "--token",
        type=_token,
        help="what visitors must know (default: nothing on this machine alone, a new one elsewhere)",
    )
    who.add_argument(
        "--behind-proxy",
        type=_header,
        metavar="HEADER",
        help="a proxy lets people in and tells in this header who they are; nobody else may reach the port",
    )
    who.add_argument(
        "--hosts",
        metavar="A,B",
        default="",
        help="names under which the app is reached, no others (default: loopback's there, any elsewhere)",
    )
    limits = parser.add_argument_group("limits")
    for flag, name, meaning, least, most in LIMITS:
        value = getattr(usual, name)
        kind = _number(type(value), least, most)
        limits.add_argument(
            flag, dest=name, type=kind, default=value, metavar="N", help=f"{meaning} (default: {value:g})"
        )


def _number(kind: type[int] | type[float], least: float, most: float) -> Callable[[str], float]:
    def read(text: str) -> float:
        try:
            value = kind(text)
        except ValueError:
            value = kind(-1)
        if not least <= value <= most:
            whole = "a whole number" if kind is int else "a number"
            raise argparse.ArgumentTypeError(f"must be {whole} from {least:,g} to {most:,g} (got {text})")
        return value

    return read


def _token(text: str) -> str:
    if len(text) < 8 or not text.isascii() or not text.isprintable() or " " in text:
        raise argparse.ArgumentTypeError("must have at least 8 characters, letters and digits best")
    return text


def _header(text: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9-]{1,100}", text):
        raise argparse.ArgumentTypeError(f"must be the name of a header, like X-Forwarded-User (got {text})")
    return text


def app_command(options: argparse.Namespace) -> int:
    """Serve the app until it is stopped."""
    from gpuplan.cli import Refusal

    if importlib.util.find_spec("voila") is None:
        raise Refusal("Voila is not installed here; install it with: pip install 'gpuplan[lab]'")
    if not sys.platform.startswith("linux"):
        raise Refusal(
            "the app needs Linux: its kernels are forked from one process, and limited by the system"
        )
    if options.behind_proxy and options.token:
        raise Refusal("give --token or --behind-proxy, not both: either knows who may come in")
    from gpuplan.app.server import Refused, serve

    made = Options(
        ip=options.ip,
        port=options.port,
        browser=not options.no_browser,
        base_url="/" + "".join(part + "/" for part in options.base_url.split("/") if part),
        proxy_header=options.behind_proxy or "",
        hosts=tuple(name.strip() for name in options.hosts.split(",") if name.strip()),
        token=options.token or "",
        **{name: getattr(options, name) for _, name, *_ in LIMITS},
    )
    if made.open_to_others and not made.token and not made.proxy_header:
        made = dataclasses.replace(made, token=secrets.token_hex(24))
    try:
        return serve(made)
    except Refused as refused:
        raise Refusal(str(refused)) from refused
