"""How commands that Winnow prints name a database."""

import shlex


def storage_option(shown: str) -> str:
    """The option of a printed command, as a shell takes it: a URL may have ?, & and spaces.

    Args:
        shown: URL of the database, without a password; `storage.engine.database.shown_url` hides one.
    """
    return f"--storage {shlex.quote(shown)}"
