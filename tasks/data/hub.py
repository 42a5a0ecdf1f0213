"""Datasets in the Hugging Face layout: on the hub, in its cache, or in a folder.

The library `datasets` reads them without running code that comes with a dataset. Only formats whose files are
pure data are supported: tables and texts.
"""

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from winnow.algorithms.state.plugin_registry import in_words
from winnow.storage.json_types import JsonView
from winnow.tasks.data.dataset_files import BATCH, PlacedRow, arrow_rows
from winnow.tasks.data.hub_cache import cached_folder
from winnow.tasks.errors import DatasetError
from winnow.tasks.plugins.extras import require

FORMATS = ("arrow", "csv", "json", "parquet", "text")
"""Supported formats of the library; other formats decode images, or contain more than data."""

KEY = "dataset.hub"

Splits = JsonView
"""The library's `Dataset` of each split."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HubSource:
    """A dataset, as arguments of the library."""

    path: str
    """A name on the hub, a folder, or one of `FORMATS` for `data_files`."""
    name: str | None = None
    """Name of the configuration."""
    commit: str | None = None
    data_files: object = None
    """Local files: a path, a list of paths, or either of these by split."""
    data_dir: str | None = None


def hub_rows(source: HubSource, split: str | None, *, asks_hub: bool) -> Iterator[PlacedRow]:
    """Yield the rows of one split, read as they are requested.

    Args:
        source: The dataset.
        split: The split; None if there is only one.
        asks_hub: Whether files missing in the hub's cache are downloaded.

    Raises:
        DatasetError: The dataset cannot be loaded or lacks the split, or, later, a row is invalid.
    """
    splits = load_splits(source, asks_hub=asks_hub)
    if split is None and len(splits) != 1:
        raise DatasetError(
            f"{source.path} has the splits {', '.join(splits)}; set split to one of them", "dataset.split"
        )
    wanted = split or next(iter(splits))
    if wanted not in splits:
        raise DatasetError(
            f"{source.path} has no split {wanted!r}; choose one of {', '.join(splits)}", "dataset.split"
        )
    number = 0
    # Without the library's decoding: images and sounds remain bytes, which are not used.
    for table in splits[wanted].with_format("arrow").iter(BATCH):
        for row in arrow_rows(table):
            number += 1
            yield f"{source.path}, row {number} of {wanted}", row


def load_splits(source: HubSource, *, asks_hub: bool) -> Splits:
    """Load all splits of a dataset; rows are read from disk lazily.

    Raises:
        DatasetError: If the dataset cannot be loaded; see `hub_rows`.
    """
    require("hub", f"the dataset {source.path}")
    import datasets

    datasets.disable_progress_bars()
    datasets.logging.set_verbosity(datasets.logging.CRITICAL)  # problems that matter are also raised
    datasets.config.HF_UPDATE_DOWNLOAD_COUNTS = False  # do not report downloads
    folder = _folder(source, asks_hub)
    with _in_a_sentence(source.path):
        if folder is not None and _is_saved(folder):
            saved = datasets.load_from_disk(str(folder))
            kept: Splits = saved if isinstance(saved, Mapping) else {str(saved.split or "saved"): saved}
            files = {name: [file["filename"] for file in split.cache_files] for name, split in kept.items()}
            _require_own_files(source, folder, files)
            return kept
        builder = datasets.load_dataset_builder(
            source.path if folder is None else str(folder),
            source.name,
            data_files=source.data_files,
            data_dir=source.data_dir,
            revision=source.commit if folder is None else None,
        )
        _require_data_alone(source.path, builder)
        _require_own_files(source, folder, builder.config.data_files)
        builder.download_and_prepare()
        splits: Splits = builder.as_dataset()
        return splits


def _folder(source: HubSource, asks_hub: bool) -> Path | None:
    """The dataset's folder on this machine; None if the library should find its files."""
    if Path(source.path).is_dir():
        return Path(source.path)
    if source.data_files is not None and source.path in FORMATS:
        return None
    found = cached_folder(source.path, "datasets", source.commit) if source.commit else None
    if not asks_hub and found is None:
        raise DatasetError(
            f"commit {source.commit} of {source.path} is not in the hub's cache, and downloads are off; "
            f"download it first (hf download --repo-type dataset {source.path})",
            KEY,
        )
    if found is not None and (missing := _missing_shard(found)) is None:
        return found
    if not asks_hub:
        raise DatasetError(f"{source.path} lacks {missing} in the hub's cache; download it again", KEY)
    return None


def _missing_shard(folder: Path) -> str | None:
    """Name of a file that a download missed, inferred from the others' names; None if complete."""
    names = {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}
    for name in sorted(names):
        if shard := re.fullmatch(r"(.*-)(\d{5})(-of-)(\d{5})(.*)", name):
            before, _, between, count, after = shard.groups()
            for number in range(int(count)):
                if (other := f"{before}{number:05}{between}{count}{after}") not in names:
                    return other
    return None


def _is_saved(folder: Path) -> bool:
    """Whether `save_to_disk` wrote this folder."""
    return (folder / "dataset_dict.json").is_file() or (folder / "state.json").is_file()


def _require_data_alone(path: str, builder: object) -> None:
    allowed = {f"datasets.packaged_modules.{each}.{each}" for each in FORMATS}
    own = type(builder).__module__
    if not allowed & {each.__module__ for each in type(builder).__mro__}:
        raise DatasetError(
            f"{path} contains files for {own}, which is not supported; convert them to one of "
            f"{', '.join(FORMATS)}",
            KEY,
        )


def _require_own_files(source: HubSource, folder: Path | None, found: Mapping[str, list[str]] | None) -> None:
    """Refuse a dataset whose description names files outside its folder.

    The user's permission covers a folder and the targets of links in it, but not files that a description
    names.
    """
    if folder is None and source.path in FORMATS:  # then the source itself names the files
        return
    folders = () if folder is None else (os.path.abspath(folder), folder.resolve())
    own = tuple(f"{each}/" for each in folders) or (f"hf://datasets/{source.path}@",)
    for each in (file for files in (found or {}).values() for file in files):
        if not (each if folder is None else os.path.abspath(each)).startswith(own):
            raise DatasetError(
                f"{source.path} names the file {each}, which is outside the dataset; copy it into the "
                "dataset's folder, and name it by a relative path",
                KEY,
            )


@contextmanager
def _in_a_sentence(path: str) -> Iterator[None]:
    """Turn any error of the library into a `DatasetError` of one sentence."""
    try:
        yield
    except DatasetError:
        raise
    except Exception as error:  # from the library, its dependencies or the files
        raise DatasetError(f"the dataset {path} cannot be loaded: {in_words(error)}", KEY) from error
