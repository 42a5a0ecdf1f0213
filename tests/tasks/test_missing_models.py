"""Models that cannot be asked when a campaign begins: it is refused, or begins without them where it may."""

import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from faulty_server import DROPPED, UNKNOWN_MODEL, WRONG_KEY, always, faulty_server
from served_campaigns import run, served_model, served_spec, write_data
from stored_campaigns import store_checked

from winnow.storage.engine.database import open_database
from winnow.storage.records import campaigns as campaign_records
from winnow.tasks.answer.sentences.answer_lines import answer_lines, headline
from winnow.tasks.campaign.look import Look
from winnow.tasks.data.hub_cache import why_unknown_to_hub
from winnow.tasks.engines.openai import server_calls
from winnow.tasks.engines.protocol import ModelRef
from winnow.tasks.queries.status import campaign_status
from winnow.tasks.setup.check import check_campaign
from winnow.tasks.setup.definition_changes import IdentityChanged
from winnow.tasks.setup.missing_models import ModelsMissing
from winnow.tasks.setup.open_campaign import reopen_campaign

MAY_MISS = {"max_retries": 0, "max_restarts": 0, "log_folder": "logs", "allow_missing": True}


@pytest.fixture(autouse=True)
def _in_folder(tmp_path, monkeypatch):
    monkeypatch.setattr(server_calls, "FIRST_DELAY", 0.001)
    monkeypatch.chdir(tmp_path)
    write_data(tmp_path)


@contextmanager
def knowing(*models):
    """A server that knows these models and says of all others that they do not exist."""
    with faulty_server(lambda call: None if call.body["model"] in models else UNKNOWN_MODEL) as server:
        yield server


@pytest.fixture
def dead():
    """The base URL of a server that has ended."""
    with faulty_server() as server:
        url = server.url
    return url


def stored(spec):
    """Store a campaign as `winnow run` does; return the names of its candidates and what was said."""
    said = []
    store_checked(check_campaign(spec), say=lambda event, sentence: said.append((event, sentence)))
    database = open_database(spec.storage)
    with database.reading() as session:
        record = campaign_records.find_campaign(session, spec.name)
        names = campaign_records.candidate_names(session, record.id)
    return database, names, said


def in_three(server, dead, **keys):
    """A campaign of three models, of which one answers, one has another name and one has a dead server."""
    return served_spec(
        served_model(server.url),
        served_model(server.url, "two", model="servd"),
        served_model(dead, "three"),
        **keys,
    )


def test_a_campaign_is_refused_in_one_sentence_with_all_models_that_cannot_be_asked(dead, tmp_path):
    with knowing("served") as server, pytest.raises(ModelsMissing) as refused:
        stored(in_three(server, dead))
    said = str(refused.value)
    assert said.startswith("2 of 3 models cannot be used: 'two' (")
    assert f"{server.url} does not have the model (404: The model does not exist.)" in said
    assert "it lists served" in said
    assert f"and 'three' ({dead} gave no answer" in said
    assert "--allow-missing (execution.allow_missing: true)" in said
    assert "\n" not in said
    with open_database(f"sqlite:///{tmp_path / 'winnow.db'}").reading() as session:
        assert campaign_records.find_campaign(session, "letters") is None
    # One token of each, and no canary: nothing was spent.
    assert [call.body["max_tokens"] for call in server.canaries] == [1, 1]
    assert server.calls == []


def test_models_that_may_be_missing_are_left_out_of_the_campaign_for_good(dead):
    with knowing("served") as server:
        spec = in_three(server, dead, execution=MAY_MISS)
        database, names, said = stored(spec)
        assert names == ["one/p0", "one/p1"]
        [(event, sentence)] = said
        assert event == "models_missing"
        assert sentence.startswith("campaign 'letters' continues without 'two' (")
        record, checked = reopen_campaign(database, "letters", database.url)
        assert [*record.spec["left_out"]] == [*checked.left_out] == ["two", "three"]
        assert [each["name"] for each in record.spec["models"]] == ["one"]
        run(database, spec_of_one(server))
        with database.reading() as session:
            status = campaign_status(Look(session, campaign_records.get_campaign(session, "letters")))
    assert headline(status.answer, status.state) in (
        "winner without two, three, exact",
        "tied without two, three, exact",
    )
    assert dict(answer_lines(status.answer))["left out"].startswith(
        f"two ({server.url} does not have the model"
    )


def spec_of_one(server, **keys):
    return served_spec(served_model(server.url), execution=MAY_MISS, **keys)


