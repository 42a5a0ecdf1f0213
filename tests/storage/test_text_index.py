"""Words are found with an index as without one, whatever came since it was built."""

import datetime as dt
from dataclasses import replace

import pytest
from sqlalchemy import text
from stored_campaigns import NOW, decision, generation, store_campaign

from winnow.storage.admin import prune as pruning
from winnow.storage.engine.raw_sql import driver_of
from winnow.storage.errors import QueryRefused
from winnow.storage.queries import browse
from winnow.storage.queries.browse import Filters
from winnow.storage.queries.objective.earlier_campaigns import scored_positions
from winnow.storage.records import generations as generation_records
from winnow.storage.records import outcomes as outcome_records
from winnow.storage.records import text_index
from winnow.storage.records.text_index import BLOCK, build, indexed_blocks

A_ROUND = 60
WORDS = (
    "Text",
    "text of 1",
    "number 17;",
    'SAY "hi"',
    "100%",
    "ÉÉ",
    "no such words",
    "of",
    "e7",
    "letters 2",
    "number 17\0;",
    "half \ud83d;",
)


@pytest.fixture
def filled(database):
    campaign = store_campaign(database, n_examples=200)
    other = store_campaign(database, "other", n_examples=200)
    for number in range(3):
        fill(campaign, number)
        fill(other, number)
    return campaign


def fill(campaign, number, more=()):
    """Store a round, each comparison with a text of its own; the last ones have more at their ends."""
    pairs = [divmod(number * A_ROUND + i, 3) for i in range(A_ROUND)]
    round_ = campaign.plan(number, [arm for _, arm in pairs], [example for example, _ in pairs])
    said = [
        f'text of {number}: number {i}; say "hi" ÉÉ 100%_ {campaign.record.name} {number}'
        for i in range(A_ROUND)
    ]
    said = [f"{each} {end}" for each, end in zip(said, [""] * (A_ROUND - len(more)) + [*more], strict=True)]
    made = [generation(f"{campaign.record.name} {number} {i}", text=each) for i, each in enumerate(said)]
    rows = campaign.comparisons(round_, [1.0] * A_ROUND)
    with campaign.database.writing() as session:
        ids = [text.id for text in generation_records.add_generations(session, round_.id, made, NOW).values()]
        rows = [replace(row, generation_a_id=id_) for row, id_ in zip(rows, ids, strict=True)]
        outcome_records.add_outcomes(session, round_.id, rows, decision(), NOW)


def found(campaign, words, *, before=None, most=1_000, **filters):
    with campaign.database.reading() as session:
        rows = browse.comparisons(
            session,
            campaign.record.id,
            Filters(words=words, **filters),
            before=before,
            most=most,
            characters=9,
        )
    return [(row["round"], row["position"]) for row in rows]


def test_words_are_found_with_an_index_as_without_one(filled, monkeypatch):
    monkeypatch.setattr(browse, "MOST_BLOCKS", 2)
    monkeypatch.setattr(text_index, "BLOCKS_AT_ONCE", 2)
    monkeypatch.setattr(text_index, "NEWEST", 2)
    asked = [{}, {"before": (1, 7)}, {"most": 4}, {"candidate": "b"}]
    without = [[found(filled, words, **more) for more in asked] for words in WORDS]
    assert [len(rows[0]) for rows in without] == [180, 60, 3, 180, 180, 180, 0, 180, 3, 60, 0, 0]
    steps = []
    assert build(filled.database, lambda *step: steps.append(step)) == 320  # of 360, whole blocks alone
    assert steps == [(128, 320), (256, 320), (320, 320)]
    assert [[found(filled, words, **more) for more in asked] for words in WORDS] == without
    fill(filled, 3)
    assert found(filled, "letters 3") == [(3, i) for i in reversed(range(A_ROUND))]
    assert len(found(filled, "text of")) == 240
    assert build(filled.database) == 384
    assert len(found(filled, "text of")) == 240


HOSTILE = (
    *("İstanbul", "istanbul", "ISTANBUL", "ıstanbul", "i\u0307stanbul", "\u0307\u0307\u0307\u0307", "ııııı"),
    *("ΟΔΥΣΣΕΥΣ", "οδυσσευς", "οδυσσευσ", "ΛΟΓΟΣ του", "straße", "strasse", "STRAẞE", "ﬁnden", "finden"),
    *(
        "e\u0301te\u0301",
        "été",
        "E\u0301T",
        "a\u0304\u0304\u0304",
        "\u212aelvin",
        "\U00010400\U00010429\U00010402",
    ),
    *("\ufeff\u202e\ufffe\uffff", "a\nb\rc", 'say "" AND "', "\\%_/*^:-", "ǄǅǆǄ", "ŉŉŉ", "ΐΰΐ"),
)


def test_letters_of_any_alphabet_are_found_with_an_index_as_without_one(database):
    """Where one is written as two in the other case, or otherwise at the end of a word."""
    campaign = store_campaign(database, n_examples=200)
    apart = [HOSTILE[number::3] for number in range(3)]  # in blocks of their own
    for number, texts in enumerate([*apart, ()]):
        fill(campaign, number, texts)
    asked = {
        part
        for each in HOSTILE
        for word in (each, each.upper(), each.lower(), each.title(), each.casefold())
        for part in (word, word[1:], word[:4])
        if len(part) >= text_index.SEQUENCE
    }
    without = {words: found(campaign, words) for words in asked}
    for number, texts in enumerate(apart):
        assert all((number, A_ROUND - i) in without[each] for i, each in enumerate(reversed(texts), 1))
    assert build(database) == 192
    assert {words: found(campaign, words) for words in asked} == without


def test_what_a_server_may_take_for_one_letter_is_one_in_the_index():
    cases = [(each, each.lower(), each.upper()) for each in map(chr, range(0x110000))]
    cased = [case for case in cases if len({*case}) > 1]
    assert len(cased) > 2_000
    assert [case for case in cased if len({text_index.folded(each) for each in case}) > 1] == []


def test_an_indexed_word_is_looked_for_where_the_index_names_it_alone(filled):
    build(filled.database)
    with filled.database.writing() as session:
        session.execute(text("UPDATE generations SET text = 'zebra' WHERE key = 'letters 0 5'"))
    assert (
        found(filled, "zebra") == []
    )  # it was written behind the index's back, which shows that it is asked
    assert found(filled, "eb") == [(0, 5)]  # too short for the index


@pytest.mark.parametrize("backend", ["sqlite"], indirect=True)
def test_a_search_that_is_broken_off_within_the_index_says_so(filled, monkeypatch):
    build(filled.database)
    asked, breaks = text_index.candidate_blocks, iter([True])

    def too_slow(session, words, **blocks):
        driver_of(session.connection()).set_progress_handler(lambda: next(breaks, False), 1)
        return asked(session, words, **blocks)

    monkeypatch.setattr(browse, "candidate_blocks", too_slow)
    with pytest.raises(QueryRefused, match=r"the search was aborted \(interrupted\)"):
        found(filled, "text of 1")


def test_what_was_deleted_is_not_found(filled):
    build(filled.database)
    with filled.database.writing() as session:
        old = pruning.prunable(session, before=NOW + dt.timedelta(days=1), name="other")
        pruning.prune(session, old, is_gone=lambda _: True, seen_by=scored_positions)
    assert len(found(filled, "text of 1")) == 60


def test_there_is_no_index_before_it_is_built(filled):
    with filled.database.reading() as session:
        assert indexed_blocks(session) is None
    build(filled.database)
    with filled.database.reading() as session:
        assert indexed_blocks(session) == 360 // BLOCK
