"""What the pieces of a packing policy are: each a name, a sentence and the number by which kernels know it."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Piece:
    """A named piece.

    Attributes
    ----------
    name
        The name in commands, files and tables.
    about
        Exactly what it does.
    code
        Its number in `gpuplan.packing.kernels`.
    """

    name: str
    about: str
    code: int


class Placement(Piece):
    """Which GPU a task goes to.

    A task of a model over k GPUs joins the best copy that takes one more task (scores of its GPUs added up; of
    predicted service the most), else gets a new one on the k best GPUs that have none, each judged alone.
    """

    __slots__ = ()


class Order(Piece):
    """Which waiting task comes next."""

    __slots__ = ()


class Eviction(Piece):
    """Which idle model goes first where memory is needed."""

    __slots__ = ()
