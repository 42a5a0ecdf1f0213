"""The parameters of the LLM judge of single outputs; see `tasks.judges.asking.panel`."""

from collections.abc import Mapping, Sequence
from typing import Annotated

from pydantic import Field

from winnow.storage.json_types import JsonObject
from winnow.tasks.errors import JudgeError
from winnow.tasks.judges.asking.judge_models import JudgeModel, check_counts, judge_model, judge_models
from winnow.tasks.judges.asking.panel import Panel
from winnow.tasks.judges.pointwise import rating_prompt
from winnow.tasks.judges.pointwise.points import FORMULA, UNIT, ScaleName, points_of
from winnow.tasks.judges.pointwise.rating import Aggregation, Rating, Read
from winnow.tasks.judges.protocol import Sample, Scale
from winnow.tasks.spec.sections.generate_config import GenerateConfig
from winnow.tasks.text.canonical_json import sha256


class LlmJudge:
    """A language model scores the output by a rubric, with the targets available or without them."""

    scale = Scale(unit=UNIT, formula=FORMULA)

    @staticmethod
    def code(**params: object) -> JsonObject:
        """A digest of the texts that its prompts use besides its parameters."""
        return {
            "prompt": sha256(
                [rating_prompt.HEAD, rating_prompt.EXAMPLE, rating_prompt.REFERENCE, rating_prompt.OUTPUT]
            )
        }

    def __call__(
        self,
        *,
        rubric: str | Mapping[str, str],
        scale: ScaleName,
        model: Mapping[str, object] | None = None,
        models: Sequence[Mapping[str, object]] | None = None,
        reference: bool = False,
        read: Read = "probabilities",
        max_reasks: Annotated[int, Field(ge=0, le=10)] = 1,
        repeats: Annotated[int, Field(ge=1, le=100)] = 1,
        aggregation: Aggregation = "mean",
        min_valid_judges: Annotated[int, Field(ge=1)] = 1,
        max_tokens: Annotated[int, Field(ge=1)] = 1024,
        temperature: Annotated[float, Field(ge=0.0, le=10.0)] = 0.0,
    ) -> Panel[Sample]:
        """Create the judge.

        Args:
            rubric: Description of a good output: a text, or criteria by name.
            scale: The scale on which the model rates an output.
            model: The model that judges, with the keys of a campaign's models.
            models: Several of them, instead of one.
            reference: Whether the model is shown the targets; an example without any is then unscored.
            read: "probabilities" of the points of the scale, or the verdict in the "text".
            max_reasks: Maximum number of times that a text without a verdict is requested again.
            repeats: Number of times that a text is requested; above 1 only at a temperature.
            aggregation: The rule for combining the scores of repeats, and then of judges.
            min_valid_judges: Judges that must have an opinion for the output to be scored.
            max_tokens: Length of a text, in tokens.
            temperature: 0 is greedy.

        Raises:
            SpecError: With the parameter, what is wrong and what to do.
        """
        _check_rubric(rubric)
        judges = _judges(model, models, GenerateConfig(temperature=temperature, max_tokens=max_tokens))
        check_counts(judges, repeats, min_valid_judges)
        if repeats > 1 and read == "probabilities":
            raise JudgeError(
                f"probabilities are the same every time, {repeats} repeats would be too; set read: text or "
                "repeats: 1",
                "judge.repeats",
            )
        points = points_of(scale)
        reply_format = points.instructions(reasoned=read == "text")
        form = Rating(
            points=points,
            beginning=rating_prompt.head(rating_prompt.rubric_text(rubric), reply_format),
            reference=reference,
            weighs=read == "probabilities",
            aggregation=aggregation,
        )
        return Panel(
            judges=judges,
            form=form,
            max_reasks=max_reasks,
            repeats=repeats,
            min_valid_judges=min_valid_judges,
        )


llm_judge = LlmJudge()


def _check_rubric(rubric: str | Mapping[str, str]) -> None:
    texts = [rubric] if isinstance(rubric, str) else [*rubric, *rubric.values()]
    if not texts or not all(text.strip() for text in texts):
        raise JudgeError("is empty; describe a good output, or give criteria by name", "judge.rubric")


def _judges(
    model: Mapping[str, object] | None,
    models: Sequence[Mapping[str, object]] | None,
    defaults: GenerateConfig,
) -> tuple[JudgeModel, ...]:
    if bool(model) == bool(models):
        raise JudgeError("no judge model: give model, or models for several", "judge.model")
    if model:
        return (judge_model(model, defaults, "judge.model"),)
    return judge_models(models or (), defaults)
