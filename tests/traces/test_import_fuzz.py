"""Damaged files of every format: a sentence or a scenario, never a traceback; every row is used or has a reason."""

import gzip
import os
import random

import pytest

import gpuplan as gp
from gpuplan.inputs.errors import InputError
from gpuplan.traces.to_scenario_traffic import Service

#: Files of about 30 lines for each format; GPUPLAN_EXAMPLES=50 makes a hundred thousand lines of each.
MORE = int(os.environ.get("GPUPLAN_EXAMPLES", "1"))
FILES = 70 * MORE


def swf() -> str:
    rows = (
        f"{k} {k * 60} 5 {600 + k} {1 + k % 4} -1 -1 {1 + k % 4} 3600 -1 1 {k % 3} {k % 2} -1 1 -1 -1 -1"
        for k in range(28)
    )
    return "; MaxProcs: 64\n; UnixStartTime: 1772323200\n" + "\n".join(rows) + "\n"


def sacct() -> str:
    head = "JobID|JobName|User|Account|QOS|State|Submit|Start|End|Elapsed|Timelimit|AllocTRES|ReqTRES\n"
    times = "2026-03-02T08:{k:02}:00|2026-03-02T09:{k:02}:00|2026-03-02T10:{k:02}:00|01:00:00|02:00:00"
    row = "{k}|n{k}|u{u}|a|q|COMPLETED|" + times + "|gres/gpu=2|gres/gpu=2\n"
    return head + "".join(row.format(k=k, u=k % 3) for k in range(28))


def table() -> str:
    rows = (f"j{k},t{k % 3},2026-03-02 08:{k:02}:00,{1 + k % 4},{600 + k}\n" for k in range(28))
    return "job,team,submit_time,gpus,run_s\n" + "".join(rows)


def prometheus() -> str:
    points = ",\n".join(f'[{1_772_409_600 + 3600 * k},"{k}.5"]' for k in range(24))
    return (
        '{"status":"success","data":{"resultType":"matrix","result":[\n{"metric":{"m":"a"},"values":[\n'
        f"{points}\n]}}\n]}}}}\n"
    )


def hourly() -> str:
    return "time,rate\n" + "".join(f"2026-03-02 {k:02}:00,{k}.5\n" for k in range(24))


SEEDS = {
    "slurm": (sacct(), ".txt"),
    "swf": (swf(), ".swf"),
    "jobs": (table(), ".csv"),
    "prometheus": (prometheus(), ".json"),
    "hourly": (hourly(), ".csv"),
}

BITS = (
    b"", b"-1", b"NaN", b"inf", b"1e999", b"99999999999999999999", b"\x00", b"\xff\xfe", b"\xc3", b"|", b";", b",",
    b"\t", b"\n", b"\r", b'"', b"'", b"=cmd()", b"<img src=x>", b"None", b"Unknown", b"2026-13-45T99:99:99", b" ",
    b"gres/gpu:a100=4", b"[1-5%2]", b"1-00:00:00", b"UNLIMITED", b"\xe2\x80\xae", b"0x10", b"1_000", b"{}", b"]",
    b"\\u0000", b"+5",
)  # fmt: skip


def damaged(text: bytes, rng: random.Random) -> bytes:
    """The text with one to four places cut, doubled, swapped or written over."""
    for _ in range(rng.randint(1, 4)):
        lines = text.split(b"\n")
        kind = rng.randrange(6)
        at = rng.randrange(len(text) + 1)
        if kind == 0:
            text = text[:at] + rng.choice(BITS) + text[at + rng.randint(0, 6) :]
        elif kind == 1:
            text = text[:at] + bytes([rng.randrange(256)]) + text[at + 1 :]
        elif kind == 2:
            text = text[:at]
        elif kind == 3:
            k = rng.randrange(len(lines))
            text = b"\n".join([*lines[: k + 1], *lines[k:]])
        elif kind == 4:
            k = rng.randrange(len(lines))
            text = b"\n".join(lines[:k] + lines[k + 1 :])
        else:
            rng.shuffle(lines)
            text = b"\n".join(lines)
    return text


@pytest.mark.parametrize("format", SEEDS)
def test_a_damaged_file_is_a_sentence_or_a_scenario(format, tmp_path):
    rng = random.Random(f"fuzz {format}")
    text, suffix = SEEDS[format]
    outcomes = {"made": 0, "refused": 0}
    refused = []
    for number in range(FILES):
        path = tmp_path / f"file{number % 7}{suffix}"
        path.write_bytes(damaged(text.encode(), rng))
        choices = {"options": {"separator": "|"}} if format == "slurm" else {}
        if format in ("prometheus", "hourly"):
            choices = {"service": Service(per_gpu=2), "unit": "requests/s"}
        try:
            made = gp.import_file(path, format, strict=rng.random() < 0.5, **choices)
        except InputError as error:
            outcomes["refused"] += 1
            refused.append(error)
        else:
            outcomes["made"] += 1
            assert made.account.read == made.account.used + sum(n for _, n in made.account.excluded)
            assert gp.load(made.scenario.to_dict()).fingerprint == made.scenario.fingerprint
    assert min(outcomes.values()) > 0, outcomes
    assert all(mistake.rule and str(error) for error in refused for mistake in error.mistakes)


@pytest.mark.parametrize("format", SEEDS)
@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\n\n\n",
        b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n1 0 obj\n<< >>",
        gzip.compress(b"a,b\n1,2\n" * 500)[:60],
        b"\x89PNG\r\n\x1a\n" + bytes(range(256)),
        b"a" * 100_000,
        b"\xff\xfe" + "a,b\n".encode("utf-16-le"),
        b"[" * 50_000,
    ],
)
def test_what_is_no_such_file_at_all_is_a_sentence(format, content, tmp_path):
    path = tmp_path / f"thing{SEEDS[format][1]}"
    path.write_bytes(content)
    for given in (format, None):
        with pytest.raises(InputError):
            gp.import_file(path, given)
    with pytest.raises(InputError):
        gp.import_file(tmp_path, format)


@pytest.mark.parametrize("format", SEEDS)
def test_headers_without_rows_are_a_sentence(format, tmp_path):
    text, suffix = SEEDS[format]
    path = tmp_path / f"headers{suffix}"
    path.write_text("\n".join(text.splitlines()[: 2 if format == "swf" else 1]) + "\n", encoding="utf-8")
    with pytest.raises(InputError):
        gp.import_file(path, format)
