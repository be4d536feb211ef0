"""The table of tasks: what each column means, every mistake with its line, an account that adds up."""

import gzip
import os
import random
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gpuplan.inputs.errors import InputError
from gpuplan.packing.limits import MOST_SERVICE_US, MOST_US
from gpuplan.packing.model import NEVER
from gpuplan.packing.task_table import read_tasks, write_tasks
from gpuplan.packing.tasks import tasks

HEADER = "arrival_s,model,tenant,priority,service_s,predicted_s,tokens_in,tokens_out,deadline_s\n"
ROWS = "2.5,chat,red,1,8,9.5,1000,200,60\n0.25,rank,,,0,,,,\n1,chat,=1+1,-2,0.0000015,,7,,\n3,chat,red,0,,1,1,1,\n"

COUNT = int(os.environ.get("SCENARIO_MUTATIONS", "200"))


def write(folder: Path, text: str, name: str = "tasks.csv") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8", newline="")
    return path


def mistakes(folder: Path, text: str) -> list[str]:
    with pytest.raises(InputError) as caught:
        read_tasks(write(folder, text), ["chat", "rank"])
    return [str(mistake) for mistake in caught.value.mistakes]


def test_every_column_means_what_the_contract_says(tmp_path: Path) -> None:
    table = read_tasks(write(tmp_path, HEADER + ROWS), ["rank", "chat"])
    made = table.tasks
    assert table.models == ("rank", "chat")
    assert made.arrival_us.tolist() == [
        250_000,
        1_000_000,
        2_500_000,
    ]  # sorted; the last row's service is unknown
    assert made.model.tolist() == [0, 1, 1]
    assert made.tenant.tolist() == ["everyone", "=1+1", "red"]
    assert made.priority.tolist() == [0, -2, 1]
    assert made.service_us.tolist() == [0, 2, 8_000_000]  # 1.5 microseconds, half of one up
    assert made.predicted_us.tolist() == [0, 2, 9_500_000]
    assert made.tokens_in.tolist() == [0, 7, 1000]
    assert made.tokens_out.tolist() == [0, 0, 200]
    assert made.deadline_us.tolist() == [NEVER, NEVER, 60_000_000]


def test_the_account_adds_up_and_says_what_was_changed(tmp_path: Path) -> None:
    account = read_tasks(write(tmp_path, HEADER + ROWS)).account
    assert (account.read, account.used) == (4, 3)
    assert account.excluded == (("service_s is unknown (an empty cell)", 1),)
    assert dict(account.changed) == {
        "arrive before the row above: sorted by arrival": 1,
        "take no time (service_s 0)": 1,
        "without a predicted time: the service time": 2,
    }
    assert account.amounts[0] == ("asked for: sum of service times", pytest.approx(8.0000015), "s")
    assert account.amounts[1] == ("from the first to the last arrival", 2.25, "s")


def test_columns_come_in_any_order_and_the_optional_ones_may_be_absent(tmp_path: Path) -> None:
    table = read_tasks(write(tmp_path, "service_s,model,arrival_s\n2,b,1\n3,a,0\n"))
    assert table.models == ("b", "a")  # in the order of the file
    assert table.tasks == tasks([1_000_000, 0], [0, 1], "everyone", service_us=[2_000_000, 3_000_000])
    assert "An empty priority counts as 0." in table.account.rules


def test_every_mistake_has_its_line_column_and_value(tmp_path: Path) -> None:
    rows = (
        "5,chatt,,,1,,,,\n-2.5,rank,,,nan,,,,3\n1e400,chat,,high,-1,,2.5,,\n8,rank,,,inf,,-1,,2\n"
        "9,,,,1e9,,9999999,,\n1,chat,\x07,,1,x,,,\n"
    )
    assert mistakes(tmp_path, HEADER + rows) == [
        "line 2, model: must be one of chat, rank; did you mean chat? (got 'chatt')",
        "line 3, arrival_s: must not be negative (got -2.5)",
        "line 3, service_s: must be a number of seconds, or one with s, min, h, d or w (30min, 8h) (got 'nan')",
        "line 4, arrival_s: must be a number (got inf)",
        "line 4, priority: must be a number (got 'high')",
        "line 4, service_s: must not be negative (got -1)",
        "line 4, tokens_in: must be a whole number (got 2.5)",
        "line 5, service_s: must be a number of seconds, or one with s, min, h, d or w (30min, 8h) (got 'inf')",
        "line 5, tokens_in: must be at least 0 (got -1)",
        "line 5, deadline_s: must not be before the arrival (got 2)",
        "line 6, model: must be given",
        "line 6, service_s: must be at most 1,000,000 (got 1000000000)",
        "line 6, tokens_in: must be at most 1,048,576 (got 9999999)",
        "line 7, tenant: must not hold the control character U+0007 (got '\\x07')",
        "line 7, predicted_s: must be a number of seconds, or one with s, min, h, d or w (30min, 8h) (got 'x')",
    ]


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("", "line 1, arrival_s: is a column that the file must have"),
        ("arrival,model,service_s\n", "line 1, arrival: unknown column; did you mean arrival_s?"),
        ("arrival_s;model;service_s\n", "line 1: must be separated by commas, not by semicolons or tabs"),
        ("arrival_s,model,service_s\n1,chat\n", "line 2: must have 3 cells, as the header has"),
    ],
)
def test_files_that_are_no_tables(tmp_path: Path, text: str, rule: str) -> None:
    assert rule in mistakes(tmp_path, text)


