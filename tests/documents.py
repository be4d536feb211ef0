"""What README and docs/ say, taken apart: pages, their code blocks, their links, and the files that they name."""

import gzip
import json
import re
from dataclasses import dataclass
from pathlib import Path

CHECKOUT = Path(__file__).parents[1]

#: Every page that people read.
PAGES = (CHECKOUT / "README.md", *sorted((CHECKOUT / "docs").glob("*.md")))

#: The names under which commands on the pages know a scenario, by its kind.
SCENARIO_FILES = {"allocation": "tiny.yaml", "fairshare": "mine.yaml", "packing": "node.yaml"}


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block of a page: where it begins, what language it is said to be, what it holds."""

    page: Path
    line: int
    language: str
    text: str

    @property
    def file(self) -> str | None:
        """The path that the first line of a block names as its own (``# file: path``)."""
        found = re.match(r"# file: (\S+)\n", self.text)
        return found[1] if found else None

    def __str__(self) -> str:
        return f"{self.page.name}:{self.line}"


def blocks(page: Path, language: str | None = None) -> list[Block]:
    """The fenced blocks of a page, in order; of one language where it is named."""
    found, begun, lines = [], None, page.read_text(encoding="utf-8").split("\n")
    for number, line in enumerate(lines, 1):
        fence = re.fullmatch(r"```(\S*)", line)
        if fence is None:
            continue
        if begun is None:
            begun = (number, fence[1])
            continue
        text = "\n".join(lines[begun[0] : number - 1]) + "\n"
        found.append(Block(page, *begun, text))
        begun = None
    assert begun is None, f"{page.name}: a fence is not closed"
    return [block for block in found if language in (None, block.language)]


def links(page: Path) -> list[str]:
    """Targets of the links and pictures of a page, those in code left out."""
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    return re.findall(r"\]\(([^)\s]+)\)", re.sub(r"`[^`\n]*`", "", text))


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub and MyST make them."""
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    titles = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def files_for(page: Path, folder: Path) -> None:
    """Write the files that commands and code of a page name: scenarios, logs, tables, traffic.

    A scenario that the page has itself goes before that of another page.
    """
    for source in (*PAGES, page):
        for block in blocks(source, "yaml"):
            kind = re.match(r"kind: (\w+)", block.text)
            if kind is not None:
                (folder / SCENARIO_FILES[kind[1]]).write_text(block.text, encoding="utf-8")
    rows = (f"{k} {60 * k} -1 600 4 -1 -1 4 900 -1 1 {k % 3} 1 -1 1 -1 -1 -1" for k in range(1, 20))
    log = "; MaxProcs: 512\n" + "\n".join(rows)
    (folder / "log.swf").write_text(log, encoding="utf-8")
    (folder / "log.swf.gz").write_bytes(gzip.compress(log.encode()))
    _files_of_a_cluster(folder)


def _files_of_a_cluster(folder: Path) -> None:
    """What a cluster has: an export of sacct with a job on each of two days, a table of jobs, traffic of a day."""
    columns = (
        "JobIDRaw,JobID,User,Account,QOS,Partition,State,Submit,Start,End,Elapsed,Timelimit,AllocTRES,ReqTRES"
    )
    lines = [columns.replace(",", "|")]
    for job, day in ((1, "2026-03-03"), (2, "2026-03-04")):
        times = f"{day}T08:00:00|{day}T09:00:00|{day}T11:00:00|02:00:00|04:00:00"
        lines.append(f"{job}|{job}|ann|lab|high|gpu|COMPLETED|{times}|gres/gpu=4|gres/gpu=4")
    (folder / "sacct.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    table = "id,submit_s,Cards,Used\na,0,4,60\nb,60,2,30\n"
    (folder / "jobs.csv").write_text(table, encoding="utf-8")
    hours = range(24)
    first = 1772582400  # 2026-03-04 00:00 UTC
    values = [[first + 3600 * hour, str(10 + hour)] for hour in hours]
    series = {"metric": {"__name__": "requests", "model": "chat"}, "values": values}
    answer = {"status": "success", "data": {"resultType": "matrix", "result": [series]}}
    (folder / "traffic.json").write_text(json.dumps(answer), encoding="utf-8")
    traffic = "".join(f"2026-03-04 {hour:02}:00,{10 + hour}\n" for hour in hours)
    (folder / "traffic.csv").write_text("hour,requests\n" + traffic, encoding="utf-8")
