"""What runs on a machine of a Ray cluster: the engine of the model's own provider, in a process of Ray's."""

import os
import socket
from collections.abc import Sequence
from pathlib import Path

from winnow.tasks.engines.protocol import Answer, Engine, ModelRef, Request
from winnow.tasks.engines.providers import EngineSettings, start_engine
from winnow.tasks.engines.subprocess.launching import log_file


class EngineActor:
    """An engine that is loaded when it is told to, so that its place is known before.

    An engine with a process of its own, such as vLLM's, ends with this one, however this one ends.
    """

    def __init__(self) -> None:
        self._engine: Engine | None = None

    def host(self) -> str:
        """The name of the machine."""
        return socket.gethostname()

    def load(self, model: ModelRef, settings: EngineSettings) -> str:
        """Load the model and return the engine's identity; raises `EngineError`."""
        _print_to(log_file(settings.log_folder, model.name))
        self._engine = start_engine(model, settings)
        return self._engine.identity

    def generate(self, requests: Sequence[Request]) -> list[Answer]:
        """Answer every request; see `Engine.generate`."""
        assert self._engine is not None, "asked only once it is loaded"
        return self._engine.generate(requests)

    def close(self) -> None:
        """Free what the engine holds."""
        if self._engine is not None:
            self._engine.close()


def _print_to(log: Path) -> None:
    """Append all that this process prints from now on to a file."""
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("ab") as output:
        for stream in (1, 2):
            os.dup2(output.fileno(), stream)
