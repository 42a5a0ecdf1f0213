"""A vision model with random weights that both transformers and vLLM load in moments."""

import torch
from tiny_models import _character_tokenizer
from transformers import (
    Idefics3Config,
    Idefics3ForConditionalGeneration,
    Idefics3Processor,
    LlamaConfig,
)

try:
    from transformers import Idefics3ImageProcessorPil as ImageProcessor
except ImportError:  # of older releases, whose own needs no torchvision
    from transformers import Idefics3ImageProcessor as ImageProcessor

IMAGE = "<image>"
SPECIAL = ["<fake_token_around_image>", IMAGE, "<end_of_utterance>", "<global-img>"]
TEMPLATE = (
    "{% for message in messages %}{{ message.role }}: {% for part in message.content %}"
    "{% if part.type == 'image' %}<image>{% else %}{{ part.text }}{% endif %}{% endfor %}\n{% endfor %}"
    "{% if add_generation_prompt %}assistant: {% endif %}"
)
SIDE, PATCH, SCALE = 16, 4, 2
"""Pixels of an image and of its patches, and how many of these are one token, along a side."""


def save_tiny_vision_model(folder, *, seed):
    """Save a checkpoint that reads an image as four tokens, and text as one token per character."""
    tokenizer = _character_tokenizer(0)
    tokenizer.add_special_tokens({"additional_special_tokens": SPECIAL})
    size = {"longest_edge": SIDE}
    Idefics3Processor(
        image_processor=ImageProcessor(size=size, max_image_size=size, do_image_splitting=False),
        tokenizer=tokenizer,
        image_seq_len=(SIDE // PATCH // SCALE) ** 2,
        chat_template=TEMPLATE,
    ).save_pretrained(folder)
    layers = {"hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2}
    config = Idefics3Config(
        vision_config={**layers, "image_size": SIDE, "patch_size": PATCH},
        text_config=LlamaConfig(
            vocab_size=len(tokenizer),
            hidden_size=32,
            intermediate_size=32,
            num_hidden_layers=1,
            num_attention_heads=1,
            num_key_value_heads=1,
            max_position_embeddings=256,
            initializer_range=0.5,
            pad_token_id=tokenizer.pad_token_id,
            eos_token_id=tokenizer.eos_token_id,
            bos_token_id=None,
        ),
        image_token_id=tokenizer.convert_tokens_to_ids(IMAGE),
        scale_factor=SCALE,
        pad_token_id=tokenizer.pad_token_id,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        Idefics3ForConditionalGeneration(config).save_pretrained(folder)
    return folder
