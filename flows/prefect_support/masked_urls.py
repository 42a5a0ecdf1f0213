"""Database URLs without secrets, because Prefect stores the parameters of every flow run."""

import os

from winnow.storage.engine.database import shown_url
from winnow.tasks.errors import SpecError

_HIDDEN: dict[str, str] = {}


def mask(url: str) -> str:
    """Hide the secrets of a URL; `unmask` restores it in this process."""
    shown = shown_url(url)
    _HIDDEN[shown] = url
    return shown


def url_of_a_worker(shown: str | None) -> str | None:
    """The URL of the database for a process that Prefect started.

    `shown` is the URL in Prefect, without its password; None if Prefect has no URL.

    Returns:
        The URL; WINNOW_STORAGE if Prefect has no URL; None if that variable is not set either.

    Raises:
        SpecError: If a password was hidden and WINNOW_STORAGE is not the URL with it.
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
    """Whether a URL, original or masked, has a password or another secret."""
    return ":***@" in url or "=hidden" in url or shown_url(url) != url


def unmask(shown: str) -> str:
    """The original of a masked URL; any other text unchanged."""
    return _HIDDEN.get(shown, shown)
