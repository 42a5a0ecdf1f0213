"""Decisions' values for each candidate: a row where they changed, which holds until the candidate's next one.

Of ten thousand candidates a round changes what is known of a few. Rounds are told in the order of their ids,
so what a decision said of a candidate is the candidate's last row up to that decision's round; see
`storage.records.candidates.standings`.
"""

from sqlalchemy import ForeignKey, String
from sqlalchemy.orm import Mapped, mapped_column

from winnow.storage.columns import LARGE
from winnow.storage.models.base import Base


class _FromRoundOn:
    """The key of such a row; by candidate, so that a candidate's last row is found at once."""

    # One tree in SQLite and not two: the key is half of most rows.
    __table_args__ = {"sqlite_with_rowid": False}  # noqa: RUF012 -- SQLAlchemy reads it as a plain attribute

    candidate_id: Mapped[int] = mapped_column(ForeignKey("candidates.id"), primary_key=True, sort_order=-2)
    round_id: Mapped[int] = mapped_column(ForeignKey("rounds.id"), primary_key=True, sort_order=-1)


class Standing(_FromRoundOn, Base):
    """A candidate's estimate and status; every candidate has one from the first decision that knows of it."""

    __tablename__ = "standings"

    estimate: Mapped[float | None]
    """NULL where nothing is known, as are its bounds."""
    lower: Mapped[float | None]
    upper: Mapped[float | None]
    status: Mapped[str] = mapped_column(String(64))
    """Its status in one word; see `algorithms.claims.ArmStatus`."""


class Ranking(_FromRoundOn, Base):
    """The score that orders a candidate, where that is no estimate of what the bounds are of.

    See `algorithms.decision.Decision`. Without a row, nothing is known; so with the tables below.
    """

    __tablename__ = "rankings"

    score: Mapped[float | None]


class Difference(_FromRoundOn, Base):
    """The difference of a candidate to the decision's `against_candidate_id` on the same examples."""

    __tablename__ = "differences"

    estimate: Mapped[float | None]
    lower: Mapped[float | None]
    upper: Mapped[float | None]


class Bet(_FromRoundOn, Base):
    """The state of the bets against a candidate; see `algorithms.decision.Bets`."""

    __tablename__ = "bets"

    wealth: Mapped[float | None]
    """Of a stake of 1."""
    level: Mapped[float | None]
    """The wealth at which it is out; NULL where nothing reaches it."""
    out_in_round: Mapped[int | None]
    """Number of the round after which it was out; NULL where it is not."""
    out_at: Mapped[int | None] = mapped_column(LARGE)
    """Number of comparisons of all candidates at that time."""
