import pytest
import torch
from tiny_models import add_token, save_tiny_llama
from transformers import AutoModelForCausalLM, AutoTokenizer

from winnow.tasks.engines.errors import EngineLoadFailed
from winnow.tasks.engines.protocol import Completion, ModelRef, Request, Sampling, Structure
from winnow.tasks.engines.transformers.engine import TransformersEngine

PROMPTS = [f"{i}+{i * i}=" for i in range(20)]
CHAT = (
    "{% for m in messages %}<{{ m.role }}>{{ m.content }}</s>{% endfor %}{{ suffix }}"
    "{% if add_generation_prompt %}<bot>{% endif %}"
)


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory):
    return save_tiny_llama(tmp_path_factory.mktemp("tiny"), seed=0)


def load(checkpoint, **fields):
    args = {"dtype": "float32", "max_model_len": 64, "device": "cpu"}
    defaults = {"name": "tiny", "provider": "transformers", "model": str(checkpoint), "model_args": args}
    return TransformersEngine(ModelRef(**{**defaults, **fields}))


@pytest.fixture(scope="module")
def engine(checkpoint):
    return load(checkpoint)


def request(prompt, seed=0, **sampling):
    return Request(prompt=prompt, sampling=Sampling(**{"max_tokens": 8, **sampling}), seed=seed)


def texts(engine, requests):
    return [answer.text for answer in engine.generate(requests)]


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_a_text_does_not_depend_on_the_rest_of_its_batch(engine, temperature):
    requests = [request(p, seed=i, temperature=temperature) for i, p in enumerate(PROMPTS)]
    together = texts(engine, requests)
    assert together == [texts(engine, [r])[0] for r in requests]
    assert together[::-1] == texts(engine, requests[::-1])


def test_a_seed_reproduces_its_text_and_another_seed_does_not(engine):
    first, again, other = texts(engine, [request("7+7=", seed=s, temperature=1.0) for s in (3, 3, 4)])
    assert first == again != other


def test_checkpoints_of_different_seeds_answer_differently(engine, tmp_path):
    other = load(save_tiny_llama(tmp_path, seed=1))
    requests = [request(p) for p in PROMPTS]
    assert texts(engine, requests) != texts(other, requests)


def test_a_text_is_cut_before_the_first_stop_string_to_be_complete(engine):
    (plain,) = engine.generate([request("7+7=", seed=1, temperature=9.0)])
    late, long, short = plain.text[5:], plain.text[1:3], plain.text[2]  # the last two end together
    assert [plain.text.find(stop) for stop in (late, long, short)] == [5, 1, 2]
    for stop, length in [((late, long, short), 1), ((late, short, long), 2)]:
        (cut,) = engine.generate([request("7+7=", seed=1, temperature=9.0, stop=stop)])
        assert (cut.text, cut.finish_reason, cut.output_tokens) == (plain.text[:length], "stop", 3)


def test_the_end_token_ends_a_text_and_is_not_part_of_it(engine):
    # Random weights reach </s> sooner or later when every token is about as likely.
    answers = engine.generate([request("1", seed=s, temperature=50.0, max_tokens=60) for s in range(40)])
    stopped = [answer for answer in answers if answer.finish_reason == "stop"]
    assert stopped
    assert all(answer.output_tokens <= 60 and "</s>" not in answer.text for answer in stopped)


def test_max_tokens_and_the_context_window_end_a_text(engine):
    short, long = engine.generate([request("7+7=", max_tokens=3), request("7" * 60, max_tokens=50)])
    assert (short.finish_reason, short.input_tokens, short.output_tokens) == ("length", 4, 3)
    assert (long.finish_reason, long.input_tokens, long.output_tokens) == ("length", 60, 4)


@pytest.mark.parametrize(
    ("prompt", "reason"),
    [
        ("", "empty_prompt"),
        ("7" * 64, "prompt_too_long"),
        ("7" * 1_000_000, "prompt_too_long"),
        ("\ud800", "bad_prompt"),
    ],
)
def test_a_bad_prompt_fails_alone(engine, prompt, reason):
    good, bad, also_good = engine.generate([request("1+1="), request(prompt), request("2+2=")])
    assert bad.reason == reason
    assert [good.text, also_good.text] == texts(engine, [request("1+1="), request("2+2=")])


