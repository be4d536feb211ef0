"""The table of jobs: what each column means, every mistake with its line, an account that adds up."""

import gzip
import random
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gpuplan.fairshare.job_table import JobTable, read_jobs
from gpuplan.fairshare.model import NEVER, BudgetNode
from gpuplan.fairshare.tree import tree_of
from gpuplan.inputs.errors import InputError

TREE = tree_of(
    (
        BudgetNode("language", 60, (BudgetNode("pretraining", 70), BudgetNode("evaluation", 30))),
        BudgetNode("robotics", 40, (BudgetNode("arms", 1), BudgetNode("evaluation", 1))),
    )
)

HEADER = "job,team,submit_s,gpus,run_s,limit_s,min_runtime_s,resumable,priority,gpu\n"
ROWS = (
    "b,language/pretraining,10,8,7200,10800,3600,yes,2,A100\n"
    "a,arms,10,1,60,,,no,,\n"
    "c,robotics/evaluation,0,2,500,300,900,true,-1,A100|T4\n"
)


def write(folder: Path, text: str, name: str = "jobs.csv") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8", newline="")
    return path


def read(folder: Path, text: str) -> JobTable:
    return read_jobs(write(folder, text), TREE)


def mistakes(folder: Path, text: str) -> list[str]:
    with pytest.raises(InputError) as caught:
        read(folder, text)
    return [str(mistake) for mistake in caught.value.mistakes]


def test_every_column_means_what_the_contract_says(tmp_path: Path) -> None:
    jobs = read(tmp_path, HEADER + ROWS).jobs
    assert jobs.name.tolist() == ["c", "a", "b"]  # by submission, then id
    assert jobs.team.tolist() == ["robotics/evaluation", "robotics/arms", "language/pretraining"]
    assert jobs.submit_s.tolist() == [0, 10, 10]
    assert jobs.gpus.tolist() == [2, 1, 8]
    assert jobs.run_s.tolist() == [300, 60, 7200]  # c would run for 500 s, but its limit is 300 s
    assert jobs.limit_s.tolist() == [300, NEVER, 10800]
    assert jobs.minimum_s.tolist() == [900, 3600, 3600]  # a declares none and has no limit: 1 h
    assert jobs.resumable.tolist() == [True, False, True]
    assert jobs.priority.tolist() == [-1, 0, 2]
    assert jobs.gpu.tolist() == ["A100|T4", "", "A100"]
    assert jobs.one_node.tolist() == [False] * 3


def test_times_may_name_their_unit(tmp_path: Path) -> None:
    jobs = read(tmp_path, HEADER + "a,arms,1.5h,1,90min,2h,600,,,\nb,arms,2d,1,30,1 h,30s,,,\n").jobs
    assert jobs.submit_s.tolist() == [5400, 2 * 86_400]
    assert (jobs.run_s.tolist(), jobs.limit_s.tolist()) == ([5400, 30], [7200, 3600])
    assert jobs.minimum_s.tolist() == [600, 30]


def test_the_account_adds_up_and_says_what_was_changed(tmp_path: Path) -> None:
    account = read(tmp_path, HEADER + ROWS).account
    assert (account.read, account.used, account.excluded) == (3, 3, ())
    assert dict(account.changed) == {
        "ended at their limit (the run time is longer)": 1,
        "without a limit": 1,
        "without a minimum run time: min(limit, 1 h)": 1,
    }
    amounts = {what: (amount, unit) for what, amount, unit in account.amounts}
    # 8 x 7200 + 1 x 60 + 2 x 300 = 58,260 GPU-seconds; cut off: 2 x 200 = 400
    assert amounts["wanted: GPUs x run time"] == (pytest.approx(58_260 / 3600), "GPU-hours")
    assert amounts["cut off at limits"] == (pytest.approx(400 / 3600), "GPU-hours")


def test_columns_come_in_any_order_and_the_optional_ones_may_be_absent(tmp_path: Path) -> None:
    jobs = read(tmp_path, "run_s,gpus,team,job,submit_s\n60,2,arms,x,5\n").jobs
    assert (jobs.limit_s.tolist(), jobs.minimum_s.tolist(), jobs.resumable.tolist()) == (
        [NEVER],
        [3600],
        [True],
    )
    assert (jobs.priority.tolist(), jobs.gpu.tolist(), jobs.one_node.tolist()) == ([0], [""], [False])


def test_minimum_run_time_that_is_not_declared_is_an_hour_or_the_limit(tmp_path: Path) -> None:
    rows = "x,arms,0,1,60,120,\ny,arms,0,1,60,-1,\nz,arms,0,1,60,,0\n"
    jobs = read(tmp_path, "job,team,submit_s,gpus,run_s,limit_s,min_runtime_s\n" + rows).jobs
    assert jobs.minimum_s.tolist() == [120, 3600, 0]
    assert jobs.limit_s.tolist() == [120, NEVER, NEVER]


