"""The glossary: the terms of the field in a sentence each, the one source for lessons and documentation."""

import html
from collections.abc import Sequence
from dataclasses import dataclass

from gpuplan.inputs.errors import InputError, Mistake, did_you_mean, shorten
from gpuplan.lessons.terms import ALLOCATION, COMMON, Term
from gpuplan.lessons.terms_shared import FAIRSHARE, PACKING

#: All terms, by what they belong to.
SECTIONS: dict[str, tuple[Term, ...]] = {
    "Everywhere": COMMON,
    "Which GPU runs which job (allocation)": ALLOCATION,
    "Whose turn is it (fair share)": FAIRSHARE,
    "What sits in memory (packing)": PACKING,
}


@dataclass(frozen=True, slots=True)
class Glossary:
    """Some or all terms; shown as a table in a notebook, as lines elsewhere."""

    sections: dict[str, tuple[Term, ...]]

    @property
    def terms(self) -> tuple[Term, ...]:
        """The terms, in order."""
        return tuple(term for terms in self.sections.values() for term in terms)

    def __repr__(self) -> str:
        return "\n".join(str(term) for term in self.terms)

    def _repr_html_(self) -> str:
        return "".join(_table(title, terms) for title, terms in self.sections.items())

    def to_markdown(self) -> str:
        """The terms as Markdown: a heading and a table per section."""
        parts = []
        for title, terms in self.sections.items():
            rows = [f"| **{t.name}** | {t.sentence} | {t.unit} | {t.shown} |" for t in terms]
            head = ["| term | meaning | unit | where it is shown |", "| --- | --- | --- | --- |"]
            parts.append("\n".join([*([f"### {title}", ""] if title else []), *head, *rows]))
        return "\n\n".join(parts) + "\n"


def glossary(*names: str) -> Glossary:
    """Terms of the field, each in a sentence with its unit and where it is shown.

    Parameters
    ----------
    *names
        ``"backfill"``, ``"utilization"``, ...; none: all of them. Plurals and other words for a term are found.

    Raises
    ------
    InputError
        With every name that there is no term for.
    """
    if not names:
        return Glossary(dict(SECTIONS))
    known = {
        word: term
        for terms in SECTIONS.values()
        for term in terms
        for word in (term.name.lower(), *term.also)
    }
    found, mistakes = [], []
    for name in names:
        term = _look_up(name, known)
        if term is not None:
            found.append(term)
        else:
            rule = f"must be a term of the glossary{did_you_mean(name, known)}"
            mistakes.append(Mistake("", rule, shorten(str(name))))
    if mistakes:
        raise InputError("glossary", mistakes)
    return Glossary({"": tuple(dict.fromkeys(found))})


def _look_up(name: object, known: dict[str, Term]) -> Term | None:
    word = " ".join(str(name).lower().replace("_", " ").split())
    singular = word[:-1] if word.endswith("s") else word
    return next((known[w] for w in (word, singular, word.replace(" ", "-")) if w in known), None)


def _table(title: str, terms: Sequence[Term]) -> str:
    caption = (
        f'<caption style="text-align:start;font-weight:600">{html.escape(title)}</caption>' if title else ""
    )
    head = "".join(
        f'<th scope="col" style="text-align:start">{text}</th>'
        for text in ("term", "meaning", "unit", "where")
    )
    rows = "".join(
        f'<tr><th scope="row" style="text-align:start">{html.escape(term.name)}</th>'
        + "".join(
            f'<td style="text-align:start">{html.escape(text)}</td>'
            for text in (term.sentence, term.unit, term.shown)
        )
        + "</tr>"
        for term in terms
    )
    return f"<table>{caption}<thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"
