"""Writes docs/glossary.md from the terms of the lessons.

``python docs/glossary.py`` writes it anew; a test compares the page with what this file would write.
"""

from __future__ import annotations

import re
from pathlib import Path

PAGE = Path(__file__).with_name("glossary.md")

HEAD = """\
# Glossary

The terms of the field as these pages and the lessons use them. In Python: `gp.glossary()` for all of them,
`gp.glossary("backfill")` for one.

"""


def page() -> str:
    """The whole page."""
    from gpuplan.lessons.glossary import glossary

    return HEAD + re.sub("^### ", "## ", glossary().to_markdown(), flags=re.MULTILINE)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
