"""Exercises of the lessons: what is right is computed, slips are told, and builders may build as they like."""

from typing import Any

import pytest

import gpuplan as gp
from gpuplan.lessons.course import LESSONS, check, exercise, exercises
from gpuplan.lessons.exercise import Build, Choice, Guess, NumberAsked
from gpuplan.lessons.glossary import glossary

ALL = list(exercises())
ASKED = [one for one in ALL if isinstance(one, NumberAsked)]

#: Solutions of the exercises of building, and attempts that do not reach it.
BUILT: dict[str, tuple[list[Any], list[Any]]] = {
    "1.6": ([14, "20", {"batch.2.priority": 40}], [1, 9]),
    "2.4": ([24, "32 GPUs"], [8, 17, 1]),
    "3.4": ([4, "5 GPUs"], [1, 3]),
    "4.4": ([30, "0.5 h", "45 min"], [50, "1 h"]),
    "5.4": ([10, "17 %", "0.15 of one"], [20, "25 %"]),
    "6.3": ([1, 4], [6, 12]),
}


def test_each_lesson_has_its_exercises_and_one_of_building() -> None:
    for lesson in LESSONS:
        done = [one for one in lesson.exercises if not isinstance(one, Guess | Choice)]
        assert len(done) >= (2 if lesson.number == 6 else 3), lesson.title
        assert isinstance(done[-1], Build), lesson.title
        assert all(one.id.startswith(f"{lesson.number}.") for one in lesson.exercises)
    assert len({one.id for one in ALL}) == len(ALL)


@pytest.mark.parametrize("one", ASKED, ids=lambda one: str(one.id))
def test_the_computed_number_is_right_and_slips_are_nearly(one: NumberAsked) -> None:
    right = one.right()
    assert check(one.id, right).verdict == "right"
    assert one.check(f"{right:.6f} {one.unit}").verdict == "right"
    assert one.check(7.7 * right + 3).verdict == "not yet"
    for number, words in one.slips():
        reply = one.check(number)
        assert (reply.verdict, reply.text) == ("nearly", words)


@pytest.mark.parametrize("one", ASKED, ids=lambda one: str(one.id))
def test_hints_are_told_one_by_one_and_do_not_say_the_number(one: NumberAsked) -> None:
    wrong = 7.7 * one.right() + 3
    assert [one.check(wrong, attempt).text for attempt in (1, 2, 3)] == [*one.hints, one.hints[-1]]
    said = one.hints[0].replace(",", "").split()
    assert f"{one.right():g}" not in said


def test_right_numbers_follow_the_scenario(monkeypatch: pytest.MonkeyPatch) -> None:
    """A constant would stay what it was."""
    from gpuplan.lessons import lesson_01

    shorter = gp.load("on-paper").replace({"batch.2.hours": 1})
    monkeypatch.setattr(lesson_01, "day", lambda name: shorter)
    lesson_01.planned.cache_clear()
    try:
        assert check("1.1", 13).verdict == "right"
        assert check("1.3", 67).verdict == "right"
    finally:
        lesson_01.planned.cache_clear()


def test_on_paper_by_hand() -> None:
    """FIFO: A in hours 0-3 and C in 4-5 beside the reservation, and chat's own 4: 8 + 2 + 4 of 24."""
    assert check("1.1", 8 + 2 + 4).verdict == "right"
    assert check("1.2", 100 * 8 / 24).verdict == "right"  # B beside A
    assert check("1.3", 16 * 4 + 2 * 3).verdict == "right"  # D, then C
    assert "33.3 points" in check("1.2", "33 points").text


@pytest.mark.parametrize("id", sorted(BUILT))
def test_whatever_has_the_property_is_right(id: str) -> None:
    solutions, attempts = BUILT[id]
    assert [check(id, one).verdict for one in solutions] == ["right"] * len(solutions)
    assert [check(id, one).verdict for one in attempts] == ["not yet"] * len(attempts)


def test_what_cannot_be_built_is_explained() -> None:
    assert check("1.6", -5).text.startswith(
        "Such a scenario cannot be: priority of cpt-1b-portuguese must be"
    )
    assert "may not be changed here" in check("1.6", {"cluster.gpus": 100}).text
    assert check("2.4", 2.5).verdict == "not understood"
    assert check("1.6", {}).verdict == "not understood"
    assert check("1.6", "many").text.startswith("priority of cpt-1b-portuguese: A number in digits")


def test_a_guess_is_set_beside_what_came() -> None:
    reply = check("1.a", "80 %")
    assert reply.text.startswith("You said 80 %. It is 53.6 %: 26.4 points less.")
    assert check("1.a", 53.6).text.startswith("You said 53.6 %. It is 53.6 %: just so.")
    assert check("1.a", "80 GPUs").verdict == "not understood"
    assert check("1.c", 20).text.startswith("You said 20 GPUs. It is 12 GPUs: 8 GPUs less.")


@pytest.mark.parametrize("one", [one for one in ALL if isinstance(one, Choice)], ids=lambda one: str(one.id))
def test_one_of_several_is_chosen(one: Choice) -> None:
    right = one.right()
    assert right in one.options
    assert "just so" in one.check(right.upper()).text
    other = next(option for option in one.options if option != right)
    assert f"it is: {right}" in one.check(other).text
    assert one.check("neither").verdict == one.check(None).verdict == "not understood"


def test_every_guess_is_computed() -> None:
    for one in ALL:
        if isinstance(one, Guess):
            assert "just so" in one.check(one.right()).text


def test_replies_are_text_and_repeat() -> None:
    reply = gp.check("1.1", "<script>alert(1)</script>")
    assert "<script>" not in reply._repr_html_()
    assert repr(reply) == repr(gp.check("1.1", "<script>alert(1)</script>"))
    assert repr(gp.check("1.1", 14)).startswith("Right. ")


@pytest.mark.parametrize("one", ALL, ids=lambda one: str(one.id))
def test_the_terms_that_an_exercise_needs_are_in_the_glossary(one: Any) -> None:
    assert one.terms
    assert len(glossary(*one.terms).terms) >= 1


def test_an_unknown_exercise_is_told_what_there_is() -> None:
    with pytest.raises(gp.InputError, match=r"1\.1, 1\.2"):
        exercise("1.99")
    with pytest.raises(gp.InputError, match="must begin with a lesson, 1 to 6"):
        gp.check("<b>", 1)
    assert exercise(1.2).id == "1.2"
