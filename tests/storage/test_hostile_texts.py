"""Whatever a model says is stored and read back as it is."""

import pytest
from hostile_texts import HOSTILE_TEXTS
from sqlalchemy import select
from stored_campaigns import NOW, decision, generation

from winnow.storage.engine import statements
from winnow.storage.errors import NotStorable, StorageError
from winnow.storage.models import Campaign
from winnow.storage.queries import campaign_views
from winnow.storage.records import campaigns as campaign_records
from winnow.storage.records import generations as generation_records
from winnow.storage.records import outcomes as outcome_records
from winnow.storage.records.record_types import NewComparison


def stored(campaign, texts):
    """Store texts as prompt, output, answer and detail; return them as the comparisons view shows them."""
    count = len(texts)
    round_ = campaign.plan(0, [i % 3 for i in range(count)], [i // 3 for i in range(count)])
    made = [generation(f"k{i}", prompt=each, text=each) for i, each in enumerate(texts)]
    with campaign.database.writing() as session:
        ids = generation_records.add_generations(session, round_.id, made, NOW)
        assert ids == generation_records.texts_by_key(session, [each.key for each in made])
        found = [
            NewComparison(
                position=i,
                candidate_a_id=campaign.candidate_ids[round_.arms[i]],
                example_id=campaign.example_ids[round_.examples[i]],
                generation_a_id=ids[f"k{i}"].id,
                judge="exact",
                answer=each,
                reason="no_answer",
                detail=each,
            )
            for i, each in enumerate(texts)
        ]
        outcome_records.add_outcomes(session, round_.id, found, decision(), NOW)
    with campaign.database.reading() as session:
        rows = list(campaign_views.comparisons(session, campaign.record.id))
    return [(row["prompt"], row["text"], row["answer"], row["detail"]) for row in rows]


def test_hostile_texts_come_back_character_by_character(campaign):
    assert stored(campaign, HOSTILE_TEXTS) == [(each,) * 4 for each in HOSTILE_TEXTS]


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("a\0b", "a\N{REPLACEMENT CHARACTER}b"),
        ("\0é", "\N{REPLACEMENT CHARACTER}é"),
        ("half \ud83d", "half ?"),
    ],
)
def test_what_is_no_text_anywhere_is_replaced_and_the_rest_kept(campaign, given, kept):
    assert stored(campaign, [given]) == [(kept,) * 4]


def test_names_keys_and_json_keep_everything_but_what_is_no_text(campaign):
    content = {"nul": "a\0b", "half": "\ud83d", "all": "".join(HOSTILE_TEXTS[:9])}
    with campaign.database.writing() as session:
        campaign_records.set_execution(session, campaign.record.id, content)
    with campaign.database.reading() as session:
        assert campaign_records.get_campaign(session, "letters").execution == content


def test_a_prompt_is_stored_once_however_often_it_is_shown(campaign):
    round_ = campaign.plan(0, [0], [0])
    for portion in ("one", "two"):
        with campaign.database.writing() as session:
            made = [generation(f"{portion}{i}", prompt="the same") for i in range(3)]
            generation_records.add_generations(
                session, round_.id, [*made, generation(portion, prompt=portion)], NOW
            )
    with campaign.database.reading() as session:
        _, rows = statements.run_sql(session, "SELECT text FROM prompts ORDER BY text")
        assert list(rows) == [("one",), ("the same",), ("two",)]


def test_a_name_that_is_no_text_ends_in_a_sentence(database):
    with pytest.raises(NotStorable, match="half a surrogate pair"), database.reading() as session:
        campaign_records.find_campaign(session, "\udcff")


def test_a_number_that_is_too_large_ends_in_a_sentence(database):
    with pytest.raises(StorageError), database.reading() as session:
        session.execute(select(Campaign).where(Campaign.id == 10**30))
