"""Exports of `sacct`: the real fixture, bad input, and a history that adds up whatever comes."""

import contextlib
import gzip
import os
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuplan.benchmarks.imports import sacct_lines, sacct_seconds
from gpuplan.inputs.errors import InputError
from gpuplan.traces import slurm_blocks, slurm_table
from gpuplan.traces.history import CONTRADICTION, REASONS, UNKNOWN, UNREADABLE, History
from gpuplan.traces.slurm import read_sacct

#: Longer runs: GPUPLAN_EXAMPLES=50 reads 10^5 lines and more that were damaged.
MORE = int(os.environ.get("GPUPLAN_EXAMPLES", "1"))

HEAD = (
    "Cluster|JobID|JobIDRaw|User|Account|JobName|State|Submit|Start|End|Elapsed|Timelimit|ReqTRES|AllocTRES"
)


def line(
    job: str = "1",
    raw: str = "1",
    name: str = "n",
    state: str = "COMPLETED",
    submit: str = "2026-03-02T08:00:00",
    start: str = "2026-03-02T09:00:00",
    end: str = "2026-03-02T10:00:00",
    elapsed: str = "01:00:00",
    limit: str = "02:00:00",
    asked: str = "gres/gpu=2",
    held: str = "gres/gpu=2",
    cluster: str = "alpha",
    user: str = "u1",
) -> str:
    return "|".join(
        [cluster, job, raw, user, "vision", name, state, submit, start, end, elapsed, limit, asked, held]
    )


def read(folder: Path, *lines: str, strict: bool = True, **how: object) -> History:
    path = folder / "some.txt"
    path.write_text("\n".join([HEAD, *lines]) + "\n", encoding="utf-8")
    return read_sacct(path, strict=strict, **how)  # type: ignore[arg-type]


def adds_up(found: History) -> None:
    """Every record is used or left out for one reason, and the account says the same as the columns."""
    account = found.account
    assert account.read == account.used + sum(count for _, count in account.excluded)
    assert account.used == int(found.used.sum())
    assert account.read >= len(found)
    assert found.gpu_seconds == sum(found.gpu_seconds_by("team").values())
    assert (found.gpus >= UNKNOWN).all()
    assert (found.elapsed_s >= UNKNOWN).all()
    assert all(REASONS[code] for code in found.reason[~found.used].tolist())
    assert int((found.reason == CONTRADICTION).sum()) == 0


# ---------------------------------------------------------------------- real accounting lines


def test_the_fixture(shared: Path) -> None:
    """163485 ran 10 days and 13:27:06 on 2 GPUs, 196835 17 s on 2: 2 x (912426 + 17) GPU-seconds."""
    found = read_sacct(shared / "traces" / "slurm-sacct" / "phillips_excerpt.psv")
    adds_up(found)
    assert (found.account.read, found.n_jobs, found.gpu_seconds) == (300, 300, 1_824_886)
    counts = dict(zip(*np.unique(found.group.astype(str), return_counts=True), strict=True))
    assert counts == {"cancelled": 1, "completed": 13, "failed": 286}
    assert found.state.tolist().count("timeout") == 1
    assert found.job[found.gpus > 0].tolist() == ["163485", "196835"]
    assert found.limit_s[found.gpus > 0].tolist() == [37 * 86400 + 14 * 3600] * 2
    assert found.started.all()
    jobs = found.jobs()
    assert jobs.name.tolist() == ["163485", "196835"]
    assert jobs.submit_s.tolist() == [0, 916_178]


# ---------------------------------------------------------------------- identity


def test_clusters_have_their_own_ids(tmp_path: Path) -> None:
    found = read(tmp_path, line(), line(cluster="beta", user="u2"))
    assert found.job.tolist() == ["alpha/1", "beta/1"]
    assert found.attempt.tolist() == [1, 1]


def test_parts_of_a_heterogeneous_job(tmp_path: Path) -> None:
    found = read(
        tmp_path, line("7+0", "7"), line("7+1", "8", held="gres/gpu=3"), line("7+1.batch", "8.batch")
    )
    assert found.job[found.used].tolist() == ["7+0", "7+1"]
    assert found.parent.tolist() == ["7", "7", "7"]
    assert found.gpu_seconds == 5 * 3600


def test_a_repeat_must_be_equal_in_every_field(tmp_path: Path) -> None:
    """The third line differs in its name alone: a later record of the same attempt, not a repeat."""
    found = read(tmp_path, line(), line(), line(name="m"))
    assert [REASONS[code] for code in found.reason.tolist()] == [REASONS[5], REASONS[4], ""]
    assert found.gpu_seconds == 2 * 3600


