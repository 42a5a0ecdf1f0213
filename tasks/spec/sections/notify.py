"""Who is told how a campaign ends: the addresses of webhooks, and what each wants to hear of."""

import re
from typing import Annotated, Any, Literal, Self
from urllib.parse import urlsplit

from pydantic import BeforeValidator, Field, model_validator
from pydantic_core import PydanticCustomError

from winnow.tasks.spec.spec_model import SECRET, SpecModel

Event = Literal["decided", "undecided", "waiting", "failed", "winner-changed", "regression"]
"""What may be told of the end of a run:

* decided: the campaign has an answer.
* undecided: nothing more may be spent or is left to ask, and there is none.
* waiting: humans have to label examples before it can go on.
* failed: an error ended the run, or no candidate could be judged.
* winner-changed: the last campaign of the same schedule that had a winner had another one.
* regression: a gate found a candidate to be worse than the baseline.
"""

MOST_WEBHOOKS = 8


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
            "may hold no user, password or query, since it is stored and shown; put the URL into an "
            "environment variable and write $NAME",
        )
    return value


class WebhookSpec(SpecModel):
    """One address that is told."""

    url: Annotated[str, BeforeValidator(_address)]
    """`$NAME` of the environment variable that holds the URL, or the URL itself, which is then stored."""
    form: Literal["json", "slack"] = "json"
    """What is sent: all that is known, for programs, or a text as Slack's incoming webhooks take it."""
    events: list[Event] = Field(default=["decided", "failed", "winner-changed", "regression"], min_length=1)

    @model_validator(mode="after")
    def _keeps_its_secret(self) -> Self:
        if self.form == "slack" and not self.url.startswith("$"):
            raise PydanticCustomError(
                SECRET,
                "whoever knows the URL of a Slack webhook can write there, and what stands in a campaign's "
                "file is stored; put it into an environment variable and write $NAME",
            )
        return self
