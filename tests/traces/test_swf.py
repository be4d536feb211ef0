"""Workload logs in the Standard Workload Format: every row used or left out for a reason, or a sentence."""

import gzip
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuplan.fairshare.model import NEVER
from gpuplan.fairshare.tree import tree_of
from gpuplan.inputs.errors import InputError
from gpuplan.traces.swf import REASONS, SwfLog, read_swf
from gpuplan.traces.swf_lines import FIELDS

TAIL = " -1" * 5


def row(
    number: int,
    submit: object = 0,
    wait: object = 0,
    run: object = 60,
    allocated: object = 1,
    requested: object = 1,
    limit: object = 100,
    status: object = 1,
    user: object = 1,
    group: object = 1,
) -> str:
    return f"{number} {submit} {wait} {run} {allocated} -1 -1 {requested} {limit} -1 {status} {user} {group}{TAIL}"


def log_of(tmp_path: Path, text: str | bytes, name: str = "log.swf") -> SwfLog:
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_swf(path)


def reasons(log: SwfLog) -> list[str]:
    return [REASONS[code] for code in log.reason.tolist()]


# ---------------------------------------------------------------------- what becomes of a row


def test_every_reason_by_hand(tmp_path: Path) -> None:
    text = "\n".join(
        [
            "; MaxProcs: 10",
            row(1),
            row(1, status=2),
            row(2, submit=-7),
            row(3, run=-1, status=5),
            row(4, run=0, allocated=0, status=5),
            row(5, submit=-1),
            row(6, allocated=-1, requested=-1),
            row(7, allocated=0),
            row(8, allocated=11),
            row(9, run=-1),
            row(10, run=0, status=5),  # started, and cancelled at once: 0 is a value
        ]
    )
    log = log_of(tmp_path, text)
    texts = reasons(log)
    assert [texts.index(reason) for reason in REASONS] == [0, 1, 2, 3, 5, 6, 7, 8, 9]
    assert texts[4] == texts[3]
    assert texts[10] == ""
    account = log.account
    assert (account.read, account.used) == (11, 2)
    assert account.read == account.used + sum(count for _, count in account.excluded)
    assert ("never started (cancelled, without a run time) (lines 5, 6)", 2) in account.excluded
    assert ("0 processors (line 9)", 1) in account.excluded
    assert log.jobs().name.tolist() == ["1", "10"]
    assert log.numbers(texts[8]) == [8]


def test_lines_that_a_reason_names_are_counted_beyond_five(tmp_path: Path) -> None:
    log = log_of(tmp_path, "\n".join([row(k, run=-1) for k in range(1, 9)] + [row(9)]))
    assert log.account.excluded == (("run time unknown (lines 1, 2, 3, 4, 5 and 3 more)", 8),)


def test_unknown_values_are_counted_by_field_and_never_used(tmp_path: Path) -> None:
    log = log_of(tmp_path, "\n".join([row(1, wait=-1, limit=-1), row(2, wait=5, allocated=-1, requested=3)]))
    amounts = {what: amount for what, amount, _ in log.account.amounts}
    assert amounts["unknown wait_s, in all rows"] == 1
    assert amounts["unknown requested_time_s, in all rows"] == 1
    assert amounts["unknown allocated, in all rows"] == 1
    assert "unknown run_s, in all rows" not in amounts
    assert log.processors.tolist() == [1, 3]
    assert log.processor_seconds == 60 + 3 * 60
    assert log.started_s.tolist() == [-1, 5]
    assert log.mean_wait_s == 5
    assert np.isnan(log_of(tmp_path, row(1, wait=-1)).mean_wait_s)


# ---------------------------------------------------------------------- jobs and budgets


