"""The picture of an interactive page of packing: what sits in memory on average, and the latency by model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from gpuplan import theme
from gpuplan.gantt import field, mark, safe_text
from gpuplan.packing.charts import colours
from gpuplan.packing.charts.memory_data import memory_picture, panels_of
from gpuplan.packing.model import GIB, SECOND
from gpuplan.percentiles import grouped_percentiles
from gpuplan.reports.grid_pictures import LAYOUTS, STANDS_OUT, Sets, Tabled, Words, hover, whole

if TYPE_CHECKING:
    from gpuplan.gantt import Columns, Spec
    from gpuplan.packing.run import PackRun

#: GPUs with a bar of their own; with more, neighbours share one.
_PANELS = 8

#: Pixels of a bar, of a row of the latencies, for names, and beside a drawing area.
_BAR, _ROW, _NAMES, _BESIDE = 17, 13, {"wide": 150, "medium": 170, "narrow": 132}, 30

_QUANTILES = (0.5, 0.95)


@dataclass(frozen=True)
class PackingLook:
    """Models and GPUs are those of the scenario itself.

    Attributes
    ----------
    policies : tuple of str
    palette : Palette
    gpus : tuple of str
        Names of GPUs, or of neighbours together.
    memory_gib : float
        Of a GPU.
    """

    policies: tuple[str, ...]
    palette: colours.Palette
    gpus: tuple[str, ...]
    memory_gib: float

    @classmethod
    def of(cls, comparison: Any) -> PackingLook:
        """The look of a page."""
        run = next(iter(comparison.results.values()))
        gpus = comparison.scenario.gpus
        names = [f"GPU {low}" if low == high else f"GPUs {low}–{high}" for low, high in _panels(gpus.count)]
        return cls(
            tuple(safe_text(name) for name in comparison.results),
            colours.palette_of(run.problem),
            tuple(names),
            round(gpus.memory_bytes / GIB, 3),
        )

    def sets(self, results: Mapping[str, PackRun]) -> tuple[Sets, list[Sets]]:
        """Memory by GPU and model, reservations, and latencies by model."""
        made = []
        for name, run in zip(self.policies, results.values(), strict=True):
            memory, reserved = self._memory(run, name)
            made.append({"memory": memory, "reserved": reserved, "latency": self._latency(run, name)})
        return {}, made

    def _row(self, gpu: str, policy: str) -> str:
        return f"{gpu} · {policy}" if len(self.policies) > 1 else gpu

    def _memory(self, run: PackRun, policy: str) -> tuple[Columns, Columns]:
        """GiB on average over the run: a row per GPU and what is in it, from ``x`` to ``x2``; what is reserved."""
        found = memory_picture(
            run, self.palette, panels=len(self.gpus), exact=0, bin_us=max(1, run.raw.end_us)
        )
        columns: Columns = {key: [] for key in ("row", "policy", "gpu", "model", "x", "x2", "says")}
        reserved: Columns = {key: [] for key in ("row", "reserved", "says")}
        names = (*self.palette.labels, colours.ASLEEP_WORDS, colours.KV_WORDS)
        for gpu, panel in zip(self.gpus, found.panels, strict=True):
            parts = [*panel.weights[:, 0].tolist(), float(panel.asleep[0]), float(panel.kv[0])]
            row, at = self._row(gpu, policy), 0.0
            for model, amount in zip(names, parts, strict=True):
                if round(amount, 2) > 0:
                    values = (row, policy, gpu, model, round(at, 2), round(at + amount, 2), f"{amount:,.2f}")
                    for key, value in zip(columns, values, strict=True):
                        columns[key].append(value)
                at += amount
            booked = round(float(panel.reserved[0]), 2)
            for key, said in (("row", row), ("reserved", booked), ("says", f"{booked:,.2f}")):
                reserved[key].append(said)
        return columns, reserved

    def _latency(self, run: PackRun, policy: str) -> Columns:
        """Seconds from arrival to the end of service by model: half of the tasks within ``p50``, 95 % in ``p95``."""
        books = run.ledger
        done = books.done & books.arrived
        group = self.palette.group[run.problem.tasks.model]
        found = grouped_percentiles(books.latency[done], group[done], len(self.palette), _QUANTILES) / SECOND
        columns: Columns = {
            key: [] for key in ("model", "policy", "p50", "p95", "done", "arrived", "says50", "says95")
        }
        for g, (model, (half, most)) in enumerate(zip(self.palette.labels, found.tolist(), strict=True)):
            n, came = int((done & (group == g)).sum()), int((books.arrived & (group == g)).sum())
            half, most = (None if value != value else round(value, 3) for value in (half, most))
            said = ["none done" if value is None else f"{value:,.2f}" for value in (half, most)]
            for key, value in zip(columns, (model, policy, half, most, n, came, *said), strict=True):
                columns[key].append(value)
        return columns

    def finish(self, sets: Sequence[Sets]) -> None:
        """Nothing: memory has its size, and latencies follow what is drawn."""

    def specs(self) -> dict[str, Spec]:
        """Memory beside latencies on a wide page, above them on others."""
        made = {}
        for layout, width in LAYOUTS.items():
            each = width // 2 if layout == "wide" else width
            inner = each - _NAMES[layout] - _BESIDE
            both = [self._memory_panel(inner, layout), self._latency_panel(inner, layout)]
            together = {"hconcat" if layout == "wide" else "vconcat": both, "spacing": 26}
            params = [*colours.look_params(), hover("model", ("memory_bars", "latency_marks"))]
            made[layout] = whole(together, params)
        return made

    def _memory_panel(self, width: int, layout: str) -> Spec:
        rows = [self._row(gpu, policy) for gpu in self.gpus for policy in self.policies]
        axis = {"labelLimit": _NAMES[layout] - 8, "ticks": False, "domain": False, "title": None}
        y = field("row", "nominal", sort=None, scale={"domain": rows, "paddingInner": 0.2}, axis=axis)
        scale = {"domain": [0, self.memory_gib], "nice": False, "clamp": False}
        x = field("x", scale=scale, axis={"title": "mean over the run (GiB)", "tickCount": 5})
        words = (colours.KV_WORDS, colours.ASLEEP_WORDS)
        legend = colours.legend(LAYOUTS[layout])
        fill = field("model", "nominal", scale=colours.model_scale(self.palette, words), legend=legend)
        tips = [
            field("gpu", "nominal", title="GPU"),
            field("policy", "nominal"),
            field("model", "nominal", title="what"),
            field("says", "nominal", title="GiB on average"),
        ]
        bar = {"type": "bar", "stroke": {"expr": colours.PANE}, "strokeWidth": 0.5, "clip": True}
        line = {
            "type": "tick",
            "fill": {"expr": colours.INK},
            "thickness": 2,
            "strokeWidth": 0,
            "orient": "vertical",
        }
        encoded = {
            "x": x,
            "x2": {"field": "x2"},
            "y": y,
            "fill": fill,
            "opacity": STANDS_OUT,
            "tooltip": tips,
        }
        said = field("says", "nominal", title="GiB reserved on average")
        return {
            "width": width,
            "height": _BAR * len(rows) + 10,
            "title": _title("In memory, GiB (stroke: reserved)", width + _NAMES[layout]),
            "layer": [
                mark("memory", bar, encoded, name="memory_bars"),
                mark("reserved", line, {"x": x | {"field": "reserved"}, "y": y, "tooltip": said}),
            ],
        }  # fmt: skip

    def _latency_panel(self, width: int, layout: str) -> Spec:
        names, models = list(self.policies), list(self.palette.labels)
        axis = {
            "labelLimit": _NAMES[layout] - 8,
            "ticks": False,
            "domain": False,
            "title": None,
            "grid": True,
        }
        y = field("model", "nominal", sort=None, scale={"domain": models, "paddingInner": 0.25}, axis=axis)
        offset = field("policy", "nominal", sort=None, scale={"domain": names})
        title = "seconds, arrival to end of service (log)"
        x = field("p50", scale={"type": "log", "nice": True}, axis={"title": title, "tickCount": 5})
        looks = [theme.POLICY_LOOKS[k % len(theme.POLICY_LOOKS)][0] for k in range(len(names))]
        legend = {"orient": "bottom", "title": None, "symbolType": "square", "labelLimit": 220, "columns": 2}
        colour = field("policy", "nominal", scale={"domain": names, "range": looks}, legend=legend)
        tips = [
            field("model", "nominal"),
            field("policy", "nominal"),
            field("says50", "nominal", title="half within (s)"),
            field("says95", "nominal", title="95 % within (s)"),
            field("done", title="tasks done", format=",d"),
            field("arrived", title="tasks arrived", format=",d"),
        ]
        there = [{"filter": "isValid(datum.p50)"}]
        both = {"y": y, "yOffset": offset, "color": colour, "opacity": STANDS_OUT, "tooltip": tips}
        point, tick = {"type": "point", "filled": True, "size": 46}, {"type": "tick", "thickness": 2.5}
        tick |= {"orient": "vertical", "height": {"band": 0.9}}
        rule = {"type": "rule", "strokeWidth": 2}
        return {
            "width": width,
            "height": _ROW * len(models) * len(names) + 10,
            "title": _title("Latency: half within (dot), 95 % (stroke)", width + _NAMES[layout]),
            "layer": [
                mark("latency", rule, {"x": x, "x2": {"field": "p95"}, **both}, transform=there, name="latency_marks"),
                mark("latency", point, {"x": x, **both}, transform=there),
                mark("latency", tick, {"x": x | {"field": "p95"}, **both}, transform=there),
            ],
        }  # fmt: skip

    def words(self) -> Words:
        """What the picture is."""
        together = " Neighbouring GPUs stand together, as the mean of each." if "–" in self.gpus[0] else ""
        about = (
            "Memory of each GPU in means over the run: weights with context and workspace by model, KV caches, "
            "leftovers. Latencies are those of tasks that were done. A model under the pointer stands out in both."
            + together
        )
        tables = (
            Tabled(
                "memory",
                "GiB on average over the run",
                {"gpu": "GPU", "policy": "policy", "model": "what", "says": "GiB"},
            ),
            Tabled(
                "latency",
                "Latency by model, seconds",
                {"model": "model", "policy": "policy", "says50": "half within", "says95": "95 % within",
                 "done": "tasks done", "arrived": "tasks arrived"},
            ),
        )  # fmt: skip
        return Words("What sits in memory, and how long tasks take", about, False, tables)


def _panels(count: int) -> list[tuple[int, int]]:
    return panels_of(count, _PANELS)


def _title(text: str, width: int) -> Spec:
    """Title that begins above the names beside a panel, where there is room for it."""
    look = {"fontSize": 11, "fontWeight": "normal", "frame": "bounds", "anchor": "start"}
    return {"text": text, "limit": width, **look}
