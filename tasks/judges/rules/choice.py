r"""Multiple choice: the option that the output chooses.

`tasks.judges.rules.reading.choice_reading` finds the option. An option counts if the output states it ("the
answer is (B)", "B is correct"), boxes it (`\boxed{B}`) or gives it a separate line; if there are several, the
last one counts. If no option is stated, the only option that is named and not rejected is the choice. If
several are named, the output has no choice: otherwise the score would be that of a guess.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated, ClassVar

from pydantic import Field

from winnow.tasks.judges.protocol import RIGHT_OR_WRONG, Judge, Sample, Verdict
from winnow.tasks.judges.rules.reading.choice_reading import ChoiceReader, folded


@dataclass(frozen=True, slots=True, kw_only=True)
class ChoiceJudge(Judge[Sample]):
    """The option that the output finally chooses is a target."""

    scale: ClassVar = RIGHT_OR_WRONG

    options: Annotated[Sequence[str], Field(min_length=2)] = ("A", "B", "C", "D", "E")
    """Labels to choose from: letters, or words such as yes and no."""
    _names: dict[str, str] = field(init=False, repr=False)
    _reader: ChoiceReader = field(init=False, repr=False)

    def __post_init__(self) -> None:
        labels = [folded(option) for option in self.options]
        if "" in labels or len(set(labels)) < len(labels):
            raise ValueError(f"options must be different and not empty, got {list(self.options)}")
        object.__setattr__(self, "_names", dict(zip(labels, self.options, strict=True)))
        object.__setattr__(self, "_reader", ChoiceReader(self.options))

    def judge(self, sample: Sample) -> Verdict:
        """Score 1 if the choice is a target, else 0; without a choice, the output has no answer."""
        if not sample.targets:
            return Verdict.unscored("no_target")
        wanted = {folded(target) for target in sample.targets} & self._names.keys()
        if not wanted:
            return Verdict.unscored("unreadable_target")
        choice = self._reader.read(sample.output)
        if choice is None:
            return Verdict.unscored("no_choice")
        return Verdict.scored(choice in wanted, self._names[choice])
