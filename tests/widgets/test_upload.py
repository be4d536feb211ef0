"""A person's own file in the explorers, without a browser: what is opened, said, and marked as old."""

import datetime as dt
import html
import re

import pytest

import gpuplan as gp
from gpuplan_widgets import AllocationExplorer, FairShareExplorer, PackingExplorer, answering, messages
from gpuplan_widgets.upload import OLD

JOBS = """\
id,submit_s,gpus,run_s
a,0,4,3600
b,60,eight,600
c,120,2,-5
d,180,2,
e,240,,60
<img src=x onerror=alert(1)>,300,2,600
"""

#: Two jobs of one GPU for half an hour and an hour; the second is submitted at 01:00.
SWF = """\
; MaxProcs: 4
1 0 0 1800 1 -1 -1 1 3600 -1 1 1 1 -1 1 -1 -1 -1
2 3600 0 3600 1 -1 -1 1 3600 -1 1 2 1 -1 1 -1 -1 -1
"""

TINY = {
    "kind": "fairshare",
    "name": "tiny",
    "cluster": {"gpus": 4},
    "workload": {"jobs": [{"job": "a", "gpus": 2, "run_s": 600}]},
}

NOW = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)


@pytest.fixture(autouse=True)
def at_once(monkeypatch):
    monkeypatch.setattr(answering, "SLOW_S", 600.0)


@pytest.fixture
def explorer():
    return FairShareExplorer(TINY)


def upload(explorer, **files):
    """Upload files by name (a double underscore stands for a dot), as the page does."""
    explorer.file.upload.value = tuple(
        {
            "name": name.replace("__", "."),
            "type": "",
            "size": len(text),
            "content": memoryview(text.encode()),
            "last_modified": NOW,
        }
        for name, text in files.items()
    )


def said(explorer):
    return messages.said(explorer.file.said)


def plain(widget):
    return re.sub(r"\s+", " ", html.unescape(re.sub("<[^>]*>", " ", widget.value)))


def shown(widget):
    return widget.layout.display != "none"


def test_a_file_with_mistakes_is_not_opened_and_every_mistake_has_line_column_and_text(explorer):
    upload(explorer, input__csv=JOBS)
    assert said(explorer) == "input.csv: 4 mistakes in 4 lines."
    cells = re.findall(r"<tr>(.*?)</tr>", explorer.file.report.value)[1:]
    rows = [[html.unescape(c) for c in re.findall(r"<td[^>]*>(.*?)</td>", row)] for row in cells]
    assert [(line, column, text) for line, column, _, text in rows] == [
        ("3", "gpus", "'eight'"),
        ("4", "run_s", "'-5'"),
        ("5", "run_s", "''"),
        ("6", "gpus", "''"),
    ]
    assert explorer.scenario.name == "tiny"
    assert explorer.chart.old
    assert explorer.chart.note == OLD
    assert shown(explorer.file.go_on)
    assert explorer.file.go_on.description == "Go on without these 4 rows"


def test_the_picture_stays_marked_while_controls_move_until_the_file_is_taken_or_left(explorer):
    upload(explorer, input__csv=JOBS)
    explorer.controls.left.value = "fifo"
    assert explorer.runs["left"].policy == "fifo"
    assert explorer.chart.old
    assert explorer.chart.note == OLD
    explorer.file.dismiss.click()
    assert not explorer.chart.old
    assert explorer.chart.note != OLD
    assert said(explorer) == ""
    assert not shown(explorer.file.dismiss)


def test_without_the_bad_rows_only_when_the_person_says_so(explorer):
    upload(explorer, input__csv=JOBS)
    explorer.file.go_on.click()
    assert said(explorer) == ""
    assert not explorer.chart.old
    scenario = explorer.scenario
    # 4 GPUs x 3,600 s and 2 GPUs x 600 s
    assert (len(scenario.jobs), int(scenario.jobs.gpu_seconds.sum())) == (2, 15_600)
    assert "cannot be read (lines 3, 4, 5, 6) 4 rows" in plain(explorer.file.report)
    assert not shown(explorer.file.go_on)
    assert explorer.file.imported.account.read == 6


def test_more_bad_rows_than_are_named_are_counted_and_can_be_left_out(explorer):
    rows = "".join(f"x{k},0,1,{-5 if k < 1_500 else 60}\n" for k in range(4_500))
    upload(explorer, input__csv=f"id,submit_s,gpus,run_s\n{rows}y,0\n")
    assert said(explorer) == "input.csv: 1,501 mistakes in more than 1,001 lines."
    assert "... and 1,451 more" in plain(explorer.file.report)
    assert shown(explorer.file.go_on)
    assert explorer.file.go_on.description == "Go on without these rows"
    explorer.file.go_on.click()
    account = explorer.file.imported.account
    assert (said(explorer), account.read, account.used) == ("", 4_501, 3_000)


