"""An exported policy chooses as its campaign would without exploring, and needs nothing of the campaign."""

import json
import pickle
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from stored_campaigns import StoredCampaign
from tiny_models import save_tiny_llama

from winnow.algorithms.errors import AlgorithmError
from winnow.algorithms.route.policy import policy_of
from winnow.storage.admin.schema import ensure_schema
from winnow.storage.engine.database import open_database
from winnow.storage.records import campaigns as campaign_records
from winnow.storage.records import datasets as dataset_records
from winnow.tasks.campaign.replay import restored
from winnow.tasks.data.sandboxed_templates import compile_template
from winnow.tasks.errors import SpecError, WinnowError
from winnow.tasks.objectives.route.exporting import export_policy
from winnow.tasks.objectives.route.router import Router
from winnow.tasks.objectives.route.selector import as_router
from winnow.tasks.setup.load import check_campaign_file
from winnow.tasks.setup.open_campaign import open_campaign, reopen_campaign

ROOT = Path(__file__).parents[2]
N_EXAMPLES = 12
SPEC = """\
name: routed
objective: route
seed: 1
models:
  - {name: one, provider: transformers, model: embedder}
prompts:
  - {name: a, template: "{{ input }}"}
  - {name: b, template: "{{ input }}:"}
  - {name: c, template: "{{ input }}!"}
dataset: {path: data.jsonl, fields: {id: id, input: input, target: target}}
judge: {type: exact}
embedder: {model: embedder, text: "{{ kind }} {{ input }}"}
selector: {name: pak-ucb, params: {kernel: rbf, bandwidth: 0.5}}
batch_size: 4
stopping: {budget: 12}
"""
VECTORS = "embedder: {type: precomputed, path: vectors.jsonl}"


