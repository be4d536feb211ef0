"""A form for an exercise: fields, a button, and what is said to the answer."""

import html
from collections.abc import Mapping, Sequence
from typing import Any

import anywidget
import traitlets as t

from gpuplan.lessons.course import exercise
from gpuplan.lessons.exercise import HEADS, Build, Choice, Exercise, Guess, NumberAsked, Reply
from gpuplan_widgets.answering import PLANNING
from gpuplan_widgets.build_bundle import STATIC


class ExerciseForm(anywidget.AnyWidget):
    """An exercise as people do it without code; the exercise itself judges.

    Parameters
    ----------
    of
        Number of an exercise (``"1.2"``), or an exercise.

    Raises
    ------
    InputError
        Where there is no such exercise.

    Notes
    -----
    A guess is committed once: after that its form only shows what was guessed and what came.
    """

    _esm = (STATIC / "exercise.js").read_text(encoding="utf-8")
    _css = "".join((STATIC / name).read_text(encoding="utf-8") for name in ("live_chart.css", "exercise.css"))

    heading = t.Unicode().tag(sync=True)
    number = t.Unicode().tag(sync=True)
    question = t.Unicode().tag(sync=True)
    fields = t.List(t.Dict()).tag(sync=True)
    button = t.Unicode().tag(sync=True)
    given = t.List(t.Unicode()).tag(sync=True)
    verdict = t.Unicode("").tag(sync=True)
    reply = t.List(t.Unicode()).tag(sync=True)
    replies = t.Int(0).tag(sync=True)
    done = t.Bool(False).tag(sync=True)

    def __init__(self, of: "str | float | Exercise") -> None:
        self.exercise = of if isinstance(of, Exercise) else exercise(of)
        guessed = isinstance(self.exercise, Guess | Choice)
        super().__init__(
            heading="Predict" if guessed else "Exercise",
            number=self.exercise.id,
            question=_plain(self.exercise.question),
            fields=_fields(self.exercise),
            button="This is my guess" if guessed else "Check",
            reply=["", ""],
        )
        self.on_msg(self._heard)

    def answer(self, *values: object) -> Reply:
        """Answer as the form does: a value per field, or the chosen option.

        Returns
        -------
        Reply
            What the form then shows.
        """
        texts = [str(value) for value in values]
        try:
            with PLANNING:
                reply = self.exercise.check(self._answer(texts), attempt=self.replies + 1)
        except Exception as error:  # nobody sees the traceback of a callback
            reply = Reply("not understood", f"That did not work ({type(error).__name__}: {error}).")
        with self.hold_sync():
            self.given = texts
            self.verdict = reply.verdict
            self.reply = [HEADS[reply.verdict], _plain(reply.text)]
            self.done = reply.verdict == "guess"
            self.replies += 1
        return reply

    def _answer(self, texts: Sequence[str]) -> object:
        """What the exercise takes: a text, or the numbers of the fields that are filled in."""
        if isinstance(self.exercise, Choice):
            return next((text for text in texts if text), "")
        if isinstance(self.exercise, Build):
            filled = zip(self.exercise.knobs, texts, strict=False)
            return {knob.path: text for knob, text in filled if text.strip()}
        return texts[0] if texts else ""

    def _heard(self, _widget: Any, content: Mapping[str, Any], _buffers: Any) -> None:
        values = content.get("answer") if isinstance(content, Mapping) else None
        if not self.done and isinstance(values, list) and len(values) == len(self.fields):
            self.answer(*values)

    def __repr__(self) -> str:
        return f"{self.heading} {self.number}: {self.question}"

    def _repr_mimebundle_(self, **kwargs: Any) -> Any:
        bundle = super()._repr_mimebundle_(**kwargs)
        if bundle is None:
            return None
        data, metadata = bundle
        return {**data, "text/html": self._page(), "text/plain": repr(self)}, metadata

    def _page(self) -> str:
        """The question for a page without a kernel, hints folded."""
        hints = "".join(f"<li>{html.escape(_plain(hint))}</li>" for hint in self.exercise.hints)
        folded = f"<details><summary>Hints</summary><ol>{hints}</ol></details>" if hints else ""
        head = f"<b>{html.escape(f'{self.heading} {self.number}')}</b>"
        return f"<p>{head}<br>{html.escape(self.question)}</p>{folded}"


def _fields(of: Exercise) -> list[dict[str, Any]]:
    """The fields of a form: label, unit, and whether it is one of several to choose from."""
    if isinstance(of, Choice):
        return [{"label": option, "unit": "", "option": True} for option in of.options]
    if isinstance(of, Build):
        return [
            {"label": k.label, "unit": "" if k.unit.split()[-1] in k.label else k.unit, "option": False}
            for k in of.knobs
        ]
    unit = of.unit if isinstance(of, NumberAsked | Guess) else ""
    label = "Your guess" if isinstance(of, Guess) else "Your answer"
    return [{"label": label, "unit": unit, "option": False}]


def _plain(text: str) -> str:
    """Text without the marks of code, which a form shows as they are."""
    return text.replace("`", "")
