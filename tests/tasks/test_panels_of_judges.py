"""Campaigns that several served models judge, of which one says nothing more, or nothing of some outputs."""

import pytest
from both_databases import fresh_database
from faulty_server import Fault, faulty_server, is_canary
from served_campaigns import N_EXAMPLES, run, served_model, served_spec, write_data
from sqlalchemy import text

from winnow.tasks.answer.status_lines import status_lines
from winnow.tasks.campaign.look import Look
from winnow.tasks.objectives.round_functions import NoServer
from winnow.tasks.queries.status import campaign_status
from winnow.tasks.queries.warnings.campaign_warnings import campaign_warnings

GRID = 2 * N_EXAMPLES
DOWN = Fault(status=503, body=b"")


@pytest.fixture
def database(request, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_data(tmp_path)
    with fresh_database("sqlite", tmp_path, request) as database:
        yield database


def panel(one, other, objective="best-mean"):
    """A campaign in rounds of four whose two judges each need one call for an output, or two for a duel."""
    judges = [served_model(each.url, name, chat=True) for each, name in ((one, "one"), (other, "other"))]
    of_mean = {"rubric": "Right.", "scale": "yes/no", "read": "text"}
    of_duels = {"template": "mt-bench"}
    is_mean = objective == "best-mean"
    judge = {"type": "llm", "models": judges, "max_reasks": 0, **(of_mean if is_mean else of_duels)}
    selector = {} if is_mean else {"selector": {"name": "llm-po"}}
    return served_spec(served_model(one.url, "asked"), objective=objective, judge=judge, **selector)


def says(call):
    """Texts that differ, of candidates; of judges the verdict of either kind that has one."""
    if "messages" not in call.body:
        return f"{call.prompt} as {call.number}"
    return "[[A]]" if "[[A]]" in call.prompt else "[[yes]]"


def outcomes(database):
    query = text("SELECT judge, outcome FROM comparisons ORDER BY round_id, position")
    with database.reading() as session:
        return session.execute(query).all()


@pytest.mark.parametrize("objective", ["best-mean", "best-duel"])
def test_a_judge_of_several_that_is_gone_for_good_stops_the_campaign_which_goes_on_with_both(
    database, objective
):
    """The reproduction: later scores were the other judge's alone, and the winner was "proven"."""
    down = [True]
    with faulty_server(reply=says) as one, faulty_server(reply=says) as other:
        other.script = lambda call: DOWN if down and len(other.calls) > 8 else None  # after a round
        spec = panel(one, other, objective)
        with pytest.raises(NoServer) as refused:
            run(database, spec)
        before = outcomes(database)
        assert 0 < len(before) < N_EXAMPLES * (2 if objective == "best-mean" else 1)
        down.clear()
        run(database, spec)
    said = str(refused.value)
    assert said.startswith(f"model 'other': {other.url} answered 503")
    assert "the other judges would score alone from here on, so this round is not recorded" in said
    assert "winnow run SPEC --fork NEW_NAME" in said
    with database.reading() as session:
        silent = session.scalar(text("SELECT count(*) FROM judgments WHERE verdict IS NULL"))
    assert silent == 0
    assert outcomes(database)[: len(before)] == before


def test_the_answer_counts_the_outputs_of_which_one_of_several_judges_said_nothing(database):
    """The reproduction: "every score is what one, other said", though other refused a third of them."""

    def refuses(call):
        return not is_canary(call.body) and call.number % 3 == 2

    with faulty_server(reply=says) as one, faulty_server(reply=says) as other:
        other.script = lambda call: Fault(status=400, body=b"no") if refuses(call) else None
        record = run(database, panel(one, other))
        n_refused = sum(map(refuses, other.calls))
    with database.reading() as session:
        status = campaign_status(Look(session, record))
    lines = dict(status_lines(status.answer, status.totals))
    assert 0 < n_refused < GRID
    assert lines["judge"] == (
        "scores are verdicts of one, other on outputs, with the prompts and settings of the file; other gave "
        f"no readable verdict on {n_refused} comparisons; these are scored by the other judges only"
    )


def test_replies_that_were_cut_off_before_their_verdict_are_told_with_what_to_raise(database):
    """The reproduction: all outputs were unscored over "verdict_missing", and nothing said why."""

    def thinks(call):
        return ("Let me weigh this", "length") if "messages" in call.body else says(call)

    with faulty_server(reply=thinks) as one, faulty_server(reply=thinks) as other:
        record = run(database, panel(one, other))
    with database.reading() as session:
        found = campaign_warnings(Look(session, record), has_ended=True)
        replies = session.scalar(text("SELECT count(*) FROM judgments"))
    [warning] = [each for each in found if each.kind == "cut-reply"]
    assert warning.sentence == (
        f"{replies} of {replies} replies of judges without a verdict were cut off: raise the judge's "
        "max_tokens, or ask for a shorter reply"
    )


def test_replies_without_a_verdict_that_ended_by_themselves_are_not_said_to_be_cut_off(database):
    def evades(call):
        return "Hard to say." if "messages" in call.body else says(call)

    with faulty_server(reply=evades) as one, faulty_server(reply=evades) as other:
        record = run(database, panel(one, other))
    with database.reading() as session:
        found = campaign_warnings(Look(session, record), has_ended=True)
    assert "cut-reply" not in [each.kind for each in found]


@pytest.mark.parametrize("status", [400, 500])
@pytest.mark.parametrize("read", ["probabilities", "text"])
def test_a_model_that_is_asked_in_vain_for_probabilities_is_told_with_what_asks_once(database, read, status):
    def fails(call):
        return Fault(status=status, body=b"no logprobs here") if call.body.get("logprobs") else None

    with faulty_server(reply=says) as server:
        server.script = fails
        judge = {"type": "llm", "rubric": "Right.", "scale": "yes/no", "max_reasks": 0, "read": read}
        model = served_model(server.url, "rater", chat=True)
        record = run(database, served_spec(served_model(server.url), judge={**judge, "model": model}))
    with database.reading() as session:
        found = campaign_warnings(Look(session, record), has_ended=True)
        scored = session.scalar(text("SELECT count(*) FROM comparisons WHERE outcome = 1.0"))
    assert scored == GRID  # all the same
    told = [each.sentence for each in found if each.kind == "no-probabilities"]
    assert told == [
        "rater returned no probabilities of its verdicts for 12 of the first 12 outputs, so most outputs "
        "needed a second call for text: use a server that returns log-probabilities, or set the judge's "
        "read: text"
    ] * (read == "probabilities")


def test_a_model_that_is_asked_for_texts_alone_is_not_said_to_tell_no_probabilities(database):
    def refuses(call):
        return Fault(status=400, body=b"no") if call.number % 3 and not is_canary(call.body) else None

    known = {"yes": -0.1, "no": -2.5}
    with faulty_server(reply=says, next_tokens=known) as one, faulty_server(reply=says) as other:
        other.script = refuses
        part = {"type": "llm", "rubric": "Right.", "scale": "yes/no"}
        weighs = {**part, "model": served_model(one.url, "weighs")}
        writes = {**part, "model": served_model(other.url, "writes", chat=True), "read": "text"}
        judge = {"type": "any", "judges": [writes, weighs]}
        record = run(database, served_spec(served_model(one.url), judge=judge))
    with database.reading() as session:
        found = campaign_warnings(Look(session, record), has_ended=True)
        refused = session.scalar(
            text(
                "SELECT count(*) FROM judgments WHERE judge = 'writes' AND reason = 'refused' AND attempt = 0"
            )
        )
        weighed = session.scalar(text("SELECT count(*) FROM judgments WHERE judge = 'weighs'"))
    assert 2 * refused > GRID  # as often as of a model that is asked in vain for probabilities
    assert weighed > 0
    assert "no-probabilities" not in [each.kind for each in found]
