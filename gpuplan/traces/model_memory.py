"""Estimates of memory beside what was measured: architectures, an H100 profile and reported figures of LLM servers.

Reads the files of a folder: ``model_architecture.csv`` (ai-dynamo/aiconfigurator, Apache-2.0),
``vllm_h100_memory_profile.csv`` (llm-d-incubation/llm-d-planner, Apache-2.0), ``reported_memory_measurements.csv``
(single figures from public discussions, each with its source), ``vllm_recipes_vram.csv`` (vllm-project/recipes,
Apache-2.0).
"""

import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from gpuplan.inputs.errors import InputError, Mistake
from gpuplan.packing.architecture import Architecture
from gpuplan.packing.estimates import CONTEXT_GIB, MemoryEstimate, estimate_memory
from gpuplan.packing.model import GIB
from gpuplan.traces.table import read_table

if TYPE_CHECKING:
    import pandas as pd

_SIZES = {
    "layers": "layers",
    "hidden_size": "hidden_size",
    "attention_heads": "attention_heads",
    "kv_heads": "kv_heads",
    "head_dim": "head_dim",
    "kv_lora_rank": "kv_lora_rank",
    "qk_rope_head_dim": "qk_rope_head_dim",
    "window": "sliding_window",
    "intermediate_size": "intermediate_size",
    "vocabulary": "vocab_size",
    "max_context": "max_position_embeddings",
}

#: Context of a process beside PyTorch's own figures, as the profile has it on one GPU: 0.13 GiB in every row.
NON_TORCH_GIB = 0.13

#: Sequences that vLLM samples at once: as the profile's figures imply, and the default of the older versions of the
#: reported ones.
PROFILE_SEQUENCES, REPORTED_SEQUENCES = 1024, 256

#: Models whose output layer is their embedding (their own configuration files).
TIED = frozenset({"Qwen/Qwen3-0.6B"})


@dataclass(frozen=True, slots=True)
class _Served:
    """A measured model: whose sizes it has, and the bits of its weights, of those of attention apart."""

    architecture: str
    bits: float = 16
    attention_bits: float | None = None
    recipe: str = ""


#: What the measured models are. MXFP4 has blocks of 32 numbers of 4 bits with a scale of 8 (OpenAI, "gpt-oss model
#: card", 2025: experts only); Meta's FP8 leaves attention alone (Meta, "The Llama 3 Herd of Models", 2024, 6.2).
_MEASURED = {
    "openai/gpt-oss-20b": _Served("openai/gpt-oss-20b", 4.25, 16),
    "RedHatAI/Llama-3.3-70B-Instruct-FP8-dynamic": _Served("meta-llama/Meta-Llama-3.1-70B", 8),
    "meta-llama/Llama-3.1-8B-Instruct": _Served("meta-llama/Meta-Llama-3.1-8B"),
    "meta-llama/Meta-Llama-3-8B": _Served("meta-llama/Meta-Llama-3.1-8B"),
    "Qwen/Qwen3-0.6B": _Served("Qwen/Qwen3-0.6B"),
    "Qwen/Qwen3-32B": _Served("Qwen/Qwen3-32B"),
    "DeepSeek-R1 (FP8)": _Served("deepseek-ai/DeepSeek-R1", 8, None, "deepseek-ai/DeepSeek-R1"),
    "Qwen3-235B-A22B-FP8": _Served("Qwen/Qwen3-235B-A22B-FP8", 8, None, "Qwen/Qwen3-235B-A22B-FP8"),
    "Meta-Llama-3.1-405B-Instruct-FP8": _Served("meta-llama/Meta-Llama-3.1-405B", 8, 16),
}

_KINDS = {
    "weights": "weights_gib",
    "workspace": "activation_gib",
    "context": "non_torch_gib",
    "room": "kv_cache_gib",
}


