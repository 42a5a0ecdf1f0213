"""Where a served model is asked, and under which key: what a spec may say, and what is stored of it."""

import json

import pytest

from winnow.tasks.candidates.cache_keys import fingerprint_model, request_content
from winnow.tasks.candidates.model_refs import model_ref
from winnow.tasks.engines.protocol import ModelRef
from winnow.tasks.engines.providers import provider_names
from winnow.tasks.engines.server_keys import server_url
from winnow.tasks.errors import SpecError
from winnow.tasks.judges.asking.judge_models import judge_models
from winnow.tasks.setup.load import check_campaign_file
from winnow.tasks.setup.open_campaign import open_campaign, reopen_campaign
from winnow.tasks.spec.campaign import CampaignSpec
from winnow.tasks.spec.sections.generate_config import GenerateConfig
from winnow.tasks.spec.sections.models import ModelSpec

URL = "http://127.0.0.1:8000/v1"
LOCAL = "provider: transformers, model: checkpoints/small"
STORAGE = "sqlite:///results.db"


def served(**keys):
    keys = {"provider": "openai", "model": "qwen"} | keys
    return ", ".join(f"{key}: '{value}'" for key, value in keys.items())


def spec(**keys):
    return ModelSpec(name="m", provider="openai", model="qwen", **keys)


def test_a_key_is_named_by_its_variable_and_never_held(monkeypatch):
    monkeypatch.setenv("MY_KEY", "sk-secret")
    ref = model_ref(spec(model_base_url=f"{URL}/", api_key="$MY_KEY"), "models[0]")
    assert (ref.model_base_url, ref.api_key) == (URL, "MY_KEY")
    assert "sk-secret" not in repr(ref)


@pytest.mark.parametrize(
    ("keys", "variable"), [({"api_key": "$MY_KEY", "model_base_url": URL}, "MY_KEY"), ({}, "OPENAI_API_KEY")]
)
@pytest.mark.parametrize("value", [None, "", " "])
def test_a_variable_that_is_not_set_is_named(monkeypatch, keys, variable, value):
    monkeypatch.delenv(variable, raising=False)
    if value is not None:
        monkeypatch.setenv(variable, value)
    with pytest.raises(
        SpecError, match=rf"^models\[0\].api_key: the environment variable {variable} is not set"
    ):
        model_ref(spec(**keys), "models[0]")


