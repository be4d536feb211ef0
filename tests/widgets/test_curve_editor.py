from gpuplan_widgets import CurveEditor


def test_the_scale_follows_the_cluster_and_reaches_a_higher_demand():
    editor = CurveEditor({"chat": [1, 2, 3]}, vmax=8)
    assert editor.vmax == 8
    editor.show({"chat": [1, 2, 30]}, vmax=8, step_hours=0.5)
    assert editor.vmax == 30
    assert editor.step_hours == 0.5


def test_what_the_page_draws_is_the_demand_by_app():
    editor = CurveEditor({"chat": [1, 2], "search": [0, 0]}, vmax=4)
    editor.set_state({"curves": [[1, 4], [0, 0]], "edits": 1})  # as the page sends it
    assert editor.demand == {"chat": [1, 4], "search": [0, 0]}
    assert editor.edits == 1


def test_equal_curves_are_not_sent_again():
    editor = CurveEditor({"chat": [1, 2]}, vmax=4)
    sent = []
    editor.observe(sent.append)
    editor.show({"chat": (1, 2)}, vmax=4, step_hours=1.0)
    assert sent == []


def test_an_app_that_is_gone_is_no_longer_the_one_that_is_edited():
    editor = CurveEditor({"chat": [1], "search": [2]}, vmax=4)
    editor.app = 1
    editor.show({"chat": [1]}, vmax=4, step_hours=1.0)
    assert editor.app == 0


def test_a_week_of_ten_minutes_and_no_app_at_all():
    assert len(CurveEditor({"week": [3] * 1008}, vmax=8).curves[0]) == 1008
    empty = CurveEditor()
    assert empty.demand == {}
    assert repr(empty) == "CurveEditor(0 apps)"
