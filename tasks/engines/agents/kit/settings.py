"""Keys in the campaign's file that all agents share, and the interface of a provider's own keys."""

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
    """A part of an agent's entry: unknown keys are refused and nothing is converted silently."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)


class ExampleLimits(AgentKeys):
    """Limits on one run. A run that reports more has no output, but its tokens and cost still count."""

    tokens: int | None = Field(default=None, ge=1)
    """Input and output tokens together, as the agent reports them."""
    cost: float | None = Field(default=None, gt=0.0)
    """Price of the run, as the agent reports it."""


class AgentSettings(AgentKeys):
    """Keys of an agent's entry under `models`."""

    KNOBS: ClassVar[tuple[str, ...]] = ("concurrency", "timeout", "retries", "retry_on")
    """Keys that may change from one run to the next."""

    params: Annotated[dict[str, Scalar], WithJsonSchema(GRID)] = {}
    """Passed to each run as `params`. A list is a grid: each combination is a candidate."""
    version: Annotated[str, StringConstraints(min_length=1, max_length=200)] | None = None
    """Your own version label for parts that Winnow cannot inspect, such as an index or a service that the
    agent uses; part of the identity."""
    concurrency: int = Field(default=8, ge=1, le=MOST_AT_ONCE)
    """Maximum number of concurrent runs, over all combinations of `params` together."""
    timeout: float = Field(default=120.0, gt=0.0, le=86_400.0)
    """Seconds that one attempt may take."""
    retries: int = Field(default=2, ge=0, le=20)
    """Number of times that a run is tried again after a failure of `retry_on`."""
    limits: ExampleLimits = ExampleLimits()
    """Limits on one run: tokens and cost; its time is `timeout`."""
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
        """The command or function, in a few words."""
        raise NotImplementedError

    @property
    def server(self) -> str | None:
        """URL of the server that receives the examples; None if the agent uses no server."""
        return None

    def acts(self, folder: Path) -> Iterator[tuple[str, Act]]:
        """Acts that a user must allow before it runs, each with the key that requests it."""
        yield from ()

    def variables(self) -> Iterator[tuple[str, str]]:
        """Environment variables that it sends to `server`, without the dollar sign, each with its key."""
        yield from ()

    def code(self) -> Mapping[str, str]:
        """SHA-256 of each file of its code, by name; raises `ValueError` if one cannot be read."""
        return {}

    def identity(self) -> JsonObject:
        """Everything except the example that determines the outputs; raises `ValueError` like `code`."""
        given = self.model_dump(mode="json", exclude={*self.KNOBS, "entry"}, exclude_defaults=True)
        code = self.code()
        return {**given, **({"code": dict(code)} if code else {})}

    def check(self) -> None:
        """Raise `ValueError` if the agent cannot run on this machine; the message contains the remedy."""

    @classmethod
    def of(cls, setup: Mapping[str, object]) -> Self:
        """Read settings that were stored as JSON values."""
        return cls.model_validate(dict(setup))
