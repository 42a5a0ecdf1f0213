"""A checkpoint with random weights, whose tokenizer joins characters and begins each text with a token."""

from collections.abc import Sequence
from pathlib import Path


def save_joining_llama(folder: Path, texts: Sequence[str]) -> Path:
    """Save the checkpoint, its tokenizer trained on these texts; return the folder."""
    import torch
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

    joining = Tokenizer(models.BPE())
    joining.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    joining.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=400, special_tokens=["<s>", "</s>"], initial_alphabet=alphabet)
    joining.train_from_iterator(texts, trainer)
    joining.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 0)])
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=joining, bos_token="<s>", eos_token="</s>", pad_token="</s>"
    )
    tokenizer.save_pretrained(folder)
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=2,
        max_position_embeddings=512,
        initializer_range=0.2,
        bos_token_id=tokenizer.bos_token_id,
        eos_token_id=tokenizer.eos_token_id,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(7)
        LlamaForCausalLM(config).save_pretrained(folder)
    return folder
