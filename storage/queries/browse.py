"""Comparisons page by page, filtered, and single ones with all outputs.

Callers limit the time by `statements.give_up_after`, because a user waits for the answers.
"""

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, Literal

from sqlalchemy import ColumnElement, Select, and_, case, exists, false, func, inspect, or_, select
from sqlalchemy.exc import OperationalError
from sqlalchemy.orm import Session, aliased

from winnow.storage.columns import holds
from winnow.storage.engine.database import is_broken_off
from winnow.storage.engine.raw_sql import PARAMETERS_AT_ONCE, in_portions
from winnow.storage.errors import QueryRefused
from winnow.storage.json_types import JsonObject, Row
from winnow.storage.models import (
    Annotation,
    Candidate,
    Comparison,
    Example,
    Generation,
    Judgment,
    Label,
    Prompt,
    Round,
)
from winnow.storage.queries.comparison_joins import (
    EXAMPLE,
    INPUT,
    PLACE,
    PROMPT_A,
    PROMPT_B,
    TEXT_A,
    TEXT_B,
    A,
    B,
    joined,
    side,
)
from winnow.storage.records.notes import is_noted, noted
from winnow.storage.records.text_index import BLOCK, INDEX_TABLES, SEQUENCE, candidate_blocks, indexed_blocks
from winnow.storage.text import storable

REPLY = aliased(Generation)

SEARCHED = (PROMPT_A.text, TEXT_A.text, PROMPT_B.text, TEXT_B.text, Example.key)
"""Columns searched for a user's words."""

LEAST_BLOCKS, MOST_BLOCKS = 8, 128
"""Numbers of index blocks searched together: at first, and later.
The first search covers few blocks, because common words are in all blocks."""

LOOKED_THROUGH = 20_000
"""Number of newest comparisons searched for judges and reasons.
A campaign can have millions."""


Doubt = Literal["judged", "flipped", "unread"]
"""Doubt about a judgment of a comparison:

* judged: a model judged it.
* flipped: the model preferred different sides in the two orders of one question.
* unread: one of the verdicts could not be parsed.
"""


Kind = Literal["failures", "differs", "noted"]
"""Kind of comparison:

* failures: a score is below 1/2 or missing; a duel is lost or has no outcome.
* differs: the output or the score of another candidate on the example differs; in a duel, the two outputs
  differ.
* noted: a reader starred it or wrote a note.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Filters:
    """Conditions on a comparison; None means no condition."""

    candidate: str | None = None
    """Name of a candidate, on either side of a duel."""
    among: tuple[str, ...] | None = None
    """Names of candidates; at least one must be on a side of the comparison."""
    kind: Kind | None = None
    """Kind of comparisons: "failures", "differs" or "noted".
    A duel fails if `candidate` lost it or, if `candidate` is None, has no outcome."""
    judge: str | None = None
    """Judge of the comparison, or of one of the judgments for its outcome."""
    lowest: float | None = None
    highest: float | None = None
    """Bounds of the outcome, which is from the first candidate's side."""
    is_scored: bool | None = None
    reason: str | None = None
    """Reason for a missing outcome."""
    doubt: Doubt | None = None
    """Condition on one of the judgments, including those for metrics.
    Together with `judge`: on a judgment of this judge for the outcome."""
    words: str = ""
    """Words in a prompt, an output or the example's key; A to Z match in either case."""


ANYTHING = Filters()


@dataclass(frozen=True, slots=True, kw_only=True)
class Choices:
    """Values by which a campaign's comparisons can be filtered."""

    candidates: list[str]
    """Names by position."""
    judges: list[str]
    reasons: list[str]


Place = tuple[int, int]
"""Round and position of a comparison."""


def choices(session: Session, campaign_id: int) -> Choices:
    """Values to filter by: candidates, judges and reasons.

    Judges and reasons are those of the newest `LOOKED_THROUGH` comparisons.

    Raises:
        QueryRefused: If the query exceeds the session's time limit.
    """
    newest = (
        select(Comparison.id, Comparison.judge, Comparison.reason)
        .join(Round, Round.id == Comparison.round_id)
        .where(Round.campaign_id == campaign_id)
        .order_by(Round.number.desc(), Comparison.position.desc())
        .limit(LOOKED_THROUGH)
        .subquery()
    )
    names = select(Candidate.name).where(Candidate.campaign_id == campaign_id).order_by(Candidate.position)
    of_judgments = (
        select(Judgment.judge)
        .join(newest, newest.c.id == Judgment.comparison_id)
        .where(Judgment.metric.is_(None))
    )
    with _slow_search_errors():
        judges = {
            *session.scalars(select(newest.c.judge).distinct()),
            *session.scalars(of_judgments.distinct()),
        }
        reasons = session.scalars(select(newest.c.reason).where(newest.c.reason.is_not(None)).distinct())
        return Choices(
            candidates=list(session.scalars(names)), judges=sorted(judges), reasons=sorted(reasons)
        )