def read_architectures(path: str | Path) -> dict[str, Architecture]:
    """Architectures by name; an empty cell is a size that is not known.

    Raises
    ------
    InputError
        If the file cannot be read or lacks a column, and for every size that is no whole number of at least 1. A row
        without its number of layers is left out.
    """
    table = read_table(path, ("model", "architecture", *_SIZES.values(), "experts", "layer_types"))
    mistakes = [
        Mistake(column, "must be a whole number of at least 1, or empty", text, number)
        for column in (*_SIZES.values(), "experts")
        for number, text in enumerate(table[column], start=2)
        if text and not re.fullmatch(r"[1-9][0-9]{0,11}", text)
    ]
    if mistakes:
        raise InputError(Path(path).name, mistakes)
    found = {}
    for row in table.to_dict("records"):
        sizes = {name: int(row[column]) if row[column] else None for name, column in _SIZES.items()}
        if sizes["layers"] is None:
            continue
        name = str(row["model"])
        found[name] = Architecture(
            name,
            **sizes,  # type: ignore[arg-type]  # layers, width and heads are in every other row; checked when used
            experts=int(row["experts"] or 0),
            tied=name in TIED,
            family=str(row["architecture"]),
            mixed=row["layer_types"] == "mixed",
        )
    return found


def compare_with_measured(folder: str | Path) -> "pd.DataFrame":
    """Every measured figure beside its estimate.

    Estimates use sizes, bits and the number of GPUs only; ``room`` is what an estimate leaves for the cache of the
    measured total x utilization. ``tokens`` is of the measured room, so that it tests the bytes per token alone. The
    workspace's two constants were fitted to the H100 rows, so that only the reported rows test it. Engines of 2024
    count more as context (``non_torch_gib``) than the profile does; rows without a model are of `CONTEXT_GIB`.

    Parameters
    ----------
    folder
        Where the four files are.

    Returns
    -------
    pandas.DataFrame
        ``file, model, gpus, quantity`` (``weights``, ``workspace``, ``context``, ``room`` in GiB of each GPU;
        ``tokens``), ``estimated, measured, error_percent`` (of the measured figure), ``note``. A figure without an
        estimate has none and says why.

    Raises
    ------
    InputError
        If a file cannot be used.
    """
    import pandas as pd

    where = Path(folder)
    known, parameters = _known(where)
    rows = []
    for source in ("vllm_h100_memory_profile.csv", "reported_memory_measurements.csv"):
        for row in _rows(where / source):
            rows += _compared(source, row, known, parameters)
    names = ["file", "model", "gpus", "quantity", "estimated", "measured", "error_percent", "note"]
    kinds = dict.fromkeys(("estimated", "measured", "error_percent"), "float64")
    return pd.DataFrame(rows, columns=names).astype(kinds)


def compare_lengths(folder: str | Path) -> "pd.DataFrame":
    """Whether models load with the context of the H100 profile, as it was found and as estimated.

    Returns
    -------
    pandas.DataFrame
        ``model, gpus, max_model_len, status`` (of the file), ``loads`` (measured), ``estimated_loads``,
        ``estimated_longest`` (tokens of the longest context that fits).
    """
    import pandas as pd

    where = Path(folder)
    known, parameters = _known(where)
    rows = []
    for row in _rows(where / "vllm_h100_memory_profile.csv"):
        found = _estimate(row, known, parameters, PROFILE_SEQUENCES)
        assert isinstance(found, MemoryEstimate)  # the profile's models are all known
        length = int(row["max_model_len"])
        fits = found.fits and found.longest_context >= length
        rows.append(
            (
                row["model"],
                found.gpus,
                length,
                row["status"],
                row["status"] == "ok",
                fits,
                found.longest_context,
            )
        )
    names = ["model", "gpus", "max_model_len", "status", "loads", "estimated_loads", "estimated_longest"]
    return pd.DataFrame(rows, columns=names)


