"""Has Inspect score texts that a campaign made: PYTHON inspect_replay.py TASK TEXTS SCORES.

PYTHON has inspect-ai. TEXTS is JSON: for each sample the messages that the campaign showed the model, and
the text that it wrote. SCORES becomes JSON: for each sample whether Inspect shows the same messages, and its
score; None where there is none.
"""

import hashlib
import json
import sys
import tempfile
from pathlib import Path

GRADES = (
    *(
        "It is so.\nGRADE: C",
        "GRADE: I",
        "GRADE: P",
        "grade: correct",
        "GRADE: C, but then GRADE: I",
        "GRADE: CI",
    ),
    *("I cannot say.", "**GRADE:** C", "GRADE : I.", "Incorrect"),
)
CHOICES = (
    *(
        "ANSWER: A",
        "ANSWER: B",
        "answer: c.",
        "The ANSWER: D",
        "ANSWER: A, B",
        "ANSWER: $C$",
        "**ANSWER: A**",
    ),
    *("ANSWER: (B)", "B", "ANSWER: E", "First ANSWER: A\nANSWER: D", ""),
)


def picked(texts, *key):
    """One of the texts, always the same for a key."""
    digest = hashlib.sha256(json.dumps(key).encode()).digest()
    return texts[int.from_bytes(digest[:4], "big") % len(texts)]


def main(task, texts, scores):
    from inspect_ai import eval as run
    from inspect_ai.model import ModelOutput, ModelUsage, get_model
    from inspect_ai.scorer import value_to_float

    made = {each["id"]: each for each in json.loads(Path(texts).read_text())}
    by_messages = {json.dumps(each["messages"]): each["text"] for each in made.values()}
    shown = set()

    def saying(text):
        output = ModelOutput.from_content("mock", text)
        output.usage = ModelUsage(input_tokens=1, output_tokens=1, total_tokens=2)
        return output

    def says(messages, *others):
        asked = json.dumps([[each.role, each.text] for each in messages])
        shown.add(asked)
        return saying(by_messages.get(asked, ""))

    with tempfile.TemporaryDirectory() as folder:
        [log] = run(
            task,
            model=get_model("mockllm/model", custom_outputs=says),
            model_roles={
                "grader": get_model(
                    "mockllm/grader",
                    custom_outputs=lambda asked, *others: saying(picked(GRADES, asked[-1].text)),
                )
            },
            log_dir=folder,
            display="none",
        )
        if log.status != "success":
            raise SystemExit(log.error.message)
        found = {}
        for sample in log.samples:
            [score] = sample.scores.values()
            value = None if score.value != score.value else value_to_float()(score.value)
            same = json.dumps(made[str(sample.id)]["messages"]) in shown
            found[str(sample.id)] = {"same_messages": same, "score": value}
    Path(scores).write_text(json.dumps(found))


if __name__ == "__main__":
    main(*sys.argv[1:])
