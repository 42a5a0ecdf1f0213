"""Database URLs by the text that may be shown of them: Prefect keeps the parameters of every flow run."""

import os

from winnow.storage.engine.database import shown_url
from winnow.tasks.errors import SpecError

_HIDDEN: dict[str, str] = {}


def mask(url: str) -> str:
    """The URL as it may be shown; `unmask` gives the URL back in this process."""
    shown = shown_url(url)
    _HIDDEN[shown] = url
    return shown


def url_of_a_worker(shown: str | None) -> str | None:
    """The URL of the database for a process that Prefect started.

    Args:
        shown: The URL that Prefect was told, without its password; None if it was told none.

    Returns:
        The URL; WINNOW_STORAGE where Prefect was told none, and None if that is not set either.

    Raises:
        SpecError: If a password was left out and WINNOW_STORAGE is not the URL with it.
    """
    own = os.environ.get("WINNOW_STORAGE")
    if shown is None or (own is not None and shown_url(own) == shown):
        return own
    if has_secret(shown):
        raise SpecError(
            f"the results database {shown} needs a password, which Prefect does not receive: set "
            "WINNOW_STORAGE to the full URL where the worker starts"
        )
    return shown


def has_secret(url: str) -> bool:
    """Whether a URL, as it is or as it may be shown, has a password or another secret."""
    return ":***@" in url or "=hidden" in url or shown_url(url) != url


def unmask(shown: str) -> str:
    """The URL that was hidden, or the text itself where none was."""
    return _HIDDEN.get(shown, shown)
