"""What an identity holds beside the keys of a file is known wherever such keys are listed by hand."""

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
from stored_campaigns import store_campaign

from winnow.tasks.campaign.example_seed import CONSTRAINED, seed_of_draws
from winnow.tasks.setup.definition_changes import differences
from winnow.tasks.setup.load import check_campaign_file
from winnow.tasks.spec.campaign import CampaignSpec
from winnow.tasks.spec.identity_keys import FOLLOWS, FOUND, IN_WORDS, MADE_OF

GRADER = "{name: grader, provider: transformers, model: checkpoints/small}"
RATER = f'{{type: llm, rubric: "Polite?", scale: yes/no, model: {GRADER}}}'
METRIC = f"metrics: [{{name: tone, judge: {RATER}}}]\n"
PANEL = f"{{type: llm, template: mt-bench, models: [{GRADER}]}}"
UCB_E, ASKED = "{name: ucb-e, params: {a: 1.0}}", 'template: "Q {{ input }}:"'
SOLVED = f"{ASKED}\n    few_shot: {{n: 1, from: solved.jsonl}}"
STOPS = {"{name: greedy}": "{name: greedy, stop_seqs: [';']}"}
CERTIFY = "certify: {alpha: 0.2, cost: prompt-length}\n"
EMBEDDER = "embedder: {type: precomputed, path: vectors.jsonl}\n"

FILES = {
    "best-mean": (
        {UCB_E: "{name: champion}"},
        f"{METRIC}constraints: [{{metric: tone, at_least: 0.1}}]\nholdout: 0.4\n",
    ),
    "best-duel": ({UCB_E: "{name: round-robin}", "{type: contains}": PANEL, **STOPS}, ""),
    "certify": ({UCB_E: "{name: r-eval}", "budget: 40": "budget: 4"}, METRIC + CERTIFY),
    "route": ({UCB_E: "{name: lin-ucb}", ", delta: 0.05": "", "budget: 40": "budget: 8"}, METRIC + EMBEDDER),
}
"""By objective, what its file has in the place of something, and beside: all that leaves a fingerprint."""


@pytest.fixture
def identity_of(campaign_file, folder):
    """The identity of a campaign with an objective, as it would be stored."""

    def identity(objective):
        changes, add = FILES[objective]
        path = Path(campaign_file("objective: best-mean", f"objective: {objective}", add=add))
        text = path.read_text()
        for old, new in {**changes, ASKED: SOLVED}.items():
            assert old in text
            text = text.replace(old, new)
        path.write_text(text)
        rows = ({"id": f"e{number}", "vector": [1.0, number]} for number in range(6))
        (folder / "vectors.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        (folder / "solved.jsonl").write_text('{"id": "s", "input": "9 plus", "target": "z"}\n')
        return check_campaign_file(str(path)).identity()

    return identity


def other(value):
    """A value with the same keys and places, all of which hold something else."""
    if isinstance(value, dict):
        return {key: other(each) for key, each in value.items()} or {"new": "other"}
    if isinstance(value, list):
        return [other(each) for each in value] or ["other"]
    return f"not {value}"


def beside_the_file(identity):
    return identity.keys() - CampaignSpec.model_fields.keys()


@pytest.mark.parametrize("objective", FILES)
def test_what_is_no_key_of_a_file_is_left_out_of_one_and_is_not_told_by_its_own_name(identity_of, objective):
    identity = identity_of(objective)
    assert beside_the_file(identity) <= {*FOUND}
    known = [pattern for pattern, _ in (*FOLLOWS, *IN_WORDS)]
    for key in beside_the_file(identity):
        value = identity[key] or {"new": "value"} if isinstance(identity[key], dict) else identity[key]
        found = [each.key for each in differences({key: value}, {key: other(value)})]
        assert found
        assert [each for each in found if not any(re.fullmatch(pattern, each) for pattern in known)] == []


OCCASIONAL = {
    "left_out": "models that were missing when it began",
    "history_rounds": "campaigns of its database that it learns from",
    "halving_schedule": "halving on a budget by which it rejects",
}
"""Keys that only some campaigns have, and what has to have been there."""


def test_all_that_is_left_out_of_a_file_is_in_some_identity(identity_of):
    found = set().union(*(beside_the_file(identity_of(objective)) for objective in FILES))
    assert found == {*FOUND} - OCCASIONAL.keys()


APART = {
    "name": "two campaigns that ask the same draw the same",
    "objective": "it says what is drawn, examples or duels",
    "seed": "it is an argument of its own",
    "selector": "how it searches; what of it says what is claimed is read apart",
    "selector_code": "how it searches",
    "excess": "what is said of how much better another can be, from the same draws",
    "batch_size": "how it searches",
    "lookahead": "how it searches",
    "stopping": "how long it searches",
    "fail_on_error": "who is left out",
    "dataset": "its content is dataset_fingerprint",
    "history": "its content is history_fingerprint",
    "holdout": "what is held out is not drawn",
    "held_out_fingerprint": "what is held out is not drawn",
    "served_at": "of a served model the id counts, and not where it is",
    "fresh_generations": "whether texts are new changes none of what they are made of",
    "text_rules": "they come with a release, and nobody chooses them in sight of scores",
    "target_forms": "it comes with a release, and nobody chooses it in sight of scores",
    "cut_at_stop": "it follows from the stop sequences, and from when the campaign was begun",
    "deterministic": "it follows from the judge, the candidates and whether texts are new",
}
"""Keys by which no other examples are drawn, and why not."""


@pytest.mark.parametrize("objective", ["best-mean", "best-duel"])
def test_a_change_of_anything_that_scores_are_made_of_draws_other_examples(identity_of, database, objective):
    identity = identity_of(objective)
    record = replace(store_campaign(database).record, objective=objective, spec=identity)
    seeds = {
        key: seed_of_draws(replace(record, spec={**identity, key: other(value)}))
        for key, value in identity.items()
    }
    same = {key for key, seed in seeds.items() if seed == seed_of_draws(record)}
    assert same == APART.keys() & identity.keys()


def test_all_that_draws_are_made_by_is_in_some_identity(identity_of):
    found = {key for objective in ("best-mean", "best-duel") for key in identity_of(objective)}
    assert {*MADE_OF, *CONSTRAINED} <= found | CampaignSpec.model_fields.keys()
