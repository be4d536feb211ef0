"""Exercises of "What fits where": reservations, margins, and models that throw each other out."""

from functools import cache
from typing import TYPE_CHECKING, Any

from gpuplan.lessons.exercise import Build, Exercise, Guess, Knob, NumberAsked
from gpuplan.loading import load_packing, pack

if TYPE_CHECKING:
    from gpuplan.packing.run import PackRun

_GIB = 2.0**30


@cache
def _run(name: str, policy: str | None = None) -> "PackRun":
    return pack(name) if policy is None else pack(name, policy)


def _reserved() -> float:
    """GiB that the scheduler reserves for `chat-8b` of `four-gpus`."""
    node = load_packing("four-gpus")
    return node.needed(node.models[0]) / _GIB


def _copies() -> float:
    """Copies of `chat-8b` that fit on one of the GPUs."""
    node = load_packing("four-gpus")
    return float(node.gpus.memory_bytes // node.needed(node.models[0]))


def _margin(declared_gb: float) -> float:
    from gpuplan.packing.margin_studies import margin_needed

    return 100 * margin_needed(declared_gb, 0.5)


def _quiet(scenario: Any) -> list[str]:
    run = pack(scenario)
    unmet = []
    if run.figures["evictions"]:
        unmet.append(f"Models are evicted {run.figures['evictions']} times.")
    if run.figures["out_of_memory"]:
        unmet.append(f"Memory runs out {run.figures['out_of_memory']} times.")
    done, arrived = run.figures["tasks_done"], run.figures["tasks_arrived"]
    if done != arrived:
        unmet.append(f"Only {done} of {arrived} requests are served.")
    return unmet


EXERCISES: tuple[Exercise, ...] = (
    Guess(
        "5.a",
        "Two thousand requests for seven models on four GPUs, sent round blindly. How many times are weights "
        "loaded?",
        ("load of weights", "round-robin"),
        (),
        "loads",
        lambda: float(_run("four-gpus", "round-robin").figures["loads"] or 0),
        lambda n: (
            f"Who looks where a model is already needs {_run('four-gpus', 'predicted-fit').figures['loads']} "
            "loads for the same requests."
        ),
    ),
    Guess(
        "5.b",
        "A model declares 3 GB and takes 15 % more, and 0.5 GB of driver context is not counted. What margin "
        "does it need?",
        ("margin", "context"),
        (),
        "%",
        lambda: _margin(3),
        lambda n: "A margin is a share, and context is an amount: small models need the largest margin.",
    ),
    NumberAsked(
        "5.1",
        "`chat-8b` declares 16 GiB; the margin is 20 %, the context 0.5 GiB. How many GiB does the scheduler "
        "reserve for it?",
        ("reserved", "margin", "context"),
        ("Declared, plus a fifth of it, plus the context.", "16 × 1.2, and then the context on top."),
        "GiB",
        _reserved,
        lambda n: (
            f"16 × 1.2 + 0.5 = {n:.1f} GiB. In truth it takes 18 GiB and its context: the rest is kept for "
            "nothing."
        ),
        lambda: (
            (16 * 1.2, "The context is missing."),
            ((16 + 0.5) * 1.2, "The margin is on what is declared, not on the context."),
            (18.5, "This is what it takes in truth. The scheduler knows only what is declared."),
        ),
        0.05,
    ),
    NumberAsked(
        "5.2",
        "How many copies of `chat-8b` are admitted on one GPU of 79.3 GiB?",
        ("reserved", "admission"),
        ("Each copy reserves what you found in 5.1; only whole ones count.", "79.3 / 19.7, rounded down."),
        "models",
        _copies,
        lambda n: (
            f"{n:g}: {n:g} × {_reserved():.1f} = {n * _reserved():.1f} GiB. The rest of the GPU is too small "
            "for another."
        ),
        lambda: ((_copies() + 1, "Rounded up, the last one would not fit."),),
        0.01,
        1.0,
    ),
    NumberAsked(
        "5.3",
        "A model declares 5 GB and takes 15 % more; 0.5 GB of context is not counted. What margin does it "
        "need, in per cent?",
        ("margin", "overshoot", "context"),
        (
            "What does it take beyond what it declares, in GB? The margin is that, as a share of what is "
            "declared.",
            "0.15 × 5 + 0.5 = 1.25 GB beyond 5 GB.",
        ),
        "%",
        lambda: _margin(5),
        lambda n: f"(0.15 × 5 + 0.5) / 5 = {n:.0f} %: the usual 20 % are not enough.",
        lambda: (
            (15.0, "This is the overshoot alone. The context comes on top."),
            (1.25, "This is the amount in GB. What share of 5 GB is it?"),
            (100 * 0.5 / 5, "This is the context alone. The overshoot comes on top."),
        ),
        0.3,
    ),
    Build(
        "5.4",
        "Build it yourself: in `embedder-evicts-chat` two models throw each other out of 24 GiB all the time. "
        "Choose the "
        "margin with which nobody is evicted, memory never runs out, and all requests are served.",
        ("margin", "eviction", "out of memory"),
        (
            "Both must be admitted at once: (16 + 3.5) × (1 + margin) + 2 × 0.5 GiB must fit into 24.",
            "23 / 19.5 is 1.18: a margin below 18 %. Too low a margin is no danger here; why?",
        ),
        (Knob("margin", "admission.margin", "%", scale=0.01),),
        lambda: load_packing("embedder-evicts-chat"),
        _quiet,
        lambda built: (
            f"With a margin of {built.admission.margin / 1e4:g} % both are admitted, and both stay. The old "
            "margin was right for each "
            "model and wrong for the pair."
        ),
    ),
)
