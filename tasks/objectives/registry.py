"""The class of a checked campaign, by objective."""

from winnow.tasks.objectives.best_duel.objective import BestDuel
from winnow.tasks.objectives.best_mean.objective import BestMean
from winnow.tasks.objectives.certify.objective import Certify
from winnow.tasks.objectives.resolved import ResolvedCampaign
from winnow.tasks.objectives.route.objective import Route
from winnow.tasks.spec.campaign import Objective

CLASSES: dict[Objective, type[ResolvedCampaign]] = {
    "best-mean": BestMean,
    "best-duel": BestDuel,
    "certify": Certify,
    "route": Route,
}
