"""The course as a whole: its lessons in order, and their exercises by number."""

from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module

from gpuplan.inputs.errors import InputError, Mistake, did_you_mean, shorten
from gpuplan.lessons.exercise import Exercise, Reply


@dataclass(frozen=True, slots=True)
class Lesson:
    """A notebook of the course.

    Attributes
    ----------
    number
        Place in the course, from 1.
    notebook
        File name.
    title, teaches
        What it is called, and what one can say after it.
    minutes
        For reading and its exercises, without what it calls optional.
    needs
        Numbers of the lessons that come before it.
    """

    number: int
    notebook: str
    title: str
    teaches: str
    minutes: int
    needs: tuple[int, ...] = ()

    @property
    def exercises(self) -> tuple[Exercise, ...]:
        """Its exercises, in the order of their numbers."""
        found: tuple[Exercise, ...] = import_module(f"gpuplan.lessons.lesson_{self.number:02}").EXERCISES
        return found


CONTENTS = "00-contents.ipynb"

LESSONS = (
    Lesson(
        1,
        "01-why-order-is-capacity.ipynb",
        "Why order is capacity",
        "where the idle hours of a full cluster come from, and what the order of the jobs is worth in GPUs",
        15,
    ),
    Lesson(
        2,
        "02-how-good-is-good.ipynb",
        "How good is good?",
        "how far a plan is from the best possible one, and what each step of a gain gives",
        20,
        (1,),
    ),
    Lesson(
        3,
        "03-when-forecasts-are-wrong.ipynb",
        "When forecasts are wrong",
        "what is left of a gain when traffic, run times and arrivals are not as announced",
        25,
        (1,),
    ),
    Lesson(
        4,
        "04-budgets-not-priorities.ipynb",
        "Budgets, not priorities",
        "whose turn it is over weeks: priorities, monopolies and budgets on the same jobs",
        35,
    ),
    Lesson(
        5,
        "05-what-fits-where.ipynb",
        "What fits where",
        "which model sits in which GPU's memory, and what margins, loads and preemption cost",
        25,
    ),
    Lesson(
        6,
        "06-your-own-cluster.ipynb",
        "Your own cluster",
        "from your own records to a scenario, with every row accounted for",
        20,
        (1, 4),
    ),
)


def exercises() -> Iterator[Exercise]:
    """All exercises, lesson by lesson."""
    for lesson in LESSONS:
        yield from lesson.exercises


def exercise(id: str | float) -> Exercise:
    """The exercise of a number, such as ``"1.2"``.

    Raises
    ------
    InputError
        Where there is none.
    """
    wanted = str(id).strip().lower()
    head = wanted.partition(".")[0]
    lesson = next((lesson for lesson in LESSONS if str(lesson.number) == head), None)
    known = {one.id: one for one in (lesson.exercises if lesson else ())}
    if wanted in known:
        return known[wanted]
    rule = (
        f"must be one of {', '.join(known)}"
        if known
        else f"must begin with a lesson, 1 to {len(LESSONS)}, as in 1.2"
    )
    raise InputError("exercise", [Mistake("", rule + did_you_mean(wanted, known), shorten(str(id)))])


def check(id: str | float, answer: object) -> Reply:
    """What is said to an answer: right, nearly, or not yet, with a hint.

    The right answer is computed from the exercise's scenario. A number may be given alone, in the unit that is
    asked, or as text with its unit (``"6 GPU-hours"``, ``"33 %"``); an exercise of building takes the number, or a
    mapping of what is changed.

    Parameters
    ----------
    id
        Number of the exercise, such as ``"1.2"``.
    answer
        The answer.

    Raises
    ------
    InputError
        Where there is no such exercise. An answer that cannot be understood raises nothing: the reply says why.
    """
    return exercise(id).check(answer)
