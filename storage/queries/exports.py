"""Rows for formats of other tools.

Duels become battles; one candidate's scored examples can be exported too.
"""

from collections.abc import Iterator

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from winnow.storage.json_types import Row
from winnow.storage.models import (
    Candidate,
    CandidateStats,
    Comparison,
    Dataset,
    Decision,
    Example,
    Generation,
    Label,
    Prompt,
    Round,
)
from winnow.storage.queries.campaign_views import stream
from winnow.storage.queries.comparison_joins import PROMPT_A, PROMPT_B, TEXT_A, TEXT_B, A, B, is_last, joined


def judged_duels(session: Session, campaign_id: int) -> Iterator[Row]:
    """Yield all scored duels, with outputs and time of decision, in planned order."""
    rows = (
        joined(
            select(
                Example.key.label("example"),
                A.name.label("candidate"),
                B.name.label("candidate_b"),
                Comparison.outcome,
                Comparison.judge,
                PROMPT_A.text.label("prompt"),
                TEXT_A.text,
                PROMPT_B.text.label("prompt_b"),
                TEXT_B.text.label("text_b"),
                Decision.decided_at,
            )
        )
        .join(Decision, Decision.round_id == Round.id)
        .where(Round.campaign_id == campaign_id, Comparison.outcome.is_not(None))
        .order_by(Round.number, Comparison.position)
    )
    return stream(session, rows)


def scored_examples(session: Session, candidate_id: int) -> Iterator[Row]:
    """Yield all examples on which a candidate was compared, in stored order.

    Examples without a score are included. `targets` are the dataset's; `label` is the human label.
    """
    rows = (
        select(
            Example.key.label("example"),
            Example.targets,
            Label.targets.label("label"),
            Comparison.outcome,
            Comparison.reason,
            Comparison.detail,
            Comparison.answer,
            Comparison.judge,
            Comparison.human_loss,
            Comparison.auto_loss,
            Comparison.unlabelled_loss,
            Comparison.unlabelled_missing,
            Prompt.text.label("prompt"),
            Generation.text,
            Generation.reasoning,
            Generation.finish_reason,
            Generation.input_tokens,
            Generation.output_tokens,
            Generation.seconds,
            Round.number.label("round"),
            Decision.decided_at,
        )
        .join(Round, Round.id == Comparison.round_id)
        .join(Decision, Decision.round_id == Round.id)
        .join(Example, Example.id == Comparison.example_id)
        .outerjoin(Label, Label.example_id == Example.id)
        .outerjoin(Generation, Generation.id == Comparison.generation_a_id)
        .outerjoin(Prompt, Prompt.id == Generation.prompt_id)
        # The index of the scored pairs has these two columns.
        .where(Comparison.candidate_a_id == candidate_id, Comparison.candidate_b_id.is_(None), is_last())
        .order_by(Comparison.example_id)
    )
    return stream(session, rows)


def tallied(session: Session, campaign_id: int) -> list[Row]:
    """Sums over each candidate's observed comparisons, by position.

    Candidates without comparisons are omitted.
    """
    rows = session.execute(
        select(
            Candidate.id,
            Candidate.position,
            Candidate.name,
            Candidate.model,
            Candidate.prompt,
            Candidate.sampling,
            func.sum(CandidateStats.comparisons).label("comparisons"),
            func.coalesce(func.sum(CandidateStats.comparisons).filter(CandidateStats.reason == ""), 0).label(
                "scored"
            ),
            func.coalesce(
                func.sum(CandidateStats.outcome_sum).filter(CandidateStats.reason == ""), 0.0
            ).label("outcome_sum"),
            func.sum(CandidateStats.input_tokens).label("input_tokens"),
            func.sum(CandidateStats.output_tokens).label("output_tokens"),
        )
        .join(CandidateStats, CandidateStats.candidate_id == Candidate.id)
        .where(Candidate.campaign_id == campaign_id)
        .group_by(Candidate.id)
        .order_by(Candidate.position)
    )
    # PostgreSQL's sums of integers are Decimals.
    whole = ("comparisons", "scored", "input_tokens", "output_tokens")
    return [{**row, **{name: int(row[name]) for name in whole}} for row in rows.mappings()]


def dataset_name(session: Session, dataset_id: int) -> str:
    """Name of a dataset."""
    return session.get_one(Dataset, dataset_id).name
