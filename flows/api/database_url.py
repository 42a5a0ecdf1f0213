"""What programs give as the place of a results database."""

from winnow.tasks.errors import SpecError


def require_url(storage: object) -> None:
    """Refuse what is no text.

    Raises:
        SpecError: With the remedy.
    """
    if not isinstance(storage, str):
        raise SpecError(f"storage is {storage!r}; give the URL of a database, such as 'sqlite:///winnow.db'")
