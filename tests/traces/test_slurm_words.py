"""Fields of `sacct` one by one: the compiled readers and the plain ones say the same, whatever the text."""

import re

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuplan.jit import plain_copy
from gpuplan.traces import slurm_kernels
from gpuplan.traces.slurm_words import Tasks, span_of, tasks_of

plain = plain_copy(slurm_kernels)

SIGNS = st.text("0123456789:-.T Z+_[]%,a", max_size=24)
SPANS = st.one_of(
    SIGNS, st.from_regex(r"([0-9]{1,3}-)?[0-9]{1,3}(:[0-9]{1,2}){0,3}(\.[0-9]{1,3})?", fullmatch=True)
)
TIMES = st.one_of(
    SIGNS,
    st.datetimes().map(lambda moment: moment.replace(microsecond=0).isoformat()),
    st.from_regex(
        r"20[0-9]{2}-[01][0-9]-[0-3][0-9][T ][0-2][0-9]:[0-6][0-9]:[0-6][0-9](Z|[+-][0-9]{2}(:?[0-9]{2})?)?",
        fullmatch=True,
    ),
)
IDS = st.one_of(
    SIGNS, st.from_regex(r"[0-9]{1,20}(_([0-9]{1,4}|\[[0-9,%-]*\]))?(\+[0-9])?(\.[a-z0-9]+)?", fullmatch=True)
)


