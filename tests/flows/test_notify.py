"""Webhooks are told how a run ended, and nothing that they do changes how it ends."""

import json
import subprocess
import sys
import time
from dataclasses import replace

import pytest
import scripted_engines
from campaigns import one_message, winnow
from scored_campaigns import line_of, write_scored
from sqlalchemy import select
from stored_campaigns import new_database, store_campaign
from webhook_servers import webhook

from winnow.algorithms.claims import Claim
from winnow.flows.notify.announce import Outbox, Patience
from winnow.flows.notify.messages import MOST_CHARACTERS, as_body, events_of, message_at_end, message_of
from winnow.flows.notify.sender import deliver
from winnow.flows.run import artifacts, flow
from winnow.storage.errors import StorageUnavailable
from winnow.storage.models import Campaign
from winnow.storage.records import campaigns as campaign_records
from winnow.tasks.answer.model import Answer, CandidateStanding
from winnow.tasks.campaign.campaign import opened_campaign
from winnow.tasks.campaign.look import Look
from winnow.tasks.errors import WinnowError
from winnow.tasks.objectives.best_mean.holdout.results import HeldOut
from winnow.tasks.queries import schedule_history
from winnow.tasks.queries.schedule_history import (
    Series,
    differs_in,
    history,
    is_another,
    over_time,
    previous_winner,
    series_rows,
)
from winnow.tasks.queries.status import CampaignStatus, campaign_status
from winnow.tasks.spec.sections.execution import WebhookSpec

pytestmark = pytest.mark.usefixtures("plain_runs")

GATE = {"name": "gate", "params": {"baseline": "slips/plain"}}


@pytest.fixture(autouse=True)
def engines(monkeypatch):
    for name in ("knows", "slips", "guesses"):
        scripted_engines.provide(monkeypatch, name)


def slack(message):
    return json.loads(as_body(message, "slack"))


def told(*webhooks):
    """The option that has these be told."""
    return ("--set", f"execution.notify={json.dumps(list(webhooks))}")


def test_a_gate_that_fails_is_told_as_json_and_as_a_text_for_slack(tmp_path, monkeypatch):
    write_scored(tmp_path, ["slips", "guesses"], GATE)
    with webhook() as programs, webhook() as slack, webhook() as others:
        monkeypatch.setenv("SLACK_URL", slack.url)
        result = winnow(
            tmp_path,
            "gate",
            "campaign.yaml",
            *told(
                {"url": programs.url},
                {"url": "$SLACK_URL", "form": "slack", "events": ["regression"]},
                {"url": others.url, "events": ["failed", "winner-changed"]},
            ),
        )
        assert result.returncode == 4, result.stderr
        assert winnow(tmp_path, "run", "campaign.yaml").returncode == 4  # and nobody is told twice
    (message,), (text,) = programs.sent, slack.sent
    assert message["events"] == ["decided", "regression"]
    assert (message["campaign"], message["headline"]) == ("survivor", "worse, proven")
    assert (message["worse"], message["error"], message["before"]) == (["guesses/plain"], None, None)
    assert ["worse", text["text"].split("worse: ")[1].split("\n")[0]] in message["lines"]
    first, said, line = text["text"].split("\n")[:3]
    assert first == "survivor: worse, proven"
    assert said.startswith(
        "guesses/plain is worse than slips/plain by more than 10 points (5% risk of error); "
    )
    assert said == " ".join(message["sentences"])
    assert line.startswith("baseline: slips/plain: mean ")
    assert others.sent == []


def test_an_error_that_ends_a_run_is_told_and_is_still_what_the_user_reads(tmp_path, monkeypatch):
    write_scored(tmp_path, ["knows", "slips"], {"name": "champion"})

    def fail(storage, name):
        raise WinnowError("the machine is on fire; put it out")

    monkeypatch.setattr(flow, "run_campaign", fail)
    with webhook() as server:
        result = winnow(tmp_path, "run", "campaign.yaml", *told({"url": server.url}))
    assert result.returncode == 1
    assert "winnow: the machine is on fire; put it out" in result.stderr
    (message,) = server.sent
    assert (message["events"], message["error"]) == (["failed"], "the machine is on fire; put it out")


