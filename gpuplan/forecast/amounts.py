"""Counts as people write them (``7B``), and the shape of a model of so many parameters."""

import re
from dataclasses import dataclass
from typing import Any

from gpuplan.inputs.fields import FieldType, broken, number

#: Width over number of layers: 128 for GPT-3 (12,288 / 96) and LLaMA-7B (4,096 / 32); loss hardly depends on it
#: (Kaplan and others, "Scaling Laws for Neural Language Models", 2020, arXiv 2001.08361, figure 5).
ASPECT = 128

_SUFFIXES = {"": 1.0, "K": 1e3, "M": 1e6, "B": 1e9, "T": 1e12}
_AMOUNT = re.compile(r"(-?[0-9]+(?:\.[0-9]+)?|[0-9]*\.?[0-9]+[eE]\+?[0-9]+) ?([KMBTkmbt]?)", re.ASCII)


@dataclass(frozen=True, slots=True)
class Amount(FieldType):
    """A count from `least` to `most`: a number, or text such as ``7B``, ``1.4T``, ``52K``."""

    least: float
    most: float

    def read(self, value: Any) -> float:
        """The count as a float."""
        found = number(value)
        if found is None and isinstance(value, str) and len(value) <= 40:
            parts = _AMOUNT.fullmatch(value.strip())
            found = float(parts[1]) * _SUFFIXES[parts[2].upper()] if parts else None
        if found is None:
            raise broken("must be a number, or one with K, M, B or T (7B, 1.4T)")
        if not self.least <= found <= self.most:
            raise broken(f"must be from {self.least:,.0f} to {self.most:,.0f}")
        return float(found)

    def json(self) -> dict[str, Any]:
        """JSON Schema of what may be written."""
        return {"anyOf": [{"type": "number"}, {"type": "string"}]}


@dataclass(frozen=True, slots=True)
class ModelShape:
    """Size of a model: all and active parameters, layers, width, entries of the vocabulary."""

    parameters: float
    active: float
    layers: int
    hidden_size: int
    vocabulary: int


def model_shape(
    parameters: float,
    vocabulary: int,
    active: float | None = None,
    layers: int | None = None,
    hidden_size: int | None = None,
) -> ModelShape:
    """The shape of a model; what is not given follows from N = 12 l h^2 (Kaplan 2020) with h = 128 l.

    N are the active parameters, the width is a multiple of 128.
    """
    dense = parameters if active is None else active
    if layers is None and hidden_size is None:
        layers = max(1, round((dense / (12 * ASPECT**2)) ** (1 / 3)))
    if hidden_size is None:
        assert layers is not None
        hidden_size = max(128, 128 * round((dense / (12 * layers)) ** 0.5 / 128))
    if layers is None:
        layers = max(1, round(dense / (12 * hidden_size**2)))
    return ModelShape(parameters, dense, layers, hidden_size, vocabulary)
