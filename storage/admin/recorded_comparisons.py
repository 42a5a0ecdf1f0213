"""All recorded comparisons, with everything that determines their outputs.

The memory used is bounded. A comparison is included even if a row that it refers to is missing; the
corresponding part is then None.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from itertools import groupby
from typing import Any

from sqlalchemy import ColumnElement, Row, RowMapping, func, select
from sqlalchemy.orm import Session, aliased

from winnow.storage.models import Comparison, Dataset, Example, Generation, Judgment, Output, Prompt, Round
from winnow.storage.queries.comparison_joins import PROMPT_A, PROMPT_B, TEXT_A, TEXT_B, A, B
from winnow.storage.records import stream_batches

SqlRow = Row[Any]

ROWS_AT_ONCE = 1_000

REPLY, SHOWN = aliased(Generation), aliased(Prompt)


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedText:
    """A stored generation, as judges see it and with the inputs of its key."""

    request_key: str
    """SHA-256 of everything that determines the output."""
    prompt: str
    replicate: int
    text: str
    finish_reason: str
    input_tokens: int
    output_tokens: int
    choice_logprobs: Mapping[str, float] | None
    reasoning: str | None
    token_logprobs: Sequence[float] | None


OF_GENERATIONS = tuple(
    each.name for each in fields(RecordedText) if each.name not in ("request_key", "prompt")
)
"""Fields that the row of a generation has under the same names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedExample:
    """The example of a comparison."""

    position: int | None
    """Position in the campaign; None if the example does not belong to the campaign."""
    key: str
    fields: Mapping[str, object]
    targets: Sequence[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedJudgment:
    """A call of a judge, with its reply; None without a reply."""

    judge: str
    presentation_order: str
    repeat: int
    attempt: int
    reason: str | None
    reply: RecordedText | None
    metric: str | None = None
    """Metric for which the call was made; None for the outcome."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedOutput:
    """One of several outputs of a comparison."""

    number: int
    text: RecordedText
    answer: str | None
    score: float | None
    no_answer: bool
    preference: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedComparison:
    """A comparison with the plan of its round.

    Fields "by side" have one entry for a score, two for a duel.
    """

    id: int
    round_number: int
    position: int
    planned_arms: Sequence[int]
    planned_example: int | None
    """Example as planned.
    None if the plan has no such position; the arms are then empty."""
    candidates: Sequence[str]
    """Candidate names, by side."""
    arms: Sequence[int | None]
    """Arm indices, by side; None if the candidate belongs to another campaign."""
    example: RecordedExample | None
    texts: Sequence[RecordedText | None]
    """Outputs, by side."""
    outcome: float | None
    judgments: Sequence[RecordedJudgment] = field(default=())
    outputs: Sequence[RecordedOutput] = field(default=())

    @property
    def is_scored(self) -> bool:
        """Whether the comparison has an outcome."""
        return self.outcome is not None


def recorded_comparisons(session: Session, campaign_id: int) -> Iterator[RecordedComparison]:
    """Yield all comparisons of a campaign in planned order, with their judgments."""
    offsets = _offsets(session, campaign_id)
    judgments = _Parts(_judgments(session, campaign_id))
    outputs = _Parts(_outputs(session, campaign_id))
    number, arms, examples = None, [], []
    for row in _comparisons(session, campaign_id):
        if row.number != number:
            number = row.number
            arms, examples = session.execute(
                select(Round.arms, Round.examples).where(Round.id == row.round_id)
            ).one()
        is_planned = row.position < len(arms)
        planned = arms[row.position] if is_planned else []
        yield _comparison(
            row,
            campaign_id,
            arms=planned if isinstance(planned, list) else [planned],
            example=examples[row.position] if is_planned else None,
            offsets=offsets,
            judgments=[_judgment(each) for each in judgments.of(row.id)],
            outputs=[_output(each) for each in outputs.of(row.id)],
        )


class _Parts:
    """Rows that belong to comparisons, returned one comparison at a time.

    The rows must come in the order of the comparisons.
    """

    def __init__(self, rows: Iterator[SqlRow]) -> None:
        self._groups = groupby(rows, key=lambda row: row.comparison_id)
        self._next = next(self._groups, None)

    def of(self, comparison_id: int) -> Sequence[SqlRow]:
        """Rows of a comparison. Comparisons must be requested in order."""
        if self._next is None or self._next[0] != comparison_id:
            return ()
        rows = list(self._next[1])
        self._next = next(self._groups, None)
        return rows


def _comparisons(session: Session, campaign_id: int) -> Iterator[SqlRow]:
    rows = (
        select(
            Comparison.id,
            Comparison.round_id,
            Round.number,
            Comparison.position,
            Comparison.outcome,
            *(
                column.label(f"{column.key}_{side}")
                for side, candidate in (("a", A), ("b", B))
                for column in (candidate.name, candidate.position, candidate.campaign_id)
            ),
            Comparison.candidate_b_id,
            Example.dataset_id,
            Example.position.label("example_position"),
            Example.key,
            Example.fields,
            Example.targets,
            *_text_columns("a", TEXT_A, PROMPT_A),
            *_text_columns("b", TEXT_B, PROMPT_B),
        )
        .select_from(Comparison)
        .join(Round, Round.id == Comparison.round_id)
        .outerjoin(A, A.id == Comparison.candidate_a_id)
        .outerjoin(B, B.id == Comparison.candidate_b_id)
        .outerjoin(Example, Example.id == Comparison.example_id)
        .outerjoin(TEXT_A, TEXT_A.id == Comparison.generation_a_id)
        .outerjoin(TEXT_B, TEXT_B.id == Comparison.generation_b_id)
        .outerjoin(PROMPT_A, PROMPT_A.id == TEXT_A.prompt_id)
        .outerjoin(PROMPT_B, PROMPT_B.id == TEXT_B.prompt_id)
        .where(Round.campaign_id == campaign_id)
        .order_by(Round.number, Comparison.position)
    )
    return iter(session.execute(rows.execution_options(yield_per=ROWS_AT_ONCE)))


def _judgments(session: Session, campaign_id: int) -> Iterator[SqlRow]:
    rows = (
        select(
            Judgment.comparison_id,
            Judgment.judge,
            Judgment.presentation_order,
            Judgment.repeat,
            Judgment.attempt,
            Judgment.reason,
            Judgment.metric,
            *_text_columns("reply", REPLY, SHOWN),
        )
        .join(Comparison, Comparison.id == Judgment.comparison_id)
        .join(Round, Round.id == Comparison.round_id)
        .outerjoin(REPLY, REPLY.id == Judgment.generation_id)
        .outerjoin(SHOWN, SHOWN.id == REPLY.prompt_id)
        .where(Round.campaign_id == campaign_id)
        .order_by(Round.number, Comparison.position, Judgment.number)
    )
    return iter(session.execute(rows.execution_options(yield_per=ROWS_AT_ONCE)))


def _outputs(session: Session, campaign_id: int) -> Iterator[SqlRow]:
    rows = (
        select(
            Output.comparison_id,
            Output.number,
            Output.answer,
            Output.score,
            Output.no_answer,
            Output.preference,
            *_text_columns("reply", REPLY, SHOWN),
        )
        .join(Comparison, Comparison.id == Output.comparison_id)
        .join(Round, Round.id == Comparison.round_id)
        .join(REPLY, REPLY.id == Output.generation_id)
        .join(SHOWN, SHOWN.id == REPLY.prompt_id)
        .where(Round.campaign_id == campaign_id)
        .order_by(Round.number, Comparison.position, Output.number)
    )
    return iter(session.execute(rows.execution_options(yield_per=ROWS_AT_ONCE)))


def _text_columns(
    side: str, generation: type[Generation], prompt: type[Prompt]
) -> list[ColumnElement[object]]:
    columns = {
        "request_key": func.coalesce(generation.request_key, generation.key),
        "prompt": prompt.text,
        **{name: getattr(generation, name) for name in OF_GENERATIONS},
    }
    return [column.label(f"text_{side}_{name}") for name, column in columns.items()]


def _comparison(
    row: SqlRow,
    campaign_id: int,
    *,
    arms: Sequence[int],
    example: int | None,
    offsets: Mapping[int, int],
    judgments: Sequence[RecordedJudgment],
    outputs: Sequence[RecordedOutput],
) -> RecordedComparison:
    sides = ("a",) if row.candidate_b_id is None else ("a", "b")
    values = row._mapping
    return RecordedComparison(
        id=row.id,
        round_number=row.number,
        position=row.position,
        planned_arms=arms,
        planned_example=example,
        candidates=[str(values[f"name_{side}"]) for side in sides],
        arms=[
            values[f"position_{side}"] if values[f"campaign_id_{side}"] == campaign_id else None
            for side in sides
        ],
        example=_example(row, offsets),
        texts=[_text(values, side) for side in sides],
        outcome=row.outcome,
        judgments=judgments,
        outputs=outputs,
    )


def _example(row: SqlRow, offsets: Mapping[int, int]) -> RecordedExample | None:
    if row.key is None:
        return None
    offset = offsets.get(row.dataset_id)
    return RecordedExample(
        position=None if offset is None else offset + row.example_position,
        key=row.key,
        fields=row.fields,
        targets=row.targets,
    )


def _text(values: RowMapping, side: str) -> RecordedText | None:
    if values[f"text_{side}_request_key"] is None:
        return None
    return RecordedText(**{each.name: values[f"text_{side}_{each.name}"] for each in fields(RecordedText)})


def _judgment(row: SqlRow) -> RecordedJudgment:
    return RecordedJudgment(
        judge=row.judge,
        presentation_order=row.presentation_order,
        repeat=row.repeat,
        attempt=row.attempt,
        reason=row.reason,
        reply=_text(row._mapping, "reply"),
        metric=row.metric,
    )


def _output(row: SqlRow) -> RecordedOutput:
    text = _text(row._mapping, "reply")
    assert text is not None
    return RecordedOutput(
        number=row.number,
        text=text,
        answer=row.answer,
        score=row.score,
        no_answer=row.no_answer,
        preference=row.preference,
    )


def _offsets(session: Session, campaign_id: int) -> dict[int, int]:
    """Example position of the first example of each of a campaign's datasets."""
    sizes = dict(session.execute(select(Dataset.id, Dataset.n_examples)).tuples().all())
    offsets, start = {}, 0
    for dataset_id in stream_batches.dataset_ids(session, campaign_id):
        offsets[dataset_id] = start
        start += sizes[dataset_id]
    return offsets
