"""The clients of a real LLM service as tenants: tasks drawn from their published rates.

Reads ``clients_<model>.csv``: ``client``, ``t_s`` (seconds after a midnight, in tens of minutes), ``rate_rps``
(requests per second), ``cv`` (coefficient of variation of the gaps); and ``client_mean_tokens_6h.csv``: means by six
hours. Source of the data: `alibaba/ServeGen`, Apache-2.0 ("ServeGen", arXiv 2505.09999). The files hold rates, no
requests: the requests are drawn here.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from gpuplan.inputs.account import Account
from gpuplan.inputs.errors import InputError, Mistake
from gpuplan.packing.limits import MOST_TOKENS
from gpuplan.packing.model import SECOND, Draw, Int64
from gpuplan.packing.tasks import tasks
from gpuplan.packing.workloads import drawn, stream
from gpuplan.traces.llm_tasks import ServiceRule, TaskTrace
from gpuplan.traces.servegen import ATTRIBUTION, BIN_S
from gpuplan.traces.table import read_table

if TYPE_CHECKING:
    import pandas as pd

Floats = npt.NDArray[np.float64]

_WINDOW_S = 21_600

#: Most requests that are drawn.
MOST_REQUESTS = 5_000_000


@dataclass(frozen=True, slots=True)
class _Client:
    """One client: edges of its bins, expected arrivals before each edge, coefficient of variation."""

    number: str
    edges: Floats
    before: Floats
    cv: float


def client_tasks(
    path: str | Path,
    tokens_path: str | Path,
    rule: ServiceRule,
    model: str,
    *,
    served_as: str | None = None,
    start_s: int = 72_000,
    hours: float = 1.0,
    scale: float = 1.0,
    token_cv: float = 1.0,
    seed: int = 1,
) -> TaskTrace:
    """Draw the requests of all clients of a model over some hours; a client is a tenant.

    Each client is a renewal process in the time of its own rate: gaps are Gamma-distributed with its coefficient of
    variation (the mean of its bins, weighted by their rates), stationary at the start, so that as many requests are
    expected as the rates say. Tokens are Gamma-distributed around the client's mean of the six hours in which a request
    comes (where that is unknown: around the mean of all known clients, weighted by their windows).

    Parameters
    ----------
    path
        ``clients_<model>.csv`` (or ``.csv.gz``).
    tokens_path
        ``client_mean_tokens_6h.csv`` (or ``.csv.gz``).
    rule
        How long a request takes; the trace does not say.
    model
        Name of the model in the files.
    served_as
        Name of the model that the tasks ask for; None: as in the files.
    start_s, hours
        The part of the file: seconds after its first midnight (the authors treat 72,000 as 20:00), a multiple of 600.
    scale
        Rates are multiplied by it.
    token_cv
        Coefficient of variation of the tokens of a client.
    seed
        Each client has a stream of its own.

    Raises
    ------
    InputError
        If the files cannot be used, or an argument is out of range.
    """
    source = Path(path).name
    _require(source, start_s, hours, scale, token_cv)
    table = read_table(path, ("client", "t_s", "rate_rps", "cv"))
    numbers = _numbers(table)
    in_window = (numbers["t_s"] >= start_s) & (numbers["t_s"] < start_s + hours * 3600)
    known = (
        np.isfinite(numbers["rate_rps"])
        & (numbers["rate_rps"] > 0)
        & np.isfinite(numbers["cv"])
        & (numbers["cv"] >= 0)
    )
    used = in_window & known
    expected = float(numbers["rate_rps"][used].sum()) * BIN_S * scale
    if expected > MOST_REQUESTS:
        rule_text = f"must be small enough for {MOST_REQUESTS:,} requests, but {expected:,.0f} are expected"
        raise InputError(source, [Mistake("scale", rule_text, scale)])
    clients = _clients(
        table["client"].to_numpy(object)[used], {k: v[used] for k, v in numbers.items()}, scale
    )
    parts = [
        (client, _arrivals(client, start_s, hours, stream(seed, f"arrivals of {client.number}")))
        for client in clients
    ]
    means, filled = _means(tokens_path, model)
    at = np.concatenate([np.zeros(0), *(when for _, when in parts)])
    tenant = np.repeat(
        np.array([client.number for client, _ in parts], object), [len(when) for _, when in parts]
    )
    tokens, unknown = _tokens(parts, means, filled, token_cv, seed)
    service = rule.service_us(*tokens)
    made = tasks(
        np.rint((at - start_s) * SECOND).astype(np.int64), tenant=[f"client-{name}" for name in tenant],
        service_us=service, tokens_in=tokens[0], tokens_out=tokens[1],
    )  # fmt: skip
    reasons = {
        f"not in the {hours:g} h from {start_s} s on": int((~in_window).sum()),
        "no rate above 0, or no coefficient of variation: unknown": int((in_window & ~known).sum()),
    }
    account = Account(
        source,
        "client bins",
        len(table),
        int(used.sum()),
        tuple((why, count) for why, count in reasons.items() if count),
        (("requests whose client's tokens are unknown: the mean of the others", unknown),) if unknown else (),
        (
            ("clients", float(len(clients)), "tenants"),
            ("requests expected by the rates", expected, "requests"),
            ("requests drawn", float(len(made)), "requests"),
            ("sum of service times", float(service.sum()) / SECOND, "s"),
        ),
        (
            str(rule),
            f"Requests are drawn from rates of {BIN_S} s times {scale:g} (seed {seed}), the variation of gaps as "
            "published; the levels may have been scaled by the service's owners.",
            f"Tokens: Gamma around the client's mean of six hours with a coefficient of variation of {token_cv:g}, "
            "an assumption.",
            ATTRIBUTION,
        ),
        "tasks",
    )
    return TaskTrace(made, (served_as or model,), account)


def _require(source: str, start_s: int, hours: float, scale: float, token_cv: float) -> None:
    wrong = []
    if start_s < 0 or start_s % BIN_S:
        wrong.append(Mistake("start_s", f"must be a multiple of {BIN_S}, at least 0", start_s))
    if not 0 < hours <= 240 or hours * 3600 % BIN_S:
        wrong.append(Mistake("hours", "must be above 0, at most 240, in whole tens of minutes", hours))
    if not 0 < scale < 1e6:
        wrong.append(Mistake("scale", "must be a number above 0 and below 1e6", scale))
    if not 0 <= token_cv <= 20:
        wrong.append(Mistake("token_cv", "must be from 0 to 20", token_cv))
    if wrong:
        raise InputError(source, wrong)


def _numbers(table: "pd.DataFrame") -> dict[str, Floats]:
    import pandas as pd

    return {
        name: pd.to_numeric(table[name], errors="coerce").to_numpy(np.float64)
        for name in ("t_s", "rate_rps", "cv")
    }


def _clients(client: npt.NDArray[np.object_], numbers: dict[str, Floats], scale: float) -> list[_Client]:
    """The clients in the order of their numbers, with what they expect."""
    found = []
    for name in sorted(set(client.tolist()), key=lambda text: (len(text), text)):
        mine = client == name
        order = np.argsort(numbers["t_s"][mine], kind="stable")
        at, rate, cv = (numbers[key][mine][order] for key in ("t_s", "rate_rps", "cv"))
        edges = np.ravel(np.column_stack([at, at + BIN_S]))  # between two bins nothing is expected
        steps = np.ravel(np.column_stack([np.zeros(len(at)), rate * BIN_S * scale]))
        found.append(_Client(str(name), edges, np.cumsum(steps), float(np.average(cv, weights=rate))))
    return found


def _arrivals(client: _Client, start_s: int, hours: float, rng: np.random.Generator) -> Floats:
    """Times of a stationary renewal process in the time of the client's rate."""
    total = float(client.before[-1])
    shape = 1 / max(client.cv, 1e-3) ** 2
    # the time to the first arrival is a uniform part of a gap that is seen by chance, hence longer (Gamma of shape + 1)
    at = [rng.random(1) * rng.standard_gamma(shape + 1, 1) / shape]
    while at[-1][-1] < total:
        gaps = rng.standard_gamma(shape, int(total - at[-1][-1]) + 16) / shape
        at.append(at[-1][-1] + np.cumsum(gaps))
    passed = np.concatenate(at)
    return np.interp(passed[passed < total], client.before, client.edges)


