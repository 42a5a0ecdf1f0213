"""Messages through chat templates: as `apply_chat_template` puts them, and as a server is sent them."""

import json

import pytest
from faulty_server import MODEL, Fault, always, faulty_server
from tiny_models import save_tiny_llama
from transformers import AutoTokenizer

from winnow.tasks.engines.chat import Message, Reasoning, as_stored, own_template, separated
from winnow.tasks.engines.openai.requests import generation_body
from winnow.tasks.engines.prompt_tokens import PromptEncoder
from winnow.tasks.engines.protocol import Completion, ModelRef, Request, Sampling
from winnow.tasks.engines.providers import EngineSettings, start_engine
from winnow.tasks.engines.transformers.engine import TransformersEngine
from winnow.tasks.engines.vllm.engine import as_message
from winnow.tasks.engines.vllm.worker import _requests

CHAT = (
    "{% for m in messages %}[{{ m.role }}]{{ m.content }}{{ '' if loop.last and mood else '|' }}{% endfor %}"
    "{% if add_generation_prompt %}[bot{{ mood }}]{% endif %}"
)
TURNS = (Message("system", "Add."), Message("user", "1+1"), Message("assistant", "2"), Message("user", "2+2"))
OPEN = (*TURNS, Message("assistant", "It is "))


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory):
    return save_tiny_llama(tmp_path_factory.mktemp("chatty"), seed=0, chat_template=CHAT)


def reference(checkpoint, **fields):
    args = {"dtype": "float32", "max_model_len": 128, "device": "cpu"}
    fields = {"name": "tiny", "provider": "transformers", "model_args": args, "chat": True} | fields
    return ModelRef(model=str(checkpoint), **fields)


def request(messages, **sampling):
    drawn = Sampling(**{"max_tokens": 8, **sampling})
    return Request(prompt=as_stored(messages), messages=messages, sampling=drawn, seed=0)


def dicts(messages):
    return [{"role": role, "content": content} for role, content in messages]


@pytest.mark.parametrize(
    ("messages", "literally", "text"),
    [
        (TURNS, {"add_generation_prompt": True}, "[system]Add.|[user]1+1|[assistant]2|[user]2+2|[bot]"),
        (
            OPEN,
            {"continue_final_message": True},
            "[system]Add.|[user]1+1|[assistant]2|[user]2+2|[assistant]It is ",
        ),
    ],
)
def test_messages_are_encoded_as_the_tokenizer_applies_its_template(checkpoint, messages, literally, text):
    tokenizer = AutoTokenizer.from_pretrained(checkpoint)
    encode = PromptEncoder(tokenizer, reference(checkpoint), vocabulary=200, max_model_len=128)
    expected = tokenizer.apply_chat_template(dicts(messages), return_dict=False, **literally)
    assert encode(messages) == list(expected) == tokenizer(text)["input_ids"]


def test_variables_of_the_template_and_another_template_are_used(checkpoint):
    tokenizer = AutoTokenizer.from_pretrained(checkpoint)
    own = {"chat_template_args": {"mood": "!"}}
    other = {"chat_template": "{{ messages[0].content }}:{{ mood }}", "chat_template_args": {"mood": "."}}
    for fields, expected in ((own, "[user]hi[bot!]"), (other, "hi:.")):
        encode = PromptEncoder(tokenizer, reference(checkpoint, **fields), vocabulary=200, max_model_len=128)
        assert encode((Message("user", "hi"),)) == tokenizer(expected)["input_ids"]
        assert encode("hi") == encode((Message("user", "hi"),))


class Fails:
    """Encodes as another tokenizer does, but nothing with a word in it."""

    def __init__(self, tokenizer, word):
        self._tokenizer, self._word = tokenizer, word

    def __getattr__(self, name):
        return getattr(self._tokenizer, name)

    def __call__(self, text, **how):
        if any(self._word in each for each in ([text] if isinstance(text, str) else text)):
            raise KeyError(self._word)
        return self._tokenizer(text, **how)


def test_many_prompts_are_encoded_as_each_alone_and_fail_alone(checkpoint):
    prompts = ["hi", TURNS, "9" * 200, "a\ud800", OPEN, "b"]
    for tokenizer in (own := AutoTokenizer.from_pretrained(checkpoint), Fails(own, "hi")):
        for fields in ({}, {"chat": False}):
            model = reference(checkpoint, **fields)
            encode = PromptEncoder(tokenizer, model, vocabulary=200, max_model_len=128)
            found = encode.of_many(prompts, [False] * len(prompts))
            assert found == [encode(each) for each in prompts]
            assert isinstance(found[-1], list)
            assert [found[at].reason for at in (2, 3)] == ["prompt_too_long", "bad_prompt"]
            assert isinstance(found[0], list) == (tokenizer is own)
    assert encode.of_many([], []) == []


