"""The demo's duels: what the judge learns from, its campaign file, and that nobody pays for it unasked."""

from collections import Counter
from itertools import islice

import pytest
import yaml
from test_demo_preparation import RECIPES, Trainer, contents, prepare

from winnow.infra.demo.data import evaluation_inputs
from winnow.infra.demo.pairs import Pair, judged_pairs, judged_texts
from winnow.infra.demo.prepare import prepare_duels
from winnow.infra.demo.prompts import JUDGE_TEMPLATE
from winnow.infra.demo.recipes import CONTEXT, DUELLISTS, JUDGE
from winnow.infra.demo.training import CHARACTERS
from winnow.tasks.judges.pairwise.pair_template import load_template
from winnow.tasks.judges.pairwise.protocol import Duel
from winnow.tasks.setup.load import check_campaign_file


@pytest.fixture(scope="module")
def pairs():
    return list(islice(judged_pairs(1), 3_000))


def pair(first, second):
    return Pair(task="sum", input="1+2", first=first, second=second)


def test_the_shorter_answer_is_preferred_in_either_place():
    assert pair("3", "03>3").verdict == pair("03>3", "3").swapped.verdict == "A"
    assert pair("03>3", "3").verdict == pair("3", "03>3").swapped.verdict == "B"
    assert pair("3", "4").verdict == "C"


def test_the_judge_learns_from_pairs_of_all_kinds_and_from_no_evaluation_input(pairs):
    verdicts = Counter(each.verdict for each in pairs)
    assert min(verdicts["A"], verdicts["B"]) > 900
    assert verdicts["C"] > 300
    assert min(Counter(each.task for each in pairs).values()) > 500
    assert not any(each.input in evaluation_inputs()[each.task] for each in pairs)


def test_every_pair_is_learned_in_both_orders(pairs):
    texts = list(islice(judged_texts(1), 200))
    for each, (shown, swapped) in zip(pairs, zip(texts[::2], texts[1::2], strict=True), strict=False):
        assert (shown.prompt, shown.answer) == (each.prompt, each.verdict)
        assert (swapped.prompt, swapped.answer) == (each.swapped.prompt, each.swapped.verdict)


def test_the_prompts_it_learns_are_those_the_campaign_asks_and_fit_its_context(pairs):
    template = load_template(JUDGE_TEMPLATE)
    for each in pairs[:200]:
        duel = Duel(
            question=each.input,
            answer_a=each.first,
            answer_b=each.second,
            fields={"task": each.task, "input": each.input},
            seed=1,
        )
        assert template.prompt(duel, "original", "") == each.prompt
        assert template.prompt(duel, "swapped", "") == each.swapped.prompt
        assert set(each.prompt) <= set(CHARACTERS)
    assert max(len(each.prompt) for each in pairs) < CONTEXT


def test_the_campaign_of_duels_can_be_run_as_it_is_written(tmp_path):
    folder = tmp_path / "demo"
    campaign = prepare_duels(folder, lambda line: None, train=CheckpointWriter())
    assert sorted(path.name for path in folder.iterdir() if path.is_dir()) == [
        "data", "judge", "large", "medium",
    ]  # fmt: skip
    checked = check_campaign_file(str(campaign))
    assert checked.spec.objective == "best-duel"
    assert len(checked.candidates) == 9
    assert [model.name for model in checked.models] == ["medium", "large", "judge"]
    assert checked.spec.execution.max_loaded == 3
    checked.create_selector()


def test_the_judge_is_trained_once_and_only_where_duels_are_asked_for(tmp_path):
    folder, trainer, again = tmp_path / "demo", Trainer(), Trainer()
    prepare(folder, trainer)
    assert trainer.trained == [recipe.name for recipe in RECIPES]
    assert not (folder / "duel.yaml").exists()
    prepare_duels(folder, lambda line: None, RECIPES, JUDGE, again)
    assert again.trained == ["judge"]
    before = contents(folder)
    prepare_duels(folder, lambda line: None, RECIPES, JUDGE, again)
    assert again.trained == ["judge"]
    assert contents(folder) == before


def test_the_duellists_are_checkpoints_of_the_other_demo_which_are_not_trained_again(tmp_path):
    folder, trainer = tmp_path / "demo", Trainer()
    prepare(folder, trainer, DUELLISTS)
    prepare_duels(folder, lambda line: None, train=trainer)
    assert trainer.trained == ["medium", "large", "judge"]


def test_file_names_that_yaml_would_misread_are_quoted(tmp_path):
    folder = tmp_path / "de mo: #1"
    campaign = yaml.safe_load(prepare_duels(folder, lambda line: None, train=Trainer()).read_text())
    assert campaign["judge"]["models"][0]["model"] == str(folder / "judge")
    assert campaign["judge"]["template"] == JUDGE_TEMPLATE


class CheckpointWriter(Trainer):
    """Leaves what a campaign looks for in a checkpoint before it is loaded."""

    def __call__(self, jobs, finished):
        super().__call__(jobs, finished)
        for job in jobs:
            (job.folder / "config.json").write_text("{}")
