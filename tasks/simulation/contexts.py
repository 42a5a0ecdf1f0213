"""Vectors of a score table's examples, for routing selectors.

Sources:

* `FILE.jsonl`, `FILE.json`, `FILE.parquet`  the columns id and vector
* `FILE.npy`, `FILE.npz`, `FILE.npz:KEY`     an array of shape (n, d) in the order of the table
* `campaign:NAME`                            the embedder of a route campaign
* a template                                 the installed embedder, on the examples of the table's campaign
"""

import numpy as np

from winnow.algorithms.state.arrays import FloatArray
from winnow.storage.admin.schema import existing
from winnow.storage.engine.database import Database
from winnow.storage.objectives import traits_of
from winnow.storage.records import campaigns as campaign_records
from winnow.storage.records import datasets as dataset_records
from winnow.storage.records.record_types import CampaignRecord
from winnow.tasks.campaign.stored_values import stored_dataset
from winnow.tasks.data.datasets import Dataset
from winnow.tasks.data.score_tables import CAMPAIGN, ScoreTable
from winnow.tasks.data.table_examples import array_of, in_order, is_array, require_campaign
from winnow.tasks.embedding.embedded_prompts import check_embedder
from winnow.tasks.embedding.precomputed import read_vectors
from winnow.tasks.embedding.protocol import of_unit_length
from winnow.tasks.errors import SpecError, WinnowError
from winnow.tasks.spec.sections.objectives import EmbedderSpec


def read_contexts(source: str, table: ScoreTable, storage: str) -> FloatArray:
    """The vectors of a table's examples, shape (n, d), of length 1 up to single precision.

    Args:
        source: A file or a campaign, as above.
        table: Its examples have names unless the source is an array.
        storage: URL of the results database for `campaign:NAME`.

    Raises:
        WinnowError: One sentence: the source cannot be read, or an example has no usable vector.
    """
    place = f"--contexts {source}"
    if is_array(source):
        return _unit_rows(array_of(place, source, table, 2), table, place)
    try:
        found = (
            _routed_vectors(source.removeprefix(CAMPAIGN), storage)
            if source.startswith(CAMPAIGN)
            else read_vectors(source)
        )
    except SpecError as error:
        raise SpecError(f"--contexts: {error.message}") from error
    return _unit_rows(np.array(in_order(found, table, place, "vector")), table, place)


def embedded_contexts(template: str, table: ScoreTable, storage: str) -> FloatArray:
    """Embed the examples of the table's campaign, shape (n, d), and store the vectors in the database.

    Args:
        template: Template of the text to embed, over an example's fields.
        table: The score table of a campaign.
        storage: URL of the results database.

    Raises:
        WinnowError: One sentence: the table is a file, or an example cannot be embedded.
    """
    require_campaign(table, f"--embed {template}", "give their vectors as --contexts FILE")
    with existing(storage) as database:
        dataset = _dataset(database, _stored_campaign(database, table.source.removeprefix(CAMPAIGN)))
        try:
            embedding = check_embedder(EmbedderSpec(text=template), dataset)
            return embedding.contexts(database, dataset)
        except SpecError as error:
            raise SpecError(f"--embed: {error.message}") from error


def _unit_rows(vectors: np.ndarray, table: ScoreTable, place: str) -> FloatArray:
    names = table.examples or [f"example {number}" for number in range(1, len(vectors) + 1)]
    try:
        return of_unit_length(vectors, names).astype(np.float64)
    except WinnowError as error:
        raise SpecError(f"{place}: {error}") from error


def _routed_vectors(name: str, storage: str) -> dict[str, FloatArray]:
    """Vectors of a route campaign's examples, by example; missing ones are embedded."""
    with existing(storage) as database:
        campaign = _stored_campaign(database, name)
        if not traits_of(campaign.objective).is_stream:
            asked = f"campaign '{name}' asked for {campaign.objective} and so embeds nothing"
            raise SpecError(f"{asked}; name a route campaign, or remove it and give --embed TEMPLATE")
        dataset = _dataset(database, campaign)
        embedding = check_embedder(EmbedderSpec.model_validate(campaign.spec["embedder"]), dataset)
        rows = embedding.contexts(database, dataset)
    return {example.key: row for example, row in zip(dataset.examples, rows, strict=True)}


def _stored_campaign(database: Database, name: str) -> CampaignRecord:
    with database.reading() as session:
        return campaign_records.get_campaign(session, name)


def _dataset(database: Database, campaign: CampaignRecord) -> Dataset:
    with database.reading() as session:
        return stored_dataset(campaign, dataset_records.examples(session, campaign.dataset_id))
