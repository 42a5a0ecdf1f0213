"""The page Label: annotators judge one output or pair at a time, by keyboard or mouse."""

from collections.abc import Sequence

import streamlit as st

from winnow.flows.reports.dashboard.db import read_session, show_errors, writable_database
from winnow.flows.reports.dashboard.widgets import (
    ANNOTATOR,
    as_html,
    as_plain,
    choose_campaign,
    show_heading,
    show_problem,
    show_soft,
)
from winnow.storage.engine.database import storage_option
from winnow.storage.records import campaigns as campaign_records
from winnow.storage.records.record_types import CampaignRecord
from winnow.tasks.campaign.look import Look
from winnow.tasks.errors import WinnowError
from winnow.tasks.objectives.human.annotating import (
    PAGE,
    Choice,
    Question,
    answer,
    next_question,
    question_of,
    require_name,
)
from winnow.tasks.queries.status import campaign_status
from winnow.tasks.spec.judge_tree import is_human
from winnow.tasks.text.phrases import example_name

AT, ANSWERED, PASSED = "task at hand", "answered tasks", "skipped tasks"
REFUSED = "refused judgment"
"""Session key of the error of the last judgment."""


def show() -> None:
    """Show the page."""
    with show_errors():
        with read_session() as session:
            judged = [each for each in campaign_records.readable_campaigns(session)[0] if is_human(each.spec)]
        if not judged:
            st.title("Label")
            st.text(
                "No campaign in this database has a human judge. To add one, set judge: {type: human} in a "
                "campaign's file."
            )
            return
        name = choose_campaign([each.name for each in judged])
        campaign = next(each for each in judged if each.name == name)
        if annotator := _annotator():
            _TaskView(campaign, annotator).show()


def _annotator() -> str:
    """The annotator's name, or "" and a box in the middle of the page that asks for the name.

    Each name has its own box, so that no box has the focus after a name is entered, and keys act on buttons.
    """
    name: str = st.session_state.get(ANNOTATOR, "")
    if not name:
        st.title("Label")
        st.text("Enter your name; it is stored with your judgments.")
    place = st.sidebar if name else st
    entry: str = place.text_input("Your name", value=name, key=f"name after {name}")
    if entry != name:
        if entry:
            require_name(entry)
        st.session_state[ANNOTATOR] = entry
        st.rerun()
    return name


class _TaskView:
    """The tasks of one campaign for one annotator.

    Args:
        campaign: A campaign with a human judge.
        annotator: The annotator's name.
    """

    def __init__(self, campaign: CampaignRecord, annotator: str) -> None:
        self._campaign, self._annotator = campaign, annotator
        self._place = f"{campaign.id} {annotator}"

    def show(self) -> None:
        """Show the current task, or a sentence if no task is left."""
        if (refused := st.session_state.pop(REFUSED, None)) is not None:
            show_problem(refused)
        question = self._question()
        if question is None:
            self._nothing_left()
            return
        _show_task(question)
        if question.said is not None:
            show_soft(f"{question.said_by} said: {question.said}", key="said")
        self._show_choices(question)

    def _question(self) -> Question | None:
        """The last shown task while it has no answer, else the next task; None if no task is left."""
        key = st.session_state.get(f"{AT} {self._place}")
        with writable_database() as database:
            if key is not None:
                return question_of(database, self._campaign, key)
            found = next_question(database, self._campaign, self._annotator, self._list(PASSED))
            if found is None and self._list(PASSED):
                self._list(PASSED).clear()
                found = next_question(database, self._campaign, self._annotator)
        st.session_state[f"{AT} {self._place}"] = None if found is None else found.key
        return found

    def _show_choices(self, question: Question) -> None:
        *named, unclear = question.choices
        # Buttons belong to one task, so that a key pressed twice cannot answer the next, unread task.
        task = question.key
        for column, (number, choice) in zip(st.columns(len(named)), enumerate(named, 1), strict=True):
            column.button(
                as_plain(choice.name),
                key=f"choice-{number}-{task}",
                shortcut=str(number),
                on_click=self._answer,
                args=(question, choice),
                width="stretch",
            )
        left, middle, right = st.columns(3)
        with left:
            self._show_back(task)
        middle.button(
            "Skip",
            key=f"skip-{task}",
            shortcut="s",
            on_click=self._skip,
            args=(question,),
            width="stretch",
        )
        right.button(
            "Unclear",
            key=f"unclear-{task}",
            shortcut="u",
            on_click=self._answer,
            args=(question, unclear),
            width="stretch",
        )
        show_soft(
            "You can also press the keys shown on the buttons. Skip postpones a task; Unclear records that "
            "the task cannot be judged.",
            key="keys",
        )

    def _show_back(self, task: str) -> None:
        st.button(
            "Back",
            key=f"back-{task}",
            shortcut="b",
            on_click=self._back,
            disabled=not self._list(ANSWERED),
            width="stretch",
        )

    def _answer(self, question: Question, choice: Choice) -> None:
        """Store an answer; if that fails, the error is shown above the next task."""
        try:
            with writable_database() as database:
                answer(
                    database,
                    self._campaign,
                    question.key,
                    choice,
                    annotator=self._annotator,
                    source=PAGE,
                    may_change=question.said is not None,
                )
            self._list(ANSWERED).append(question.key)
        except WinnowError as error:
            st.session_state[REFUSED] = str(error)
        self._go_to(None)

    def _skip(self, question: Question) -> None:
        self._list(PASSED).append(question.key)
        self._go_to(None)

    def _back(self) -> None:
        self._go_to(self._list(ANSWERED).pop())

    def _go_to(self, key: str | None) -> None:
        st.session_state[f"{AT} {self._place}"] = key

    def _list(self, what: str) -> list[str]:
        found: list[str] = st.session_state.setdefault(f"{what} {self._place}", [])
        return found

    def _nothing_left(self) -> None:
        st.title("Label")
        with read_session() as session:
            has_ended = campaign_status(Look(session, self._campaign)).state == "ended"
        if has_ended:
            st.text(f"{self._campaign.name} has ended and waits for no judgments.")
            return
        with writable_database() as database:
            storage = storage_option(database.url)
        st.text("No tasks are left for you. When all annotators are done, run:")
        st.code(f"winnow resume {self._campaign.name} {storage}", language=None, wrap_lines=True)
        if self._list(ANSWERED):
            self._show_back("last")


def _show_task(question: Question) -> None:
    st.title(f"{question.left} left to judge")
    show_soft(f"example {example_name(question.shown.example, question.shown.example_number)}", key="example")
    show_heading(question.text, key="asked")
    _show_box("Question", question.shown.question, key="question")
    if question.shown.targets:
        _show_box("Reference", "\n\n".join(question.shown.targets), key="reference")
    columns: Sequence[st.delta_generator.DeltaGenerator] = st.columns(len(question.titles))
    for number, (column, title) in enumerate(zip(columns, question.titles, strict=True)):
        with column:
            _show_box(title, question.shown.texts[number], key=f"text-{number}")


def _show_box(title: str, text: str, *, key: str) -> None:
    st.header(title)
    with st.container(border=True, key=f"written-{key}"):
        st.html(as_html(text))
