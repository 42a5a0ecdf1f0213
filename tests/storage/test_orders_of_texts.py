"""Rows are ordered by texts in the same way everywhere: a language's order would put B behind a."""

from collections.abc import Iterator
from dataclasses import replace

import pytest
from sqlalchemy import Select, String, UnaryExpression, event, func, select
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.sql import ClauseElement, visitors
from sqlalchemy.sql.elements import _label_reference, _textual_label_reference
from sqlalchemy.sql.functions import max as greatest
from sqlalchemy.sql.functions import min as least
from stored_campaigns import store_campaign

from winnow.storage.columns import ByCodePoints
from winnow.storage.models import Campaign, Judgment
from winnow.storage.queries import unscored
from winnow.storage.records import annotations, campaigns, labels
from winnow.tasks.campaign.look import Look
from winnow.tasks.queries.views import VIEWS, answered_by, ask

REPLAYED = ("e-values", "weights", "agreement", "strengths", "labels", "history", "tags")
"""Views that ask nothing but what others ask, of campaigns whose files say more than that of this one."""


def texts_by_which(statement: ClauseElement) -> Iterator[ClauseElement]:
    """The texts by whose order, as the database has it, rows are ordered or one of them is taken."""
    for each in visitors.iterate(statement):
        if isinstance(each, Select):
            for by in each._order_by_clauses:
                while isinstance(by, UnaryExpression | _label_reference):
                    by = by.element
                # What is named by its label alone may be a text.
                may_be_text = isinstance(by, _textual_label_reference) or isinstance(by.type, String)
                if may_be_text and not isinstance(by, ByCodePoints):
                    yield by
        elif isinstance(each, least | greatest):
            (of,) = each.clauses
            if isinstance(of.type, String) and not isinstance(of, ByCodePoints):
                yield of


@pytest.fixture
def asked(database):
    """What was asked of the database, statement by statement."""
    statements = []
    event.listen(database.engine, "before_execute", lambda _, statement, *more: statements.append(statement))
    return statements


def test_a_text_that_the_database_orders_is_found():
    by_language = [
        select(Campaign.id).order_by(Campaign.name),
        select(Campaign.id).order_by(Campaign.id, Judgment.reason.desc().nulls_last()),
        select(func.min(Judgment.reason)),
        select(Campaign.id).where(Campaign.id.in_(select(Campaign.id).order_by(Campaign.name).limit(1))),
        select(Campaign.name.label("named")).order_by("named"),
    ]
    assert all(len(list(texts_by_which(each))) == 1 for each in by_language)
    by_code_points = select(Campaign.id, func.max(ByCodePoints(Campaign.name))).order_by(
        Campaign.id, ByCodePoints(Campaign.name).desc()
    )
    assert not list(texts_by_which(by_code_points))


@pytest.mark.parametrize("objective", ["best-mean", "best-duel", "certify", "route"])
def test_no_view_has_the_language_of_a_database_order_texts(database, asked, objective):
    campaign = store_campaign(database, objective=objective)
    record = replace(campaign.record, spec={**campaign.record.spec, "prompt_type": "input"})
    if objective == "route":
        campaign.finish(campaign.plan(0, [0], [0]), [1.0])
    with database.reading() as session:
        for view in answered_by(objective):
            if view not in REPLAYED:
                list(ask(Look(session, record), view))
        campaign_id = campaign.record.id
        annotations.annotators(session, campaign_id)
        annotations.tasks(session, campaign_id)
        labels.leases_on(session, campaign.record.dataset_id)
        campaigns.loads_by_model(session, campaign_id)
        unscored.of_round(session, 1)
        unscored.by_reason(session, campaign.record)
        unscored.shares(session, campaign_id)
    assert len(asked) > len(VIEWS) // 2
    assert [str(by) for each in asked for by in texts_by_which(each)] == []


def test_texts_are_ordered_by_code_points_in_every_database(database):
    names = ["b-2", "Beta", "alpha", "Zeta", "alpha.1", "B-1"]
    for name in names:
        store_campaign(database, name)
    with database.reading() as session:
        found = session.scalars(select(Campaign.name).order_by(ByCodePoints(Campaign.name)))
        assert list(found) == sorted(names)
    statement = select(Campaign.id).order_by(ByCodePoints(Campaign.name).desc())
    assert 'ORDER BY campaigns.name COLLATE "C" DESC' in str(statement.compile(dialect=postgresql.dialect()))
    assert "COLLATE" not in str(statement.compile(dialect=sqlite.dialect()))
