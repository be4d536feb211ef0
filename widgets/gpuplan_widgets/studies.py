"""What an explorer looks into on request: where the gain comes from, how sensitive it is, how good it can be."""

import html
import threading
import time
from collections.abc import Callable
from typing import Any

import ipywidgets as W

from gpuplan.allocation.certify import certify
from gpuplan.allocation.charts.gain import describe_gain, waterfall_data, waterfall_spec
from gpuplan.allocation.charts.progress import progress_data
from gpuplan.allocation.charts.sensitivity import curves_data, curves_spec, describe_curves
from gpuplan.allocation.gain import FIGURES, take_apart
from gpuplan.allocation.model import AllocationScenario
from gpuplan.allocation.policies import Progress, Proof
from gpuplan.allocation.sensitivity import sensitivity
from gpuplan.inputs.errors import InputError
from gpuplan_widgets.latest import Latest
from gpuplan_widgets.live_chart import LiveChart
from gpuplan_widgets.progress import ProgressChart

GAIN, CURVES, PROOF = range(3)
TITLES = ("Where does the gain come from?", "How sensitive is it?", "How good can a plan be? (proof)")

#: A drag must have rested so long (seconds) before a study is made anew.
REST_S = 0.2

#: Pixels that a fold's frame takes, the least that a chart gets, and from which on two paths stand side by side.
FRAME, NARROWEST, BESIDE = 60, 300, 700

#: Said where a proof is of a scenario that is no longer on screen.
CHANGED = "The scenario has changed meanwhile: certify again."

#: Seconds that a proof may take.
PROOF_S = 30.0


