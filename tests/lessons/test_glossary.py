"""The glossary: one sentence per term, and a term for whatever figures and exercises speak of."""

import re

import pytest

import gpuplan as gp
from gpuplan.allocation import figures as allocation
from gpuplan.fairshare import figures as fairshare
from gpuplan.lessons.glossary import SECTIONS, glossary
from gpuplan.lessons.terms import Term
from gpuplan.packing import figures as packing

TERMS = glossary().terms
WORDS = {word for term in TERMS for word in (term.name.lower(), *term.also)}

#: Words of a figure's name that name no thing: units, statistics, states.
_PLAIN = re.compile(r"\b(?:mean|s|us|hours|gib|per|n)\b|\bp[0-9]+\b")


@pytest.mark.parametrize("term", TERMS, ids=lambda term: str(term.name))
def test_a_term_is_one_plain_sentence_with_unit_and_place(term: Term) -> None:
    assert re.fullmatch(r"[A-Z][^\n]*[^.]\.", term.sentence)
    assert len(re.findall(r"[.!?](?:\s|$)", term.sentence)) == 1
    assert len(term.sentence) <= 130
    assert term.unit
    assert term.shown


def test_words_are_unique() -> None:
    words = [word for term in TERMS for word in (term.name.lower(), *term.also)]
    assert sorted(words) == sorted(set(words))


@pytest.mark.parametrize(
    "slice", [allocation, fairshare, packing], ids=["allocation", "fairshare", "packing"]
)
def test_every_figure_speaks_of_a_term(slice: object) -> None:
    missing = []
    for name in slice.UNITS:  # type: ignore[attr-defined]
        said = " ".join(_PLAIN.sub("", name.replace("_", " ")).split())
        singular = {
            said,
            said.removesuffix("s"),
            *said.split(),
            *(word.removesuffix("s") for word in said.split()),
        }
        if not singular & WORDS:
            missing.append(name)
    assert missing == []


def test_a_term_is_found_by_other_words_and_plurals() -> None:
    for word in ("backfill", "Backfill", "GPU-hours", "fifo", "priorities", "swap_cap", "utilisation"):
        assert len(glossary(word).terms) == 1
    assert str(glossary("gap")).startswith("gap: How far")


def test_unknown_terms_are_all_told() -> None:
    with pytest.raises(gp.InputError, match=r"2 mistakes(?s:.*)did you mean backfill"):
        gp.glossary("backfil", "utilization", "<b>")


def test_a_table_for_notebooks_and_one_for_pages() -> None:
    page = glossary("gap", "bound")._repr_html_()
    assert page.count("<tr>") == 3
    markdown = glossary().to_markdown()
    assert markdown.count("\n| **") == len(TERMS)
    assert [f"### {title}" in markdown for title in SECTIONS] == [True] * len(SECTIONS)
