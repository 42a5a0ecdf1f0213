"""A judge and a real engine: what the one wants, the other can do."""

import pytest
from scripted_judges import duel, play
from tiny_models import save_tiny_llama

from winnow.tasks.engines.protocol import ModelRef, Request
from winnow.tasks.engines.transformers.engine import TransformersEngine
from winnow.tasks.judges.registry import create_pair_judge

SHORT = "{answer_a}|{answer_b}="


@pytest.fixture(scope="module")
def spec(tmp_path_factory):
    folder = save_tiny_llama(tmp_path_factory.mktemp("judge"), seed=0)
    return {"name": "tiny", "provider": "transformers", "model": str(folder)}


@pytest.mark.parametrize("read", ["text", "choice", "probabilities"])
def test_a_model_that_knows_nothing_still_gives_what_it_is_held_to(spec, read):
    judge = create_pair_judge(
        "llm",
        models=[spec],
        template=SHORT,
        verdict_format="[[A]]",
        read=read,
        max_tokens=4,
        order_aggregation="mean",
    )
    engine = TransformersEngine(ModelRef(name="tiny", provider="transformers", model=spec["model"]))

    def say(call):
        (reply,) = engine.generate([Request(prompt=call.prompt, sampling=call.sampling, seed=call.seed or 0)])
        return reply

    outcomes = [play(judge, duel(str(i), "9"), say)[0].score for i in range(6)]
    if read == "text":
        assert set(outcomes) == {None}
    elif read == "choice":
        assert set(outcomes) <= {0.0, 0.25, 0.5, 0.75, 1.0}
    else:
        assert len(set(outcomes)) == 6
        assert all(0.0 < outcome < 1.0 for outcome in outcomes)
