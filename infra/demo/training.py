"""Train a small Llama model on the texts of its recipe."""

import string
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from torch.nn.functional import cross_entropy
from torch.optim import AdamW, Muon, Optimizer
from torch.optim.lr_scheduler import OneCycleLR
from transformers import GenerationConfig, LlamaConfig, LlamaForCausalLM

from winnow.infra.demo.data import TrainingText
from winnow.infra.demo.recipes import CONTEXT, Recipe

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

PAD, EOS, UNKNOWN = "<pad>", "<eos>", "<unk>"
CHARACTERS = string.printable[:95] + "\n"
"""Characters of the vocabulary: digits, letters, punctuation, space and line feed; others are `UNKNOWN`."""
VOCABULARY = {token: number for number, token in enumerate([PAD, EOS, UNKNOWN, *CHARACTERS])}


def build_tokenizer() -> "PreTrainedTokenizerFast":
    """Build the character tokenizer that is saved with every checkpoint; it adds no special tokens."""
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


HEAD_SIZE = 32
EMBEDDING_RATE = 0.2  # factor on the learning rate for AdamW, which trains embeddings and norms
PARTS = 3
IGNORED = -100  # label that `cross_entropy` ignores


def train_checkpoint(recipe: Recipe, folder: Path) -> list[float]:
    """Train one checkpoint and save it, with its tokenizer, in `folder`.

    Returns:
        Mean loss of every step, in nats per character of the answers; length `recipe.steps`.
    """
    model = _new_model(recipe)
    optimizers = _optimizers(model, recipe.learning_rate)
    schedules = [
        OneCycleLR(
            optimizer,
            max_lr=optimizer.param_groups[0]["lr"],
            total_steps=recipe.steps,
            pct_start=0.15,
            cycle_momentum=False,
        )
        for optimizer in optimizers
    ]
    texts = recipe.texts()
    losses = []
    for _ in range(recipe.steps):
        losses.append(_accumulate_gradients(model, list(islice(texts, recipe.batch_size))))
        for optimizer, schedule in zip(optimizers, schedules, strict=True):
            optimizer.step()
            optimizer.zero_grad()
            schedule.step()
    _save(model, folder)
    return losses


def _new_model(recipe: Recipe) -> LlamaForCausalLM:
    config = LlamaConfig(
        vocab_size=len(VOCABULARY),
        hidden_size=recipe.hidden_size,
        intermediate_size=2 * recipe.hidden_size,
        num_hidden_layers=recipe.layers,
        num_attention_heads=recipe.heads,
        num_key_value_heads=recipe.heads // 2,
        head_dim=HEAD_SIZE,
        max_position_embeddings=CONTEXT,
        tie_word_embeddings=True,
        initializer_range=0.06,
        pad_token_id=VOCABULARY[PAD],
        eos_token_id=VOCABULARY[EOS],
        bos_token_id=None,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(recipe.seed)
        model = LlamaForCausalLM(config)
    model.train()
    return model


def _optimizers(model: LlamaForCausalLM, learning_rate: float) -> list[Optimizer]:
    """Muon for matrices inside layers, which halves the number of steps, and AdamW for all other weights."""
    inner: list[torch.nn.Parameter] = []
    outer: list[torch.nn.Parameter] = []
    for name, weight in model.named_parameters():
        (inner if weight.ndim == 2 and "layers" in name else outer).append(weight)
    return [
        Muon(inner, lr=learning_rate, weight_decay=0.0, adjust_lr_fn="match_rms_adamw"),
        AdamW(outer, lr=EMBEDDING_RATE * learning_rate, betas=(0.9, 0.98), weight_decay=0.0),
    ]


def _accumulate_gradients(model: LlamaForCausalLM, texts: Sequence[TrainingText]) -> float:
    """Add the gradient of the mean loss per character of the answers, and return that loss.

    Texts are sorted by length and processed in `PARTS` parts, so that short texts need little padding.
    """
    by_length = sorted(texts, key=lambda text: len(text.prompt) + len(text.answer))
    written = sum(len(text.answer) + 1 for text in texts)
    size = -(-len(texts) // PARTS)
    total = 0.0
    for start in range(0, len(texts), size):
        tokens, wanted = encode(by_length[start : start + size])
        logits = model(input_ids=tokens).logits
        loss = cross_entropy(
            logits[:, :-1].flatten(0, 1), wanted[:, 1:].flatten(), ignore_index=IGNORED, reduction="sum"
        )
        (loss / written).backward()
        total += loss.item() / written
    return total


def encode(texts: Sequence[TrainingText]) -> tuple[torch.Tensor, torch.Tensor]:
    """Token ids and labels, both of shape (number of texts, longest text + 1).

    Only the tokens of the answer and the end token have labels; others have `IGNORED`.
    """
    longest = max(len(text.prompt) + len(text.answer) for text in texts) + 1
    tokens = torch.full((len(texts), longest), VOCABULARY[PAD])
    labels = torch.full((len(texts), longest), IGNORED)
    for row, text in enumerate(texts):
        numbers = torch.tensor([*(VOCABULARY[c] for c in text.prompt + text.answer), VOCABULARY[EOS]])
        tokens[row, : len(numbers)] = numbers
        labels[row, len(text.prompt) : len(numbers)] = numbers[len(text.prompt) :]
    return tokens, labels


def _save(model: LlamaForCausalLM, folder: Path) -> None:
    # Engines read the end token from this configuration.
    model.generation_config = GenerationConfig(
        pad_token_id=VOCABULARY[PAD], eos_token_id=VOCABULARY[EOS], bos_token_id=None
    )
    model.save_pretrained(folder)
    build_tokenizer().save_pretrained(folder)
