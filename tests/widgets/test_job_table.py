from pathlib import Path

import pytest

from gpuplan import load
from gpuplan_widgets import JobTable
from gpuplan_widgets.draft import jobs_of, place_of
from gpuplan_widgets.job_table import MOST_ROWS
from widgets.stage import staged

JOBS = [
    {"name": "tune", "kind": "training", "gpus": 4, "hours": 6.0, "priority": 3.0},
    {"name": "quant", "kind": "quantization", "gpus": 1, "hours": 1.5, "priority": 1, "earliest_hour": 3.0},
    {"name": "run", "kind": "training", "gpus": 2, "hours": 5, "priority": 2, "running_on": 0},
]


def names(table: JobTable) -> list[str]:
    return [job["name"] for job in table.jobs]


def hear(table: JobTable, **message: object) -> None:
    """What the page would send."""
    table._handle_custom_msg(message, [])


def test_the_table_gives_back_the_jobs_it_was_given_hidden_values_included():
    table = JobTable(JOBS)
    assert table.jobs == JOBS
    assert [row["hours"] for row in table.rows] == ["6", "1.5", "5"]
    assert [row["note"] for row in table.rows] == ["", "from hour 3", "runs from GPU 0 on"]


def test_an_edited_cell_is_a_number_where_it_is_one_and_else_what_was_typed():
    table = JobTable(JOBS)
    first = table.rows[0]["id"]
    hear(table, type="edit", seq=1, id=first, field="priority", value="7.5")
    hear(table, type="edit", seq=2, id=first, field="hours", value="90min")
    hear(table, type="edit", seq=3, id=first, field="gpus", value=" 8 ")
    assert table.jobs[0] == {"name": "tune", "kind": "training", "gpus": 8, "hours": "90min", "priority": 7.5}
    assert (table.seen, table.edits) == (3, 3)


@pytest.mark.parametrize("text", ["", "eight", "-5", "1e3", "inf", "nan", "٣", "1.2.3", "0x10"])
def test_what_is_no_plain_number_stays_text_for_the_scenario_to_judge(text):
    table = JobTable(JOBS)
    table.edit(table.rows[0]["id"], "gpus", text)
    assert table.jobs[0]["gpus"] == text


def test_jobs_move_with_all_they_carry_and_stop_at_the_ends():
    table = JobTable(JOBS)
    last = table.rows[2]["id"]
    hear(table, type="move", seq=1, id=last, by=-1)
    assert names(table) == ["tune", "run", "quant"]
    assert table.jobs[1]["running_on"] == 0
    for seq in (2, 3, 4):
        hear(table, type="move", seq=seq, id=last, by=-1)
    assert names(table) == ["run", "tune", "quant"]


def test_a_job_is_deleted_and_one_is_added_under_a_name_nobody_has():
    table = JobTable(JOBS)
    table.show([*JOBS, {**JOBS[0], "name": "new-job-1"}], taken=["new-job-2"])
    hear(table, type="delete", seq=1, id=table.rows[1]["id"])
    hear(table, type="add", seq=2)
    assert names(table) == ["tune", "run", "new-job-1", "new-job-3"]
    assert table.jobs[-1] == {
        "name": "new-job-3", "kind": "training", "gpus": 1, "hours": 1, "priority": 1
    }  # fmt: skip
    assert len({row["id"] for row in table.rows}) == 4


def test_a_message_about_a_row_or_a_field_that_is_gone_changes_nothing():
    table = JobTable(JOBS)
    hear(table, type="edit", seq=1, id=99, field="gpus", value="8")
    hear(table, type="edit", seq=2, id=0, field="running_on", value="8")
    hear(table, type="move", seq=3, id=99, by=1)
    hear(table, type="delete", seq=4, id=99)
    assert table.jobs == JOBS
    assert table.seen == 4


def test_mistakes_stand_beside_their_cells_and_follow_a_moved_row():
    table = JobTable(JOBS)
    table.show_mistakes(
        [(1, "gpus", "must be a power of two (got 3)"), (1, "gpus", "second"), (2, "running_on", "x")]
    )
    quant, run = table.rows[1]["id"], table.rows[2]["id"]
    assert table.mistakes == [
        {"id": quant, "field": "gpus", "text": "must be a power of two (got 3); second"},
        {"id": run, "field": "", "text": "x"},
    ]
    table.show(JOBS)
    assert table.mistakes == []


