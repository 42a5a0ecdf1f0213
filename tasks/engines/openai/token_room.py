"""The room for new tokens that is left where a server refuses `max_tokens`, read from its words.

Servers refuse a request whose prompt and `max_tokens` together exceed their context window, and one whose
`max_tokens` exceeds what they write at most, in words of their own. An engine of ours writes as much as there
is room for, and so does a server that is asked for less.
"""

import re

from winnow.storage.json_types import JsonObject, JsonView
from winnow.tasks.engines.openai.errors import NoRoom
from winnow.tasks.engines.openai.requests import TOKEN_KEYS
from winnow.tasks.engines.protocol import GenerationFailure

MOST_NAMED = 2
"""Number of times that a named room is asked for: a server may name what it writes at most, and then what the
prompt leaves of its window."""

MOST_HALVINGS = 3
"""Number of times that the limit is halved because the server names no room."""

NUMBER = r"(?<![\w.\-/])(\d{1,3}(?:[,_]\d{3})+|\d+)(?!\w|[.,]\d)"
"""A whole number that is no part of a name, such as 4 of gpt-4 and 32 of 32k."""

WINDOW = (
    r"context[ _-](?:length|window|size|limit)[^\d]{0,60}?" + NUMBER,
    r"(?:max_(?:model|seq)_len|n_ctx)[^\d]{0,20}?" + NUMBER,
    r"(?:must be|be) ?<=? ?" + NUMBER,
    NUMBER + r"[ -](?:tokens? )?(?:maximum )?context",
    r"limit of " + NUMBER,
)
"""Patterns of a context window in tokens."""

PROMPT = (
    NUMBER
    + r" (?:tokens )?(?:in|of|from|for) (?:the |your )?(?:input |text )*(?:prompt|messages?|inputs?)\b",
    NUMBER + r" `?(?:input|inputs|prompt|context)`? tokens",
    r"(?:prompt|inputs?|messages)`?(?: tokens| length)?(?: \w+){0,2}[ :=(]+" + NUMBER,
)
"""Patterns of the number of a prompt's tokens."""

TOTAL = (r"requested(?: a total of| about)? " + NUMBER + r" tokens", r"total (?:of )?" + NUMBER)
"""Patterns of the number of a prompt's tokens and `max_tokens` together."""

LOWER_BOUND = re.compile(r"at least \d")
"""The prompt was not read to its end: what is counted of it is less than it has."""

MOST = (
    r"(?:at most|up to|less than or equal to|no more than|not exceed|cannot exceed|greater than|maximum "
    r"(?:is|of|value of|allowed(?: value)? is|output tokens is)|limit of|<=|>)[^\d]{0,30}?" + NUMBER,
    r"[\[(]\d+ ?, ?" + NUMBER + r"[\])]",
)
"""Patterns of the largest `max_tokens` that a server takes, whatever the prompt."""

BELOW = (r"(?:lower|less|smaller) than " + NUMBER, NUMBER + r" \(exclusive\)")
"""Patterns of a number that `max_tokens` has to be below."""


class TokenRoom:
    """Lowers the limit of one request until its server takes it, a bounded number of times."""

    def __init__(self) -> None:
        self._named = self._halved = 0

    def narrowed(self, body: JsonView, sentence: str) -> JsonObject | None:
        """The body with the room that a refusal names, or half as much; None where nothing less can be asked.

        Args:
            body: The body that was refused. One without a limit stays refused.
            sentence: The words of the server.
        """
        if (limit := limit_of(body)) is None:
            return None
        named, room = room_named(sentence, limit), 0
        if named is not None and named < limit and self._named < MOST_NAMED:
            self._named, room = self._named + 1, named
        elif self._halved < MOST_HALVINGS:
            self._halved, room = self._halved + 1, limit // 2
        lower = {key: min(body[key], room) for key in TOKEN_KEYS if type(body.get(key)) is int}
        return {**body, **lower} if room else None


def limit_of(body: JsonView) -> int | None:
    """The number of tokens that a body allows; None where it names no limit."""
    return max((body[key] for key in TOKEN_KEYS if type(body.get(key)) is int), default=None)


def why_no_room(body: JsonView, refusal: NoRoom) -> GenerationFailure:
    """The failure of a request that the server has no room for, however little is asked."""
    limit, failure = limit_of(body), refusal.failure
    if limit is None or room_named(refusal.sentence, limit) == 0:
        return failure
    return GenerationFailure(
        reason="no_room",
        detail=f"{failure.detail}; so it does for max_tokens: {limit}: lower it, or shorten the prompt",
    )


def room_named(sentence: str, limit: int) -> int | None:
    """The tokens that may be written by the words of a server; 0 if the prompt leaves no room.

    None where these name no room, or only the part of the prompt that the server had read.

    Args:
        sentence: The words by which it refuses a request.
        limit: The number of tokens that the request allowed.
    """
    text = sentence.lower()
    window, prompt = _window_and_prompt(text, limit)
    if window is not None and prompt is not None:
        room = max(0, window - prompt)
        return None if room and LOWER_BOUND.search(text) else room
    most = [*_numbers(MOST, text), *(each - 1 for each in _numbers(BELOW, text))]
    most += [] if window is None else [window]
    return max((each for each in most if 0 < each < limit), default=None)


def _window_and_prompt(text: str, limit: int) -> tuple[int | None, int | None]:
    if found := re.search(r"(\d+) \+ (\d+) > (\d+)", text):
        return int(found[3]), int(found[1])
    windows, prompts = _numbers(WINDOW, text), _numbers(PROMPT, text)
    window = next((each for each in windows if each not in prompts), next(iter(windows), None))
    others = [each for each in prompts if each not in (window, limit)]
    totals = [each - limit for each in _numbers(TOTAL, text) if each > limit]
    return window, next(iter([*others, *totals, *(each for each in prompts if each == window)]), None)


def _numbers(patterns: tuple[str, ...], text: str) -> list[int]:
    found = (each for pattern in patterns for each in re.findall(pattern, text))
    return [int(re.sub("[,_]", "", each)) for each in found]