def test_no_tasks_are_no_mistake(tmp_path: Path) -> None:
    table = read_tasks(write(tmp_path, HEADER), ["chat"])
    assert (len(table.tasks), table.account.read) == (0, 0)


def test_gzip_and_windows_line_ends(tmp_path: Path) -> None:
    path = tmp_path / "tasks.csv.gz"
    path.write_bytes(gzip.compress(("\ufeff" + (HEADER + ROWS).replace("\n", "\r\n")).encode()))
    assert (
        read_tasks(path, ["chat", "rank"]).tasks
        == read_tasks(write(tmp_path, HEADER + ROWS), ["chat", "rank"]).tasks
    )


def test_the_order_of_rows_does_not_matter(tmp_path: Path) -> None:
    rows = [f"{k % 3},{'chat' if k % 2 else 'rank'},t{k % 4},{k % 5},{k},,,,\n" for k in range(40)]
    made = []
    for seed in (1, 2):
        random.Random(seed).shuffle(rows)
        made.append(read_tasks(write(tmp_path, HEADER + "".join(rows)), ["chat", "rank"]).tasks)
    assert made[0] == made[1]


names = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=8).filter(
    lambda t: t.strip() != ""
)
times = st.integers(0, MOST_SERVICE_US)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_what_is_written_reads_back_the_same(tmp_path: Path, data: st.DataObject) -> None:
    n = data.draw(st.integers(0, 6))
    models = data.draw(st.lists(names, min_size=1, max_size=3, unique=True))

    def column(values: st.SearchStrategy[int]) -> list[int]:
        return data.draw(st.lists(values, min_size=n, max_size=n))

    arrivals = column(st.integers(0, MOST_US))
    made = tasks(
        arrivals,
        column(st.integers(0, len(models) - 1)),
        data.draw(st.lists(names, min_size=n, max_size=n)),
        column(st.integers(-9, 9)),
        column(times),
        column(times),
        column(st.integers(0, 2**20)),
        column(st.integers(0, 2**20)),
        [data.draw(st.one_of(st.just(NEVER), st.integers(at, MOST_US))) for at in arrivals],
    )
    write_tasks(made, models, tmp_path / "t.csv")
    assert read_tasks(tmp_path / "t.csv", models).tasks == made


CELLS = ["", "-1", "x", "2.5", "nan", "1e400", '"', "9" * 30, "7", "0", "\n", "yes", "chat"]


def test_mutated_tables_are_tasks_or_sentences(tmp_path: Path) -> None:
    text = HEADER + "".join(
        f"{k},{'chat' if k % 2 else 'rank'},red,0,{k},{k},10,20,{9 * k}\n" for k in range(1, 15)
    )
    seen: Counter[str] = Counter()
    for number in range(COUNT):
        rng = random.Random(number)
        cells = text.split(",")
        cells[rng.randrange(9, len(cells))] = rng.choice(CELLS)
        try:
            table = read_tasks(write(tmp_path, ",".join(cells)), ["chat", "rank"])
        except InputError as error:
            seen["refused"] += 1
            printable = all(letter.isprintable() or letter == "\n" for letter in str(error))
            if not error.mistakes or not printable:
                pytest.fail(f"mutant {number}: no fit message: {str(error)[:500]!r}")
        else:
            seen["read"] += 1
            assert table.account.used == len(table.tasks), number
    assert min(seen["read"], seen["refused"]) > COUNT // 10
