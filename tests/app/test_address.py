"""An address carries what the controls say; what it must not carry is refused with a sentence."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import gpuplan as gp
from gpuplan.app.page import MAKERS, explorer, made
from gpuplan_widgets import address
from gpuplan_widgets.address import Address, State, read, write


def moved_allocation(shown: Any) -> None:
    shown.controls.penalty.value, shown.controls.gpus.value, shown.controls.swap.value = 3.5, 12, 1
    shown.curve.curves = [[2] * 24, *shown.curve.curves[1:]]


def moved_shares(shown: Any) -> None:
    shown.budget.set_share("blue", 0.6)
    shown.controls.cap.value = 1800
    shown.controls.left.value = "priority-tiers"


def moved_packing(shown: Any) -> None:
    shown.controls.margin.value, shown.controls.mix.value, shown.controls.spread.value = 10, 1.5, 2
    shown.controls.left_order.value = "backfill"


def moved_days(shown: Any) -> None:
    shown.controls.days.value, shown.controls.traffic_noise.value, shown.controls.seed.value = 1, 0.3, 4


@pytest.mark.parametrize(
    ("page", "scenario", "move"),
    [
        ("allocation", "two-apps", moved_allocation),
        ("fair-share", "first-hours", moved_shares),
        ("packing", "four-gpus", moved_packing),
        ("days", "two-apps", moved_days),
    ],
)
def test_whoever_opens_the_address_sees_the_same(
    page: str, scenario: str, move: Callable[[Any], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    more = {"days": 2} if page == "days" else {}
    mine = made(page, {"scenario": scenario, **more})
    keeper = Address(mine)
    move(mine)
    assert mine.wait()
    keeper.tell()
    assert len(keeper.query) < 700
    monkeypatch.setenv("GPUPLAN_APP_QUERY", keeper.query)
    link, theirs = explorer(page).children
    assert link.said == ""
    assert theirs.state() == mine.state()
    assert theirs.state().changes != made(page, {"scenario": scenario, **more}).state().changes
    assert theirs.state().fingerprint == mine.state().fingerprint
    shown = "plans" if page == "allocation" else "runs"
    for one, same in zip(getattr(mine, shown).values(), getattr(theirs, shown).values(), strict=True):
        assert one.figures == same.figures


@pytest.fixture(scope="module")
def usual() -> Any:
    """An explorer that refused addresses leave as it is."""
    return made("allocation", {"scenario": "two-apps"})


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("scenario=../../etc/passwd", "a link cannot name a file"),
        ("scenario=three-programmes", "must be a shipped allocation scenario"),
        ("scenario=%3Cscript%3Ealert(1)%3C/script%3E", "must be a shipped allocation scenario"),
        ("penalty=3", "unknown part of an address"),
        ("left=fifo", "must both be told"),
        ("left=fifo&left=aware&right=aware", "must not stand twice"),
        ("is=../x", "must be the beginning of a fingerprint"),
        ("changes=[1]", "must be an object of JSON"),
        ('changes={"cluster.gpus":NaN}', "must be an object of JSON"),
        ("changes=" + "[" * 9_000, "must be an object of JSON"),
        ("changes=z.eJzLyc9L", "must be an object of JSON"),
        ('changes={"name":"x"}', "is nothing that a control here changes"),
        ('changes={"realtime.9.demand":[1]}', "unknown path"),
        ('changes={"cluster.gpus":"many"}', "must be a whole number"),
        ('changes={"cluster.gpus":1e99}', "cluster.gpus"),
        ("x=" + "a" * 20_000, "at most 16,000 characters"),
        ("&".join(f"a{i}=1" for i in range(30)), "must be a query that can be read"),
        ("scenario=%ff", "must be a query that can be read"),
    ],
)
def test_a_hostile_address_is_a_sentence(usual: Any, query: str, words: str) -> None:
    with pytest.raises(gp.InputError) as caught:
        usual.restore(read(query, "allocation").changes)
    said = address.sentence(caught.value)
    assert words in said
    assert "What you see is the usual beginning" in said
    assert len(said) < 900


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("left=fifo&right=no-such", "no-such"),
        ('changes={"name":"<b>x"}', "is nothing that a control here changes"),
    ],
)
def test_beside_the_sentence_is_the_usual_page(
    query: str, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GPUPLAN_APP_QUERY", query)
    link, shown = explorer("allocation").children
    assert words in link.said
    assert shown.scenario.name == "training-rush"
    assert link.query.startswith("scenario=training-rush&left=fifo&right=aware&is=")


def test_packed_changes_are_not_unpacked_without_an_end() -> None:
    bomb = write(State("two-apps", (), {"batch": "0" * 3_000_000}))
    assert bomb is not None
    with pytest.raises(gp.InputError, match="object of JSON"):
        read(bomb, "allocation")


def test_a_link_to_another_version_of_a_scenario_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GPUPLAN_APP_QUERY", "scenario=two-apps&left=fifo&right=aware&is=0123456789ab")
    link, _ = explorer("allocation").children
    assert link.said == address.CHANGED


def test_what_does_not_fit_or_is_nobodys_business_is_said() -> None:
    shown = made("allocation", {"scenario": gp.load("two-apps").replace({"name": "mine"})})
    link = Address(shown)
    assert (link.query, link.said) == ("", address.OWN)
    noise = [hash((i, "x")) % 97 for i in range(20_000)]
    assert write(State("two-apps", (), {"realtime.0.demand": noise})) is None


plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


@given(
    changes=st.dictionaries(st.text(min_size=1), plain, max_size=5),
    mark=st.text("0123456789abcdef", max_size=12),
)
def test_what_is_written_is_read(changes: dict[str, Any], mark: str) -> None:
    state = State("two-apps", ("fifo", "best-fit+backfill"), changes, mark)
    query = write(state)
    assert query is not None
    found = read(query, "allocation")
    assert (found.scenario, found.policies, found.mark) == ("two-apps", state.policies, mark)
    assert json.loads(json.dumps(found.changes)) == json.loads(json.dumps(changes))


def test_every_page_has_a_maker() -> None:
    from gpuplan.app.shelf import EXPLORERS

    assert [name for name, *_ in EXPLORERS] == list(MAKERS)
