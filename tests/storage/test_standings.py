"""What decisions say of candidates is stored where it changed, and comes back as it was said."""

import itertools
import struct
from typing import get_args

import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st
from property_settings import tries
from sqlalchemy import func, select, text
from stored_campaigns import NOW, decision, store_campaign

from winnow.algorithms.claims import ArmStatus
from winnow.storage.errors import ConflictingRecord
from winnow.storage.models import Bet, Candidate, Decision, Difference, Ranking, Round, Standing
from winnow.storage.records import campaigns as campaign_records
from winnow.storage.records import candidate_states
from winnow.storage.records import outcomes as outcome_records
from winnow.storage.records.record_types import OUT, THE_ANSWER, NewCandidate, is_out

NAMES = (f"campaign-{number}" for number in itertools.count())
TABLES = (Standing, Ranking, Difference, Bet)

# As `tasks.rounds.record` hands them over: no NaN, no infinity, and no sign of a zero.
NUMBERS = st.none() | st.floats(allow_nan=False, allow_infinity=False).map(lambda each: each + 0.0)
COUNTS = st.none() | st.integers(0, 2**62)
ROUNDS = st.none() | st.integers(0, 2**31 - 1)
STATUSES = st.sampled_from(["active", "eliminated", "best"])


def lists(values, n):
    return st.lists(values, min_size=n, max_size=n)


def said(n):
    """What a decision may say of n candidates."""
    interval = {name: lists(NUMBERS, n) for name in ("estimates", "lower", "upper")}
    against = st.fixed_dictionaries(
        {"against": st.integers(0, n - 1), "delta": st.floats(0.0, 1.0), **interval}
    )
    bets = st.fixed_dictionaries(
        {
            "wealths": lists(NUMBERS, n),
            "levels": lists(NUMBERS, n),
            "out_in_round": lists(ROUNDS, n),
            "out_at": lists(COUNTS, n),
        }
    )
    return st.fixed_dictionaries(
        {
            **interval,
            "status": lists(STATUSES, n),
            "ranking": st.none() | lists(NUMBERS, n),
            "differences": st.none() | against,
            "bets": st.none() | bets,
        }
    )


def with_one_changed(before, after, position):
    """The first, but of the candidate at a position what the second says."""
    if not isinstance(before, dict):
        return [after[at] if at == position else each for at, each in enumerate(before)]
    return {
        name: with_one_changed(value, after[name], position)
        if isinstance(value, dict | list) and after[name] is not None
        else value
        for name, value in before.items()
    }


@st.composite
def histories(draw):
    """Some decisions one after the other, most of which change one candidate; a third one may join."""
    n, told = 2, []
    for _ in range(draw(st.integers(1, 6))):
        n += draw(st.booleans()) and n == 2
        new = draw(said(n))
        small = told and len(told[-1]["status"]) == n and draw(st.integers(0, 3))
        told.append(with_one_changed(told[-1], new, draw(st.integers(0, n - 1))) if small else new)
    return told


def bits(value):
    """A value so that equal ones are the same bit for bit, and of the same type."""
    if isinstance(value, dict):
        return {name: bits(each) for name, each in value.items()}
    if isinstance(value, list):
        return [bits(each) for each in value]
    return struct.pack("d", value) if isinstance(value, float) else (type(value), value)


def tell(campaign, number, before=None, **believed):
    """Store a round without comparisons, and what is believed after it."""
    with campaign.database.writing() as session:
        round_ = campaign_round(session, campaign, number)
        new = decision(best_candidate_id=campaign.candidate_ids[0], **believed)
        return outcome_records.add_outcomes(session, round_, [], new, NOW, before)


def campaign_round(session, campaign, number):
    row = Round(
        campaign_id=campaign.record.id, number=number, planned_after=number, arms=[], examples=[],
        planned_at=NOW,
    )  # fmt: skip
    session.add(row)
    session.flush()
    return row.id


def join(campaign, name):
    with campaign.database.writing() as session:
        new = NewCandidate(name=name, model={}, prompt={}, sampling={})
        campaign_records.grow_campaign(session, campaign.record.id, spec={}, candidates=[new])


def told(campaign):
    """What every decision of a campaign says of the candidates that it knew of, as it is read back."""
    with campaign.database.reading() as session:
        rows = session.execute(
            select(Decision, Candidate.position)
            .join(Round, Round.id == Decision.round_id)
            .outerjoin(Candidate, Candidate.id == Decision.against_candidate_id)
            .where(Round.campaign_id == campaign.record.id)
            .order_by(Round.number)
        ).all()
        return [known_of(session.connection(), campaign.record.id, found, against) for found, against in rows]


def known_of(connection, campaign_id, found, against):
    of_all, n_joined = candidate_states.said_of_candidates(connection, campaign_id, found, against)
    n = len(of_all["status"]) - n_joined
    cut = {name: value[:n] for name, value in of_all.items() if isinstance(value, list)}
    bets = of_all.get("bets")
    return {
        "ranking": None,
        "differences": of_all.get("differences"),
        **cut,
        "bets": bets and {name: values[:n] for name, values in bets.items()},
    }


