"""One app that asks for a token, for all tests of this folder."""

from collections.abc import Iterator

import pytest
from browser.app_server import App, app_running

from app.visitor import Visitor

TOKEN = "an-open-sesame"

#: Pages that may have a kernel at once.
PLACES = 3


@pytest.fixture(scope="package")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[App]:
    options = ("--token", TOKEN, "--users", str(PLACES), "--upload", "1")
    with app_running(tmp_path_factory.mktemp("app"), *options) as app:
        yield app


@pytest.fixture
def outsider(served: App) -> Visitor:
    """Somebody without the token."""
    return Visitor(served.url)


def let_in(url: str) -> Visitor:
    visitor = Visitor(url)
    assert visitor.ask(f"/?token={TOKEN}").status == 302
    return visitor


@pytest.fixture
def user(served: App) -> Iterator[Visitor]:
    """Somebody with the token."""
    return let_in(served.url)


@pytest.fixture
def other(served: App) -> Iterator[Visitor]:
    """Somebody else with the token."""
    return let_in(served.url)
