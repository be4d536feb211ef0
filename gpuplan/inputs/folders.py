"""Where the data that ships with gpuplan lies: in the installed package, or in the checkout."""

from importlib import resources
from pathlib import Path


def data_folder(name: str) -> Path:
    """The folder ``scenarios`` or ``notebooks``.

    Parameters
    ----------
    name
        Name of the folder, at the top of the checkout and of the wheel.

    Raises
    ------
    FileNotFoundError
        Where the installation has no such folder.
    """
    package = Path(str(resources.files("gpuplan")))
    for folder in (package / name, package.parent / name):
        if folder.is_dir():
            return folder
    raise FileNotFoundError(f"this installation of gpuplan has no folder {name!r}")
