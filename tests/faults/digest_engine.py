"""An engine without a model that answers by a digest of each request; see `scripted_worker`."""

from collections.abc import Sequence

from tests.faults.scripted_worker import answer
from winnow.tasks.engines.protocol import Completion, Engine, ModelRef, Request
from winnow.tasks.engines.providers import EngineSettings


class DigestEngine:
    """Its texts are a function of the model's name, the prompt and the seed."""

    identity = "digest 1"

    def __init__(self, name: str) -> None:
        self._name = name

    def generate(self, requests: Sequence[Request]) -> list[Completion]:
        return [
            Completion(**answer(self._name, {"prompt": each.prompt, "seed": each.seed})) for each in requests
        ]

    def close(self) -> None:
        pass


def start(model: ModelRef, settings: EngineSettings) -> Engine:
    return DigestEngine(model.name)
