"""The command ``gpuplan app``: serves explorers and lessons to people without Python."""

import argparse
import importlib.util
import secrets
import sys

from gpuplan.app.options import Options


def add_app(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    usual = Options()
    where = parser.add_argument_group("where")
    where.add_argument(
        "--port", type=int, help="listen on this port, and on no other (default: 8866 or the next)"
    )
    where.add_argument("--ip", default=usual.ip, help=f"address to listen on (default: {usual.ip})")
    where.add_argument("--no-browser", action="store_true", help="print the address and open no browser")
    where.add_argument("--base-url", default=usual.base_url, help="path of the home page (default: /)")
    who = parser.add_argument_group("who comes in")
    who.add_argument(
        "--token", default=None, help="what visitors must know (default: none on this machine alone)"
    )
    who.add_argument(
        "--behind-proxy", metavar="HEADER", default="", help="a proxy lets people in and names them here"
    )
    who.add_argument(
        "--hosts", metavar="A,B", default="", help="names under which the app is reached; no others"
    )
    limits = parser.add_argument_group("limits")
    for flag, name, meaning in LIMITS:
        value = getattr(usual, name)
        limits.add_argument(
            flag,
            dest=name,
            type=type(value),
            default=value,
            metavar="N",
            help=f"{meaning} (default: {value:g})",
        )


LIMITS = (
    ("--users", "users", "pages that may have a kernel at once"),
    ("--idle", "idle_min", "minutes without input after which a page ends"),
    ("--life", "life_min", "minutes after which any page ends"),
    ("--memory", "memory_mb", "megabytes of a page's kernel"),
    ("--cpu", "cpu_min", "minutes of processor time of a page's kernel"),
    ("--upload", "upload_mb", "megabytes of an upload"),
    ("--seconds", "seconds", "seconds of one computation"),
)


def app_command(options: argparse.Namespace) -> int:
    """Serve the app."""
    from gpuplan.cli import Refusal

    if importlib.util.find_spec("voila") is None:
        raise Refusal("Voila is not installed here; install it with: pip install 'gpuplan[lab]'")
    if not sys.platform.startswith("linux"):
        raise Refusal(
            "the app needs Linux: its kernels are forked from one process, and limited by the system"
        )
    from gpuplan.app.server import Refused, serve

    limits = {name: getattr(options, name) for _, name, _ in LIMITS}
    made = Options(
        ip=options.ip,
        port=options.port,
        browser=not options.no_browser,
        base_url="/" + "".join(part + "/" for part in options.base_url.split("/") if part),
        proxy_header=options.behind_proxy,
        hosts=tuple(name.strip() for name in options.hosts.split(",") if name.strip()),
        token=options.token or "",
        **limits,
    )
    if made.open_to_others and not made.token and not made.proxy_header:
        made = Options(**{**{n: getattr(made, n) for n in made.__slots__}, "token": secrets.token_hex(24)})
    try:
        return serve(made)
    except Refused as refused:
        raise Refusal(str(refused)) from refused
