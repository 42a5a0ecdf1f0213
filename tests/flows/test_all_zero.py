"""Scores that are all 0: the outcome stays as it is stored, and no pipeline takes it for a success."""

import json
from xml.etree.ElementTree import fromstring

import pytest
from report_campaigns import change
from stored_campaigns import new_database, store_campaign

from winnow.flows import exit_codes
from winnow.flows.cli.options import overrides_of
from winnow.flows.reports.export.gate_files import gate_markdown, junit_xml
from winnow.storage.records import campaigns as campaign_records
from winnow.tasks.answer.sentences.answer_lines import UNSOLVED, headline
from winnow.tasks.answer.status_lines import status_lines
from winnow.tasks.campaign.look import Look
from winnow.tasks.queries.status import campaign_status
from winnow.tasks.spec.sections.execution import ExecutionSpec

EXACT = {"kind": "exact", "delta": None, "raised_by": [], "assumptions": [], "refuted": []}
ENDED = {
    "estimates": [0.0] * 3,
    "lower": [0.0] * 3,
    "upper": [0.0] * 3,
    "claim": EXACT,
    "stop": True,
    "reason": "exhausted",
}

CERTIFY = {
    "certify": {"alpha": 0.1, "drop": None, "baseline": None, "cost": "custom", "costs": {}},
    "candidate_costs": {"a": 3, "b": 2, "c": 1},
}


@pytest.fixture
def ended(tmp_path):
    """The status of a campaign that has ended with these scores of three candidates."""

    def status(scores, *, execution=None, selector=None, objective="best-mean", **fields):
        database = new_database(tmp_path / "winnow.db")
        campaign = store_campaign(database, objective=objective)
        spec = {**campaign.record.spec, **({"selector": selector} if selector else {}), **CERTIFY}
        given = {"budget": 100, "execution": execution or {}}
        statement = "UPDATE campaigns SET spec = ?, execution = ?"
        change(tmp_path, statement, json.dumps(spec), json.dumps(given))
        round_ = campaign.plan(0, [0, 1, 2], [0, 0, 0])
        campaign.finish(round_, scores, **({"best": 0, "status": ["tied"] * 3} | ENDED | fields))
        with database.reading() as session:
            return campaign_status(Look(session, campaign_records.get_campaign(session, "letters")))

    return status


def test_a_tie_of_candidates_that_solve_nothing_says_so_and_is_no_success(ended):
    status = ended([0.0] * 3)
    assert (status.answer.outcome, status.answer.claim.kind) == ("tied", "exact")
    assert headline(status.answer, status.state) == f"tied ({UNSOLVED}), exact"
    assert exit_codes.exit_code(status) == 3
    said = dict(status_lines(status.answer, status.totals))["scores"]
    assert said.startswith(f"all are 0: {UNSOLVED}; read outputs and targets (winnow query letters comparis")
    assert "--allow-all-zero" in said


def test_what_has_no_score_is_none_that_was_solved(ended):
    status = ended([0.0, None, 0.0], status=["best", "dropped", "eliminated"])
    assert UNSOLVED in headline(status.answer, status.state)
    assert exit_codes.exit_code(status) == 3


def test_a_hard_benchmark_may_be_allowed(ended):
    status = ended([0.0] * 3, execution={"allow_all_zero": True})
    assert headline(status.answer, status.state) == f"tied ({UNSOLVED}), exact"
    assert dict(status_lines(status.answer, status.totals))["scores"] == f"all are 0: {UNSOLVED}"
    assert exit_codes.exit_code(status) == 0


@pytest.mark.parametrize(
    ("scores", "fields"),
    [
        ([0.0, 1e-9, 0.0], {}),
        ([1.0] * 3, {}),
        ([0.0] * 3, {"stop": False, "reason": "running"}),
        ([None] * 3, {"status": ["dropped"] * 3, "reason": "all-dropped", "best": None}),
    ],
)
def test_other_campaigns_say_nothing_of_it(ended, scores, fields):
    status = ended(scores, **fields)
    assert not status.answer.is_unsolved
    assert UNSOLVED not in headline(status.answer, status.state)
    assert "scores" not in dict(status_lines(status.answer, status.totals))


def test_preferences_are_no_scores(ended, tmp_path):
    assert not ended([0.0] * 3, objective="best-duel").answer.is_unsolved


GATE = {"name": "gate", "params": {"baseline": "a"}}
NO_WORSE = {"best": None, "status": ["baseline", "no-worse", "no-worse"], "selector": GATE}


def test_a_gate_of_candidates_that_solve_nothing_lets_nothing_pass(ended):
    status = ended([0.0] * 3, **NO_WORSE)
    assert headline(status.answer, status.state) == f"no worse ({UNSOLVED}), exact"
    assert exit_codes.exit_code(status) == 3
    suite = fromstring(junit_xml(status))
    assert (suite.get("tests"), suite.get("errors"), suite.get("failures")) == ("2", "2", "0")
    assert UNSOLVED in "".join(suite.itertext())
    assert UNSOLVED in gate_markdown(status).splitlines()[0]


def test_a_gate_may_be_allowed_to_pass_all_the_same(ended):
    status = ended([0.0] * 3, execution={"allow_all_zero": True}, **NO_WORSE)
    assert exit_codes.exit_code(status) == 0
    assert fromstring(junit_xml(status)).get("errors") == "0"


def test_certified_nobody_with_losses_of_1_alone_says_so_too(ended):
    nobody = {"best": None, "status": ["eliminated"] * 3, "reason": "none-certified"}
    status = ended([0.0] * 3, objective="certify", **nobody)
    assert headline(status.answer, status.state) == f"none ({UNSOLVED})"
    assert exit_codes.exit_code(status) == 3


def test_the_option_is_a_key_that_is_stored_where_it_is_set():
    assert overrides_of(None, allow_all_zero=True) == ["execution.allow_all_zero=true"]
    assert overrides_of(None) == []
    assert ExecutionSpec().allow_all_zero is False
