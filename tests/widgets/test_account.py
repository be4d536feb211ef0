import gpuplan as gp
from gpuplan_widgets.account import Account


def test_what_is_folded_away_or_not_asked_for_is_not_written(monkeypatch):
    scenario = gp.load("mixed-day")
    plans = {"left": gp.plan(scenario, "fifo"), "right": gp.plan(scenario, "aware")}
    account = Account(plans)
    account.listen()

    def never(*args):
        raise AssertionError("written although nobody sees it")

    with monkeypatch.context() as patched:
        patched.setattr("gpuplan_widgets.account.table", never)
        patched.setattr("gpuplan_widgets.account.sentences.figures_html", never)
        patched.setattr(gp.Plan, "why", never)
        account.show(plans)
    assert account.summary.value
    assert (account.figures.value, account.tables.value, account.why_text.value) == ("", "", "")
    account.fold.selected_index = 1
    account.why.value = 0
    assert scenario.batch[0].name in account.tables.value
    assert account.why_text.value.count("<p>") == 2
