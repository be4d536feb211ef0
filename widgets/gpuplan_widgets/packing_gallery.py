"""The shipped packing scenarios as a gallery: what each is called, what stands beside what, what to try."""

from dataclasses import dataclass, replace
from functools import cache

from gpuplan.loading import load_packing, shipped
from gpuplan.packing.model import PackingScenario, Pieces
from gpuplan.packing.policies import KINDS, name_of, pieces_named


@dataclass(frozen=True, slots=True)
class Situation:
    """A situation that users of model servers report.

    Attributes
    ----------
    title
        What it is called in the list.
    policies
        Policies on the left and on the right; pieces that they do not name are the scenario's own.
    hint
        Which controls make it better or worse.
    """

    title: str
    policies: tuple[str, str]
    hint: str


#: The situations by the name of their scenario, in the order of the list.
SITUATIONS = {
    "four-gpus": Situation(
        "A chat service on four GPUs",
        ("round-robin", "best-fit"),
        "Drag the margin to 0 % and memory runs out; put a policy that looks at the GPUs on the left too.",
    ),
    "one-gpu-idles": Situation(
        "Two models on GPU 0, GPU 1 idles",
        ("best-fit", "worst-fit"),
        "Set contention to none: then best fit costs nothing, whatever shares the GPU.",
    ),
    "embedder-evicts-chat": Situation(
        "A small embedder evicts the chat model",
        ("round-robin", "best-fit"),
        "Drag the margin from 20 to 10 %: both models fit beside each other, and the evictions end.",
    ),
    "evicted-but-wanted": Situation(
        "The model to evict keeps getting requests",
        ("best-fit+backfill", "best-fit+fifo"),
        "Compare the order of the queue on the two sides: with backfill the code task waits to the end.",
    ),
    "context-too-long": Situation(
        "A context too long for all memory",
        ("round-robin", "best-fit"),
        "Ask below why task 1 was rejected, and what became of task 2.",
    ),
    "spread-too-thin": Situation(
        "5 and 3 GiB spread, 8 GiB fit nowhere",
        ("worst-fit", "best-fit"),
        "Put fgd on the left: it looks at what still fits, like best fit here.",
    ),
    "no-two-gpus-free": Situation(
        "A large model, and no two GPUs are free",
        ("worst-fit", "best-fit"),
        "Spread it over 4 GPUs (More controls): then worst fit places it at once, and best fit lets it wait.",
    ),
    "asleep-but-heavy": Situation(
        "A sleeping engine keeps 16 GB",
        ("round-robin", "best-fit"),
        "Let admission look at free memory instead of what is declared: it fails once, then it waits.",
    ),
    "behind-a-large-load": Situation(
        "A short request behind a large load",
        ("round-robin", "best-fit"),
        "Give each GPU two tasks at once: the short one waits for nothing.",
    ),
}


@cache
def _shipped() -> tuple[str, ...]:
    """Names of the shipped packing scenarios; their files are read once, which takes a while."""
    return tuple(one.name for one in shipped() if one.kind == "packing")


def offered() -> list[tuple[str, str]]:
    """Titles and names of the shipped packing scenarios, those of the gallery first."""
    known = [name for name in SITUATIONS if name in _shipped()]
    return [
        *((SITUATIONS[name].title, name) for name in known),
        *((name, name) for name in _shipped() if name not in known),
    ]


def name_of_shipped(scenario: PackingScenario) -> str:
    """Name of the shipped scenario that this one is; empty where it is none."""
    same = scenario.name in _shipped() and load_packing(scenario.name).fingerprint == scenario.fingerprint
    return scenario.name if same else ""


def policies_of(scenario: PackingScenario, name: str) -> tuple[str, str]:
    """The policies to start with: those of the situation, or blind round-robin against the scenario's own."""
    known = SITUATIONS.get(name)
    if known:
        return known.policies
    own = name_of(scenario.policy)
    blind = KINDS["placement"][0].name
    return (blind, own) if scenario.policy.placement != blind else (own, "best-fit")


def short_names(left: Pieces, right: Pieces, own: Pieces) -> tuple[str, str]:
    """Two policies by their placements and the pieces in which one is not the scenario's own.

    ``("best-fit+backfill", "best-fit+fifo")``: the queue order is named on both sides where it differs.
    """
    kinds = [
        kind
        for kind in KINDS
        if kind == "placement" or any(getattr(side, kind) != getattr(own, kind) for side in (left, right))
    ]
    first, second = ("+".join(getattr(side, kind) for kind in kinds) for side in (left, right))
    return first, second


def chosen(policy: str, own: Pieces) -> Pieces:
    """The pieces of a policy that is named, where keep-alive may still lack its time."""
    words = [word.strip() for word in policy.split("+")]
    keeps = "keep-alive" in words and own.keep_alive_us is None
    rest = "+".join(word for word in words if word != "keep-alive") if keeps else policy
    pieces = pieces_named(rest, own) if rest else own
    return replace(pieces, eviction="keep-alive") if keeps else pieces
