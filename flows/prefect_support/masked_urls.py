"""Hide secrets in database URLs, because Prefect stores the parameters of every flow run."""

import os

from winnow.storage.engine.database import shown_url
from winnow.tasks.errors import SpecError

_HIDDEN: dict[str, str] = {}


def mask(url: str) -> str:
    """Hide the secrets of a URL; in this process, `unmask` restores them."""
    shown = shown_url(url)
    _HIDDEN[shown] = url
    return shown


def url_of_a_worker(shown: str | None) -> str | None:
    """URL of the database for a process that Prefect started.

    Args:
        shown: The URL as stored in Prefect, without its password; None if Prefect has no URL.

    Returns:
        The URL with its password; WINNOW_STORAGE if `shown` is None; None if that variable is not set either.

    Raises:
        SpecError: If a password is hidden, and WINNOW_STORAGE is not the full URL.
    """
    own = os.environ.get("WINNOW_STORAGE")
    if shown is None or (own is not None and shown_url(own) == shown):
        return own
    if has_secret(shown):
        raise SpecError(
            f"the results database {shown} needs a password, which Prefect does not receive: set "
            "WINNOW_STORAGE to the full URL in the worker's environment"
        )
    return shown


def has_secret(url: str) -> bool:
    """Whether a URL, masked or not, has a password or another secret."""
    return ":***@" in url or "=hidden" in url or shown_url(url) != url


def unmask(shown: str) -> str:
    """The original URL of a masked one; other texts are returned unchanged."""
    return _HIDDEN.get(shown, shown)
