"""Provider `recorded`: reads a candidate's outputs from the data; generates nothing."""

from pathlib import Path
from typing import Annotated

from pydantic import Field

from winnow.storage.json_types import JsonObject
from winnow.tasks.dotted_names import value_of
from winnow.tasks.engines.agents.kit.calls import CallFailed
from winnow.tasks.engines.agents.kit.settings import AgentSettings


class Settings(AgentSettings):
    """Keys of an entry with `provider: recorded`."""

    output: Annotated[str, Field(min_length=1)]
    """Field of the example that holds the candidate's output, such as `outputs.a`."""

    @classmethod
    def from_text(cls, text: str) -> JsonObject:
        """See `AgentSettings`."""
        return {"output": text}

    @property
    def shown(self) -> str:
        """See `AgentSettings`."""
        return self.output


class Caller:
    """Caller that returns the recorded output: a field of the example."""

    def __init__(self, name: str, settings: Settings, log_folder: Path) -> None:
        self._field = settings.output

    def answer(self, message: JsonObject) -> object:
        """See `Caller`."""
        found = value_of(message["example"], self._field)
        if not isinstance(found, str):
            raise CallFailed(f"the example has no text in {self._field}", reason="not_recorded")
        return {"output": found}

    def close(self) -> None:
        """Do nothing, because no resource is open."""
