"""What a scenario is to be made of a history: the choices that a person may make, and what they may be."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal, get_args

from gpuplan.inputs.errors import InputError, Mistake, did_you_mean
from gpuplan.inputs.fields import number

Kind = Literal["fairshare", "allocation"]
Budget = Literal["auto", "team", "user", "team/user", "partition", "qos", "none"]
RankedBy = Literal["none", "recorded", "qos", "partition", "team", "user"]
Sizes = Literal["up", "down"]

#: Priority of a job whose name has no rank.
UNRANKED = 1.0

_WORDS = {"kind": Kind, "budget": Budget, "priority": RankedBy, "sizes": Sizes}

#: Choices that one kind of scenario has.
_ONLY = {
    "fairshare": (
        ("budget", "weights", "minimum_s", "resumable"),
        "is for fair share: an allocation has no budgets, and its jobs are not preempted",
    ),
    "allocation": (("sizes", "step_minutes"), "is for an allocation (kind allocation)"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """The choices; what is None, or ``"auto"``, is inferred from the history, and said.

    Attributes
    ----------
    kind
        ``"fairshare"``: a span of days, run by queues and budgets. ``"allocation"``: one day, planned as a whole.
    day
        The day of an allocation (``YYYY-MM-DD``); None: the one with the most work submitted.
    first, last
        The span of a fair-share scenario, ``last`` not in it: a date, a date and time, or a time after the
        beginning (``"7d"``); None: all.
    gpus, nodes, gpus_per_node
        Size of the cluster.
    budget
        Whose budgets: those of teams, of users, ...
    weights
        ``"equal"``, ``"used"`` (by GPU time used), or a weight by name at the top of the tree.
    priority, ranks
        From what priorities come, and the priority of each name (larger is more important).
    sizes
        Allocation: GPUs that are no power of two are rounded ``"up"`` (the hours stay), or ``"down"`` (the GPU-hours
        stay).
    step_minutes
        Allocation: length of a step.
    every
        Every so many-th job, the first included.
    before
        Whether what ran or waited at the start is in it.
    minimum_s
        Fair share: declared minimum run time, seconds, or the limit where that is shorter.
    resumable
        Fair share: whether jobs go on from a checkpoint.
    types
        Fair share: a pool for each GPU type.
    name
        Of the scenario; None: that of the file.
    anonymise, key
        Codes in place of names, made with a secret key where one is given.
    """

    kind: Kind = "fairshare"
    day: str | None = None
    first: str | None = None
    last: str | None = None
    gpus: int | None = None
    nodes: int | None = None
    gpus_per_node: int | None = None
    budget: Budget = "auto"
    weights: str | Mapping[str, float] = "equal"
    priority: RankedBy = "none"
    ranks: Mapping[str, float] = field(default_factory=dict)
    sizes: Sizes = "up"
    step_minutes: int = 60
    every: int = 1
    before: bool = True
    minimum_s: int = 3600
    resumable: bool = True
    types: bool = False
    name: str | None = None
    anonymise: bool = False
    key: bytes | None = field(default=None, repr=False)

    def checked(self) -> "Wish":
        """The wish itself.

        Raises
        ------
        InputError
            With every choice that cannot be.
        """
        mistakes = [*self._words(), *self._numbers(), *self._together()]
        if mistakes:
            raise InputError("import", mistakes)
        return self

    def _words(self) -> Iterator[Mistake]:
        for name, words in _WORDS.items():
            value, known = getattr(self, name), get_args(words)
            if value not in known:
                yield Mistake(name, f"must be one of {', '.join(known)}{did_you_mean(value, known)}", value)
        if isinstance(self.weights, str) and self.weights not in ("equal", "used"):
            yield Mistake("weights", "must be equal, used, or a weight by name (physics=60)", self.weights)

    def _numbers(self) -> Iterator[Mistake]:
        for what, least in (("gpus", 1), ("nodes", 1), ("gpus_per_node", 1), ("every", 1), ("minimum_s", 0)):
            value = getattr(self, what)
            if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < least):
                yield Mistake(what, f"must be a whole number of at least {least}", value)
        minutes = self.step_minutes
        if isinstance(minutes, bool) or not isinstance(minutes, int) or minutes < 1 or 1440 % minutes:
            yield Mistake("step_minutes", "must be whole minutes that divide a day", minutes)
        elif 1440 // minutes > 960:
            yield Mistake("step_minutes", "must make at most 960 steps of a day", minutes)
        tables: list[tuple[str, Mapping[str, float]]] = [("ranks", self.ranks)]
        if not isinstance(self.weights, str):
            tables.append(("weights", self.weights))
        for table, values in tables:
            for key, value in values.items():
                if number(value) is None or not 0 <= value <= 1e6 or (table == "ranks" and value == 0):
                    low = "more than 0" if table == "ranks" else "0 or more"
                    yield Mistake(f"{table}.{key}", f"must be {low} and at most 1,000,000", value)
                elif table == "ranks" and abs(value * 1000 - round(value * 1000)) > 1e-6:
                    yield Mistake(f"{table}.{key}", "must have at most three decimals", value)

    def _together(self) -> Iterator[Mistake]:
        if self.kind == "allocation" and (self.first is not None or self.last is not None):
            yield Mistake(
                "from", "is for a fair-share span; an allocation has one day", self.first or self.last
            )
        if self.kind == "fairshare" and self.day is not None and (self.first or self.last):
            yield Mistake("day", "must be left out where from or to is given", self.day)
        by = self.priority in ("qos", "partition", "team", "user")
        if self.ranks and not by:
            yield Mistake("ranks", "must say of what they are: priority qos, partition, team or user")
        if self.key is not None and not self.anonymise:
            yield Mistake("key", "is for anonymise")
        if self.types and self.kind != "fairshare":
            yield Mistake("types", "is for fair share: an allocation has GPUs of one type")
        yield from self._of_other_kinds()
        whole = (self.gpus, self.nodes, self.gpus_per_node)
        if not any(
            isinstance(part, bool) or (part is not None and not isinstance(part, int)) for part in whole
        ):
            yield from self._cluster()

    def _of_other_kinds(self) -> Iterator[Mistake]:
        usual = {choice.name: choice.default for choice in fields(self)}
        told = {mistake.path for mistake in self._words()}
        for kind, (names, rule) in _ONLY.items():
            if self.kind in _ONLY and self.kind != kind:
                given = (name for name in names if getattr(self, name) != usual[name])
                yield from (Mistake(name, rule) for name in given if name not in told)

    def _cluster(self) -> Iterator[Mistake]:
        if self.nodes is not None and self.gpus_per_node is None and self.gpus is None:
            yield Mistake("gpus_per_node", "must be given with nodes")
        elif self.nodes and self.gpus and self.gpus_per_node and self.nodes * self.gpus_per_node != self.gpus:
            rule = f"must be nodes x gpus_per_node, {self.nodes} x {self.gpus_per_node}"
            yield Mistake("gpus", rule, self.gpus)
        elif (
            self.gpus
            and (self.nodes or self.gpus_per_node)
            and self.gpus % (self.gpus_per_node or self.nodes or 1)
        ):
            yield Mistake("gpus", "must be a whole number of nodes", self.gpus)

    def changed(self, **choices: Any) -> "Wish":
        """The wish with other choices."""
        return replace(self, **choices)


def table_of(text: str, what: str) -> dict[str, float]:
    """Numbers by name as they are written on a command line: ``high=5,low=1``, or names from the most important on.

    ``high,normal,low`` is 4, 3, 2: what has no rank has `UNRANKED`, 1.

    Raises
    ------
    InputError
        Where it is neither.
    """
    parts = [part.strip() for part in text.split(",") if part.strip()]
    pairs = [part.rpartition("=") for part in parts]
    mistakes = []
    if not parts:
        mistakes.append(Mistake(what, "must name something, as in high=5,low=1", text))
    elif what == "rank" and not any("=" in part for part in parts):
        pairs = [(part, "=", str(len(parts) + 1 - place)) for place, part in enumerate(parts)]
    mistakes += [
        Mistake(what, "must be name=number, separated by commas", f"{name}{sign}{value}")
        for name, sign, value in pairs
        if not name or number(value) is None
    ]
    names = [name for name, _, _ in pairs]
    mistakes += [Mistake(what, "must name each once", name) for name in set(names) if names.count(name) > 1]
    if mistakes:
        raise InputError("import", mistakes)
    return {name: float(value) for name, _, value in pairs}
