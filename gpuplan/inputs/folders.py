"""Where the data that ships with gpuplan lies: in the installed package, or in the checkout."""

from importlib import resources
from pathlib import Path

from gpuplan.inputs.errors import InputError, Mistake

_confined = False


def confine() -> None:
    """From now on, in this process, a scenario may name files beside its own only, for it is somebody else's."""
    global _confined
    _confined = True


def beside(folder: Path, name: str) -> Path:
    """The table that a scenario in a folder names.

    Raises
    ------
    InputError
        Where scenarios are confined, for a path that leads elsewhere.
    """
    path = folder / name
    if _confined and (Path(name).name != name or name in ("", "..") or path.is_symlink()):
        raise InputError(
            "table", [Mistake("", "must be the name of a file that was uploaded with the scenario")]
        )
    return path


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
