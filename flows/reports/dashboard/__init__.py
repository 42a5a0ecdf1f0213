"""A live page on a results database, which only reads it unless people may judge there."""

from pathlib import Path

SCRIPT = Path(__file__).parent / "app.py"
"""The script that streamlit runs."""

STORAGE_VARIABLE = "WINNOW_STORAGE"
"""Holds the URL of the database: on a command line every user of the machine could read its password."""

TOKEN_VARIABLE = "WINNOW_VIEW_TOKEN"
"""Holds the token that readers must bring, for the same reason; unset where none is requested."""

TICKET_VARIABLE = "WINNOW_VIEW_TICKET"
"""Holds what takes the token's place in the address that a browser is started with, where every user of the
machine can read it: it lets in this user's own processes alone."""

ALLOW_LABELS_VARIABLE = "WINNOW_VIEW_ALLOW_LABELS"
"""Set if readers can judge what campaigns wait for, star outputs and write notes; nothing else is written."""
