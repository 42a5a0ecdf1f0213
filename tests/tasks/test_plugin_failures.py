"""What a plug-in raises becomes one sentence that names it; a judge that fails on one output goes on."""

import json
import signal
import sys
from collections import Counter
from pathlib import Path

import pytest
import served_campaigns
from faulty_server import faulty_server
from plugins_on_disk import NAME, importable
from served_campaigns import served_model, served_spec, write_data
from sqlalchemy import text

from winnow.algorithms.state import plugin_registry
from winnow.algorithms.state.plugin_registry import MOST_CHARACTERS, Registered, in_words
from winnow.tasks.errors import SpecError
from winnow.tasks.objectives.round_functions import MOST_IN_A_ROW, JudgeBroken
from winnow.tasks.plugins.entry_points import MOST_TRACEBACK, Plugin, PluginFailed, calling, plugin_log
from winnow.tasks.plugins.selectors import campaign_selector
from winnow.tasks.queries.check_texts import findings
from winnow.tasks.setup.check import check_campaign
from winnow.tasks.spec.judge_tree import scored_by

ACME = Plugin(kind="judge", name="acme", location=f"{__name__}:Acme")


class Unprintable(BaseException):
    def __str__(self):
        raise SystemExit("not even this")


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (ValueError("no such colour"), "ValueError: no such colour"),
        (ValueError(), "ValueError"),
        (KeyError("colour"), "KeyError: 'colour'"),
        (RuntimeError("one\ntwo\r\x1b[2J\u202e\x9b"), r"RuntimeError: one two \x1b[2J\u202e\x9b"),
        (SystemExit(0), "SystemExit: 0"),
        (Unprintable(), "Unprintable, whose message cannot be printed"),
        (BaseException("x" * 1_000_000), f"BaseException: {'x' * MOST_CHARACTERS}..."),
    ],
)
def test_an_exception_is_one_line_whatever_it_says(error, words):
    assert in_words(error) == words


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit, BaseException, GeneratorExit, MemoryError])
def test_whatever_is_raised_names_the_plug_in_and_the_line(kind, monkeypatch):
    handler = signal.signal(signal.SIGINT, lambda number, frame: None)
    try:
        with pytest.raises(PluginFailed) as failed, calling(ACME):
            raise kind("no")
    finally:
        signal.signal(signal.SIGINT, handler)
    said = rf"the judge 'acme' ({__name__}:Acme) raised {kind.__name__}: no ({Path(__file__).name}, line "
    assert str(failed.value).startswith(said)
    assert str(failed.value).endswith("; fix it or choose another")
    assert failed.value.__cause__ is None
    assert failed.value.__suppress_context__


def test_ctrl_c_while_a_plug_in_runs_is_passed_on():
    def stop(number, frame):
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGINT, stop)
    try:
        with pytest.raises(KeyboardInterrupt), calling(ACME):
            signal.raise_signal(signal.SIGINT)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        with pytest.raises(KeyboardInterrupt), calling(ACME):
            signal.raise_signal(signal.SIGINT)
    finally:
        signal.signal(signal.SIGINT, before)


class Terminated(BaseException):
    """As what Prefect raises at SIGTERM while a flow runs."""


def test_what_the_handler_of_another_signal_raises_is_passed_on_and_not_laid_at_the_plug_ins_door():
    def end(number, frame):
        raise Terminated

    before = signal.signal(signal.SIGTERM, end)
    try:
        with pytest.raises(Terminated), calling(ACME):
            signal.raise_signal(signal.SIGTERM)
        with pytest.raises(PluginFailed, match="raised Terminated"), calling(ACME):
            raise Terminated
    finally:
        signal.signal(signal.SIGTERM, before)


def test_a_traceback_is_kept_once_for_each_line_and_is_bounded(tmp_path):
    with plugin_log(tmp_path / "logs", "letters"):
        for _ in range(3):
            with (
                pytest.raises(PluginFailed, match=r"traceback is in .*plugins\.log") as failed,
                calling(ACME),
            ):
                raise ValueError("y" * 1_000_000)
    kept = (tmp_path / "logs" / "plugins.log").read_text()
    assert kept.count("Traceback") == 1
    assert "ValueError: yyy" in kept
    assert len(kept) < MOST_TRACEBACK + 1_000
    assert "winnow resume letters" in str(failed.value)


