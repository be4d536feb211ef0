"""Captions of the charts of claims: of what, on which assumptions, and what a claim needs in order to hold."""

from gpuplan.packing.margin_studies import (
    ADVISED_MARGIN,
    CAPACITY_GB,
    CONTEXT_GB,
    OVERSHOOT,
    MarginStudy,
    StairStudy,
    bands,
)
from gpuplan.packing.model import ContentionModel
from gpuplan.packing.studies import PACKING, PUBLISHED_SAVING, MixStudy, ThresholdStudy, WaitStudy

_INVENTED = "Invented workload, fixed beforehand."
_ONE_AT_A_TIME = f"Contention: none, as a GPU takes one task at a time. {_INVENTED}"


def of_waits(found: WaitStudy, nothing: list[str]) -> list[str]:
    """Under the map of waits; `nothing`: titles of the maps that would show 0 everywhere."""
    most = found.saved("round-robin-skip")["saved_percent"].max()
    return [
        f"Per cent of the mean wait that {PACKING} saves; line: the published {PUBLISHED_SAVING:g} %. "
        f"Mean of {found.table['seed'].nunique()} seeds.",
        _ONE_AT_A_TIME,
        f"What {PUBLISHED_SAVING:g} % needs: a blind round-robin, and a node that is about as busy as it can be for "
        "the length of the burst. With less to do more is saved, far above it nothing. Against who skips full GPUs "
        f"placement saves {most:.0f} % at most.",
        *(f"Not drawn, as it is 0 everywhere: {title}." for title in nothing),
    ]


def of_margins(found: MarginStudy) -> list[str]:
    """Under the margin needed."""
    return [
        "Lines: max((overshoot x declared + uncounted context) / declared), overshoot "
        f"{100 * OVERSHOOT:g} %. Large dots: least margin tried (steps of 2.5 %) without an out-of-memory event on a "
        "GPU that reservations fill to the byte; small diamonds: on 80 GB, where what is left over often hides a "
        "margin that is too small.",
        f"{len(found.wrong())} of {len(found.table):,} simulated runs contradict the formula.",
        f"What {100 * ADVISED_MARGIN:g} % needs: context counted, or models of 10 GB and more where 0.5 GB of it is "
        "not.",
    ]


def of_stairs(found: StairStudy, contention: ContentionModel) -> list[str]:
    """Under the staircase."""
    spans = ", ".join(
        f"{row.from_gb:g}-{row.to_gb:g} GB (+{row.gain_percent:.0f} %)" for row in bands().itertuples()
    )
    return [
        f"One GPU of {CAPACITY_GB:g} GB, {CONTEXT_GB:g} GB of context counted, {100 * OVERSHOOT:g} % overshoot, far "
        f"more tasks than it can serve, weights reloaded; contention: {contention}. Bars: 95 % of "
        f"{found.table['seed'].nunique()} seeds, cut at the frame. {_INVENTED}",
        f"What +30 % needs: a size at which the staircase floor({CAPACITY_GB:g} / (declared (1 + margin) + "
        f"{CONTEXT_GB:g})) wins a model that also fits as it is: {spans}; and tasks that do not slow each other down.",
    ]


def of_thresholds(found: ThresholdStudy) -> list[str]:
    """Under the threshold of preemption."""
    return [
        "Only victims with at least the threshold of predicted time left are preempted. Dotted: cost of a save (and of "
        "a restore). Diamonds: no preemption. Load 0.7, one task in five urgent. Mean of "
        f"{found.table['seed'].nunique()} seeds, which are the same for all; bars: 95 %.",
        _ONE_AT_A_TIME,
        "What a threshold of 1 s needs: a save that costs 1 s, and one GPU. Waiting for the victim is shorter than "
        "saving it as long as it has less left than a save takes; with several GPUs another may become free even "
        "earlier, so that the best threshold is higher.",
    ]


def of_mixes(found: MixStudy) -> list[str]:
    """Under the mixes of sizes."""
    load = found.table["load"].max()
    saved = found.saved("best-fit+backfill", "best-fit").set_index(["mix", "load"])["saved_percent"]
    return [
        f"Mean wait; bars: 95 % of {found.table['seed'].nunique()} seeds, which are the same for all policies. Four "
        f"GPUs of 79.3 GiB, four tasks at once each; contention: slowdown 0.15 (n - 1). {_INVENTED}",
        "What 'mixes need other strategies' needs: a strict queue, where a large model at the head blocks the small "
        "ones behind it. No placement cures that; backfill does: of the wait of best fit at load "
        f"{load:g} it saves {saved['uniform', load]:.0f} % on one size, {saved['mixed', load]:.0f} % "
        "on the mix.",
    ]