def test_more_bad_lines_of_sacct_than_are_named_can_be_left_out(explorer):
    head = "JobID|AllocTRES|Submit|Start|End|Elapsed|State|Partition|User|Account\n"
    times = "2026-03-02T08:00:00|2026-03-02T08:00:00|2026-03-02T09:00:00"
    rows = "".join(
        f"{k + 1}|gres/gpu=1|{times}|{'soon' if k else '01:00:00'}|COMPLETED|p|u|a\n" for k in range(1_201)
    )
    upload(explorer, sacct__txt=head + rows)
    assert said(explorer) == "sacct.txt: 1,200 mistakes in more than 1,000 lines."
    assert shown(explorer.file.go_on)
    explorer.file.go_on.click()
    assert (said(explorer), len(explorer.scenario.jobs)) == ("", 1)


def test_names_of_a_file_stay_text(explorer):
    upload(explorer, input__csv=JOBS)
    explorer.file.go_on.click()
    page = explorer.file.report.value + explorer.account.summary.value + explorer.file.said.value
    assert "<img" not in page
    upload(explorer, **{"<img src=x>__csv": "what,ever\n1,2\n"})
    assert "<img" not in explorer.file.said.value + explorer.file.report.value
    assert "no column for the number of GPUs; found: what, ever" in said(explorer)
    assert not shown(explorer.file.go_on)


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("empty.csv", b"", "must not be empty"),
        ("paper.pdf", b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n1 0 obj", "this is not a text table"),
        ("cut.csv.gz", b"\x1f\x8b\x08\x00\x00\x00\x00\x00", "the gzip data is damaged or cut off"),
        ("headers.csv", b"id,submit_s,gpus,run_s\n", "row"),
        ("wrong.yaml", b"kind: fairshare\nname: x\ncluster: {gpus: 0}\nworkload: {jobs: []}\n", "cluster.gpus"),
        ("other.yaml", b"kind: allocation\nname: x\ncluster: {gpus: 4}\n", "must be fairshare here"),
    ],
)  # fmt: skip
def test_what_cannot_be_opened_is_a_sentence(explorer, tmp_path, name, content, sentence):
    path = tmp_path / name
    path.write_bytes(content)
    explorer.file.path.value = str(path)
    assert sentence in said(explorer)
    assert "Traceback" not in said(explorer)
    assert explorer.chart.old
    assert not shown(explorer.file.go_on)
    explorer.file.path.value = str(tmp_path)
    assert said(explorer) != ""
    explorer.file.path.value = str(tmp_path / "absent.csv")
    assert "there is no such file" in said(explorer)


def test_rows_can_be_left_out_of_jobs_and_not_of_traffic():
    explorer = AllocationExplorer("two-apps")
    explorer.file.fields["per_gpu"].value = "2"
    upload(explorer, rates__csv="time,rate\n2026-03-02 00:00,1\n2026-03-02 01:00,many\n")
    assert "line 3" in said(explorer)
    assert not shown(explorer.file.go_on)
    upload(explorer, log__swf=SWF + "3 many\n")
    assert shown(explorer.file.go_on)
    explorer.file.go_on.click()
    assert said(explorer) == ""
    assert len(explorer.scenario.batch) == 2


def test_a_scenario_is_uploaded_together_with_its_table_of_jobs(explorer):
    scenario = "kind: fairshare\nname: mine\ncluster: {gpus: 8}\nworkload: {file: jobs.csv}\n"
    table = "job,submit_s,gpus,run_s\nx,0,8,60\n"
    upload(explorer, mine__yaml=scenario)
    assert "jobs.csv" in said(explorer)
    upload(explorer, jobs__csv=table, mine__yaml=scenario)
    assert said(explorer) == ""
    assert (explorer.scenario.name, explorer.scenario.gpus, len(explorer.scenario.jobs)) == ("mine", 8, 1)
    assert explorer.file.imported is None


def test_a_reset_goes_back_to_the_file(explorer):
    upload(explorer, log__swf=SWF)
    own = explorer.scenario
    assert [node.name for node in own.budget] == ["group-1"]
    explorer.controls.left.value = "fifo"
    explorer.reset()
    assert explorer.scenario == own


