"""Finds the Chromium that the browser tests and benchmarks drive; as a script, prints its path."""

import os
import shutil
import sys

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def find_chromium() -> str | None:
    """Path of the browser: the one in $CHROMIUM, else the first of `NAMES` on the search path."""
    named = os.environ.get("CHROMIUM")
    if named:
        return shutil.which(named)
    return next((path for name in NAMES if (path := shutil.which(name))), None)


if __name__ == "__main__":
    found = find_chromium()
    print(found or "no Chromium on the search path, and none named by $CHROMIUM", file=sys.stderr)
    sys.exit(0 if found else 1)
