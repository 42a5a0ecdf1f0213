"""The same text has the same key, whoever asks for it; another text has another key."""

import json
from dataclasses import replace
from hashlib import sha256 as reference_sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st
from property_settings import tries

from winnow.tasks.candidates.cache_keys import (
    RequestKeys,
    fingerprint_model,
    generation_key,
    request_content,
    request_seed,
)
from winnow.tasks.engines.chat import Message, Reasoning, as_stored
from winnow.tasks.engines.protocol import ModelRef, Sampling, Structure
from winnow.tasks.text.canonical_json import canonical_json, sha256

BASE = {
    "name": "nickname",
    "provider": "transformers",
    "model": "checkpoints/small",
    "revision": None,
    "model_args": {"max_model_len": 128},
    "chat": False,
    "chat_template_args": {"enable_thinking": False},
    "chat_template": None,
    "reasoning": None,
    "lora": None,
    "model_base_url": None,
    "api_key": None,
    "served_identity": None,
    "entry": None,
    "params": None,
    "setup": {},
    "shows_images": False,
    "fingerprint": "0" * 64,
    "prompt": "1+1=",
    "temperature": 1.0,
    "top_p": 1.0,
    "top_k": 0,
    "max_tokens": 8,
    "stop": ("\n",),
    "choices": (),
    "min_p": 0.0,
    "presence_penalty": 0.0,
    "frequency_penalty": 0.0,
    "repetition_penalty": 1.0,
    "logit_bias": (),
    "stop_token_ids": (),
    "structure": None,
    "logprobs": False,
    "gumbel": False,
    "one_bos": False,
    "think_tags": False,
    "replicate": 0,
    "seed": 5,
}
SAMPLING = tuple(Sampling.__dataclass_fields__)
MODEL = tuple(ModelRef.__dataclass_fields__)
DETERMINES = {
    "provider": st.text(),
    "model_args": st.dictionaries(st.text(), st.integers() | st.text() | st.booleans()),
    "chat": st.booleans(),
    "chat_template_args": st.dictionaries(st.text(), st.booleans()),
    "reasoning": st.builds(
        Reasoning, st.sampled_from(["think-tags", "server"]), st.booleans(), st.booleans()
    ),
    "fingerprint": st.text("0123456789abcdef", min_size=64, max_size=64),
    "prompt": st.text()
    | st.lists(st.builds(Message, st.sampled_from(["system", "user"]), st.text()), min_size=1).map(tuple),
    "temperature": st.floats(0, 10),
    "top_p": st.floats(0, 1, exclude_min=True),
    "top_k": st.integers(0, 100),
    "max_tokens": st.integers(1, 100),
    "stop": st.lists(st.text(min_size=1)).map(tuple),
    "choices": st.permutations(["A", "B", "C"]).map(tuple),
    "min_p": st.floats(0, 1),
    "presence_penalty": st.floats(-2, 2),
    "frequency_penalty": st.floats(-2, 2),
    "repetition_penalty": st.floats(0, 10, exclude_min=True),
    "logit_bias": st.dictionaries(st.integers(0, 99), st.floats(-100, 100)).map(
        lambda given: tuple(given.items())
    ),
    "stop_token_ids": st.lists(st.integers(0, 99), unique=True).map(tuple),
    "structure": st.builds(
        Structure, st.sampled_from(["regex", "choice", "json_schema", "grammar"]), st.text()
    ),
    "logprobs": st.booleans(),
    "gumbel": st.booleans(),
    "one_bos": st.booleans(),
    "think_tags": st.booleans(),
    "replicate": st.integers(0, 100),
    "seed": st.integers(0, 2**31),
}
DOES_NOT = {
    "name": "other",
    "model": "elsewhere/small",
    "revision": "main",
    "chat_template": "{{ messages }}",
    "lora": "elsewhere/adapter",
    "model_base_url": "http://elsewhere/v1",
    "api_key": "OTHER_KEY",
    "served_identity": "llama fp16",
    # Of agents, whose fingerprint stands for all of it.
    "entry": "agent",
    "params": {"k": 3},
    "setup": {"command": ["agent"]},
    # The prompt holds the digests of its images.
    "shows_images": True,
}


def key_of(fields):
    model = ModelRef(**{name: fields[name] for name in MODEL})
    sampling = Sampling(**{name: fields[name] for name in SAMPLING})
    content = request_content(model, fields["fingerprint"], fields["prompt"], sampling, fields["replicate"])
    return generation_key(content, fields["seed"])


