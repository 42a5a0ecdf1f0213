"""A database's URL as it may be printed, stored or sent: without its password."""

import re

from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError


def shown_url(url: str) -> str:
    """The URL with every password hidden, whether or not it is a database's."""
    try:
        return without_password(make_url(url))
    except (ArgumentError, ValueError):
        return re.sub(r"(://[^:/@]*):.*@", r"\1:***@", url)


def without_password(url: URL) -> str:
    """The same of a URL that was read; libpq also takes a password behind the question mark."""
    secret = {name: "hidden" for name in url.query if "password" in name}
    return url.update_query_dict(secret).render_as_string(hide_password=True)
