import pytest
import yaml

from winnow.flows.cli.start.starters import BEST_DUEL, STARTERS
from winnow.tasks.spec.yaml_file import load_spec


@pytest.mark.parametrize("objective", STARTERS)
def test_a_starter_is_a_spec_of_its_objective(tmp_path, objective):
    path = tmp_path / "campaign.yaml"
    path.write_text(STARTERS[objective])
    assert load_spec(path).objective == objective


def test_the_starter_for_duels_chooses_no_model_of_the_candidates():
    assert yaml.safe_load(BEST_DUEL)["selector"] == {"name": "llm-po"}
