"""What every part of a campaign's file has in common."""

from pydantic import ConfigDict

STRICT = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)
"""Unknown keys are refused and nothing is converted silently."""
