"""Messages name the source, every path, every rule and what was found, on one line each."""

import pickle

import numpy as np

from gpuplan.inputs.errors import SHOWN, InputError, Mistake, did_you_mean, show


def test_all_mistakes_stand_under_the_source() -> None:
    error = InputError(
        "tiny.yaml", [Mistake("batch.1.gpus", "must be a power of two", 3), Mistake("a", "must be given")]
    )
    assert (
        str(error)
        == "tiny.yaml: 2 mistakes\n  batch.1.gpus: must be a power of two (got 3)\n  a: must be given"
    )


def test_one_mistake_is_singular_and_a_mistake_without_path_names_its_line() -> None:
    assert (
        str(InputError("f", [Mistake("", "must be YAML", line=3)])) == "f: 1 mistake\n  line 3: must be YAML"
    )


def test_hostile_values_stay_on_one_line_and_short() -> None:
    found = {
        "a\nb\x1b[2J\u202e": r"'a\nb\x1b[2J\u202e'",
        "x" * 10_000: "'" + "x" * 60 + "'...",
        10**10_000: "a whole number of more than 60 digits",
        None: "nothing",
        (1, 2): "(1, 2)",
    }
    assert {value: show(value) for value in found} == found
    assert show({"a": 1}) == "a mapping of 1 key"
    assert show([[0] * 10**6] * 3) == "a list of 3"
    assert len(show(np.zeros(10_000))) < 100


def test_a_value_whose_repr_fails_is_named_by_its_type() -> None:
    class Odd:
        def __repr__(self) -> str:
            raise RuntimeError

    assert show(Odd()) == "a Odd"


def test_many_mistakes_are_counted() -> None:
    text = str(InputError("f", [Mistake(f"row.{number}", "must be given") for number in range(SHOWN + 7)]))
    assert text.endswith("  ... and 7 more")
    assert len(text.splitlines()) == SHOWN + 2


def test_an_error_survives_a_process_boundary() -> None:
    error = InputError("f", [Mistake("a", "must be given")])
    again = pickle.loads(pickle.dumps(error))
    assert (str(again), again.mistakes, again.source) == (str(error), error.mistakes, "f")


def test_suggestions() -> None:
    known = ["max_swap", "min_gpus", "name"]
    assert did_you_mean("maxswap", known) == "; did you mean max_swap?"
    assert did_you_mean("MAX-SWAP", known) == "; did you mean max_swap?"
    assert did_you_mean("min_gpu", known) == "; did you mean min_gpus?"
    assert did_you_mean("colour", known) == ""
    assert did_you_mean("x" * 10**6, known) == ""
    assert did_you_mean(3, known) == ""