class Studies:
    """Folds below an explorer; what is closed costs nothing.

    Parameters
    ----------
    on_proof
        Called with a scenario and what was proven of it.
    room
        Pixels that the page has for a chart.

    Attributes
    ----------
    fold : Accordion
        The folds of `TITLES`.
    figure : ToggleButtons
        The figure that is taken apart.
    certify, stop : Button
        Begin a proof and end it early.
    """

    def __init__(
        self,
        scenario: AllocationScenario,
        on_proof: Callable[[AllocationScenario, Proof], None],
        room: Callable[[], int],
    ) -> None:
        self._scenario = scenario
        self._room = room
        self._on_proof = on_proof
        self._made: dict[int, AllocationScenario] = {}
        self._proven: tuple[AllocationScenario, Proof] | None = None
        self._telling = threading.Lock()  # what a fold says belongs to the scenario on screen
        self._stop = threading.Event()
        self._worker = Latest(self._study)
        self.figure = W.ToggleButtons(options=list(FIGURES), value="value", tooltips=["", "", ""])
        self.figure.add_class("gp-gain-figure")
        self.said = [_html(f"gp-study-{number}") for number in range(len(TITLES))]
        self.charts: dict[int, LiveChart] = {}
        self.certify = W.Button(
            description="Certify", tooltip=f"Prove how good any plan can be ({PROOF_S:g} s at most)"
        )
        self.certify.add_class("gp-certify")
        self.stop = W.Button(description="Stop", disabled=True, tooltip="Keep what is proven so far")
        self.stop.add_class("gp-stop")
        heads: list[list[Any]] = [[self.figure], [], [W.HBox([self.certify, self.stop])]]
        self._boxes = [W.VBox([*head, said]) for head, said in zip(heads, self.said, strict=True)]
        self.fold = W.Accordion(self._boxes, titles=TITLES, selected_index=None)
        self.fold.add_class("gp-studies")
        self.fold.observe(lambda _change: self._ask(), "selected_index")
        self.figure.observe(lambda _change: self._again(), "value")
        self.certify.on_click(lambda _button: self._begin())
        self.stop.on_click(lambda _button: self._stop.set())

    def show(self, scenario: AllocationScenario) -> None:
        """Follow the explorer to another scenario."""
        with self._telling:
            if scenario != self._scenario:
                self._stop.set()
                proof = self.proof_of(scenario)
                _say(self.said[PROOF], proof.sentence if proof else "")
            self._scenario = scenario
        self._ask()

    def proof_of(self, scenario: AllocationScenario) -> Proof | None:
        """What was proven here last, where it was of this scenario."""
        proven = self._proven
        return proven[1] if proven is not None and proven[0] == scenario else None

    def wait(self, timeout: float = 60.0) -> bool:
        """Wait until no study is being made; return whether that came about in time."""
        return self._worker.wait(timeout)

    def _again(self) -> None:
        self._made.pop(GAIN, None)
        self._ask()

    def _ask(self) -> None:
        opened = self.fold.selected_index
        if opened in (GAIN, CURVES) and self._made.get(opened) != self._scenario:
            self._worker.ask()

    def _study(self) -> None:
        """Make the study that is open; on a thread of its own, the newest scenario only."""
        scenario = self._scenario
        time.sleep(REST_S)
        opened = self.fold.selected_index
        if scenario is not self._scenario or opened not in (GAIN, CURVES):
            if opened in (GAIN, CURVES):
                self._worker.ask()
            return
        try:
            if opened == GAIN:
                apart, figure = take_apart(scenario), self.figure.value
                label = describe_gain(apart, figure)
                spec = waterfall_spec(apart, figure, self._width(), beside=self._width() >= BESIDE)
                self._draw(GAIN, spec, waterfall_data(apart, figure), label)
                _say(self.said[GAIN], apart.sentence(figure))
            else:
                found = sensitivity(scenario)
                self._draw(
                    CURVES, curves_spec(found, self._width()), curves_data(found), describe_curves(found)
                )
                _say(self.said[CURVES], found.sentence)
            self._made[opened] = scenario
        except Exception as error:  # nobody sees the traceback of a thread
            _say(self.said[opened], f"That could not be worked out: {_sentence(error)}")

    def _width(self) -> int:
        """Width of a chart inside a fold, whose frame takes some of the page's."""
        return max(NARROWEST, self._room() - FRAME)

    def _draw(self, number: int, spec: Any, data: Any, label: str) -> None:
        if number in self.charts:
            self.charts[number].show(data, spec=spec)
            self.charts[number].label = label
            return
        chart = LiveChart(spec, data, label=label, picture=False)
        self.charts[number] = chart
        box = self._boxes[number]
        box.children = (*box.children, chart)

    # ------------------------------------------------------------------ the proof

    def _begin(self) -> None:
        """Prove on a thread of its own."""
        if self.certify.disabled:
            return
        self.certify.disabled, self.stop.disabled = True, False
        self._stop = threading.Event()
        if PROOF not in self.charts:
            self._draw_progress()
        threading.Thread(
            target=self._prove, args=(self._scenario, self._stop), daemon=True, name="gpuplan-proof"
        ).start()

    def _draw_progress(self) -> None:
        chart = ProgressChart(min(640, self._width() - 60))
        self.charts[PROOF] = chart
        self._boxes[PROOF].children = (*self._boxes[PROOF].children, chart)

    def _prove(self, scenario: AllocationScenario, stop: threading.Event) -> None:
        chart = self.charts[PROOF]
        assert isinstance(chart, ProgressChart)
        try:
            chart.restart()
            _say(self.said[PROOF], "Proving …")

            def report(progress: Progress) -> None:
                chart(progress)
                if stop.is_set():
                    raise KeyboardInterrupt

            proof = certify(scenario, PROOF_S, report)
            if not chart.history:  # known already: nothing was reported
                chart.show(progress_data(proof.history))
            self._proven = scenario, proof
            self._on_proof(scenario, proof)
            with self._telling:
                now = proof.sentence if scenario == self._scenario else CHANGED
                _say(self.said[PROOF], now)
        except Exception as error:
            _say(self.said[PROOF], _sentence(error))
        finally:
            self.certify.disabled, self.stop.disabled = False, True


def _sentence(error: Exception) -> str:
    if isinstance(error, InputError):
        return "; ".join(f"{mistake.path} {mistake.rule}".strip() for mistake in error.mistakes)
    return f"{type(error).__name__}: {error}"


def _html(css: str) -> Any:
    widget = W.HTML("")
    widget.add_class(css)
    return widget


def _say(widget: Any, text: str) -> None:
    widget.value = f"<p>{html.escape(text)}</p>" if text else ""
