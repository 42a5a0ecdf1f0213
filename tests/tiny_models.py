"""A language model with random weights that both transformers and vLLM load in moments."""

import atexit
import json
import shutil
import string
import tempfile
from functools import cache
from pathlib import Path

import torch
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

SPECIAL = ["<pad>", "</s>", "<unk>"]
CHARACTERS = sorted(set(string.printable) - set("\r\x0b\x0c"))


def save_tiny_llama(
    folder: Path,
    *,
    seed: int,
    hidden: int = 32,
    layers: int = 1,
    chat_template: str | None = None,
    n_words: int = 0,
) -> Path:
    """Save a checkpoint with random weights and a tokenizer of one token per ASCII character.

    Its vocabulary has `n_words` more tokens, which no prompt has and the model writes.
    """
    shutil.copytree(_tiny_llama(seed, hidden, layers, chat_template, n_words), folder, dirs_exist_ok=True)
    return folder


@cache
def _tiny_llama(seed: int, hidden: int, layers: int, chat_template: str | None, n_words: int) -> Path:
    folder = Path(tempfile.mkdtemp(prefix="tiny-llama-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    tokenizer = _character_tokenizer(n_words)
    tokenizer.chat_template = chat_template
    tokenizer.save_pretrained(folder)
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=hidden,
        intermediate_size=2 * hidden,
        num_hidden_layers=layers,
        num_attention_heads=max(1, hidden // 32),
        num_key_value_heads=max(1, hidden // 32),
        max_position_embeddings=256,
        initializer_range=0.5,  # the default leaves logits so close that rounding could swap them
        pad_token_id=tokenizer.pad_token_id,
        eos_token_id=tokenizer.eos_token_id,
        bos_token_id=None,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        LlamaForCausalLM(config).save_pretrained(folder)
    return folder


def add_token(folder: Path, character: str) -> Path:
    """Teach the saved tokenizer a character for which the weights have no row."""
    path = folder / "tokenizer.json"
    saved = json.loads(path.read_text())
    vocabulary = saved["model"]["vocab"]
    vocabulary[character] = len(vocabulary)
    path.write_text(json.dumps(saved))
    return folder


def _character_tokenizer(n_words: int) -> PreTrainedTokenizerFast:
    words = [f" word{number}" for number in range(n_words)]
    vocabulary = {token: i for i, token in enumerate(SPECIAL + CHARACTERS + words)}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex(r"[\s\S]"), behavior="isolated")
    tokenizer.decoder = decoders.Fuse()
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token="<pad>", eos_token="</s>", unk_token="<unk>"
    )
