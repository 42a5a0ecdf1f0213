"""Settings for running a campaign, for notifications, and for reuse of outputs.

They can change between runs.
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
"""Events at the end of a run that can be notified:

* decided: the campaign has an answer.
* undecided: a limit is spent or nothing is left to evaluate, without an answer.
* waiting: annotators have to label examples before it can continue.
* failed: an error ended the run, or every candidate was dropped.
* winner-changed: the last campaign of the same schedule with a winner had another one.
* regression: a gate found a candidate to be worse than the baseline.
"""

MOST_WEBHOOKS = 8

LONG = 120.0
"""Default seconds that a server may take to answer one request."""


def _address(value: Any) -> object:  # noqa: ANN401 -- whatever stands in the file
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
    """An address that receives the outcome of a run."""

    url: Annotated[str, BeforeValidator(_address)]
    """`$NAME` of the environment variable with the URL, or the URL itself, which is then stored."""
    form: Literal["json", "slack", "apprise"] = "json"
    """The form of the message: all data, for programs; a text for Slack's incoming webhooks; or a text for
    the service of an Apprise URL."""
    events: list[Event] = Field(default=["decided", "failed", "winner-changed", "regression"], min_length=1)

    @model_validator(mode="after")
    def _keeps_its_secret(self) -> Self:
        if self.form != "json" and not self.url.startswith("$"):
            raise PydanticCustomError(
                SECRET,
                "everybody with such a URL can write there, and a campaign's file is stored; put it into "
                "an environment variable and write $NAME",
            )
        return self


class ExecutionSpec(SpecModel):
    """Settings for running a campaign; none of them changes the chosen pairs or their scores."""

    max_loaded: int = Field(default=1, ge=1)
    """Models in memory at once; with `devices`, on each of them."""
    devices: list[Annotated[int, Field(ge=0)]] = []
    """GPUs for models, one working on each; with fewer models, one is loaded on several; empty leaves the
    choice to the engines, one at a time."""
    sleep: bool = False
    """Move the weights of an evicted model to the machine's memory, if its device supports it."""
    max_asleep: int = Field(default=4, ge=1)
    """Maximum number of sleeping models."""
    group_size: int = Field(default=64, ge=1)
    """Generations requested together; a crash loses the groups in progress, and for a server only unanswered
    requests."""
    max_restarts: int = Field(default=2, ge=0)
    """Number of restarts of one model's engine, after which its candidates fail."""
    load_timeout: float = Field(default=600.0, gt=0.0)
    """Seconds for loading a model."""
    batch_timeout: float = Field(default=600.0, gt=0.0)
    """Maximum seconds of one group of generations; if an engine works on several groups, maximum seconds in
    which none of them is finished."""
    max_connections: int = Field(default=64, ge=1)
    """Maximum number of concurrent requests to one server; fewer are sent if more would not be faster."""
    request_timeout: float = Field(default=LONG, gt=0.0)
    """Maximum seconds until a server has answered one request."""
    max_retries: int = Field(default=5, ge=0)
    """Maximum number of times that one request to a server is sent again."""
    allow_missing: bool = False
    """Begin without models that are unreachable at the start; they can join later."""
    allow_all_zero: bool = False
    """Accept an answer although every score is 0, for very hard benchmarks."""
    canaries: bool = True
    """Ask each served model some fixed questions when a run begins, to notice when it is another model."""
    log_folder: FilePath = ".winnow/logs"
    notify: list[WebhookSpec] = Field(default=[], max_length=MOST_WEBHOOKS)
    """Addresses that receive the outcome of a run."""
    prices: dict[str, PriceSpec] = {}
    """Prices by model name, including judges and the autoevaluator."""
    price_per_hour: float | None = Field(default=None, ge=0.0)
    """The price of an hour of one device, in the same currency."""
    currency: Annotated[str, Field(min_length=1, max_length=8)] | None = None
    """The currency of these prices; if it is USD, or no price is given, models of public APIs have their list
    prices."""
    cluster: Literal["ray"] | None = None
    """The cluster on whose machines engines run; without one, they run on this machine."""
    ray_address: str = Field(default="auto", min_length=1)
    """"auto" joins the cluster that this machine belongs to, "ray://host:port" another one; "local" starts
    one on this machine alone."""
    ray_gpus: float | Literal["auto"] = "auto"
    """GPUs of one engine; "auto" is the number that its model is spread over, or none in a cluster without
    GPUs."""

    @field_validator("devices")
    @classmethod
    def _different_devices(cls, devices: list[int]) -> list[int]:
        if len(set(devices)) < len(devices):
            raise ValueError("names a device twice; every number must be different")
        return devices

    @field_validator("ray_gpus")
    @classmethod
    def _is_a_number_of_gpus(cls, gpus: float | Literal["auto"]) -> float | Literal["auto"]:
        if gpus != "auto" and (gpus < 0.0 or (gpus > 1.0 and gpus != int(gpus))):
            raise ValueError(f"must be auto, a part of one GPU or a whole number, got {gpus:g}")
        return gpus

    @model_validator(mode="after")
    def _has_patience_for_one_answer(self) -> Self:
        # A short batch_timeout is for whole batches; a long request_timeout is for answers that take so long.
        if self.batch_timeout < self.request_timeout > LONG:
            raise ValueError(
                f"request_timeout ({self.request_timeout:g}) is longer than batch_timeout "
                f"({self.batch_timeout:g}), within which a server has to answer some request: raise that, too"
            )
        return self

    @model_validator(mode="after")
    def _names_its_cluster(self) -> Self:
        # A stored spec has every key, so that a default is as good as nothing.
        if self.cluster is None and (self.ray_address, self.ray_gpus) != ("auto", "auto"):
            raise ValueError("ray_address and ray_gpus need cluster: ray; add cluster: ray")
        if self.cluster == "ray" and (self.devices or self.sleep):
            raise ValueError(
                "devices and sleep are for engines of this machine; Ray places its own: remove them"
            )
        return self


UNITS = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}

_AGE = re.compile(r"([1-9][0-9]{0,5})([mhdw])")


def _age(value: object) -> object:
    if isinstance(value, str) and _AGE.fullmatch(value):
        return value
    raise ValueError("must be a number of minutes, hours, days or weeks, such as 30m, 12h, 7d or 8w")


class MaxAge(SpecModel):
    """Reuse only stored outputs that are at most this old when a round is planned."""

    max_age: Annotated[str, BeforeValidator(_age)]

    @property
    def age(self) -> dt.timedelta:
        """The age as a duration."""
        return dt.timedelta(**{UNITS[self.max_age[-1]]: int(self.max_age[:-1])})


def _word_or_mapping(
    value: object,
    union: ValidatorFunctionWrapHandler,
) -> object:
    """Check a value with one message instead of one per type of the union."""
    if isinstance(value, Mapping | MaxAge):
        return MaxAge.model_validate(value)
    if value in ("all", "campaign", "none", ONLY):
        return value
    raise ValueError("must be all, campaign, none, only or {max_age: 7d}")


Reuse = Annotated[MaxAge | Literal["all", "campaign", "none", "only"], WrapValidator(_word_or_mapping)]
"""See `tasks.campaign.reuse`."""
