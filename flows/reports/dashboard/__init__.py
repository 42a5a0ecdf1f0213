"""A live page on a results database, read-only unless annotators can judge there."""

from pathlib import Path

SCRIPT = Path(__file__).parent / "app.py"
"""The script that streamlit runs."""

STORAGE_VARIABLE = "WINNOW_STORAGE"
"""Variable with the database URL: on a command line every user could read its password."""

TOKEN_VARIABLE = "WINNOW_VIEW_TOKEN"
"""Variable with the token for readers, for the same reason; unset if none is required."""

TICKET_VARIABLE = "WINNOW_VIEW_TICKET"
"""Variable with a replacement of the token in the address for starting a browser, which every user can read:
it only admits this user's own processes."""

ALLOW_LABELS_VARIABLE = "WINNOW_VIEW_ALLOW_LABELS"
"""Variable that is set if readers can store judgments for waiting campaigns, stars and notes."""
