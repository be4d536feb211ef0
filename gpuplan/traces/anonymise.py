"""Codes in place of names: who did what is not in what is written, and the work stays the same."""

import hmac
from collections.abc import Iterable
from dataclasses import replace
from hashlib import sha256
from typing import Any

from gpuplan.inputs.errors import MISSING, InputError, Mistake
from gpuplan.traces.history import History
from gpuplan.traces.names import mapped

#: Columns of names, and the word that their codes begin with.
COLUMNS = {
    "job": "job",
    "parent": "array",
    "user": "user",
    "team": "team",
    "partition": "partition",
    "qos": "qos",
    "name": "name",
    "cluster": "cluster",
}

_DIGITS = 10  # hexadecimal, of a keyed code: two of a million names are equal once in a thousand files

RULE_BY_ORDER = (
    "Names are replaced by numbers in order of their first row: the same in every import of this file, and nothing of "
    "the names is in them. The lines of the account lead back to who has the file."
)
RULE_BY_KEY = (
    "Names are replaced by codes made with a secret key: the same name has the same code in every file imported with "
    "that key, and nobody without it can try names out."
)


def codes_of(names: Iterable[str], word: str, key: bytes | None = None) -> dict[str, str]:
    """A code for every name (none for the empty one): ``user-1``, or ``user-3f9a...`` with a key.

    A keyed code is HMAC-SHA-256 (RFC 2104) of the column and the name, cut to 10 digits; codes that meet get a number.
    """
    known = [name for name in dict.fromkeys(names) if name]
    if key is None:
        return {"": ""} | {name: f"{word}-{number}" for number, name in enumerate(known, 1)}
    found, taken = {"": ""}, set[str]()
    for name in known:
        digest = hmac.new(key, f"{word}\0{name}".encode("utf-8", "surrogatepass"), sha256).hexdigest()
        code = unique = f"{word}-{digest[:_DIGITS]}"
        count = 2
        while unique in taken:
            unique, count = f"{code}-{count}", count + 1
        taken.add(unique)
        found[name] = unique
    return found


def anonymised(
    history: History, source: str, key: bytes | None = None
) -> tuple[History, dict[str, dict[str, str]]]:
    """A history without names, and the codes by column and name.

    Parameters
    ----------
    history
    source
        What stands for the name of the file, which may hold somebody's.
    key
        A secret that makes codes the same in every file; None: numbers in order of the rows.
    """
    codes = {
        column: codes_of(getattr(history, column).tolist(), word, key) for column, word in COLUMNS.items()
    }
    columns: dict[str, Any] = {
        column: mapped(getattr(history, column), found) for column, found in codes.items()
    }
    for values in columns.values():
        values.flags.writeable = False
    account = replace(history.account, source=source)
    mistakes = tuple(without_value(mistake) for mistake in history.mistakes)
    return replace(history, **columns, source=source, account=account, mistakes=mistakes), codes


def without_value(mistake: Mistake) -> Mistake:
    """A mistake that does not show what was found: a row out of place may have a name in any column."""
    return replace(mistake, value=MISSING)


def without_values(error: InputError, source: str) -> InputError:
    """An error that shows neither what was found nor the name of the file."""
    return InputError(source, [without_value(mistake) for mistake in error.mistakes])
