"""A prune beside a running campaign takes no text from under it; no comparison is ever of another text."""

import datetime as dt

import pytest
from both_databases import BOTH, fresh_database
from sqlalchemy import text
from stepwise_campaigns import (
    STEPS,
    Steps,
    begun,
    prune,
    run_campaign,
    run_round,
    write_campaign,
    write_duels,
)

from winnow.storage.admin import check
from winnow.storage.admin import prune as pruning
from winnow.storage.engine import statements
from winnow.storage.errors import CampaignDeleted, LeaseHeld, TextsLost
from winnow.storage.queries import campaign_views
from winnow.storage.records import campaigns as campaign_records
from winnow.storage.records import leases
from winnow.storage.records import rounds as round_records
from winnow.tasks.answer.earlier_campaigns import seen_by
from winnow.tasks.campaign.lease import LIFETIME, is_gone, now, this_process
from winnow.tasks.queries.check_texts import findings
from winnow.tasks.rounds import generate as generating

pytestmark = pytest.mark.usefixtures("scripted_models")

WRITERS = {"best-mean": write_campaign, "best-duel": write_duels}


@pytest.fixture(params=BOTH)
def database(request, tmp_path):
    with fresh_database(request.param, tmp_path, request) as database:
        yield database


@pytest.fixture
def prunes_and_others_come(database, tmp_path):
    """The campaign "old" is deleted, and another one stores as many new texts as it had."""

    def meanwhile():
        prune(database, "old")
        run_campaign(database, write_campaign(tmp_path, "next", numbers=range(100, 130)))

    return meanwhile


def prompts_and_examples(database, name):
    """What every candidate was shown beside the example that it is scored on."""
    with database.reading() as session:
        campaign = campaign_records.get_campaign(session, name)
        view = campaign_views.comparisons if campaign.objective == "best-mean" else _duels
        return [(row["prompt"], row["example"]) for row in view(session, campaign.id)]


def _duels(session, campaign_id):
    query = (
        "SELECT prompt, example FROM v_comparisons WHERE campaign = 'new' UNION ALL "
        "SELECT prompt_b, example FROM v_comparisons WHERE campaign = 'new'"
    )
    names, rows = statements.run_sql(session, query)
    return [dict(zip(names, row, strict=True)) for row in rows]


def assert_sound(database):
    with database.reading() as session:
        assert check.problems(session) == []
        assert [str(each) for each in findings(session)] == []


@pytest.mark.parametrize("objective", WRITERS)
@pytest.mark.parametrize("step", STEPS)
def test_a_prune_between_two_steps_of_a_round_that_reuses_texts(
    database, tmp_path, prunes_and_others_come, objective, step
):
    write = WRITERS[objective]
    run_campaign(database, write(tmp_path, "old"))
    run_campaign(database, write(tmp_path, "new"), between={step: prunes_and_others_come})
    shown = prompts_and_examples(database, "new")
    assert len(shown) >= 24
    for prompt, example in shown:
        number = example.removeprefix("e")
        assert prompt in (f"{number}=", f"Q {number}:")
    assert_sound(database)


def test_a_prune_between_finding_texts_and_taking_them_up_has_them_made_again(
    database, tmp_path, monkeypatch
):
    run_campaign(database, write_campaign(tmp_path, "old"))
    prunings = iter(["old"])

    def lose_and_write(*arguments):
        for name in prunings:
            prune(database, name)
        return leases.writing_under(*arguments)

    with begun(database, write_campaign(tmp_path, "new")) as campaign:
        steps = Steps(campaign)
        monkeypatch.setattr(generating, "writing_under", lose_and_write)
        steps.generate()
        steps.judge()
        steps.record()
    assert list(prunings) == []
    assert_sound(database)
    with database.reading() as session:
        assert len(prompts_and_examples(database, "new")) == 32
        assert campaign_views.totals(session, campaign.record.id)["generations"] == 32


def test_what_an_interrupted_round_took_up_is_there_when_it_goes_on(database, tmp_path):
    run_campaign(database, write_campaign(tmp_path, "old"))
    path = write_campaign(tmp_path, "new")
    with pytest.raises(KeyboardInterrupt):
        run_campaign(database, path, between={"generate": _interrupt})
    prune(database, "old")
    with begun(database, path) as campaign:
        run_round(campaign)
        with database.reading() as session:
            totals = campaign_views.totals(session, campaign.record.id)
            assert session.scalar(text("SELECT count(*) FROM pins")) == 0
    assert (totals["generations"], totals["comparisons"]) == (0, 32)
    assert_sound(database)


def _interrupt():
    raise KeyboardInterrupt


def test_texts_exchanged_by_hand_end_the_round_and_nothing_of_it_is_stored(database, tmp_path):
    run_campaign(database, write_campaign(tmp_path, "old"))
    path = write_campaign(tmp_path, "new")

    def exchange():
        with database.writing() as session:
            for key, old in (
                ("x", "(SELECT min(id) FROM generations)"),
                ("y", "(SELECT max(id) FROM generations)"),
            ):
                session.execute(text(f"UPDATE generations SET key = '{key}' WHERE id = {old}"))

    with pytest.raises(TextsLost, match=r"^2 of the outputs .* nothing of it was stored; resume"):
        run_campaign(database, path, between={"judge": exchange})
    with database.reading() as session:
        new = campaign_records.get_campaign(session, "new")
        assert round_records.unfinished_round(session, new.id) is not None
        assert campaign_views.totals(session, new.id)["comparisons"] == 0
    run_campaign(database, path)  # goes on, and has the two made again
    with database.reading() as session:
        assert {finding.campaign for finding in findings(session)} == {"old"}
        assert campaign_views.totals(session, new.id)["comparisons"] == 32


def test_a_campaign_that_is_run_is_not_deleted_and_one_that_ran_out_of_time_writes_nothing(
    database, tmp_path
):
    path = write_campaign(tmp_path, "old")
    with begun(database, path) as campaign:
        steps = Steps(campaign)
        with pytest.raises(LeaseHeld, match="'old' is being run by"):
            prune(database, "old")
        with database.writing() as session:
            later = now() + LIFETIME + dt.timedelta(hours=1)
            found = pruning.prunable(session, before=later, name="old")
            pruning.prune(session, found, is_gone=lambda _: True, seen_by=seen_by)
        run_campaign(database, path)  # a campaign of that name again, which is none of ours
        with pytest.raises(CampaignDeleted, match="was deleted meanwhile; nothing was written"):
            steps.generate()
    assert_sound(database)


def test_a_campaign_deleted_before_it_is_taken_up_again_is_named_so(database, tmp_path):
    run_campaign(database, write_campaign(tmp_path, "old"))
    with database.reading() as session:
        id_ = campaign_records.get_campaign(session, "old").id
    prune(database, "old")
    with pytest.raises(CampaignDeleted, match="to start it again, run its file: winnow run FILE"):
        leases.acquire(database, id_, this_process(), now=now(), lifetime=LIFETIME, is_gone=is_gone)
