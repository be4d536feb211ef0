"""Exercises: what is asked, what is right (computed when it is asked for), and what is said to an answer."""

import html
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from gpuplan.inputs.errors import InputError, did_you_mean, shorten, show
from gpuplan.lessons.answers import NotUnderstood, read
from gpuplan.lessons.judge import in_unit, judge, said

Verdict = Literal["right", "nearly", "not yet", "not understood", "guess"]

#: What a reply begins with, by verdict.
HEADS: dict[str, str] = {
    "right": "Right.",
    "nearly": "Nearly.",
    "not yet": "Not yet.",
    "not understood": "Not understood.",
    "guess": "",
}


@dataclass(frozen=True, slots=True)
class Reply:
    """What is said to an answer: a verdict and a sentence or two."""

    verdict: Verdict
    text: str

    def __repr__(self) -> str:
        return f"{HEADS[self.verdict]} {self.text}".strip()

    def _repr_html_(self) -> str:
        head = f"<b>{HEADS[self.verdict]}</b> " if HEADS[self.verdict] else ""
        return f"<p>{head}{html.escape(self.text)}</p>"


@dataclass(frozen=True, slots=True)
class Exercise:
    """A question of a lesson.

    Attributes
    ----------
    id
        Number of the lesson and of the question: ``1.2``, or ``1.b`` for a guess before a run.
    question
        What is asked, as plain text.
    terms
        Names of the glossary that a reader needs for it.
    hints
        What is said to an answer that is wrong: the first one first, the last one from then on.
    """

    id: str
    question: str
    terms: tuple[str, ...]
    hints: tuple[str, ...]

    def check(self, answer: object, attempt: int = 1) -> Reply:
        """What is said to an answer; the same answer at the same attempt gets the same words."""
        try:
            return self._reply(answer, attempt)
        except NotUnderstood as error:
            return Reply("not understood", str(error))

    def _reply(self, answer: object, attempt: int) -> Reply:
        raise NotImplementedError

    def _hint(self, attempt: int) -> str:
        return self.hints[min(max(attempt, 1), len(self.hints)) - 1] if self.hints else ""

    def __repr__(self) -> str:
        return f"{self.id} {self.question}"


@dataclass(frozen=True, slots=True, repr=False)
class NumberAsked(Exercise):
    """A number with a unit.

    Attributes
    ----------
    unit
        Unit of the answer, a name of `gpuplan.lessons.answers`.
    right
        Computes the right number, in that unit.
    told
        What is said beside "Right.", from the right number.
    slips
        Computes other numbers that people come to, each with the sentence that helps.
    within
        How far an answer may be off and still be right, in the unit; by default half of a last digit of three.
    step
        Distance of a neighbouring answer where things are counted (off by one); none by default.
    """

    unit: str
    right: Callable[[], float]
    told: Callable[[float], str]
    slips: Callable[[], Sequence[tuple[float, str]]] = tuple
    within: float | None = None
    step: float | None = None

    def _reply(self, answer: object, attempt: int) -> Reply:
        given = read(answer)
        right = float(self.right())
        found = judge(given, right, self.unit, within=self.within, step=self.step, slips=self.slips)
        if found.verdict == "right":
            return Reply("right", self.told(right))
        return Reply(found.verdict, found.words or self._hint(attempt))


@dataclass(frozen=True, slots=True, repr=False)
class Guess(Exercise):
    """A number to guess before it is shown; the reply sets the reader's own beside it and explains.

    Attributes
    ----------
    unit
        Unit of the number.
    right
        Computes what it is.
    told
        The explanation, from that number.
    """

    unit: str
    right: Callable[[], float]
    told: Callable[[float], str]

    def _reply(self, answer: object, attempt: int) -> Reply:
        value, right = in_unit(read(answer), self.unit), float(self.right())
        apart = round(value, 1) - round(right, 1)
        distance = said(abs(apart), "points" if self.unit == "%" else self.unit)
        compared = "just so" if abs(apart) < 0.05 else f"{distance} {'less' if apart > 0 else 'more'}"
        return Reply(
            "guess",
            f"You said {said(value, self.unit)}. It is {said(right, self.unit)}: {compared}. {self.told(right)}",
        )


