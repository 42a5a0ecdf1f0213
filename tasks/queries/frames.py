"""The results of a campaign as pandas frames, for notebooks.

    from winnow.tasks.queries.frames import campaigns, series, frame, sql_frame

    campaigns("sqlite:///winnow.db")
    series("sqlite:///winnow.db", "sum-prompts")
    frame("sqlite:///winnow.db", "sum-prompts", "leaderboard")
    frame("sqlite:///winnow.db", "sum-prompts", "comparisons", candidate="adder-m/direct", limit=100)
    sql_frame("sqlite:///winnow.db", "SELECT * FROM v_costs")

A column always has the same type, even if it is empty: whole numbers are `Int64`, other numbers `float64`,
booleans `boolean`, texts `string`, and times `datetime64[us, UTC]`. Missing values are NA, NaN or NaT, never
zero or empty. A frame without rows has no columns.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from winnow.tasks.campaign.look import Look
from winnow.tasks.errors import SpecError, unknown_name
from winnow.tasks.queries.views import VIEWS, Kind, ask, cell, columns_of, guessed_kind, kinds_of

if TYPE_CHECKING:
    import pandas as pd

DTYPES: dict[Kind, str] = {
    "integer": "Int64",
    "real": "float64",
    "truth": "boolean",
    "time": "datetime64[us, UTC]",
    "text": "string",
}


def frame(
    storage: str, name: str, view: str, *, candidate: str | None = None, limit: int | None = None
) -> "pd.DataFrame":
    """The rows of a view, as `winnow query` prints them.

    Args:
        storage: URL of the results database, which is opened read-only.
        name: Name of the campaign.
        view: Name of the view, such as "leaderboard"; one of `tasks.queries.views.VIEWS`.
        candidate: The only candidate whose comparisons are read; None for all.
        limit: Maximum number of comparisons; None for all.

    Raises:
        StorageError: The database cannot be read, or has no such campaign.
        SpecError: The view or candidate does not exist, or the campaign does not have the view.
    """
    from winnow.storage.admin.schema import reading
    from winnow.storage.records import campaigns as campaign_records

    if str(view) not in VIEWS:
        raise SpecError(unknown_name("view", str(view), VIEWS))
    with reading(storage) as session:
        campaign = campaign_records.get_campaign(session, name)
        found = ask(Look(session, campaign), view, candidate=candidate, limit=limit)
        rows = list(found)
    return _typed(rows, view, columns_of(found))


def campaigns(storage: str) -> "pd.DataFrame":
    """The state of every campaign of a database, oldest first.

    Raises:
        StorageError: The database cannot be read.
    """
    from winnow.storage.admin.schema import reading
    from winnow.tasks.queries.schedule_history import campaigns

    with reading(storage) as session:
        return _typed(campaigns(session), "history")


def series(storage: str, name: str) -> "pd.DataFrame":
    """The campaigns of a schedule, oldest first, as in `winnow query --series`.

    Raises:
        StorageError: The database cannot be read, or has no such series.
    """
    from winnow.storage.admin.schema import reading
    from winnow.tasks.queries.schedule_history import series_rows

    with reading(storage) as session:
        return _typed(series_rows(session, name), "history")


def sql_frame(storage: str, statement: str) -> "pd.DataFrame":
    """The rows of a custom SELECT; the connection is read-only.

    A column whose values have one kind gets the type of this kind; all other columns are `object`. SQLite
    stores times as texts, so they are `string` here: `pandas.to_datetime(column, utc=True)` converts them.

    Raises:
        SpecError: The statement is not text.
        StorageError: The database cannot be read, or refuses the statement.
    """
    import pandas as pd

    from winnow.storage.admin.schema import reading
    from winnow.storage.engine.statements import run_sql

    if not isinstance(statement, str):
        raise SpecError(f"the statement is {statement!r}; write a SELECT statement as text")
    with reading(storage) as session:
        columns, found = run_sql(session, statement)
        rows = list(found)
    series = [_series([row[number] for row in rows], None) for number in range(len(columns))]
    made = pd.concat(series, axis=1) if series else pd.DataFrame()
    made.columns = pd.Index(columns)
    return made


def _typed(rows: Sequence[dict[str, object]], view: str, columns: Sequence[str] = ()) -> "pd.DataFrame":
    """A frame of a view's rows; `columns` gives its columns if it has no rows."""
    import pandas as pd

    kinds = kinds_of(view, rows[0] if rows else columns)
    return pd.DataFrame({name: _series([row[name] for row in rows], kind) for name, kind in kinds.items()})


def _series(values: list[object], kind: Kind | None) -> "pd.Series[Any]":
    """A pandas column of the given kind; None guesses the kind from the values."""
    import pandas as pd

    kind = kind or guessed_kind(values)
    if kind is None:
        return pd.Series(values, dtype=object)
    return pd.Series([cell(value, kind) for value in values], dtype=DTYPES[kind])
