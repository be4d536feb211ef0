"""The study of placement over several draws of arrivals: allocated shares with intervals beside the published ones.

The published order (`fgd`, `best-fit`, `dot-product`, `random`) is that of pods that may run on every type. Where pods
name types (``gpuspec33``, a third of those with GPUs), packers fill the rare types with pods that could run elsewhere:
when as many GPUs have been asked for as there are, a random choice has given away more than best fit and dot product,
which overtake it only later. So it is here and in the authors' results (about 88, 81, 80 and 84 % at that moment).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from gpuplan.inputs.errors import InputError, Mistake
from gpuplan.intervals import interval
from gpuplan.packing.fragmentation import POLICIES, PUBLISHED, Placement, Scores, place
from gpuplan.packing.pods import Nodes, Pods

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class FragmentationStudy:
    """Placements of the same arrivals by several policies, for several seeds.

    Attributes
    ----------
    placements
        By policy, one per seed.
    seeds
    ratio
        GPUs asked for at the end, of those there are.
    notes
        Sentences about what was placed where.
    """

    placements: dict[str, tuple[Placement, ...]]
    seeds: tuple[int, ...]
    ratio: float
    notes: tuple[str, ...] = ()

    @cached_property
    def shares(self) -> dict[str, npt.NDArray[np.float64]]:
        """Allocated share in per cent when pods have asked for 0, 1, ... per cent: float64[seeds, per cents]."""
        marks = range(int(100 * self.ratio) + 1)
        return {
            policy: np.array([[run.allocated(mark) if mark else 0.0 for mark in marks] for run in runs])
            for policy, runs in self.placements.items()
        }

    @property
    def order(self) -> list[str]:
        """Policies by their mean allocated share when pods have asked for all GPUs, the largest first."""
        means = {policy: float(found[:, self._full].mean()) for policy, found in self.shares.items()}
        return sorted(means, key=lambda policy: -means[policy])

    def table(self) -> "pd.DataFrame":
        """A row per policy, at 100 % asked for (or the end, where that is earlier).

        Returns
        -------
        pandas.DataFrame
            ``policy``; ``allocated_percent`` (mean of the seeds), ``low``, ``high`` (95 % confidence of the mean,
            Student's t; missing for one seed), ``seeds``; ``published_percent`` (`PUBLISHED`), ``difference`` (points);
            ``fragmented_percent`` (mean); ``placed``, ``not_placed`` (pods, means).
        """
        import pandas as pd

        rows = []
        for policy, runs in self.placements.items():
            found = self.shares[policy][:, self._full]
            mean, low, high = interval(found)
            ends = [run.at(100) + 1 for run in runs]
            placed = [int((run.node[:end] >= 0).sum()) for run, end in zip(runs, ends, strict=True)]
            rows.append(
                {
                    "policy": policy,
                    "allocated_percent": mean,
                    "low": low,
                    "high": high,
                    "seeds": len(runs),
                    "published_percent": PUBLISHED[policy],
                    "difference": mean - PUBLISHED[policy],
                    "fragmented_percent": float(np.mean([run.fragmented(100) for run in runs])),
                    "placed": float(np.mean(placed)),
                    "not_placed": float(np.mean(ends)) - float(np.mean(placed)),
                }
            )
        return pd.DataFrame(rows)

    def curves(self) -> "pd.DataFrame":
        """Allocated over arrived share: ``policy, arrived_percent, allocated_percent, low, high, seeds``."""
        import pandas as pd

        rows = [
            (policy, mark, *interval(found[:, mark]), len(found))
            for policy, found in self.shares.items()
            for mark in range(found.shape[1])
        ]
        names = ["policy", "arrived_percent", "allocated_percent", "low", "high", "seeds"]
        return pd.DataFrame(rows, columns=names)

    def check(self) -> list[str]:
        """Rules that any of the placements breaks, a sentence each."""
        return [
            f"{policy}, seed {seed}: {sentence}"
            for policy, runs in self.placements.items()
            for seed, run in zip(self.seeds, runs, strict=True)
            for sentence in run.check()
        ]

    @property
    def _full(self) -> int:
        return min(100, int(100 * self.ratio))


def study(
    nodes: Nodes,
    pods: Pods,
    policies: Sequence[str] = tuple(POLICIES),
    *,
    seeds: int | Sequence[int] = 5,
    ratio: float = 1.0,
    scores: Scores = "points",
) -> FragmentationStudy:
    """Place the same arrivals by several policies, for several seeds.

    Parameters
    ----------
    nodes, pods, ratio, scores
        As in `gpuplan.packing.fragmentation.place`.
    policies
        Names.
    seeds
        How many (0, 1, ...), or which; each gives all policies the same arrivals.

    Raises
    ------
    InputError
        As `place`, and without a seed or a policy.
    """
    chosen = tuple(range(seeds)) if isinstance(seeds, int) else tuple(seeds)
    empty = [name for name, given in (("seeds", chosen), ("policies", policies)) if not given]
    if empty:
        raise InputError("study", [Mistake(name, "must hold at least one") for name in empty])
    placements = {
        policy: tuple(place(nodes, pods, policy, ratio=ratio, seed=seed, scores=scores) for seed in chosen)
        for policy in dict.fromkeys(policies)
    }
    return FragmentationStudy(placements, chosen, ratio, _notes(nodes, pods, scores))


def _notes(nodes: Nodes, pods: Pods, scores: Scores) -> tuple[str, ...]:
    never = pods.impossible(nodes)
    bound = int(sum(bool(types) for types in pods.types.tolist()))
    how = (
        "Scores are whole points of 100, ties are drawn, as a Kubernetes scheduler has it."
        if scores == "points"
        else "Scores are exact; among equals the lowest node is taken."
    )
    return (
        f"{len(nodes):,} nodes with {nodes.gpu_milli // 1000:,} GPUs; pods are drawn with replacement from "
        f"{len(pods):,}, of which {f'{bound:,} name' if bound else 'none names'} types of GPUs.",
        "Pods arrive one after another and never end; one without room at its arrival is not tried again.",
        how,
        *([f"{len(never):,} of the pods fit no node at all, even an empty one."] if never else []),
    )
