"""From blocks of a `sacct` export to columns: numbers, seconds, and codes of texts; every field that cannot be read."""

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from gpuplan.traces import slurm_kernels as kernels
from gpuplan.traces.grid import FIRST_S, LAST_S
from gpuplan.traces.history import UNKNOWN
from gpuplan.traces.slurm_layout import GPUS, LIMITS, TEXTS, TIMES, USAGE, Layout
from gpuplan.traces.slurm_records import Assembled, Splitter, assemble, last_cut
from gpuplan.traces.slurm_table import NAMED, Mistakes, Table, Vocabulary
from gpuplan.traces.slurm_words import MOST_S, NOTHING_WORDS

Int64 = npt.NDArray[np.int64]

_TIME_RULE = "must be a time such as 2026-03-04T10:00:00, Unknown or None"
_SPAN_RULE = "must be a span of time such as 1-02:03:04, 02:03:04 or 03:04"
_ID_RULE = "must be a job id such as 9100, 9100_4, 9100_[3-10%2] or 9100+1"

#: Bytes of lines, and lines, that may wait for what follows them.
MOST_OPEN, _LOOKED_BACK = 1 << 26, 5000

#: Columns whose different texts are few, or are wanted as texts.
ENCODED = (*TEXTS, *LIMITS, *GPUS, "priority", *USAGE)


