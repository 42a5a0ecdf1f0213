"""What every part of a campaign's file has in common."""

from pydantic import BaseModel, ConfigDict


class SpecModel(BaseModel):
    """A part of the file: unknown keys are refused and nothing is converted silently."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)
