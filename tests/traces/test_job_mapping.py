"""What columns of tables of jobs are taken for, with reasons; what must be confirmed; how it is changed."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuplan.inputs.errors import InputError
from gpuplan.traces.job_columns import FIELDS, NAMES, plain_name
from gpuplan.traces.job_mapping import JobMapping, choices
from gpuplan.traces.job_states import state_of
from gpuplan.traces.jobs_table import guess, read_jobs
from gpuplan.traces.published_tables import KNOWN


def table(folder: Path, *lines: str, name: str = "table.csv") -> Path:
    path = folder / name
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def taken(mapping: JobMapping) -> dict[str, tuple[str, str, str]]:
    return {g.column: (g.field, g.unit, g.confidence) for g in mapping.guesses if g.field}


@pytest.mark.parametrize(
    ("name", "plain", "unit"),
    [
        ("submit_s", "submit", "s"),
        ("Run time (min)", "runtime", "min"),
        ("NumGPUs", "numgpus", ""),
        ("Duration [in hours]", "duration", "h"),
        ("elapsedRaw", "elapsedraw", ""),
        ("GPU-Type", "gputype", ""),
        ("hours", "hours", ""),
        ("Priorität", "prioritaet", ""),
        ("", "", ""),
    ],
)
def test_names_without_signs(name: str, plain: str, unit: str) -> None:
    assert plain_name(name) == (plain, unit)


def test_every_name_means_a_field() -> None:
    assert set(NAMES.values()) <= set(FIELDS)
    assert all(name.isascii() and name.isalnum() and name == name.lower() for name in NAMES)


def test_published_tables_are_consistent() -> None:
    """A column that tells a table apart or is read must not be read as two things."""
    for known in KNOWN:
        columns = [column for column, _ in known.columns.values()]
        assert len(columns) == len(set(columns))
        assert set(known.columns) <= set(FIELDS)


def test_names_that_say_it_all(tmp_path: Path) -> None:
    found = guess(
        table(
            tmp_path,
            "Job ID,User,Project,Queue,State,Submitted,Started,Finished,GPUs,GPU model,Time limit (min)",
            "1,ann,vision,gold,COMPLETED,2026-05-01 08:00,2026-05-01 08:10,2026-05-01 09:10,4,A100,120",
            "2,bob,speech,gold,FAILED,2026-05-01 08:30,2026-05-01 08:40,2026-05-01 08:41,1,A100,60",
        )
    )
    assert taken(found) == {
        "Job ID": ("job", "", "sure"),
        "User": ("user", "", "sure"),
        "Project": ("team", "", "sure"),
        "Queue": ("partition", "", "likely"),
        "State": ("state", "", "sure"),
        "Submitted": ("submit", "", "sure"),
        "Started": ("start", "", "sure"),
        "Finished": ("end", "", "sure"),
        "GPUs": ("gpus", "", "sure"),
        "GPU model": ("gpu_type", "", "sure"),
        "Time limit (min)": ("limit", "min", "sure"),
    }
    assert found.open == ("column Queue is taken for the partition: its name and its cells hint at it",)


def test_a_queue_of_numbers_is_a_wait(tmp_path: Path) -> None:
    found = guess(table(tmp_path, "id,submit_s,queue,run_s,gpus", "1,0,30,60,1", "2,5,0,60,2"))
    assert taken(found)["queue"] == ("wait", "s", "likely")


def test_a_run_time_without_a_unit_is_asked_about_unless_start_and_end_tell_it(tmp_path: Path) -> None:
    lone = guess(table(tmp_path, "id,submit_s,duration,gpus", "1,0,60,1"))
    assert taken(lone)["duration"] == ("elapsed", "s", "likely")
    assert "seconds are assumed" in lone.open[0]
    rows = [f"{k},2026-05-01 0{k}:00:00,2026-05-01 0{k}:{10 + k}:00,{10 + k},1" for k in range(1, 6)]
    told = guess(table(tmp_path, "id,start,end,duration,gpus", *rows))
    assert taken(told)["duration"] == ("elapsed", "min", "sure")
    assert told.sure
    assert read_jobs(tmp_path / "table.csv").elapsed_s.tolist() == [660, 720, 780, 840, 900]


def test_what_must_be_confirmed_is_said_and_confirmed(tmp_path: Path) -> None:
    path = table(tmp_path, "id,time,duration,size", "1,2026-05-01 08:00,60,4")
    with pytest.raises(InputError) as found:
        read_jobs(path)
    assert [mistake.rule.split(":")[0] for mistake in found.value.mistakes] == ["must be confirmed"] * 3
    assert read_jobs(path, guess(path)).gpu_seconds == 240
    changed = guess(path).changed(elapsed=("duration", "min"))
    assert read_jobs(path, changed).gpu_seconds == 14_400
    assert (
        read_jobs(path, {"elapsed": ("duration", "min"), "submit": "time", "gpus": "size"}).gpu_seconds
        == 14_400
    )
    with pytest.raises(InputError, match="column time is taken for the submission"):
        read_jobs(path, {"elapsed": ("duration", "min"), "gpus": "size"})  # the rest must be confirmed still


def test_slashes_in_dates_are_asked_about(tmp_path: Path) -> None:
    path = table(tmp_path, "id,submit,run_s,gpus", "1,03/04/2026 08:00,60,1", "2,05/04/2026 08:00,60,1")
    mapping = guess(path)
    assert mapping.open == (
        "Dates such as 03/04/2026 08:00 could be 3 Apr 2026 or 4 Mar 2026: which number is the day?",
    )
    with pytest.raises(InputError, match="which number is the day"):
        read_jobs(path, mapping)  # confirming is no answer
    found = read_jobs(path, mapping.changed(date_order="day-first"))
    assert found.submit_s[1] - found.submit_s[0] == 2 * 86_400
    assert (
        read_jobs(path, {"date_order": "month-first"}).submit_s[1]
        - read_jobs(path, {"date_order": "month-first"}).submit_s[0]
        == 61 * 86_400
    )  # 4 March to 4 May


def test_a_slash_is_settled_by_another_column(tmp_path: Path) -> None:
    path = table(tmp_path, "id,submit,start,run_s,gpus", "1,03/04/2026 08:00,13/04/2026 08:00,60,1")
    assert guess(path).open == ()
    assert read_jobs(path).wait_s.tolist() == [10 * 86_400]


def test_columns_that_are_missing_are_told_with_those_that_are_there(tmp_path: Path) -> None:
    path = table(tmp_path, "id,memory", "1,2")
    with pytest.raises(InputError) as found:
        read_jobs(path)
    rules = [mistake.rule for mistake in found.value.mistakes]
    assert rules == [
        "no column for the number of GPUs; found: id, memory",
        "no column for the run time, nor two for start and end; found: id, memory",
        "no column for the submission, nor for the start; found: id, memory",
    ]


def test_cells_that_do_not_look_like_it_are_not_used(tmp_path: Path) -> None:
    found = guess(table(tmp_path, "id,submit_s,run_s,gpus", "1,0,60,many", "2,0,60,few"))
    assert found.missing[0].startswith("no column for the number of GPUs")
    (gpus,) = (g for g in found.guesses if g.column == "gpus")
    assert gpus.reason == "its cells do not look like the number of GPUs"


def test_gpu_hours_are_not_gpus(tmp_path: Path) -> None:
    found = guess(table(tmp_path, "id,submit_s,run_s,gpus,gpu_hours", "1,0,60,2,0.03"))
    assert "gpu_hours" not in taken(found)


def test_changes_are_checked(tmp_path: Path) -> None:
    mapping = guess(table(tmp_path, "id,submit_s,run_s,gpus", "1,0,60,2"))
    with pytest.raises(InputError) as found:
        mapping.changed(gpu="gpus", gpus="cards", elapsed=("run_s", "years"), date_order="wild")  # type: ignore[arg-type]
    words = str(found.value)
    assert "gpu: is no field of a job; did you mean gpus?" in words
    assert "gpus: must be a column of the file; found: id, submit_s, run_s, gpus (got 'cards')" in words
    assert "elapsed: must have a unit of s, ms, min, h, d, batch (got 'years')" in words
    assert "date_order: must be day-first or month-first" in words
    without = mapping.changed(job=None)
    assert without.of("job") is None


def test_choices_of_the_command_line() -> None:
    assert choices(["gpus=Cards", "elapsed=Used:min", "user=", "submit=at:noon", "date_order=day-first"]) == {
        "gpus": "Cards",
        "elapsed": ("Used", "min"),
        "user": None,
        "submit": "at:noon",
        "date_order": "day-first",
    }
    with pytest.raises(InputError, match="must be a field"):
        choices(["gpus", "cards=gpus"])


def test_a_mapping_shows_itself_and_stays_text(tmp_path: Path) -> None:
    path = table(tmp_path, "id,submit_s,run_s,gpus,<b>=1+1</b>", "1,0,60,2,<script>")
    mapping = guess(path)
    assert "the run time, in seconds" in repr(mapping)
    page = mapping._repr_html_()
    assert "<script>" not in page
    assert "<b>" not in page
    assert list(mapping.to_frame().columns) == ["column", "example", "meaning", "confidence", "reason"]


def test_the_mapping_of_another_file(tmp_path: Path) -> None:
    mapping = guess(table(tmp_path, "id,submit_s,run_s,gpus", "1,0,60,2"))
    other = table(tmp_path, "job,submit_s,run_s,gpus", "1,0,60,2", name="other.csv")
    with pytest.raises(InputError, match="must be the mapping of this file"):
        read_jobs(other, mapping)


@pytest.mark.parametrize(
    ("word", "state"),
    [
        ("COMPLETED", "completed"),
        ("CANCELLED by 1001", "cancelled"),
        ("Canceled", "cancelled"),
        ("NODE_FAIL", "node_fail"),
        ("OOMKilled", "out_of_memory"),
        ("Pass", "completed"),
        ("Evicted", "preempted"),
        ("Half-done", "half-done"),
        ("", "unknown"),
    ],
)
def test_states(word: str, state: str) -> None:
    assert state_of(word, {}) == state


@given(st.lists(st.text(max_size=15), min_size=2, max_size=6, unique_by=str.strip), st.text(max_size=8))
def test_any_header_is_a_mapping_or_refused(
    tmp_path_factory: pytest.TempPathFactory, names: list[str], cell: str
) -> None:
    path = tmp_path_factory.mktemp("any") / "x.csv"
    path.write_text(",".join(names) + "\n" + ",".join([cell] * len(names)) + "\n", encoding="utf-8")
    try:
        found = guess(path)
    except InputError:
        return
    assert isinstance(repr(found), str)
    assert isinstance(found._repr_html_(), str)