def comes_back(database, history, resumed):
    """Whether a history is read back as it was told, with a process that begins anew before some rounds."""
    campaign = store_campaign(database, next(NAMES), names="ab")
    before, n = None, 2
    for number, believed in enumerate(history):
        for _ in range(len(believed["status"]) - n):
            join(campaign, "c")
            n += 1
        before = tell(campaign, number, None if number in resumed else before, **believed)
    return bits(told(campaign)) == bits(history)


@tries(20, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(history=histories(), resumed=st.sets(st.integers(0, 5)))
def test_what_was_said_after_each_round_comes_back_bit_for_bit(database, history, resumed):
    assert comes_back(database, history, resumed)


EXTREMES = {"status": ["active", "best"], "lower": [0.0, 5e-324], "upper": [1.0, 1.7976931348623157e308]}
FIRST = {**EXTREMES, "estimates": [0.1 + 0.2, None], "ranking": None, "differences": None, "bets": None}


def changed(**fields):
    return {**FIRST, **fields}


def test_the_same_check_sees_a_change_that_was_not_stored(database, monkeypatch):
    history = [FIRST, changed(upper=[1.0, 2.0])]
    assert comes_back(database, history, set())
    find = candidate_states._changed_positions
    monkeypatch.setattr(candidate_states, "_changed_positions", lambda new, old: find(new[:2], old[:2]))
    assert not comes_back(database, history, set())


def test_what_is_not_of_the_round_before_is_no_measure_of_what_changed(campaign):
    believed = {"estimates": [0.5] * 3}
    first = tell(campaign, 0, **believed)
    tell(campaign, 1, first, estimates=[0.75] * 3)
    # Told by its first round alone, nothing would have changed.
    tell(campaign, 2, first, **believed)
    assert [each["estimates"] for each in told(campaign)] == [[0.5] * 3, [0.75] * 3, [0.5] * 3]


def rows_of(campaign):
    with campaign.database.reading() as session:
        return [session.scalar(select(func.count()).select_from(table)) for table in TABLES]


def test_a_round_reads_nothing_and_stores_what_changed_however_many_rounds_there_were(campaign, monkeypatch):
    bets = {"wealths": [1.0] * 3, "levels": [20.0] * 3, "out_in_round": [None] * 3, "out_at": [None] * 3}
    interval = {name: [0.0] * 3 for name in ("estimates", "lower", "upper")}
    still = {"ranking": [0.5] * 3, "bets": bets, "differences": {"against": 0, "delta": 0.05, **interval}}
    before = tell(campaign, 0, estimates=[0.0] * 3, **still)
    assert rows_of(campaign) == [3, 3, 3, 3]
    monkeypatch.delattr(candidate_states, "known_after")
    for number in range(1, 9):
        before = tell(campaign, number, before, estimates=[0.0, number / 8, 0.0], **still)
    assert rows_of(campaign) == [3 + 8, 3, 3, 3]
    with campaign.database.reading() as session:
        assert list(session.scalars(select(Decision.changes).order_by(Decision.id))) == [12, *[1] * 8]


def test_a_decision_of_more_candidates_than_there_are_is_refused(campaign):
    with pytest.raises(ConflictingRecord, match="has 4 candidates, but its campaign has 3"):
        tell(campaign, 0, **{name: [None] * 4 for name in ("estimates", "lower", "upper", "status")})


def test_a_round_is_not_told_after_a_later_one(campaign):
    with campaign.database.writing() as session:
        first = campaign_round(session, campaign, 0)
    tell(campaign, 1)
    with campaign.database.writing() as session, pytest.raises(ConflictingRecord, match="out of order"):
        outcome_records.add_outcomes(session, first, [], decision(), NOW)


def test_the_view_has_a_row_where_something_changed(campaign):
    tell(campaign, 0, estimates=[0.5, None, None])
    tell(campaign, 1, estimates=[0.5, 0.25, None], status=["active", "eliminated", "active"])
    with campaign.database.reading() as session:
        rows = session.execute(
            text("SELECT round, candidate, estimate, status FROM v_standings ORDER BY round, candidate")
        ).all()
    assert [tuple(row) for row in rows] == [
        (0, "a", 0.5, "active"),
        (0, "b", None, "active"),
        (0, "c", None, "active"),
        (1, "b", 0.25, "eliminated"),
    ]


def test_bets_decide_who_is_out_where_the_status_leaves_it_open():
    open_ = {"active", "not-better", "certified", "passed", "untested", "baseline", "no-worse", "better"}
    assert OUT | {*THE_ANSWER} | open_ == {*get_args(ArmStatus)}
    assert all(is_out(each, None) and is_out(each, 3) for each in OUT)
    assert not any(is_out(each, 3) for each in THE_ANSWER)
    assert not is_out("not-better", None)
    assert not is_out("active", None)
    assert is_out("not-better", 0)
    assert is_out("active", 0)
