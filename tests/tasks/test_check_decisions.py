"""The last decision of each campaign is made again from the stored outcomes, and any other one is noticed."""

import json
import shutil
from contextlib import closing

import pytest
from scripted_engines import provide_all
from sqlalchemy import select, text
from stepwise_campaigns import run_campaign, write_campaign, write_duels
from stored_campaigns import new_database
from test_check_texts import CERTIFY
from test_command_line import winnow

from tests.golden_database.campaigns import CAMPAIGNS, DATABASE, unpack
from winnow.algorithms.registry import RULES_VERSION
from winnow.storage.admin.check import problems
from winnow.storage.admin.schema import upgrade
from winnow.storage.engine.database import open_database
from winnow.storage.engine.row_digests import COLUMN, digested_columns, row_digest
from winnow.storage.models import Campaign, Decision, Round, table_of
from winnow.storage.records import campaigns as campaign_records
from winnow.storage.records.rounds import decision_columns, round_digest
from winnow.tasks.queries.check_decisions import decision_findings
from winnow.tasks.setup.open_campaign import SELECTOR_RULES


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """A folder with a database of ended campaigns."""
    folder = tmp_path_factory.mktemp("recorded")
    database = new_database(folder / "winnow.db")
    certify = json.loads(json.dumps(CERTIFY)) | {"selector": {"name": "r-eval"}}
    with pytest.MonkeyPatch.context() as patch:
        provide_all(patch)
        run_campaign(
            database, write_campaign(folder, "means", batch_size=8, stopping={"budget": 24, "delta": 0.05})
        )
        run_campaign(database, write_duels(folder, "duels"))
        run_campaign(database, write_campaign(folder, "certified", **certify))
    database.close()
    return folder


@pytest.fixture
def copy(recorded, tmp_path, monkeypatch):
    """A folder with a copy of the database that can be tampered with."""
    provide_all(monkeypatch)
    shutil.copytree(recorded, tmp_path, dirs_exist_ok=True)
    return tmp_path


def changed(folder, *statements):
    """Change a database and compute all digests again; return what a check then finds of its decisions."""
    with closing(open_database(f"sqlite:///{folder / 'winnow.db'}")) as database:
        with database.writing() as session:
            for statement in statements:
                assert session.execute(text(statement)).rowcount > 0, statement
            session.flush()
            _seal(session)
        with database.reading() as session:
            assert problems(session) == []
            return list(decision_findings(session))


def _seal(session):
    """Compute the digests of all rounds and campaigns again, as somebody would who hides a change."""
    connection = session.connection()
    columns = decision_columns(table_of(Decision))
    query = select(Decision).join(Round, Round.id == Decision.round_id)
    for decision in session.scalars(query.order_by(Round.campaign_id, Round.number)).all():
        values = {name: getattr(decision, name) for name in columns}
        decision.digest = round_digest(connection, decision.round_id, values)
        session.flush()
    campaigns = table_of(Campaign)
    for campaign in session.scalars(select(Campaign)).all():
        names = digested_columns(campaigns)
        row = [getattr(campaign, name) for name in names]
        setattr(campaign, COLUMN, row_digest(campaigns, names, row))


def test_decisions_that_follow_from_their_outcomes_are_found_to(copy):
    assert changed(copy, "UPDATE campaigns SET id = id") == []
    with closing(open_database(f"sqlite:///{copy / 'winnow.db'}")) as database, database.reading() as session:
        versions = {each.versions[SELECTOR_RULES] for each in campaign_records.campaigns(session)}
    assert versions == {RULES_VERSION}