def test_no_message_can_close_its_turn(checkpoint):
    tokenizer = AutoTokenizer.from_pretrained(checkpoint)
    encode = PromptEncoder(tokenizer, reference(checkpoint), vocabulary=200, max_model_len=128)
    spelled = (Message("system", "a</s>"), Message("user", "</s>b"))
    assert encode(spelled) == tokenizer("[system]a< /s>|[user]< /s>b|[bot]")["input_ids"]


def test_a_model_answers_messages_as_it_answers_the_text_that_they_become(checkpoint):
    chatty = TransformersEngine(reference(checkpoint))
    plain = TransformersEngine(reference(checkpoint, chat=False))
    texts = ("[system]Add.|[user]1+1|[assistant]2|[user]2+2|[bot]",) * 2
    asked = [Request(prompt=text, sampling=Sampling(max_tokens=8), seed=0) for text in texts]
    asked[1] = Request(prompt=texts[0][:-5] + "[assistant]It is ", sampling=Sampling(max_tokens=8), seed=0)
    answers = chatty.generate([request(TURNS), request(OPEN)])
    assert [each.text for each in answers] == [each.text for each in plain.generate(asked)]
    assert [each.input_tokens for each in answers] == [len(each.prompt) for each in asked]


def test_messages_that_cannot_be_shown_fail_alone_in_one_sentence(checkpoint):
    forgetful = reference(checkpoint, chat_template="{{ messages[0].content }}")
    bad, good = TransformersEngine(forgetful).generate([request(OPEN), request(TURNS)])
    assert bad.reason == "bad_prompt"
    assert "the final message does not appear in the chat" in bad.detail
    assert "\n" not in bad.detail
    assert isinstance(good, Completion)
    (refused,) = TransformersEngine(reference(checkpoint, chat=False)).generate([request(TURNS)])
    assert refused.reason == "bad_prompt"
    assert refused.detail.endswith("messages need a chat model; set chat: true")


def test_a_request_comes_through_to_the_process_of_vllm_as_it_is():
    for asked in (request(OPEN, stop=("a",)), request(TURNS, choices=("A", "B"))):
        assert _requests(json.loads(json.dumps(as_message([asked])))) == [asked]


@pytest.fixture
def serve(tmp_path):
    left = []

    def started(script=lambda _: None, **model):
        serving = faulty_server(script)
        server = serving.__enter__()
        left.append(lambda: serving.__exit__(None, None, None))
        fields = {"name": "m", "provider": "openai", "model": MODEL, "chat": True} | model
        engine = start_engine(
            ModelRef(model_base_url=server.url, **fields), EngineSettings(log_folder=tmp_path, max_retries=0)
        )
        left.append(engine.close)
        return server, engine

    yield started
    for end in reversed(left):
        end()


def test_a_server_is_sent_the_messages_its_template_and_the_templates_variables(serve):
    keys = {"chat_template": "{{ messages }}", "chat_template_args": {"enable_thinking": False}}
    server, engine = serve(**keys)
    engine.generate([request((*TURNS, Message("user", "I say <|im_end|>")))])
    assert server.calls[0].path == "/v1/chat/completions"
    assert server.calls[0].body == {
        "model": MODEL,
        "messages": [
            {"role": "system", "content": "Add."},
            {"role": "user", "content": "1+1"},
            {"role": "assistant", "content": "2"},
            {"role": "user", "content": "2+2"},
            {"role": "user", "content": "I say < |im_end|>"},
        ],
        "chat_template": "{{ messages }}",
        "chat_template_kwargs": {"enable_thinking": False},
        "temperature": 0.0,
        "top_p": 1.0,
        "max_tokens": 8,
    }


def test_vllms_server_is_asked_to_go_on_from_what_the_assistant_says():
    model = ModelRef(name="m", provider="openai", model=MODEL, chat=True)
    assert generation_body(model, request(OPEN), vllm="0.32.0") == {
        "model": MODEL,
        "messages": dicts(OPEN),
        "add_generation_prompt": False,
        "continue_final_message": True,
        "temperature": 0.0,
        "top_p": 1.0,
        "top_k": 0,
        "max_tokens": 8,
        "min_p": 0.0,
        "presence_penalty": 0.0,
        "frequency_penalty": 0.0,
        "repetition_penalty": 1.0,
    }


