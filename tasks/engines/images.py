"""Images shown to a model: the stored description, and the bytes for a request.

Winnow fetches no URLs. A server that receives the URL of an image fetches the image.
"""

import binascii
import hashlib
import os
import re
from base64 import b64decode, b64encode
from collections.abc import Mapping
from dataclasses import dataclass, field
from io import BytesIO
from typing import TYPE_CHECKING, Self

from winnow.storage.json_types import JsonObject, JsonView
from winnow.storage.plain_files import open_plain

if TYPE_CHECKING:
    from PIL.Image import Image as Pixels

MOST_BYTES = 20 * 2**20
"""Maximum size of an image, in bytes."""

MOST_IMAGES = 8
"""Maximum number of images of an example."""

MOST_PIXELS = 2**26
"""Maximum number of pixels of an image that this machine decodes.
Decoded pixels of a small file can need more memory than the machine has."""

SHOWING = frozenset({"litellm", "openai", "transformers", "vllm"})
"""Providers whose models can receive images."""

FETCHING = frozenset({"openai"})
"""Providers of `SHOWING` whose servers fetch the URLs of images.
litellm is not included, because its client fetches some URLs itself."""

Place = str | bytes
"""Source of an image's bytes: a path, a data URL, or the bytes themselves."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Image:
    """An image of an example: its content, or a URL that a server fetches."""

    sha256: str = ""
    """SHA-256 of the bytes, hexadecimal; empty for a URL."""
    type: str = ""
    """Media type, such as "image/png"; empty for a URL."""
    size: int = 0
    """Size in bytes; 0 for a URL."""
    url: str = ""
    """URL, http or https; empty for an image with content."""
    place: Place = field(default="", repr=False, compare=False)
    """Source of the bytes; empty if they are not needed, as for the identity of a stored request."""

    @classmethod
    def of(cls, content: bytes, place: Place) -> Self:
        """Create an image from its content and the source of its bytes.

        Raises:
            ValueError: If the content is too large or not an image; the message is the end of a sentence.
        """
        if len(content) > MOST_BYTES:
            raise ValueError(f"has more than {MOST_BYTES >> 20} MiB; make the image smaller")
        if (type_ := media_type(content)) is None:
            raise ValueError("is not a PNG, JPEG, GIF or WebP image; convert it")
        return cls(sha256=hashlib.sha256(content).hexdigest(), type=type_, size=len(content), place=place)

    @classmethod
    def from_json(cls, stored: JsonView, places: Mapping[str, Place]) -> Self:
        """Read the result of `as_json`.

        Args:
            stored: The result.
            places: Sources of bytes, by SHA-256; an image without an entry gets an empty source.
        """
        if "url" in stored:
            return cls(url=stored["url"])
        digest = stored["sha256"]
        return cls(sha256=digest, type=stored["type"], size=stored["bytes"], place=places.get(digest, ""))

    def as_json(self) -> JsonObject:
        """Stored form, which also identifies the image in requests; without its name and source."""
        if self.url:
            return {"url": self.url}
        return {"sha256": self.sha256, "type": self.type, "bytes": self.size}

    def as_message(self) -> JsonObject:
        """Form of an image with content for another process of this machine; see `from_message`."""
        place = self.place
        if isinstance(place, bytes):
            place = f"data:{self.type};base64,{b64encode(place).decode()}"
        return {**self.as_json(), "place": place if place.startswith("data:") else os.path.abspath(place)}

    @classmethod
    def from_message(cls, message: JsonView) -> Self:
        """Read the result of `as_message`."""
        return cls.from_json(message, {message["sha256"]: message["place"]})

    @property
    def shown(self) -> str:
        """URL or path, for messages; without both, the beginning of the SHA-256."""
        is_path = isinstance(self.place, str) and not self.place.startswith("data:")
        return self.url or (str(self.place) if is_path and self.place else self.sha256[:12])

    def content(self) -> bytes:
        """Read the bytes from their source.

        Raises:
            ValueError: If the bytes changed or cannot be read; the message is the end of a sentence.
        """
        found = read_place(self.place)
        if hashlib.sha256(found).hexdigest() != self.sha256:
            raise ValueError("was changed since the campaign read it; restore it, or begin a new campaign")
        return found

    def as_url(self) -> str:
        """URL to send to a server: the image's own URL, or a data URL of its content.

        Raises:
            ValueError: As in `content`.
        """
        return self.url or f"data:{self.type};base64,{b64encode(self.content()).decode()}"

    def pixels(self) -> "Pixels":
        """Decode the image, as RGB.

        Raises:
            ValueError: If the image has more than `MOST_PIXELS` or cannot be decoded, and as in `content`;
                the message is the end of a sentence.
        """
        import PIL.Image

        content = self.content()
        try:
            with PIL.Image.open(BytesIO(content), formats=["PNG", "JPEG", "GIF", "WEBP"]) as found:
                width, height = found.size
                if width * height > MOST_PIXELS:
                    raise ValueError(f"has {width} x {height} pixels; make the image smaller")
                return found.convert("RGB")
        except (OSError, SyntaxError, PIL.Image.DecompressionBombError) as error:
            raise ValueError("cannot be decoded; save it again") from error


MARKS = re.compile(r"<image(?:_\d+)?>|\[IMG\]")
"""Matches texts that a model reads as the token at an image's position."""


def marking_no_image(text: str) -> str:
    """Insert a space into each match of `MARKS`, so that the text marks no image."""
    return MARKS.sub(lambda found: f"{found[0][0]} {found[0][1:]}", text)


def media_type(content: bytes) -> str | None:
    """Media type of an image, from its first bytes; None if it is no PNG, JPEG, GIF or WebP."""
    if content.startswith(b"\x89PNG\r\n\x1a\n"):
        return "image/png"
    if content.startswith(b"\xff\xd8\xff"):
        return "image/jpeg"
    if content.startswith((b"GIF87a", b"GIF89a")):
        return "image/gif"
    return "image/webp" if content[:4] == b"RIFF" and content[8:12] == b"WEBP" else None


def read_place(place: Place) -> bytes:
    """Read the bytes of an image from their source.

    At most `MOST_BYTES` + 1 bytes are read from a file, so that `Image.of` refuses a larger image.

    Raises:
        ValueError: If the bytes cannot be read, or a data URL is too long; the message is the end of a
            sentence.
    """
    if isinstance(place, bytes):
        return place
    if place.startswith("data:"):
        head, comma, data = place.partition(",")
        if not comma or not head.lower().endswith(";base64"):
            raise ValueError("is a data URL without base64; write data:image/png;base64,...")
        if len(data) > 2 * MOST_BYTES:
            raise ValueError(f"has more than {MOST_BYTES >> 20} MiB; make the image smaller")
        try:
            return b64decode(data, validate=True)
        except binascii.Error as error:
            raise ValueError(f"is a data URL whose base64 is broken ({error}); write it again") from error
    try:
        with open_plain(place) as file:
            return file.read(MOST_BYTES + 1)
    except FileNotFoundError as error:
        raise ValueError("does not exist; correct the path, or leave the field empty") from error
    except OSError as error:
        raise ValueError(f"cannot be read: {error.strerror or error}") from error