OF_LAST = """
    (SELECT max(d.id) FROM decisions d JOIN rounds r ON r.id = d.round_id
     JOIN campaigns c ON c.id = r.campaign_id WHERE c.name = '{}')
"""
STANDINGS = """
    UPDATE standings SET {} WHERE candidate_id = (SELECT max(k.id) FROM candidates k
    JOIN campaigns c ON c.id = k.campaign_id AND c.name = '{}'
    WHERE NOT EXISTS (SELECT 1 FROM decisions WHERE best_candidate_id = k.id))
"""
OUTCOME = """
    UPDATE comparisons SET outcome = CASE outcome WHEN 1 THEN 0 ELSE 1 END
    WHERE id = (SELECT min(x.id) FROM comparisons x
    JOIN rounds r ON r.id = x.round_id JOIN campaigns c ON c.id = r.campaign_id
    WHERE c.name = '{}' AND x.outcome IS NOT NULL)
"""
LOSS = """
    UPDATE comparisons SET human_loss = 1 - human_loss WHERE id = (SELECT min(id) FROM comparisons
    WHERE human_loss IS NOT NULL)
"""
NAMES = ("means", "duels", "certified")


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    ("change", "part"),
    [
        ("UPDATE decisions SET claim = json_set(claim, '$.kind', 'epsilon-best') WHERE id = {last}", "claim"),
        ("UPDATE decisions SET claim = json_set(claim, '$.delta', 0.01) WHERE id = {last}", "claim"),
        ("UPDATE decisions SET reason = 'decided', stop = 1 - stop WHERE id = {last}", "end"),
        (STANDINGS.replace("{}", "status = 'beaten'", 1), "status of candidates"),
        (STANDINGS.replace("{}", "estimate = 0.123", 1), "estimates"),
        (STANDINGS.replace("{}", "upper = 0.99999", 1), "upper bounds"),
        (STANDINGS.replace("{}", "lower = 0.00001", 1), "lower bounds"),
    ],
)
def test_a_decision_that_was_changed_with_its_digests_is_noticed(copy, name, change, part):
    (finding,) = changed(copy, change.replace("{last}", OF_LAST).replace("{}", name))
    assert (finding.campaign, finding.is_wrong) == (name, True)
    assert str(finding) == (
        f"the last decision of campaign '{name}' does not follow from the stored outcomes; it differs in: "
        f"{part}"
    )


@pytest.mark.parametrize(
    ("name", "change"),
    [("means", OUTCOME.format("means")), ("duels", OUTCOME.format("duels")), ("certified", LOSS)],
)
def test_an_outcome_that_was_changed_with_its_digests_is_noticed(copy, name, change):
    with closing(open_database(f"sqlite:///{copy / 'winnow.db'}")) as database:
        with database.writing() as session:
            session.execute(text(change))
            _seal(session)
        with database.reading() as session:
            assert [(each.campaign, each.is_wrong) for each in decision_findings(session)] == [(name, True)]


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (
            "UPDATE campaigns SET versions = json_set(versions, '$.selector-rules', '0') WHERE id = 1",
            f"this release decides by other rules (version {RULES_VERSION}, not 0)",
        ),
        (
            "UPDATE campaigns SET spec = json_set(spec, '$.selector.name', 'strange') WHERE id = 1",
            "its selector strange is third-party",
        ),
        (
            "UPDATE campaigns SET spec = json_set(spec, '$.selector_code', json('{\"a.py\": \"00\"}')) "
            "WHERE id = 1",
            "is third-party",
        ),
        (
            "UPDATE campaigns SET spec = json_set(spec, '$.history', json('[\"scores.csv\"]')) WHERE id = 1",
            "its history contains the file scores.csv, and no file is read here",
        ),
    ],
)
def test_what_cannot_be_made_again_is_told_and_is_no_fault(copy, change, told):
    (finding,) = changed(copy, change)
    assert (finding.campaign, finding.is_wrong) == ("means", False)
    assert str(finding).startswith("the last decision of campaign 'means' could not be checked: ")
    assert told in str(finding)
    checked = winnow(copy, "db", "check")
    assert checked.returncode == 1
    assert str(finding) in checked.stdout.splitlines()
    assert checked.stdout.splitlines()[-1].startswith("no problem was found in sqlite:///winnow.db")


