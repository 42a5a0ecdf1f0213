"""Images shown to a model: what is stored of each, and its bytes once a request is sent.

Winnow fetches no URL: a server that gets one fetches it by itself.
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
"""Maximum size of an image."""

MOST_IMAGES = 8
"""Maximum number of images of an example."""

MOST_PIXELS = 2**26
"""Maximum number of pixels that are decoded on this machine: a small file can hold more than memory does."""

SHOWING = frozenset({"litellm", "openai", "transformers", "vllm"})
"""Providers whose models can be shown images."""

FETCHING = frozenset({"openai"})
"""Those of them whose servers fetch URLs; litellm would fetch some by itself."""

Place = str | bytes
"""Where the bytes of an image are: a path, a data URL, or the bytes themselves."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Image:
    """An image of an example: a content, or a URL that a server fetches."""

    sha256: str = ""
    """SHA-256 of its bytes, hexadecimal; empty for a URL."""
    type: str = ""
    """Its media type, such as "image/png"; empty for a URL."""
    size: int = 0
    """Its size in bytes; 0 for a URL."""
    url: str = ""
    """The URL, http or https; empty for a content."""
    place: Place = field(default="", repr=False, compare=False)
    """Where its bytes are; empty if they are not needed, as when a stored request is computed again."""

    @classmethod
    def of(cls, content: bytes, place: Place) -> Self:
        """An image with this content; raises `ValueError`, with the end of a sentence, if it is refused."""
        if len(content) > MOST_BYTES:
            raise ValueError(f"has more than {MOST_BYTES >> 20} MiB; make the image smaller")
        if (type_ := media_type(content)) is None:
            raise ValueError("is not a PNG, JPEG, GIF or WebP image; convert it")
        return cls(sha256=hashlib.sha256(content).hexdigest(), type=type_, size=len(content), place=place)

    @classmethod
    def from_json(cls, stored: JsonView, places: Mapping[str, Place]) -> Self:
        """Read the result of `as_json`; `places` has the place of each content, by its SHA-256."""
        if "url" in stored:
            return cls(url=stored["url"])
        digest = stored["sha256"]
        return cls(sha256=digest, type=stored["type"], size=stored["bytes"], place=places.get(digest, ""))

    def as_json(self) -> JsonObject:
        """What is stored of it, and identifies it in requests: neither its name nor its place."""
        if self.url:
            return {"url": self.url}
        return {"sha256": self.sha256, "type": self.type, "bytes": self.size}

    def as_message(self) -> JsonObject:
        """What another process of this machine needs of an image with content; read by `from_message`."""
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
        """Its path or URL for messages, or the beginning of its digest."""
        is_path = isinstance(self.place, str) and not self.place.startswith("data:")
        return self.url or (str(self.place) if is_path and self.place else self.sha256[:12])

    def content(self) -> bytes:
        """Its bytes; raises `ValueError`, with the end of a sentence, if they are not what they were."""
        found = read_place(self.place)
        if hashlib.sha256(found).hexdigest() != self.sha256:
            raise ValueError("was changed since the campaign read it; restore it, or begin a new campaign")
        return found

    def as_url(self) -> str:
        """The URL that a server gets: its own, or a data URL; raises as `content`."""
        return self.url or f"data:{self.type};base64,{b64encode(self.content()).decode()}"

    def pixels(self) -> "Pixels":
        """The decoded image; raises `ValueError`, with the end of a sentence, if it cannot be decoded."""
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
"""Spelled-out tokens by which models mark the places of images."""


def marking_no_image(text: str) -> str:
    """A text with a space in each token that would mark the place of an image."""
    return MARKS.sub(lambda found: f"{found[0][0]} {found[0][1:]}", text)


def media_type(content: bytes) -> str | None:
    """The media type by which the first bytes say that they begin an image; None if they do not."""
    if content.startswith(b"\x89PNG\r\n\x1a\n"):
        return "image/png"
    if content.startswith(b"\xff\xd8\xff"):
        return "image/jpeg"
    if content.startswith((b"GIF87a", b"GIF89a")):
        return "image/gif"
    return "image/webp" if content[:4] == b"RIFF" and content[8:12] == b"WEBP" else None


def read_place(place: Place) -> bytes:
    """The bytes at a place, at most one more than an image may have.

    Raises:
        ValueError: With the end of a sentence, if they cannot be read.
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
