"""Body of a request to an OpenAI-compatible server, and the maximum length of its answer.

A server with longer answers is broken or hostile.
"""

import json
import re
import sys
from collections.abc import Sequence

from winnow.storage.json_types import JsonObject, JsonView
from winnow.tasks.engines.chat import (
    Message,
    Prompt,
    as_dicts,
    is_continued,
    last_user,
    messages_of,
    words_of,
)
from winnow.tasks.engines.images import Image, marking_no_image
from winnow.tasks.engines.protocol import GenerationFailure, ModelRef, Request, Sampling, Structure

SPELLED = re.compile(
    r"<[|｜][^<>\s|｜]{1,64}[|｜]>"  # <|im_end|>, <|eot_id|>, and with wide bars
    r"|</?s>|<[be]os>|<(?:start|end)_of_turn>"
    r"|\[/?(?:INST|SYSTEM_PROMPT|AVAILABLE_TOOLS|TOOL_RESULTS|TOOL_CALLS)\]|<</?SYS>>"
)


def escape_special_tokens(prompt: str) -> str:
    """Insert a space after the first character of each special token in a prompt, nested ones included."""
    while SPELLED.search(prompt):
        prompt = SPELLED.sub(lambda found: f"{found[0][0]} {found[0][1:]}", prompt)
    return prompt


RESERVED = frozenset({"model", "prompt", "messages", "stream", "n", "seed"})
"""Keys of a body that `model_args` may not set. Only `seed` may be null, which removes it for servers that do
not support it."""

TOKEN_KEYS = ("max_tokens", "max_completion_tokens")
"""Keys of a body for the maximum number of tokens; `model_args` may replace one by the other."""

DEFAULT_TOKENS = 2**17
"""Number of tokens that a body is assumed to allow if it has neither of these keys."""

CONTINUED = {"add_generation_prompt": False, "continue_final_message": True}
"""Keys that make vLLM's server continue the assistant's last message."""

PLAIN_VLLM = {"min_p": 0.0, "presence_penalty": 0.0, "frequency_penalty": 0.0, "repetition_penalty": 1.0}
"""Settings that vLLM would otherwise take from the checkpoint's generation_config."""

SHAPING = ("top_k", *PLAIN_VLLM, "logit_bias", "stop_token_ids")
"""Keys of a body, besides temperature and top_p, that affect which token is drawn or when the text ends."""

GUIDED_BEFORE = (0, 11)
"""First version of vLLM whose server supports `structured_outputs`; earlier ones use `guided_` keys."""


def reserved_args(model_args: JsonView) -> list[str]:
    """Keys of `model_args` that Winnow sets itself."""
    return sorted(key for key in RESERVED & model_args.keys() if key != "seed" or model_args[key] is not None)


def is_seedless(model_args: JsonView) -> bool:
    """Whether no seed is sent, so that texts sampled at a temperature differ each time."""
    return "seed" in model_args and model_args["seed"] is None


def other_base_urls(url: str) -> list[str]:
    """Likely base URLs if the given one lists no models, the likeliest first."""
    bare = re.sub(r"/v\d+[a-z]*\d*$", "", url)
    return [f"{url}{path}" for path in ("/v1", "/api/v1", "/openai/v1")] if bare == url else [bare]


def generation_path(model: ModelRef) -> str:
    """Path of requests for texts, relative to the base URL."""
    return "/chat/completions" if model.chat else "/completions"


def generation_body(
    model: ModelRef, request: Request, *, vllm: str | None = None, max_model_len: int | None = None
) -> JsonObject:
    """Body of a request for a text.

    Args:
        model: The model; its `model_args` are added last, and a null removes a key.
        request: The request for a text.
        vllm: Version of vLLM, if the server is vLLM's, which supports more than OpenAI's own.
        max_model_len: Context window in tokens, if known.
    """
    sampling, is_vllm = request.sampling, vllm is not None
    limit = sampling.max_tokens if max_model_len is None else min(sampling.max_tokens, max_model_len - 1)
    body = {
        "model": model.model,
        **prompt_fields(model, request.asked, request.images),
        "temperature": sampling.temperature,
        "top_p": sampling.top_p,
        "max_tokens": limit,
        # Greedy decoding ignores the seed, and some servers do not support one.
        **({"seed": request.seed} if sampling.temperature > 0.0 else {}),
        # OpenAI's own API lacks this key; a server without it refuses it if a spec sets it.
        **({"top_k": sampling.top_k} if is_vllm or sampling.top_k else {}),
        **(PLAIN_VLLM if is_vllm else {}),
        **_rare(sampling),
        **_structured(sampling.structure, vllm),
        # A plain completion requests one more token, because some servers read 0 as no request.
        **({"logprobs": model.chat or 1} if sampling.logprobs else {}),
        **dict(model.model_args),
    }
    if sampling.stop:
        body["stop"] = list(sampling.stop)
    return {key: value for key, value in body.items() if value is not None}