@pytest.mark.parametrize("is_told", [True, False])
def test_that_the_database_is_gone_is_told_as_well_where_anybody_is_told(tmp_path, monkeypatch, is_told):
    write_scored(tmp_path, ["knows", "slips"], {"name": "champion"})

    def fail(storage, name):
        (tmp_path / "winnow.db").rename(tmp_path / "away.db")
        raise StorageUnavailable("sqlite:///winnow.db", "its disk is gone")

    monkeypatch.setattr(flow, "run_campaign", fail)
    with webhook() as server:
        asked = told({"url": server.url}) if is_told else ()
        result = winnow(tmp_path, "run", "campaign.yaml", *asked)
    assert result.returncode == 1
    assert "no notification was sent" not in result.stderr
    assert [(each["campaign"], each["events"]) for each in server.sent] == [
        ("survivor", ["failed"])
    ] * is_told
    assert all("its disk is gone" in each["error"] for each in server.sent)


def test_a_webhook_that_cannot_be_told_is_a_warning_without_its_secret(tmp_path, monkeypatch):
    write_scored(tmp_path, ["knows", "guesses"], {"name": "champion"})
    with webhook(403) as server:
        monkeypatch.setenv("SECRET_URL", server.url)
        result = winnow(tmp_path, "run", "campaign.yaml", *told({"url": "$SECRET_URL"}, {"url": "$UNSET"}))
    assert result.returncode == 0
    assert result.stdout.startswith("survivor: winner, proven\n")
    assert (
        "warning: $UNSET is not set: no notification is sent there when the campaign ends\n" in result.stderr
    )
    assert (
        "warning: the webhook $SECRET_URL did not receive the notification: it answered with status 403; "
        "all results are stored\n"
    ) in result.stderr
    assert server.url not in result.stderr
    assert server.url.encode() not in (tmp_path / "winnow.db").read_bytes()


def test_a_server_that_recovers_is_told_once_and_one_that_refuses_is_not_asked_again():
    with webhook(500, 429) as server:
        assert deliver(server.url, b"{}", 5.0, (0.0, 0.0)) is None
        assert len(server.sent) == 3
    with webhook(500, 500, 500) as server:
        assert deliver(server.url, b"{}", 5.0, (0.0, 0.0)) == "it answered with status 500"
    with webhook(404) as server:
        assert deliver(server.url, b"{}", 5.0, (0.0, 0.0)) == "it answered with status 404"
        assert len(server.sent) == 1
    assert deliver(server.url, b"{}", 5.0, (0.0,)) == "it cannot be reached (ConnectError)"


def test_a_redirect_is_not_followed():
    with webhook("redirect") as server:
        assert "redirects are not followed" in deliver(server.url, b"{}", 5.0, (0.0,))
        assert server.paths == ["/told"]


def test_a_server_that_sends_byte_after_byte_is_waited_for_no_longer_than_the_deadline(caplog):
    with webhook("drips") as server:
        outbox, began = Outbox(), time.monotonic()
        outbox.send(WebhookSpec(url=server.url), server.url, '{"a": 1}', Patience(deadline=2, attempt=60.0))
        assert time.monotonic() - began < 1.5  # nobody waits while it is sent
        outbox.wait()
        assert server.sent == [{"a": 1}]
    assert "it timed out" in caplog.text


def test_a_slack_text_holds_nothing_that_slack_acts_on_and_is_short():
    lines = [["winner", "<!channel> & <http://evil.example|b>"], ["cost", "x" * 2 * MOST_CHARACTERS]]
    message = {
        "campaign": "c\x1b[2J",
        "headline": "h",
        "sentences": [],
        "error": None,
        "events": [],
        "before": None,
    }
    found = slack({**message, "lines": lines})
    assert found["text"].startswith(
        "c·[2J: h\nwinner: &lt;!channel&gt; &amp; &lt;http://evil.example|b&gt;\ncost: x"
    )
    assert found["text"].endswith("x…")
    assert len(found["text"]) < MOST_CHARACTERS + 50
    assert found["mrkdwn"] is False


