"""Scores of a file or a stored campaign, aligned with another campaign's examples.

`campaign:NAME` means the scores of a campaign, or those of the complete table of `NAME-exhaustive` if it
exists.
"""

import datetime as dt
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from sqlalchemy.orm import Session

from winnow.algorithms.state.arrays import FloatArray
from winnow.storage.admin.schema import reading
from winnow.storage.engine.database import storage_option
from winnow.storage.json_types import JsonObject
from winnow.storage.objectives import traits_of
from winnow.storage.records import campaigns as campaign_records
from winnow.storage.records import datasets as dataset_records
from winnow.storage.records import outcomes as outcome_records
from winnow.storage.records import rounds as round_records
from winnow.storage.records.record_types import SET_ASIDE, CampaignRecord
from winnow.tasks.campaign.budget import has_ended
from winnow.tasks.campaign.look import Look
from winnow.tasks.data.datasets import Dataset
from winnow.tasks.data.score_tables import CAMPAIGN, ScoreTable, ScoreTableError, checked_table, read_table
from winnow.tasks.errors import SpecError
from winnow.tasks.spec.campaign import CampaignSpec
from winnow.tasks.spec.identity_keys import exhaustive_name, has_the_same_scores
from winnow.tasks.spec.judge_tree import spares
from winnow.tasks.spec.stored_spec import LAST_ROUNDS, ONLY


def load_score_table(source: str, storage: str) -> ScoreTable:
    """Read a score table, in which scores can be missing.

    Args:
        source: A path for `score_tables.read_table`, or `campaign:NAME`.
        storage: URL of the results database that contains the campaign.

    Raises:
        ScoreTableError: The table cannot be read, is not a matrix of scores in [0, 1], repeats a name, or has
            no score;
            or the campaign has no finished round.
        StorageError: The database cannot be read, or it has no such campaign.
    """
    if not source.startswith(CAMPAIGN):
        return _with_scores(read_table(source, "scores"))
    with reading(storage) as session:
        campaign = _best_mean(session, source.removeprefix(CAMPAIGN))
        return _with_scores(
            _filled_table(session, campaign, storage) or _campaign_table(session, campaign, storage)
        )


def load_ended_table(source: str, storage: str, learner: str | None = None) -> ScoreTable:
    """Read the score table of a file or an ended campaign; later reads give the same.

    If the campaign was continued after its learner began, the learner gets only the scores that existed then.
    These are the scores up to the round in the learner's identity, or, without such a round, those not
    younger than the learner.

    Args:
        source: As in `load_score_table`.
        storage: As in `load_score_table`.
        learner: Name of the campaign that uses the table as history, whether it is stored or not; None
            without one.

    Raises:
        ScoreTableError: As in `load_score_table`, or the campaign has not ended.
        StorageError: The database cannot be read, or it has no such campaign.
    """
    if not source.startswith(CAMPAIGN):
        return _with_scores(read_table(source, "scores"))
    with reading(storage) as session:
        return ended_table(session, source, storage, learner)


def ended_table(session: Session, source: str, storage: str, learner: str | None = None) -> ScoreTable:
    """Read the score table of an ended campaign, given as `campaign:NAME`.

    See `load_ended_table`.
    """
    campaign = _best_mean(session, source.removeprefix(CAMPAIGN))
    begun = None if learner is None else campaign_records.find_campaign(session, learner)
    if begun is not None:
        last_rounds = begun.spec.get(LAST_ROUNDS, {})
        until = last_rounds.get(source, begun.created_at)
        if outcome_records.latest_decision(session, campaign.id, until):
            table = _with_scores(_campaign_table(session, campaign, storage, until))
            return table if source in last_rounds else replace(table, last_round=None)
    decision = outcome_records.latest_decision(session, campaign.id)
    if not has_ended(session, campaign, decision):
        remedy = f"end it first: winnow resume {campaign.name} {storage_option(storage)}"
        raise ScoreTableError(f"campaign '{campaign.name}' is not finished; {remedy}")
    return _with_scores(_campaign_table(session, campaign, storage))


def _best_mean(session: Session, name: str) -> CampaignRecord:
    campaign = campaign_records.get_campaign(session, name)
    if not traits_of(campaign.objective).scores_a_benchmark:
        problem = f"has objective {campaign.objective}, so it has no scores of single candidates"
        raise ScoreTableError(f"campaign '{campaign.name}' {problem}; name a best-mean campaign")
    return campaign


def _filled_table(session: Session, campaign: CampaignRecord, storage: str) -> ScoreTable | None:
    """Score table of the campaign that evaluated every pair of this one.

    None if no such campaign exists, or if its table is incomplete.
    """
    full = campaign_records.find_campaign(session, exhaustive_name(campaign.name))
    if full is None or not has_the_same_scores(full.spec, campaign.spec):
        return None
    if outcome_records.latest_decision(session, full.id) is None:
        return None
    table = _campaign_table(session, full, storage)
    return None if table.is_partial else table


