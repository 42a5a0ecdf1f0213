"""The room for tokens that servers name when they refuse `max_tokens`, in their own words."""

import pytest
from faulty_server import refused
from test_openai_engine import ask, serve

from winnow.tasks.engines.openai.errors import MOST_HALVINGS, TokenRoom, room_named
from winnow.tasks.engines.openai.requests import generation_body
from winnow.tasks.engines.protocol import ModelRef, Request, Sampling

__all__ = ["serve"]

SENTENCES = [
    (
        "This model's maximum context length is 4097 tokens, however you requested 4927 tokens "
        "(3927 in your prompt; 1000 for the completion). Please reduce your prompt; or "
        "completion length.",
        1_000,
        170,
    ),
    (
        "This model's maximum context length is 4097 tokens. However, you requested 5000 tokens "
        "(1000 in the messages, 4000 in the completion). Please reduce the length of the "
        "messages or completion.",
        4_000,
        3_097,
    ),
    (
        "This model's maximum context length is 8192 tokens. However, you requested 8292 tokens "
        "(100 in the messages, 92 in the functions, 8100 in the completion).",
        8_100,
        8_092,
    ),
    (
        "max_tokens is too large: 100000. This model supports at most 16384 completion tokens, "
        "whereas you provided 100000.",
        100_000,
        16_384,
    ),
    (
        "'max_tokens' or 'max_completion_tokens' is too large: 256. This model's maximum context "
        "length is 64 tokens and your request has 10 input tokens (256 > 64 - 10).",
        256,
        54,
    ),
    (
        "max_tokens=256 cannot be greater than max_model_len=64. Please request fewer output "
        "tokens. (parameter=max_tokens, value=256)",
        256,
        64,
    ),
    (
        "max_tokens=256cannot be greater than max_model_len=max_total_tokens=64. Please request "
        "fewer output tokens.",
        256,
        64,
    ),
    (
        "This model's maximum context length is 4096 tokens. However, you requested 4000 output "
        "tokens and your prompt contains at least 97 input tokens, for a total of at least 4097 "
        "tokens. Please reduce the length of the input prompt or the number of requested output "
        "tokens. (parameter=input_tokens, value=97)",
        4_000,
        None,
    ),
    (
        "You passed 500 input tokens and requested 4000 output tokens. However, the model's "
        "context length is only 4096 tokens, resulting in a maximum input length of 96 tokens. "
        "Please reduce the length of the input prompt.",
        4_000,
        3_596,
    ),
    (
        "Requested token count exceeds the model's maximum context length of 8192 tokens. You "
        "requested a total of 10000 tokens: 2000 tokens from the input messages and 8000 tokens "
        "for the completion. Please reduce",
        8_000,
        6_192,
    ),
    (
        "The input (9000 tokens) is longer than the model's context length (8192 tokens).",
        256,
        0,
    ),
    (
        "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096. Given: 100 "
        "`inputs` tokens and 4096 `max_new_tokens`",
        4_096,
        3_996,
    ),
    (
        "`inputs` tokens + `max_new_tokens` must be <= 8193",
        256,
        None,
    ),
    (
        "input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000, decrease "
        "input length or `max_tokens` and try again",
        20_000,
        10_000,
    ),
    (
        "`max_tokens` must be less than or equal to `8192`, the maximum value for `max_tokens` "
        "is less than the `context_window` for this model",
        10_000,
        8_192,
    ),
    (
        "Invalid max_tokens value, the valid range of max_tokens is [1, 8192]",
        10_000,
        8_192,
    ),
    (
        "<400> InternalError.Algo.InvalidParameter: Range of max_tokens should be [1, 8192]",
        10_000,
        8_192,
    ),
    (
        "This endpoint's maximum context length is 32768 tokens. However, you requested about "
        "40000 tokens (20000 of text input, 20000 in the output). Please reduce the length of "
        "either one",
        20_000,
        12_768,
    ),
    (
        "Prompt contains 33000 tokens and 0 draft tokens, too large for model with 32768 maximum "
        "context length",
        256,
        0,
    ),
    (
        "max_tokens: 100000 > 8192, which is the maximum allowed number of output tokens for "
        "claude-3-5-sonnet-20241022",
        100_000,
        8_192,
    ),
    (
        "Unable to submit request because it has a maxOutputTokens value of 100000 but the "
        "supported range is from 1 (inclusive) to 8193 (exclusive).",
        100_000,
        8_192,
    ),
    (
        "The maximum tokens you requested exceeds the model limit of 4096. Try again with a "
        "maximum tokens value that is lower than 4096.",
        10_000,
        4_096,
    ),
    (
        "This model's maximum context length is 64 tokens",
        256,
        64,
    ),
    (
        "Your request has 3,000 prompt tokens and max_tokens=2,000, which exceeds the context "
        "window of 4,096 tokens",
        2_000,
        1_096,
    ),
    (
        "context window exceeded: prompt tokens: 300, max tokens: 800, context window: 1024",
        800,
        724,
    ),
    (
        "prompt (300 tokens) + max_tokens (800) > n_ctx (1024)",
        800,
        724,
    ),
    (
        "The total number of tokens 1100 (prompt 300 + max_tokens 800) exceeds the limit of 1024",
        800,
        724,
    ),
    (
        "Error code: 400 - maximum context length is 1024 tokens, prompt has 300 tokens, 800 "
        "tokens requested for the completion",
        800,
        724,
    ),
    (
        "exceeds context length",
        256,
        None,
    ),
    (
        "the requested tokens exceed the model's 1024-token context window",
        2_000,
        1_024,
    ),
]


