"""Read the images of a dataset's rows, and add their descriptions to the rows."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from winnow.storage.json_types import JsonObject, JsonView, Row
from winnow.storage.text import in_home
from winnow.tasks.data.dataset_files import PartialRow, PlacedRow
from winnow.tasks.dotted_names import MISSING, unknown_field, value_of
from winnow.tasks.engines.images import MOST_IMAGES, Image, Place, read_place
from winnow.tasks.errors import DatasetError

DETAILS = "image_details"
"""Column that Winnow adds to rows: a description of each image.
It is the name, media type, size and SHA-256, or only the URL."""

IMAGES_KEY = "dataset.images"

WEB = re.compile("https?://", re.IGNORECASE)
SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://")

BYTES = "bytes"
"""Key of an image's content in an object, as in Parquet files of the Hugging Face hub."""


NOTHING = (None, "", {BYTES: None, "path": None})
"""Values of a field without an image."""


class ImageReader:
    """Reader of images, which adds the column `DETAILS` to rows.

    Args:
        fields: Names of the fields that hold images.
        has_files: Whether rows come from files, in whose folder relative paths start.
    """

    def __init__(self, fields: Sequence[str], *, has_files: bool) -> None:
        self._fields, self._has_files = fields, has_files
        self.places: dict[str, Place] = {}
        """Source of the bytes of each image, by SHA-256."""

    def added(self, rows: Iterable[PlacedRow]) -> Iterator[PlacedRow]:
        """Yield each row with the descriptions of its images.

        Raises:
            DatasetError: If an image cannot be used, a row has too many images, or the column `DETAILS`
                exists already.
        """
        for place, row in rows:
            if DETAILS in row:
                raise DatasetError(
                    f"{place}: the file has a column {DETAILS!r}, which Winnow adds itself; rename "
                    "the column",
                    IMAGES_KEY,
                )
            details = [self._description(place, given) for given in self._images_of(place, row)]
            if len(details) > MOST_IMAGES:
                raise DatasetError(
                    f"{place}: {len(details)} images, but an example can have at most {MOST_IMAGES}; "
                    "remove some",
                    IMAGES_KEY,
                )
            yield place, self._with(row, details)

    def places_of(self, examples: Iterable[JsonView]) -> dict[str, Place]:
        """Sources of the bytes of some examples' images, by SHA-256.

        Args:
            examples: Fields of each example.
        """
        digests = {each["sha256"] for fields in examples for each in fields[DETAILS] if "sha256" in each}
        return {digest: self.places[digest] for digest in sorted(digests)}

    def _with(self, row: Row, details: list[JsonObject]) -> Row:
        found = {**row, DETAILS: details}
        if not isinstance(row, PartialRow):
            return found
        partial = PartialRow(found)
        partial.left_out = {
            name: what
            for name, what in row.left_out.items()
            if name not in self._fields and name.removesuffix(f".{BYTES}") not in self._fields
        }
        partial.contents = {}
        return partial if partial.left_out else found

    def _images_of(self, place: str, row: Row) -> Iterator[object]:
        """Yield the images of a row, each as a text, an object or bytes."""
        contents = row.contents if isinstance(row, PartialRow) else {}
        for name in self._fields:
            if name in contents:
                yield from contents[name]
                continue
            held = value_of(row, name)
            if held is MISSING:
                raise DatasetError(f"{place}: {unknown_field('column', name, [row])}", IMAGES_KEY)
            left_out = iter(contents.get(f"{name}.{BYTES}", ()))
            for each in held if isinstance(held, list) else [held]:
                if isinstance(each, Mapping) and BYTES not in each and (content := next(left_out, None)):
                    yield {**each, BYTES: content}
                elif each not in NOTHING:
                    yield each

    def _description(self, place: str, given: object) -> JsonObject:
        """Description of an image, whose bytes are read unless it is a URL.

        Raises:
            DatasetError: If the image cannot be used.
        """
        name: object = BYTES
        if isinstance(given, Mapping):
            name = given.get("path") or BYTES
            given = _source_of(given)
        if isinstance(given, bytes):
            return self._content_details(place, "the content of an image", Path(str(name)).name, given)
        if not isinstance(given, str) or "\0" in given:
            raise DatasetError(
                f"{place}: an image must be a path or a URL, got {str(given)[:60]!a}", IMAGES_KEY
            )
        if WEB.match(given):
            return {"url": given}
        if given[:5].lower() == "data:":
            return self._content_details(place, "an image", "data URL", f"data:{given[5:]}")
        if SCHEME.match(given):
            raise DatasetError(
                f"{place}: the image {given[:60]!a} is a URL that servers do not fetch; use https, "
                "a data URL or a path",
                IMAGES_KEY,
            )
        if not self._has_files:
            raise DatasetError(
                f"{place}: the image {given[:60]!a} is a path, but the data does not come from a file, so "
                "the path has no folder to start from; use URLs, or a file",
                IMAGES_KEY,
            )
        path = located(place, given)
        return self._content_details(place, f"the image {path}", Path(given).name, path)

    def _content_details(self, place: str, what: str, name: str, where: Place) -> JsonObject:
        try:
            found = Image.of(read_place(where), where)
        except ValueError as error:
            raise DatasetError(f"{place}: {what} {error}", IMAGES_KEY) from error
        self.places.setdefault(found.sha256, where)
        return {"name": name, **found.as_json()}


def _source_of(image: Mapping[str, object]) -> object:
    """Content, URL or path of an image in an object; the object itself without any of them."""
    return next((image[key] for key in (BYTES, "url", "path") if image.get(key)), image)


def located(place: str, given: str) -> str:
    """Path of an image in a row; a relative path starts at the folder of the row's file.

    Args:
        place: Place of the row, as from `read_files`.
        given: Path in the row; "~" is the home folder.
    """
    return str(Path(place.rpartition(", ")[0]).parent / in_home(given))


def image_paths(rows: Iterable[PlacedRow], fields: Sequence[str]) -> Iterator[str]:
    """Yield the paths of all images in rows of files; URLs and contents are skipped."""
    for place, row in rows:
        for name in fields:
            held = value_of(row, name)
            for each in held if isinstance(held, list) else [held]:
                given = _source_of(each) if isinstance(each, Mapping) else each
                if isinstance(given, str) and given and not SCHEME.match(given) and given[:5] != "data:":
                    yield located(place, given)