def test_a_service_of_apprise_gets_the_text_and_nothing_in_it_calls_anybody(tmp_path, monkeypatch):
    write_scored(tmp_path, ["knows", "guesses"], {"name": "champion"})
    with webhook() as server, webhook(500) as broken, webhook("redirect") as moving:
        for name, each in (("GOOD", server), ("BROKEN", broken), ("MOVING", moving)):
            monkeypatch.setenv(name, each.url.replace("http://", "json://secret@"))
        monkeypatch.setenv("UNKNOWN", "secret://host")
        asked = ({"url": f"${name}", "form": "apprise"} for name in ("GOOD", "BROKEN", "MOVING", "UNKNOWN"))
        result = winnow(tmp_path, "run", "campaign.yaml", *told(*asked))
        assert moving.paths == ["/told"]
    assert result.returncode == 0
    (sent,) = server.sent
    assert sent["message"].startswith("survivor: winner, proven\nUse knows/plain: mean 1.000 ")
    undelivered = "did not receive the notification: Apprise could not deliver the message; to see why"
    for name in ("BROKEN", "MOVING"):
        assert f"warning: the webhook ${name} {undelivered}" in result.stderr
    assert "the webhook $UNKNOWN did not receive the notification: Apprise knows no service" in result.stderr
    assert "secret" not in result.stderr
    message = {
        "campaign": "@here",
        "headline": "<!channel>",
        "sentences": [],
        "error": None,
        "events": [],
        "before": None,
    }
    assert as_body({**message, "lines": []}, "apprise") == "@\N{WORD JOINER}here: ‹!channel›"


def test_an_answer_without_an_end_does_not_fill_the_memory_of_what_apprise_runs_in():
    code = (
        "import sys\n"
        "from winnow.flows.notify import sender\n"
        "sender.MOST_MEMORY //= 2\n"
        "print(sender.deliver_by_apprise(sys.argv[1], 'text'))\n"
    )
    with webhook("floods") as server:
        url = server.url.replace("http://", "json://")
        sent = subprocess.run([sys.executable, "-c", code, url], capture_output=True, text=True, check=True)
    assert sent.stdout.startswith("Apprise could not deliver the message; ")


def test_a_slack_text_names_both_winners_where_they_changed():
    message = {
        "campaign": "c-2",
        "headline": "winner, proven",
        "sentences": [],
        "error": None,
        "events": ["decided", "winner-changed"],
        "winners": ["a"],
        "claim": "proven",
        "before": {"campaign": "c-1", "winners": ["b", "d"], "claim": "exact", "differs_in": []},
        "lines": [["winner", "a"]],
    }
    expected = "c-2: winner, proven\nwinner changed: a; before, b, d in c-1\nwinner: a"
    assert slack(message)["text"] == expected
    guessed = {**message, "claim": "heuristic"}
    assert "before, b, d in c-1 (not proven of both)" in slack(guessed)["text"]
    same = {**message, "events": ["decided"]}
    assert slack(same)["text"] == "c-2: winner, proven\nwinner: a"
    failed = {**message, "error": "out of memory", "events": ["failed"]}
    assert slack(failed)["text"] == "c-2: an error ended the run: out of memory"


def status(outcome, *, state="ended", settled=True, best="a", kinds=(), **answer):
    standings = tuple(CandidateStanding(name=name, status=kind) for name, kind in kinds)
    claim = Claim(kind="proven", delta=0.05)
    return CampaignStatus(
        name="c", objective="best-mean", state=state, budget=None, budgets=(), stopped_by=None, totals={},
        warnings=(), holder=None,
        answer=Answer(
            objective="best-mean", outcome=outcome, claim=claim, reason="confident" if settled else "budget",
            best=best, candidates=standings, n_examples=1, delta=0.05, **answer,
        ),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("stands", "events"),
    [
        (status("winner"), ("decided",)),
        (status("undecided"), ("undecided",)),
        (status("none"), ("undecided",)),
        (status("failed"), ("failed",)),
        (status(None, state="waiting"), ("waiting",)),
        (status(None, state="interrupted"), ()),
        (status("undecided", kinds=[("b", "worse")], baseline="a"), ("undecided", "regression")),
        (status("decided", kinds=[("b", "no-worse")], baseline="a"), ("decided",)),
    ],
)
def test_what_there_is_to_tell_of_each_end(stands, events):
    assert events_of(stands, None) == events


