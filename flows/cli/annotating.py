"""`winnow label` with a human judge: ask for judgments in the terminal, or read them from a file."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from winnow.flows.api.judgments import login, store_judgments
from winnow.storage.engine.database import Database
from winnow.storage.records import annotations
from winnow.storage.records.record_types import CampaignRecord
from winnow.tasks.errors import WinnowError
from winnow.tasks.objectives.human.annotating import (
    HOLD,
    TERMINAL,
    Choice,
    Question,
    answer,
    next_question,
    question_of,
    release,
    require_name,
)
from winnow.tasks.text.phrases import count_of, example_name, there_already
from winnow.tasks.text.printable import printable

SKIP, BACK, QUIT = "s", "b", "q"


def annotate(
    database: Database, campaign: CampaignRecord, file: Path | None, annotator: str | None, *, correct: bool
) -> None:
    """Store the judgments of a file, or ask for judgments one by one.

    Raises:
        WinnowError: If a row of the file is invalid, or the annotator's name is missing or invalid.
    """
    if file is None:
        who = login() if annotator is None else annotator
        require_name(who)
        _Session(database=database, campaign=campaign, annotator=who).ask_all()
        return
    taken = store_judgments(database, campaign, file, annotator, correct=correct)
    changed = f", {taken.changed} changed" if taken.changed else ""
    same = f", {there_already(taken.same)}" if taken.same else ""
    rows = "row has" if taken.empty == 1 else "rows have"
    empty = f", {taken.empty:,} {rows} no verdict yet" if taken.empty else ""
    print(f"{file}: {count_of(taken.new, 'new judgment')}{changed}{same}{empty}")


def wanted_of(database: Database, campaign: CampaignRecord) -> int:
    """Number of judgments that the campaign waits for."""
    with database.reading() as session:
        return annotations.lacking(session, campaign.id)


@dataclass(slots=True, kw_only=True)
class _Session:
    """A labelling session of one annotator at a terminal."""

    database: Database
    campaign: CampaignRecord
    annotator: str
    passed: list[str] = field(default_factory=list)
    """Keys of the skipped questions."""
    answered: list[str] = field(default_factory=list)
    """Keys of the questions answered in this session, oldest first; the annotator can go back to them."""

    def ask_all(self) -> None:
        """Ask questions until none is left, the annotator quits, or the input ends."""
        try:
            self._ask_questions()
        finally:
            release(self.database, self.campaign, self.annotator)

    def _ask_questions(self) -> None:
        question = self._next()
        while question is not None:
            for line in question_lines(question):
                print(line)
            try:
                said = input("> ").strip().lower()
            except EOFError:
                print()
                return
            if said == QUIT:
                return
            question = self._after(question, said)
        if wanted_of(self.database, self.campaign):
            minutes = HOLD.total_seconds() / 60
            print(
                f"\nthe remaining items are open in other annotators' sessions, for up to {minutes:g} "
                "minutes each; run the command again later"
            )

    def _after(self, question: Question, said: str) -> Question | None:
        """Process an input; return the next question, the same one for an invalid key, or None at the end."""
        if said == SKIP:
            if question.said is None:
                self.passed.append(question.key)
            return self._next()
        if said == BACK:
            return self._previous(question)
        choice = chosen(question.choices, said)
        if choice is None:
            print(f"{printable(said)!r} is not one of the keys")
            return question
        try:
            answer(
                self.database,
                self.campaign,
                question.key,
                choice,
                annotator=self.annotator,
                source=TERMINAL,
                may_change=question.said is not None,
            )
        except WinnowError as error:
            print(error)
            return self._next()
        self.answered.append(question.key)
        return self._next()

    def _next(self) -> Question | None:
        """The next question, with skipped questions last; None if no question is left."""
        found = next_question(self.database, self.campaign, self.annotator, self.passed)
        if found is None and self.passed:
            self.passed.clear()
            print("\nno other items are left; skipped items are shown again, q quits")
            found = next_question(self.database, self.campaign, self.annotator)
        return found

    def _previous(self, question: Question) -> Question:
        if not self.answered:
            print("there is no earlier item")
            return question
        return question_of(self.database, self.campaign, self.answered.pop())


def question_lines(question: Question) -> list[str]:
    """Lines of a question for the terminal; control characters of outputs are replaced."""
    shown = question.shown
    example = printable(example_name(shown.example, shown.example_number))
    lines = ["", f"[{question.left} left] example {example}", *_passage("", shown.question)]
    if shown.targets:
        lines += _passage("Reference", "\n".join(shown.targets))
    for title, text in zip(question.titles, shown.texts, strict=True):
        lines += _passage(title, text)
    by, said = printable(question.said_by or ""), printable(question.said or "")
    before = "" if question.said is None else f" ({by} said: {said})"
    keys = [f"{key} {printable(choice.name)}" for key, choice in keyed(question.choices)]
    others = [f"{SKIP} skip", f"{BACK} back", f"{QUIT} quit"]
    return [*lines, "", printable(question.text) + before, "  ".join([*keys, *others])]


def keyed(choices: Sequence[Choice]) -> list[tuple[str, Choice]]:
    """Each choice with its key: 1, 2 and so on, and u for the last choice, "unclear"."""
    *named, unclear = choices
    return [*((str(number), each) for number, each in enumerate(named, 1)), ("u", unclear)]


def chosen(choices: Sequence[Choice], said: str) -> Choice | None:
    """The choice with this key or lower-case name; None if there is no such choice."""
    names: list[tuple[str, Choice]] = [*keyed(choices), *((each.name.lower(), each) for each in choices)]
    return next((choice for name, choice in names if name == said), None)


def _passage(title: str, text: str) -> list[str]:
    head = [f"--- {title} ---"] if title else []
    return [*head, *(f"  {line}" for line in printable(text).expandtabs(4).split("\n"))]
