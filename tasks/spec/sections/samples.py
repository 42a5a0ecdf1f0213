"""Several texts of a candidate for each example, and how their scores become one."""

from typing import Annotated, Self

from pydantic import BeforeValidator, Field, model_validator

from winnow.tasks.spec.spec_model import SpecModel


class SamplesSpec(SpecModel):
    """How many texts a candidate writes for each example, and what their scores come to."""

    n: int = Field(ge=2, le=100)
    """Texts, each drawn with a seed of its own."""
    reduce: Annotated[str, Field(pattern=r"^(mean|majority|best-of|pass@[1-9][0-9]{0,2})$")] = "mean"
    """mean of the scores; score of the answer that most texts give; pass@K: of K texts, the best; best-of:
    score of the text that judge best-of prefers."""

    @model_validator(mode="after")
    def _has_enough(self) -> Self:
        if (k := self.k) is not None and k > self.n:
            raise ValueError(f"{self.reduce} needs {k} texts or more, and n is {self.n}; raise n")
        return self

    @property
    def k(self) -> int | None:
        """How many texts the best is taken of; None for the other reducers."""
        return int(self.reduce.removeprefix("pass@")) if self.reduce.startswith("pass@") else None


def _spelled_out(value: object) -> object:
    """A number alone stands for so many texts, and their mean."""
    if type(value) is int:
        return None if value == 1 else {"n": value}
    return value


Samples = Annotated[
    SamplesSpec | None, BeforeValidator(_spelled_out, json_schema_input_type=SamplesSpec | int | None)
]
