"""Labels belong to a dataset's examples; the losses they lead to are told back as they were stored."""

import pytest
from sqlalchemy import update
from stored_campaigns import NOW, decision, store_campaign

from winnow.storage.models import Campaign
from winnow.storage.queries import costs
from winnow.storage.queries.objective import certify
from winnow.storage.records import labels
from winnow.storage.records import outcomes as outcome_records
from winnow.storage.records import rounds as round_records
from winnow.storage.records.record_types import NewComparison


@pytest.fixture
def certifying(database):
    """A campaign that certifies; its examples have targets, but for what a test takes away."""
    return store_campaign(database, objective="certify")


def give(campaign, position, *targets, source="a file"):
    with campaign.database.writing() as session:
        labels.set_label(session, campaign.record.dataset_id, position, targets, source, NOW)


def read(campaign, query, *arguments):
    with campaign.database.reading() as session:
        return query(session, *arguments)


def without_targets(campaign):
    with campaign.database.writing() as session:
        session.connection().exec_driver_sql("UPDATE examples SET targets = '[]'")


def finish(campaign, losses):
    """One round of arm 0 on the first examples, with these losses."""
    round_ = campaign.plan(0, [0] * len(losses), list(range(len(losses))))
    comparisons = [
        NewComparison(
            position=position,
            candidate_a_id=campaign.candidate_ids[0],
            example_id=campaign.example_ids[position],
            judge="exact",
            outcome=0.5,
            human_loss=human,
            auto_loss=auto,
            unlabelled_loss=unlabelled,
            unlabelled_missing=missing,
        )
        for position, (human, auto, unlabelled, missing) in enumerate(losses)
    ]
    with campaign.database.writing() as session:
        outcome_records.add_outcomes(session, round_.id, comparisons, decision(), NOW)


def test_a_label_counts_where_the_dataset_has_no_target(certifying):
    dataset = certifying.record.dataset_id
    give(certifying, 1, "seven", "7")
    assert read(certifying, labels.targets, dataset, [0, 1]) == {0: ("x",), 1: ("x",)}
    without_targets(certifying)
    assert read(certifying, labels.targets, dataset, [0, 1]) == {0: None, 1: ("seven", "7")}
    assert read(certifying, labels.keys_without, dataset, [3, 1, 0, 3]) == ["e3", "e0"]


def test_an_example_that_no_human_can_answer_is_labelled_with_nothing(certifying):
    without_targets(certifying)
    give(certifying, 1)
    dataset = certifying.record.dataset_id
    assert read(certifying, labels.targets, dataset, [0, 1]) == {0: None, 1: ()}
    assert read(certifying, labels.keys_without, dataset, [0, 1, 2]) == ["e0", "e2"]


def test_a_label_takes_the_place_of_the_one_before(certifying):
    give(certifying, 2, "a")
    give(certifying, 2, "b", source="terminal")
    found = read(certifying, labels.labels, certifying.record.dataset_id)
    assert {position: (each.targets, each.source) for position, each in found.items()} == {
        2: (("b",), "terminal")
    }


def test_losses_come_back_bit_for_bit_and_count_as_labels_spent(certifying):
    losses = [(0.1 + 0.2, 1 / 3, None, 1.0), (None, 0.0, 1.0, 1 / 3)]
    finish(certifying, losses)
    (told,) = read(certifying, lambda session: list(round_records.told_rounds(session, certifying.record.id)))
    assert told.losses == losses
    assert read(certifying, costs.labels_used, certifying.record.id) == 2
    assert read(certifying, labels.used_positions, certifying.record.dataset_id) == {0, 1}


def test_comparisons_that_lack_a_loss_are_counted_by_what_the_selector_reads(certifying):
    complete, lacking = (0.0, 0.0, 0.0, 0.0), [(0.0, None, 0.0, 0.0), (0.0, 0.0, None, 1.0)]
    finish(certifying, [complete, *lacking, (0.0, 0.0, 0.5, 0.25), (None, 0.0, 0.0, 0.0)])
    campaign = certifying.record.id
    with certifying.database.reading() as session:
        by_candidate = labels.incomplete(session, campaign, reads_auto=True)
        assert sum(by_candidate) == 4
        assert sum(labels.incomplete(session, campaign, reads_auto=False)) == 1
    assert by_candidate == [4, *[0] * (len(by_candidate) - 1)]


def test_plain_means_are_of_the_human_losses_that_are_known(certifying):
    finish(certifying, [(0.25, None, None, None), (1.0, 0.0, 0.0, 0.0), (None, 1.0, 1.0, 0.0)])
    means = read(certifying, labels.mean_losses, certifying.record.id)
    assert means == [0.625, *[None] * (len(certifying.candidate_ids) - 1)]


def test_other_objectives_use_no_labels(campaign):
    finish(campaign, [(None, None, None, None)])
    assert read(campaign, labels.used_positions, campaign.record.dataset_id) == set()


def test_comparisons_without_a_score_are_counted_by_their_reason(campaign):
    campaign.finish(campaign.plan(0, [0, 1, 2, 0], [3, 3, 1, 2]), [None, None, None, 1.0])
    with campaign.database.reading() as session:
        assert certify.with_reason(session, campaign.record.id, "no_answer") == (3, 2)
        assert certify.with_reason(session, campaign.record.id, "unclear") == (0, 0)


def test_people_who_rate_outputs_use_no_label(certifying):
    finish(certifying, [(0.0, None, None, None), (1.0, None, None, None)])
    assert read(certifying, labels.used_positions, certifying.record.dataset_id) == {0, 1}
    with certifying.database.writing() as session:
        session.execute(update(Campaign).values(spec={**certifying.record.spec, "judge": {"type": "human"}}))
    assert read(certifying, labels.used_positions, certifying.record.dataset_id) == set()