def test_what_was_done_stands_beside_the_policies(explorer):
    """Jobs 1 and 2 started at once then; both policies do so too: 0.5 h and 1 h of GPU-time in 2 h on 4 GPUs."""
    upload(explorer, log__swf=SWF)
    words = plain(explorer.file.report)
    assert "figure as it was left: easy right: fair-share unit" in words
    assert "occupancy 18.8% 18.8% 18.8%" in words
    assert "Open loop" in words
    late = SWF.replace("2 3600 0 3600", "2 3600 1800 3600")
    upload(explorer, log__swf=late)
    assert "mean_wait_s 900.00 0.00 0.00 seconds" in plain(explorer.file.report)


def test_fields_say_what_is_not_in_the_file_and_reading_again_minds_them():
    explorer = AllocationExplorer("two-apps")
    upload(explorer, log__swf=SWF)
    assert said(explorer) == ""
    # steps of an hour: job 2 is known from hour 1
    assert [(job.gpus, job.hours, job.earliest_hour) for job in explorer.scenario.batch] == [
        (1, 0.5, 0),
        (1, 1, 1),
    ]
    assert explorer.scenario.cluster.gpus == 4
    explorer.file.fields["gpus"].value = "2"
    explorer.file.again.click()
    assert explorer.scenario.cluster.gpus == 2
    explorer.file.fields["gpus"].value = "two"
    explorer.file.again.click()
    assert said(explorer) == "Your own file: GPUs: must be a whole number (got 'two')."
    assert explorer.scenario.cluster.gpus == 2
    explorer.file.fields["gpus"].value = ""
    explorer.file.fields["day"].value = "2026-02-30"
    explorer.file.again.click()
    assert "must be a day written as YYYY-MM-DD" in said(explorer)


def test_columns_that_are_not_sure_are_asked_about_first():
    explorer = FairShareExplorer(TINY)
    table = "job;start;gpus;duration\na;03/04/2026 10:00;2;60\nb;05/06/2026 11:00;1;90\n"
    upload(explorer, export__csv=table)
    assert said(explorer) == "export.csv: what its columns mean must be confirmed first."
    assert "column duration is taken for the run time, in seconds" in plain(explorer.file.report)
    assert explorer.scenario.name == "tiny"
    assert explorer.chart.note == OLD
    assert [order for order, button in explorer.file.confirm.items() if shown(button)] == [
        "day-first",
        "month-first",
    ]
    explorer.file.confirm["day-first"].click()
    assert [order for order, button in explorer.file.confirm.items() if shown(button)] == [""]
    explorer.file.confirm[""].click()
    assert said(explorer) == ""
    assert not explorer.chart.old
    jobs = explorer.scenario.jobs
    # 3 April 10:00 is 36,000 s after the midnight before; 5 June is 63 days later
    assert jobs.submit_s.tolist() == [36_000, 63 * 86_400 + 39_600]
    assert (jobs.gpus.tolist(), jobs.run_s.tolist()) == ([2, 1], [60, 90])


def test_packing_opens_scenarios_and_nothing_else(tmp_path):
    explorer = PackingExplorer("four-gpus")
    path = tmp_path / "own.yaml"
    gp.load("embedder-evicts-chat").replace({"name": "own"}).save(path)
    explorer.file.path.value = str(path)
    assert said(explorer) == ""
    assert explorer.scenario.name == "own"
    upload(explorer, log__swf=SWF)
    assert "must be a scenario file" in said(explorer)
    assert explorer.scenario.name == "own"


def test_an_account_has_no_advice_for_a_command_line_and_no_dates_that_nobody_told(explorer):
    upload(explorer, input__csv="id,submit_s,gpus,run_s,gpu_type\na,0,4,3600,A100\nb,60,2,600,T4\n")
    said_ = plain(explorer.file.report)
    assert "--" not in said_
    assert "say how many GPUs a node has" in said_
    assert "its second 0 is shown as 1970-01-01" in said_


def test_controls_at_rest_say_why():
    own, made = FairShareExplorer(TINY), FairShareExplorer("three-programmes")
    assert own.controls.load.disabled
    assert "The jobs are the scenario's own" in plain(own.controls.about_work)
    assert not made.controls.load.disabled
    assert made.controls.about_work.value == ""
    packing = PackingExplorer("one-gpu-idles")
    assert packing.controls.rate.disabled
    assert "The tasks are the scenario's own" in plain(packing.controls.about_work)
    packing.controls.situation.value = "four-gpus"
    assert not packing.controls.rate.disabled
    assert packing.controls.about_work.value == ""
