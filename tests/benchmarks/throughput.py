"""Campaigns beside one call of an engine that is asked the same, with rounds ahead and with a judge beside.

python -m tests.benchmarks.throughput --out .winnow/bench [--real]

Scripted: on an engine that sleeps for as long as a machine of 64 places would write, see `lookahead`. Real:
vLLM on this machine, with checkpoints of random weights; texts are as long as a log-normal number says.
"""

import argparse
import json
import re
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any, cast
from unittest import mock

from tests.benchmarks import campaign_over_generate as generate
from tests.benchmarks import lookahead
from tests.benchmarks.lookahead import HeavyTailedEngine, Measured, Text, campaign, campaigns
from tests.benchmarks.tables import Row, told, write
from tests.tiny_models import save_tiny_llama
from winnow.flows.prefect_support.environment import settle_environment
from winnow.tasks.campaign.resolved import ResolvedCampaign
from winnow.tasks.engines import providers
from winnow.tasks.engines.protocol import Answer, Completion, ModelRef, Request
from winnow.tasks.engines.providers import EngineSettings
from winnow.tasks.engines.vllm.engine import VllmEngine

AHEAD: tuple[int | str, ...] = (0, "auto")
CONTEXT = 640
TITLES = {
    "scripted": "Texts of 8 to 512 tokens (log-normal, sigma 1.2), 64 at once, a scripted engine; "
    "20 candidates x 600 examples; over one call with the same texts",
    "judges": "The same with a judge that writes as much, on an engine of its own",
    "lengths": "The same campaigns without a judge on vLLM, over one LLM.generate of the same requests",
    "overhead": "Campaigns of 2 048 texts of up to 24 tokens on vLLM, rounds of 1 024, over one LLM.generate",
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path(".winnow/bench"))
    parser.add_argument("--real", action="store_true", help="on vLLM as well; takes minutes")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    settle_environment(options.out / "prefect")
    found = {"scripted": told(campaigns(AHEAD)), "judges": told(_judges())}
    if options.real:
        with tempfile.TemporaryDirectory() as folder:
            found["lengths"] = told(_lengths(Path(folder)))
            found["overhead"] = told(_overhead(Path(folder)))
    write("throughput", TITLES, found, options.out)


class HeavyTailedJudge(HeavyTailedEngine):
    """Takes as long over a verdict as over a text, and says whether it is the reference."""

    def answer(self, prompt: str) -> Completion:
        number = sum(map(ord, prompt))
        answer = super().answer(f"{number % 97} {number}")
        reference, output = (re.search(rf"{end} >>>\n(.*)\n", prompt) for end in ("right", "[0-9a-f] output"))
        is_right = reference is not None and output is not None and reference.group(1) == output.group(1)
        return replace(answer, text=f"[[{'yes' if is_right else 'no'}]]")


def start_judge(model: ModelRef, settings: EngineSettings) -> HeavyTailedJudge:
    return HeavyTailedJudge()


def _judges() -> Iterator[Row]:
    providers.PROVIDERS["heavy-judge"] = "tests.benchmarks.throughput:start_judge"
    for ahead in AHEAD:
        for when, how in (
            ("once its round is there", mock.patch.object(ResolvedCampaign, "judges_ahead", False)),
            ("as texts come", nullcontext()),
        ):
            with tempfile.TemporaryDirectory() as folder, how:
                found = campaign(ahead, judge=_judge(Path(folder)), execution=_devices(Path(folder)))
            yield {
                "lookahead": f"{ahead} ({found.ahead})",
                "judge is asked": when,
                "seconds": f"{found.seconds:.1f}",
                "comparisons": str(found.comparisons),
            }


def _judge(folder: Path) -> dict[str, object]:
    (folder / "config.json").write_text(json.dumps({"name": "judge"}))
    model = {"name": "judging", "provider": "heavy-judge", "model": str(folder)}
    how = {"rubric": "The output is the reference.", "scale": "yes/no", "reference": True, "read": "text"}
    return {"type": "llm", "model": model, **how}


