"""A model of a hub that is named alone is the commit that was downloaded; a stored campaign keeps its own."""

import pytest
from stored_campaigns import new_database

from winnow.tasks.data.hub_cache import cached_commit, pinned, revisions_of
from winnow.tasks.setup.load import check_campaign_file
from winnow.tasks.setup.open_campaign import open_campaign, reopen_campaign
from winnow.tasks.spec.campaign import CampaignSpec

ONE, TWO = "1" * 40, "2" * 40
LOCAL = "provider: transformers, model: checkpoints/small"
HUB = "provider: transformers, model: owner/name"


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """The hub's cache; called, it downloads a commit."""
    for name in ("HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))
    folder = tmp_path / "hf" / "hub" / "models--owner--name"

    def download(commit):
        (folder / "refs").mkdir(parents=True, exist_ok=True)
        (folder / "refs" / "main").write_text(commit)
        (folder / "snapshots" / commit[:40]).mkdir(parents=True, exist_ok=True)
        return folder

    return download


@pytest.fixture
def database(folder):
    database = new_database(folder / "winnow.db")
    yield database
    database.close()


def revision(checked):
    model = next(each for each in checked.models if each.name == "small")
    return model.revision


def test_what_lies_in_the_cache_is_found_and_nothing_else(cache, monkeypatch, tmp_path):
    assert cached_commit("owner/name") is None
    folder = cache(ONE)
    assert cached_commit("owner/name") == ONE
    assert cached_commit("owner/other") is None
    (folder / "snapshots" / ONE).rmdir()
    assert cached_commit("owner/name") is None
    cache("../../elsewhere")
    assert cached_commit("owner/name") is None
    cache(TWO)
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hf" / "hub"))
    monkeypatch.setenv("HF_HOME", "/nowhere")
    assert cached_commit("owner/name") == TWO


def test_a_model_is_loaded_and_known_by_the_commit_that_was_downloaded(cache, campaign_file):
    path = campaign_file(LOCAL, HUB)
    unknown = check_campaign_file(path)
    assert revision(unknown) is None
    cache(ONE)
    first = check_campaign_file(path)
    cache(TWO)
    second = check_campaign_file(path)
    assert (revision(first), revision(second)) == (ONE, TWO)
    prints = {each.identity()["model_fingerprints"]["small"] for each in (unknown, first, second)}
    assert len(prints) == 3


@pytest.mark.parametrize(
    "model", [f"{HUB}, revision: v1", LOCAL, "provider: openai, model: owner/name, chat: true"]
)
def test_a_revision_that_is_named_a_folder_and_a_served_model_stay(cache, campaign_file, monkeypatch, model):
    monkeypatch.setenv("OPENAI_API_KEY", "sk")
    cache(ONE)
    checked = check_campaign_file(campaign_file(LOCAL, model))
    assert revision(checked) == ("v1" if "v1" in model else None)


@pytest.mark.parametrize("begun", [None, ONE])
def test_a_stored_campaign_keeps_what_it_was_begun_with(cache, campaign_file, database, begun):
    path = campaign_file(LOCAL, HUB)
    if begun:
        cache(begun)
    record = open_campaign(database, check_campaign_file(path))
    cache(TWO)
    assert open_campaign(database, check_campaign_file(path)).id == record.id
    assert revision(check_campaign_file(path)) == begun
    assert revision(reopen_campaign(database, "letters", "sqlite:///winnow.db")[1]) == begun
    assert revision(check_campaign_file(path, ["name=another"])) == TWO


def test_judges_and_what_answers_for_humans_are_pinned_too(cache):
    cache(ONE)
    hub = {"name": "m", "model": "owner/name"}
    shared = {
        "name": "c",
        "models": [hub, {**hub, "name": "n", "generate_config": {"temperature": 0.5}}],
        "prompts": [{"name": "p", "template": "{{ input }}"}],
        "generate_configs": [{"name": "short", "max_tokens": 3}],
        "dataset": {"path": "d.jsonl"},
        "stopping": {"budget": 64, "delta": 0.1},
    }
    judge = {"type": "llm", "models": [{"judge_id": "j", "model": "owner/name"}]}
    duel = shared | {"objective": "best-duel", "judge": judge, "selector": {"name": "llm-po"}}
    autoevaluator = {"model": hub, "prompt": "{{ input }}"}
    certify = shared | {
        "objective": "certify",
        "judge": {"type": "exact"},
        "selector": {"name": "r-autoeval-plus"},
        "certify": {"alpha": 0.1, "cost": "size", "autoevaluator": autoevaluator},
    }
    places = {"models.m": ONE, "models.n": ONE}
    for values, place in ((duel, "judge.j"), (certify, "autoevaluator")):
        spec = CampaignSpec.model_validate(values)
        known = pinned(spec, {})
        assert revisions_of(known.identity()) == {**places, place: ONE}
        assert revisions_of(pinned(spec, {place: None}).identity())[place] is None
        # Nothing else has changed, not even which keys were given.
        assert known.identity()["generate_configs"] == [{"name": "short", "max_tokens": 3}]
        again = CampaignSpec.from_stored(known.identity(), known.execution_fields(), known.storage)
        assert pinned(again, {}) == again
