"""The mark between our words and quoted text in a judge's prompt.

A candidate that could write the mark could end its own quotation and go on in our name. So the mark is a
hash of quoted texts and is in none of them: a text that held it would change it. It depends on the texts
only, and not on their order, so that the same texts are judged by the same prompts whichever of them comes
first and however often they meet: replies that are stored already are used again.
"""

from collections.abc import Collection
from itertools import count

from winnow.tasks.text.canonical_json import sha256

LENGTH = 16  # hexadecimal digits: 64 bits


def boundary(texts: Collection[str], *, also_not_in: Collection[str] = ()) -> str:
    """A mark of `LENGTH` hexadecimal digits that is in none of the texts.

    Args:
        texts: Texts that the mark is made of.
        also_not_in: Further texts that do not hold it, and change it only where they would.
    """
    quoted = sorted(texts)
    marks = (sha256([number, quoted])[:LENGTH] for number in count())
    return next(mark for mark in marks if not any(mark in text for text in (*quoted, *also_not_in)))