@pytest.mark.parametrize("selector", ["champion", "row-mean"])
def test_they_join_later_as_additions_where_candidates_may_join(selector):
    keys = {"selector": {"name": selector}, "execution": MAY_MISS}
    known = ["served"]
    with faulty_server(lambda call: None if call.body["model"] in known else UNKNOWN_MODEL) as server:
        spec = served_spec(served_model(server.url), served_model(server.url, "two", model="later"), **keys)
        database, _, _ = stored(spec)
        asked = len(server.canaries)
        _, names, said = stored(spec)  # it is still not there
        assert names == ["one/p0", "one/p1"]
        assert "continues without 'two'" in said[0][1]
        is_growing = selector == "champion"
        assert (len(server.canaries) > asked) == is_growing
        run(database, served_spec(served_model(server.url), **keys), rounds=1)
        known.append("later")
        _, names, said = stored(spec)
        record, checked = reopen_campaign(database, "letters", database.url)
        if is_growing:
            assert names == ["one/p0", "one/p1", "two/p0", "two/p1"]
            assert list(checked.first_rounds) == [0, 0, 1, 1]
            assert "left_out" not in record.spec
        else:
            assert names == ["one/p0", "one/p1"]
            assert [*record.spec["left_out"]] == ["two"]


def test_what_joins_is_asked_before_it_does_and_what_may_not_join_is_refused_as_ever():
    with knowing("served") as server:
        begun, more = served_model(server.url), served_model(server.url, "two", model="servd")
        growing = {"selector": {"name": "champion"}}
        stored(served_spec(begun, **growing))
        with pytest.raises(ModelsMissing, match="1 of 2 models cannot be used: 'two'"):
            stored(served_spec(begun, more, **growing))
        _, names, _ = stored(served_spec(begun, more, **growing, execution=MAY_MISS))
        assert names == ["one/p0", "one/p1"]
        stored(served_spec(begun, name="fixed"))
        with pytest.raises(IdentityChanged, match="began without"):
            stored(served_spec(begun, more, name="fixed"))


def test_what_a_campaign_cannot_do_without_is_never_left_out(dead):
    with knowing("served") as server:
        one, two = served_model(server.url), served_model(dead, "two")
        gate = {"selector": {"name": "gate", "params": {"baseline": "two/p0"}}, "execution": MAY_MISS}
        with pytest.raises(ModelsMissing, match=r"the campaign needs two\)"):
            stored(served_spec(one, two, **gate))
        with pytest.raises(ModelsMissing, match="2 of 2 models") as refused:
            stored(served_spec(two, served_model(dead, "three"), execution=MAY_MISS))
        assert "begin without" not in str(refused.value)
        judge = {
            "type": "llm",
            "rubric": "Right?",
            "scale": "yes/no",
            "model": served_model(dead, "judging"),
        }
        with pytest.raises(ModelsMissing, match=r"the campaign needs judging\)"):
            stored(served_spec(one, judge=judge, execution=MAY_MISS))


def test_what_the_file_says_of_a_missing_model_goes_with_it(dead):
    with knowing("served") as server:
        execution = {
            **MAY_MISS,
            "prices": {"one": {"input": 1, "output": 1}, "two": {"input": 1, "output": 1}},
        }
        costs = {f"{model}/p{i}": 1.0 + i for model in ("one", "two") for i in (0, 1)}
        selector = {"name": "champion", "params": {"prefer": "cost", "costs": costs}}
        _, names, _ = stored(
            served_spec(
                served_model(server.url),
                served_model(dead, "two"),
                exclude=[{"model": "two", "prompt": "p1"}],
                selector={
                    **selector,
                    "params": {
                        **selector["params"],
                        "costs": {name: cost for name, cost in costs.items() if name != "two/p1"},
                    },
                },
                stopping={"budget": 12, "delta": 0.05, "epsilon": 0.1},
                execution=execution,
            )
        )
        assert names == ["one/p0", "one/p1"]


def test_a_refused_key_is_a_model_that_cannot_be_asked_and_a_refused_parameter_is_none(monkeypatch):
    monkeypatch.setenv("TEST_KEY", "sk-abc***xyz")
    with faulty_server(always(WRONG_KEY)) as server:
        model = served_model(server.url, api_key="$TEST_KEY")
        with pytest.raises(ModelsMissing, match=r"refuses the key in \$TEST_KEY"):
            stored(served_spec(model))
    with faulty_server(lambda call: UNKNOWN_MODEL if "nonsense" in call.body else None) as server:
        stored(served_spec(served_model(server.url)))


