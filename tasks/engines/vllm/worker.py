"""Process in which vLLM runs, through `loaded_model`; its peer is `VllmEngine`.

Messages and answers:

* {"load": model, with its "adapters", its "memory_share", whether it "sleeps", whether it "is_fresh" for
  every group, and the folder of the "locks" of devices}, the first message: {"ready": identity, "at":
  seconds since the epoch, "waited": seconds for others on its devices, "can_sleep": true or false} or
  {"load_failed": sentence}
* {"requests": [...], "samplings": [...], "number": n}, where each request names its sampling settings by
  index: {"answers": [...], "number": n}
* {"sleep": true} and {"wake": true}: the same message, when the change is complete
* {"close": true}: none; the process ends
* {"load_embedder": folder}, instead of "load"; then {"texts": [...]}: {"vectors": [...]}

Requests for texts join those in progress, and are answered in order of completion. Others wait until no
request is in progress. Anything unexpected ends the process with a traceback in its log.
"""

import time
import traceback
from collections import deque
from collections.abc import Callable, Sequence
from typing import TypeVar

from winnow.storage.json_types import JsonObject
from winnow.tasks.engines.chat import Message
from winnow.tasks.engines.errors import EngineLoadFailed, one_sentence
from winnow.tasks.engines.images import Image
from winnow.tasks.engines.protocol import Answer, ModelRef, Request, Sampling
from winnow.tasks.engines.vllm.loaded_model import VllmModel, VllmVectors, preload
from winnow.tasks.processes.worker_side import ParentLink, run_worker

__all__ = ["main", "preload"]  # names that a fork server uses

Model = TypeVar("Model", VllmModel, VllmVectors)


def main(parent: ParentLink) -> None:
    """Load the model, then answer batches until a close message."""
    message = parent.receive()
    if "load_embedder" in message:
        _embed(parent, message["load_embedder"])
    else:
        _generate(parent, message["load"])


def _generate(parent: ParentLink, fields: JsonObject) -> None:
    how = {name: fields.pop(name) for name in ("adapters", "memory_share", "sleeps", "is_fresh", "locks")}
    model = _load(parent, lambda: VllmModel(ModelRef(**fields), **how))
    if model:
        _serve(parent, model)
        model.close()


def _serve(parent: ParentLink, model: VllmModel) -> None:
    """Answer groups of requests until a close message."""
    waiting: deque[tuple[int, list[Request]]] = deque()
    while True:
        is_idle = not (waiting or model.running)
        while message := parent.receive() if is_idle else parent.receive_now():
            if "close" in message:
                return
            if "requests" not in message:
                parent.send(_changed(model, message))
                continue
            waiting.append((message["number"], _requests(message)))
            is_idle = False
        while waiting and model.may_join(waiting[0][1]):
            model.join(*waiting.popleft())
        if waiting and not model.running:
            number, requests = waiting.popleft()
            _send_answers(parent, number, model.generate(requests))
        for number, answers in model.running.step():
            _send_answers(parent, number, answers)


def _send_answers(parent: ParentLink, number: int, answers: Sequence[Answer]) -> None:
    parent.send({"number": number, "answers": [_fields(answer) for answer in answers]})


def _fields(answer: Answer) -> JsonObject:
    """Fields of an answer; `dataclasses.asdict` would copy all values and take ten times as long."""
    return {name: getattr(answer, name) for name in answer.__dataclass_fields__}


def _changed(model: VllmModel, message: JsonObject) -> JsonObject:
    if "sleep" in message:
        model.sleep()
        return {"sleep": True}
    model.wake()
    return {"wake": True}


def _embed(parent: ParentLink, folder: str) -> None:
    model = _load(parent, lambda: VllmVectors(folder))
    while model and "texts" in (message := parent.receive()):
        parent.send({"vectors": model.embed(message["texts"])})
    if model:
        model.close()


def _load(parent: ParentLink, make: "Callable[[], Model]") -> "Model | None":
    try:
        model = make()
    except Exception as error:  # vLLM has no common exception class for a bad checkpoint or argument
        traceback.print_exc()
        why = error.why if isinstance(error, EngineLoadFailed) else one_sentence(error)
        parent.send({"load_failed": why})
        return None
    parent.send(
        {"ready": model.identity, "at": time.time(), "waited": model.waited, "can_sleep": model.can_sleep}
    )
    return model


def _requests(message: JsonObject) -> list[Request]:
    ways = [Sampling.from_json(each) for each in message["samplings"]]
    return [
        Request(
            prompt=fields["prompt"],
            sampling=ways[fields["sampling"]],
            seed=fields["seed"],
            adapter=fields["adapter"],
            continuations=tuple(fields["continuations"]),
            is_greedy=fields["is_greedy"],
            messages=tuple(Message(*each) for each in fields["messages"]),
            images=tuple(map(Image.from_message, fields["images"])),
        )
        for fields in message["requests"]
    ]


if __name__ == "__main__":
    run_worker(main)