LISTED = [
    # Of two that tied within epsilon, of two that tied exactly, of the m best with two for the last place.
    ([("a", "tied", 0.9), ("b", "tied", 0.8), ("c", "eliminated", 0.1)], {}, ("a", "b"), None),
    ([("a", "tied", 0.9), ("b", "tied", 0.9)], {}, ("a", "b"), 0.9),
    ([("a", "top", 0.9), ("b", "tied", 0.8), ("c", "tied", 0.8)], {"top_m": 2}, ("a", "b", "c"), None),
    ([("a", "best", 0.9), ("b", "eliminated", 0.1)], {}, ("a",), 0.9),
    ([("a", "better", 0.9), ("b", "baseline", 0.1)], {"baseline": "b", "best": None}, (), None),
    ([("a", "active", None)], {}, ("a",), None),
]


@pytest.mark.parametrize(("kinds", "more", "listed", "estimate"), LISTED)
def test_a_list_names_all_of_the_best_and_no_number_of_one_of_them(kinds, more, listed, estimate):
    known = tuple(CandidateStanding(name=name, status=kind, estimate=mean) for name, kind, mean in kinds)
    answer = replace(status("winner", **more).answer, candidates=known)
    assert (answer.listed, answer.listed_estimate) == (listed, estimate)


@pytest.mark.parametrize(
    ("kinds", "shown"),
    [
        ([("a", "best"), ("b", "eliminated")], 0.98),
        ([("a", "best"), ("b", "chosen")], None),  # whose mean it is not
        ([("a", "tied"), ("b", "tied")], None),
    ],
)
def test_no_list_gives_a_candidate_the_held_out_mean_of_another(kinds, shown):
    known = tuple(CandidateStanding(name=name, status=kind, estimate=0.8) for name, kind in kinds)
    held_out = HeldOut(
        n_examples=60,
        n_selection=140,
        winner="a",
        runner_up="b",
        told=60,
        scored=60,
        is_complete=True,
        mean=0.98,
    )
    told = status("winner", best="a")
    told = replace(told, answer=replace(told.answer, candidates=known, held_out=held_out))
    assert told.answer.listed_held_out == shown
    assert ("(held out 0.980)" in artifacts._status_line(told)) == (shown is not None)


def test_another_winner_is_told_of_and_one_that_ties_is_none():
    before, tied = status("winner", best="b"), [("a", "tied"), ("b", "tied")]
    assert events_of(status("winner", best="a"), before) == ("decided", "winner-changed")
    assert events_of(status("winner", best="b"), before) == ("decided",)
    assert events_of(status("tied", best="a", kinds=tied), before) == ("decided",)
    assert events_of(status("undecided", best="a"), before) == ("undecided",)
    assert status("undecided").answer.winners == frozenset()
    then, now = (
        status("tied", best="a", kinds=[(name, "tied") for name in names]).answer for names in ("ab", "ac")
    )
    assert not is_another(then, now)
    assert is_another(replace(then, top_m=2), replace(now, top_m=2))


def test_the_winner_before_is_that_of_the_last_campaign_of_the_schedule_that_had_one(tmp_path):
    database = new_database(tmp_path / "winnow.db")
    for name, stop, best in (("first", True, 0), ("second", False, 1), ("third", True, 1)):
        campaign = store_campaign(database, name)
        ended = {"stop": stop, "reason": "confident" if stop else "running", "best": best}
        claim = {"kind": "proven", "delta": 0.05, "raised_by": [], "assumptions": [], "refuted": []}
        known = {"estimates": [0.5] * 3, "status": ["best", "active", "active"]}
        campaign.finish(campaign.plan(0, [0], [0]), [1.0], claim=claim, **known, **ended)
    with database.writing() as session:
        session.connection().exec_driver_sql("UPDATE campaigns SET series = 'f' WHERE name <> 'third'")
    with database.reading() as session:
        first, second, third = campaign_records.campaigns(session)
        assert previous_winner(Look(session, second)).name == "first"
        assert previous_winner(Look(session, first)) is None
        assert previous_winner(Look(session, third)) is None  # it belongs to no schedule
    with database.writing() as session:
        session.connection().exec_driver_sql("UPDATE campaigns SET series = 'f'")
    with database.reading() as session:
        third = campaign_records.get_campaign(session, "third")
        before = previous_winner(Look(session, third))
        message = message_of(campaign_status(Look(session, third)), third, ("decided",), before, None)
        assert events_of(campaign_status(Look(session, third)), before) == ("decided", "winner-changed")
        assert [row["changed"] for row in series_rows(session, "f")] == [None, None, True]
    url = f"sqlite:///{tmp_path / 'winnow.db'}"
    assert line_of(url, "third").endswith("; another winner than before")
    assert "winner than" not in line_of(url, "second")  # somebody leads, and nobody has won
    assert (message["series"], message["winners"]) == ("f", ["b"])
    assert {key: message["before"][key] for key in ("campaign", "winners")} == {
        "campaign": "first",
        "winners": ["a"],
    }
    json.dumps(message, allow_nan=False)