def comparisons(
    session: Session, campaign_id: int, filters: Filters, *, before: Place | None, most: int, characters: int
) -> list[Row]:
    """Comparisons that pass the filters, newest first.

    Args:
        session: Reads the results.
        campaign_id: The campaign.
        filters: Conditions on the comparisons.
        before: Only comparisons planned before this place; None starts at the newest.
        most: Maximum number of rows.
        characters: Maximum number of characters that are read of each output, and of the example.

    Returns:
        Rows with the beginnings of the outputs, of the example's `input` (all its fields as JSON if it has no
        field `input`) and of its first `target`; `more_targets` counts the other targets.

    Raises:
        QueryRefused: If the query exceeds the session's time limit.
    """
    filters = replace(filters, words=storable(filters.words))
    rows = (
        joined(
            select(
                Comparison.id,
                *PLACE,
                *EXAMPLE,
                *example_beginnings(characters),
                Comparison.outcome,
                Comparison.reason,
                Comparison.judge,
                func.substr(TEXT_A.text, 1, characters).label("text"),
                func.substr(TEXT_B.text, 1, characters).label("text_b"),
                noted(Annotation.reason).label("noted"),
                noted(Annotation.source).label("note"),
            )
        )
        .where(*_conditions(session, filters), *_earlier_than(before))
        .limit(most)
    )
    with _slow_search_errors(filters):
        blocks = indexed_blocks(session) if len(filters.words) >= SEQUENCE else None
        if blocks is None:
            newest_first = (Round.number.desc(), Comparison.position.desc())
            own = rows.where(Round.campaign_id == campaign_id).order_by(*newest_first)
            return [dict(row) for row in session.execute(own).mappings()]
        return _with_words(session, campaign_id, rows, filters.words, before=before, blocks=blocks, most=most)


def beginnings(session: Session, comparison_ids: Sequence[int], *, characters: int) -> dict[int, Row]:
    """First `characters` of the examples and outputs of comparisons, by id.

    The columns are those of `comparisons`.
    """
    columns = (
        Comparison.id,
        A.name.label("candidate"),
        *EXAMPLE,
        *example_beginnings(characters),
        func.substr(TEXT_A.text, 1, characters).label("text"),
        func.substr(TEXT_B.text, 1, characters).label("text_b"),
    )
    rows = joined(select(*columns))
    return {
        row["id"]: dict(row)
        for some in in_portions(sorted(comparison_ids), PARAMETERS_AT_ONCE)
        for row in session.execute(rows.where(Comparison.id.in_(some))).mappings()
    }


def output_beginnings(
    session: Session, comparison_ids: Sequence[int], *, characters: int
) -> dict[int, str | None]:
    """First `characters` of the first candidate's output in each comparison, by id.

    None if missing.
    """
    rows = select(Comparison.id, func.substr(Generation.text, 1, characters)).outerjoin(
        Generation, Generation.id == Comparison.generation_a_id
    )
    return {
        id_: text
        for some in in_portions(sorted(comparison_ids), PARAMETERS_AT_ONCE)
        for id_, text in session.execute(rows.where(Comparison.id.in_(some)))
    }


def example_beginnings(characters: int) -> list[ColumnElement[object]]:
    """Columns of an example: the beginnings of its input and first target, and `more_targets`.

    `more_targets` is the number of further targets. The database cuts the texts.

    Args:
        characters: Maximum length of each text.
    """
    return [
        func.substr(INPUT, 1, characters).label("input"),
        func.substr(Example.targets[0].as_string(), 1, characters).label("target"),
        (func.json_array_length(Example.targets) - 1).label("more_targets"),
    ]


