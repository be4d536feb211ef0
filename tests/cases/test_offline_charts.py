"""Case `nb-offline-charts`: a chart is drawn without a network, and the numbers behind it are in the output itself.

That the committed notebooks, an exported page and the served app load nothing from elsewhere is tested in
`tests/notebooks` and `tests/browser`.
"""

import json
import re
import socket
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from cases import front_door
from gpuplan.fairshare.charts.allocation import allocation_chart
from gpuplan.fairshare.model import BudgetNode
from gpuplan.fairshare.shares import share_out

CASE = "nb-offline-charts"

#: Four clusters of the case in one, so that shares are whole GPUs: 225, 135 and 40.
TIMES = 4


@pytest.fixture(scope="module")
def given(case: Path) -> dict[str, Any]:
    found = YAML(typ="safe").load(case / "input.yaml")
    assert isinstance(found, dict)
    return found


@pytest.fixture
def no_network(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Every attempt to reach another machine fails, and is kept."""
    tried: list[Any] = []

    def refuse(*words: Any, **more: Any) -> Any:
        tried.append(words)
        raise OSError("no network here")

    for name in ("connect", "connect_ex"):
        monkeypatch.setattr(socket.socket, name, refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    return tried


def test_the_shares(given: dict[str, Any], expected: dict[str, Any]) -> None:
    budget = [BudgetNode(queue["name"], float(queue["weight"])) for queue in given["queues"]]
    demand = {queue["name"]: queue["demand"] for queue in given["queues"]}
    shares = share_out(budget, demand, given["cluster"]["gpus"])
    assert {name: float(share) for name, share in shares.items()} == expected["values_in_chart"]


def test_a_chart_needs_nothing_from_elsewhere(
    given: dict[str, Any], expected: dict[str, Any], tmp_path: Path, no_network: list[Any]
) -> None:
    """In the first hour the shares run: A 225 = 4 x 56.25 of 400 GPUs, B 135, C 40."""
    budget = [{"name": queue["name"], "weight": queue["weight"]} for queue in given["queues"]]
    rows = [
        {"job": f"{queue['name']}-{k}", "team": queue["name"], "submit_s": 0, "gpus": 1, "run_s": 3600}
        for queue in given["queues"]
        for k in range(TIMES * queue["demand"])
    ]
    head = {"cluster": {"gpus": TIMES * given["cluster"]["gpus"]}, "budget": budget}
    chart = allocation_chart(front_door.run(front_door.load(tmp_path, head, rows), "fair-share"))
    spec: dict[str, Any] = chart.to_dict()
    first = spec["datasets"]["run_account"][0]
    names = list(expected["values_in_chart"])
    assert {name: first[f"a{k}"] / TIMES for k, name in enumerate(names)} == expected["values_in_chart"]

    found: Any = chart._repr_mimebundle_()
    shown: dict[str, Any] = found[0] if isinstance(found, tuple) else found
    missing = not (
        {"image/png", "text/plain"} <= set(shown) and all(name in shown["text/plain"] for name in names)
    )
    assert int(missing) == expected["chart_outputs_without_fallback"]
    del spec["$schema"]  # names the language; nothing is loaded from it
    outside = re.findall(r"https?://", json.dumps(spec) + shown["text/plain"])
    assert len(outside) == expected["outside_addresses_needed_to_draw"]
    assert no_network == []