NIGHTS = [
    (["a", "ab", "b"], [None, False, True], "night 0"),
    (["a", "ab", "a"], [None, False, False], "night 0"),
    (["ab", "a", "b"], [None, False, True], "night 1"),
    (["ab", "abc", "c"], [None, False, True], "night 0"),
    (["a", "bc", "bc"], [None, True, False], "night 1"),
    (["a", "bc", "b", "c"], [None, True, False, True], "night 2"),
    (["a", "", "ab", "", "b"], [None, None, False, None, True], "night 0"),
    (["ab", "ab", "c"], [None, False, True], "night 1"),
    (["ab", "bc"], [None, False], "night 0"),
]
"""Who won or tied, whether that is another winner, and the night that the last one is compared with."""


@pytest.mark.parametrize(("nights", "changed", "since"), NIGHTS)
def test_a_tie_does_not_hide_that_the_winner_changed(tmp_path, nights, changed, since):
    """Whoever took a on the first night has to take b on the third, though no two nights in a row differ."""
    database = new_database(tmp_path / "winnow.db")
    for number, won in enumerate(nights):
        campaign = store_campaign(database, f"night {number}")
        word = "best" if len(won) == 1 else "tied"
        kinds = [(word if name in won else "eliminated") if won else "active" for name in "abc"]
        claim = {"kind": "exact" if won else "none", "delta": None, "raised_by": [], "assumptions": []}
        ended = {"stop": True, "reason": "exhausted", "best": "abc".index(won[0]) if won else 0}
        known = {"estimates": [0.5] * 3, "status": kinds, "claim": {**claim, "refuted": []}}
        campaign.finish(campaign.plan(0, [0], [0]), [1.0], **known, **ended)
    with database.writing() as session:
        session.connection().exec_driver_sql("UPDATE campaigns SET series = 'f'")
    with database.reading() as session:
        campaigns = campaign_records.campaigns(session)
        of_all = over_time(session, Series(title="f", campaigns=campaigns))
        for told in (series_rows(session, "f"), history(Look(session, campaigns[0])), of_all):
            assert [row["changed"] for row in told] == changed
        statuses = [campaign_status(Look(session, each)) for each in campaigns]
        before = [previous_winner(Look(session, each)) for each in campaigns]
    assert before[-1].name == since
    told = ["winner-changed" in events_of(*each) for each in zip(statuses, before, strict=True)]
    assert told == [bool(each) for each in changed]
    line = line_of(f"sqlite:///{tmp_path / 'winnow.db'}", campaigns[-1].name)
    assert f", best {', '.join(nights[-1])}; " in line
    assert line.endswith("; another winner than before" if changed[-1] else "; the same winner as before")


def test_a_webhook_is_told_who_asked_the_same_before(tmp_path):
    _, url = two_nights(tmp_path, edited={"seed": 8})
    with opened_campaign(url, "second") as second:
        message = message_at_end(second, None, None)
    assert dict(message["lines"])["asked"].startswith(
        "the same question before, with other draws or another test: first. "
    )