def test_one_team_need_not_be_named(tmp_path: Path) -> None:
    alone = tree_of((BudgetNode("us"),))
    text = "job,submit_s,gpus,run_s\nx,0,1,5\n"
    assert read_jobs(write(tmp_path, text), alone).jobs.team.tolist() == ["us"]
    assert mistakes(tmp_path, text) == [
        "line 2, team: is a column that the file must have: the budget tree has several teams"
    ]


def test_fractions_of_seconds_are_rounded_half_up_and_counted(tmp_path: Path) -> None:
    text = "job,team,submit_s,gpus,run_s,limit_s\nx,arms,0.5,1,1.49,2.5\ny,arms,1.4999,1,2,3\n"
    table = read(tmp_path, text)
    assert table.jobs.submit_s.tolist() == [1, 1]
    assert table.jobs.run_s.tolist() == [1, 2]
    assert table.jobs.limit_s.tolist() == [3, 3]
    assert ("times rounded to whole seconds", 2) in table.account.changed


def test_gzip_byte_order_mark_quotes_and_windows_line_ends(tmp_path: Path) -> None:
    text = "\ufeff" + (HEADER + ROWS).replace("\n", "\r\n").replace("\nb,", '\n"b",', 1)
    path = tmp_path / "jobs.csv.gz"
    path.write_bytes(gzip.compress(text.encode()))
    assert read_jobs(path, TREE).jobs == read(tmp_path, HEADER + ROWS).jobs


def test_hostile_names_stay_text(tmp_path: Path) -> None:
    names = ["=1+1", "<script>", "../up", "nan", "null", "😀", "1e3", "007"]
    rows = "".join(f'"{name}",arms,0,1,1\n' for name in names)
    assert set(read(tmp_path, "job,team,submit_s,gpus,run_s\n" + rows).jobs.name) == set(names)


def test_a_leaf_name_is_enough_where_it_is_unique(tmp_path: Path) -> None:
    head = "job,team,submit_s,gpus,run_s\n"
    assert read(tmp_path, head + "x,pretraining,0,1,1\n").jobs.team.tolist() == ["language/pretraining"]
    assert mistakes(tmp_path, head + "x,evaluation,0,1,1\ny,language,0,1,1\nz,pretrainig,0,1,1\n") == [
        "line 2, team: must be a path, for there are language/evaluation, robotics/evaluation (got 'evaluation')",
        "line 3, team: must be a team, but this budget is divided into language/evaluation, language/pretraining"
        " (got 'language')",
        "line 4, team: must be a team of the budget tree; did you mean pretraining? (got 'pretrainig')",
    ]


def test_an_unknown_team_of_many_jobs_is_told_once_with_its_first_lines(tmp_path: Path) -> None:
    rows = "".join(f"j{k},ghosts,{k},1,1\n" for k in range(1000))
    (mistake,) = mistakes(tmp_path, "job,team,submit_s,gpus,run_s\n" + rows)
    assert mistake == (
        "line 2, team: must be a team of the budget tree"
        " (lines 2, 3, 4, 5, 6, 7, 8, 9, 10, 11 and 990 more) (got 'ghosts')"
    )