def test_jobs_by_hand(tmp_path: Path) -> None:
    """Limits: 100; unknown; 0 (none); 50, which ends a run of 60. Minimum: an hour, or a shorter limit."""
    text = "\n".join(
        [
            row(10, submit=30, limit=9000, user=7, group=2),
            row(2, submit=30, limit=-1),
            row(3, submit=0, limit=0, user=-1, group=-1),
            row(4, submit=40, limit=50),
        ]
    )
    log = log_of(tmp_path, text)
    jobs = log.jobs()
    assert jobs.name.tolist() == ["3", "2", "10", "4"]
    assert jobs.team.tolist() == [
        "group-unknown/user-unknown",
        *["group-1/user-1", "group-2/user-7", "group-1/user-1"],
    ]
    assert jobs.limit_s.tolist() == [NEVER, NEVER, 9000, 50]
    assert jobs.run_s.tolist() == [60, 60, 60, 50]
    assert jobs.minimum_s.tolist() == [3600, 3600, 3600, 50]
    assert jobs.resumable.all()
    changed = dict(log.account.changed)
    assert changed["ran beyond its limit: ends at the limit"] == 1
    assert changed["requested time of 0: no limit"] == 1
    assert changed["requested time unknown: no limit"] == 1
    again = log.jobs(minimum_s=0, resumable=False)
    assert (again.minimum_s.max(), again.resumable.any()) == (0, False)


def test_budgets_have_equal_weights_over_groups_then_users(tmp_path: Path) -> None:
    rows = [
        row(1, user=1, group=1),
        row(2, user=2, group=1),
        row(3, user=1, group=10),
        row(4, user=9, run=-1),
    ]
    log = log_of(tmp_path, "\n".join(rows))
    tree = tree_of(log.budget())
    share = dict(zip(tree.teams, tree.share[tree.leaves].tolist(), strict=True))
    assert share == {"group-1/user-1": 0.25, "group-1/user-2": 0.25, "group-10/user-1": 0.5}
    assert set(log.jobs().team.tolist()) == set(share)


def test_a_number_that_comes_again_is_named_by_its_line(tmp_path: Path) -> None:
    log = log_of(tmp_path, "\n".join([row(7), row(8), row(7, submit=5), row(-1, submit=6), row(7, status=3)]))
    assert log.jobs().name.tolist() == ["7", "8", "7/line-3", "unknown/line-4"]
    assert dict(log.account.changed)["job number comes again: named by its line"] == 1


def test_a_log_without_any_job_to_use_makes_no_jobs(tmp_path: Path) -> None:
    log = log_of(tmp_path, row(1, run=-1))
    assert (len(log.jobs()), log.budget(), log.processor_seconds) == (0, (), 0)


# ---------------------------------------------------------------------- the header


def test_the_header(tmp_path: Path) -> None:
    text = "; Version: 2.2\n;Note: <b>one</b>\n; Note: two: three\n;MaxProcs:  64 (all)\n; MaxNodes: 8\n"
    log = log_of(tmp_path, text + row(1) + "\n; MaxProcs: 1\n")
    assert log.header["Note"] == "<b>one</b>\ntwo: three"
    assert (log.max_processors, log.max_nodes, log.start) == (64, 8, None)
    for value in ("", "many", "-1", "1.5", "0", "9" * 30):
        assert log_of(tmp_path, f"; MaxProcs: {value}\n{row(1)}").max_processors is None


@pytest.mark.parametrize("zone", ["", "Nowhere/Land", "../../etc/passwd", "/etc/passwd", "\u00e9", "America"])
def test_zones_that_are_none_are_utc(tmp_path: Path, zone: str) -> None:
    log = log_of(tmp_path, f"; UnixStartTime: 1700000000\n; TimeZoneString: {zone}\n{row(1)}")
    moment = log.moment(10)
    assert moment is not None
    assert moment.isoformat() == "2023-11-14T22:13:30+00:00"


def test_seconds_count_through_a_change_of_the_clock(tmp_path: Path) -> None:
    """2026-03-29 in Paris: 01:59:50 + 20 s is 03:00:10."""
    log = log_of(tmp_path, f"; UnixStartTime: 1774745990\n; TimeZoneString: Europe/Paris\n{row(1)}")
    assert [str(log.moment(s))[11:19] for s in (0, 20)] == ["01:59:50", "03:00:10"]


# ---------------------------------------------------------------------- text as people write it


PLAIN = "\n".join([row(1, submit=5), row(2, run=7, limit=9), row(3, allocated=4)])


