"""Where a check takes place: the machine's devices, the engines that are tried and the models they load."""

import json
import shutil
import subprocess
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # which packages there are is looked at before any of them is imported
    from winnow.tasks.engines.protocol import Answer, Engine, ModelRef, Request
    from winnow.tasks.engines.providers import EngineSettings

PROVIDERS = ("vllm", "transformers")
LARGEST = "large"
"""The demo's model that is measured where no other is named."""
MOST_TOKENS = 24


@dataclass(frozen=True, kw_only=True)
class Site:
    """Where a check takes place."""

    folder: Path
    """Gets logs, caches and what campaigns leave."""
    provider: str
    device: str
    """"cuda" or "cpu"."""
    n_devices: int
    demo: Path
    model: Path | None
    """A checkpoint in the place of the demo's models."""
    texts: int
    """Requests where answers are compared."""
    budget: int | None = None
    """Comparisons of a campaign; None for those of the demo."""

    def as_json(self) -> str:
        """For another process."""
        return json.dumps(asdict(self), default=str)

    @classmethod
    def from_json(cls, text: str) -> "Site":
        """See `as_json`."""
        fields = json.loads(text)
        paths = {name: Path(fields[name]) for name in ("folder", "demo")}
        return cls(**{**fields, **paths, "model": Path(fields["model"]) if fields["model"] else None})

    @property
    def logs(self) -> Path:
        """Where engines write what they would print."""
        return self.folder / "logs"

    def checkpoint(self) -> Path:
        """The folder of the model that is measured."""
        return self.model or self.demo / LARGEST

    def model_args(self, **changes: object) -> dict[str, object]:
        """Arguments for a checkpoint: those of the demo's campaign for its own models."""
        args: dict[str, object] = {"dtype": "float32"}
        if self.model is None:
            args["max_model_len"] = 128
        if self.provider == "transformers":
            args["device"] = self.device
        elif self.model is None:
            args["enforce_eager"] = True
        return {**args, **changes}

    def reference(self, **changes: object) -> "ModelRef":
        """The model that is measured."""
        from winnow.tasks.engines.protocol import ModelRef

        args: Any = self.model_args(**changes)
        return ModelRef(
            name="measured", provider=self.provider, model=str(self.checkpoint()), model_args=args
        )

    def settings(self, **changes: Any) -> "EngineSettings":
        """How its engines are run."""
        from winnow.tasks.engines.providers import EngineSettings

        return replace(EngineSettings(log_folder=self.logs), **changes)

    @contextmanager
    def engine(
        self, args: Mapping[str, object] | None = None, **settings: Any
    ) -> Generator["Engine", None, None]:
        """An engine of the model, which is closed behind the block."""
        from winnow.tasks.engines.providers import start_engine

        engine = start_engine(self.reference(**(args or {})), self.settings(**settings))
        try:
            yield engine
        finally:
            engine.close()

    def requests(self, count: int | None = None, *, tokens: int = MOST_TOKENS) -> "list[Request]":
        """Questions of the demo, every other one answered by much chance: its models are sure of most."""
        from winnow.infra.demo.data import evaluation_examples
        from winnow.tasks.engines.protocol import Request, Sampling

        examples = evaluation_examples()
        return [
            Request(
                prompt=f"{examples[n % len(examples)].task} {examples[n % len(examples)].input} steps:",
                sampling=Sampling(temperature=1.5 if n % 2 else 0.0, max_tokens=tokens),
                seed=n,
            )
            for n in range(self.texts if count is None else count)
        ]

    def memory_used(self) -> float | None:
        """GiB that are taken of the first GPU by anybody; None where nobody says."""
        if self.device == "cpu" or shutil.which("nvidia-smi") is None:
            return None
        command = ["nvidia-smi", "--query-gpu=memory.used", "--format=csv,noheader,nounits", "--id=0"]
        said = subprocess.run(command, capture_output=True, text=True, check=False)
        return float(said.stdout) / 1024 if said.returncode == 0 else None


def trained(demo: Path, tell: Callable[[str], None]) -> None:
    """Have the demo's models in a folder, which takes minutes of the processor where they are missing."""
    from winnow.infra.demo.prepare import prepare_demo

    prepare_demo(demo, tell)


def texts_of(answers: "Sequence[Answer]") -> list[str]:
    """The texts of answers.

    Raises:
        RuntimeError: If one is none.
    """
    from winnow.tasks.engines.protocol import GenerationFailure

    for answer in answers:
        if isinstance(answer, GenerationFailure):
            raise RuntimeError(f"a request failed ({answer.reason}): {answer.detail}")
    return [answer.text for answer in answers if not isinstance(answer, GenerationFailure)]


def share_equal(ours: Sequence[str], theirs: Sequence[str]) -> str:
    """How many of two lists of texts are equal, in words."""
    equal = sum(one == other for one, other in zip(ours, theirs, strict=True))
    return f"{equal} of {len(ours)} texts equal"


def gib(memory: float | None) -> str:
    """Memory in words."""
    return "memory not known" if memory is None else f"{memory:.2f} GiB of the device taken"