@pytest.mark.parametrize("prompt", ["\x00", "🙂" * 9, "a\u202eb", "\r\n\x1b[2J", "</s>", "{{ 7*7 }}"])
def test_hostile_text_is_text(engine, prompt):
    (answer,) = engine.generate([request(prompt)])
    assert isinstance(answer, Completion)


def test_the_seconds_of_a_batch_are_shared_out(engine):
    answers = engine.generate([request(p) for p in PROMPTS])
    assert len({answer.seconds for answer in answers}) == 1
    assert answers[0].seconds > 0.0
    assert answers[0].latency == pytest.approx(answers[0].seconds * len(answers))
    assert len({answer.latency for answer in answers}) == 1


def test_sampling_defaults_of_the_checkpoint_are_not_mixed_in(engine, tmp_path):
    folder = save_tiny_llama(tmp_path, seed=0)
    (folder / "generation_config.json").write_text('{"repetition_penalty": 9.0, "eos_token_id": 1}')
    requests = [request(p) for p in PROMPTS]
    assert texts(load(folder), requests) == texts(engine, requests)


def test_a_chat_model_sees_its_template_and_the_variables_given(tmp_path, engine):
    folder = save_tiny_llama(tmp_path, seed=0, chat_template=CHAT)
    chatty = load(folder, chat=True, chat_template_args={"suffix": "!"})
    assert texts(chatty, [request("hi")]) == texts(engine, [request("<user>hi</s>!<bot>")])


def test_a_chat_prompt_cannot_close_its_own_turn(tmp_path, engine):
    chatty = load(save_tiny_llama(tmp_path, seed=0, chat_template=CHAT), chat=True)
    (answer,) = chatty.generate([request("a</s>b")])
    assert answer.input_tokens == len("<user>") + len("a< /s>b") + len(["</s>"]) + len("<bot>")


def test_chat_without_a_template_is_refused_in_one_sentence(checkpoint):
    with pytest.raises(EngineLoadFailed, match=r"chat is on but the tokenizer of .* has no chat template"):
        load(checkpoint, chat=True)


def test_a_path_without_a_checkpoint_is_refused_in_one_sentence(tmp_path):
    with pytest.raises(EngineLoadFailed, match="holds no config"):
        load(tmp_path)
    with pytest.raises(EngineLoadFailed, match="there is no folder"):
        load(tmp_path / "nowhere")


def test_a_broken_checkpoint_is_refused(tmp_path):
    folder = save_tiny_llama(tmp_path, seed=0)
    (folder / "model.safetensors").write_bytes(b"not weights")
    with pytest.raises(EngineLoadFailed):
        load(folder)


def test_a_prompt_that_the_weights_have_no_token_for_fails_alone(tmp_path, engine):
    mismatched = load(add_token(save_tiny_llama(tmp_path, seed=0), "§"))
    good, bad = mismatched.generate([request("1+1="), request("§")])
    assert [good.text] == texts(engine, [request("1+1=")])
    assert bad.reason == "bad_prompt"
    assert bad.detail == "the tokenizer produced token 100, but the model has only 100"


@pytest.mark.parametrize("args", [{"batch_size": 0}, {"max_model_len": "many"}, {"device": "abacus"}])
def test_an_impossible_model_argument_is_refused(checkpoint, args):
    with pytest.raises(EngineLoadFailed, match=str(*args.values())):
        load(checkpoint, model_args=args)


def test_an_unknown_model_argument_is_refused_with_the_known_ones(checkpoint):
    with pytest.raises(EngineLoadFailed, match=r"model_args dtipe unknown .* dtype"):
        load(checkpoint, model_args={"dtipe": "float32"})


def test_the_identity_tells_software_device_and_precision(checkpoint):
    identity = load(checkpoint, model_args={"dtype": "bfloat16", "device": "cpu"}).identity
    assert identity.startswith("transformers ")
    assert identity.endswith(" cpu bfloat16")


CHOICES = ("A>>B", "A>B", "A=B", "B>A", "B>>A")


def test_choice_log_probabilities_are_those_of_the_plain_forward_pass(engine, checkpoint):
    (answer,) = engine.generate([request("7+7=", choices=CHOICES)])
    tokenizer = AutoTokenizer.from_pretrained(checkpoint)
    model = AutoModelForCausalLM.from_pretrained(checkpoint, dtype=torch.float32)
    for choice, told in answer.choice_logprobs.items():
        ids = torch.tensor([tokenizer("7+7=" + choice)["input_ids"]])  # one token per character
        with torch.no_grad():
            rows = model(ids).logits[0].log_softmax(-1)
        distinct = 2 if choice == "A=B" else 3
        tokens = ids[0, 4 : 4 + distinct]
        assert told == pytest.approx(rows[3 : 3 + distinct].gather(1, tokens[:, None]).sum().item(), abs=1e-4)
    assert answer.text == max(CHOICES, key=answer.choice_logprobs.get)


