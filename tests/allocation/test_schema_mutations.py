"""Damaged scenario files: always a scenario or sentences, never another exception, never a hang.

`SCENARIO_MUTATIONS=10000 pytest tests/allocation/test_schema_mutations.py` is the soak.
"""

import os
import random
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from gpuplan import load, shipped
from gpuplan.allocation.model import AllocationScenario
from gpuplan.inputs.errors import InputError

COUNT = int(os.environ.get("SCENARIO_MUTATIONS", "300"))

#: Seconds that no file of this size may take, on a machine shared with others.
LONGEST = 30.0

TOKENS = [
    "null", "~", "", "true", "no", "nan", ".inf", "-1", "0", "3", "2.5", "1e308", "1e999", "9" * 400, "0123",
    "0x10", "1_000", "1:30", "90min", "٣", "[]", "{}", "[1, 2]", "{a: 1}", "*x", "&x", "!!int 3", "? ", "- ",
    "|", ">-", '"', "'", "\t", "\x00", "\x1b[2J", "<script>", "=1+1", "../", "x" * 10_000, "😀", "\u202e",
    "\ufeff", "---\n", "...\n", "%YAML 1.1\n", "# ", ": ", "gpus", "name", "batch", "kind: ", "<<: ",
]  # fmt: skip


def flip_bytes(data: bytes, rng: random.Random) -> bytes:
    changed = bytearray(data)
    for _ in range(rng.randint(1, 8)):
        changed[rng.randrange(len(changed))] = rng.randrange(256)
    return bytes(changed)


def drop_lines(data: bytes, rng: random.Random) -> bytes:
    lines = data.splitlines(keepends=True)
    first = rng.randrange(len(lines))
    return b"".join(lines[:first] + lines[first + rng.randint(1, 4) :])


def repeat_lines(data: bytes, rng: random.Random) -> bytes:
    lines = data.splitlines(keepends=True)
    first = rng.randrange(len(lines))
    lines.insert(rng.randrange(len(lines)), b"".join(lines[first : first + rng.randint(1, 3)]))
    return b"".join(lines)


def swap_tokens(data: bytes, rng: random.Random) -> bytes:
    words = data.split(b" ")
    here, there = rng.randrange(len(words)), rng.randrange(len(words))
    words[here], words[there] = words[there], words[here]
    return b" ".join(words)


def replace_tokens(data: bytes, rng: random.Random) -> bytes:
    words = data.split(b" ")
    for _ in range(rng.randint(1, 3)):
        end = rng.choice([b"", b",", b"}", b"\n"])
        words[rng.randrange(len(words))] = rng.choice(TOKENS).encode() + end
    return b" ".join(words)


def change_values(data: bytes, rng: random.Random) -> bytes:
    """Another type after a key: the most frequent mistake of people."""
    parts = data.split(b": ")
    place = rng.randrange(1, len(parts))
    rest = parts[place]
    cut = min((at for at in (rest.find(mark) for mark in (b",", b"}", b"\n")) if at >= 0), default=len(rest))
    parts[place] = rng.choice(TOKENS).encode() + rest[cut:]
    return b": ".join(parts)


def nest(data: bytes, rng: random.Random) -> bytes:
    place = rng.randrange(len(data))
    return (
        data[:place]
        + rng.choice([b"[", b"{", b"- ", b"{a: ", b"[[]", b"? "]) * rng.randint(1, 3000)
        + data[place:]
    )


def truncate(data: bytes, rng: random.Random) -> bytes:
    return data[: rng.randrange(len(data))]


MUTATIONS: list[Callable[[bytes, random.Random], bytes]] = [
    flip_bytes,
    drop_lines,
    repeat_lines,
    swap_tokens,
    replace_tokens,
    change_values,
    change_values,
    nest,
    truncate,
]


def mutant(number: int, originals: list[bytes]) -> bytes:
    """Damaged file number `number`; the same one every time."""
    rng = random.Random(number)
    data = rng.choice(originals)
    for _ in range(rng.choice([1, 1, 2, 3])):
        data = rng.choice(MUTATIONS)(data, rng) or b" "
    return data


def test_mutated_files_are_scenarios_or_sentences(tmp_path: Path) -> None:
    originals = [scenario.path.read_bytes() for scenario in shipped() if scenario.kind == "allocation"]
    path = tmp_path / "mutant.yaml"
    seen: Counter[str] = Counter()
    for number in range(COUNT):
        path.write_bytes(mutant(number, originals))
        begin = time.perf_counter()
        try:
            scenario = load(path)
        except InputError as error:
            seen["refused"] += 1
            text = str(error)
            printable = all(letter.isprintable() or letter == "\n" for letter in text)
            if not printable or not error.mistakes or len(text) > 20_000:
                pytest.fail(f"mutant {number}: no fit message: {text[:500]!r}")
        except Exception as error:  # any other exception is what this test looks for
            pytest.fail(f"mutant {number}: {type(error).__name__}: {error}")
        else:
            seen["read"] += 1
            if type(scenario) is not AllocationScenario:
                pytest.fail(f"mutant {number}: {scenario!r}")
        if time.perf_counter() - begin > LONGEST:
            pytest.fail(f"mutant {number}: took {time.perf_counter() - begin:.1f} s")
    assert seen["refused"] > COUNT // 2  # most damage is noticed
    assert seen["read"] > COUNT // 50  # and not everything is refused out of hand
