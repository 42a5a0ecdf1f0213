"""The class of a checked campaign, by objective."""

from winnow.tasks.objectives.best_duel import BestDuel
from winnow.tasks.objectives.best_mean import BestMean
from winnow.tasks.objectives.certify import Certify
from winnow.tasks.objectives.checked import CheckedCampaign
from winnow.tasks.objectives.route import Route
from winnow.tasks.spec import Objective

CLASSES: dict[Objective, type[CheckedCampaign]] = {
    "best-mean": BestMean,
    "best-duel": BestDuel,
    "certify": Certify,
    "route": Route,
}
