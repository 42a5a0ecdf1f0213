"""A tokenizer with one token per printable ASCII character."""

import string
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

PAD, EOS, UNKNOWN = "<pad>", "<eos>", "<unk>"
CHARACTERS = string.printable[:95] + "\n"
"""Digits, letters, punctuation, space and line feed; any other character becomes `UNKNOWN`."""
VOCABULARY = {token: number for number, token in enumerate([PAD, EOS, UNKNOWN, *CHARACTERS])}


def build_tokenizer() -> "PreTrainedTokenizerFast":
    """The tokenizer saved with every demo checkpoint; it adds no token of its own to a text."""
    from tokenizers import Regex, Tokenizer
    from tokenizers.decoders import Fuse
    from tokenizers.models import WordLevel
    from tokenizers.pre_tokenizers import Split
    from transformers import PreTrainedTokenizerFast

    characters = Tokenizer(WordLevel(VOCABULARY, unk_token=UNKNOWN))
    characters.pre_tokenizer = Split(Regex(r"[\s\S]"), behavior="isolated")
    characters.decoder = Fuse()
    return PreTrainedTokenizerFast(
        tokenizer_object=characters,
        pad_token=PAD,
        eos_token=EOS,
        unk_token=UNKNOWN,
        padding_side="left",
        clean_up_tokenization_spaces=False,
    )