def test_what_is_raised_in_a_program_that_names_plug_ins_is_mended_there(tmp_path, monkeypatch):
    named = Registered("acme", "winnow.judges", None, value="notebook:acme", source="")
    monkeypatch.setattr(plugin_registry, "_registered", {("winnow.judges", "acme"): named})
    with plugin_log(tmp_path / "logs", "letters"), pytest.raises(PluginFailed) as failed, calling(ACME):
        raise ValueError("no")
    assert "call winnow.run (or winnow.select) again" in str(failed.value)
    assert "winnow resume" not in str(failed.value)


def test_a_log_that_cannot_be_written_is_not_named(tmp_path):
    (tmp_path / "logs").write_text("a file")
    with plugin_log(tmp_path / "logs", "letters"), pytest.raises(PluginFailed) as failed, calling(ACME):
        raise ValueError("no")
    assert "plugins.log" not in str(failed.value)


@pytest.fixture
def acme(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_data(tmp_path)
    with importable(tmp_path, monkeypatch):
        yield


def repeat(call):
    """The prompt is the output."""
    return call.body["prompt"]


def reasons(database):
    with database.reading() as session:
        return Counter(session.execute(text("SELECT reason FROM comparisons")).scalars())


def details(database):
    with database.reading() as session:
        return set(session.execute(text("SELECT detail FROM comparisons")).scalars()) - {None}


def spec_of(url, kind, **keys):
    if kind == "acme-judge":
        return served_spec(served_model(url), judge={"type": kind, **keys}, batch_size=12)
    return served_spec(
        served_model(url),
        objective="best-duel",
        selector={"name": "round-robin"},
        judge={"type": kind, **keys},
        batch_size=12,
        stopping={"budget": 48},
        prompts=("{{ input }}=", "{{ input }}:", "{{ input }}!"),
    )


@pytest.mark.parametrize("kind", ["acme-judge", "acme-pairs"])
@pytest.mark.parametrize("raises", ["plain", "lines", "megabyte", "unprintable", "exit", "base"])
def test_a_judge_that_fails_on_some_outputs_leaves_those_unscored(acme, database, monkeypatch, kind, raises):
    monkeypatch.setenv("ACME_RAISES", raises)
    with faulty_server(reply=repeat) as server:
        served_campaigns.run(database, spec_of(server.url, kind, on="3 plus"))
    found = reasons(database)
    assert found.keys() == {None, "judge_failed"}
    assert found[None] > found["judge_failed"] > 0
    (detail,) = details(database)
    assert detail.startswith(f"the {'pair ' * (kind == 'acme-pairs')}judge '{kind}' (acme_plugins:")
    assert detail.endswith("its traceback is in logs/letters/plugins.log")
    assert detail.isprintable()
    assert len(detail) < 1_000


@pytest.mark.parametrize("several", [None, {"n": 2}])
@pytest.mark.parametrize("fails_at", ["nowhere", "ahead"])
def test_every_judge_is_told_ahead_of_all_texts_of_a_round(acme, database, monkeypatch, several, fails_at):
    monkeypatch.setenv("ACME_FAILS_AT", fails_at)
    with faulty_server(reply=repeat) as server:
        metric = {"name": "other", "judge": {"type": "acme-judge", "on": "another"}}
        model = served_model(server.url, generate_config={"temperature": 1.0})
        judge = {"type": "acme-judge", "on": "never"}
        spec = served_spec(model, judge=judge, metrics=[metric], samples=several, batch_size=12)
        served_campaigns.run(database, spec)
    assert reasons(database) == {None: 12}
    expected = sorted(f"{i} plus{end}" for i in range(6) for end in "=:" for _ in range(2 if several else 1))
    told = sys.modules[NAME].TOLD_AHEAD
    assert [(on, sorted(outputs)) for on, outputs in told] == [("never", expected), ("another", expected)]


def asking_spec(url, name="letters", **keys):
    judge = {"type": "acme-asking", "model": served_model(url, "grader"), **keys}
    return served_spec(served_model(url), name=name, judge=judge, batch_size=12)


def grade(call):
    """Sums with 3 are right; whoever is asked for one repeats it."""
    prompt = call.body["prompt"]
    if not prompt.startswith("ok? "):
        return prompt
    return "yes" if "3" in prompt else "no"


def test_a_plug_in_that_scores_can_ask_models_whose_replies_are_stored_and_used_again(acme, database):
    with faulty_server(reply=grade) as server:
        record = served_campaigns.run(database, asking_spec(server.url))
        asked = len(server.calls)
        served_campaigns.run(database, asking_spec(server.url, name="again"))
        assert len(server.calls) == asked
    with database.reading() as session:
        rows = session.execute(
            text(
                "SELECT c.outcome, g.text, j.judge, j.verdict, r.text FROM comparisons c "
                "JOIN generations g ON g.id = c.generation_a_id JOIN judgments j ON j.comparison_id = c.id "
                "JOIN generations r ON r.id = j.generation_id"
            )
        ).all()
    assert len(rows) == reasons(database).total() == 24
    assert {row[0] for row in rows} == {0.0, 1.0}
    for outcome, output, judge, verdict, reply in rows:
        assert (judge, reply) == ("grader", "yes" if "3" in output else "no")
        assert outcome == verdict == float("3" in output)
        assert list(findings(session)) == []
    assert scored_by(record.spec["judge"]) == ("grader",)  # as the answer names it


OF_TEXTS = ["prompt", "example", "finish_reason", "input_tokens", "output_tokens", "logprobs", "reasoning"]


@pytest.mark.parametrize(
    ("shown", "said"),
    [
        (OF_TEXTS, set()),
        (
            ["output", "candidate"],
            {
                (
                    "the reply of judge grader is the answer to another prompt; the calls of a plug-in can "
                    "depend on more than what is stored",
                    False,
                )
            },
        ),
    ],
)
def test_what_a_plug_in_asked_by_is_known_when_a_database_is_checked_or_nothing_is_said_to_be_wrong(
    acme, database, shown, said
):
    with faulty_server(reply=grade) as server:
        served_campaigns.run(database, asking_spec(server.url, shown=shown))
    with database.reading() as session:
        assert {(each.sentence, each.is_wrong) for each in findings(session)} == said


def test_a_plug_in_whose_calls_fail_for_some_outputs_leaves_those_unscored(acme, database):
    with faulty_server(reply=grade) as server:
        served_campaigns.run(database, asking_spec(server.url, on="3 plus"))
    found = reasons(database)
    assert found[None] > found["judge_failed"] > 0


@pytest.mark.parametrize("kind", ["acme-judge", "acme-pairs"])
def test_a_judge_that_fails_on_everything_ends_the_campaign_and_wastes_no_text(acme, database, kind):
    with faulty_server(reply=repeat) as server:
        for _ in range(2):
            with pytest.raises(JudgeBroken, match=r"raised KeyError.*on each of the last 12 comparisons"):
                served_campaigns.run(database, spec_of(server.url, kind, on=""))
            asked = len(server.calls)
    assert not reasons(database)
    assert len(server.calls) == asked


def test_calls_that_fail_leave_duels_unscored_too(acme, database, monkeypatch):
    monkeypatch.setenv("ACME_FAILS_AT", "calls")
    with faulty_server(reply=repeat) as server, pytest.raises(JudgeBroken, match="raised KeyError"):
        served_campaigns.run(database, spec_of(server.url, "acme-pairs", on="no such text"))


def test_short_rounds_that_fail_add_up(acme, database):
    with faulty_server(reply=repeat) as server:
        spec = spec_of(server.url, "acme-judge", on="").model_copy(update={"batch_size": 4})
        with pytest.raises(JudgeBroken, match="on each of the last 12 comparisons"):
            served_campaigns.run(database, spec)
    assert reasons(database) == {"judge_failed": 8}
    assert 8 < MOST_IN_A_ROW <= 12


def test_outputs_of_one_candidate_cost_that_candidate_and_not_the_campaign(acme, database):
    """All of its outputs make the judge fail: that is for `fail_on_error` to judge."""
    with faulty_server(reply=repeat) as server:
        spec = served_spec(
            served_model(server.url),
            judge={"type": "acme-judge", "on": "="},
            prompts=("{{ input }}=", "{{ input }}:"),
            batch_size=1,
        )
        served_campaigns.run(database, spec)
    assert reasons(database) == {None: 6, "judge_failed": 6}


@pytest.mark.parametrize("on", ["", "="])
def test_a_judge_that_never_worked_refutes_no_candidate(acme, database, on):
    """Candidates are tested one after the other: the first, or all of them, make the judge fail."""
    rows = [{"id": f"e{n}", "input": f"{n} plus", "target": "a"} for n in range(24)]
    Path("letters.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    with faulty_server(reply=repeat) as server:
        spec = served_spec(
            served_model(server.url),
            objective="certify",
            prompts=("{{ input }}=", "{{ input }}:"),
            judge={"type": "acme-judge", "on": on},
            certify={"alpha": 0.3, "cost": "custom", "costs": {"one/p0": 2, "one/p1": 1}},
            selector={"name": "r-eval"},
            stopping={"budget": 20, "delta": 0.1},
        )
        for batch_size, said in (
            (4, "on each of the last 4 comparisons"),
            (1, "on the only comparison so far"),
        ):
            with pytest.raises(JudgeBroken, match=said):
                served_campaigns.run(
                    database, spec.model_copy(update={"name": f"of-{batch_size}", "batch_size": batch_size})
                )


@pytest.mark.parametrize("place", ["init", "ask", "tell", "decision"])
def test_a_selector_that_fails_is_named(acme, database, monkeypatch, place):
    monkeypatch.setenv("ACME_RAISES", "base")
    with faulty_server(reply=repeat) as server:
        spec = served_spec(served_model(server.url), selector={"name": "acme-selector"})
        if place != "init":
            served_campaigns.begun(database, spec)
        monkeypatch.setenv("ACME_FAILS_AT", place)
        expected = SpecError if place == "init" else PluginFailed
        with pytest.raises(expected, match=r"the selector 'acme-selector' \(acme_plugins:Selector\) raised"):
            served_campaigns.run(database, spec)


def test_a_judge_that_cannot_be_made_is_named_and_nothing_is_stored(acme, monkeypatch):
    monkeypatch.setenv("ACME_FAILS_AT", "init")
    monkeypatch.setenv("ACME_RAISES", "exit")
    with pytest.raises(SpecError, match=r"the judge 'acme-judge' \(acme_plugins:Judge\) raised SystemExit"):
        check_campaign(served_spec(served_model("http://127.0.0.1:9/v1"), judge={"type": "acme-judge"}))


@pytest.mark.parametrize(
    ("method", "returned", "said"),
    [
        ("ask", "None", "ask must return a Batch, got NoneType"),
        ("ask", "Batch(np.array([7]), np.array([0]))", "ask returned arm 7, but there are 3, counted from 0"),
        (
            "ask",
            "Batch(np.array([0]), np.array([-1]))",
            "ask returned example -1, but there are 4, counted from 0",
        ),
        ("ask", "Batch(np.array([0.5]), np.array([0]))", "arms must be integers"),
        ("decision", "{}", "decision must return a Decision, got dict"),
        ("decision", "replace(super().decision(), best=9)", "the decision names arm 9, but there are 3"),
        ("decision", "replace(super().decision(), lower=np.zeros(2))", "must have 3 arms each"),
        ("decision", "replace(super().decision(), estimates=[0, 0, 0])", "must have 3 arms each"),
        ("decision", "replace(super().decision(), claim='proven')", "claim is 'proven', of type str"),
        ("decision", "replace(super().decision(), stop='yes')", "stop is 'yes', of type str"),
        (
            "decision",
            "replace(super().decision(), status=('winner', 'out', 'out'))",
            "status has 'winner'",
        ),
        (
            "decision",
            "replace(super().decision(), reason='tired')",
            "reason has 'tired', which",
        ),
        (
            "decision",
            "replace(super().decision(), claim=Claim(kind='sure'))",
            "claim.kind has 'sure'",
        ),
        (
            "decision",
            "replace(super().decision(), differences=three(9))",
            "the decision names arm 9, but there are",
        ),
        (
            "decision",
            "replace(super().decision(), lower=np.ones(3), upper=np.zeros(3))",
            "the decision's interval of arm 0 ends before it begins",
        ),
    ],
)
def test_what_a_selector_returns_is_held_against_what_there_is(acme, tmp_path, method, returned, said):
    module = tmp_path / "acme_plugins.py"
    given = "self, rng" if method == "ask" else "self"
    module.write_text(
        "import numpy as np\nfrom dataclasses import replace\n"
        "from winnow.algorithms.claims import Claim\nfrom winnow.algorithms.decision import Differences\n"
        "from winnow.algorithms.protocols import Batch\n"
        "def three(against):\n    numbers = dict.fromkeys(('estimates', 'lower', 'upper'), np.zeros(3))\n"
        "    return Differences(against=against, delta=0.1, **numbers)\n"
        + module.read_text().partition("    def ask(")[0]
        + f"    def {method}({given}):\n        return {returned}\n"
    )
    selector = campaign_selector("acme-selector", n_arms=3, n_examples=4)
    with pytest.raises(PluginFailed, match=said):
        selector.ask(None) if method == "ask" else selector.decision()
