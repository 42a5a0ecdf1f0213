"""What people may be asked to judge, and what is said of an answer that they judge."""

import re

import pytest

from winnow.tasks.errors import SpecError
from winnow.tasks.setup.check import check_people
from winnow.tasks.spec.campaign import CampaignSpec

HUMAN = {"type": "human", "question": "Right?", "levels": {"no": 0.0, "yes": 1.0}}
PART = "a human judge cannot be part of another judge; make it the campaign's judge"


def spec(**changes):
    values = {
        "name": "asked",
        "objective": "best-mean",
        "models": [{"name": "m", "provider": "transformers", "model": "m"}],
        "prompts": [{"name": "p", "template": "{{ input }}"}],
        "dataset": {"path": "data.jsonl"},
        "judge": HUMAN,
        "selector": {"name": "champion"},
        "stopping": {"budget": 100},
    }
    return CampaignSpec.model_validate({**values, **changes})


@pytest.mark.parametrize(
    ("changes", "path", "sentence"),
    [
        (
            {"objective": "route", "selector": {"name": "pak-ucb"}},
            "judge.type",
            "a stream of prompts cannot",
        ),
        ({"lookahead": 2}, "lookahead", "annotators judge one round at a time; remove lookahead"),
        ({"samples": 3}, "samples", "annotators judge one output for each example; remove samples"),
        (
            {"output_type": "perplexity"},
            "output_type",
            "annotators judge generated outputs, and output_type: perplexity",
        ),
        ({"judge": {"type": "all", "judges": [{"type": "exact"}, HUMAN]}}, "judge.judges[1]", PART),
        (
            {"judge": {"type": "any", "judges": [{"type": "all", "judges": [HUMAN]}]}},
            "judge.judges[0].judges[0]",
            PART,
        ),
        (
            {"judge": {"type": "exact"}, "metrics": [{"name": "liked", "judge": HUMAN}]},
            "metrics[0].judge",
            PART,
        ),
        (
            {"objective": "best-duel", "judge": {"type": "rules", "scorer": HUMAN}},
            "judge.scorer",
            PART,
        ),
    ],
)
def test_what_people_cannot_be_asked_is_refused_with_its_place(changes, path, sentence):
    with pytest.raises(SpecError, match=re.escape(sentence)) as caught:
        check_people(spec(**changes))
    assert caught.value.path == path


def test_whole_campaigns_are_for_people_and_others_are_left_alone():
    check_people(spec())
    check_people(spec(objective="best-duel", judge={"type": "human", "question": "Which?"}))
    check_people(spec(judge={"type": "exact"}, lookahead=2))
