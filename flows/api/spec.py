"""`winnow.Spec`: a campaign's definition, which can be checked, forecast and run."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Unpack

from winnow.algorithms.state.plugin_registry import object_at
from winnow.tasks.setup.typed_spec import SpecKeys, TypedSpec

if TYPE_CHECKING:
    from winnow.flows.api.plans import CampaignCeiling, CampaignPlan
    from winnow.flows.api.results import Campaign
    from winnow.flows.run.validation import Validation

PLAN = "winnow.flows.api.plans:plan"
"""Import path of the forecast function."""


class Spec(TypedSpec):
    """A campaign's definition: the keys of a campaign's file as typed keywords.

        spec = winnow.Spec(
            name="tickets",
            models=["openai:gpt-x", winnow.Model(name="small", provider="transformers", model="./small")],
            prompts=["Label: {{ text }}"],
            dataset=winnow.Dataset(path="tickets.csv", fields=winnow.Fields(input="text", target="label")),
            judge="normalised",
        )
        campaign = spec.run()

    Checks, short forms, defaults and identity are the same as for a campaign's file. A spec is immutable;
    `replace` returns a changed copy. If a benchmark (`task`) must run before its prompts are known, the
    spec has placeholders for them.

    Raises:
        SpecError: If a key is invalid, with one line per mistake.
    """

    def __init__(self, **keys: Unpack[SpecKeys]) -> None:  # else type checkers infer another signature
        super().__init__(**keys)

    def run(self, *, progress: bool = False, trust: bool = False) -> "Campaign":
        """Run or continue the campaign until it ends; see `winnow.run`."""
        from winnow.flows.api.run import run

        return run(self, progress=progress, trust=trust)

    def validate(self, *, trust: bool = False) -> "Validation":  # type: ignore[override] # pydantic's is deprecated
        """Check the definition and everything that it refers to.

        Without `trust`, this sends no request, stores nothing and runs no code of the spec.

        Args:
            trust: Give and store all permissions that a run needs. This call then runs the spec's code, and
                downloads a missing dataset.

        Returns:
            The findings, as fields; the `str` is the output of `winnow validate`.

        Raises:
            SpecError: If the definition is invalid.
        """
        from winnow.flows.run.validation import validate

        return validate(self.file, trust=trust)

    def plan(
        self,
        *,
        assume: str | Mapping[str, float] | None = None,
        table: str | None = None,
        like: str | None = None,
        rate: float | None = None,
        seeds: int = 20,
        workers: int | None = None,
        trust: bool = False,
    ) -> "CampaignPlan | CampaignCeiling":
        """Forecast requests, tokens, price, hours and detectable differences; see `winnow.plan`."""
        plan: Callable[..., CampaignPlan | CampaignCeiling] = object_at(PLAN)
        return plan(
            self,
            assume=assume,
            table=table,
            like=like,
            rate=rate,
            seeds=seeds,
            workers=workers,
            trust=trust,
        )