@dataclass(frozen=True, slots=True, repr=False)
class Choice(Exercise):
    """One of several answers, as a guess before a run.

    Attributes
    ----------
    options
        The answers to choose from.
    right
        Computes which one it is.
    told
        The explanation.
    """

    options: tuple[str, ...]
    right: Callable[[], str]
    told: Callable[[], str]

    def _reply(self, answer: object, attempt: int) -> Reply:
        if not isinstance(answer, str) or not answer.strip():
            raise NotUnderstood(f"Choose one of: {'; '.join(self.options)}.")
        known = {option.lower(): option for option in self.options}
        chosen = known.get(" ".join(answer.lower().split()))
        if chosen is None:
            near = did_you_mean(answer, self.options)
            raise NotUnderstood(f"Choose one of: {'; '.join(self.options)}{near} This is {show(answer)}.")
        right = self.right()
        compared = "just so" if chosen == right else f"it is: {right}"
        return Reply("guess", f"You said: {chosen}; {compared}. {self.told()}")


@dataclass(frozen=True, slots=True)
class Knob:
    """Something that may be changed in an exercise of building.

    Attributes
    ----------
    label, path, unit
        Its words, its path in the scenario, and the unit of its number.
    suffix
        What the scenario's file wants behind the number (``"min"``).
    scale
        What the file wants for one of the unit (0.01 where it wants a share and people write per cent).
    """

    label: str
    path: str
    unit: str
    suffix: str = ""
    scale: float = 1.0


@dataclass(frozen=True, slots=True, repr=False)
class Build(Exercise):
    """Change a scenario so that something holds; every change that does is right.

    Attributes
    ----------
    knobs
        What may be changed.
    start
        Makes the scenario to change.
    unmet
        Runs a scenario and says what does not hold yet, a sentence each; nothing where all holds.
    told
        What is said beside "Right.", from the scenario that was built.
    """

    knobs: tuple[Knob, ...]
    start: Callable[[], Any]
    unmet: Callable[[Any], Sequence[str]]
    told: Callable[[Any], str]

    def _reply(self, answer: object, attempt: int) -> Reply:
        changes = self._changes(answer)
        try:
            built = self.start().replace(changes)
        except InputError as error:
            rules = "; ".join(
                f"{self._label(m.path)} {m.rule} (got {show(m.value)})" for m in error.mistakes[:3]
            )
            return Reply("not understood", f"Such a scenario cannot be: {rules}.")
        missing = list(self.unmet(built))
        if not missing:
            return Reply("right", self.told(built))
        return Reply("not yet", " ".join([*missing, self._hint(attempt)]).strip())

    def _changes(self, answer: object) -> dict[str, float | str]:
        """The changes by path: of a number where there is one knob, or of a mapping by label or path."""
        paths = {knob.label: knob.path for knob in self.knobs} | {knob.path: knob.path for knob in self.knobs}
        if not isinstance(answer, Mapping):
            if len(self.knobs) > 1:
                names = ", ".join(f"{knob.label!r}: ..." for knob in self.knobs)
                raise NotUnderstood(f"Several numbers are asked: {{{names}}}.")
            answer = {self.knobs[0].path: answer}
        unknown = [str(key) for key in answer if key not in paths]
        if unknown:
            labels = [knob.label for knob in self.knobs]
            near = did_you_mean(unknown[0], labels)
            raise NotUnderstood(
                f"{shorten(unknown[0])} may not be changed here, only: {', '.join(labels)}{near or '.'}"
            )
        if not answer:
            raise NotUnderstood("There is no answer yet: nothing is changed.")
        return {paths[key]: self._number(paths[key], value) for key, value in answer.items()}

    def _number(self, path: str, given: object) -> float | str:
        knob = next(knob for knob in self.knobs if knob.path == path)
        try:
            found = in_unit(read(given), knob.unit)
        except NotUnderstood as error:
            raise NotUnderstood(f"{knob.label}: {error}") from None
        found = round(found * knob.scale, 9)
        plain = int(found) if found.is_integer() else found
        return f"{plain}{knob.suffix}" if knob.suffix else plain

    def _label(self, path: str) -> str:
        return next((knob.label for knob in self.knobs if path.startswith(knob.path)), path)