def _known(folder: Path) -> tuple[dict[str, Architecture], dict[str, str]]:
    """Architectures, and published numbers of parameters as they are written (``671B``), by model."""
    recipes = read_table(folder / "vllm_recipes_vram.csv", ("model_id", "parameter_count"))
    parameters = dict(zip(recipes["model_id"], recipes["parameter_count"], strict=True))
    return read_architectures(folder / "model_architecture.csv"), parameters


_COMMON = ("model", *_KINDS.values(), "tensor_parallel", "gpu_memory_utilization", "note")
_PROFILE = (*_COMMON, "max_model_len", "status")
_REPORTED = (*_COMMON, "pipeline_parallel", "total_gpu_gib", "kv_cache_tokens", "engine")

#: Total of an H100 as the profile has it, in GiB.
_H100_GIB = 79.18


def _rows(path: Path) -> list[dict[str, str]]:
    columns = _PROFILE if "profile" in path.name else _REPORTED
    return [
        {str(key): str(cell) for key, cell in row.items()}
        for row in read_table(path, columns).to_dict("records")
    ]


def _estimate(
    row: dict[str, str], known: dict[str, Architecture], parameters: dict[str, str], sequences: int
) -> MemoryEstimate | str:
    """The estimate of a measured row, or why there is none."""
    served = _MEASURED.get(row["model"])
    if served is None or served.architecture not in known:
        return "its sizes are not in the table"
    of = known[served.architecture]
    if served.recipe:
        text = parameters.get(served.recipe, "")
        if not re.fullmatch(r"[0-9]+(\.[0-9]+)?B", text):
            return "its parameters are not in the table"
        of = replace(of, parameters=float(text[:-1]) * 1e9)
    stages = int(row.get("pipeline_parallel") or 1)
    made = estimate_memory(
        of,
        float(row.get("total_gpu_gib") or _H100_GIB),
        gpus=int(row["tensor_parallel"] or 1),
        utilization=float(row["gpu_memory_utilization"] or 1),
        weight_bits=served.bits,
        attention_bits=served.attention_bits,
        context_gib=NON_TORCH_GIB,
        sequences=sequences,
    )
    return replace(made, weights=-(-made.weights // stages))


def _compared(
    source: str, row: dict[str, str], known: dict[str, Architecture], parameters: dict[str, str]
) -> list[tuple[object, ...]]:
    """A row of the result for each figure that was measured."""
    profile = "profile" in source
    found = _estimate(row, known, parameters, PROFILE_SEQUENCES if profile else REPORTED_SEQUENCES)
    start = (source, row["model"], int(row["tensor_parallel"] or 1))
    rows: list[tuple[object, ...]] = []
    for quantity, column in _KINDS.items():
        if not row[column]:
            continue
        measured = float(row[column])
        note = row["note"]
        if row["model"].startswith("("):  # no model: the context of a process alone
            rows.append((*start, quantity, CONTEXT_GIB, measured, _percent(CONTEXT_GIB, measured), note))
            continue
        if isinstance(found, str) or (quantity == "room" and not profile and not row["total_gpu_gib"]):
            why = found if isinstance(found, str) else "the total is not stated"
            rows.append((*start, quantity, None, measured, None, why))
            continue
        estimated = getattr(found, quantity) / GIB
        rows.append((*start, quantity, estimated, measured, _percent(estimated, measured), note))
    tokens = row.get("kv_cache_tokens")
    if tokens and row["kv_cache_gib"]:
        measured = float(tokens)
        if isinstance(found, str):
            rows.append((*start, "tokens", None, measured, None, found))
        else:
            fit = int(float(row["kv_cache_gib"]) * GIB) // found.kv_bytes_per_token
            rows.append((*start, "tokens", fit, measured, _percent(fit, measured), "of the measured room"))
    return rows


def _percent(estimated: float, measured: float) -> float | None:
    return 100 * (estimated - measured) / measured if measured else None
