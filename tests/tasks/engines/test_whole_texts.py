"""Texts by themselves at a server that tells tokens: after which token, in which windows, with which sum."""

import math

import anyio
import pytest

from winnow.tasks.engines.openai.answers import Generated, TokenizerInfo, Tokens
from winnow.tasks.engines.openai.errors import NotThere, RequestRefused
from winnow.tasks.engines.openai.scoring import WholeTexts
from winnow.tasks.engines.protocol import GenerationFailure, ModelRef

BEGIN = 99
MODEL = ModelRef(name="m", provider="openai", model="served")


class Server:
    """Has a token for each letter, its place in the alphabet, and one called "<s>"."""

    def __init__(self, *, adds=False, info=None, tell=lambda ids: [None, *(-each / 8 for each in ids[1:])]):
        self.adds, self.info, self.tell = adds, info, tell
        self.asked = []

    async def get(self, url, read):
        assert url == "http://h/tokenizer_info"
        if self.info is None:
            raise NotThere("m", "404")
        return TokenizerInfo.model_validate(self.info)

    async def post(self, url, body, read, *, most_bytes):
        if url == "http://h/tokenize":
            text = body["prompt"]
            ids = [BEGIN] if text == "<s>" else [ord(each) % 32 for each in text]
            begun = [BEGIN] * (self.adds and body["add_special_tokens"])
            return Tokens(tokens=[*begun, *ids])
        ids = body["prompt"]
        self.asked.append(ids)
        told = [*self.tell(ids), -7.0]
        tops = [None if each is None else {"x": each} for each in told]
        logprobs = {"token_logprobs": told, "top_logprobs": tops}
        choice = {"text": "x", "finish_reason": "length", "logprobs": logprobs}
        usage = {"prompt_tokens": len(ids), "completion_tokens": 1}
        return Generated.model_validate({"choices": [choice], "usage": usage})


def weighed(server, text, *, window=9):
    async def ask():
        return await WholeTexts(MODEL, server, root="http://h", max_model_len=window).score(text)

    return anyio.run(ask)


@pytest.mark.parametrize(
    "server",
    [
        {"adds": True},
        {"info": {"bos_token": "<s>", "eos_token": "d"}},
        {"info": {"bos_token": None, "eos_token": "<s>"}},
        {"info": {"bos_token": {"content": "<s>"}}},
    ],
)
def test_a_text_is_weighed_after_the_token_that_begins_or_else_ends_one(server):
    server = Server(**server)
    found = weighed(server, "abc")
    assert found.logprobs == found.highest == [-1 / 8, -2 / 8, -3 / 8]
    assert found.length == 4
    assert server.asked == [[BEGIN, 1, 2, 3]]
    assert weighed(server, "<s>").reason == "empty_prompt"


def test_a_text_that_is_longer_than_the_window_is_weighed_in_pieces_each_token_once():
    server = Server(adds=True)
    found = weighed(server, "abcdefgh", window=5)
    assert found.logprobs == [-each / 8 for each in range(1, 9)]
    assert server.asked == [[BEGIN, 1, 2, 3], [3, 4, 5, 6], [5, 6, 7, 8]]
    assert found.length == 12


@pytest.mark.parametrize("info", [None, {}, {"bos_token": 7}, {"eos_token": "no"}])
def test_where_nobody_tells_what_begins_a_text_a_sentence_says_what_would(info):
    found = weighed(Server(info=info), "abc")
    assert found.reason == "empty_prompt"
    assert "start vLLM's server with --enable-tokenizer-info-endpoint" in found.detail


@pytest.mark.parametrize("tell", [lambda ids: [None] * len(ids), lambda ids: [-1.0]])
def test_what_is_not_told_of_each_token_is_none(tell):
    assert weighed(Server(adds=True, tell=tell), "abc").reason == "no_logprobs"


def test_a_refusal_is_the_reason():
    def refuse(ids):
        raise RequestRefused(GenerationFailure(reason="refused", detail="no"))

    assert weighed(Server(adds=True, tell=refuse), "abc").reason == "refused"
    assert math.isfinite(sum(weighed(Server(adds=True), "abc").logprobs))