def fields(texts: list[str]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A buffer with the texts behind one another, and where each starts and ends."""
    data = [text.encode() for text in texts]
    ends = np.cumsum([len(text) for text in data], dtype=np.int64)
    return np.frombuffer(b"".join(data) + b"\n", np.uint8), ends - [len(text) for text in data], ends


def read(module: object, name: str, texts: list[str], *more: int) -> list[list[int]]:
    """What a kernel of a module writes into its outputs."""
    n = len(texts)
    counts = {"stamps": 1, "spans": 1, "job_ids": 4}
    outputs = [np.zeros(n, np.int64) for _ in range(counts[name])] + [np.zeros(n, np.int8)]
    getattr(module, name)(*fields(texts), *more, *outputs)
    return [output.tolist() for output in outputs]


@settings(max_examples=50)
@given(st.lists(SPANS, min_size=1, max_size=10), st.sampled_from([0, 1, 60]))
def test_spans(texts: list[str], unit: int) -> None:
    seconds, kinds = read(slurm_kernels, "spans", texts, unit)
    assert [seconds, kinds] == read(plain, "spans", texts, unit)
    for text, found, kind in zip(texts, seconds, kinds, strict=True):
        expected = span_of(text, unit)
        assert found == (-1 if expected is None else expected), text
        assert kind == (slurm_kernels.NOTHING if not text else 3 if expected is None else slurm_kernels.VALUE)


def test_spans_by_hand() -> None:
    texts = ["1-02:03:04", "02:03:04", "03:04", "1-02", "1-02:03", "100:00:00", "00:00.500", "03:04.4", "90"]
    expected = [93784, 7384, 184, 93600, 93780, 360000, 1, 184, -1]
    assert read(slurm_kernels, "spans", texts, 0)[0] == expected
    assert [span_of(text, 0) for text in texts[:-1]] == expected[:-1]


@settings(max_examples=50)
@given(st.lists(TIMES, min_size=1, max_size=10))
def test_stamps(texts: list[str]) -> None:
    """As the standard library reads them, where they have the form that is read."""
    from datetime import UTC, datetime

    seconds, kinds = read(slurm_kernels, "stamps", texts)
    assert [seconds, kinds] == read(plain, "stamps", texts)
    form = r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(Z|[+-]\d\d(:?\d\d)?)?"
    for text, found, kind in zip(texts, seconds, kinds, strict=True):
        moment = None
        if text[:4] == "0000":  # a year that the standard library does not have
            continue
        if re.fullmatch(form, text, re.A):
            try:
                moment = datetime.fromisoformat(text)
            except ValueError:
                moment = None
        if kind == slurm_kernels.VALUE:
            assert moment is not None
            assert moment.tzinfo is None
            assert found == (moment.replace(tzinfo=UTC) - datetime(1970, 1, 1, tzinfo=UTC)).total_seconds()
        elif kind == slurm_kernels.INSTANT and moment is not None:
            assert found == (moment - datetime(1970, 1, 1, tzinfo=UTC)).total_seconds()
        elif kind == slurm_kernels.OTHER:
            assert moment is None or moment.tzinfo is not None
        else:
            assert text == "" or kind == slurm_kernels.INSTANT


@settings(max_examples=50)
@given(st.lists(IDS, min_size=1, max_size=10))
def test_job_ids(texts: list[str]) -> None:
    number, task, part, base, kinds = read(slurm_kernels, "job_ids", texts)
    assert [number, task, part, base, kinds] == read(plain, "job_ids", texts)
    form = r"(\d{1,18})(?:_(\d{1,18})|_(\[[^\]]*\]))?(?:\+(\d{1,18}))?(\..+)?"
    for k, text in enumerate(texts):
        match = re.fullmatch(form, text, re.A | re.S)
        if match is None:
            assert kinds[k] == slurm_kernels.NO_ID
            continue
        expected = (
            slurm_kernels.A_STEP if match[5] else slurm_kernels.TASKS if match[3] else slurm_kernels.JOB
        )
        assert kinds[k] == expected
        assert [number[k], task[k], part[k]] == [int(match[1]), int(match[2] or -1), int(match[4] or -1)]


@settings(max_examples=50)
@given(st.lists(st.text("ab|\n\u00e9", max_size=4), min_size=1, max_size=60))
def test_encode_numbers_texts_in_order_of_appearance(texts: list[str]) -> None:
    buffer, starts, ends = fields(texts)
    n = len(texts)
    for module in (slurm_kernels, plain):
        slots = np.full(1 << (2 * n).bit_length(), -1, np.int64)
        hashes, codes, firsts = (np.zeros(n, np.int64) for _ in range(3))
        found = module.encode(buffer, starts, ends, slots, hashes, codes, firsts)
        different = list(dict.fromkeys(texts))
        assert found == len(different)
        assert [different[code] for code in codes.tolist()] == texts
        assert [texts[row] for row in firsts[:found].tolist()] == different


@settings(max_examples=50)
@given(st.lists(st.text("ab|;", max_size=8), min_size=1, max_size=12))
def test_split_finds_what_python_finds(lines: list[str]) -> None:
    data = "".join(text + "\n" for text in lines).encode()
    n = len(lines)
    for module in (slurm_kernels, plain):
        starts, ends = np.zeros((2, n), np.int64), np.zeros((2, n), np.int64)
        bounds, count = np.zeros((2, n), np.int64), np.zeros(n, np.int64)
        wanted = np.array([1, -1, 0], np.int64)
        assert module.split(np.frombuffer(data, np.uint8), ord("|"), wanted, starts, ends, bounds, count) == n
        for row, text in enumerate(lines):
            parts = text.split("|")
            assert data[bounds[0, row] : bounds[1, row]].decode() == text
            assert count[row] == len(parts) - 1
            for place, column in ((1, 0), (0, 2)):
                expected = parts[column] if column < len(parts) else ""
                assert data[starts[place, row] : ends[place, row]].decode() == expected


@settings(max_examples=50)
@given(st.sets(st.integers(0, 200), min_size=1, max_size=40))
def test_lists_of_tasks(tasks: set[int]) -> None:
    """Runs as a-b and single tasks, as Slurm writes them: as many as there are."""
    parts, rest = [], sorted(tasks)
    while rest:
        run = 1
        while run < len(rest) and rest[run] == rest[0] + run:
            run += 1
        parts.append(str(rest[0]) if run == 1 else f"{rest[0]}-{rest[run - 1]}")
        rest = rest[run:]
    found = tasks_of(",".join(parts) + "%3")
    assert isinstance(found, Tasks)
    assert (found.count, found.together, found.cut_off) == (len(tasks), 3, False)