def test_held_asked_and_worked_are_kept_apart(tmp_path: Path) -> None:
    """Asked 4 GPUs x 2 h, held 2 x 1 h; a step of half an hour worked at 150 % of a GPU: 2700 of 7200 GPU-seconds."""
    path = tmp_path / "used.txt"
    rows = [HEAD + "|TRESUsageInTot", line(asked="gres/gpu=4") + "|"]
    rows.append(
        line("1.0", "1.0", elapsed="00:30:00") + "|cpu=00:10:00,gres/gpumem=9G,gres/gpuutil=150,mem=1G"
    )
    path.write_text("\n".join(rows))
    found = read_sacct(path)
    assert found.requested_gpu_seconds == 4 * 7200
    assert found.gpu_seconds == 7200
    assert found.worked_gpu_seconds == 2700
    assert found.gpu_share[0] == 0.375


def test_mean_use_counts_for_the_gpus_of_the_step(tmp_path: Path) -> None:
    """Half of the 2 GPUs of the step, all the time: 0.5 x 2 x 3600 of 7200."""
    path = tmp_path / "used.txt"
    path.write_text(
        "\n".join([HEAD + "|TRESUsageInAve", line() + "|", line("1.0", "1.0") + "|gres/gpuutil=50"])
    )
    assert read_sacct(path).gpu_share[0] == 0.5


def test_old_columns_of_resources(tmp_path: Path) -> None:
    path = tmp_path / "old.txt"
    path.write_text(
        "JobID|State|Elapsed|ReqGRES|AllocGRES\n1|CD|01:00:00|gpu:2|gpu:2\n2|PD|00:00:00|gpu:k80:4|\n"
    )
    found = read_sacct(path)
    assert found.gpus.tolist() == [2, 4]
    assert found.gpu_type.tolist() == ["", "k80"]
    assert found.gpu_seconds == 7200


def test_what_ran_and_whose_gpus_are_not_recorded(tmp_path: Path) -> None:
    found = read(tmp_path, line(held=""), line("2", "2", held="cpu=4", asked=""))
    assert found.gpus.tolist() == [2, 0]
    assert ("ran, and GPUs held are not told: those asked for", 1) in found.account.changed


def test_times_with_an_offset(tmp_path: Path) -> None:
    """09:00 at +01:00 is 08:00Z."""
    stamp = "2026-03-02T09:00:00"
    found = read(
        tmp_path,
        line(submit=f"{stamp}+0100", start=f"{stamp}+01:00", end="2026-03-02T09:00:00Z"),
    )
    assert found.zone == "UTC"
    assert [str(np.datetime64(int(at[0]), "s")) for at in (found.submit_s, found.start_s, found.end_s)] == [
        "2026-03-02T08:00:00",
        "2026-03-02T08:00:00",
        "2026-03-02T09:00:00",
    ]
    with pytest.raises(InputError, match="zone: must be given"):
        read(tmp_path, line(submit=f"{stamp}+0100"))


def test_the_moment_of_the_export_in_a_zone(tmp_path: Path) -> None:
    """Noon in Berlin is 11:00Z in March; a moment with an offset is what it says. Run times up to it: from 08:00Z."""
    running = line(state="RUNNING", end="Unknown", elapsed="")
    for as_of in ("2026-03-02T12:00:00", "2026-03-02T12:00:00+01:00", datetime(2026, 3, 2, 11, tzinfo=UTC)):
        found = read(tmp_path, running, zone="Europe/Berlin", as_of=as_of)
        assert found.as_of_s is not None
        assert str(np.datetime64(found.as_of_s, "s")) == "2026-03-02T11:00:00"
        assert found.elapsed_s.tolist() == [3 * 3600]


def test_a_cancelled_job_that_older_versions_give_a_start(tmp_path: Path) -> None:
    """Start = End, no run time, nothing held: it never started, and its wait is none."""
    at = "2026-03-02T11:00:00"
    found = read(
        tmp_path, line(state="CANCELLED by 7", start=at, end=at, elapsed="00:00:00", held=""), line("2", "2")
    )
    assert found.never_started.tolist() == [True, False]
    assert found.mean_wait_s == 3600


