"""The how-to "Add a policy", followed to the letter in a copy of the package."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from allocation import test_policies
from documents import CHECKOUT, Block, blocks
from hypothesis import given, settings
from strategies import scenarios

from gpuplan.allocation import plan as plans
from gpuplan.allocation.model import AllocationScenario

PAGE = CHECKOUT / "docs" / "add-a-policy.md"

#: What a stranger does next: a comparison for each kind.
NEXT = """
import contextlib, io, json
import gpuplan as gp
from gpuplan.cli import main

found = {"package": gp.__file__, "policies": [*gp.POLICIES, *gp.FAIRSHARE_POLICIES]}
for words in (
    ["compare", "training-rush", "--policies", "curve-fifo,shortest-first", "--json"],
    ["simulate", "first-hours", "--policies", "fifo,widest-first", "--json"],
    ["pack", "no-two-gpus-free", "--policies", "first-fit,last-fit", "--json"],
):
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        assert main(words) == 0, words
    found[words[0]] = json.loads(out.getvalue())["policies"]
print(json.dumps(found))
"""


def applied(text: str, hunk: list[str]) -> str:
    """A text after a hunk of a difference: what the hunk shows as old stands in it once."""
    old = "\n".join(line[1:] for line in hunk if line[:1] in " -") + "\n"
    new = "\n".join(line[1:] for line in hunk if line[:1] in " +") + "\n"
    assert text.count(old) == 1, old
    return text.replace(old, new)


def patch(block: Block, root: Path) -> None:
    """Change the files that a difference names."""
    for part in ("\n" + block.text).split("\n--- a/")[1:]:
        name, _, rest = part.partition("\n")
        head, *hunks = rest.split("\n@@\n")
        assert head == f"+++ b/{name}", str(block)
        text = (root / name).read_text(encoding="utf-8")
        for hunk in hunks:
            text = applied(text, hunk.rstrip("\n").split("\n"))
        (root / name).write_text(text, encoding="utf-8")


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The package with what the page adds to it."""
    root = tmp_path_factory.mktemp("copy")
    shutil.copytree(CHECKOUT / "gpuplan", root / "gpuplan", ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("scenarios", "notebooks"):
        (root / name).symlink_to(CHECKOUT / name)
    for block in blocks(PAGE):
        if block.language == "diff":
            patch(block, root)
        elif block.file is not None:
            assert not (root / block.file).exists(), block.file
            (root / block.file).write_text(block.text.partition("\n")[2], encoding="utf-8")
    return root


def test_policies_added_as_the_page_says_are_policies_like_any_other(copy: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(copy), "NUMBA_DISABLE_JIT": "1"}
    done = subprocess.run(
        [sys.executable, "-P", "-c", NEXT],
        cwd=CHECKOUT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert Path(found["package"]).is_relative_to(copy)
    assert {"shortest-first", "widest-first"} <= set(found["policies"])
    for command, pair in (("compare", "curve-fifo"), ("simulate", "fifo"), ("pack", "first-fit")):
        (other,) = found[command].keys() - {pair}
        mine, theirs = found[command][other], found[command][pair]
        assert mine["violations"] == 0
        assert {**mine, "seconds": 0} != {**theirs, "seconds": 0}, "the policy decides nothing"


@settings(max_examples=25)
@given(scenario=scenarios(max_gpus=70, max_steps=16))
def test_the_policy_of_the_page_keeps_the_contract_of_all_policies(scenario: AllocationScenario) -> None:
    block = next(block for block in blocks(PAGE, "python") if "shortest_first" in (block.file or ""))
    names: dict[str, Any] = {}
    exec(compile(block.text, str(block), "exec"), names)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plans, "ALL", (*plans.ALL, names["POLICY"]))
        test_policies.test_every_policy_keeps_the_contract.hypothesis.inner_test("shortest-first", scenario)