@pytest.mark.parametrize("field", DETERMINES)
@tries(40)
@given(data=st.data())
def test_whatever_determines_a_text_changes_its_key(field, data):
    value = data.draw(DETERMINES[field].filter(lambda drawn: drawn != BASE[field]))
    assert key_of(BASE | {field: value}) != key_of(BASE)


def test_what_is_rarely_set_is_no_part_of_a_key_without_it():
    content = {
        "model": "0" * 64, "provider": "vllm", "model_args": {}, "chat": False, "chat_template_args": {},
        "prompt": "1+1=", "temperature": 0.0, "top_p": 1.0, "top_k": 0, "max_tokens": 256, "stop": [],
        "replicate": 0,
    }  # fmt: skip
    model = ModelRef(name="m", provider="vllm", model="m")
    assert request_content(model, "0" * 64, "1+1=", Sampling(), 0) == content
    found = request_content(model, "0" * 64, "1+1=", Sampling(min_p=0.5, logit_bias=((3, 1.0),)), 0)
    assert found == content | {"min_p": 0.5, "logit_bias": [[3, 1.0]]}


@pytest.mark.parametrize("field", DOES_NOT)
def test_what_does_not_determine_a_text_leaves_its_key(field):
    """The fingerprint stands for the weights, wherever the folder lies and whatever people call it."""
    assert key_of(BASE | {field: DOES_NOT[field]}) == key_of(BASE)


def test_messages_are_another_prompt_than_the_text_that_they_are_stored_as():
    messages = (Message("system", "Be brief."), Message("user", "1+1="))
    assert key_of(BASE | {"prompt": messages}) != key_of(BASE | {"prompt": as_stored(messages)})


def test_a_chat_template_that_is_named_is_part_of_what_the_weights_are(tmp_path):
    folder = tmp_path / "small"
    folder.mkdir()
    (folder / "config.json").write_text("{}")
    own = ModelRef(name="m", provider="vllm", model=str(folder), chat=True)
    found = {fingerprint_model(replace(own, chat_template=each)) for each in (None, "{{ a }}", "{{ b }}")}
    assert len(found) == 3


def test_every_field_of_a_model_and_of_its_sampling_is_on_one_of_the_two_lists():
    fields = {*ModelRef.__dataclass_fields__, *Sampling.__dataclass_fields__}
    assert fields <= {*DETERMINES, *DOES_NOT}


def test_the_key_of_a_text_is_the_same_in_every_release():
    """A changed key would have every stored text made again."""
    assert key_of(BASE) == "f1c37b465a4ffd54cba5ea9ed260418b73edc9251df18eaf27e70e4aadc64cfa"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)


@given(JSON)
def test_canonical_json_is_json_of_the_same_value_and_its_hash_is_sha256(value):
    text = canonical_json(value)
    assert json.loads(text) == value
    assert sha256(value) == reference_sha256(text.encode()).hexdigest()


def test_canonical_json_does_not_depend_on_the_order_of_keys():
    assert canonical_json({"b": [1, "é"], "a": None}) == canonical_json({"a": None, "b": [1, "é"]})
    assert canonical_json({"b": [1, "é"], "a": None}) == r'{"a":null,"b":[1,"\u00e9"]}'


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_what_json_does_not_have_is_refused(value):
    with pytest.raises(ValueError, match="not JSON compliant"):
        canonical_json([value])


@given(st.integers(0, 2**63 - 1), st.dictionaries(st.text(), st.integers()))
def test_a_request_seed_is_one_that_every_engine_takes_and_follows_from_its_arguments(seed, content):
    assert 0 <= request_seed(seed, content) < 2**31
    assert request_seed(seed, content) == request_seed(seed, dict(content))


@given(data=st.data(), seed=st.integers(0, 2**63 - 1), name=st.sampled_from(sorted(DETERMINES)))
def test_keys_of_many_requests_are_those_of_each(data, seed, name):
    fields = BASE | {name: data.draw(DETERMINES[name])}
    model = ModelRef(**{each: fields[each] for each in MODEL})
    sampling = Sampling(**{each: fields[each] for each in SAMPLING})
    prompt, replicate = data.draw(DETERMINES["prompt"]), data.draw(DETERMINES["replicate"])
    content = request_content(model, fields["fingerprint"], prompt, sampling, replicate)
    drawn = 0 if sampling.temperature == 0.0 else request_seed(seed, content)
    keys = RequestKeys(model, fields["fingerprint"], sampling)
    assert keys.of(prompt, replicate, seed) == (drawn, generation_key(content, drawn))


