"""Judging by models without an engine: whoever asks is answered by a function of the call."""

from winnow.tasks.judges.asking.calls import JudgeReply
from winnow.tasks.judges.protocol import Sample
from winnow.tasks.judges.registry import create_judge

GRADER = {
    "name": "grader",
    "provider": "openai",
    "model": "grader",
    "model_base_url": "http://localhost:1/v1",
}


def rater(type_="llm", **params):
    """A model judge; by default one that writes texts on a scale of five."""
    given = {"model": GRADER, "rubric": "Is it right?", "scale": "1..5", "read": "text"} | params
    return create_judge(type_, **{key: value for key, value in given.items() if value is not None})


def sample(output="an output", targets=(), **fields):
    return Sample(output=output, targets=targets, fields={"input": "a question", **fields})


def asked(judge, shown, reply):
    """The verdict, and every call in the order in which it was wanted."""
    replies, calls = {}, []
    while wanted := judge.calls(shown, replies):
        calls += wanted
        replies |= {call: reply(call) for call in wanted}
    return judge.told(replies).judge(shown), calls


def saying(*texts):
    """Replies by attempt; the last one again and again."""
    return lambda call: JudgeReply(text=texts[min(call.attempt, len(texts) - 1)])