def answer_bytes(body: JsonView) -> int:
    """Maximum length of the answer to a body, in bytes, from the tokens that the body allows."""
    allowed = [body[key] for key in TOKEN_KEYS if type(body.get(key)) is int]
    return bytes_for(max(allowed, default=DEFAULT_TOKENS))


def prompt_fields(model: ModelRef, prompt: Prompt, images: Sequence[Image] = ()) -> JsonObject:
    """Fields for the prompt: a text, or messages of a chat that cannot end their own turn.

    Images stand in the place of their URLs until the body is sent.
    """
    if not model.chat:
        return {"prompt": prompt}
    messages = messages_of(prompt)
    sent = [Message(each.role, escape_special_tokens(each.content)) for each in messages]
    fields: JsonObject = {"messages": as_dicts(sent)}
    if images:
        shown = [{"type": "image_url", "image_url": {"url": each}} for each in images]
        message = fields["messages"][last_user(messages)]
        message["content"] = [*shown, {"type": "text", "text": marking_no_image(message["content"])}]
    if is_continued(prompt):
        fields |= CONTINUED
    if model.chat_template is not None:
        fields["chat_template"] = model.chat_template
    if model.chat_template_args:
        fields["chat_template_kwargs"] = dict(model.chat_template_args)
    return fields


def why_unsendable(model: ModelRef, request: Request, *, is_vllm: bool) -> GenerationFailure | None:
    """Failure of a request that cannot be sent to this server; None if it can."""
    structure, prompt = request.sampling.structure, request.asked
    if structure is not None and structure.kind != "json_schema" and not is_vllm:
        return GenerationFailure(
            reason="refused",
            detail=f"only vLLM's server is known to support {structure.kind}; remove structured_output and "
            "put this server's own setting into model_args",
        )
    if not model.chat and not isinstance(prompt, str):
        return GenerationFailure(reason="bad_prompt", detail="messages need a chat model; set chat: true")
    if not prompt and not model.chat and not request.continuations:
        return GenerationFailure(reason="empty_prompt", detail="the prompt has no tokens")
    try:
        words_of(prompt).encode()
    except UnicodeEncodeError as error:
        return GenerationFailure(reason="bad_prompt", detail=f"it is not valid Unicode: {error}")
    if is_continued(prompt) and not (is_vllm or CONTINUED.keys() & model.model_args.keys()):
        return GenerationFailure(
            reason="refused",
            detail="only vLLM's server is known to continue an assistant's message; end messages with the "
            "user, or put this server's own setting into model_args, such as "
            "continue_final_message: true",
        )
    return None


def _rare(sampling: Sampling) -> JsonObject:
    """Optional part of a body: settings that differ from their defaults."""
    given = sampling.as_json()
    body = {key: given[key] for key in (*PLAIN_VLLM, "stop_token_ids") if key in given}
    if sampling.logit_bias:
        body["logit_bias"] = {str(token): bias for token, bias in sampling.logit_bias}
    return body


def _structured(structure: Structure | None, vllm: str | None) -> JsonObject:
    """Part of a body for structured output: OpenAI's form of a schema, or vLLM's own keys."""
    if structure is None:
        return {}
    is_json = structure.kind in ("choice", "json_schema")
    value = json.loads(structure.value) if is_json else structure.value
    if vllm is None:
        schema = {"name": "answer", "schema": value, "strict": True}
        return {"response_format": {"type": "json_schema", "json_schema": schema}}
    key = "json" if structure.kind == "json_schema" else structure.kind
    if _numbers(vllm) < GUIDED_BEFORE:
        return {f"guided_{key}": value}
    return {"structured_outputs": {key: value}}


def _numbers(version: str) -> tuple[int, ...]:
    """First two numbers of a version; a version without numbers counts as the newest."""
    found = re.match(r"(\d+)\.(\d+)", version)
    return (int(found[1]), int(found[2])) if found else (sys.maxsize,)


KIB = 1 << 10
MIB = 1 << 20

ESCAPED = 6
"""Bytes of a character that JSON escapes in ASCII, such as \\u00e9; a character beyond U+FFFF needs two
escapes."""


def bytes_for(tokens: int) -> int:
    """Maximum bytes of an answer: 1 KiB for each token, and 1 MiB for everything else."""
    return tokens * KIB + MIB


def bytes_for_batch(requests: Sequence[Request]) -> int:
    """Maximum bytes of a message with the answers to requests, including their choices."""
    return MIB + sum(bytes_for(request.sampling.max_tokens) + _of_choices(request) for request in requests)


def _of_choices(request: Request) -> int:
    texts = (*request.sampling.choices, *request.continuations)
    return sum(2 * ESCAPED * len(each) + KIB for each in texts)