def test_the_page_begins_with_the_winner_that_stands_before_it(tmp_path, monkeypatch):
    monkeypatch.setattr(schedule_history, "MOST_CAMPAIGNS", 2)
    database = new_database(tmp_path / "winnow.db")
    claim = {"kind": "exact", "delta": None, "raised_by": [], "assumptions": [], "refuted": []}
    for number, won in enumerate(["a", "ab", "ab", "b"]):
        campaign = store_campaign(database, f"night {number}")
        word = "best" if len(won) == 1 else "tied"
        kinds = [word if name in won else "eliminated" for name in "abc"]
        ended = {"stop": True, "reason": "exhausted", "best": "abc".index(won[0]), "claim": claim}
        campaign.finish(campaign.plan(0, [0], [0]), [1.0], estimates=[0.5] * 3, status=kinds, **ended)
    with database.writing() as session:
        session.connection().exec_driver_sql("UPDATE campaigns SET series = 'f'")
    with database.reading() as session:
        campaigns = campaign_records.campaigns(session)
        shown = over_time(session, Series(title="f", campaigns=campaigns))
        assert [row["changed"] for row in shown] == [False, True]
        assert [row["changed"] for row in series_rows(session, "f")][-2:] == [False, True]


def test_without_delta_another_budget_is_another_question(tmp_path):
    database = new_database(tmp_path / "winnow.db")
    records = [
        store_campaign(database, name, budget=budget, delta=delta).record
        for name, budget, delta in (("a", 60, None), ("b", 120, None), ("c", 60, 0.05), ("d", 120, 0.05))
    ]
    with database.reading() as session:
        assert differs_in(session, *records[:2]) == ["the budget"]
        assert differs_in(session, *records[2:]) == []


EDITS = {
    "the objective": {"objective": "route"},
    "the data": {"spec": {"dataset_fingerprint": "other"}},
    "the candidates": {"spec": {"model_fingerprints": {"m": "other weights"}}},
    "the judge": {"spec": {"judge": {"type": "exact"}}},
    "groups": {"spec": {"groups": {"by": "level"}}},
    "constraints": {"spec": {"constraints": [{"metric": "valid", "at_least": 0.9}]}},
    "what is certified": {"spec": {"certify": {"alpha": 0.1}}},
    "the selector": {"spec": {"selector": {"name": "race", "params": {}}}},
    "the history": {"spec": {"history_fingerprint": "other"}},
    "delta or epsilon": {"spec": {"stopping": {"delta": 0.05, "epsilon": 0.1}}},
    "what is held out": {"spec": {"holdout": 0.3}},
    "the seed": {"seed": 8},
}
"""What may be edited between two campaigns of a schedule, and what is stored of it."""


def two_nights(folder, *, best=1, edited=None, models="abc"):
    """Two campaigns of one schedule, the second of which has another winner, and perhaps another question."""
    database = new_database(folder / "winnow.db")
    claim = {"kind": "proven", "delta": 0.05, "raised_by": [], "assumptions": [], "refuted": []}
    for name, winner, names in (("first", 0, "abc"), ("second", best, models)):
        campaign = store_campaign(database, name, names=names)
        known = {"estimates": [0.5] * len(names), "lower": [0.4] * len(names), "upper": [0.6] * len(names)}
        kinds = ["best" if arm == winner else "eliminated" for arm in range(len(names))]
        ended = {"stop": True, "reason": "confident", "best": winner, "status": kinds, "claim": claim}
        campaign.finish(campaign.plan(0, [0], [0]), [1.0], **known, **ended)
    with database.writing() as session:
        first, second = session.scalars(select(Campaign).order_by(Campaign.id))
        first.series = second.series = "f"
        second.spec = {**second.spec, **(edited or {}).get("spec", {})}
        second.objective = (edited or {}).get("objective", second.objective)
        second.seed = (edited or {}).get("seed", second.seed)
    return database, f"sqlite:///{folder / 'winnow.db'}"


@pytest.mark.parametrize("of", ["models", "judge"])
def test_a_model_that_is_asked_otherwise_is_another_question(tmp_path, of):
    asked = [{"name": "m", "model": "m", "generate_config": {"max_tokens": 9}}]
    spec = {"models": asked} if of == "models" else {"judge": {"type": "llm", "models": asked}}
    database, _ = two_nights(tmp_path, edited={"spec": spec})
    with database.reading() as session:
        before, now = campaign_records.campaigns(session)
        assert differs_in(session, before, now) == ["the candidates" if of == "models" else "the judge"]