@pytest.mark.parametrize(
    ("row", "mistake"),
    [
        ("x,arms,0,0,1,,,,,", "line 2, gpus: must be at least 1 (got 0)"),
        ("x,arms,0,-4,1,,,,,", "line 2, gpus: must be at least 1 (got -4)"),
        ("x,arms,0,2.5,1,,,,,", "line 2, gpus: must be a whole number (got 2.5)"),
        ("x,arms,0,,1,,,,,", "line 2, gpus: must be given"),
        ("x,arms,0,many,1,,,,,", "line 2, gpus: must be a number (got 'many')"),
        ("x,arms,0,1e9,1,,,,,", "line 2, gpus: must be at most 10,000,000 (got 1000000000)"),
        ("x,arms,-1,1,1,,,,,", "line 2, submit_s: must not be negative (got -1)"),
        ("x,arms,,1,1,,,,,", "line 2, submit_s: must be given"),
        ("x,arms,0,1,-5,,,,,", "line 2, run_s: must not be negative (got -5)"),
        (
            "x,arms,0,1,nan,,,,,",
            "line 2, run_s: must be a number of seconds, or one with s, min, h, d or w (30min, 8h) (got 'nan')",
        ),
        ("x,arms,0,1,inf,,,,,", "line 2, run_s: must be a number (got inf)"),
        ("x,arms,0,1,1e11,,,,,", "line 2, run_s: must be at most 10,000,000,000 (got 100000000000)"),
        ("x,arms,0,1,5,-2,,,,", "line 2, limit_s: must not be negative (empty or -1: unknown) (got -2)"),
        (
            "x,arms,0,1,5,0,,,,",
            "line 2, limit_s: must be more than 0 for work that runs (empty: no limit) (got 0)",
        ),
        ("x,arms,0,1,5,,-1,,,", "line 2, min_runtime_s: must not be negative (got -1)"),
        ("x,arms,0,1,5,,,maybe,,", "line 2, resumable: must be true or false (got 'maybe')"),
        ("x,arms,0,1,5,,,,1.5,", "line 2, priority: must be a whole number (got 1.5)"),
        (
            "x,arms,0,1,5,,,,,A100|",
            "line 2, gpu: must be a GPU type, or several joined by | (A100|T4) (got 'A100|')",
        ),
        (",arms,0,1,5,,,,,", "line 2, job: must be given"),
        ("x,,0,1,5,,,,,", "line 2, team: must be given: the team whose budget the job is charged to"),
        (
            '"a\x1bb",arms,0,1,5,,,,,',
            "line 2, job: must not hold the control character U+001B (got 'a\\x1bb')",
        ),
        (f"{'x' * 201},arms,0,1,5,,,,,", "line 2, job: must have at most 200 characters"),
        ("x,arms,0,1,5", "line 2: must have 10 cells, as the header has"),
    ],
)
def test_each_mistake_names_line_column_and_value(tmp_path: Path, row: str, mistake: str) -> None:
    assert mistakes(tmp_path, HEADER + row + "\n") == [mistake]


def test_all_mistakes_at_once_by_line(tmp_path: Path) -> None:
    rows = "x,arms,0,1,5,,,,,\n\nx,nobody,-1,0,5,,,,,\ny,arms,0,1,5,,,perhaps,,\n"
    assert mistakes(tmp_path, HEADER + rows) == [
        "line 2, job: must be unique (lines 2 and 4) (got 'x')",  # line 3 is empty
        "line 4, team: must be a team of the budget tree (got 'nobody')",
        "line 4, submit_s: must not be negative (got -1)",
        "line 4, gpus: must be at least 1 (got 0)",
        "line 5, resumable: must be true or false (got 'perhaps')",
    ]


def test_lines_are_counted_past_quoted_line_breaks(tmp_path: Path) -> None:
    rows = '"one\ntwo",arms,0,1,5,,,,,\nx,arms,0,0,5,,,,,\n'
    assert mistakes(tmp_path, HEADER + rows) == [
        "line 2, job: must not hold the control character U+000A (got 'one\\ntwo')",
        "line 4, gpus: must be at least 1 (got 0)",
    ]


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        (
            "job,team,submit_s,gpu,run_s,limits",
            [
                "line 1, limits: unknown column; did you mean limit_s?",
                "line 1, gpus: is a column that the file must have; did you mean gpu?",
            ],
        ),
        ("job,team,submit_s,gpus,run_s,gpus", ["line 1, gpus: is a column that must stand once"]),
        (
            "job,team,submit_s,gpus,run_s,",
            ["line 1: must have a name for every column, but one is empty"],
        ),
        ("job;team;submit_s;gpus;run_s", ["line 1: must be separated by commas, not by semicolons or tabs"]),
        (
            "",
            [
                f"line 1, {name}: is a column that the file must have"
                for name in ("job", "submit_s", "gpus", "run_s")
            ],
        ),
    ],
)
def test_headers_that_are_not_those_of_a_job_table(tmp_path: Path, header: str, expected: list[str]) -> None:
    assert mistakes(tmp_path, header + "\n") == expected


def test_files_that_are_none(tmp_path: Path) -> None:
    (tmp_path / "folder.csv").mkdir()
    (tmp_path / "cut.csv.gz").write_bytes(gzip.compress((HEADER + ROWS * 50).encode())[:60])
    (tmp_path / "plain.csv.gz").write_text(HEADER + ROWS)
    (tmp_path / "latin.csv").write_bytes((HEADER + "caf\xe9,arms,0,1,5,,,,,\n").encode("latin-1"))
    (tmp_path / "wide.csv").write_text(HEADER + "x,arms,0,1,5,,,,,,,,\n")
    for name, sentence in {
        "absent.csv": "there is no such file",
        "folder.csv": "must be a file, not a folder or a device",
        "jobs.txt": "must be a CSV file, .csv or .csv.gz",
        "cut.csv.gz": "the gzip data is damaged or cut off",
        "plain.csv.gz": "cannot be read",
        "latin.csv": "must be UTF-8 text",
        "wide.csv": "must be a CSV file with a header row",
    }.items():
        with pytest.raises(InputError, match=sentence):
            read_jobs(tmp_path / name, TREE)