def _means(
    path: str | Path, model: str
) -> tuple[dict[tuple[str, int], tuple[float, float]], tuple[float, float]]:
    """Mean tokens in and out by client and window, and the means over all windows of the model."""
    import pandas as pd

    names = (
        "model",
        "client",
        "window_start_s",
        "mean_input_tokens",
        "mean_output_tokens",
        "mean_text_tokens",
    )
    table = read_table(path, (*names, "mean_image_tokens"))
    table = table[table["model"] == model]
    values = {
        name: pd.to_numeric(table[name], errors="coerce").to_numpy(np.float64) for name in table.columns[2:]
    }
    told = np.isfinite(values["mean_input_tokens"])
    images = np.nan_to_num(values["mean_image_tokens"])
    came = np.where(told, values["mean_input_tokens"], values["mean_text_tokens"] + images)
    made = values["mean_output_tokens"]
    known = np.isfinite(came) & np.isfinite(made)
    if not known.any():
        raise InputError(Path(path).name, [Mistake("model", "must be a model with known tokens", model)])
    found = {
        (str(client), int(window)): (float(into), float(out))
        for client, window, into, out in zip(
            table["client"][known], values["window_start_s"][known], came[known], made[known], strict=True
        )
    }
    return found, (float(came[known].mean()), float(made[known].mean()))


def _tokens(
    parts: list[tuple[_Client, Floats]],
    means: dict[tuple[str, int], tuple[float, float]],
    filled: tuple[float, float],
    cv: float,
    seed: int,
) -> tuple[tuple[Int64, Int64], int]:
    """Tokens in and out of every request, and of how many the client's are unknown."""
    columns: tuple[list[Int64], list[Int64]] = ([], [])
    unknown = 0
    for client, at in parts:
        windows = (at // _WINDOW_S * _WINDOW_S).astype(np.int64)
        told = {int(window): means.get((client.number, int(window))) for window in np.unique(windows)}
        unknown += int(sum((windows == window).sum() for window, mean in told.items() if mean is None))
        for side, name in enumerate(("in", "out")):
            mean = np.array([(told[int(window)] or filled)[side] for window in windows])
            unit = drawn(Draw(1.0, cv), len(at), stream(seed, f"tokens {name} of {client.number}"))
            columns[side].append(np.rint(np.minimum(mean * unit, MOST_TOKENS)).astype(np.int64))
    into, out = (np.concatenate([np.zeros(0, np.int64), *column]) for column in columns)
    return (into, out), unknown
