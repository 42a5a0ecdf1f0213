"""Questions about more tokens than vLLM tells of in one place are asked in parts, without vLLM."""

import pytest

from winnow.tasks.engines.protocol import GenerationFailure
from winnow.tasks.engines.scoring import NextToken, OptionLogprobs
from winnow.tasks.engines.vllm.loaded_model import VllmModel

REFUSED = GenerationFailure(reason="refused", detail="no")


class Told(VllmModel):
    """A model that tells of each token its number as the log-probability, a few tokens at once."""

    def __init__(self, most, refuses=()):
        self._most_options, self._refuses, self.asked = most, refuses, []

    def _outputs(self, prompts, params):
        assert all(
            each["logprobs"] == len(each["logprob_token_ids"]) <= self._most_options for each in params
        )
        self.asked += list(zip(prompts, (each["logprob_token_ids"] for each in params), strict=True))
        return [each["logprob_token_ids"] for each in params]

    def _next_token(self, output):
        if set(output) & set(self._refuses):
            return REFUSED
        return OptionLogprobs({token: -float(token) for token in output}, len(self.asked))


def question(prompt, n):
    return NextToken(ids=[prompt], options=tuple(range(n)))


@pytest.mark.parametrize(("most", "n_parts"), [(128, [1, 1, 3]), (20, [1, 7, 13]), (300, [1, 1, 1])])
def test_each_question_has_all_its_answers(most, n_parts):
    model = Told(most)
    sizes = [2, 128, 260]
    told = model._next_logprobs([question(place, n) for place, n in enumerate(sizes)])
    assert [dict(each.logprobs) for each in told] == [{t: -float(t) for t in range(n)} for n in sizes]
    assert [sum(ids == [place] for ids, _ in model.asked) for place in range(3)] == n_parts


def test_a_part_that_fails_fails_its_question_alone():
    told = Told(20, refuses=[59])._next_logprobs([question(0, 30), question(1, 60), question(2, 10)])
    assert told[1] == REFUSED
    assert [len(told[place].logprobs) for place in (0, 2)] == [30, 10]


def test_no_question_has_no_answer():
    assert Told(20)._next_logprobs([]) == []
