"""Tasks of people and their answers: given in order, held, counted while open, pruned with their campaign."""

import datetime as dt
from dataclasses import replace

import pytest
from sqlalchemy import event
from stored_campaigns import NOW, decision, store_campaign

from winnow.storage.admin import prune as pruning
from winnow.storage.models import Annotation, AnnotationTask
from winnow.storage.queries.objective.earlier_campaigns import count_scored, scored_positions
from winnow.storage.records import annotations
from winnow.storage.records import outcomes as outcome_records
from winnow.storage.records.record_types import AnnotationRecord, NewAnnotationTask

MINUTE = dt.timedelta(minutes=1)


@pytest.fixture
def asking(campaign):
    """A campaign with a planned round, whose three texts are to be rated."""
    round_ = campaign.plan(0, [0, 1, 2], [0, 0, 1])
    texts = campaign.texts(round_)
    wanted = [
        NewAnnotationTask(key=key * 64, example_id=campaign.example_ids[example], generation_a_id=text)
        for key, example, text in zip("bac", (0, 0, 1), texts, strict=True)
    ]
    with campaign.database.writing() as session:
        annotations.add_tasks(session, round_.id, wanted)
        annotations.add_tasks(session, round_.id, wanted)  # as a resumed round does
    return campaign, round_


def said(verdict=1.0, reason=None, annotator="Ann"):
    return AnnotationRecord(
        verdict=verdict, reason=reason, annotator=annotator, source="terminal", annotated_at=NOW
    )


def given(campaign, annotator="Ann", passed=(), held_since=NOW - MINUTE):
    with campaign.database.writing() as session:
        task = annotations.next_open(
            session, campaign.record.id, annotator=annotator, passed=passed, held_since=held_since
        )
        if task is not None:
            annotations.hold(session, task.id, annotator, NOW)
        return None if task is None else task.key[0]


def test_tasks_come_example_by_example_and_each_person_gets_another_one(asking):
    campaign, _ = asking
    assert [given(campaign), given(campaign)] == ["a", "a"]
    assert [given(campaign, "Ben"), given(campaign, "Cem"), given(campaign, "Dot")] == ["b", "c", None]
    assert given(campaign, "Dot", held_since=NOW + MINUTE) == "a"  # nobody was heard of for long
    assert given(campaign, "Ben", passed=["b" * 64]) is None
    with campaign.database.writing() as session:
        annotations.release(session, campaign.record.id, "Cem")
    assert given(campaign, "Ben", passed=["b" * 64]) == "c"


def test_no_more_tasks_are_read_than_it_takes_to_find_the_next_one(asking):
    campaign, _ = asking
    read = []
    with campaign.database.writing() as session:
        event.listen(session, "loaded_as_persistent", lambda _, task: read.append(task.key[0]))
        for passed, key in (((), "a"), (("a" * 64,), "b"), (("b" * 64, "z" * 64), "a")):
            task = annotations.next_open(
                session, campaign.record.id, annotator="Ann", passed=passed, held_since=NOW
            )
            assert task.key[0] == key
            session.expunge_all()
    assert read == ["a", "a", "b", "a", "b", "c"]


def test_a_task_is_open_until_it_is_answered_or_its_round_is_recorded(asking):
    campaign, round_ = asking
    with campaign.database.writing() as session:
        found = annotations.task(session, campaign.record.id, "a" * 16)
        assert not found.is_used
        annotations.set_annotation(session, found.task.id, said(annotator="Ben"))
        annotations.set_annotation(session, found.task.id, said(None, "unclear"))
        assert annotations.lacking(session, campaign.record.id) == 2
        assert annotations.annotators(session, campaign.record.id) == ["Ann"]
        known = annotations.answers(session, ["a" * 64, "b" * 64, "z" * 64])
        assert known == {"a" * 64: said(None, "unclear")}
        assert annotations.task(session, campaign.record.id, "z" * 16) is None
        assert annotations.task(session, campaign.record.id, "a%" * 50_000) is None
    assert [each.task.key[0] for each in everything(campaign)] == ["a", "b", "c"]
    with campaign.database.writing() as session:
        outcome_records.add_outcomes(session, round_.id, [], decision(), NOW)
        assert annotations.lacking(session, campaign.record.id) == 0
    assert all(each.is_used for each in everything(campaign))


def everything(campaign):
    with campaign.database.reading() as session:
        return annotations.tasks(session, campaign.record.id)


def test_tasks_are_pruned_with_their_campaign_and_keep_a_text_of_another_one(asking):
    campaign, _ = asking
    other = store_campaign(campaign.database, "other")
    planned = other.plan(0, [0], [0])
    with campaign.database.writing() as session:
        text = annotations.task(session, campaign.record.id, "a" * 64).task.generation_a_id
        shown = NewAnnotationTask(key="d" * 64, example_id=other.example_ids[0], generation_a_id=text)
        annotations.add_tasks(session, planned.id, [shown])
    for name, tasks, texts in (("letters", 1, 1), ("other", 0, 0)):
        with campaign.database.writing() as session:
            found = pruning.prunable(session, before=NOW + dt.timedelta(days=999), name=name)
            pruning.prune(session, found, is_gone=lambda lease: True, seen_by=scored_positions)
            assert session.query(AnnotationTask).count() == tasks
            connection = session.connection()
            left = connection.exec_driver_sql("SELECT count(*) FROM generations").scalar()
            assert left == texts
            assert session.query(Annotation).count() == 0


def test_a_campaign_that_people_judge_is_not_idle_and_what_goes_with_it_is_counted(asking):
    campaign, _ = asking
    later = NOW + dt.timedelta(days=40)

    def offered():
        with campaign.database.reading() as session:
            return pruning.prunable(session, before=NOW + dt.timedelta(days=30))

    assert [each.judgments for each in offered()] == [0]
    with campaign.database.writing() as session:
        found = annotations.task(session, campaign.record.id, "a" * 16)
        annotations.set_annotation(session, found.task.id, said())
    assert [(each.judgments, each.last_active) for each in offered()] == [(1, NOW)]
    with campaign.database.writing() as session:
        annotations.set_annotation(session, found.task.id, replace(said(), annotated_at=later))
    assert offered() == []


def test_what_people_saw_was_seen_whether_the_campaign_went_on_or_not(asking):
    campaign, _ = asking
    judged = replace(campaign.record, objective="certify")
    with campaign.database.writing() as session:
        assert scored_positions(session, judged) == set()
        found = annotations.task(session, campaign.record.id, "a" * 16)
        annotations.set_annotation(session, found.task.id, said())
        assert scored_positions(session, judged) == {0}
        assert count_scored(session, judged, [0, 1]) == 1
        assert count_scored(session, judged, [1]) == 0
