"""Scores of earlier campaigns or score tables on the examples of a campaign."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from winnow.algorithms.state.arrays import FloatArray
from winnow.storage.json_types import JsonObject
from winnow.tasks.campaign.campaign_tables import ended_table, load_ended_table
from winnow.tasks.campaign.look import Look
from winnow.tasks.data.datasets import Dataset
from winnow.tasks.data.score_tables import CAMPAIGN, ScoreTable
from winnow.tasks.errors import SpecError
from winnow.tasks.spec.campaign import CampaignSpec
from winnow.tasks.spec.stored_spec import LAST_ROUNDS


@dataclass(frozen=True, slots=True, eq=False)
class EarlierScores:
    """Scores of earlier campaigns or tables on the examples of a campaign."""

    scores: FloatArray
    """Shape (M, n), in [0, 1], NaN if there is no score."""
    last_rounds: Mapping[str, int]
    """Number of the last known round of each source that is a campaign. Rounds are identified by number,
    because rounds from a machine whose clock is slow look older than they are."""

    @property
    def identity(self) -> JsonObject:
        """The content and its sources, as stored in a campaign's identity."""
        content = str(self.scores.shape).encode() + np.ascontiguousarray(self.scores).tobytes()
        found: JsonObject = {"history_fingerprint": hashlib.sha256(content).hexdigest()}
        return found | ({LAST_ROUNDS: dict(self.last_rounds)} if self.last_rounds else {})


def load_history(
    sources: Sequence[str], storage: str, dataset: Dataset, learner: str | None = None
) -> EarlierScores:
    """Earlier scores on a campaign's examples, one row per candidate of every source.

    Args:
        sources: Score tables as `load_ended_table` takes them: files, or `campaign:NAME`.
        storage: URL of the results database that campaigns are looked up in.
        dataset: The examples. A table that names its examples is matched by their ids; one that does not
            must have as many columns, in the same order.
        learner: See `load_ended_table`.

    Raises:
        SpecError: If a source cannot be read or shares no example with the dataset.
    """
    rows, last_rounds = [], {}
    for index, source in enumerate(sources):
        path = f"history[{index}]"
        try:
            table = load_ended_table(source, storage, learner)
        except SpecError as error:
            raise SpecError(error.message, path) from error
        rows.append(aligned(table, dataset, path))
        if table.last_round is not None:
            last_rounds[source] = table.last_round
    return EarlierScores(np.concatenate(rows), last_rounds)


def stored_history(look: Look, spec: CampaignSpec, dataset: Dataset) -> EarlierScores:
    """The earlier scores that a stored campaign learns from, read from its own database alone.

    Raises:
        SpecError: If some come from files, or have changed.
    """
    if files := [each for each in spec.history if not each.startswith(CAMPAIGN)]:
        raise SpecError(f"it learned from {files[0]}, and no file is read here")
    tables = [ended_table(look.session, each, spec.storage, look.record.name) for each in spec.history]
    found = EarlierScores(np.concatenate([aligned(each, dataset, "history") for each in tables]), {})
    if found.identity["history_fingerprint"] != look.record.spec["history_fingerprint"]:
        raise SpecError("the earlier scores that it learned from changed")
    return found


def aligned(table: ScoreTable, dataset: Dataset, path: str) -> FloatArray:
    """The scores of a table on the examples of a dataset, shape (M, n).

    Raises:
        SpecError: If they share no example.
    """
    keys = [example.key for example in dataset.examples]
    if table.examples is None:
        if table.scores.shape[1] != len(keys):
            raise SpecError(
                f"{table.source} has {table.scores.shape[1]} examples, {dataset.path} has {len(keys)}; "
                "give a table of the same examples in the same order, or one that names them by their ids",
                path,
            )
        return table.scores
    columns = {key: column for column, key in enumerate(table.examples)}
    shared = [position for position, key in enumerate(keys) if key in columns]
    if not shared:
        raise SpecError(
            f"{table.source} has no example of {dataset.path}: their ids have nothing in common; "
            "give scores on the same examples",
            path,
        )
    aligned = np.full((len(table.scores), len(keys)), np.nan)
    aligned[:, shared] = table.scores[:, [columns[keys[position]] for position in shared]]
    return aligned