def test_what_contradicts_itself_is_said(tmp_path: Path) -> None:
    """A start before the submission has no wait; of two run times that differ the raw one counts."""
    path = tmp_path / "odd.txt"
    rows = [HEAD + "|ElapsedRaw", line() + "|3600", line("2", "2", submit="2026-03-02T09:30:00") + "|1800"]
    path.write_text("\n".join(rows))
    found = read_sacct(path)
    assert found.wait_s.tolist() == [3600, UNKNOWN]
    assert found.mean_wait_s == 3600
    assert found.elapsed_s.tolist() == [3600, 1800]
    assert ("start before the submission: the wait is not known", 1) in found.account.changed
    assert ("Elapsed and ElapsedRaw differ: the latter counts", 1) in found.account.changed
    assert ("end - start is not the run time told: the run time counts", 1) in found.account.changed


# ---------------------------------------------------------------------- mistakes


def test_every_mistake_with_line_column_and_text(tmp_path: Path) -> None:
    lines = [
        line(),
        line("2", "2", start="yesterday", elapsed="1h", limit="long"),
        line("x3", "3"),
        line("4", "4", held="gres/gpu=two"),
        line("5", "5", submit="2300-01-01T00:00:00"),
        line("6_[1-", "6", state="PENDING"),
    ]
    with pytest.raises(InputError) as caught:
        read(tmp_path, *lines)
    told = {(mistake.line, mistake.path.split(", ")[-1], mistake.value) for mistake in caught.value.mistakes}
    assert told == {
        (3, "Start", "yesterday"),
        (3, "Elapsed", "1h"),
        (3, "Timelimit", "long"),
        (4, "line 4", "alpha|x3|3|u1|vision|n|COMPLETED|2026-03-02T08:00:00|2026-03..."),
        (5, "AllocTRES", "gres/gpu=two"),
        (6, "Submit", "2300-01-01T00:00:00"),
        (7, "line 7", "alpha|6_[1-|6|u1|vision|n|PENDING|2026-03-02T08:00:00|2026-0..."),
    }
    found = read(tmp_path, *lines, strict=False)
    adds_up(found)
    assert found.lines(UNREADABLE) == [3, 4, 5, 6, 7]
    assert found.account.used == 1
    assert len(found.mistakes) == 7


def test_many_mistakes_are_counted(tmp_path: Path) -> None:
    lines = [line(str(k), str(k), elapsed="soon") for k in range(1, 1501)]
    found = read(tmp_path, line("9999", "9999"), *lines, strict=False)
    adds_up(found)
    assert len(found.mistakes) == slurm_table.NAMED + 1
    assert "500 more lines" in str(found.mistakes[-1])
    assert found.account.used == 1
    early = [text for k in range(1, 1501) for text in (f"a|{k}|{k}|u|v|x", line(str(k), str(k)))]
    found = read(tmp_path, *early, strict=False)
    adds_up(found)
    assert len(found.mistakes) == slurm_table.NAMED + 1
    assert (found.account.read, found.account.used) == (1500, 0)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "empty file"),
        (b"\n\n\n", "empty file"),
        (b"JobID|State|AllocTRES\n", "a header (JobID, State, AllocTRES) and no record"),
        (b"JobID|State|Elapsed\n1|CD|01:00:00\n", "no column for the number of GPUs"),
        (
            b"State|AllocTRES\nCD|gres/gpu=1\n",
            "no column for the job id (JobID or JobIDRaw); found: State, AllocTRES",
        ),
        (b"JobID|JobID|AllocTRES\n1|1|\n", "line 1, JobID: is a column that must stand once"),
        (
            b"9001|train|u01|COMPLETED|01:00:00|gres/gpu=2\n",
            "must be a header line; the columns of a file without one",
        ),
        (
            b"       JobID    JobName  AllocTRES\n------------ ---------- ----------\n",
            "must have a separator",
        ),
        (b"%PDF-1.7\n1 0 obj\n", "this is a PDF"),
        (b"PK\x03\x04 a workbook", "this is a workbook"),
        (b"hello\nworld\n", "must be an export of sacct"),
        (
            gzip.compress(b"JobID|AllocTRES\n" + b"1|gres/gpu=1\n" * 50_000)[:-20],
            "the gzip data is damaged or cut off",
        ),
        (b"\x1f\x8b rubbish", "the gzip data is damaged"),
        (b"JobID,State,AllocTRES\n1,CD,cpu=1\n", "must not be a sign that stands inside of fields too"),
    ],
)
def test_a_file_that_cannot_be_used(tmp_path: Path, data: bytes, words: str) -> None:
    path = tmp_path / "bad.txt"
    path.write_bytes(data)
    for strict in (True, False):
        with pytest.raises(InputError) as caught:
            read_sacct(path, strict=strict)
        assert words in str(caught.value)
        assert str(tmp_path) not in str(caught.value)


