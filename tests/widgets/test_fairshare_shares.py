"""Shares of a budget tree: they add up whatever is dragged, and only what was touched changes."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuplan.fairshare.model import BudgetNode
from gpuplan_widgets import fairshare_shares as shares
from gpuplan_widgets.fairshare_budget import MOST_ROWS, BudgetEditor

TREE = (
    BudgetNode("language", 60, (BudgetNode("pretraining", 70), BudgetNode("alignment", 30))),
    BudgetNode("robotics", 40),
)

ALL = ["language", "language/pretraining", "language/alignment", "robotics"]


@pytest.fixture
def editor():
    return BudgetEditor(TREE, 128)


def hear(editor, row, seq, **more):
    """What the page sends."""
    editor._handle_custom_msg({"row": row, "seq": seq, **more}, [])


def totals(editor):
    """Sums of what is shown in each group of siblings."""
    found = {}
    for budget, (share, *_rest) in zip(editor.budgets, editor.numbers, strict=True):
        found[budget["parent"]] = round(found.get(budget["parent"], 0) + share, 6)
    return found


def test_budgets_are_listed_parents_first_with_their_shares(editor):
    assert editor.paths == ALL
    assert [row["depth"] for row in editor.budgets] == [0, 1, 1, 0]
    assert [row["parent"] for row in editor.budgets] == [-1, 0, 0, -1]
    # 60 of 100; 70 of 100, that is 42 % of all and 53.76 of 128 GPUs; 30: 18 %, 23.04; 40 of 100
    assert editor.numbers == [
        [60.0, 60.0, 76.8, False, False],
        [70.0, 42.0, 53.8, False, False],
        [30.0, 18.0, 23.0, False, False],
        [40.0, 40.0, 51.2, False, False],
    ]
    assert editor.changes == {}
    assert repr(editor) == "BudgetEditor(4 budgets)"


def test_a_dragged_share_changes_its_own_weight_alone(editor):
    editor.set_share("robotics", 0.7)
    # 0.7 = w / (w + 60): w = 140
    assert editor.changes == {"budget.1.weight": 140.0}
    assert editor.shares == pytest.approx(
        {"language": 0.3, "language/pretraining": 0.7, "language/alignment": 0.3, "robotics": 0.7}
    )
    editor.set_share("robotics", 0.4)
    assert editor.changes == {}  # back to the weight that the scenario says
    assert editor.edits == 2


def test_siblings_keep_their_proportions(editor):
    wide = BudgetEditor([BudgetNode("a", 40), BudgetNode("b", 30), BudgetNode("c", 20), BudgetNode("d", 10)])
    wide.set_share("a", 0.1)
    assert wide.shares == pytest.approx({"a": 0.1, "b": 0.45, "c": 0.3, "d": 0.15}, rel=1e-4)
    wide.set_share("a", 0.5)
    assert wide.shares == pytest.approx({"a": 0.5, "b": 0.25, "c": 1 / 6, "d": 1 / 12}, rel=1e-4)


def test_a_budget_that_takes_all_leaves_a_hundredth_so_that_the_others_keep_their_proportions(editor):
    editor.set_share("language/pretraining", 1.0)
    assert editor.shares["language/pretraining"] == pytest.approx(0.99)
    editor.set_share("language/pretraining", 0.7)
    assert editor.changes == {}


def test_a_muted_budget_has_nothing_and_gets_back_what_it_had(editor):
    editor.mute("language/alignment")
    assert editor.weights["language/alignment"] == 0
    assert editor.muted == ["language/alignment"]
    assert editor.numbers[1] == [100.0, 60.0, 76.8, False, True]  # the only one left cannot move
    assert editor.numbers[2] == [0.0, 0.0, 0.0, True, False]
    editor.mute("language/alignment", False)
    assert editor.changes == {}


def test_the_last_one_with_a_share_can_neither_be_muted_nor_moved(editor):
    editor.mute("language")
    before = editor.weights
    editor.mute("robotics")
    editor.set_share("robotics", 0.2)
    assert editor.weights == before
    editor.set_share("language", 0.25)
    assert editor.shares["language"] == pytest.approx(0.25, rel=1e-4)
    assert totals(editor) == {-1: 100.0, 0: 100.0}


def test_a_budget_that_has_no_weight_in_the_file_can_be_given_one():
    editor = BudgetEditor([BudgetNode("a", 10), BudgetNode("b", 30), BudgetNode("c", 0)])
    assert editor.muted == []  # it was not muted here
    editor.mute("c", False)
    assert editor.weights["c"] == 20  # the mean of its siblings'
    editor.set_share("c", 0)
    assert editor.changes == {}


def test_one_budget_alone_has_everything_and_cannot_move():
    editor = BudgetEditor([BudgetNode("everyone")], 8)
    editor.set_share("everyone", 0.5)
    assert editor.numbers == [[100.0, 100.0, 8.0, False, True]]
    assert editor.changes == {}


def test_the_page_reports_and_hears_that_it_was_heard(editor):
    hear(editor, 3, 1, type="share", share=0.7)
    assert (editor.seen, editor.changes, editor.edits) == (1, {"budget.1.weight": 140.0}, 1)
    hear(editor, 3, 2, type="mute", on=True)
    assert editor.muted == ["robotics"]
    for seq, wrong in enumerate(
        ({"row": 99}, {"row": -1}, {"row": "0"}, {"row": None}, {"row": 0, "share": "x"}), 3
    ):
        hear(editor, wrong.get("row"), seq, type="share", share=wrong.get("share", 0.5))
        assert editor.seen == seq  # the page must not wait for ever
    hear(editor, 0, 9, type="share", share=float("nan"))
    assert editor.changes == {"budget.1.weight": 0.0}


def test_what_is_equal_is_not_sent_again(editor):
    sent = []
    editor.observe(sent.append, ["budgets", "numbers"])
    editor.show(TREE, 128)
    assert sent == []
    editor.set_share("robotics", 0.5)
    assert [change["name"] for change in sent] == ["numbers"]


def test_of_a_huge_tree_the_page_shows_the_first_rows_and_says_so():
    editor = BudgetEditor([BudgetNode(f"team-{k}") for k in range(1000)], 1000)
    assert len(editor.budgets) == len(editor.numbers) == MOST_ROWS
    assert editor.hidden == 1000 - MOST_ROWS
    editor.mute("team-999")
    assert editor.changes == {"budget.999.weight": 0.0}


def test_shown_percents_add_up_to_a_hundred():
    assert shares.percents([1 / 3, 1 / 3, 1 / 3]) == [33.4, 33.3, 33.3]
    assert shares.percents([0.0, 0.0]) == [0.0, 0.0]
    assert shares.percents([]) == []


NAMES = ("language", "language/pretraining", "language/alignment", "robotics")


@given(st.lists(st.tuples(st.sampled_from(NAMES), st.floats(0, 1) | st.booleans()), max_size=12))
def test_shares_add_up_among_siblings_after_any_moves(moves):
    editor = BudgetEditor(TREE, 128)
    for path, what in moves:
        if isinstance(what, bool):
            editor.mute(path, what)
        else:
            editor.set_share(path, what)
        now = editor.shares
        assert math.isclose(now["language"] + now["robotics"], 1)
        assert math.isclose(now["language/pretraining"] + now["language/alignment"], 1)
        assert totals(editor) == {-1: 100.0, 0: 100.0}
    whole = [
        numbers[1] for budget, numbers in zip(editor.budgets, editor.numbers, strict=True) if budget["leaf"]
    ]
    assert sum(whole) == pytest.approx(100, abs=0.2)


@given(st.floats(0.001, 0.99), st.floats(1e-3, 1e6))
def test_a_weight_gives_the_share_that_was_asked_for(share, others):
    weight = shares.weight_for(share, others)
    assert weight / (weight + others) == pytest.approx(share, rel=1e-4)
