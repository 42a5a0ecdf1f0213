"""Choosing between given texts at a vLLM server, which tells the tokens of a text and what any token weighs.

Its answers are those of the same model in a process of ours; see `tasks.engines.choices.trees`.
"""

import json
import sys
from collections.abc import Mapping, Sequence
from functools import partial

from winnow.storage.json_types import JsonObject
from winnow.tasks.engines.chat import Prompt
from winnow.tasks.engines.choices.choice_scoring import Chooser, NextToken, OptionLogprobs, TokenLogprobs
from winnow.tasks.engines.choices.trees import ChoiceEncoder
from winnow.tasks.engines.openai.answers import Tokens, read, read_generated
from winnow.tasks.engines.openai.errors import RequestRefused
from winnow.tasks.engines.openai.requests import MIB, answer_bytes, prompt_fields
from winnow.tasks.engines.openai.server_calls import AskAll, ServerCalls
from winnow.tasks.engines.protocol import Answer, GenerationFailure, ModelRef, Request

UNKNOWN = -1  # stands for the token of unknown characters, of which a server tells only the name
TOKEN_BYTES = 16  # of a token in a list of ids, at the most
UNKNOWN_NAMES = frozenset({"<unk>", "[UNK]", "<UNK>", "<|unk|>"})


class TokenChoices:
    """Chooses at a vLLM server, token by token.

    Args:
        model: The model that is asked.
        calls: The server.
        root: Its URL without the version of the API.
        max_model_len: The model's context window in tokens.
        ask_all: Runs what has to be asked.
    """

    unk_token_id = UNKNOWN

    def __init__(
        self, model: ModelRef, calls: ServerCalls, *, root: str, max_model_len: int, ask_all: AskAll
    ) -> None:
        self._model = model
        self._calls = calls
        self._tokenize_url = f"{root}/tokenize"
        self._ask_all = ask_all
        self._choices: dict[str, list[int] | GenerationFailure] = {}
        self._chooser = Chooser(
            ChoiceEncoder(self, vocabulary=sys.maxsize), max_model_len=max_model_len, ask=self._next_logprobs
        )

    def answer(self, requests: Sequence[Request]) -> list[Answer]:
        """Answer requests that give choices; answer i belongs to request i."""
        unknown = {each: None for request in requests for each in request.sampling.choices}
        texts = [each for each in unknown if each not in self._choices]
        self._choices.update(zip(texts, self._ask_all(self._ids_of_choice, texts), strict=True))
        prompts = self._ask_all(self._ids_of_prompt, [request.asked for request in requests])
        ids = {i: found for i, found in enumerate(prompts) if not isinstance(found, GenerationFailure)}
        chosen = self._chooser.answer(list(ids.values()), [requests[i] for i in ids])
        refused = {i: found for i, found in enumerate(prompts) if isinstance(found, GenerationFailure)}
        answers = {**refused, **dict(zip(ids, chosen, strict=True))}
        return [answers[i] for i in range(len(requests))]

    def __call__(self, text: str, *, add_special_tokens: bool) -> dict[str, list[int]]:
        """The token ids of a choice, as a tokenizer gives them; raises `ValueError`."""
        found = self._choices[text]
        if isinstance(found, GenerationFailure):
            raise ValueError(found.detail)
        return {"input_ids": found}

    async def _ids_of_choice(self, choice: str) -> list[int] | GenerationFailure:
        found = await self._tokens({"prompt": choice, "add_special_tokens": False, "return_token_strs": True})
        if isinstance(found, GenerationFailure):
            return found
        names = found.token_strs or [""] * len(found.tokens)
        return [
            UNKNOWN if name in UNKNOWN_NAMES else token
            for token, name in zip(found.tokens, names, strict=False)
        ]

    async def _ids_of_prompt(self, prompt: Prompt) -> list[int] | GenerationFailure:
        found = await self._tokens(prompt_fields(self._model, prompt))
        return found if isinstance(found, GenerationFailure) else found.tokens

    async def _tokens(self, fields: JsonObject) -> Tokens | GenerationFailure:
        body = {"model": self._model.model, **fields}
        try:
            return await self._calls.post(
                self._tokenize_url, body, partial(read, Tokens), most_bytes=_tokens_bytes(fields)
            )
        except RequestRefused as error:
            return GenerationFailure(reason="bad_prompt", detail=error.failure.detail)

    def _next_logprobs(self, questions: Sequence[NextToken]) -> list[TokenLogprobs]:
        return self._ask_all(self._logprobs_of, questions)

    async def _logprobs_of(self, question: NextToken) -> TokenLogprobs:
        body = {
            "model": self._model.model,
            "prompt": question.ids,
            "temperature": 0.0,
            "max_tokens": 1,
            "logprobs": len(question.options),
            "logprob_token_ids": list(question.options),
            "return_tokens_as_token_ids": True,
        }
        try:
            generated = await self._calls.post(
                "/completions", body, partial(read_generated, chat=False), most_bytes=answer_bytes(body)
            )
        except RequestRefused as error:
            return error.failure
        known = generated.first_logprobs
        names = {token: f"token_id:{token}" for token in question.options}
        logprobs = {token: known[name] for token, name in names.items() if name in known}
        return OptionLogprobs(logprobs, generated.usage.cached_tokens)


def _tokens_bytes(fields: Mapping[str, object]) -> int:
    """The longest list of a text's tokens: each has a byte of the text, or is of a chat's template."""
    return MIB + TOKEN_BYTES * len(json.dumps(fields))
