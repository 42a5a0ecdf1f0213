"""Writes the data of images.yaml: pictures of up to six squares, and the question how many there are."""

import json
import random
import zlib
from pathlib import Path

SIZE, SIDE = 96, 16  # pixels of a picture, and of a square


def png(rows: list[bytes]) -> bytes:
    """A picture of shades of grey as PNG."""

    def chunk(kind: bytes, content: bytes) -> bytes:
        return len(content).to_bytes(4) + kind + content + zlib.crc32(kind + content).to_bytes(4)

    head = SIZE.to_bytes(4) * 2 + bytes((8, 0, 0, 0, 0))
    pixels = zlib.compress(b"".join(b"\0" + row for row in rows))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", pixels) + chunk(b"IEND", b"")


def picture(places: list[int]) -> bytes:
    """A picture with a square at each of some of nine places."""
    rows = [bytearray(b"\xff" * SIZE) for _ in range(SIZE)]
    for place in places:
        top, left = (8 + 32 * part for part in divmod(place, 3))
        for row in rows[top : top + SIDE]:
            row[left : left + SIDE] = b"\x20" * SIDE
    return png([bytes(row) for row in rows])


folder, draw = Path("images"), random.Random(0)
folder.mkdir(exist_ok=True)
with Path("images.jsonl").open("w") as file:
    for number in range(80):
        places = draw.sample(range(9), draw.randint(1, 6))
        path = folder / f"squares-{number}.png"
        path.write_bytes(picture(places))
        row = {"input": "How many squares are there?", "image": str(path), "target": str(len(places))}
        file.write(json.dumps(row) + "\n")
