"""Tables of preferences: how often each candidate is preferred to each other one.

* `FILE.npz`, `FILE.npz:KEY`  the array `preferences`, or the array KEY; the optional array `features` is for
  selectors with a Bradley-Terry model
* `FILE.csv`, `FILE.parquet`  one row per candidate: its name, then how often it is preferred to each
  candidate, in the order of the rows
* `campaign:NAME`             the shares of duels won in a stored campaign of duels
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from winnow.algorithms.state.arrays import FloatArray
from winnow.storage.admin.schema import reading
from winnow.storage.objectives import traits_of
from winnow.storage.plain_files import open_plain
from winnow.storage.queries.objective import duels as duel_views
from winnow.storage.records import campaigns as campaign_records
from winnow.tasks.data.array_files import DAMAGED
from winnow.tasks.data.score_tables import CAMPAIGN, ScoreTableError, read_table

SUM = 1e-6
"""Maximum distance from 1 of the sum of two opposite preferences."""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class PreferenceTable:
    """The probability that each candidate is preferred to each other one."""

    source: str
    """The source as the user wrote it."""
    candidates: tuple[str, ...]
    """K different names."""
    preferences: FloatArray
    """Shape (K, K): P(row is preferred to column), 1/2 on the diagonal, NaN if unknown."""
    features: FloatArray | None
    """Shape (K, d); None if the source has no features."""


def load_preference_table(source: str, storage: str) -> PreferenceTable:
    """Read a table of preferences.

    Args:
        source: A file or a campaign, as in the module's description.
        storage: URL of the results database for `campaign:NAME`.

    Raises:
        ScoreTableError: The table cannot be read, is not square, or two preferences contradict each other.
        StorageError: The database cannot be read, or has no such campaign.
    """
    if source.startswith(CAMPAIGN):
        return _campaign_table(source, storage)
    table = read_table(source, "preferences")
    return PreferenceTable(
        source=source,
        candidates=table.candidates,
        preferences=_checked(table.scores, table.candidates, source),
        features=_features(source, len(table.candidates)),
    )


def _checked(table: FloatArray, candidates: tuple[str, ...], source: str) -> FloatArray:
    if table.shape[0] != table.shape[1] or len(table) < 2:
        shape = f"{table.shape[0]} rows and {table.shape[1]} columns of numbers"
        raise ScoreTableError(
            f"{source} has {shape}; give a row and a column for each of at least 2 candidates"
        )
    preferences = table.copy()
    np.fill_diagonal(preferences, 0.5)
    wrong = np.abs(preferences + preferences.T - 1.0) > SUM
    half_known = np.isnan(preferences) != np.isnan(preferences.T)
    for i, j in np.argwhere(wrong | half_known)[:1]:
        a, b = candidates[i], candidates[j]
        raise ScoreTableError(
            f"{source}: {a!r} is preferred to {b!r} at {preferences[i, j]:g}, {b!r} to {a!r} at "
            f"{preferences[j, i]:g}; make the two add up to 1, with ties counted half for each"
        )
    return preferences


def _features(source: str, count: int) -> FloatArray | None:
    path = Path(source.rpartition(":")[0] if ".npz:" in source.lower() else source)
    if path.suffix.lower() != ".npz":
        return None
    try:
        with open_plain(path) as raw, np.load(raw, allow_pickle=False) as arrays:
            if "features" not in arrays:
                return None
            features: NDArray[np.generic] = arrays["features"]
    except DAMAGED as error:
        raise ScoreTableError(f"{path}: features cannot be read ({error}); save it again") from error
    if features.ndim != 2 or len(features) != count or features.dtype.kind not in "biuf":
        found = f"of shape {features.shape} and type {features.dtype}"
        raise ScoreTableError(f"{path}: features are {found}; give a row of numbers for each candidate")
    return features.astype(np.float64)


def _campaign_table(source: str, storage: str) -> PreferenceTable:
    with reading(storage) as session:
        campaign = campaign_records.get_campaign(session, source.removeprefix(CAMPAIGN))
        if not traits_of(campaign.objective).compares_pairs:
            problem = f"has objective {campaign.objective} and so no duels"
            raise ScoreTableError(f"campaign '{campaign.name}' {problem}; name a best-duel campaign")
        candidates = campaign_records.candidate_names(session, campaign.id)
        rows = duel_views.head_to_head(session, campaign.id)
    preferences = np.full((len(candidates), len(candidates)), np.nan)
    np.fill_diagonal(preferences, 0.5)
    for row in rows:
        pair = candidates.index(row["candidate"]), candidates.index(row["opponent"])
        preferences[pair] = np.nan if row["win_rate"] is None else row["win_rate"]
    return PreferenceTable(
        source=source, candidates=tuple(candidates), preferences=preferences, features=None
    )
