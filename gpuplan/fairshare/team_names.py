"""Which team a written name means: the path of a leaf of the budget tree, or its own name where that is unique."""

from dataclasses import dataclass, field

from gpuplan.fairshare.tree import Tree
from gpuplan.inputs.errors import did_you_mean, shorten

_LISTED = 6


@dataclass(frozen=True, slots=True)
class TeamNames:
    """The names that jobs may use for the teams of a tree."""

    tree: Tree
    accepted: dict[str, str] = field(init=False)
    by_leaf: dict[str, list[str]] = field(init=False)

    def __post_init__(self) -> None:
        by_leaf: dict[str, list[str]] = {}
        for path in self.tree.teams:
            by_leaf.setdefault(path.rpartition("/")[2], []).append(path)
        accepted = {leaf: paths[0] for leaf, paths in by_leaf.items() if len(paths) == 1}
        for path in self.tree.path:  # a budget at the top goes before a leaf of its name further down
            accepted.pop(path, None)
        accepted.update((path, path) for path in self.tree.teams)
        object.__setattr__(self, "by_leaf", by_leaf)
        object.__setattr__(self, "accepted", accepted)

    @property
    def only(self) -> str | None:
        """The one team of the tree; None where there are several."""
        return self.tree.teams[0] if len(self.tree.leaves) == 1 else None

    def rule(self, name: str, suggest: bool = True) -> str:
        """The rule that a name breaks which means no team ("" where it means one); a suggestion takes time."""
        if name in self.accepted:
            return ""
        if not name.strip():
            return "must be given: the team whose budget the job is charged to"
        if name in self.tree.path:
            inner = self.tree.path.index(name)
            below = [
                shorten(path)
                for path, parent in zip(self.tree.path, self.tree.parent.tolist(), strict=True)
                if parent == inner
            ]
            return f"must be a team, but this budget is divided into {_listed(below)}"
        if name in self.by_leaf:
            return f"must be a path, for there are {_listed([shorten(p) for p in self.by_leaf[name]])}"
        near = did_you_mean(name, self.accepted) if suggest else ""
        return f"must be a team of the budget tree{near}"


def _listed(names: list[str]) -> str:
    more = f" and {len(names) - _LISTED:,} more" if len(names) > _LISTED else ""
    return ", ".join(names[:_LISTED]) + more
