"""Which texts of other campaigns a campaign may use, as its file says it."""

import datetime as dt
import re
from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import BeforeValidator, ValidatorFunctionWrapHandler, WrapValidator

from winnow.tasks.spec.spec_model import SpecModel
from winnow.tasks.spec.stored_spec import ONLY

UNITS = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}

_AGE = re.compile(r"([1-9][0-9]{0,5})([mhdw])")


def _age(value: object) -> object:
    if isinstance(value, str) and _AGE.fullmatch(value):
        return value
    raise ValueError("must be a number of minutes, hours, days or weeks, such as 30m, 12h, 7d or 8w")


class MaxAge(SpecModel):
    """Texts that are not older than this when a round is planned."""

    max_age: Annotated[str, BeforeValidator(_age)]

    @property
    def age(self) -> dt.timedelta:
        """The same as a length of time."""
        return dt.timedelta(**{UNITS[self.max_age[-1]]: int(self.max_age[:-1])})


def _word_or_mapping(
    value: object,
    union: ValidatorFunctionWrapHandler,
) -> object:
    """One complaint in place of one per type of the union, which is not asked."""
    if isinstance(value, Mapping | MaxAge):
        return MaxAge.model_validate(value)
    if value in ("all", "campaign", "none", ONLY):
        return value
    raise ValueError("must be all, campaign, none, only or {max_age: 7d}")


Reuse = Annotated[MaxAge | Literal["all", "campaign", "none", "only"], WrapValidator(_word_or_mapping)]
"""See `tasks.campaign.reuse`."""