@pytest.fixture(scope="module")
def template(tmp_path_factory):
    """A folder with a campaign that has rounds, on a checkpoint with random weights, and its policy."""
    folder = tmp_path_factory.mktemp("routed")
    save_tiny_llama(folder / "embedder", seed=2)
    rows = [
        {"id": f"e{i}", "input": "xyz"[i % 3] * 6 + f" {i}", "target": "t", "kind": "k"}
        for i in range(N_EXAMPLES)
    ]
    (folder / "data.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    rng = np.random.default_rng(0)
    vectors = [{"id": f"e{i}", "vector": rng.normal(size=3).tolist()} for i in range(N_EXAMPLES)]
    (folder / "vectors.jsonl").write_text("".join(json.dumps(row) + "\n" for row in vectors))
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        run(SPEC)
    return folder


@pytest.fixture
def folder(template, tmp_path, monkeypatch):
    """A copy of it, as the working directory."""
    shutil.copytree(template, tmp_path / "copy")
    monkeypatch.chdir(tmp_path / "copy")
    return tmp_path / "copy"


def exported(database, name, folder):
    """The policy of a stored campaign, written into a folder."""
    return export_policy(database, *reopen_campaign(database, name, "sqlite:///results.db"), folder)


def run(spec, *, name="routed"):
    """Store a campaign with two rounds, in which a is good at x, b at y, and c is never asked; export it."""
    Path("campaign.yaml").write_text(spec.replace("name: routed", f"name: {name}"))
    database = open_database("sqlite:///results.db")
    ensure_schema(database)
    record = open_campaign(database, check_campaign_file("campaign.yaml"))
    with database.reading() as session:
        campaign = StoredCampaign(
            database=database,
            record=record,
            candidate_ids=campaign_records.candidate_ids(session, record.id),
            example_ids=dataset_records.example_ids(session, record.dataset_id),
        )
    campaign.finish(campaign.plan(0, [0, 1, 0, 1], [0, 1, 4, 3]), [1.0, 1.0, 0.0, 0.25])
    campaign.finish(campaign.plan(1, [0, 1, 0, 1], [6, 7, 2, 5]), [1.0, 0.75, 0.5, None])
    assert exported(database, name, Path("policy")).prompts == 7  # the last has no score
    assert json.loads(Path("policy/policy.json").read_text())["prompts"] == 7
    database.close()


def own_predictions(name="routed"):
    """The selector's own means for every prompt of the campaign in [0, 1], and the prompts' vectors."""
    database = open_database("sqlite:///results.db")
    record, checked = reopen_campaign(database, name, "sqlite:///results.db")
    checked = checked.prepared(database)
    with database.reading() as session:
        selector, _, _ = restored(session, record, checked)
    database.close()
    policy = as_router(selector).policy()
    return np.array([(policy.scores(row) + 1) / 2 for row in checked.contexts]), checked.contexts


def fields(number):
    return {"kind": "k", "input": "xyz"[number % 3] * 6 + f" {number}"}


def test_a_policy_predicts_what_the_selector_does_from_fields_and_from_vectors(folder):
    router = Router.load("policy")
    assert router.candidates == ("one/a", "one/b", "one/c")
    predicted, contexts = own_predictions()
    for number in range(N_EXAMPLES):
        by_fields = router.scores(fields(number))
        assert list(by_fields) == ["one/a", "one/b", "one/c"]
        assert list(by_fields.values()) == pytest.approx(predicted[number].tolist(), nan_ok=True, abs=1e-6)
        by_vector = router.scores(3.0 * contexts[number])
        assert list(by_vector.values()) == pytest.approx(list(by_fields.values()), nan_ok=True, abs=1e-6)
        best = "one/" + "ab"[int(np.nanargmax(predicted[number]))]
        assert router.choose(fields(number)) == router.choose(contexts[number]) == best
    assert {router.choose(fields(number)) for number in (0, 1)} == {"one/a", "one/b"}
    assert np.isnan(predicted[:, 2]).all()


def test_a_router_goes_to_other_processes_as_the_folder_that_it_was_loaded_from(folder):
    router = Router.load("policy")
    there = pickle.loads(pickle.dumps(router))
    assert [there.choose(fields(number)) for number in range(4)] == [
        router.choose(fields(number)) for number in range(4)
    ]
    made = Router(router._policy, router.candidates, None, router._template)
    with pytest.raises(TypeError, match="only a Router that was loaded from a folder can be pickled"):
        pickle.dumps(made)


def test_a_text_stands_for_the_field_input(folder):
    run(SPEC.replace(', text: "{{ kind }} {{ input }}"', ""), name="plain")
    router = Router.load("policy")
    text = fields(0)["input"]
    assert router.scores(text) == pytest.approx(router.scores({"input": text}), nan_ok=True)
    assert router.choose(text) == "one/a"


def test_a_policy_of_vectors_made_elsewhere_takes_vectors_alone(folder):
    run(SPEC.replace('embedder: {model: embedder, text: "{{ kind }} {{ input }}"}', VECTORS), name="given")
    router = Router.load("policy")
    predicted, contexts = own_predictions("given")
    assert list(router.scores(contexts[3]).values()) == pytest.approx(
        predicted[3].tolist(), nan_ok=True, abs=1e-6
    )
    with pytest.raises(
        WinnowError, match="learned from precomputed vectors, without an embedder; give a vector"
    ):
        router.choose("a text")


def test_a_precision_that_there_is_not_is_refused_whatever_the_embedder():
    with pytest.raises(SpecError, match="precision='float16' is not supported; use float32 or bfloat16"):
        Router.load("policy", precision="float16")


def test_it_is_served_without_prefect_vllm_or_a_database(folder):
    served = subprocess.run(
        [
            sys.executable,
            "-c",
            "import sys; from winnow import Router; router = Router.load('policy')\n"
            f"print(router.choose({fields(0)}), router.choose({fields(1)}))\n"
            "print(sorted({'prefect', 'vllm', 'sqlalchemy', 'alembic', 'storage'} & set(sys.modules)))",
        ],
        env={"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert served.stdout.splitlines() == ["one/a one/b", "[]"]


@pytest.mark.parametrize(
    ("vector", "message"),
    [
        (np.zeros(32), "the vector of 'the prompt' is zero"),
        (np.ones(7), "the vector has 7 numbers, but this policy was learned from vectors of 32"),
        (np.full(32, np.nan), "the vector of 'the prompt' is not finite"),
        (np.ones(31), "31"),
    ],
)
def test_vectors_that_are_of_no_use_are_refused_and_nothing_changes(folder, vector, message):
    router = Router.load("policy")
    before = router.scores(fields(0))
    with pytest.raises((WinnowError, AlgorithmError), match=message):
        router.choose(vector)
    assert router.scores(fields(0)) == pytest.approx(before, nan_ok=True, abs=0.0)


def test_a_missing_field_is_named_with_the_mapping_to_give(folder):
    with pytest.raises(WinnowError) as refused:
        Router.load("policy").choose("only a text")
    assert str(refused.value) == (
        "the prompt lacks kind, which this policy was learned with; give a mapping of fields: "
        "{'input': ..., 'kind': ...}"
    )


@pytest.mark.parametrize(
    ("prompt", "said"), [(3, "3"), (None, "None"), ([0.5] * 32, "[0.5, 0.5, 0.5, 0.5, 0.5, 0.5, ...]")]
)
def test_what_is_no_prompt_is_refused_in_a_sentence_that_says_what_is_one(folder, prompt, said):
    router = Router.load("policy")
    for asked in (router.choose, router.scores):
        with pytest.raises(WinnowError) as refused:
            asked(prompt)
        assert str(refused.value) == (
            f"the prompt is {said}; give a text, a mapping of fields, or a vector as a NumPy array"
        )


def rewritten(**changes):
    path = Path("policy") / "policy.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def without(key):
    path = Path("policy") / "policy.json"
    path.write_text(
        json.dumps({name: value for name, value in json.loads(path.read_text()).items() if name != key})
    )


def repacked(policy, *, flag=0, method=0):
    """The arrays with other words in their archive's headers: encrypted (flag 1), or packed otherwise."""
    changed = bytearray((policy / "policy.npz").read_bytes())
    for signature, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        at = changed.find(signature)
        while at >= 0:
            changed[at + offset] |= flag
            changed[at + offset + 2] = method
            at = changed.find(signature, at + 4)
    (policy / "policy.npz").write_bytes(changed)


SPOILT = {
    "nothing there": lambda policy: shutil.rmtree(policy),
    "no arrays": lambda policy: (policy / "policy.npz").unlink(),
    "empty arrays": lambda policy: (policy / "policy.npz").write_bytes(b""),
    "half the arrays": lambda policy: (policy / "policy.npz").write_bytes(
        (policy / "policy.npz").read_bytes()[:700]
    ),
    "other arrays": lambda policy: np.savez(policy / "policy.npz", usable=np.ones(3, dtype=bool)),
    "pickled arrays": lambda policy: np.savez(policy / "policy.npz", usable=np.array([{}], dtype=object)),
    "encrypted arrays": lambda policy: repacked(policy, flag=1),
    "arrays packed in an unknown way": lambda policy: repacked(policy, method=99),
    "arrays that are not packed as they say": lambda policy: repacked(policy, method=8),
    "no identity of the embedder": lambda policy: without("embedder_identity"),
    "no description": lambda policy: (policy / "policy.json").write_text(""),
    "a description of something else": lambda policy: (policy / "policy.json").write_text("[1, 2]"),
    "another format": lambda policy: rewritten(format="model"),
    "a later version": lambda policy: rewritten(version=3),
    "the arrays of another export": lambda policy: rewritten(arrays_sha256="0" * 64),
    "parameters missing": lambda policy: rewritten(parameters={"form": "kernel"}),
    "parameters of another kind": lambda policy: rewritten(parameters=[]),
    "an embedder that is none": lambda policy: rewritten(embedder={"type": ["magic"]}),
    "a candidate too few": lambda policy: rewritten(candidates=[{"name": "one/a"}]),
}


def test_an_embedder_that_is_not_here_is_named(folder):
    rewritten(embedder={"type": "magic"})
    with pytest.raises(SpecError, match=r"unknown embedder 'magic'; available: .*transformers"):
        Router.load("policy")


@pytest.mark.parametrize("case", SPOILT)
def test_a_folder_that_holds_no_policy_is_refused_in_a_sentence(folder, case):
    SPOILT[case](folder / "policy")
    with pytest.raises(WinnowError, match=r"^policy contains no readable policy .* export it again"):
        Router.load("policy")


def test_another_embedder_than_the_policy_was_learned_with_is_refused(folder):
    shutil.rmtree("embedder")
    with pytest.raises(WinnowError, match="there is no checkpoint in 'embedder'"):
        Router.load("policy")
    save_tiny_llama(folder / "embedder", seed=3)
    with pytest.raises(WinnowError, match="is not the one that its policy was learned with; restore"):
        Router.load("policy")


def test_a_policy_takes_the_place_of_an_earlier_one_and_a_file_in_its_way_is_named(folder):
    database = open_database("sqlite:///results.db")
    before = (folder / "policy" / "policy.npz").read_bytes()
    assert exported(database, "routed", folder / "policy").prompts == 7
    assert sorted(path.name for path in (folder / "policy").iterdir()) == ["policy.json", "policy.npz"]
    assert (folder / "policy" / "policy.npz").read_bytes() == before
    with pytest.raises(WinnowError, match=r"data.jsonl cannot be written: .*; name another folder"):
        exported(database, "routed", folder / "data.jsonl")
    database.close()


def test_a_policy_that_knows_no_score_chooses_nobody():
    unlearned = policy_of("means", np.zeros(2, dtype=np.bool_), 2, means=np.zeros(2))
    router = Router(unlearned, ["a", "b"], None, compile_template("{{ input }}", ["input"]))
    assert np.isnan(list(router.scores(np.array([1.0, 0.0])).values())).all()
    with pytest.raises(WinnowError, match="was learned from no score, so it cannot choose"):
        router.choose(np.array([1.0, 0.0]))
