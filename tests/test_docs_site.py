"""The pages as a site: built without a warning, complete, and legible without a network."""

import argparse
import html
import importlib.util
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from documents import CHECKOUT

DOCS = CHECKOUT / "docs"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    build = [sys.executable, DOCS / "build.py", folder]
    done = subprocess.run(build, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return folder


def page(site: Path, name: str) -> str:
    return (site / f"{name}.html").read_text(encoding="utf-8")


def test_the_reference_has_every_public_name(site: Path) -> None:
    import gpuplan
    import gpuplan_widgets

    for module, name in ((gpuplan, "reference-python"), (gpuplan_widgets, "reference-widgets")):
        text = page(site, name)
        for public in set(module.__all__) - {"__version__"}:
            assert f'id="{module.__name__}.{public}"' in text, public


def every_command() -> Iterator[argparse.ArgumentParser]:
    from gpuplan.cli import _parser

    for action in _parser()._actions:
        if isinstance(action, argparse._SubParsersAction):
            yield from action.choices.values()


def test_the_reference_has_every_policy_command_and_field(site: Path) -> None:
    from gpuplan.allocation.policies import ALL as PLANS
    from gpuplan.fairshare.policies import ALL as RUNS
    from gpuplan.packing.policies import KINDS

    said = page(site, "reference-policies")
    for policy in (*PLANS, *RUNS, *(piece for pieces in KINDS.values() for piece in pieces)):
        assert f">{policy.name}</span>" in said, policy.name
    commands = html.unescape(re.sub(r"<[^>]+>", "", page(site, "reference-commands")))
    told = {*re.findall(r"--?[\w-]+", commands)}
    for command in every_command():
        assert command.prog in commands
        assert {option for action in command._actions for option in action.option_strings} <= told | {
            "--help"
        }
    fields = html.unescape(re.sub(r"<[^>]+>", "", page(site, "reference-files")))
    for field in ("batch[].earliest_hour", "budget[].children", "window", "604800s", "models[].declared_gib"):
        assert field in fields
    assert re.search(r"horizon\.step_hours\W+Length of a step[^.]*\.\s+1\b", fields)


def test_the_site_loads_nothing_from_outside(site: Path) -> None:
    """Scripts, styles, fonts, pictures: all of them lie in the folder."""
    loading = r"<(?:script|img|iframe|source|video|audio|embed|object)[^>]*?(?:src|data)=\"([^\"]*)\""
    for file in site.rglob("*.html"):
        text = file.read_text(encoding="utf-8")
        styles = re.findall(r"<link[^>]*?href=\"([^\"]*)\"", text)
        for target in (*re.findall(loading, text), *styles):
            assert not re.match(r"(?:[a-z]+:)?//", target), (file.name, target)
            assert target.startswith("#") or (file.parent / target.partition("?")[0]).exists(), target
    for file in site.rglob("*.css"):
        outside = r"url\(\s*['\"]?(?:https?:)?//|@import\s+['\"]?(?:https?:)?//"
        assert not re.search(outside, file.read_text(encoding="utf-8")), file.name


def test_nothing_of_this_machine_is_in_the_site(site: Path) -> None:
    for file in site.rglob("*.html"):
        text = file.read_text(encoding="utf-8")
        assert str(CHECKOUT) not in text, file.name
        assert not re.search(r"object at 0x[0-9a-f]+", text), file.name


def configuration() -> ModuleType:
    spec = importlib.util.spec_from_file_location("docs_conf", DOCS / "conf.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_name_of_gpuplan_that_is_not_there_is_a_warning() -> None:
    conf: Any = configuration()
    assert conf.nitpicky
    shown = object()

    def answer(target: str) -> object:
        return conf.known(None, None, {"refdomain": "py", "reftarget": target}, shown)

    for there in ("gpuplan.plan", "gpuplan.allocation.policies.Effort", "gpuplan.Plan.check", "DataFrame"):
        assert answer(there) is shown, there
    for gone in ("gpuplan.plann", "gpuplan.nowhere.plan", "gpuplan.Plan.nothing"):
        assert answer(gone) is None, gone


@pytest.mark.browser
def test_the_site_is_legible_on_a_telephone_and_in_the_dark(site: Path, chromium: str) -> None:
    """From a file: nothing is asked for outside or goes wrong, a page is as wide as the screen, dark is dark."""
    from browser.desk import chromium_running

    with chromium_running(chromium) as running:
        context = running.new_context(viewport={"width": 360, "height": 800}, color_scheme="dark")
        tab = context.new_page()
        faults: list[str] = []
        tab.on("request", lambda r: faults.append(r.url) if r.url.startswith("http") else None)
        tab.on("console", lambda m: faults.append(m.text))
        tab.on("pageerror", lambda e: faults.append(str(e)))
        for name in (
            "index",
            "allocation",
            "figures",
            "reference-commands",
            "reference-files",
            "reference-python",
        ):
            file = site / f"{name}.html"
            tab.goto(file.as_uri())
            wide = tab.evaluate("document.documentElement.scrollWidth")
            assert wide <= 360, (file.name, wide)
            back = tab.evaluate("getComputedStyle(document.body).backgroundColor")
            assert max(map(int, re.findall(r"\d+", back)[:3])) < 60, (file.name, back)
        assert faults == []
        context.close()
