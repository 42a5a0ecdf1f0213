"""Which campaigns can do without verdicts on equal outputs, `judge.spare: equal-outputs`.

docs/how-equal-outputs-are-spared.md has the reasons.
"""

from winnow.tasks.errors import SpecError
from winnow.tasks.spec.campaign import CampaignSpec
from winnow.tasks.spec.judge_tree import SPARE
from winnow.tasks.spec.selector_traits import SPARES

EQUAL = "equal-outputs"
READS_MORE = frozenset(
    {"acc", "acc_norm", "best-of", "bits_per_byte", "byte_perplexity", "greedy", "inspect", "inspect-graded",
     "lm-eval", "recorded", "reported", "word_perplexity"}
)  # fmt: skip
"""Judges that score by more than the example and the output; all others are shown nothing else."""


def check_sparing(spec: CampaignSpec) -> None:
    """Refuse a campaign whose settings do not allow `judge.spare` to skip verdicts.

    Raises:
        SpecError: If a setting is incompatible; the message names it.
    """
    for number, metric in enumerate(spec.metrics):
        place = f"metrics[{number}].judge"
        if metric.judge.spare is not None:
            raise SpecError("is for the campaign's judge; remove it here", path=f"{place}.{SPARE}")
        if spec.judge.spare is not None and metric.judge.tree().models:
            raise SpecError(
                f"judge.{SPARE} spares the calls of models, and this metric would make them all the same; "
                f"remove the metric or judge.{SPARE}",
                path=place,
            )
    if spec.judge.spare is None:
        return
    if spec.judge.spare != EQUAL:
        raise SpecError(f"must be {EQUAL}, got {spec.judge.spare!r}", path=f"judge.{SPARE}")
    for path, fits, remedy in (
        ("selector.name", spec.selector.name == SPARES, f"needs the selector {SPARES}; choose it"),
        ("stopping.delta", spec.stopping.delta is not None, "needs delta; add it"),
        ("fail_on_error", spec.fail_on_error == 1.0, "drops no candidate; set fail_on_error: 1"),
        ("groups", spec.groups is None, "does not work with groups; remove them"),
        ("constraints", not spec.constraints, "does not work with constraints; remove them"),
        ("holdout", spec.holdout is None, "does not work with holdout; remove it"),
        ("samples", spec.samples is None, "does not work with several samples; remove samples"),
        ("tags", not spec.tags, "leaves no means by tags; remove tags"),
        (
            "output_type",
            spec.output_type == "generate",
            "compares what models write; remove output_type",
        ),
    ):
        if not fits:
            raise SpecError(f"judge.{SPARE} {remedy}, or remove judge.{SPARE}", path=path)
    for node in spec.judge.tree().walk():
        if node.type in READS_MORE:
            raise SpecError(
                f"judge {node.type} can score equal outputs differently, so none can be spared; remove "
                f"judge.{SPARE}",
                path=f"{node.place}.type",
            )
