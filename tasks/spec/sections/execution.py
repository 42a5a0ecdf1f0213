"""Settings for running a campaign, for notifications, and for reuse of outputs.

They can change between runs of a campaign.
"""

import datetime as dt
import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self
from urllib.parse import urlsplit

from pydantic import (
    BeforeValidator,
    Field,
    ValidatorFunctionWrapHandler,
    WrapValidator,
    field_validator,
    model_validator,
)
from pydantic_core import PydanticCustomError

from winnow.tasks.spec.sections.budget import PriceSpec
from winnow.tasks.spec.spec_model import SECRET, FilePath, SpecModel
from winnow.tasks.spec.stored_spec import ONLY

Event = Literal["decided", "undecided", "waiting", "failed", "winner-changed", "regression"]
"""Outcomes of a run that can send a notification:

* decided: the campaign has an answer.
* undecided: a limit is reached or no pair is left to evaluate, without an answer.
* waiting: annotators have to label examples before the campaign can continue.
* failed: an error ended the run, or every candidate was dropped.
* winner-changed: the previous campaign of the schedule that had a winner had a different one.
* regression: a gate found a candidate to be worse than the baseline.
"""

MOST_WEBHOOKS = 8

LONG = 120.0
"""Default time limit of one request to a server, in seconds."""


def _address(value: Any) -> object:  # noqa: ANN401 -- any value of the file
    if isinstance(value, str) and re.fullmatch(r"\$[A-Za-z_][A-Za-z0-9_]*", value):
        return value
    try:
        parts = urlsplit(value)
        is_url = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
        is_plain = not (parts.query or parts.fragment) and "@" not in parts.netloc and value.isprintable()
    except (AttributeError, TypeError, ValueError):
        is_url = False
    if not is_url:
        raise PydanticCustomError(
            SECRET, "must be the URL of a webhook, or $NAME of the environment variable that holds it"
        )
    if not is_plain:
        raise PydanticCustomError(
            SECRET,
            "must have no user, password or query, because it is stored and shown; put the URL into an "
            "environment variable and write $NAME",
        )
    return value


class WebhookSpec(SpecModel):
    """A webhook that receives the outcome of a run."""

    url: Annotated[str, BeforeValidator(_address)]
    """`$NAME` of the environment variable that holds the URL, or the URL itself, which is then stored."""
    form: Literal["json", "slack", "apprise"] = "json"
    """Format of the message: "json" sends all data, for programs; "slack" sends a text to Slack's incoming
    webhooks; "apprise" sends a text to the service of an Apprise URL.
    """
    events: list[Event] = Field(default=["decided", "failed", "winner-changed", "regression"], min_length=1)

    @model_validator(mode="after")
    def _keeps_its_secret(self) -> Self:
        if self.form != "json" and not self.url.startswith("$"):
            raise PydanticCustomError(
                SECRET,
                "must not be in the file, which is stored: anyone with such a URL can send messages; put it "
                "into an environment variable and write $NAME",
            )
        return self