def test_another_server_is_asked_for_it_only_where_its_user_says_how(serve):
    server, engine = serve()
    bad, good = engine.generate([request(OPEN), request(TURNS)])
    assert bad.reason == "refused"
    assert bad.detail.startswith("only vLLM's server is known to continue an assistant's message")
    assert isinstance(good, Completion)
    assert len(server.calls) == 1
    server, engine = serve(model_args={"continue_final_message": None, "add_generation_prompt": None})
    (answer,) = engine.generate([request(OPEN)])
    assert isinstance(answer, Completion)
    assert server.calls[0].body["messages"] == dicts(OPEN)
    assert not {"continue_final_message", "add_generation_prompt"} & server.calls[0].body.keys()


def test_a_server_is_not_sent_messages_for_completions(serve):
    server, engine = serve(chat=False)
    (bad,) = engine.generate([request(TURNS)])
    assert (bad.reason, bad.detail) == ("bad_prompt", "messages need a chat model; set chat: true")
    assert not server.calls


USAGE = b'"usage": {"prompt_tokens": 1, "completion_tokens": 9}'


@pytest.mark.parametrize(
    ("message", "told"),
    [
        (b'"content": "2", "reasoning_content": "1 and 1"', ("2", "1 and 1")),
        (b'"content": "2", "reasoning": "1 and 1", "reasoning_content": "1 and 1"', ("2", "1 and 1")),
        (b'"content": null, "reasoning_content": "1 and"', ("", "1 and")),
        (b'"content": "2", "reasoning": {"steps": []}', ("2", None)),
        (b'"content": "2", "reasoning_content": null', ("2", None)),
    ],
)
def test_what_a_server_tells_of_reasoning_stands_beside_the_text(serve, message, told):
    body = b'{"choices": [{"finish_reason": "length", "message": {%s}}], %s}' % (message, USAGE)
    _, engine = serve(always(Fault(body=body)))
    (answer,) = engine.generate([request(TURNS)])
    assert (answer.text, answer.reasoning, answer.finish_reason) == (*told, "length")


TAGS = Reasoning("think-tags", True, False)
INSIDE = Reasoning("think-tags", True, True)


@pytest.mark.parametrize(
    ("how", "text", "expected"),
    [
        (TAGS, "<think>\n1 and 1\n</think>\n\n2", ("2", "1 and 1")),
        (TAGS, " \n<think></think>2", ("2", "")),
        (TAGS, "1 and 1</think>2", ("2", "1 and 1")),
        (TAGS, "<think>1 and", ("", "1 and")),
        (TAGS, "2", ("2", None)),
        (TAGS, "2 <think>why?", ("2 <think>why?", None)),
        (TAGS, "<think>a</think>b</think>c<think>", ("b</think>c<think>", "a")),
        (TAGS, "", ("", None)),
        (INSIDE, "1 and 1\n</think>\n\n2", ("2", "1 and 1")),
        (INSIDE, "<think>1 and 1</think>2", ("2", "1 and 1")),
        (INSIDE, "1 and", ("", "1 and")),
        (TAGS._replace(strip=False), "<think>1</think> 2", ("<think>1</think> 2", "1")),
        (None, "<think>1</think> 2", ("<think>1</think> 2", None)),
    ],
)
def test_reasoning_in_tags_is_told_apart_from_the_answer(how, text, expected):
    assert separated(text, None, how) == expected


def test_reasoning_that_a_server_tells_is_kept_only_where_it_is_asked_for():
    server = Reasoning("server", True, False)
    assert separated("2<think>", "1 and 1", server) == ("2<think>", "1 and 1")
    assert separated("2", None, server) == ("2", None)
    assert separated("2", "1 and 1", None) == separated("2", "1 and 1", TAGS) == ("2", None)


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({"chat_template.jinja": "A"}, "A"),
        ({"chat_template.jinja": "A", "tokenizer_config.json": '{"chat_template": "B"}'}, "A"),
        ({"tokenizer_config.json": '{"chat_template": "B"}'}, "B"),
        (
            {
                "tokenizer_config.json": '{"chat_template": [{"name": "rag", "template": "C"}, '
                '{"name": "default", "template": "D"}]}'
            },
            "D",
        ),
        ({"tokenizer_config.json": '{"chat_template": [{"name": "rag", "template": "C"}]}'}, None),
        ({"tokenizer_config.json": '{"chat_template": ["default"]}'}, None),
        ({"tokenizer_config.json": "[]"}, None),
        ({"tokenizer_config.json": "no JSON"}, None),
        ({}, None),
    ],
)
def test_a_checkpoints_chat_template_is_found_where_tokenizers_keep_it(tmp_path, files, expected):
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    assert own_template(tmp_path) == expected
