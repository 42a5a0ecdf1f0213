"""Points of a campaign's curve, no more than a figure can show.

The rounds are read incrementally.
"""

from collections import deque

from sqlalchemy.orm import Session

from winnow.storage.engine.raw_sql import DriverRow, run
from winnow.storage.json_types import Row
from winnow.storage.records.campaigns import candidate_ids, candidate_names

NAMES = ("round", "comparisons", "best", "estimate", "lower", "upper")

_TOLD = """
    SELECT r.number, d.answered, d.best_candidate_id, d.best_estimate, d.best_lower, d.best_upper
    FROM rounds r JOIN decisions d ON d.round_id = r.id
    WHERE r.campaign_id = ? AND r.number >= ? ORDER BY r.number
"""


class CurvePoints:
    """Rounds of one campaign for a figure.

    A later look adds the rounds observed since.

    Args:
        most: Maximum number of rounds kept, evenly spaced from the first on. Of very many rounds, at least
            half of `most` are kept.
        changes: Number of the last changes of the lead to keep in addition.
    """

    _last: list[DriverRow]
    """Last round read, as stored; empty before the first read."""
    _end: list[DriverRow]
    """Last round read, as shown."""
    _kept: list[DriverRow]
    _changes: deque[DriverRow]
    _leader: int | None

    def __init__(self, *, most: int, changes: int) -> None:
        self._most = most
        self._n_changes = changes
        self._campaign_id: int | None = None
        self._forget()

    def look(self, session: Session, campaign_id: int) -> list[Row]:
        """Rows of `campaign_views.curve`.

        All rows or, if there are too many, the kept rows and the last one.
        """
        if campaign_id != self._campaign_id:
            self._forget()
        self._campaign_id = campaign_id
        told = self._told_since(session, campaign_id)
        if told[: len(self._last)] != self._last:
            # The database was replaced since the last look.
            self._forget()
            told = self._told_since(session, campaign_id)
        for row in told[len(self._last) :]:
            self._add(row)
        self._last = told[-1:]
        ids, names = candidate_ids(session, campaign_id), candidate_names(session, campaign_id)
        return self._rows({None: None, **dict(zip(ids, names, strict=True))})

    def _forget(self) -> None:
        self._last, self._end, self._kept = [], [], []
        self._n = self._answered = 0
        self._step = 1
        self._leader = None
        self._changes = deque(maxlen=self._n_changes)

    def _told_since(self, session: Session, campaign_id: int) -> list[DriverRow]:
        """Last round read, and the rounds observed since."""
        return run(session.connection(), _TOLD, (campaign_id, self._last[0][0] if self._last else 0))

    def _add(self, told: DriverRow) -> None:
        number, answered, leader, *ends = told
        self._answered += answered
        row = (number, self._answered, leader, *ends)
        if leader is not None and leader != self._leader:
            self._changes.append(row)
        if self._n % self._step == 0:
            self._kept.append(row)
        if len(self._kept) > self._most:
            self._kept, self._step = self._kept[::2], 2 * self._step
        self._n, self._leader, self._end = self._n + 1, leader, [row]

    def _rows(self, names: dict[int | None, str | None]) -> list[Row]:
        shown = {row[0]: row for row in (*self._kept, *self._changes, *self._end)}
        return [
            dict(zip(NAMES, (number, answered, names[best], *ends), strict=True))
            for number, answered, best, *ends in (shown[number] for number in sorted(shown))
        ]
