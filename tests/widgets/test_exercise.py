"""The form of an exercise: what people type is what the exercise checks, and its words are what they read."""

from typing import Any

import pytest

import gpuplan as gp
from gpuplan.lessons.course import exercise, exercises
from gpuplan.lessons.exercise import Build, Choice, Guess
from gpuplan_widgets.exercise import ExerciseForm


def heard(form: ExerciseForm, *values: Any) -> None:
    """Send what the page sends when the button is pressed."""
    form._heard(form, {"answer": list(values)}, [])


@pytest.mark.parametrize("id", [one.id for one in exercises()])
def test_every_exercise_has_a_form_that_says_its_question(id: str) -> None:
    form = gp.ask(id)
    assert repr(form) == f"{form.heading} {id}: {form.question}"
    assert "`" not in form.question
    assert form.fields
    assert all(field["label"] for field in form.fields)
    assert (form.heading == "Predict") == isinstance(form.exercise, Guess | Choice)


def test_an_answer_gets_the_words_of_check() -> None:
    form = ExerciseForm("1.1")
    heard(form, "13 GPU-hours")
    assert form.verdict == "nearly"
    assert form.reply == ["Nearly.", gp.check("1.1", "13 GPU-hours").text]
    assert form.given == ["13 GPU-hours"]
    heard(form, "14")
    assert (form.verdict, form.replies, form.done) == ("right", 2, False)


def test_hints_go_on_with_every_attempt() -> None:
    form = ExerciseForm("1.2")
    hints = form.exercise.hints
    for hint in (*hints, hints[-1]):
        heard(form, "2")
        assert form.reply == ["Not yet.", hint]


def test_a_guess_is_committed_once() -> None:
    form = ExerciseForm("1.a")
    heard(form, "lots")
    assert (form.verdict, form.done) == ("not understood", False)
    heard(form, "80")
    assert form.done
    assert form.reply[1].startswith("You said 80 %. It is 53.6 %")
    heard(form, "53.6")
    assert form.given == ["80"]


def test_a_choice_and_a_building_take_what_their_fields_hold() -> None:
    choice = ExerciseForm("1.b")
    assert isinstance(choice.exercise, Choice)
    heard(choice, "", "changing the order")
    assert choice.reply[1].startswith("You said: changing the order; it is: giving up the reservation.")
    build = ExerciseForm("1.6")
    assert isinstance(build.exercise, Build)
    heard(build, "  ")
    assert build.verdict == "not understood"
    heard(build, "20")
    assert build.verdict == "right"
    units = {id: [field["unit"] for field in ExerciseForm(id).fields] for id in ("1.6", "4.4", "5.4")}
    assert units == {"1.6": [""], "4.4": [""], "5.4": ["%"]}  # where the words do not say it


@pytest.mark.parametrize(
    "content", [None, {}, {"answer": "14"}, {"answer": []}, {"answer": ["1", "2"]}, {"do": 1}]
)
def test_other_messages_are_not_answers(content: Any) -> None:
    form = ExerciseForm("1.1")
    form._heard(form, content, [])
    assert form.replies == 0


def test_what_goes_wrong_is_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    form = ExerciseForm("1.1")

    def broken(*_: Any, **__: Any) -> None:
        raise RuntimeError("no room")

    monkeypatch.setattr(type(form.exercise), "check", broken)
    heard(form, "14")
    assert form.reply == ["Not understood.", "That did not work (RuntimeError: no room)."]


def test_a_page_without_a_kernel_shows_the_question_and_folded_hints() -> None:
    page = ExerciseForm("1.2")._page()
    assert page.startswith("<p><b>Exercise 1.2</b><br>Now chat holds only")
    assert page.count("<li>") == len(exercise("1.2").hints)
    assert "33.3" not in page
    assert "<details>" not in ExerciseForm("1.a")._page()
