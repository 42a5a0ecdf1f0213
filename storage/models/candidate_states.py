"""Values of decisions per candidate: a row is stored when they change, and is valid until the next one.

With ten thousand candidates, a round changes the values of a few. Rounds are observed in the order of their
ids, so a decision's values for a candidate are the candidate's last row up to that decision's round; see
`storage.records.candidates.states`.
"""

from sqlalchemy import ForeignKey, String
from sqlalchemy.orm import Mapped, mapped_column

from winnow.storage.columns import LARGE
from winnow.storage.models.base import Base


class _FromRoundOn:
    """Key of such a row; candidate first, so that a candidate's last row is found by the index."""

    # One tree in SQLite instead of two, because the key is half of most rows.
    __table_args__ = {"sqlite_with_rowid": False}  # noqa: RUF012 -- SQLAlchemy reads it as a plain attribute

    candidate_id: Mapped[int] = mapped_column(ForeignKey("candidates.id"), primary_key=True, sort_order=-2)
    round_id: Mapped[int] = mapped_column(ForeignKey("rounds.id"), primary_key=True, sort_order=-1)


class Standing(_FromRoundOn, Base):
    """Estimate and status of a candidate; each has one from the first decision after it was added."""

    __tablename__ = "standings"

    estimate: Mapped[float | None]
    """NULL if unknown; so are its bounds."""
    lower: Mapped[float | None]
    upper: Mapped[float | None]
    status: Mapped[str] = mapped_column(String(64))
    """One of `algorithms.claims.ArmStatus`."""


class Ranking(_FromRoundOn, Base):
    """Score that orders a candidate, if it is not the estimate.

    See `algorithms.decision.Decision`. Without a row, the value is unknown; the same holds for the tables
    below.
    """

    __tablename__ = "rankings"

    score: Mapped[float | None]


class Difference(_FromRoundOn, Base):
    """Difference of a candidate from the decision's `against_candidate_id` on the same examples."""

    __tablename__ = "differences"

    estimate: Mapped[float | None]
    lower: Mapped[float | None]
    upper: Mapped[float | None]


class Bet(_FromRoundOn, Base):
    """State of the bets against a candidate; see `algorithms.decision.Bets`."""

    __tablename__ = "bets"

    wealth: Mapped[float | None]
    """Wealth, for a stake of 1."""
    level: Mapped[float | None]
    """Wealth at which the candidate is eliminated; NULL if infinite."""
    out_in_round: Mapped[int | None]
    """Number of the round after which it was eliminated; NULL if it is not."""
    out_at: Mapped[int | None] = mapped_column(LARGE)
    """Number of comparisons of all candidates by then."""
