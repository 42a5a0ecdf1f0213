"""Steps of a round that an objective can replace: generating, judging, waiting."""

from collections.abc import Sequence

from winnow.algorithms.state.plugin_registry import object_at
from winnow.storage.objectives import traits_of
from winnow.storage.records.record_types import NewComparison, RoundRecord
from winnow.tasks.campaign.planned_outputs import GenerationBatch
from winnow.tasks.campaign.resolved import ResolvedCampaign
from winnow.tasks.campaign.scored import ScoredCampaign
from winnow.tasks.campaign.session import CampaignSession
from winnow.tasks.engines.protocol import ModelRef
from winnow.tasks.rounds.generate import have_outputs, plan_generations
from winnow.tasks.rounds.score import score_outputs, score_samples


class RoundSteps:
    """Steps of a round in which each output is scored by itself.

    An objective with other steps overrides some of the methods, and names its class in `Traits.steps`.
    """

    counts_failures = False
    """Whether an output counts at its worst if its judge fails on it."""

    def lacks_labels(self, campaign: CampaignSession, round_: RoundRecord) -> bool:
        """Whether the round has to wait for labels of some of its examples."""
        return False

    def generate(self, campaign: CampaignSession, round_: RoundRecord) -> GenerationBatch:
        """Generate and store every output of the round.

        Raises the errors of `round_functions.generate_round`.
        """
        return have_outputs(campaign, round_, plan_generations(campaign, round_))

    def examples_of(self, campaign: CampaignSession, round_: RoundRecord) -> list[int]:
        """Position of the example of each output, in the order of `generate`."""
        return list(round_.examples)

    def judge(
        self,
        campaign: CampaignSession,
        checked: ResolvedCampaign,
        round_: RoundRecord,
        texts: GenerationBatch,
    ) -> list[NewComparison]:
        """Return one comparison per planned one, in planned order.

        The judge of `checked` has all annotations of the round. Raises the errors of
        `round_functions.judge_round`.
        """
        assert isinstance(checked, ScoredCampaign)
        if checked.spec.samples is not None:
            return score_samples(campaign, checked.spec.samples, checked.judge, round_, texts)
        return score_outputs(campaign, checked.judge, round_, texts)

    def models_needed(self, checked: ResolvedCampaign) -> Sequence[tuple[str, ModelRef]]:
        """Models whose outputs every outcome needs, each with the key that names it."""
        return ()


def steps_of(checked: ResolvedCampaign) -> RoundSteps:
    """Create the steps of a campaign's rounds, as its objective defines them."""
    found: RoundSteps = object_at(traits_of(checked.spec.objective).steps)()
    return found
