"""Models without weights: each output is a function of the model's name, the prompt and the seed.

Campaigns name them as `provider: scripted` (one group at a time) or `provider: joining` (requests may join),
and their ability in the model's id: `scripted/right-80` is right on about 80% of all prompts.
"""

import os
import re
import signal
from zlib import crc32

from golden_pieces import Parity

import winnow
from winnow.tasks.engines.protocol import Completion, GenerationFailure

LETTERS = "abcdefg"


class Strike:
    """A signal that this process sends itself when its engines begin a group, counted from 1."""

    groups = 0
    at = 0
    signal = signal.SIGKILL

    @classmethod
    def count(cls):
        cls.groups += 1
        if cls.groups == cls.at:
            os.kill(os.getpid(), cls.signal)


class Scripted:
    """Answers each request by itself, whatever else is in its group."""

    identity = "scripted 1"

    def __init__(self, model, settings):
        self._ability = ABILITIES[re.search(r"scripted/([a-z]+)", model.model).group(1)]
        self._share = int((re.search(r"-(\d+)", model.model) or ["", "0"])[1])
        self._name = model.model

    def generate(self, requests):
        Strike.count()
        return [self._answer(each) for each in requests]

    def close(self):
        pass

    def _answer(self, request):
        seed = request.seed if request.sampling.temperature else 0
        chance = crc32(f"{self._name}|{request.prompt}|{seed}".encode()) % 100
        if request.continuations:
            return self._choose(request)
        text = self._ability(request.prompt, chance < self._share, chance)
        if text is None:
            return GenerationFailure(reason="refused", detail="it says nothing")
        return Completion(
            text=text,
            finish_reason="stop",
            input_tokens=len(request.prompt.split()),
            output_tokens=max(1, len(text.split())),
            seconds=0.25,
            token_logprobs=[-0.5] * max(1, len(text.split())) if request.sampling.logprobs else None,
        )

    def _choose(self, request):
        """The log-likelihood of each continuation, by chance."""
        known = {
            each: -1.0 - crc32(f"{self._name}|{request.prompt}|{each}".encode()) % 1000 / 100
            for each in request.continuations
        }
        best = max(known, key=known.__getitem__)
        is_greedy = known[best] > -5.0 if request.is_greedy else None
        return Completion(
            text="" if is_greedy is False else best,
            finish_reason="stop",
            input_tokens=len(request.prompt.split()),
            output_tokens=0,
            seconds=0.25,
            choice_logprobs=known,
            is_greedy=is_greedy,
        )


def _right(prompt, is_right, chance):
    letter = LETTERS[number(prompt) % 7]
    return letter if is_right else "xyz"[chance % 3]


def _verbose(prompt, is_right, chance):
    return f"I think that it is {_right(prompt, is_right, chance)}" + " indeed" * (chance % 4)


def _mute(prompt, is_right, chance):
    return _right(prompt, True, chance) if is_right else None


def _rates(prompt, is_right, chance):
    """A judge of single outputs: points by chance, no verdict now and then."""
    return "I cannot say." if chance < 8 else f"It is so. [[{('no', 'yes')[chance % 2]}]]"


def _prefers(prompt, is_right, chance):
    """A judge of duels that has a liking for what it is shown first, and no verdict now and then."""
    return "I cannot say." if chance < 8 else f"Well. [[{'AABC'[chance % 4]}]]"


ABILITIES = {
    "right": _right,
    "verbose": _verbose,
    "mute": _mute,
    "rates": _rates,
    "prefers": _prefers,
}


def number(prompt):
    """The last number that stands in a prompt."""
    return int(re.findall(r"[0-9]+", prompt)[-1])


class Joining(Scripted):
    """Takes requests while it works on others."""

    joins = True


def register():
    """Name the engines and the embedder, until this process ends."""
    winnow.engine("scripted")(Scripted)
    winnow.engine("joining")(Joining)
    winnow.embedder("parity")(Parity)