def test_equal_rows_are_not_sent_again():
    table = JobTable(JOBS)
    sent = []
    table.observe(sent.append)
    table.show(JOBS)
    assert sent == []


@pytest.mark.parametrize(
    "name", ["<script>alert(1)</script>", "=1+1", "../x", "\u202eabc", "🚀" * 200, "a\nb"]
)
def test_names_are_text(name):
    table = JobTable([{**JOBS[0], "name": name}])
    assert names(table) == [name]
    assert "innerHTML" not in table.get_state()["_esm"]
    assert repr(table) == "JobTable(1 jobs)"


def test_beyond_the_rows_of_the_page_jobs_stay_as_they_are():
    many = [{**JOBS[0], "name": f"job-{number}"} for number in range(MOST_ROWS + 7)]
    table = JobTable(many)
    assert len(table.rows) == MOST_ROWS
    assert table.hidden == 7
    assert table.jobs == many


@pytest.mark.browser
def test_long_hours_are_shown_in_short_until_they_are_edited(chromium: str, tmp_path: Path):
    table = JobTable([{**JOBS[0], "name": str(hours), "hours": hours} for hours in (4.254166, 0.018611, 1.5)])
    with staged(chromium, tmp_path, [table._esm], table.get_state(), table._css) as page:
        cells = page.locator("[data-field=hours]")
        shown = lambda: [cells.nth(row).input_value() for row in range(3)]  # noqa: E731
        assert shown() == ["4.25", "1.12 min", "1.5"]  # 0.018611 x 60 = 1.11666
        assert "exactly 4.254166" in str(cells.nth(0).get_attribute("title"))
        cells.nth(0).focus()
        assert shown()[0] == "4.254166"
        page.locator("#elsewhere").focus()
        assert shown()[0] == "4.25"
        assert page.evaluate("window.sent") == []  # looking changes nothing
        cells.nth(0).fill("4.25")
        page.locator("#elsewhere").focus()
        (message,) = page.evaluate("window.sent")
        assert (message["type"], message["field"], message["value"]) == ("edit", "hours", "4.25")
    assert table.jobs[0]["hours"] == 4.254166


RANGED = {
    "name": "wide", "kind": "training", "gpus": {"min": 2, "max": 8}, "gpu_hours": 40.0, "scaling": 0.5, "priority": 2
}  # fmt: skip


def test_a_range_of_gpus_is_shown_as_one_with_its_work_in_gpu_hours_and_given_back():
    table = JobTable([RANGED])
    row = table.rows[0]
    assert (row["gpus"], row["hours"], row["note"]) == ("2-8", "40 GPU-h", "scaling 0.5")
    assert table.jobs == [RANGED]
    table.edit(row["id"], "hours", "64")
    assert table.jobs == [{**RANGED, "gpu_hours": 64}]


def test_a_number_of_gpus_becomes_a_range_and_back_with_the_same_work():
    table = JobTable([JOBS[0]])
    first = table.rows[0]["id"]
    table.edit(first, "gpus", "2 - 8")
    assert table.jobs[0]["gpus"] == {"min": 2, "max": 8}
    assert table.jobs[0]["gpu_hours"] == 24
    table.edit(first, "gpus", "8")
    assert table.jobs == [{**JOBS[0], "gpus": 8, "hours": 3}]


def test_a_size_chosen_from_a_range_lasts_as_long_as_its_scaling_says():
    table = JobTable([RANGED])
    table.edit(table.rows[0]["id"], "gpus", "8")
    assert table.jobs == [{"name": "wide", "kind": "training", "gpus": 8, "hours": 10, "priority": 2}]


def test_mistakes_of_a_range_stand_beside_the_cells_they_are_about():
    assert place_of("batch.0.gpus.max") == ("jobs", 0, "gpus")
    assert place_of("batch.0.gpu_hours") == ("jobs", 0, "hours")
    assert place_of("batch.0.scaling") == ("jobs", 0, "")


def test_the_rows_of_a_scenario_with_ranges_read_back_equal():
    scenario = load("elastic-training")
    rows = JobTable(jobs_of(scenario)).jobs
    assert scenario.replace({"batch": rows}) == scenario
