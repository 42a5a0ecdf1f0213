"""Training of one small Llama on the texts of its recipe."""

from collections.abc import Iterator
from itertools import batched
from pathlib import Path

import torch
from transformers import GenerationConfig, LlamaConfig, LlamaForCausalLM

from infra.demo.data import TrainingText, training_texts
from infra.demo.recipes import Recipe
from infra.demo.tokenizer import EOS, PAD, UNKNOWN, VOCABULARY, build_tokenizer