@pytest.mark.parametrize(
    "way",
    [{}, {"temperature": 1.5, "logit_bias": ((20, 3.0),), "presence_penalty": 1.0}, {"stop": ("u", "!")}],
)
def test_the_log_probabilities_of_a_text_are_those_of_the_plain_forward_pass(engine, checkpoint, way):
    model = AutoModelForCausalLM.from_pretrained(checkpoint, dtype=torch.float32)
    encode = AutoTokenizer.from_pretrained(checkpoint)
    answers = engine.generate([request(p, seed=i, logprobs=True, **way) for i, p in enumerate(PROMPTS)])
    assert [each.text for each in answers] == texts(
        engine, [request(p, seed=i, **way) for i, p in enumerate(PROMPTS)]
    )
    compared = 0
    for prompt, answer in zip(PROMPTS, answers, strict=True):
        assert len(answer.token_logprobs) == answer.output_tokens
        before = encode(prompt)["input_ids"]
        after = encode(answer.text)["input_ids"]  # one token per character
        if len(after) + (answer.finish_reason == "stop") < answer.output_tokens:
            continue  # special tokens, which the text leaves out
        compared += 1
        with torch.no_grad():
            rows = model(torch.tensor([before + after])).logits[0].log_softmax(-1)
        expected = [rows[len(before) + i - 1, token].item() for i, token in enumerate(after)]
        assert answer.token_logprobs[: len(after)] == pytest.approx(expected, abs=1e-4)
    assert compared > len(PROMPTS) / 2
    assert engine.generate([request("7+7=")])[0].token_logprobs is None


def test_choosing_and_writing_share_a_batch_and_do_not_touch_each_other(engine):
    writing = [request(p) for p in PROMPTS]
    choosing = [request(p, choices=CHOICES) for p in PROMPTS]
    mixed = [each for pair in zip(writing, choosing, strict=True) for each in pair]
    together = texts(engine, mixed)
    assert together[::2] == texts(engine, writing)
    assert together[1::2] == [texts(engine, [each])[0] for each in choosing]
    assert set(together[1::2]) <= set(CHOICES)
    assert len(set(together[1::2])) > 1


def test_choices_that_the_model_cannot_write_fail_alone(engine):
    good, bad, empty = engine.generate(
        [request("1+1="), request("1+1=", choices=("oui", "né")), request("", choices=("a", "b"))]
    )
    assert isinstance(good, Completion)
    assert bad.reason == "bad_choices"
    assert empty.reason == "empty_prompt"


def test_a_bias_forces_a_token_and_forbids_it(engine):
    zero = engine._tokenizer("0")["input_ids"][0]
    (plain,) = texts(engine, [request("7+7=")])
    (forced,) = texts(engine, [request("7+7=", logit_bias=((zero, 100.0),))])
    banned = engine._tokenizer(plain[0])["input_ids"][0]
    (without,) = texts(engine, [request("7+7=", logit_bias=((banned, -100.0),))])
    assert forced == "0" * 8
    assert plain[0] not in without


def test_a_token_that_ends_a_text_is_no_part_of_it(engine):
    (plain,) = engine.generate([request("7+7=", seed=1, temperature=9.0)])
    end = engine._tokenizer(plain.text[4])["input_ids"][0]
    (cut,) = engine.generate([request("7+7=", seed=1, temperature=9.0, stop_token_ids=(end,))])
    at = plain.text.index(plain.text[4])
    assert (cut.text, cut.finish_reason, cut.output_tokens) == (plain.text[:at], "stop", at + 1)


@pytest.mark.parametrize(
    "sampling",
    [{"structure": Structure("regex", "a+")}, {"logit_bias": ((999, 1.0),)}, {"stop_token_ids": (999,)}],
)
def test_what_it_cannot_do_is_refused_alone(engine, sampling):
    bad, good = engine.generate([request("1+1=", **sampling), request("1+1=")])
    assert bad.reason == "refused"
    assert good.text == texts(engine, [request("1+1=")])[0]
