"""LLM judges whose models are a function in the test."""

from winnow.tasks.engines.protocol import GenerationFailure
from winnow.tasks.judges.asking.calls import JudgeReply
from winnow.tasks.judges.protocol import Duel
from winnow.tasks.judges.registry import create_pair_judge

MODEL = {"name": "m", "provider": "transformers", "model": "owner/judge"}
BROKEN = GenerationFailure(reason="engine_failed", detail="gone")


def panel(*ids, **params):
    """An LLM judge of models with these ids."""
    models = [{**MODEL, "judge_id": each} for each in ids or ("j1",)]
    return create_pair_judge("llm", models=models, **params)


def duel(answer_a="first answer", answer_b="second answer", **fields):
    return Duel(**{"question": "Why?", "answer_a": answer_a, "answer_b": answer_b, "seed": 7, **fields})


def play(judge, this, say):
    """The verdict, and every batch of calls: `say` turns a call into a text or a reply."""
    replies, batches = {}, []
    while wanted := judge.calls(this, replies):
        assert not replies.keys() & set(wanted)
        batches.append(wanted)
        for call in wanted:
            said = say(call)
            replies[call] = JudgeReply(text=said) if isinstance(said, str) else said
    return judge.told(replies).judge(this), batches


def outcome(judge, this, say):
    return play(judge, this, say)[0].score
