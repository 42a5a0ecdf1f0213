"""Texts, choices and continuations, each asked for in its way: the same for all engines that encode."""

from collections.abc import Callable, Sequence

from winnow.tasks.engines.choices.choice_scoring import Chooser
from winnow.tasks.engines.choices.likelihoods import Likelihoods
from winnow.tasks.engines.protocol import Answer, GenerationFailure, Request


def answer_in_its_way(
    requests: Sequence[Request],
    *,
    encode: Callable[[Request], list[int] | GenerationFailure],
    write: Callable[[Sequence[list[int]], Sequence[Request]], Sequence[Answer]],
    chooser: Chooser,
    likelihoods: Likelihoods,
) -> list[Answer]:
    """Answer every request; answer i belongs to request i. Those of one kind stay in their order.

    Args:
        requests: Requests of any kind.
        encode: The tokens of a request's prompt, or why it cannot be answered; not asked of continuations.
        write: Answers requests for a text, whose prompts were encoded.
        chooser: Answers those that give choices.
        likelihoods: Answers those that give continuations.
    """
    answers: dict[int, Answer] = {}
    writing: dict[int, list[int]] = {}
    choosing: dict[int, list[int]] = {}
    weighing = [i for i, request in enumerate(requests) if request.continuations]
    for i, request in enumerate(requests):
        if request.continuations:
            continue
        ids = encode(request)
        if isinstance(ids, GenerationFailure):
            answers[i] = ids
        else:
            (choosing if request.sampling.choices else writing)[i] = ids
    written = write(list(writing.values()), [requests[i] for i in writing])
    answers.update(zip(writing, written, strict=True))
    chosen = chooser.answer(list(choosing.values()), [requests[i] for i in choosing])
    answers.update(zip(choosing, chosen, strict=True))
    weighed = likelihoods.answer([requests[i] for i in weighing])
    answers.update(zip(weighing, weighed, strict=True))
    return [answers[i] for i in range(len(requests))]