def test_request_seeds_differ_between_campaigns_and_between_requests():
    seeds = {request_seed(seed, {"prompt": str(i)}) for seed in range(20) for i in range(20)}
    assert len(seeds) == 400


@pytest.fixture
def checkpoint(tmp_path):
    folder = tmp_path / "checkpoint"
    (folder / "deeper").mkdir(parents=True)
    (folder / "config.json").write_text("{}")
    (folder / "deeper" / "weights.bin").write_bytes(bytes(1000))
    return folder


def fingerprint(folder):
    return fingerprint_model(ModelRef(name="m", provider="vllm", model=str(folder)))


def test_the_fingerprint_of_a_folder_is_that_of_its_content_alone(checkpoint, tmp_path):
    before = fingerprint(checkpoint)
    assert fingerprint(checkpoint.rename(tmp_path / "elsewhere")) == before


@pytest.mark.parametrize("offset", [0, 500, 999])
def test_a_changed_byte_of_a_weight_file_changes_the_fingerprint(checkpoint, offset):
    before = fingerprint(checkpoint)
    flip(checkpoint / "deeper" / "weights.bin", offset)
    assert fingerprint(checkpoint) != before


def flip(path, offset):
    content = bytearray(path.read_bytes())
    content[offset] ^= 1
    path.write_bytes(content)


def test_a_file_that_was_added_renamed_or_removed_changes_the_fingerprint(checkpoint):
    seen = [fingerprint(checkpoint)]
    added = checkpoint / "adapter.json"
    added.write_text("{}")
    seen.append(fingerprint(checkpoint))
    added.rename(checkpoint / "other.json")
    seen.append(fingerprint(checkpoint))
    (checkpoint / "config.json").unlink()
    seen.append(fingerprint(checkpoint))
    assert len(set(seen)) == 4


def test_bytes_that_move_from_one_file_to_the_next_change_the_fingerprint(tmp_path):
    for name, first, second in (("one", b"ab", b"c"), ("two", b"a", b"bc")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "1").write_bytes(first)
        (tmp_path / name / "2").write_bytes(second)
    assert fingerprint(tmp_path / "one") != fingerprint(tmp_path / "two")


def test_a_large_file_is_read_whole(checkpoint):
    """The 64 KiB that changed lay between the blocks of a sample, 11 times of 12."""
    weights = checkpoint / "deeper" / "weights.bin"
    with weights.open("wb") as file:
        file.truncate(65 * 2**20)
    seen = [fingerprint(checkpoint)]
    for offset in (5_000_000, 33_333_333, 65 * 2**20 - 1):
        with weights.open("r+b") as file:
            file.seek(offset)
            file.write(b"x")
        seen.append(fingerprint(checkpoint))
    assert len(set(seen)) == 4


def test_a_model_on_a_hub_is_known_by_its_id_and_revision():
    model = ModelRef(name="m", provider="vllm", model="owner/name")
    same = replace(model, name="other", provider="transformers")
    assert fingerprint_model(same) == fingerprint_model(model)
    assert fingerprint_model(replace(model, revision="main")) != fingerprint_model(model)
    assert fingerprint_model(replace(model, model="owner/other")) != fingerprint_model(model)


def test_a_model_with_an_adapter_is_known_by_the_content_of_both(checkpoint, tmp_path):
    adapter = tmp_path / "adapter"
    adapter.mkdir()
    (adapter / "weights.bin").write_bytes(bytes(100))
    model = ModelRef(name="m", provider="vllm", model=str(checkpoint), lora=str(adapter))
    seen = [fingerprint(checkpoint), fingerprint_model(model)]
    moved = adapter.rename(tmp_path / "elsewhere")
    assert fingerprint_model(replace(model, lora=str(moved))) == seen[-1]
    flip(moved / "weights.bin", 50)
    seen.append(fingerprint_model(replace(model, lora=str(moved))))
    flip(checkpoint / "deeper" / "weights.bin", 0)
    seen.append(fingerprint_model(replace(model, lora=str(moved))))
    assert len(set(seen)) == 4
