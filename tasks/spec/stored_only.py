"""Campaigns that take stored texts and make none, read without pydantic."""

from typing import Literal

ONLY: Literal["only"] = "only"
"""Stored texts alone: none is made."""

NO_STORED_TEXT = "no_stored_text"
"""Reason of a pair for which there is then no text."""
