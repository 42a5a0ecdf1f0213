"""The dashboard of `winnow view`: live pages on a results database, served by streamlit.

The pages only read, unless the command allows labels.
"""

from pathlib import Path

SCRIPT = Path(__file__).parent / "app.py"
"""Path of the script that streamlit runs."""

STORAGE_VARIABLE = "WINNOW_STORAGE"
"""Environment variable with the database URL; on a command line, every user could read its password."""

TOKEN_VARIABLE = "WINNOW_VIEW_TOKEN"
"""Environment variable with the token for readers; not set if no token is required."""

TICKET_VARIABLE = "WINNOW_VIEW_TICKET"
"""Environment variable with a ticket, which replaces the token in the address that a browser is started with.

Every user can read that address on the command line, but the ticket admits only this user's processes."""

ALLOW_LABELS_VARIABLE = "WINNOW_VIEW_ALLOW_LABELS"
"""Environment variable that is set if readers can store judgments, stars and notes."""