def test_a_folder_and_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="must be a file"):
        read_sacct(tmp_path)
    with pytest.raises(InputError, match="no such file"):
        read_sacct(tmp_path / "absent.txt")


@pytest.mark.parametrize("separator", ["", " ", "a", "\n", "x|", "123456789", ","])
def test_a_separator_that_is_none(tmp_path: Path, separator: str) -> None:
    with pytest.raises(InputError, match="separator"):
        read(tmp_path, line(), separator=separator)


def test_a_zone_that_is_none(tmp_path: Path) -> None:
    for zone in ("Mars/Olympus", "../etc/passwd", "Europe", ""):
        with pytest.raises(InputError, match="zone"):
            read(tmp_path, line(), zone=zone)


def test_columns_given_for_a_file_without_a_header(tmp_path: Path) -> None:
    path = tmp_path / "bare.txt"
    path.write_text("1|a|b|gres/gpu=2|01:00:00\n2|c|gres/gpu=1|01:00:00\n")
    found = read_sacct(path, columns="JobID%20,JobName%-40,AllocTRES,Elapsed")
    assert found.name.tolist() == ["a|b", "c"]
    assert found.line.tolist() == [1, 2]
    assert found.gpu_seconds == 3 * 3600


def test_mixed_encodings_are_read_and_said(tmp_path: Path) -> None:
    path = tmp_path / "mixed.txt"
    path.write_bytes(
        b"JobID|User|AllocTRES\n1|m\xc3\xbcller|gres/gpu=1\n2|m\xfcller|gres/gpu=1\n3|n\0ull|gres/gpu=1\n"
        + b"4|x|gres/gpu=1\n5|c\rr|gres/gpu=1\n"
    )
    found = read_sacct(path)
    assert found.user[:3].tolist() == ["müller", "müller", "null"]
    assert found.user[-1] == "c r"
    assert "Carriage returns inside of lines became blanks: 1." in found.account.rules
    assert "Not UTF-8, so read as Windows-1252: line 3." in found.account.rules
    assert "Null bytes were left out: line 4." in found.account.rules


def test_names_stay_text(tmp_path: Path) -> None:
    """Formulas, markup and paths are shown, never run or followed."""
    names = [
        "=cmd|' /C calc'!A0",
        "<script>alert(1)</script>",
        "../../etc/passwd",
        "{0.__class__}",
        "\u202egpj",
    ]
    found = read(tmp_path, *(line(str(k), str(k), name=name) for k, name in enumerate(names, 1)))
    assert found.name.tolist() == names
    assert "<script>" not in found.account._repr_html_()


# ---------------------------------------------------------------------- pieces, memory, progress


@pytest.mark.parametrize("size", [64, 257, 5000])
def test_pieces_of_any_size_give_the_same_history(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    lines = [line(str(k), str(k), name=("a|b\nc" if k % 7 == 0 else "n") * (k % 3)) for k in range(1, 60)]
    lines.insert(30, "cut|short")
    lines.insert(
        45, line("700", "700", name="x\n" + "\n".join(line(str(k), str(k)) for k in (701, 702)) + "\n")
    )
    whole = read(tmp_path, *lines, strict=False)
    monkeypatch.setattr(slurm_blocks, "BLOCK", size)
    pieces = read(tmp_path, *lines, strict=False)
    assert whole.to_frame(every=True).equals(pieces.to_frame(every=True))
    assert repr(whole.account) == repr(pieces.account)
    assert [str(mistake) for mistake in whole.mistakes] == [str(mistake) for mistake in pieces.mistakes]
    assert whole.name[6] == "a|b\nc"
    assert "alpha/700" in whole.job
    assert "alpha/701" not in whole.job


def test_progress_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slurm_blocks, "BLOCK", 4096)
    seen: list[tuple[int, int]] = []
    read(tmp_path, *(line(str(k), str(k)) for k in range(1, 200)), progress=lambda *at: seen.append(at))
    size = (tmp_path / "some.txt").stat().st_size
    assert len(seen) > 3
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)
    assert seen[-1] == (size, size)


def test_a_file_that_would_not_fit_is_refused_with_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gpuplan.traces.slurm.free_memory", lambda: 50_000)
    with pytest.raises(InputError, match=r"is too large: .* export fewer days"):
        read(tmp_path, *(line(str(k), str(k)) for k in range(1, 200)))


def test_the_benchmark_says_what_is_right() -> None:
    """3,000 lines in a process of its own: jobs, steps, GPU-seconds and states as they were written."""
    assert sacct_seconds(3000).figure is not None


