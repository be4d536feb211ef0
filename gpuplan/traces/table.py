"""Reading a CSV file (plain or gzip) whose every cell stays the text that was written."""

import warnings
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from gpuplan.inputs.errors import InputError, Mistake, did_you_mean, shorten

if TYPE_CHECKING:
    import pandas as pd


def read_table(path: str | Path, columns: Sequence[str]) -> "pd.DataFrame":
    """The named columns of a CSV file as text, a row per record, numbered from 0.

    Parameters
    ----------
    path
        A UTF-8 file with a header row; gzip where its name ends in ``.gz``.
    columns
        Columns that are needed; others are left out.

    Raises
    ------
    InputError
        If the file cannot be read, or lacks a column.
    """
    import pandas as pd

    source = str(path)
    packed: Literal["gzip"] | None = "gzip" if source.endswith(".gz") else None
    try:
        names = list(pd.read_csv(path, nrows=0, dtype=str, compression=packed).columns)
        missing = [
            Mistake(name, "is a column that the file must have" + did_you_mean(name, names))
            for name in columns
            if name not in names
        ]
        if missing:
            raise InputError(source, missing)
        with warnings.catch_warnings():  # a row longer than the header is a fault, not a remark
            warnings.simplefilter("error", pd.errors.ParserWarning)
            table = pd.read_csv(
                path,
                dtype=str,
                keep_default_na=False,
                index_col=False,
                compression=packed,
                skip_blank_lines=False,
            )
        return table[list(columns)]
    except InputError:
        raise
    except FileNotFoundError:
        rule = "there is no such file"
    except OSError as error:  # a folder, no permission, not gzip
        rule = f"cannot be read: {error.strerror or shorten(str(error), 120)}"
    except (EOFError, zlib.error):
        rule = "cannot be read: the gzip data is damaged or cut off"
    except UnicodeDecodeError:
        rule = "must be UTF-8 text"
    except (ValueError, Warning) as error:  # pandas' own: empty, ragged rows, unclosed quotes
        rule = f"must be a CSV file with a header row: {shorten(' '.join(str(error).split()), 120)}"
    raise InputError(source, [Mistake("", rule)])
