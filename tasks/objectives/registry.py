"""The class of a checked campaign, by objective."""

from tasks.objectives.best_duel import BestDuel
from tasks.objectives.best_mean import BestMean
from tasks.objectives.certify import Certify
from tasks.objectives.checked import CheckedCampaign
from tasks.objectives.route import Route
from tasks.spec import Objective

CLASSES: dict[Objective, type[CheckedCampaign]] = {
    "best-mean": BestMean,
    "best-duel": BestDuel,
    "certify": Certify,
    "route": Route,
}