def test_the_lines_of_the_benchmark(tmp_path: Path) -> None:
    path = tmp_path / "some.txt"
    with path.open("w") as file:
        told = sacct_lines(file, 25)
    lines = path.read_text().split("\n")
    assert len(lines) == 27  # header, lines, nothing behind the last line feed
    found = read_sacct(path)
    assert {name: told[name] for name in ("jobs", "read")} == {
        "jobs": found.n_jobs,
        "read": found.account.read,
    }
    assert found.gpu_seconds == told["gpu_seconds"]


# ---------------------------------------------------------------------- what nobody thought of

GOOD = [
    line(),
    line("2_3", "5", name="a|b", state="CANCELLED by 77"),
    line("2_[4-9%2]", "2", state="PENDING", start="Unknown", end="Unknown", elapsed="00:00:00", held=""),
    line("8.batch", "8.batch", user=""),
    line("8", "8", state="RUNNING", end="Unknown"),
    line("9+1", "10", limit="UNLIMITED", held="gres/gpu:a100=1,gres/gpu=2"),
]
SCRAPS = [
    "|",
    "\n",
    "\r",
    "\0",
    "\ufeff",
    "=1+1",
    "9" * 30,
    "-1",
    "2026-02-30T00:00:00",
    "_[",
    "]",
    "%",
    "é",
    "\udcff",
    "",
    " ",
]


@settings(max_examples=150 * MORE)
@given(
    st.lists(
        st.tuples(st.integers(0, 700), st.integers(0, 40), st.sampled_from(SCRAPS)), min_size=1, max_size=12
    ),
    st.permutations(GOOD),
)
def test_damaged_lines_never_break_and_never_vanish(
    tmp_path_factory: pytest.TempPathFactory, damage: list[tuple[int, int, str]], lines: list[str]
) -> None:
    text = "\n".join(lines) + "\n"
    for at, length, scrap in damage:
        text = text[:at] + scrap + text[at + length :]
    path = tmp_path_factory.getbasetemp() / "damaged.txt"
    path.write_bytes((HEAD + "\n" + text).encode("utf-8", "surrogateescape"))
    try:
        found = read_sacct(path, strict=False, zone="Europe/Berlin")
    except InputError:  # not one line is about a job, or a column has another style
        return
    adds_up(found)
    told = {mistake.line for mistake in found.mistakes}
    assert set(found.line[found.reason == UNREADABLE].tolist()) <= told
    found.to_frame(every=True)
    found.jobs()
    found.by_job()
    found.stretches()


@settings(max_examples=100 * MORE)
@given(st.binary(max_size=400))
def test_any_bytes_give_a_sentence_or_a_history(
    tmp_path_factory: pytest.TempPathFactory, data: bytes
) -> None:
    path = tmp_path_factory.getbasetemp() / "bytes.txt"
    for start in (b"", HEAD.encode() + b"\n"):
        path.write_bytes(start + data)
        with contextlib.suppress(InputError):
            adds_up(read_sacct(path, strict=False))


@settings(max_examples=60 * MORE)
@given(st.permutations(GOOD), st.booleans())
def test_the_order_of_lines_does_not_matter(
    tmp_path_factory: pytest.TempPathFactory, lines: list[str], twice: bool
) -> None:
    """Nor does it matter whether two exports that overlap are glued together."""
    folder = tmp_path_factory.getbasetemp()
    one, other = read(folder, *GOOD), read(folder, *lines, *(lines[:3] if twice else []))
    for figure in ("n_jobs", "gpu_seconds", "mean_wait_s", "as_of_s", "requested_gpu_seconds"):
        assert getattr(one, figure) == getattr(other, figure)
    assert one.gpus_by_type() == other.gpus_by_type()
    assert sorted(one.job[one.used]) == sorted(other.job[other.used])


def test_many_damaged_lines(tmp_path: Path) -> None:
    """2,000 lines, each damaged in one place (100,000 with GPUPLAN_EXAMPLES=50): read, counted, told."""
    random = np.random.default_rng(7)
    lines = []
    for k in range(1, 2000 * MORE + 1):
        text = line(str(k), str(k), name="a|b" if k % 5 == 0 else "n")
        at, length = int(random.integers(len(text))), int(random.integers(6))
        lines.append(text[:at] + SCRAPS[int(random.integers(len(SCRAPS)))] + text[at + length :])
    path = tmp_path / "damaged.txt"
    path.write_bytes("\n".join([HEAD, *lines]).encode("utf-8", "surrogateescape"))
    found = read_sacct(path, strict=False, zone="Europe/Berlin")
    adds_up(found)
    assert found.account.used > 100
    with pytest.raises(InputError):
        read_sacct(path)
