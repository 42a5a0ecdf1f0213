"""Database URLs by the text that may be shown of them: Prefect keeps the parameters of every flow run."""

from storage.urls import shown_url

_HIDDEN: dict[str, str] = {}


def hide(url: str) -> str:
    """What may be shown of a URL; `reveal` gives the URL back in this process."""
    shown = shown_url(url)
    _HIDDEN[shown] = url
    return shown


def reveal(shown: str) -> str:
    """The URL that was hidden, or the text itself where none was."""
    return _HIDDEN.get(shown, shown)