def test_a_server_of_ones_own_needs_no_key_and_gets_none(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-for-openai")
    assert model_ref(spec(model_base_url=URL), "models[0]").api_key is None
    assert model_ref(spec(chat=True), "models[0]").api_key == "OPENAI_API_KEY"


SECRETS = [
    ({"api_key": "sk-123-secret"}, "api_key: must be the name of an environment variable"),
    ({"api_key": "$sk-123-secret"}, "api_key: must be the name of an environment variable"),
    ({"model_base_url": "http://user:sk-123-secret@host/v1"}, "model_base_url: must have no user, password"),
    ({"model_base_url": "http://sk-123-secret@host/v1"}, "model_base_url: must have no user, password"),
    (
        {"model_base_url": "http://host/sk-123-secret/v1/chat/completions"},
        "model_base_url: must end with the",
    ),
    ({"model_base_url": "http://host/v1/completions/"}, "model_base_url: must end with the version, as in"),
    (
        {"model_base_url": "http://sk-123-secret/v1?api-version=1"},
        "model_base_url: must have no query; for Azure use provider: litellm",
    ),
    ({"model_base_url": "http://host/v1?key=sk-123-secret"}, "model_base_url: must have no user, password"),
    ({"model_base_url": "sk-123-secret"}, "model_base_url: must be the base URL of a server"),
    ({"model_base_url": "http://host:sk-123-secret/v1"}, "model_base_url: must be the base URL of a server"),
]


@pytest.mark.parametrize(("keys", "said"), SECRETS)
def test_a_secret_in_the_file_is_refused_and_not_repeated(campaign_file, keys, said):
    path = campaign_file(LOCAL, served(**keys))
    with pytest.raises(SpecError) as caught:
        check_campaign_file(path)
    assert f"campaign.yaml:5: models[0].{said}" in str(caught.value)
    assert "sk-123-secret" not in str(caught.value)


@pytest.mark.parametrize(("keys", "said"), SECRETS)
def test_nor_is_one_of_a_judges_model(keys, said):
    with pytest.raises(SpecError) as caught:
        judge_models([{"judge_id": "j", "provider": "openai", "model": "qwen", **keys}], GenerateConfig())
    assert f"judge.models[0].{said}" in str(caught.value)
    assert "sk-123-secret" not in str(caught.value)


def test_a_key_that_is_a_number_is_not_repeated_either(campaign_file):
    with pytest.raises(SpecError) as caught:
        check_campaign_file(campaign_file(LOCAL, "provider: openai, model: qwen, api_key: 123456789"))
    assert "123456789" not in str(caught.value)


@pytest.mark.parametrize("name", ["stream", "n", "seed", "messages"])
def test_what_every_request_has_from_winnow_is_refused_when_the_file_is_read(campaign_file, name):
    value = "1" if name == "seed" else "null"
    model = f"provider: openai, model: qwen, model_base_url: '{URL}', model_args: {{{name}: {value}}}"
    with pytest.raises(SpecError) as refused:
        check_campaign_file(campaign_file(LOCAL, model))
    said = f"models[0].model_args.{name}: is set by Winnow in each request; remove it"
    assert said in str(refused.value)


def test_a_server_may_be_sent_no_seed_which_makes_it_another_model(campaign_file):
    model = f"provider: openai, model: qwen, model_base_url: '{URL}'"
    plain = check_campaign_file(campaign_file(LOCAL, model)).candidates[0]
    seedless = check_campaign_file(campaign_file(LOCAL, f"{model}, model_args: {{seed: null}}")).candidates[0]
    assert seedless.model.model_args == {"seed": None}
    requests = [request_content(each.model, "f", "p", each.sampling, 0) for each in (plain, seedless)]
    assert requests[0] != requests[1]


@pytest.mark.parametrize("blanks", [" {}", "{} ", "\t{}\n", " {}/ "])
def test_blanks_around_a_base_url_are_no_part_of_it(campaign_file, blanks):
    def identity(url):
        written = json.dumps(url)
        model = f"provider: openai, model: qwen, model_base_url: {written}"
        checked = check_campaign_file(campaign_file(LOCAL, model))
        return checked.identity(), checked.spec.execution_fields()

    assert identity(blanks.format(URL)) == identity(URL)


@pytest.mark.parametrize("key", [f"model_base_url: '{URL}'", "api_key: $MY_KEY"])
def test_both_keys_are_for_served_models_only(campaign_file, key):
    with pytest.raises(SpecError, match=r"models\[0\]\.\w+: is only for provider: openai or litellm; remove"):
        check_campaign_file(campaign_file(LOCAL, f"{LOCAL}, {key}"))


def test_of_a_provider_that_does_not_exist_nothing_is_told_that_only_follows_from_it(campaign_file):
    path = campaign_file(
        LOCAL,
        f"provider: opnai, model: qwen, model_base_url: '{URL}', api_key: $MY_KEY, served_identity: fp16, "
        "chat: true, reasoning: {parser: server}",
    )
    with pytest.raises(SpecError) as caught:
        check_campaign_file(path)
    assert str(caught.value) == (
        f"{path}:5: models[0].provider: unknown provider 'opnai'; did you mean 'openai'? "
        f"available: {', '.join(provider_names())}"
    )
    with pytest.raises(SpecError) as caught:
        check_campaign_file(path, ["models[0].provider=7"])
    assert str(caught.value).count("\n") == 0
    assert "models[0].provider: must be text (got 7)" in str(caught.value)


@pytest.mark.parametrize(
    ("name", "remedy"),
    [
        ("anthropic", "; its API is that of provider: litellm, model: anthropic/qwen"),
        ("ollama", "; its server is one of provider: openai, model_base_url: URL/v1"),
    ],
)
def test_who_is_taken_for_a_provider_is_told_whose_model_it_is(campaign_file, name, remedy):
    with pytest.raises(SpecError) as caught:
        check_campaign_file(campaign_file(LOCAL, f"provider: {name}, model: qwen"))
    assert str(caught.value).endswith(f"models[0].provider: unknown provider '{name}'{remedy}")


@pytest.fixture
def moving(campaign_file, monkeypatch):
    """The campaign with a served model, at whichever URL."""
    monkeypatch.setenv("MY_KEY", "sk-secret")
    monkeypatch.setenv("OTHER_KEY", "sk-other")
    return lambda **keys: check_campaign_file(campaign_file(LOCAL, served(**keys)))


def test_another_url_or_key_is_the_same_campaign_and_is_stored(moving, database):
    opened = open_campaign(database, moving(model_base_url=URL, api_key="$MY_KEY"))
    elsewhere = {"model_base_url": "https://elsewhere:9/v1", "api_key": "$OTHER_KEY"}
    again = open_campaign(database, moving(**elsewhere))
    assert (again.id, again.spec) == (opened.id, opened.spec)
    assert opened.execution["servers"] == {"models.small": {"model_base_url": URL, "api_key": "$MY_KEY"}}
    assert again.execution["servers"] == {"models.small": elsewhere}
    reopened, checked = reopen_campaign(database, "letters", STORAGE)
    assert reopened == again
    assert checked.spec.models[0].model_base_url == elsewhere["model_base_url"]
    assert checked.models[0].api_key == "OTHER_KEY"
    assert "sk-" not in json.dumps([again.spec, again.execution])
    assert not any("api_key" in each.as_record().model for each in checked.candidates)


@pytest.mark.parametrize("change", [{"model": "other"}, {"revision": "2"}])
def test_another_id_or_revision_is_another_campaign(moving, database, change):
    open_campaign(database, moving(model_base_url=URL))
    with pytest.raises(SpecError, match="cannot change"):
        open_campaign(database, moving(model_base_url=URL, **change))


def test_a_campaign_without_servers_is_stored_as_it_was_before_there_were_any(campaign_file, database):
    opened = open_campaign(database, check_campaign_file(campaign_file()))
    assert set(opened.execution) == {"budget", "reuse", "execution"}
    assert opened.spec["served_at"] == {}
    assert not {"model_base_url", "api_key"} & opened.spec["models"][0].keys()


def test_judges_and_autoevaluators_may_move_too():
    def at(port):
        server = {"provider": "openai", "model": "q", "model_base_url": f"http://h:{port}/v1"}
        shared = {
            "name": "c",
            "models": [{"name": "m", **server}],
            "prompts": [{"name": "p", "template": "{{ input }}"}],
            "dataset": {"path": "d.jsonl"},
            "stopping": {"budget": 64, "delta": 0.1},
        }
        duel = {
            "objective": "best-duel",
            "judge": {"type": "llm", "models": [{"judge_id": "j", **server}]},
            "selector": {"name": "llm-po"},
        }
        autoevaluator = {"model": {"name": "a", **server}, "prompt": "{{ input }}"}
        certify = {
            "objective": "certify",
            "judge": {"type": "exact"},
            "selector": {"name": "r-autoeval-plus"},
            "certify": {"alpha": 0.1, "cost": "size", "autoevaluator": autoevaluator},
        }
        return [CampaignSpec.model_validate(shared | own) for own in (duel, certify)]

    for here, there in zip(at(1), at(2), strict=True):
        assert here.identity() == there.identity()
        assert here.execution_fields() != there.execution_fields()
        assert len(here.execution_fields()["servers"]) == 2
        assert CampaignSpec.from_stored(here.identity(), there.execution_fields(), here.storage) == there


def test_judges_at_two_servers_are_two_judges_unless_they_are_said_to_be_one(campaign_file):
    def judge_id(port, model="q", **keys):
        server = f"provider: openai, model: {model}, model_base_url: 'http://h:{port}/v1'"
        server += "".join(f", {key}: {value}" for key, value in keys.items())
        duel = ["objective=best-duel", "selector={name: llm-po}"]
        judge = f"judge={{type: llm, models: [{{judge_id: j, {server}}}]}}"
        return check_campaign_file(campaign_file(), [*duel, judge]).judge_id

    assert len({judge_id(1), judge_id(2), judge_id(1, "other")}) == 3
    said = {"served_identity": "fp16"}
    assert judge_id(1, **said) == judge_id(2, **said) != judge_id(1)


SERVED = {"name": "m", "provider": "openai", "model": "qwen"}


def test_a_served_models_fingerprint_is_its_id_its_revision_and_its_server(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    print_ = fingerprint_model(ModelRef(**SERVED))
    assert fingerprint_model(ModelRef(**SERVED, api_key="KEY")) == print_
    others = [{"revision": "2"}, {"model": "other"}, {"model_base_url": URL}, {"served_identity": "fp16"}]
    assert len({print_, *(fingerprint_model(ModelRef(**SERVED | other)) for other in others)}) == 5
    (tmp_path / "qwen").mkdir()
    (tmp_path / "qwen" / "config.json").write_text("{}")
    assert fingerprint_model(ModelRef(**SERVED)) == print_


def test_where_people_say_what_is_served_it_does_not_matter_where():
    said = SERVED | {"served_identity": "llama fp16"}
    assert fingerprint_model(ModelRef(**said)) == fingerprint_model(ModelRef(**said, model_base_url=URL))
    other = said | {"served_identity": "llama int4"}
    assert fingerprint_model(ModelRef(**other)) != fingerprint_model(ModelRef(**said))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (None, "https://api.openai.com/v1/"),
        ("http://Host:80/v1", "http://host/v1"),
        ("https://host:443/v1/", "HTTPS://HOST/v1"),
        ("http://[::1]:8000/v1", "http://[::1]:8000/v1/"),
    ],
)
def test_a_server_has_one_url_however_it_is_written(one, other):
    assert server_url(one) == server_url(other)


@pytest.mark.parametrize(
    "other", ["https://host/v1", "http://host:8000/v1", "http://host/V1", "http://host.org/v1"]
)
def test_another_scheme_host_port_or_path_is_another_server(other):
    assert server_url(other) != server_url("http://host/v1")


def test_what_is_served_is_named_of_served_models_alone(campaign_file):
    with pytest.raises(SpecError, match=r"models\[0\]\.served_identity: is only for provider: openai"):
        check_campaign_file(campaign_file(), ["models[0].served_identity=fp16"])
