"""Mark that separates Winnow's words from quoted outputs in a judge's prompt.

A candidate that could write the mark could end its own quotation and continue in Winnow's name. So the mark
is a hash of the quoted texts that occurs in none of them: a text that contained it would change it. The mark
does not depend on the order of the texts, so the same texts get the same mark in either order and in every
comparison, and stored replies are reused.
"""

from collections.abc import Collection
from itertools import count

from winnow.tasks.text.canonical_json import sha256

LENGTH = 16  # hexadecimal digits: 64 bits


def boundary(texts: Collection[str], *, also_not_in: Collection[str] = ()) -> str:
    """A mark of `LENGTH` hexadecimal digits that occurs in none of the texts.

    Args:
        texts: Texts from which the mark is computed.
        also_not_in: Further texts that must not contain the mark; they affect it only if they would contain
            it.
    """
    quoted = sorted(texts)
    marks = (sha256([number, quoted])[:LENGTH] for number in count())
    return next(mark for mark in marks if not any(mark in text for text in (*quoted, *also_not_in)))