class Gatherer:
    """Takes blocks and makes a `Table` of them."""

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self.mistakes = Mistakes(layout)
        self.splitter = Splitter(layout)
        self.wanted = layout.wanted()
        self.places = np.array(
            [self.wanted.index(n) if n in self.wanted else -1 for n in layout.names], np.int64
        )
        self.words = {name: Vocabulary() for name in ENCODED if name in layout.names}
        self.parts: list[dict[str, Any]] = []
        self.brackets: dict[int, str] = {}
        self.rows = self.lines = 0
        self.blank = self.pieces = 0
        self.headers: list[int] = []
        self.known = dict.fromkeys([name for name in TIMES if name in layout.names], 0)
        self.strange: dict[str, list[str]] = {name: [] for name in self.known}
        self.n_strange = dict.fromkeys(self.known, 0)

    def add(self, data: bytes, first_line: int, last: bool) -> int:
        """Read a block; how many of its bytes were read (what is left belongs before the next block)."""
        buffer = np.frombuffer(data, np.uint8)
        n = int(np.count_nonzero(buffer == kernels.NEWLINE))
        shape = (len(self.wanted), n)
        starts, ends = np.zeros(shape, np.int64), np.zeros(shape, np.int64)
        bounds, count = np.zeros((2, n), np.int64), np.zeros(n, np.int64)
        kernels.split(buffer, self.layout.separator[0], self.places, starts, ends, bounds, count)
        odd = count != self.layout.separators
        if self.layout.trailing:
            odd |= ends_elsewhere(buffer, bounds, self.layout.separator[0])
        odd |= self._without_id(buffer, starts, ends)
        if not last:
            n = last_cut(data, bounds, count, odd, self.splitter, _LOOKED_BACK)
            n = len(count) if not n and len(data) >= MOST_OPEN else n
            data = data[: bounds[0, n]] if n < len(count) else data
            buffer = buffer[: len(data)]
            if not n:
                return 0
        odd = odd[:n]
        found = assemble(data, bounds[:, :n], count[:n], odd, self.splitter) if odd.any() else Assembled()
        self._noted(found, first_line)
        if found.pieces or odd.any():
            self._read(buffer, *self._merged(starts, ends, bounds, np.flatnonzero(~odd), found), first_line)
        else:
            none = np.zeros(n, np.bool_)
            self._read(buffer, starts[:, :n], ends[:, :n], bounds[:, :n], np.arange(n), none, first_line)
        self.lines += n
        return len(data)

    def _merged(
        self, starts: Int64, ends: Int64, bounds: Int64, plain: Int64, found: Assembled
    ) -> tuple[Int64, Int64, Int64, Int64, npt.NDArray[np.bool_]]:
        """Fields (starts, ends), bytes, first lines of plain lines and pieces in file order, and which are broken."""
        pieces = found.pieces
        whole = np.concatenate([bounds[:, plain], _spans_of(found)], 1)
        order = np.argsort(whole[0], kind="stable")
        line = np.concatenate([plain, np.array([piece.first for piece in pieces], np.int64)])[order]
        broken = np.array([False] * len(plain) + [bool(piece.rule) for piece in pieces], np.bool_)[order]
        fields = []
        for k, table in enumerate((starts, ends)):
            of_pieces = np.zeros((len(self.wanted), len(pieces)), np.int64)
            for column, place in enumerate(self.places.tolist()):
                if place >= 0:
                    of_pieces[place] = [piece.bounds[column][k] if piece.bounds else 0 for piece in pieces]
            fields.append(np.concatenate([table[:, plain], of_pieces], 1)[:, order])
        return fields[0], fields[1], whole[:, order], line, broken

    def _without_id(self, buffer: Any, starts: Int64, ends: Int64) -> npt.NDArray[np.bool_]:
        """Lines that have no job id where the id stands."""
        k = self.places[self.layout.id_column]
        return np.asarray(self._ids(buffer, starts[k], ends[k])[3] == kernels.NO_ID, np.bool_)

    def _ids(self, buffer: Any, starts: Int64, ends: Int64) -> tuple[Int64, Int64, Int64, Int64]:
        n = len(starts)
        number, task, part, base = (np.zeros(n, np.int64) for _ in range(4))
        kinds = np.zeros(n, np.int8)
        kernels.job_ids(buffer, starts, ends, number, task, part, base, kinds)
        return number, task, part, kinds.astype(np.int64)

    def _noted(self, found: Assembled, first_line: int) -> None:
        self.blank += found.blank
        self.headers += [row + first_line for row in found.headers]
        self.pieces += sum(not piece.rule for piece in found.pieces)
        for piece in found.pieces:
            if piece.rule:
                first, last = piece.first + first_line, piece.last + first_line
                told = last > first and len(self.mistakes.found) < NAMED
                several = f" (lines {first} to {last})" if told else ""
                self.mistakes.tell("", piece.rule + several, np.array([first]), piece.text)

    def _read(
        self,
        buffer: Any,
        starts: Int64,
        ends: Int64,
        whole: Int64,
        line: Int64,
        broken: npt.NDArray[np.bool_],
        first_line: int,
    ) -> None:
        """Read the fields of records; a broken record has only its line."""
        line = line + first_line
        hashes = np.zeros(len(line), np.int64)
        kernels.hash_all(buffer, np.ascontiguousarray(whole[0]), np.ascontiguousarray(whole[1]), hashes)
        part: dict[str, Any] = {"line": line, "hash": hashes, "bad": broken.copy()}
        for k, name in enumerate(self.wanted):
            a, b = starts[k], ends[k]
            if name in ("jobid", "jobidraw"):
                part[name] = self._read_ids(name, buffer, a, b, line, part["bad"], broken)
            elif name in TIMES:
                self._read_times(name, buffer, a, b, line, part)
            elif name in ("elapsed", "elapsedraw"):
                self._read_spans(name, buffer, a, b, line, part)
            else:
                part[name] = self._encoded(name, buffer, a, b)
        self.parts.append(part)
        self.rows += len(line)

    def _read_ids(
        self, name: str, buffer: Any, a: Int64, b: Int64, line: Int64, bad: Any, broken: Any
    ) -> tuple[Int64, Int64, Int64, Int64]:
        found = self._ids(buffer, a, b)
        wrong = np.flatnonzero((found[3] == kernels.NO_ID) & ~broken)
        if len(wrong):
            texts = [_text(buffer, a[row], b[row]) for row in wrong[:NAMED].tolist()]
            self.mistakes.tell(name, _ID_RULE, line[wrong], texts + [""] * (len(wrong) - len(texts)))
            bad[wrong] = True
        if name == "jobid" or "jobid" not in self.wanted:
            for row in np.flatnonzero(found[3] == kernels.TASKS).tolist():
                self.brackets[self.rows + row] = _text(buffer, a[row], b[row])
        return found

    def _read_times(self, name: str, buffer: Any, a: Int64, b: Int64, line: Int64, part: Any) -> None:
        seconds, kinds = np.zeros(len(line), np.int64), np.zeros(len(line), np.int8)
        kernels.stamps(buffer, a, b, seconds, kinds)
        other = np.flatnonzero(kinds == kernels.OTHER)
        known = kinds <= kernels.INSTANT
        never = known & ((seconds < 2 * 86400) & (seconds > -2 * 86400) | (seconds < -(10**10)))
        far = np.flatnonzero(known & ~never & ((seconds < FIRST_S) | (seconds >= LAST_S)))
        wrong = self._wrong(name, buffer, a, b, other, line, part, _TIME_RULE, _is_no_time)
        self._wrong(name, buffer, a, b, far, line, part, "must be between 1971 and 2199", lambda text: False)
        seconds[never | ~known] = UNKNOWN
        seconds[far] = UNKNOWN
        self.known[name] += int(known.sum())
        self.n_strange[name] += len(wrong)
        if len(wrong) and not self.strange[name]:
            self.strange[name] = [_text(buffer, a[wrong[0]], b[wrong[0]])]
        part[name] = seconds
        part[f"{name} instant"] = kinds == kernels.INSTANT

    def _read_spans(self, name: str, buffer: Any, a: Int64, b: Int64, line: Int64, part: Any) -> None:
        seconds, kinds = np.zeros(len(line), np.int64), np.zeros(len(line), np.int8)
        kernels.spans(buffer, a, b, 1 if name == "elapsedraw" else 0, seconds, kinds)
        other = np.flatnonzero((kinds == kernels.OTHER) | (seconds > MOST_S))
        self._wrong(
            name, buffer, a, b, other, line, part, _SPAN_RULE, lambda text: text.lower() in NOTHING_WORDS
        )
        seconds[other] = UNKNOWN
        part[name] = seconds

    def _wrong(
        self,
        name: str,
        buffer: Any,
        a: Int64,
        b: Int64,
        rows: Int64,
        line: Int64,
        part: dict[str, Any],
        rule: str,
        fine: Callable[[str], bool],
    ) -> Int64:
        """Tell the fields of some rows that are no word for nothing; their rows."""
        if not len(rows):
            return rows
        codes, texts = _different(buffer, a[rows], b[rows])
        words = [text.decode("utf-8", "replace") for text in texts]
        wrong: Int64 = rows[~np.array([fine(word.strip()) for word in words])[codes]]
        if len(wrong):
            shown = [_text(buffer, a[row], b[row]) for row in wrong[:NAMED].tolist()]
            self.mistakes.tell(name, rule, line[wrong], shown + [""] * (len(wrong) - len(shown)))
            part["bad"][wrong] = True
        return wrong

    def _encoded(self, name: str, buffer: Any, a: Int64, b: Int64) -> npt.NDArray[np.int32]:
        codes, texts = _different(buffer, a, b)
        numbers = self.words[name].codes(texts)
        found: npt.NDArray[np.int32] = numbers[codes]
        return found

    def table(self) -> Table:
        """All that was read."""

        def whole(name: str) -> Any:
            return np.concatenate([part[name] for part in self.parts])

        ids = {
            name: tuple(np.concatenate([part[name][k] for part in self.parts]) for k in range(4))
            for name in ("jobid", "jobidraw")
            if name in self.wanted
        }
        times = [name for name in TIMES if name in self.wanted]
        spans = [name for name in ("elapsed", "elapsedraw") if name in self.wanted]
        table = Table(
            whole("line"),
            whole("hash"),
            whole("bad"),
            ids,  # type: ignore[arg-type]  # tuples of four
            self.brackets,
            {name: whole(name) for name in (*times, *spans)},
            {name: whole(f"{name} instant") for name in times},
            {name: whole(name) for name in self.words},
            {name: words.texts() for name, words in self.words.items()},
            self.blank,
            self.headers,
            self.pieces,
        )
        self.parts.clear()  # half of the memory
        return table