@pytest.mark.parametrize(("sentence", "limit", "room"), SENTENCES)
def test_the_room_is_read_from_the_words_of_servers(sentence, limit, room):
    assert room_named(sentence, limit) == room


NEW_VLLM = (
    "'max_tokens' or 'max_completion_tokens' is too large: {limit}. This model's maximum context length is "
    "64 tokens and your request has 10 input tokens ({limit} > 64 - 10)."
)


def limited(most, sentence):
    """A script that refuses more tokens than this in the words of a server."""

    def script(call):
        limit = call.body["max_tokens"]
        return refused(400, sentence.format(limit=limit)) if limit > most else None

    return script


def limits(server):
    return [call.body["max_tokens"] for call in server.calls]


@pytest.mark.parametrize("chat", [False, True])
def test_a_text_gets_the_room_that_a_refusal_names(serve, chat):
    """The reproduction: every prompt of 10 tokens was called too long for a window of 64."""
    server, engine = serve(limited(54, NEW_VLLM), reply=lambda call: ("right", "length"), chat=chat)
    [answer] = engine.generate(ask("n1", max_tokens=256))
    assert limits(server) == [256, 54]
    assert (answer.text, answer.finish_reason) == ("right", "length")


def test_where_no_room_is_named_the_limit_is_halved_at_most_three_times(serve):
    sentence = "max_tokens exceeds what is allowed with this context length"
    server, engine = serve(limited(64, sentence))
    [answer] = engine.generate(ask("n1", max_tokens=500))
    assert limits(server) == [500, 250, 125, 62]
    assert answer.finish_reason == "stop"
    server, engine = serve(limited(10, sentence))
    [failure] = engine.generate(ask("n1", max_tokens=500))
    assert limits(server) == [500, 250, 125, 62]
    assert failure.reason == "no_room"
    assert failure.detail == (
        f"the server says 400: {sentence}; the same with max_tokens: 62; lower max_tokens or shorten "
        "the prompt"
    )


def test_a_server_may_name_what_it_writes_at_most_and_then_its_window(serve):
    def script(call):
        limit = call.body["max_tokens"]
        if limit > 100:
            return refused(400, f"max_tokens={limit} cannot be greater than max_model_len=100")
        return limited(90, "maximum context length is 100 tokens; {limit} requested, 10 in the prompt")(call)

    server, engine = serve(script)
    engine.generate(ask("n1", max_tokens=256))
    assert limits(server) == [256, 100, 90]


def test_a_prompt_that_leaves_no_room_is_too_long_and_a_hostile_server_is_not_asked_for_ever(serve):
    full = "This model's maximum context length is 64 tokens and your request has 64 input tokens"
    server, engine = serve(limited(0, full))
    [failure] = engine.generate(ask("n1", max_tokens=16))
    assert failure.reason == "prompt_too_long"
    server, engine = serve(
        lambda call: refused(400, f"context length: at most {call.body['max_tokens'] - 1} tokens")
    )
    [failure] = engine.generate(ask("n1", max_tokens=100_000))
    assert failure.reason == "no_room"
    assert len(server.calls) == 1 + 2 + MOST_HALVINGS


def test_no_request_is_sent_without_the_limit_it_had():
    model = ModelRef(
        name="m", provider="openai", model="m",
        model_args={"max_tokens": None, "max_completion_tokens": 800},
    )  # fmt: skip
    body = generation_body(model, Request(prompt="p", sampling=Sampling(), seed=0))
    smaller = TokenRoom().narrowed(body, "context window exceeded")
    assert "max_tokens" not in smaller
    assert smaller["max_completion_tokens"] == 400
    assert TokenRoom().narrowed({"prompt": "p"}, "context window exceeded") is None


@pytest.mark.parametrize(
    "sentence",
    [
        "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' "
        "instead.",
        "Invalid 'max_output_tokens': integer below minimum value. Expected a value >= 16, but got 1.",
        "temperature 3 is too large",
    ],
)
def test_other_refusals_are_left_as_they_are(serve, sentence):
    server, engine = serve(limited(0, sentence))
    [failure] = engine.generate(ask("n1"))
    assert failure.reason == "refused"
    assert len(server.calls) == 1
