"""Images of one colour, as small as they can be."""

import zlib
from base64 import b64encode

COLOURS = {"red": (255, 0, 0), "green": (0, 255, 0), "blue": (0, 0, 255)}


def png(colour, width=2, height=2):
    """A PNG of one colour, by name, or of a colour that has none, (r, g, b)."""
    pixel = bytes(COLOURS.get(colour, colour))

    def chunk(kind, content):
        return len(content).to_bytes(4) + kind + content + zlib.crc32(kind + content).to_bytes(4)

    head = width.to_bytes(4) + height.to_bytes(4) + bytes((8, 2, 0, 0, 0))
    pixels = zlib.compress((b"\0" + pixel * width) * height)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", pixels) + chunk(b"IEND", b"")


def data_url(content, kind="image/png"):
    """An image as a data URL."""
    return f"data:{kind};base64,{b64encode(content).decode()}"


def colours_in(call):
    """The colours that a call to a server shows in its last message, by their bytes; URLs as they are."""
    parts = call.body["messages"][-1]["content"]
    if isinstance(parts, str):
        return []
    urls = [each["image_url"]["url"] for each in parts if each["type"] == "image_url"]
    known = {data_url(png(name)): name for name in COLOURS}
    return [known.get(url, url) for url in urls]