class ExecutionSpec(SpecModel):
    """Settings for running a campaign; none of them changes the chosen pairs or their scores."""

    max_loaded: int = Field(default=1, ge=1)
    """Maximum number of models in memory; with `devices`, on each device."""
    devices: list[Annotated[int, Field(ge=0)]] = []
    """Device numbers of the GPUs to use.
    Each GPU runs one model at a time; if there are fewer models than GPUs, a model is loaded on several.
    Empty: the engine chooses, and one model runs at a time.
    """
    sleep: bool = False
    """Whether to move the weights of an evicted model to the machine's memory, if its device supports
    this.
    """
    max_asleep: int = Field(default=4, ge=1)
    """Maximum number of sleeping models."""
    group_size: int = Field(default=64, ge=1)
    """Number of generations requested together.
    A crash loses the groups in progress; for a server, it loses only the requests without an answer.
    """
    max_restarts: int = Field(default=2, ge=0)
    """Maximum number of restarts of one model's engine; after that, the model's candidates fail."""
    load_timeout: float = Field(default=600.0, gt=0.0)
    """Maximum time to load a model, in seconds."""
    batch_timeout: float = Field(default=600.0, gt=0.0)
    """Maximum time for one group of generations, in seconds.
    If an engine works on several groups: maximum time until one of them is finished.
    """
    max_connections: int = Field(default=64, ge=1)
    """Maximum number of concurrent requests to one server; fewer are sent if more would not be faster."""
    request_timeout: float = Field(default=LONG, gt=0.0)
    """Maximum time until a server has answered one request, in seconds."""
    max_retries: int = Field(default=5, ge=0)
    """Maximum number of times that a failed request to a server is sent again."""
    allow_missing: bool = False
    """Whether to begin without the models that are unreachable at the start; they can join later."""
    allow_all_zero: bool = False
    """Whether to accept an answer although every score is 0, for very hard benchmarks."""
    canaries: bool = True
    """Whether to send each served model some fixed prompts at the start of a run, to detect that the model
    changed.
    """
    log_folder: FilePath = ".winnow/logs"
    notify: list[WebhookSpec] = Field(default=[], max_length=MOST_WEBHOOKS)
    """Webhooks that receive the outcome of a run."""
    prices: dict[str, PriceSpec] = {}
    """Prices by model name, including judge models and the autoevaluator."""
    price_per_hour: float | None = Field(default=None, ge=0.0)
    """Price of one device for one hour, in the same currency."""
    currency: Annotated[str, Field(min_length=1, max_length=8)] | None = None
    """Currency of these prices.
    If it is USD, or if no price is given, models of public APIs have their list prices.
    """
    cluster: Literal["ray"] | None = None
    """Cluster whose machines run the engines; None runs them on this machine."""
    ray_address: str = Field(default="auto", min_length=1)
    """Address of the Ray cluster: "auto" joins the cluster of this machine, "ray://host:port" another
    cluster, and "local" starts a cluster on this machine only.
    """
    ray_gpus: float | Literal["auto"] = "auto"
    """GPUs of one engine.
    "auto" is the number of GPUs that its model is spread over, or 0 in a cluster without GPUs.
    """

    @field_validator("devices")
    @classmethod
    def _different_devices(cls, devices: list[int]) -> list[int]:
        if len(set(devices)) < len(devices):
            raise ValueError("names a device twice; remove the repeated number")
        return devices

    @field_validator("ray_gpus")
    @classmethod
    def _is_a_number_of_gpus(cls, gpus: float | Literal["auto"]) -> float | Literal["auto"]:
        if gpus != "auto" and (gpus < 0.0 or (gpus > 1.0 and gpus != int(gpus))):
            raise ValueError(f"must be auto, a part of one GPU or a whole number, got {gpus:g}")
        return gpus

    @model_validator(mode="after")
    def _waits_for_one_answer(self) -> Self:
        # A short batch_timeout is for whole batches; a long request_timeout is for answers that take so long.
        if self.batch_timeout < self.request_timeout > LONG:
            raise ValueError(
                f"request_timeout ({self.request_timeout:g}) is longer than batch_timeout "
                f"({self.batch_timeout:g}), within which a server has to answer a request; raise "
                "batch_timeout, too"
            )
        return self

    @model_validator(mode="after")
    def _names_its_cluster(self) -> Self:
        # A stored spec has every key, so a default value counts as not set.
        if self.cluster is None and (self.ray_address, self.ray_gpus) != ("auto", "auto"):
            raise ValueError("ray_address and ray_gpus need cluster: ray; add cluster: ray")
        if self.cluster == "ray" and (self.devices or self.sleep):
            raise ValueError(
                "devices and sleep apply only to engines on this machine, and Ray chooses the devices of its "
                "engines; remove devices and sleep, or cluster"
            )
        return self


UNITS = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}

_AGE = re.compile(r"([1-9][0-9]{0,5})([mhdw])")


def _age(value: object) -> object:
    if isinstance(value, str) and _AGE.fullmatch(value):
        return value
    raise ValueError("must be a number of minutes, hours, days or weeks, such as 30m, 12h, 7d or 8w")


class MaxAge(SpecModel):
    """Reuse only stored outputs up to a maximum age when a round is planned."""

    max_age: Annotated[str, BeforeValidator(_age)]

    @property
    def age(self) -> dt.timedelta:
        """The age as a duration."""
        return dt.timedelta(**{UNITS[self.max_age[-1]]: int(self.max_age[:-1])})


def _word_or_mapping(
    value: object,
    union: ValidatorFunctionWrapHandler,
) -> object:
    """Validate `reuse` with one error message, not one for each type."""
    if isinstance(value, Mapping | MaxAge):
        return MaxAge.model_validate(value)
    if value in ("all", "campaign", "none", ONLY):
        return value
    raise ValueError("must be all, campaign, none, only or {max_age: 7d}")


Reuse = Annotated[MaxAge | Literal["all", "campaign", "none", "only"], WrapValidator(_word_or_mapping)]
"""The stored outputs that a campaign can use instead of generating new ones; see `tasks.campaign.reuse`."""
