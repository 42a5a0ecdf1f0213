"""What a campaign cost, wherever a user looks: what is lost to loading, and what other campaigns spared."""

from dataclasses import replace

import pytest
from stored_campaigns import NOW, canary, new_database, store_campaign

from winnow.flows.reports.html.sections.standard import cost_in_seconds
from winnow.flows.reports.summary import summary_lines
from winnow.storage.models import ReuseStats
from winnow.storage.records import campaigns
from winnow.storage.records import campaigns as campaign_records
from winnow.storage.records import canaries as canary_records
from winnow.storage.records.record_types import NewModelLoad
from winnow.tasks.campaign.look import Look
from winnow.tasks.queries.status import campaign_status
from winnow.tasks.text.phrases import amount


@pytest.fixture
def campaign(tmp_path):
    database = new_database(tmp_path / "winnow.db")
    campaign = store_campaign(database)
    campaign.finish(campaign.plan(0, [0, 1], [0, 0]), [1.0, 0.0])
    yield campaign
    database.close()


def add_load(campaign, seconds):
    with campaign.database.writing() as session:
        load = NewModelLoad(model="m", devices=(), kind="load", seconds=seconds, ended_at=NOW)
        campaigns.add_loads(session, campaign.record.id, [load])


def seen(campaign):
    """What was spent in the summary, and the section of the page."""
    with campaign.database.reading() as session:
        record = campaign_records.get_campaign(session, campaign.record.name)
        status = campaign_status(Look(session, record))
        lines = summary_lines(status, "sqlite:///winnow.db")
        return status, next(line for line in lines if "spent" in line), cost_in_seconds(Look(session, record))


def test_without_a_load_nothing_is_said_of_loading(campaign):
    status, cost, section = seen(campaign)
    assert status.share_of_loading == 0.0
    assert cost.endswith("s of engine time")
    assert "Loading" not in section.note
    assert [bar.name for bar in section.figure.data] == ["answering"]


def test_a_price_is_told_where_all_models_have_one_and_no_limit_tells_of_it(campaign):
    answering = seen(campaign)[0].totals["engine_seconds"]
    add_load(campaign, 3 * answering)
    assert told(campaign) is None
    assert told(campaign, price_per_hour=1800.0) == f"price {amount(2 * answering)}"
    assert told(campaign, prices={"elsewhere": {"input": 1.0, "output": 1.0}}) is None
    tokens = seen(campaign)[0].totals["input_tokens"]
    price = f"price {amount(2e-6 * tokens)}"
    prices = {"m": {"input": 2.0, "output": 0.0}}
    assert told(campaign, prices=prices) == price
    assert told(campaign, prices=prices, currency="EUR") == f"{price} EUR"
    assert told(campaign, budget={"cost": 9.0}, price_per_hour=1800.0) is None


def told(campaign, budget=100, **execution):
    """The price in the line `spent`, None where there is none."""
    fields = {**campaign.record.execution, "budget": budget, "execution": execution}
    spec = {**campaign.record.spec, "models": [{"name": "m", "provider": "vllm", "model": "m"}]}
    record = replace(campaign.record, execution=fields, spec=spec)
    with campaign.database.reading() as session:
        status = campaign_status(Look(session, record), in_full=True)
    cost = next(line for line in summary_lines(status, "sqlite:///winnow.db") if "spent" in line)
    return next((part for part in cost.split(", ") if part.startswith("price")), None)


def test_loads_stand_beside_the_time_of_answers_with_their_share_of_both(campaign):
    answering = seen(campaign)[0].totals["engine_seconds"]
    assert answering > 0
    add_load(campaign, 3 * answering)
    status, cost, section = seen(campaign)
    assert status.share_of_loading == pytest.approx(0.75)
    assert cost.endswith("s for 1 load of models (75% of both)")
    assert "(1 load), 75% of all engine time" in section.note
    answers, loading = section.figure.data
    assert (sum(answers.x), sum(loading.x)) == (answering, 3 * answering)


def test_texts_that_other_campaigns_had_made_are_told_apart(campaign):
    assert "reuse" not in seen(campaign)[1]
    spared = {"input_tokens": 5, "output_tokens": 5, "seconds": 1.0, "taken_from_id": 0}
    with campaign.database.writing() as session:
        for name, role in (("a", "candidate"), ("j", "judge")):
            session.add(
                ReuseStats(campaign_id=campaign.record.id, role=role, name=name, generations=2, **spared)
            )
    status, cost, _ = seen(campaign)
    assert cost.endswith("s of engine time; reused 4 outputs of other campaigns or trials")
    assert status.totals["generations"] == 2


def test_what_canaries_took_is_told_apart_from_all_that_limits_count(campaign):
    before = seen(campaign)[0].totals
    with campaign.database.writing() as session:
        for verdict, fields in (("first", {"repeated": ["a", "b"], "output_tokens": 998}), ("same", {})):
            canary_records.add_canary(session, campaign.record.id, canary(verdict, **fields), NOW)
    with campaign.database.reading() as session:
        status = campaign_status(Look(session, campaign.record), in_full=True)
    cost = next(line for line in summary_lines(status, "sqlite:///winnow.db") if "spent" in line)
    assert cost.endswith("s of engine time; and 6 canary prompts (2 of 16 each time), 1,001 tokens")
    assert status.totals == before
