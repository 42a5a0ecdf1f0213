"""A campaign run from a program, with an engine and a judge of its own; a notebook does the same.

Run it with: python examples/own_pieces.py
"""

import time
from collections.abc import Sequence
from pathlib import Path

import winnow
from winnow.tasks.engines.protocol import Answer, Completion, ModelRef, Request
from winnow.tasks.engines.providers import EngineSettings


@winnow.engine
class calculator:
    """Adds what stands in a prompt; in its place may stand whatever makes texts."""

    identity = "calculator 1"

    def __init__(self, model: ModelRef, settings: EngineSettings) -> None:
        self._forgets_the_carry = model.model.endswith("hasty")

    def generate(self, requests: Sequence[Request]) -> list[Answer]:
        """Answer i belongs to request i."""
        return [self._answer(request.prompt) for request in requests]

    def close(self) -> None:
        """Give back what was loaded."""

    def _answer(self, prompt: str) -> Answer:
        started = time.perf_counter()
        a, b = (int(part) for part in prompt.split("+"))
        total = a + b - 10 * (self._forgets_the_carry and a % 10 + b % 10 > 9)
        return Completion(
            text=str(total),
            finish_reason="stop",
            input_tokens=len(prompt),
            output_tokens=len(str(total)),
            seconds=time.perf_counter() - started,
        )


@winnow.judge
def close_enough(output: str, targets: Sequence[str], *, within: int = 0) -> float:
    """One for a number that is near the target."""
    return float(any(abs(int(output) - int(target)) <= within for target in targets))


result = winnow.run(
    {
        "name": "calculators",
        "objective": "best-mean",
        "models": [
            {"name": name, "provider": "calculator", "model": f"mine/{name}"} for name in ("hasty", "careful")
        ],
        "prompts": [{"name": "plain", "template": "{{ input }}"}],
        "dataset": {
            "path": Path(__file__).parent / "data.jsonl",
            "fields": {"id": "id", "input": "input", "target": "target"},
        },
        "judge": {"type": "close_enough", "within": 1},
        "selector": {"name": "champion"},
        "stopping": {"budget": 800, "delta": 0.05},
    }
)
print(result.answer.best, result.answer.claim.kind)
print(result.leaderboard()[["candidate", "estimate", "lower", "upper", "scored"]].to_string(index=False))
