"""Check campaigns that skip verdicts on equal outputs (`judge.spare`).

docs/how-equal-outputs-are-spared.md has the reasons for these checks.
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
"""Judges whose score depends on more than the example and the output.
All other judges receive nothing else.
"""


def check_sparing(spec: CampaignSpec) -> None:
    """Refuse a campaign whose settings do not allow `judge.spare` to skip verdicts.

    Raises:
        SpecError: A setting is incompatible; the message names it.
    """
    for number, metric in enumerate(spec.metrics):
        place = f"metrics[{number}].judge"
        if metric.judge.spare is not None:
            raise SpecError(f"is only for the campaign's judge; remove {SPARE}", path=f"{place}.{SPARE}")
        if spec.judge.spare is not None and metric.judge.tree().models:
            raise SpecError(
                f"judge.{SPARE} skips calls of judge models, and this metric would call a model for every "
                f"output; remove the metric or judge.{SPARE}",
                path=place,
            )
    if spec.judge.spare is None:
        return
    if spec.judge.spare != EQUAL:
        raise SpecError(f"must be {EQUAL}, got {spec.judge.spare!r}", path=f"judge.{SPARE}")
    for path, fits, remedy in (
        ("selector.name", spec.selector.name == SPARES, f"needs the selector {SPARES}; choose {SPARES}"),
        ("stopping.delta", spec.stopping.delta is not None, "needs delta; add stopping.delta"),
        ("fail_on_error", spec.fail_on_error == 1.0, "cannot drop candidates; set fail_on_error: 1"),
        ("groups", spec.groups is None, "does not work with groups; remove groups"),
        ("constraints", not spec.constraints, "does not work with constraints; remove constraints"),
        ("holdout", spec.holdout is None, "does not work with holdout; remove holdout"),
        ("samples", spec.samples is None, "does not work with several samples; remove samples"),
        ("tags", not spec.tags, "allows no means by tags; remove tags"),
        (
            "output_type",
            spec.output_type == "generate",
            "needs generated outputs; remove output_type",
        ),
    ):
        if not fits:
            raise SpecError(f"judge.{SPARE} {remedy}, or remove judge.{SPARE}", path=path)
    for node in spec.judge.tree().walk():
        if node.type in READS_MORE:
            raise SpecError(
                f"judge {node.type} can score equal outputs differently, so no verdict can be skipped; "
                f"remove judge.{SPARE}",
                path=f"{node.place}.type",
            )
