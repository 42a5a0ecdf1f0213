"""Keys of the campaign's file for all agents, and the interface of a provider's own keys."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, ClassVar, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, WithJsonSchema, field_validator

from winnow.storage.json_types import JsonObject
from winnow.tasks.plugins.allowed_code import Act

Scalar = str | int | float | bool | None

GRID = {"type": "object", "additionalProperties": {"type": ["string", "number", "boolean", "null", "array"]}}
"""JSON schema of `params` in the campaign's file."""

MOST_AT_ONCE = 256

COST = "cost"
"""Name of the reported price of a run; metrics cannot have this name."""


class AgentKeys(BaseModel):
    """Base class for parts of an agent's entry: refuses unknown keys, converts no values."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)


class ExampleLimits(AgentKeys):
    """Limits on one run.

    A run that reports more has no output, but its tokens and cost still count.
    """

    tokens: int | None = Field(default=None, ge=1)
    """Maximum number of input and output tokens together, as the agent reports them."""
    cost: float | None = Field(default=None, gt=0.0)
    """Maximum price of the run, as the agent reports it."""


class AgentSettings(AgentKeys):
    """Keys of an agent's entry under `models`."""

    KNOBS: ClassVar[tuple[str, ...]] = ("concurrency", "timeout", "retries", "retry_on")
    """Keys that may change from one run to the next."""

    params: Annotated[dict[str, Scalar], WithJsonSchema(GRID)] = {}
    """Parameters passed to each run as `params`. A list is a grid: each combination is a candidate."""
    version: Annotated[str, StringConstraints(min_length=1, max_length=200)] | None = None
    """Your own version label for parts that Winnow cannot inspect, such as an index or a service that the
    agent uses; part of the identity."""
    concurrency: int = Field(default=8, ge=1, le=MOST_AT_ONCE)
    """Maximum number of concurrent runs, over all combinations of `params` together."""
    timeout: float = Field(default=120.0, gt=0.0, le=86_400.0)
    """Maximum seconds of one attempt."""
    retries: int = Field(default=2, ge=0, le=20)
    """Maximum number of times that a run is repeated after a failure of the kinds in `retry_on`."""
    limits: ExampleLimits = ExampleLimits()
    """Limits on one run: tokens and cost. Its time is limited by `timeout`."""
    on_failure: Literal["unscored", "empty"] = "unscored"
    """Outcome of a failed run: "unscored", or "empty" to let the judge score an empty output."""
    entry: str | None = None
    """Set by Winnow: the entry's name before its `params` were expanded into combinations."""

    @field_validator("params")
    @classmethod
    def _has_names(cls, params: dict[str, Scalar]) -> dict[str, Scalar]:
        if not all(params):
            raise ValueError("has a parameter without a name; name it")
        return params

    @classmethod
    def from_text(cls, text: str) -> JsonObject:
        """Expand the short form `PROVIDER:TEXT` to the keys of an entry; raises `ValueError`."""
        raise NotImplementedError

    @property
    def shown(self) -> str:
        """Short form of the command, URL or function, for display."""
        raise NotImplementedError

    @property
    def server(self) -> str | None:
        """URL of the server that receives the examples; None if the agent uses no server."""
        return None

    def acts(self, folder: Path) -> Iterator[tuple[str, Act]]:
        """Acts that a user must allow before the agent runs, each with the key that requests it."""
        yield from ()

    def variables(self) -> Iterator[tuple[str, str]]:
        """Environment variables that the agent sends to `server`, without `$`, each with its key."""
        yield from ()

    def code(self) -> Mapping[str, str]:
        """SHA-256 of each file of the agent's code, by name; raises `ValueError` if one is unreadable."""
        return {}

    def identity(self) -> JsonObject:
        """Everything that determines the outputs except the example.

        Raises:
            ValueError: If `code` raises it.
        """
        given = self.model_dump(mode="json", exclude={*self.KNOBS, "entry"}, exclude_defaults=True)
        code = self.code()
        return {**given, **({"code": dict(code)} if code else {})}

    def check(self) -> None:
        """Raise `ValueError` if the agent cannot run here; the message says what to do."""

    @classmethod
    def of(cls, setup: Mapping[str, object]) -> Self:
        """Read settings from stored JSON values."""
        return cls.model_validate(dict(setup))
