"""Datasets in the hub's layout: a folder, what `save_to_disk` wrote, and the hub's cache, offline."""

import json

import datasets
import pyarrow
import pyarrow.parquet
import pytest

from winnow.tasks.data import hub, hub_cache
from winnow.tasks.data.sources import read_dataset
from winnow.tasks.errors import DatasetError
from winnow.tasks.plugins.extras import ExtraMissing
from winnow.tasks.setup.definition_changes import IdentityChanged
from winnow.tasks.setup.load import check_campaign_file
from winnow.tasks.setup.open_campaign import open_campaign, reopen_campaign
from winnow.tasks.spec.sections.dataset import DatasetSpec

ONE, TWO = "1" * 40, "2" * 40
FIELDS = {"input": "question", "target": "answer"}
CARD = """\
---
configs:
- config_name: main
  data_files:
  - {split: train, path: main/train-*.parquet}
  - {split: test, path: main/test-*.parquet}
---
"""


def fill(folder, word):
    """A dataset of two splits in two shards each, as the hub serves it."""
    (folder / "main").mkdir(parents=True)
    (folder / "README.md").write_text(CARD)
    for split in ("train", "test"):
        for shard in range(2):
            rows = {"question": [f"{word} {split} {shard}{i}?" for i in range(2)], "answer": ["a", "b"]}
            path = folder / "main" / f"{split}-{shard:05}-of-00002.parquet"
            pyarrow.parquet.write_table(pyarrow.table(rows), path)
    return folder


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """The hub's cache, without a network; called, it downloads a commit of owner/sums."""
    for name in ("HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    folder = tmp_path / "hf" / "hub" / "datasets--owner--sums"

    def download(commit, revision="main"):
        (folder / "refs").mkdir(parents=True, exist_ok=True)
        (folder / "refs" / revision).write_text(commit)
        return fill(folder / "snapshots" / commit, commit[0])

    return download


def dataset(**keys):
    return read_dataset(DatasetSpec.model_validate({"fields": FIELDS, **keys}))


def questions(found):
    return [each.fields["input"] for each in found.examples]


def test_a_folder_in_the_hubs_layout_and_saved_ones_hold_the_same_examples(tmp_path, monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    folder = fill(tmp_path / "sums", "the")
    found = dataset(hub=str(folder), name="main", split="test")
    assert questions(found) == ["the test 00?", "the test 01?", "the test 10?", "the test 11?"]
    assert found.examples[1].targets == ("b",)
    splits = hub.load_splits(hub.HubSource(path=str(folder), name="main"), asks_hub=False)
    splits.save_to_disk(tmp_path / "saved")
    splits["test"].save_to_disk(tmp_path / "one")
    saved = dataset(hub=str(tmp_path / "saved"), split="test")
    assert saved.fingerprint == found.fingerprint == dataset(hub=str(tmp_path / "one")).fingerprint
    assert dataset(hub=str(folder), name="main", split="test", filter="answer == 'b'", limit=1).examples


@pytest.mark.parametrize(
    ("keys", "sentence"),
    [
        ({"split": "dev"}, "has no split 'dev'; choose one of train, test"),
        ({}, "has the splits train, test; set split to one"),
        ({"name": "socratic"}, "BuilderConfig 'socratic' not found. Available: ['main']"),
        ({"split": "test", "fields": {"input": "query"}}, "row 1 of test: unknown column 'query'"),
    ],
)
def test_what_a_dataset_does_not_hold_is_one_sentence(tmp_path, keys, sentence):
    with pytest.raises(DatasetError) as refused:
        dataset(hub=str(fill(tmp_path / "sums", "the")), **keys)
    assert sentence in str(refused.value)


def test_formats_that_hold_more_than_data_are_refused(tmp_path):
    folder = tmp_path / "pictures"
    folder.mkdir()
    (folder / "a.png").write_bytes(b"\x89PNG")
    with pytest.raises(DatasetError, match="convert them to one of arrow, csv, json, parquet, text"):
        dataset(hub=str(folder))


def test_code_that_comes_with_a_dataset_is_not_run(tmp_path):
    folder = tmp_path / "script"
    folder.mkdir()
    (folder / "script.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')")
    with pytest.raises(DatasetError, match="cannot be loaded"):
        dataset(hub=str(folder))
    assert not (tmp_path / "ran").exists()


SETTING = "dataset={hub: owner/sums, name: main, split: test, fields: {input: question, target: answer}}"


def test_a_campaign_is_known_by_the_commit_it_was_begun_with(cache, campaign_file, database, tmp_path):
    cache(ONE)
    path = campaign_file(add=f"storage: {database.url}\n")
    stored = open_campaign(database, check_campaign_file(path, [SETTING]))
    assert stored.spec["dataset"]["commit"] == ONE
    assert stored.spec["dataset"]["revision"] is None
    cache(TWO)
    again = check_campaign_file(path, [SETTING])
    assert questions(again.dataset)[0] == "1 test 00?"
    assert open_campaign(database, again) == stored
    other = check_campaign_file(path, [SETTING, "name=other"])
    assert other.spec.dataset.commit == TWO
    assert questions(other.dataset)[0] == "2 test 00?"
    cache("3" * 40, "v2")
    with pytest.raises(IdentityChanged, match=f"dataset.commit: '{ONE}' -> '{'3' * 40}'"):
        open_campaign(database, check_campaign_file(path, [SETTING, "dataset.revision=v2"]))
    (tmp_path / "hf").rename(tmp_path / "gone")
    assert questions(reopen_campaign(database, "letters", database.url)[1].dataset)[0] == "1 test 00?"


def test_solved_examples_of_the_hub_are_those_of_the_commit_it_was_begun_with(cache, campaign_file, database):
    cache(ONE)
    source = "{hub: owner/sums, name: main, split: train, fields: {input: question, target: answer}}"
    shown = f'prompts=[{{name: p, template: "{{{{ input }}}}", few_shot: {{n: 1, from: {source}}}}}]'
    path = campaign_file(add=f"storage: {database.url}\n")
    stored = open_campaign(database, check_campaign_file(path, [shown]))
    assert stored.spec["prompts"][0]["few_shot"]["from"]["commit"] == ONE
    cache(TWO)
    assert open_campaign(database, check_campaign_file(path, [shown])) == stored
    _, reopened = reopen_campaign(database, "letters", database.url)
    other = check_campaign_file(path, [shown, "name=other"])
    firsts = [each.candidates[0].template.few_shot.shots[0].question[0] for each in (reopened, other)]
    assert firsts == ["1", "2"]


def test_a_task_of_lm_eval_is_known_by_the_commit_of_its_revision(cache, campaign_file, database, tmp_path):
    cache(ONE)
    cache(TWO, "v2")
    task = (
        "{task: sums, dataset_path: owner/sums, dataset_name: main, test_split: test, doc_to_text: question, "
    )
    path = campaign_file(add=f"storage: {database.url}\n")
    text = (tmp_path / path).read_text()
    kept = [line for line in text.splitlines() if not line.startswith(("dataset:", "judge:"))]
    (tmp_path / path).write_text("\n".join([*kept, "task: {lm_eval: ./sums.yaml}"]))
    for kwargs, commit in (("{}", ONE), ("{revision: v2}", TWO)):
        (tmp_path / "sums.yaml").write_text(f"{task}doc_to_target: answer, dataset_kwargs: {kwargs}}}")
        checked = check_campaign_file(path)
        assert checked.spec.dataset.lm_eval.commit == commit
        assert questions(checked.dataset)[0] == f"{commit[0]} test 00?"
    stored = open_campaign(database, checked)
    cache("3" * 40, "v2")
    assert open_campaign(database, check_campaign_file(path)) == stored


def test_what_is_not_in_the_cache_is_said_without_asking_the_hub(cache, campaign_file):
    with pytest.raises(DatasetError, match=r"the dataset owner/sums is not in the hub's cache"):
        hub_cache.dataset_commit("owner/sums", None, asks_hub=True)
    folder = cache(ONE)
    (folder / "main" / "test-00001-of-00002.parquet").unlink()
    with pytest.raises(DatasetError, match=r"lacks main/test-00001-of-00002\.parquet"):
        dataset_of_commit(ONE)
    with pytest.raises(DatasetError, match=f"commit {TWO} of owner/sums is not in the hub's cache"):
        dataset_of_commit(TWO)


def dataset_of_commit(commit):
    spec = {"hub": "owner/sums", "name": "main", "split": "test", "commit": commit, "fields": FIELDS}
    return read_dataset(DatasetSpec.model_validate(spec), is_allowed=False)


def test_the_hub_is_asked_for_the_commit_of_a_revision_that_is_not_there(cache, monkeypatch):
    asked = []

    class Api:
        def dataset_info(self, name, revision):
            asked.append((name, revision))
            if name == "owner/none":
                raise OSError("no\nsuch dataset")
            return type("Info", (), {"sha": TWO})

    monkeypatch.setattr("huggingface_hub.HfApi", Api)
    monkeypatch.delenv("HF_HUB_OFFLINE")
    assert hub_cache.dataset_commit("owner/sums", "v1", asks_hub=True) == TWO
    assert asked == [("owner/sums", "v1")]
    with pytest.raises(
        DatasetError, match="the hub did not answer about owner/none: OSError: no such dataset"
    ):
        hub_cache.dataset_commit("owner/none", None, asks_hub=True)


def test_without_its_extra_a_dataset_of_a_hub_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setattr("winnow.tasks.plugins.extras.find_spec", lambda name: None)
    with pytest.raises(ExtraMissing, match=r"needs datasets, .*; run: pip install 'winnow-llm\[hub\]'"):
        dataset(hub=str(fill(tmp_path / "sums", "the")), name="main", split="test")


def test_pictures_are_left_out_whether_the_library_could_decode_them_or_not(tmp_path):
    folder = tmp_path / "pictures"
    folder.mkdir()
    features = {
        "question": datasets.Value("string"),
        "image": datasets.Image(),
        "pages": datasets.Sequence(datasets.Image()),
    }
    png = {"bytes": b"\x89PNG, and no picture", "path": None}
    rows = {"question": ["a", "b", "a"], "image": [png, None, png], "pages": [[png], [], [png]]}
    made = datasets.Dataset.from_dict(rows, features=datasets.Features(features))
    made.to_parquet(folder / "train.parquet")
    made.with_format("numpy").save_to_disk(tmp_path / "saved")
    for each in (folder, tmp_path / "saved"):
        found = dataset(hub=str(each), fields={"input": "question", "target": None})
        assert found.examples[0].fields == {
            "question": "a", "input": "a", "image": {"path": None}, "pages": [{"path": None}],
        }  # fmt: skip
        assert [*found.left_out] == ["image.bytes", "pages.bytes"]
        assert found.examples[2].key == f"{found.examples[0].key}-2"
        assert len(found.remarks) == 3


def test_values_that_json_lacks_are_told_by_their_column(tmp_path):
    folder = tmp_path / "bytes"
    folder.mkdir()
    pyarrow.parquet.write_table(pyarrow.table({"question": ["a"], "raw": [b"\0"]}), folder / "train.parquet")
    with pytest.raises(DatasetError, match="row 1 of train: column 'raw' contains bytes"):
        dataset(hub=str(folder), fields={"input": "question", "target": "raw"})
    (folder / "train.parquet").unlink()
    (folder / "train.jsonl").write_text(json.dumps({"question": "a", "answer": ["x", "y"]}))
    assert dataset(hub=str(folder)).examples[0].targets == ("x", "y")


@pytest.mark.parametrize("path", ["../secret.jsonl", "{outside}/secret.jsonl"])
def test_a_folder_names_no_files_that_are_not_its_own(tmp_path, monkeypatch, path):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    (tmp_path / "secret.jsonl").write_text('{"question": "secret", "answer": "a"}\n')
    (tmp_path / "sums").mkdir()
    (tmp_path / "sums" / "own.jsonl").write_text('{"question": "own", "answer": "a"}\n')
    named = path.format(outside=tmp_path)
    card = "---\nconfigs:\n- config_name: main\n  data_files:\n  - {{split: train, path: {}}}\n---\n"
    (tmp_path / "sums" / "README.md").write_text(card.format(named))
    with pytest.raises(DatasetError, match=r"names the file .*secret\.jsonl, which is outside the dataset"):
        dataset(hub=str(tmp_path / "sums"))
    (tmp_path / "sums" / "README.md").write_text(card.format("own.jsonl"))
    (tmp_path / "link").symlink_to("sums")
    assert questions(dataset(hub=str(tmp_path / "link"))) == ["own"]


def test_what_was_saved_names_no_files_that_are_not_its_own(tmp_path):
    for name in ("one", "other"):
        datasets.Dataset.from_list([{"question": name, "answer": "a"}]).save_to_disk(tmp_path / name)
    state = tmp_path / "one" / "state.json"
    held = json.loads(state.read_text())
    held["_data_files"] = [{"filename": f"../other/{each['filename']}"} for each in held["_data_files"]]
    state.write_text(json.dumps(held))
    with pytest.raises(DatasetError, match="which is outside the dataset"):
        dataset(hub=str(tmp_path / "one"))