@pytest.mark.parametrize("what", sorted(EDITS))
def test_winners_of_other_questions_are_not_said_to_differ_alone(tmp_path, what):
    database, _ = two_nights(tmp_path, edited=EDITS[what])
    with database.reading() as session:
        before, now = campaign_records.campaigns(session)
        assert differs_in(session, before, now) == [what]
        assert differs_in(session, before, before) == []


@pytest.mark.parametrize(
    ("best", "said"), [(1, "another winner than before"), (0, "the same winner as before")]
)
def test_an_edited_file_is_named_where_a_schedule_tells_of_the_winner(tmp_path, best, said):
    spec = EDITS["the judge"]["spec"] | EDITS["delta or epsilon"]["spec"]
    database, url = two_nights(tmp_path, best=best, edited={"spec": spec})
    assert line_of(url, "second").endswith(
        f"; {said} (not the same since first: the judge, delta or epsilon)"
    )
    with database.reading() as session:
        before, now = campaign_records.campaigns(session)
        rows = series_rows(session, "f")
        of_all = over_time(session, Series(title="f", campaigns=[before, now]))
        for told in (rows, history(Look(session, now)), of_all):
            assert [row["differs_in"] for row in told] == [None, "the judge, delta or epsilon"]
        status, then = campaign_status(Look(session, now)), campaign_status(Look(session, before))
        message = message_of(status, now, events_of(status, then), then, None, ["the judge"])
    assert message["before"]["differs_in"] == ["the judge"]
    if best == 1:
        assert "before, a in first; not the same since then: the judge" in slack(message)["text"]


def test_a_winner_that_is_no_candidate_any_more_makes_the_candidates_others(tmp_path):
    _, url = two_nights(tmp_path, best=0, models="bc")
    assert line_of(url, "second").endswith(
        "; another winner than before (not the same since first: the candidates)"
    )


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"url": "ftp://a/b"}, "must be the URL of a webhook, or $NAME"),
        ({"url": "https://u:secret@a/b"}, "must have no user, password or query"),
        ({"url": "https://a/b?token=secret"}, "must have no user, password or query"),
        ({"url": "https://hooks.slack.com/services/secret", "form": "slack"}, "put it into an environment"),
        ({"url": "https://hooks.slack.com/services/secret", "form": "apprise"}, "put it into an environment"),
        ({"url": "slack://secret/secret/secret", "form": "apprise"}, "or $NAME of the environment variable"),
        ({"url": "https://a/b", "events": ["nothing"]}, "execution.notify"),
        ({"url": "https://a/b", "events": []}, "execution.notify"),
    ],
)
def test_what_is_no_address_is_refused_in_a_sentence_that_does_not_repeat_it(tmp_path, given, said):
    write_scored(tmp_path, ["knows"], {"name": "champion"})
    result = winnow(tmp_path, "validate", "campaign.yaml", *told(given))
    assert result.returncode == 2
    assert said in one_message(result)
    assert "secret" not in one_message(result)


def test_a_strangers_file_may_send_nothing_anywhere_until_somebody_allows_it(tmp_path):
    spec = write_scored(tmp_path, ["knows", "guesses"], {"name": "champion"})
    given = json.dumps([{"url": "http://127.0.0.1:1/x"}, {"url": "$AWS_SECRET"}])
    text = spec.read_text().replace("execution:\n", f"execution:\n  notify: {given}\n")
    spec.write_text(
        text if "notify" in text else text.replace('"execution": {', f'"execution": {{"notify": {given}, ')
    )
    result = winnow(tmp_path, "run", "campaign.yaml")
    assert result.returncode == 2
    assert (
        "it would send how campaigns end to 'http://127.0.0.1:1/x' (execution.notify[0].url), and send how "
        "campaigns end to the URL in the environment variable AWS_SECRET (execution.notify[1].url)"
    ) in one_message(result)
    said = winnow(tmp_path, "validate", "campaign.yaml").stdout
    assert "check: $AWS_SECRET is not set: no notification is sent there when the campaign ends\n" in said