def test_the_command_names_a_decision_that_does_not_follow(copy):
    changed(copy, STANDINGS.format("upper = 0.99999", "means"))
    checked = winnow(copy, "db", "check")
    assert checked.returncode == 1
    assert checked.stdout.startswith("the last decision of campaign 'means' does not follow from the stored")
    assert "is not sound: 1 problem was found" in checked.stdout


def test_a_decision_of_a_campaign_without_a_version_is_not_covered(copy):
    without = "UPDATE campaigns SET versions = json_remove(versions, '$.selector-rules')"
    assert changed(copy, without) == []
    (finding,) = changed(copy, STANDINGS.format("upper = 0.99999", "means"))
    assert (finding.is_wrong, finding.is_older) == (False, True)
    checked = winnow(copy, "db", "check")
    assert checked.returncode == 0, checked.stdout
    assert f"not covered, because an older Winnow began it: {finding}" in checked.stdout


def test_the_decisions_of_an_earlier_winnow_are_made_again(tmp_path):
    """Where this fails, a selector decides otherwise than it did: raise `RULES_VERSION`."""
    unpack(tmp_path)
    with closing(open_database(f"sqlite:///{tmp_path / DATABASE}")) as database:
        upgrade(database)
        with database.writing() as session:
            versions = f"json_set(versions, '$.{SELECTOR_RULES}', '{RULES_VERSION}')"
            assert session.execute(text(f"UPDATE campaigns SET versions = {versions}")).rowcount == len(
                CAMPAIGNS
            )
        with database.reading() as session:
            assert list(decision_findings(session)) == []


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE rounds SET arms = replace(arms, '0', '99')",
        "UPDATE rounds SET arms = '7'",
        "UPDATE rounds SET examples = '{}'",
        "UPDATE campaigns SET spec = '[]'",
        "UPDATE campaigns SET spec = '{}'",
        "UPDATE campaigns SET spec = json_set(spec, '$.selector', 7)",
        "UPDATE campaigns SET execution = '{}'",
        "UPDATE campaigns SET versions = '[]'",
        "UPDATE candidates SET model = '{}', prompt = '3'",
        "UPDATE candidates SET position = position + 9",
        "UPDATE examples SET fields = '[]', targets = '{}'",
        "UPDATE decisions SET claim = '7'",
        "UPDATE datasets SET n_examples = 0",
    ],
)
def test_values_of_another_shape_are_problems_and_no_tracebacks(copy, change):
    with closing(open_database(f"sqlite:///{copy / 'winnow.db'}")) as database, database.writing() as session:
        assert session.execute(text(change)).rowcount > 0
    checked = winnow(copy, "db", "check")
    assert checked.returncode == 1, checked.stdout
    assert "is not sound" in checked.stdout
    assert checked.stderr == ""


@pytest.mark.parametrize("budget", [8, 24, 45])
def test_a_decision_that_a_budget_planned_is_not_called_wrong_once_it_was_changed(
    budget, tmp_path, monkeypatch
):
    provide_all(monkeypatch)
    definition = {"selector": {"name": "halving"}, "stopping": {"budget": 60, "delta": 0.05}}
    file = write_campaign(tmp_path, "halved", numbers=range(60), batch_size=4, **definition)
    with closing(new_database(tmp_path / "winnow.db")) as database:
        for _ in range(6):
            run_campaign(database, file)
    assert changed(tmp_path, "UPDATE campaigns SET id = id") == []
    found = changed(tmp_path, f"UPDATE campaigns SET execution = json_set(execution, '$.budget', {budget})")
    assert [(each.is_wrong, each.sentence) for each in found] == [
        (False, "could not be checked: its budget may have been different at that time")
    ]
    back = "UPDATE campaigns SET execution = json_set(execution, '$.budget', 60)"
    edited = changed(tmp_path, back, STANDINGS.format("upper = upper * 0.9", "halved"))
    assert [each.is_wrong for each in edited] == [True]
