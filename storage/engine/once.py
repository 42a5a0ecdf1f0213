"""Questions that one look at the database asks several times: answered once, as it sees one state."""

from collections.abc import Callable
from functools import wraps
from typing import Concatenate, ParamSpec, TypeVar

from sqlalchemy.orm import Session

P = ParamSpec("P")
T = TypeVar("T")

ANSWERS = "answers of this look"
"""Key of a session's `info`; only a session of `Database.reading` has it."""


def once_a_look(ask: Callable[Concatenate[Session, P], T]) -> Callable[Concatenate[Session, P], T]:
    """A question that a reading session answers once, and a writing one each time that it is asked.

    Whoever asks must leave the answer as it is: the next one is given the same.

    Args:
        ask: Of a session and values that can be keys.
    """

    @wraps(ask)
    def answered(session: Session, /, *args: P.args, **kwargs: P.kwargs) -> T:
        known: dict[object, T] | None = session.info.get(ANSWERS)
        if known is None:
            return ask(session, *args, **kwargs)
        question = (ask, args, tuple(sorted(kwargs.items())))
        if question not in known:
            known[question] = ask(session, *args, **kwargs)
        return known[question]

    return answered