def ends_elsewhere(buffer: Any, bounds: Int64, separator: int) -> npt.NDArray[np.bool_]:
    """Lines that do not end with a separator."""
    last = np.maximum(bounds[1] - 1, 0)
    return np.asarray((bounds[1] == bounds[0]) | (buffer[last] != separator), np.bool_)


def _spans_of(found: Assembled) -> Int64:
    starts = [piece.start for piece in found.pieces]
    return np.array([starts, [piece.end for piece in found.pieces]], np.int64).reshape(2, len(starts))


def _different(buffer: Any, a: Int64, b: Int64) -> tuple[Int64, list[bytes]]:
    """The code of each field, and the different texts in order of appearance."""
    n = len(a)
    slots = np.full(1 << max(4, (2 * n).bit_length()), -1, np.int64)
    hashes, codes, firsts = (np.zeros(n, np.int64) for _ in range(3))
    a, b = np.ascontiguousarray(a), np.ascontiguousarray(b)
    found = int(kernels.encode(buffer, a, b, slots, hashes, codes, firsts))
    data = buffer.tobytes() if found > 5000 else None
    pairs = zip(a[firsts[:found]].tolist(), b[firsts[:found]].tolist(), strict=True)
    if data is not None:
        return codes, [data[start:end] for start, end in pairs]
    return codes, [buffer[start:end].tobytes() for start, end in pairs]


def _text(buffer: Any, start: int, end: int) -> str:
    return str(buffer[start:end].tobytes().decode("utf-8", "replace"))


def _is_no_time(text: str) -> bool:
    return text == "0" or text.lower() in NOTHING_WORDS