def test_a_server_that_fails_for_a_while_is_there(dead):
    """Retries are those of every request."""
    with faulty_server(lambda call: DROPPED if call.attempt < 2 else None) as server:
        _, names, said = stored(served_spec(served_model(server.url), execution={"max_retries": 3}))
    assert len(names) == 2
    assert said == []


def test_nothing_is_asked_where_only_stored_texts_are_taken(dead):
    _, names, _ = stored(served_spec(served_model(dead), reuse="only"))
    assert len(names) == 2


@pytest.fixture
def hub(monkeypatch, tmp_path):
    """A hub that knows one model, with one branch, and nobody's cache."""
    for name in ("HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE", "HF_HUB_OFFLINE", "VLLM_USE_MODELSCOPE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *_):
            pass

        def do_GET(self):
            known = self.path in ("/api/models/owner/known", "/api/models/owner/known/revision/main")
            code = "RevisionNotFound" if "/revision/" in self.path else "RepoNotFound"
            body = json.dumps({"id": "owner/known", "sha": "1" * 40} if known else {"error": code}).encode()
            self.send_response(200 if known else 404)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            if not known:
                self.send_header("x-error-code", code)
            self.end_headers()
            self.wfile.write(body)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    url = f"http://127.0.0.1:{server.server_port}"
    monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", url)
    # Read from the environment once, at the library's import.
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
    yield url
    server.shutdown()
    server.server_close()
    thread.join()


def on_hub(name, **keys):
    return ModelRef(name="m", provider="transformers", model=name, **keys)


def test_the_hub_is_asked_about_a_model_that_is_not_in_its_cache(hub, monkeypatch, tmp_path):
    assert why_unknown_to_hub(on_hub("owner/known")) is None
    assert why_unknown_to_hub(on_hub("owner/known", revision="main")) is None
    assert why_unknown_to_hub(on_hub("owner/knwon")) == (
        "the hub has no model owner/knwon, or your account cannot read it"
    )
    assert why_unknown_to_hub(on_hub("owner/known", revision="v9")) == (
        "the hub has no revision v9 of owner/known"
    )
    folder = tmp_path / "hf" / "hub" / "models--owner--cached"
    (folder / "refs").mkdir(parents=True)
    (folder / "refs" / "main").write_text("1" * 40)
    (folder / "snapshots" / ("1" * 40)).mkdir(parents=True)
    assert why_unknown_to_hub(on_hub("owner/cached")) is None
    assert why_unknown_to_hub(on_hub("owner/cached", revision="1" * 40)) is None
    assert why_unknown_to_hub(on_hub("owner/knwon", model_args={"cache_dir": "elsewhere"})) is None
    (tmp_path / "owner" / "folder").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    assert why_unknown_to_hub(on_hub("owner/folder")) is None
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    assert "forbids requests to the hub" in why_unknown_to_hub(on_hub("owner/known"))


def test_a_hub_that_does_not_answer_is_named(hub, monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", "http://127.0.0.1:9")
    assert why_unknown_to_hub(on_hub("owner/known")).startswith("the hub did not answer about owner/known: ")


def test_a_campaign_that_may_miss_nothing_is_stored_as_before_there_was_the_key():
    begun = served_spec(served_model("http://127.0.0.1:9/v1"))
    assert "allow_missing" not in begun.execution_fields()["execution"]
    assert served_spec(served_model("http://h/v1"), execution=MAY_MISS).execution_fields()["execution"][
        "allow_missing"
    ]


SCHEMA = {"json_schema": {"type": "object", "required": ["a"]}}
STRUCTURED = [{"name": "g", "structured_output": SCHEMA}]


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ('{"a": 1}', None),
        ('{"a": [1, ', None),
        (
            "\x1b[2JSure, here is the JSON that you asked me for",
            "check: the server of one ignores structured_output (an answer began "
            "'\u00b7[2JSure, here is the JSON that you",
        ),
    ],
)
def test_a_server_that_ignores_a_structure_is_named_before_anything_is_spent(answer, words):
    with faulty_server(reply=lambda call: answer) as server:
        model = served_model(server.url, chat=True)
        database, _, said = stored(served_spec(model, generate_configs=STRUCTURED))
        asked = [call.body.get("response_format") is not None for call in server.canaries]
        stored(served_spec(model, generate_configs=STRUCTURED))  # one that was begun is not asked again
        again = len(server.canaries)
    database.close()
    assert sorted(asked) == [False, True]  # both are sent at once
    assert again == 2
    assert [event for event, _ in said] == ([] if words is None else ["structure_ignored"])
    assert all(sentence.startswith(words) for _, sentence in said)
