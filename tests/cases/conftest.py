"""What the tests of a case share: its folder, named by `CASE` of the module, and the values that it expects."""

import json
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture(scope="module")
def case(request: pytest.FixtureRequest, shared: Path) -> Path:
    """The folder of the case."""
    return shared / "cases" / str(request.module.CASE)


@pytest.fixture(scope="module")
def expected(case: Path) -> dict[str, Any]:
    """The expected values of the case's text."""
    text = (case / "case.md").read_text(encoding="utf-8")
    found = json.loads(text.split("```json")[1].split("```")[0])
    assert isinstance(found, dict)
    return found