def _campaign_table(
    session: Session, campaign: CampaignRecord, storage: str, until: dt.datetime | int | None = None
) -> ScoreTable:
    """The scores that a campaign had observed until a time or a round.

    Dropped candidates are left out if the campaign evaluated all others on every example.

    Args:
        session: An open session.
        campaign: The campaign.
        storage: URL of its database, for error messages.
        until: The time, or the number of the round; None for all scores.
    """
    decision = outcome_records.latest_decision(session, campaign.id, until)
    if decision is None:
        remedy = f"resume it first: winnow resume {campaign.name} {storage_option(storage)}"
        raise ScoreTableError(f"campaign '{campaign.name}' has no finished round yet; {remedy}")
    if spares(campaign.spec):
        raise ScoreTableError(
            f"campaign '{campaign.name}' has no scores for equal outputs (judge.spare); first judge all of "
            f"them: winnow rescore {campaign.name} {storage_option(storage)}"
        )
    names = campaign_records.candidate_names(session, campaign.id)
    candidates = names if until is None else names[: len(names) - decision.n_joined]
    examples = [example.key for example in dataset_records.examples(session, campaign.dataset_id)]
    scores = np.full((len(candidates), len(examples)), np.nan)
    asked = np.zeros(scores.shape, dtype=np.bool_)
    makes_none = campaign.execution.get("reuse") == ONLY
    for told in round_records.told_rounds(session, campaign.id):
        if told.number > decision.round_number:
            break
        pairs = np.asarray(told.arms), np.asarray(told.examples)
        scores[pairs] = np.array(told.outcomes, dtype=np.float64)  # None becomes NaN
        # If only stored outputs are used, which ones exist depends on the scores of another campaign.
        asked[pairs] = ~np.isnan(scores[pairs]) if makes_none else True
    table = checked_table(
        ScoreTable(
            source=f"{CAMPAIGN}{campaign.name}",
            candidates=tuple(candidates),
            examples=tuple(examples),
            scores=scores,
            is_partial=not asked.all(),
            last_round=decision.round_number,
        )
    )
    kept = np.flatnonzero([status not in SET_ASIDE for status in decision.status[: len(candidates)]])
    if table.is_partial and kept.size and asked[kept].all():
        return replace(table.rows(kept), is_partial=False)
    return table


def _with_scores(table: ScoreTable) -> ScoreTable:
    """Return a table, and raise an error if it has no score."""
    if not np.isnan(table.scores).all():
        return table
    source = table.source
    if not source.startswith(CAMPAIGN):
        raise ScoreTableError(f"{source} has no scores; fill them in, or name another table")
    name = source.removeprefix(CAMPAIGN)
    raise ScoreTableError(
        f"campaign '{name}' has no scores (`winnow status {name}` shows why); name another campaign or table"
    )


@dataclass(frozen=True, slots=True, eq=False)
class EarlierScores:
    """Scores of earlier campaigns or tables on the examples of a campaign."""

    scores: FloatArray
    """Shape (M, n), one row per earlier candidate; values in [0, 1], NaN for a missing score."""
    last_rounds: Mapping[str, int]
    """Number of the last round used, for each source that is a campaign.
    A number is stored instead of a time, because rounds from a machine with a slow clock look older than they
    are.
    """

    @property
    def identity(self) -> JsonObject:
        """Digest of the scores, and the last rounds, as stored in a campaign's identity."""
        content = str(self.scores.shape).encode() + np.ascontiguousarray(self.scores).tobytes()
        found: JsonObject = {"history_fingerprint": hashlib.sha256(content).hexdigest()}
        return found | ({LAST_ROUNDS: dict(self.last_rounds)} if self.last_rounds else {})


def load_history(
    sources: Sequence[str], storage: str, dataset: Dataset, learner: str | None = None
) -> EarlierScores:
    """Read earlier scores on a campaign's examples, one row per earlier candidate.

    Args:
        sources: Score tables as in `load_ended_table`: files, or `campaign:NAME`.
        storage: URL of the results database that contains the campaigns.
        dataset: The campaign's examples. Tables with example ids are matched by them; other tables must have
            as many columns, in the same order.
        learner: As in `load_ended_table`.

    Raises:
        SpecError: A source cannot be read, or shares no example with the dataset.
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
    """Read a stored campaign's earlier scores from its own database only.

    Raises:
        SpecError: Some scores come from files, or have changed.
    """
    if files := [each for each in spec.history if not each.startswith(CAMPAIGN)]:
        raise SpecError(f"its history contains the file {files[0]}, and no file is read here")
    tables = [ended_table(look.session, each, spec.storage, look.record.name) for each in spec.history]
    found = EarlierScores(np.concatenate([aligned(each, dataset, "history") for each in tables]), {})
    if found.identity["history_fingerprint"] != look.record.spec["history_fingerprint"]:
        raise SpecError("the earlier scores of its history changed")
    return found


def aligned(table: ScoreTable, dataset: Dataset, path: str) -> FloatArray:
    """Arrange a table's scores by the examples of a dataset, shape (M, n).

    Raises:
        SpecError: Table and dataset share no example.
    """
    keys = [example.key for example in dataset.examples]
    if table.examples is None:
        if table.scores.shape[1] != len(keys):
            raise SpecError(
                f"{table.source} has {table.scores.shape[1]} examples, {dataset.path} has {len(keys)}; "
                "give a table of the same examples in the same order, or one with example ids",
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
