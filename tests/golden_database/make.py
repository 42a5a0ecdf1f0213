"""Make the golden database and the outcomes of its campaigns: python -m tests.golden_database.make FOLDER

It was run once. Run again with later code, it would hold that code against itself.
"""

import gzip
import json
import os
import shutil
import sqlite3
import string
import sys
from contextlib import chdir, closing
from multiprocessing import get_context
from pathlib import Path

import pytest
import torch
import yaml
from campaign_processes import Kill, kill_at_commit
from campaigns import winnow
from faulty_server import faulty_server
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, processors
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast
from without_prefect import leave_prefect_out

from tests.golden_database.campaigns import (
    CAMPAIGNS,
    DATABASE,
    HERE,
    N_EXAMPLES,
    OUTCOMES,
    SERVED_AT,
    Golden,
    outcome,
    place_files,
)
from winnow.tasks.engines.known_providers import PROVIDERS

SPECIAL = ["<s>", "</s>", "<unk>", "<think>", "</think>"]
CHARACTERS = sorted(set(string.printable) - set("\r\x0b\x0c"))


def save_model(folder: Path) -> None:
    """A tiny Llama with random weights, a token for each character, and a tokenizer that puts <s> first."""
    vocabulary = {token: number for number, token in enumerate(SPECIAL + CHARACTERS)}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex(r"[\s\S]"), behavior="isolated")
    tokenizer.decoder = decoders.Fuse()
    tokenizer.add_special_tokens([AddedToken(token, special=True) for token in SPECIAL])
    tokenizer.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 0)])
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, bos_token="<s>", eos_token="</s>", unk_token="<unk>", pad_token="</s>"
    )
    fast.chat_template = (
        "{{ bos_token }}{% for m in messages %}[{{ m['role'] }}]{{ m['content'] }}{% endfor %}[a]"
    )
    fast.save_pretrained(folder)
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=len(fast),
        hidden_size=32,
        intermediate_size=32,
        num_hidden_layers=1,
        num_attention_heads=1,
        num_key_value_heads=1,
        max_position_embeddings=256,
        initializer_range=0.3,
        bos_token_id=0,
        eos_token_id=1,
        pad_token_id=1,
    )
    LlamaForCausalLM(config).save_pretrained(folder)


def save_data(folder: Path) -> None:
    rows = [
        {"id": f"e{i}", "input": f"{i * 7} and {i}", "target": "aeioustrn"[i % 9]} for i in range(N_EXAMPLES)
    ]
    (folder / "data.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


def begin(folder: Path, golden: Golden, url: str) -> None:
    """Run a campaign until it kills itself, is stopped by a limit or ends, in a process of its own."""
    values = json.loads(json.dumps(golden.spec).replace(SERVED_AT, url))
    (folder / "campaign.yaml").write_text(yaml.safe_dump(values, sort_keys=False))
    process = get_context("fork").Process(target=_run, args=(folder, golden))
    process.start()
    process.join()
    if (golden.killed_at is None and process.exitcode != 0) or (golden.killed_at and process.exitcode != -9):
        raise SystemExit(f"{values['name']} ended with {process.exitcode}")
    with closing(sqlite3.connect(folder / DATABASE)) as database, database:
        database.execute("UPDATE leases SET released_at = heartbeat_at WHERE released_at IS NULL")


def _run(folder: Path, golden: Golden) -> None:
    if golden.killed_at is not None:
        kill_at_commit(Kill(commit=golden.killed_at, after=True))
    ran = winnow(folder, "run", "campaign.yaml", "--trust")
    print(golden.spec["name"], ran.returncode, ran.stdout[:300], ran.stderr[-300:], flush=True)
    os._exit(0 if ran.returncode in (0, 3) else 1)


def resume(folder: Path, name: str, *options: str) -> None:
    ran = winnow(folder, "resume", name, "--storage", f"sqlite:///{DATABASE}", "--trust", *options)
    print(name, ran.returncode, ran.stdout[:300], ran.stderr[-300:], flush=True)
    assert ran.returncode in (0, 3), ran.stderr


def scrub(path: Path) -> None:
    """Take out what says where it was made."""
    with closing(sqlite3.connect(path)) as database:
        with database:
            database.execute("UPDATE leases SET host = 'golden', pid = 1, boot_id = '', pid_namespace = ''")
            database.execute("DELETE FROM file_digests")
        database.execute("PRAGMA journal_mode = DELETE")
        database.execute("VACUUM")


def main() -> None:
    folder = Path(sys.argv[1])
    folder.mkdir()
    files = HERE / "files"
    if not files.exists():
        save_model(files / "model")
        save_data(files)
    place_files(folder)
    patch = pytest.MonkeyPatch()
    patch.setitem(PROVIDERS, "digest", "tests.faults.digest_engine:start")
    leave_prefect_out(patch)
    with faulty_server() as server:
        for golden in CAMPAIGNS.values():
            begin(folder, golden, server.url)
    scrub(folder / DATABASE)
    left = {name: outcome(folder / DATABASE, name) for name in CAMPAIGNS}
    with (
        (folder / DATABASE).open("rb") as file,
        (HERE / f"{DATABASE}.gz").open("wb") as to,
        gzip.GzipFile(fileobj=to, mode="wb", mtime=0, filename="") as packed,
    ):
        shutil.copyfileobj(file, packed)
    found = {}
    with faulty_server() as server, chdir(folder):
        for name, golden in CAMPAIGNS.items():
            resume(folder, name, *golden.options_at(server.url))
            found[name] = {"left": left[name], "ended": outcome(folder / DATABASE, name)}
    OUTCOMES.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