@pytest.mark.parametrize(
    "text",
    [
        PLAIN.replace("\n", "\r\n"),
        PLAIN.replace("\n", "\r"),
        PLAIN.replace(" ", "\t"),
        PLAIN.replace(" ", "   "),
        "\n".join("\t " + line + "  " for line in PLAIN.split("\n")),
        PLAIN.replace("\n2", "\n\n  ; in the: middle\n   \n2"),
        PLAIN.replace(TAIL, ""),
        PLAIN.replace(TAIL, " ; and a remark"),
        PLAIN.replace(" 60 ", " 60.0 ").replace(" 7 ", " 6.6 "),
        PLAIN.replace(TAIL, " -1 -1 -1 -1 2.75"),
        PLAIN.replace(" -1 -1 ", " 3.25 1e3 ", 1),  # fields that are not read
        "\ufeff" + PLAIN,
        PLAIN + "\n",
        "; caf\u00e9\n" + PLAIN,
    ],
)
def test_the_same_jobs_in_other_clothes(tmp_path: Path, text: str) -> None:
    plain, found = log_of(tmp_path, PLAIN), log_of(tmp_path, text)
    for name, _, _ in FIELDS:
        assert getattr(found, name).tolist() == getattr(plain, name).tolist()
    assert log_of(tmp_path, gzip.compress(text.encode()), "log.swf.gz").run_s.tolist() == [60, 7, 60]


def test_latin_1_comments_and_line_numbers(tmp_path: Path) -> None:
    log = log_of(tmp_path, b"; caf\xe9\n\n" + row(1).encode() + b"\n;\n" + row(2, run=-1).encode())
    assert log.line.tolist() == [3, 5]


