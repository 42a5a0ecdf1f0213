"""Facts about a score table's examples: vectors for routing, prompt types, groups.

Sources of the vectors:

* `FILE.jsonl`, `FILE.json`, `FILE.parquet`  the columns id and vector
* `FILE.npy`, `FILE.npz`, `FILE.npz:KEY`     an array of shape (n, d) in the order of the table
* `campaign:NAME`                            the embedder of a route campaign
* a template                                 the installed embedder, on the examples of the table's campaign

Sources of the types, which are used in metrics of routing:

* `FILE.csv`, `FILE.jsonl`, `FILE.json`, `FILE.parquet`  the columns id and type
* `FILE.npy`, `FILE.npz`, `FILE.npz:KEY`                 an array of shape (n,) in the order of the table
* a name                                                 a field of the examples of the table's campaign
"""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from winnow.algorithms.best_mean.groups import Groups
from winnow.algorithms.registry import describe
from winnow.algorithms.state.arrays import FloatArray, IntArray
from winnow.storage.admin.schema import existing, reading
from winnow.storage.engine.database import Database
from winnow.storage.objectives import traits_of
from winnow.storage.records import campaigns as campaign_records
from winnow.storage.records import datasets as dataset_records
from winnow.storage.records.record_types import CampaignRecord
from winnow.tasks.campaign.stored_values import stored_dataset
from winnow.tasks.data.dataset_files import no_column, read_rows
from winnow.tasks.data.datasets import Dataset, Example
from winnow.tasks.data.score_tables import CAMPAIGN, ScoreTable
from winnow.tasks.data.table_examples import array_of, in_order, is_array, require_campaign
from winnow.tasks.dotted_names import MISSING, unknown_field, value_of
from winnow.tasks.embedding.embedded_prompts import check_embedder
from winnow.tasks.embedding.precomputed import read_vectors
from winnow.tasks.embedding.protocol import of_unit_length
from winnow.tasks.errors import DatasetError, SpecError, WinnowError
from winnow.tasks.objectives.best_mean.groups import example_groups
from winnow.tasks.spec.sections.objectives import EmbedderSpec, GroupsSpec


def read_contexts(source: str, table: ScoreTable, storage: str) -> FloatArray:
    """The vectors of a table's examples, shape (n, d), with length 1.

    The length is exact up to single precision.

    Args:
        source: A file or a campaign, see the module.
        table: The table; its examples have names unless the source is an array.
        storage: URL of the results database for `campaign:NAME`.

    Raises:
        WinnowError: The source cannot be read, or an example has no usable vector.
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
    """Embed the examples of a table's campaign, and store the vectors in the database.

    Args:
        template: Template of the text to embed, over an example's fields.
        table: The table of a campaign.
        storage: URL of the results database with the campaign.

    Returns:
        Shape (n, d).

    Raises:
        WinnowError: The table is a file, or an example cannot be embedded.
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
    """Vectors of a route campaign's examples, by key; missing vectors are computed."""
    with existing(storage) as database:
        campaign = _stored_campaign(database, name)
        if not traits_of(campaign.objective).is_stream:
            problem = f"campaign '{name}' has objective {campaign.objective} and so no vectors"
            raise SpecError(f"{problem}; name a route campaign, or remove it and use --embed TEMPLATE")
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


ROWS = (".csv", ".json", ".jsonl", ".parquet")


class PromptTypes(NamedTuple):
    """The type of each example."""

    names: tuple[str, ...]
    """Names of the G types, all different."""
    of_examples: IntArray
    """Index of each example's type, from 0 to G - 1; shape (n,)."""


def read_types(source: str, table: ScoreTable, storage: str) -> PromptTypes:
    """The type of each example of a table.

    Args:
        source: A file, or a field of the examples, see the module.
        table: The table; its examples have names unless the source is an array.
        storage: URL of the results database with the table's campaign.

    Raises:
        WinnowError: The source cannot be read, or an example has no type.
    """
    place = f"--types {source}"
    if is_array(source):
        values: Sequence[object] = array_of(place, source, table, 1).tolist()
    elif Path(source).suffix.lower() in ROWS:
        values = in_order(_typed_rows(source), table, place, "type")
    else:
        values = _field(source, table, storage)
    names, of_examples = np.unique([str(value) for value in values], return_inverse=True)
    return PromptTypes(names=tuple(names.tolist()), of_examples=of_examples)


def _typed_rows(source: str) -> dict[str, object]:
    found: dict[str, object] = {}
    try:
        for place, row in read_rows(Path(source)):
            for column in ("id", "type"):
                if column not in row:
                    raise SpecError(f"--types {source}, {place}: {no_column(column, row)}")
            if str(row["id"]) in found:
                problem = f"the id {row['id']!r} occurs twice; keep one type"
                raise SpecError(f"--types {source}, {place}: {problem}")
            found[str(row["id"])] = row["type"]
    except DatasetError as error:
        raise SpecError(f"--types: {error.message}") from error
    return found


def _field(name: str, table: ScoreTable, storage: str) -> list[object]:
    require_campaign(table, f"--types {name}", "give a file with the columns id and type")
    with reading(storage) as session:
        campaign = campaign_records.get_campaign(session, table.source.removeprefix(CAMPAIGN))
        examples = dataset_records.examples(session, campaign.dataset_id)
    values = [value_of(example.fields, name) for example in examples]
    for example, value in zip(examples, values, strict=True):
        if value is MISSING:
            unknown = unknown_field("field", name, [example.fields])
            raise SpecError(f"--types: example {example.key!r}: {unknown}")
    return values


def groups_of_campaign(source: str, storage: str) -> Groups | None:
    """The groups of a table's examples.

    None for a file, and for a campaign that compares plain means.

    Args:
        source: The table as the user names it.
        storage: URL of the results database for `campaign:NAME`.

    Raises:
        StorageError: The database cannot be read, or has no such campaign.
    """
    if not source.startswith(CAMPAIGN):
        return None
    with reading(storage) as session:
        campaign = campaign_records.get_campaign(session, source.removeprefix(CAMPAIGN))
        if (groups := campaign.spec.get("groups")) is None:
            return None
        stored = dataset_records.examples(session, campaign.dataset_id)
    examples = [Example(key=each.key, fields=each.fields, targets=tuple(each.targets)) for each in stored]
    return example_groups(GroupsSpec.model_validate(groups), examples).as_selectors_have_them


def require_groups(source: str, selectors: Sequence[str]) -> None:
    """Refuse selectors that do not support the campaign's groups.

    Raises:
        SpecError: A selector does not support groups; names the first one.
    """
    for name in selectors:
        if "groups" not in {each.name for each in describe(name).parameters}:
            raise SpecError(
                f"--selector {name}: {source} compares candidates by means of groups, which {name} does "
                f"not support; remove {name}"
            )
