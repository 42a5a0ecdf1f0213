"""Prompts that arrived after their campaign began.

The module also reads all prompts of a campaign in order.
"""

import datetime as dt
from collections.abc import Iterator, Sequence

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from winnow.storage.models import Campaign, Comparison, Example, Round, StreamBatch
from winnow.storage.records import datasets as dataset_records
from winnow.storage.records.record_types import NewExample
from winnow.storage.records.row_counts import add_to_count


def add_stream_batch(
    session: Session, campaign_id: int, examples: Sequence[NewExample], *, fingerprint: str, now: dt.datetime
) -> int:
    """Append arrived prompts to those of a campaign.

    Args:
        session: Writes.
        campaign_id: The campaign.
        examples: The prompts, at least one.
        fingerprint: Unique fingerprint of the dataset of these prompts.
        now: The current time.

    Returns:
        The example position of the first arrived prompt.
    """
    first = count_examples(session, campaign_id)
    dataset_id = dataset_records.ensure_dataset(
        session, fingerprint=fingerprint, name="stream_batches", path="", examples=examples, now=now
    )
    number = next_number(session, campaign_id)
    batch = StreamBatch(campaign_id=campaign_id, number=number, dataset_id=dataset_id)
    session.add(batch)
    session.flush()
    add_to_count(session.connection(), "campaigns", campaign_id, "stream_batches", [batch.id])
    return first


def count_examples(session: Session, campaign_id: int) -> int:
    """Number of prompts of a campaign, including arrived ones."""
    datasets = dataset_ids(session, campaign_id)
    return session.scalars(select(func.count()).where(Example.dataset_id.in_(datasets))).one()


def unanswered(session: Session, campaign_id: int) -> list[int]:
    """Positions of arrived prompts that are in no finished round, in order."""
    arrived = [
        *session.execute(
            select(Example.id, Comparison.id)
            .join(StreamBatch, StreamBatch.dataset_id == Example.dataset_id)
            .outerjoin(Comparison, Comparison.example_id == Example.id)
            .where(StreamBatch.campaign_id == campaign_id)
            .order_by(StreamBatch.number, Example.position)
        )
    ]
    first = count_examples(session, campaign_id) - len(arrived)
    return [first + place for place, (_, comparison) in enumerate(arrived) if comparison is None]


def unasked(session: Session, campaign_id: int) -> Iterator[NewExample]:
    """Yield prompts of a campaign's own dataset that are in no finished round."""
    dataset_id = dataset_ids(session, campaign_id)[0]
    asked = {
        *session.scalars(
            select(Comparison.example_id)
            .join(Round, Round.id == Comparison.round_id)
            .where(Round.campaign_id == campaign_id)
        )
    }
    ids = dataset_records.example_ids(session, dataset_id)
    for id_, example in zip(ids, dataset_records.each_example(session, dataset_id), strict=True):
        if id_ not in asked:
            yield example


def next_number(session: Session, campaign_id: int) -> int:
    """Number of a campaign's next arrival, counted from 0."""
    count = select(func.count()).select_from(StreamBatch).where(StreamBatch.campaign_id == campaign_id)
    return session.scalars(count).one()


def dataset_ids(session: Session, campaign_id: int) -> list[int]:
    """The ids of a campaign's dataset and of its arrivals in order.

    The examples of these datasets, in this order, define the campaign's example positions.
    """
    first = session.scalars(select(Campaign.dataset_id).where(Campaign.id == campaign_id)).one()
    later = session.scalars(
        select(StreamBatch.dataset_id)
        .where(StreamBatch.campaign_id == campaign_id)
        .order_by(StreamBatch.number)
    )
    return [first, *later]


def example_ids(session: Session, campaign_id: int) -> list[int]:
    """Row ids of a campaign's examples by position, including arrived ones."""
    return [
        id_
        for dataset_id in dataset_ids(session, campaign_id)
        for id_ in dataset_records.example_ids(session, dataset_id)
    ]


def each_example(session: Session, campaign_id: int) -> Iterator[NewExample]:
    """Yield a campaign's examples by position, including arrived ones.

    The memory used is bounded.
    """
    for dataset_id in dataset_ids(session, campaign_id):
        yield from dataset_records.each_example(session, dataset_id)