def test_fractions_round_to_the_nearest_second_and_short_lines_are_counted(tmp_path: Path) -> None:
    log = log_of(tmp_path, "\n".join([row(1, submit="0.5", run="59.49"), "2 7 -1 30 4", row(3, run="-0.6")]))
    assert (log.submit_s.tolist(), log.run_s.tolist()) == ([1, 7, 0], [59, 30, -2])
    changed = dict(log.account.changed)
    assert changed["fractions of seconds, rounded to the nearest second"] == 2
    assert changed["fewer than 18 fields: those at the end are unknown"] == 1
    assert reasons(log) == ["", "", REASONS[2]]
    assert log.jobs().limit_s.tolist() == [100, NEVER]


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        (
            row(2, run="long"),
            "field 4 (run_s) must be a number of seconds, at most 100,000,000,000, or -1 (got 'long')",
        ),
        (
            row(2, allocated="1.5"),
            "field 5 (allocated) must be a whole number, at most 10,000,000, or -1 (got '1.5')",
        ),
        (row(2, submit="nan"), "field 2 (submit_s) must be a number of seconds"),
        (row(2, run="inf"), "field 4 (run_s) must be a number of seconds"),
        (row(2, limit=10**12), "field 9 (requested_time_s) must be"),
        (row(2, limit=9223372036854775808), "field 9 (requested_time_s) must be"),
        (row(2, user=-(2**63)), "field 12 (user) must be a whole number"),
        (row(2, user="1_0"), "field 12 (user) must be a whole number"),
        (row(2, user="\u0663"), "field 12 (user) must be a whole number"),
        (
            row(2) + " 7",
            "must have 18 fields, of which those at the end may be missing, 2 at least; it has 19",
        ),
        ("2", "must have 18 fields, of which those at the end may be missing, 2 at least; it has 1"),
        ('"2" 3', "field 1 (number) must be a whole number"),
    ],
)
def test_a_line_that_cannot_be_read_is_named(tmp_path: Path, line: str, sentence: str) -> None:
    with pytest.raises(InputError) as caught:
        log_of(tmp_path, "\n".join(["; a log", row(1), line, row(3), "x y"]))
    assert sentence in str(caught.value)
    assert "line 3" in str(caught.value)
    assert caught.value.mistakes[0].line == 3
    assert caught.value.mistakes[-1].line == 5  # all at once


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"", "must have a line about a job"),
        (b"; MaxProcs: 5\n\n  \n", "must have a line about a job"),
        (b"\x00\x01\x02" * 50, "must be text"),
        (bytes(range(1, 256)) * 4, "must "),
        (gzip.compress(PLAIN.encode())[:-9], "the gzip data is damaged or cut off"),
        (gzip.compress(PLAIN.encode())[:20] + b"garbage" * 9, "the gzip data is damaged or cut off"),
        (b"\x1f\x8b", "the gzip data is damaged or cut off"),
        (gzip.compress(b""), "must have a line about a job"),
        (b"a,b,c\n1,2,3\n", "line 1"),
    ],
)
def test_a_file_that_is_no_log_is_a_sentence(tmp_path: Path, content: bytes, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        log_of(tmp_path, content)


def test_a_folder_and_nothing_are_sentences(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read"):
        read_swf(tmp_path)
    with pytest.raises(InputError, match="no such file"):
        read_swf(tmp_path / "none.swf")
    with pytest.raises(InputError, match="cannot be read"):
        read_swf("null\0byte")


@given(st.binary(max_size=300) | st.text("0123456789 -.;\n\t\r\f", max_size=300).map(str.encode))
def test_any_bytes_are_a_log_or_a_sentence(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    path = tmp_path_factory.mktemp("bytes") / "log.swf"
    path.write_bytes(content)
    try:
        log = read_swf(path)
    except InputError:
        return
    assert len(log) == log.account.read > 0


values = st.integers(-1, 50).map(str) | st.sampled_from(["-1", "3.25", "+4", "12.", "007", "1e3", "-9", "x"])
lines = st.lists(st.lists(values, min_size=1, max_size=19), min_size=1, max_size=6)


@given(lines, st.sampled_from([" ", "\t", "  "]))
def test_against_a_plain_reading(
    tmp_path_factory: pytest.TempPathFactory, rows: list[list[str]], blank: str
) -> None:
    """Word by word in plain Python; the fast path, the mixed one and the strict one give the same."""
    path = tmp_path_factory.mktemp("lines") / "log.swf"
    path.write_text("\n".join(blank.join(words) for words in rows), encoding="utf-8")
    expected: list[list[int]] | None = []
    for words in rows:
        filled = words + ["-1"] * (18 - len(words))
        picked = [(name, filled[k]) for name, k, _ in FIELDS]
        whole = {name: word == "3.25" for name, word in picked}
        wrong = any(word == "x" or (whole[name] and not name.endswith("_s")) for name, word in picked)
        if wrong or not 2 <= len(words) <= 18:
            expected = None
            break
        assert expected is not None
        expected.append([int(np.floor(float(word) + 0.5)) for _, word in picked])
    if expected is None:
        with pytest.raises(InputError):
            read_swf(path)
    else:
        log = read_swf(path)
        found = np.stack([getattr(log, name) for name, _, _ in FIELDS], 1)
        assert found.tolist() == expected


def test_the_sum_of_work_does_not_wrap(tmp_path: Path) -> None:
    """20 rows of 1e7 processors x 1e11 s = 2e19, beyond 2^63."""
    log = log_of(tmp_path, "\n".join(row(k, run=10**11, allocated=10**7, limit=-1) for k in range(20)))
    assert log.processor_seconds == 20 * 10**18


def test_the_reference_workload(shared: Path, tmp_path: Path) -> None:
    """`mkswf.py` of the reference answers: what it writes is what is read; every row is a job."""
    path = tmp_path / "w.swf"
    command: list[Any] = [sys.executable, shared / "tools" / "mkswf.py", 2000, 6, 512, 0.9, 1, path]
    subprocess.run([str(part) for part in command], check=True, capture_output=True, env=dict(os.environ))
    log = read_swf(path)
    jobs = log.jobs()
    assert (len(log), len(jobs), log.account.used, log.max_processors) == (2000, 2000, 2000, 512)
    assert jobs.gpu_seconds.sum() / (512 * 6 * 86400) == pytest.approx(0.9, rel=0.001)
    assert (jobs.limit_s >= jobs.run_s).all()
    assert len(log.budget()) == 4
    assert len(tree_of(log.budget()).leaves) == 20