def test_a_table_without_rows_has_no_jobs(tmp_path: Path) -> None:
    table = read(tmp_path, HEADER)
    assert (len(table.jobs), table.account.read) == (0, 0)


def test_too_much_work_for_whole_numbers_of_64_bits_is_refused(tmp_path: Path) -> None:
    rows = "".join(f"{k},arms,0,10000000,10000000000\n" for k in range(24))  # 24 x 1e17 > 2^61
    (mistake,) = mistakes(tmp_path, "job,team,submit_s,gpus,run_s\n" + rows)
    assert "must not add up to more than" in mistake


def test_a_job_beyond_any_cluster_and_2_to_the_31_seconds_is_a_job(tmp_path: Path) -> None:
    text = "job,team,submit_s,gpus,run_s\n1,arms,0,4096,31536000\n3,arms,0,8,2147483648\n"
    jobs = read(tmp_path, text).jobs
    assert jobs.gpu_seconds.tolist() == [129_171_456_000, 17_179_869_184]


def test_the_order_of_rows_does_not_matter(tmp_path: Path) -> None:
    rows = [f"job-{k},arms,{k % 7},{1 + k % 3},{k},,,,{k % 2},\n" for k in range(60)]
    first = read(tmp_path, HEADER + "".join(rows)).jobs
    random.Random(3).shuffle(rows)
    assert read(tmp_path, HEADER + "".join(rows)).jobs == first


cells = st.one_of(
    st.sampled_from(
        [
            "",
            "0",
            "1",
            "-1",
            "2.5",
            "1e3",
            "nan",
            "inf",
            "yes",
            "arms",
            "x" * 300,
            '"',
            ",",
            "\n",
            "\x00",
            "٣",
        ]
    ),
    st.text(max_size=6),
    st.integers(-3, 10**12).map(str),
)


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.lists(cells, min_size=1, max_size=12).map(",".join), max_size=6), st.booleans())
def test_any_text_is_a_table_or_sentences(tmp_path: Path, rows: list[str], headed: bool) -> None:
    text = (HEADER if headed else "") + "\n".join(rows) + "\n"
    path = tmp_path / "jobs.csv"
    path.write_bytes(text.encode("utf-8", "surrogatepass"))
    try:
        table = read_jobs(path, TREE)
    except InputError as error:
        if not error.mistakes or not all(letter.isprintable() or letter == "\n" for letter in str(error)):
            pytest.fail(f"no fit message: {error}")
    else:
        assert table.account.read == len(table.jobs)
        assert (table.jobs.run_s <= table.jobs.limit_s).all()


def test_a_million_identical_rows_are_one_sentence_soon(tmp_path: Path) -> None:
    path = write(tmp_path, "job,team,submit_s,gpus,run_s\n" + "same,arms,0,1,60\n" * 1_000_000)
    began = time.process_time()
    with pytest.raises(InputError) as caught:
        read_jobs(path, TREE)
    assert time.process_time() - began < 30  # it takes three
    (mistake,) = caught.value.mistakes
    assert str(mistake).endswith("and 999,990 more) (got 'same')")


def test_a_hundred_thousand_wrong_cells_of_each_kind_are_a_page(tmp_path: Path) -> None:
    rows = "".join(f"j{k},team-{k},-{k + 1},x{k},1\n" for k in range(100_000))
    began = time.process_time()
    found = mistakes(tmp_path, "job,team,submit_s,gpus,run_s\n" + rows)
    assert time.process_time() - began < 60  # it takes five
    assert len(found) < 80
    assert any("so must 99,980 more values" in mistake for mistake in found)


def test_1_300_000_jobs_are_read_in_seconds(tmp_path: Path) -> None:
    path = tmp_path / "many.csv"
    n = 1_300_000
    numbers = np.random.default_rng(1).integers(1, 9000, n)
    with path.open("w") as file:
        file.write("job,team,submit_s,gpus,run_s,limit_s,min_runtime_s\n")
        file.writelines(
            f"{k},arms,{k // 2},{1 + x % 8},{x},{2 * x},900\n" for k, x in enumerate(numbers.tolist())
        )
    began = time.process_time()
    table = read_jobs(path, TREE)
    seconds = time.process_time() - began
    assert table.account.used == n
    assert int(table.jobs.run_s.sum()) == int(numbers.sum())
    assert seconds < 30  # it takes three to four; the bench measures
