"""Engines that misbehave on purpose, as providers of their own; see `PROVIDERS`."""

from collections.abc import Callable

from tasks.engines.errors import EngineDied
from tasks.engines.protocol import Completion
from tasks.engines.providers import PROVIDERS
from tasks.engines.transformers_engine import TransformersEngine


class ScriptedEngine:
    """Answers by a function of the request's prompt."""

    identity = "scripted 1"

    def __init__(self, reply: Callable[[str], str]):
        self._reply = reply

    def generate(self, requests):
        return [
            Completion(
                text=self._reply(request.prompt),
                finish_reason="stop",
                input_tokens=1,
                output_tokens=1,
                seconds=0.0,
            )
            for request in requests
        ]

    def close(self):
        pass


class MortalEngine(TransformersEngine):
    """A real engine that dies whenever its lifespan is over, counted in batches over all its lives."""

    batches = 0
    lifespan = 3

    def generate(self, requests):
        MortalEngine.batches += 1
        if MortalEngine.batches % MortalEngine.lifespan == 0:
            raise EngineDied("mortal", "it was its time")
        return super().generate(requests)


def start_hostile(model, settings):
    """Every output is what a terminal, a database or a parser might choke on."""
    return ScriptedEngine(
        lambda prompt: "\0 \ud800 \x1b[31m [bold]a[/bold] {{ 1/0 }} '; DROP TABLE games; -- \u202e" * 3
    )


def start_mortal(model, settings):
    return MortalEngine(model)


def provide(patch, name):
    patch.setitem(PROVIDERS, name, f"scripted_engines:start_{name}")