def _with_words(
    session: Session,
    campaign_id: int,
    rows: Select[Any],
    words: str,
    *,
    before: Place | None,
    blocks: int,
    most: int,
) -> list[Row]:
    """First rows that contain the words.

    Comparisons that are not indexed come first, then those in listed blocks. Within a campaign, later plans
    have larger ids.
    """
    # Rows are ordered by id, which is the same order. The expression keeps the database from using an index
    # on the campaign, with which it would read all the campaign's rounds for a few ids.
    rows = rows.where(Round.campaign_id + 0 == campaign_id).order_by(Comparison.id.desc())
    begin = blocks * BLOCK
    found = [dict(row) for row in session.execute(rows.where(Comparison.id >= begin)).mappings()]
    oldest, newest = _ends(session, campaign_id, before)
    if oldest is None or newest is None:
        return found
    named = candidate_blocks(session, words, first=oldest // BLOCK, last=min(newest // BLOCK, blocks - 1))
    size = LEAST_BLOCKS
    while len(found) < most and (some := list(islice(named, size))):
        ids = [block * BLOCK + number for block in some for number in range(BLOCK)]
        found += [dict(row) for row in session.execute(rows.where(Comparison.id.in_(ids))).mappings()]
        size = MOST_BLOCKS
    return found[:most]


def _ends(session: Session, campaign_id: int, before: Place | None) -> tuple[int | None, int | None]:
    """Id of a campaign's first comparison, and of its last comparison before a place."""
    ids = (
        select(Comparison.id)
        .join(Round, Round.id == Comparison.round_id)
        .where(Round.campaign_id == campaign_id)
        .limit(1)
    )
    first = session.scalar(ids.order_by(Round.number, Comparison.position))
    return first, session.scalar(
        ids.where(*_earlier_than(before)).order_by(Round.number.desc(), Comparison.position.desc())
    )


def _earlier_than(place: Place | None) -> list[ColumnElement[bool]]:
    if place is None:
        return []
    number, position = place
    # The first condition is redundant, but it can use the index of rounds.
    return [Round.number <= number, or_(Round.number < number, Comparison.position < position)]


def comparison(
    session: Session, campaign_id: int, comparison_id: int, *, characters: int | None
) -> Row | None:
    """One comparison of a campaign with all details; None if it does not exist.

    At most `characters` of each text are read, or the whole text if None; `text_length` etc. are the full
    lengths.
    """
    texts = {
        "prompt": PROMPT_A.text,
        "text": TEXT_A.text,
        "reasoning": TEXT_A.reasoning,
        "prompt_b": PROMPT_B.text,
        "text_b": TEXT_B.text,
        "reasoning_b": TEXT_B.reasoning,
        "answer": Comparison.answer,
        "detail": Comparison.detail,
    }
    rows = joined(
        select(
            Comparison.id,
            *PLACE,
            *EXAMPLE,
            Example.fields,
            Example.targets,
            Label.targets.label("label"),
            Comparison.outcome,
            Comparison.reason,
            Comparison.judge,
            Comparison.human_loss,
            Comparison.auto_loss,
            Comparison.unlabelled_loss,
            Comparison.unlabelled_missing,
            noted(Annotation.reason).label("noted"),
            noted(Annotation.source).label("note"),
            *_beginnings(texts, characters),
            *(
                getattr(generation, name).label(name + end)
                for generation, end in ((TEXT_A, ""), (TEXT_B, "_b"))
                for name in ("model", "finish_reason", "input_tokens", "output_tokens", "seconds", "engine")
            ),
        )
    ).outerjoin(Label, Label.example_id == Example.id)
    rows = rows.where(Round.campaign_id == campaign_id, Comparison.id == comparison_id)
    row = session.execute(rows).mappings().first()
    return None if row is None else dict(row)


def judgments(session: Session, comparison_id: int, *, characters: int | None) -> list[Row]:
    """All judge calls of a comparison, with prompts and replies, in order."""
    rows = session.execute(
        select(
            Judgment.number,
            Judgment.metric,
            Judgment.judge,
            Judgment.presentation_order,
            Judgment.repeat,
            Judgment.attempt,
            Judgment.verdict,
            Judgment.reason,
            *_beginnings({"reply": REPLY.text, "prompt": Prompt.text}, characters),
        )
        .outerjoin(REPLY, REPLY.id == Judgment.generation_id)
        .outerjoin(Prompt, Prompt.id == REPLY.prompt_id)
        .where(Judgment.comparison_id == comparison_id)
        .order_by(Judgment.number)
    )
    return [dict(row) for row in rows.mappings()]


def columns(session: Session) -> list[Row]:
    """Columns that SQL statements can use, by table.

    One row per column of each table and view.
    """
    schema = inspect(session.connection())
    names = [each for each in schema.get_table_names() if not each.startswith(INDEX_TABLES)]
    return [
        {"table": table, "column": column["name"], "type": str(column["type"])}
        for table in sorted([*names, *schema.get_view_names()])
        for column in schema.get_columns(table)
    ]


def _conditions(session: Session, filters: Filters) -> list[ColumnElement[bool]]:
    asked: list[ColumnElement[bool]] = []
    if filters.candidate is not None:
        asked.append(or_(A.name == filters.candidate, B.name == filters.candidate))
    if filters.among is not None:
        asked.append(or_(A.name.in_(filters.among), B.name.in_(filters.among)))
    if filters.kind is not None:
        asked.append(_is_of_kind(filters.kind, filters.candidate))
    if filters.judge is not None:
        played = exists().where(
            Judgment.comparison_id == Comparison.id,
            Judgment.metric.is_(None),
            Judgment.judge == filters.judge,
        )
        asked.append(or_(Comparison.judge == filters.judge, played))
    if filters.doubt is not None:
        asked.append(_in_doubt(filters.doubt, filters.judge))
    if filters.lowest is not None:
        asked.append(Comparison.outcome >= filters.lowest)
    if filters.highest is not None:
        asked.append(Comparison.outcome <= filters.highest)
    if filters.is_scored is not None:
        asked.append(Comparison.outcome.is_not(None) if filters.is_scored else Comparison.outcome.is_(None))
    if filters.reason is not None:
        asked.append(Comparison.reason == filters.reason)
    if filters.words:
        asked.append(or_(*(holds(session, column, filters.words) for column in SEARCHED)))
    return asked


def _is_of_kind(kind: Kind, candidate: str | None) -> ColumnElement[bool]:
    if kind == "noted":
        return is_noted()
    is_duel = Comparison.candidate_b_id.is_not(None)
    if kind == "differs":
        return case((is_duel, TEXT_A.text.is_distinct_from(TEXT_B.text)), else_=_another_differs())
    score = case(
        (Comparison.human_loss.is_not(None), 1.0 - Comparison.human_loss),
        (and_(is_duel, B.name == candidate), 1.0 - Comparison.outcome),
        (is_duel if candidate is None else false(), 1.0),
        else_=Comparison.outcome,
    )
    return or_(Comparison.reason.is_not(None), score < 0.5)


def _another_differs() -> ColumnElement[bool]:
    """Condition that another candidate differs on the example.

    The other candidate is of the same campaign, and its output or score differs.
    """
    other, text = aliased(Comparison), aliased(Generation)
    rivals = select(Candidate.id).where(Candidate.campaign_id == Round.campaign_id).correlate(Round)
    return (
        select(other.id)
        .outerjoin(text, text.id == other.generation_a_id)
        .where(
            # Together these conditions use the index on single scores.
            other.candidate_a_id.in_(rivals),
            other.example_id == Comparison.example_id,
            other.candidate_b_id.is_(None),
            or_(other.outcome.is_distinct_from(Comparison.outcome), text.text.is_distinct_from(TEXT_A.text)),
        )
        .correlate(Comparison, Round, TEXT_A)
        .exists()
    )


def _in_doubt(doubt: Doubt, judge: str | None) -> ColumnElement[bool]:
    """Condition that a comparison has a judgment with this doubt.

    Only judgments of `judge` count; all if `judge` is None.
    """
    found = aliased(Judgment)
    asked = [found.comparison_id == Comparison.id]
    if judge is not None:
        asked.append(found.judge == judge)
    if judge is not None or doubt == "flipped":
        asked.append(found.metric.is_(None))
    if doubt == "unread":
        asked.append(found.verdict.is_(None))
    if doubt != "flipped":
        return exists().where(*asked)
    other = aliased(Judgment)
    asked += [
        other.comparison_id == found.comparison_id,
        other.metric.is_(None),
        other.judge == found.judge,
        other.repeat == found.repeat,
        found.presentation_order == "original",
        other.presentation_order == "swapped",
        side(found.verdict) != side(other.verdict),
    ]
    return exists().where(*asked)


def _beginnings(texts: JsonObject, characters: int | None) -> list[ColumnElement[object]]:
    return [
        column
        for name, whole in texts.items()
        for column in (
            (whole if characters is None else func.substr(whole, 1, characters)).label(name),
            func.length(whole).label(f"{name}_length"),
        )
    ]


@contextmanager
def _slow_search_errors(filters: Filters = ANYTHING) -> Generator[None, None, None]:
    remedy = (
        "run winnow db index to make word searches fast"
        if filters.words
        else "narrow the filters, or use SQL"
    )
    try:
        yield
    except OperationalError as error:
        if not is_broken_off(error.orig):
            raise
        raise QueryRefused(f"the search was aborted ({error.orig}); {remedy}") from error