def _devices(folder: Path) -> dict[str, object]:
    return {"group_size": 16, "devices": [0, 1], "log_folder": str(folder)}


class HeavyTailedVllm:
    """vLLM that writes as many tokens as a `HeavyTailedEngine` would, and says what that would say."""

    joins = True

    def __init__(self, model: ModelRef, settings: EngineSettings) -> None:
        self._engine = VllmEngine(replace(model, provider="vllm"), settings)
        self._scripted = HeavyTailedEngine()

    @property
    def identity(self) -> str:
        return self._engine.identity

    def generate(self, requests: Sequence[Request]) -> list[Answer]:
        scripted = [self._scripted.answer(each.prompt) for each in requests]
        asked = [
            replace(each, sampling=replace(each.sampling, max_tokens=answer.output_tokens, logit_bias=NO_END))
            for each, answer in zip(requests, scripted, strict=True)
        ]
        written = self._engine.generate(asked)
        return [replace(each, text=answer.text) for each, answer in zip(written, scripted, strict=True)]

    def close(self) -> None:
        self._engine.close()


NO_END = ((1, -100.0),)
"""No text ends by itself: 1 is the end of a text in the vocabulary of tiny models."""


def start_vllm(model: ModelRef, settings: EngineSettings) -> HeavyTailedVllm:
    return HeavyTailedVllm(model, settings)


def heavy_model(folder: Path, **args: object) -> dict[str, object]:
    """A model of a campaign's file that runs on a `HeavyTailedVllm`, its weights random and in the folder."""
    providers.PROVIDERS["heavy-vllm"] = "tests.benchmarks.throughput:start_vllm"
    checkpoint = save_tiny_llama(folder / "model", seed=1, hidden=64, layers=2)
    config = json.loads((checkpoint / "config.json").read_text())
    (checkpoint / "config.json").write_text(json.dumps(config | {"max_position_embeddings": CONTEXT}))
    args = {"max_model_len": CONTEXT, "max_num_seqs": lookahead.PLACES, "dtype": "float32", **args}
    return {"name": "model", "provider": "heavy-vllm", "model": str(checkpoint), "model_args": args}


def _lengths(folder: Path) -> Iterator[Row]:
    model = heavy_model(folder)
    for ahead in AHEAD:
        found = campaign(ahead, models=[model])
        plain = plain_lengths(folder, model, found)
        yield {
            "lookahead": f"{ahead} ({found.ahead})",
            "seconds": f"{found.seconds:.1f}",
            "one call": f"{plain:.1f}",
            "over one call": f"{found.seconds / plain:.2f}",
            "comparisons": str(found.comparisons),
        }


def plain_lengths(folder: Path, model: dict[str, object], found: Measured) -> float:
    """Seconds of one `LLM.generate` of a campaign's requests, see `heavy_model`, the engine being warm."""

    def params(text: Text) -> dict[str, object]:
        return {"temperature": 0.0, "max_tokens": text.tokens, "logit_bias": dict(NO_END)}

    prompts = [each.prompt for each in found.texts]
    args: Any = {"model": model["model"], **cast("dict[str, object]", model["model_args"])}
    return generate.plain_generate(folder, args, prompts, [params(each) for each in found.texts])["seconds"]


def _overhead(folder: Path) -> Iterator[Row]:
    data = folder / "data.jsonl"
    sums = [{"id": f"e{n}", "task": "add", "input": f"{7 * n}+{n}", "target": f"{8 * n}"} for n in range(512)]
    data.write_text("".join(json.dumps(row) + "\n" for row in sums))
    for layers, hidden, target in ((4, 256, "1.05 at 2.4 ms a text"), (1, 64, "1.10 at 0.6 ms a text")):
        checkpoint = save_tiny_llama(folder / f"layers-{layers}", seed=1, hidden=hidden, layers=layers)
        what = f"a model of {layers} layer{'s' * (layers > 1)}"
        found = generate.measured(folder, data, what, checkpoint, 2048, target)
        yield {"what": found.what, "measured": found.value, "at most": found.target}


if __name__ == "__main__":
    main()
