"""What lm-eval makes of the tasks here, and how it scores; kept in expected.json.

cd tests/tasks/lm_eval_tasks && PYTHON record.py, with an interpreter that has lm-eval 0.4.13.
"""

import json
import logging
import string
import tempfile
from pathlib import Path

CHATS = {"text": None, "single-turn": False, "multiturn": True}
SHOTS = (0, 3)
REGEX = {"function": "regex", "regex_pattern": r"#### (\-?[0-9\.\,]+)"}
PIPELINES = [
    ([], {}),
    ([REGEX], {}),
    ([{**REGEX, "group_select": -1, "fallback": "none"}], {"regexes_to_ignore": [",", r"\$", r"\.$"]}),
    ([{"function": "regex", "regex_pattern": r"(-?[$0-9.,]{2,})|(-?[0-9]+)", "group_select": -1}], {}),
    ([{"function": "regex", "regex_pattern": r"x*", "group_select": 0}], {}),
    ([{"function": "remove_whitespace"}], {"ignore_case": True, "ignore_punctuation": True}),
    ([{"function": "lowercase"}, {"function": "regex", "regex_pattern": "answer: ([a-z]+)"}], {}),
    ([{"function": "uppercase"}], {"ignore_case": True, "ignore_numbers": True}),
    ([{"function": "map", "mapping_dict": {"a": "b"}, "default_value": "c"}], {}),
]
OUTPUTS = [
    *("", "a", " A.\n", "b", "c", "#### 7", "so #### 7\n#### 1,234.", "#### $5", "12 or 3", "-4 -5,0"),
    *("Answer: Yes", "ANSWER: no7", "Éx ß", "xxaxx", "[invalid]", "7!", "\u2028a", string.punctuation),
]
TARGETS = [
    ["7"],
    ["1234", "a"],
    ["A"],
    ["b"],
    ["yes", "no"],
    ["[invalid]"],
    ["3"],
    ["none"],
    ["i̇x ss"],
    ["C"],
]


def main():
    logging.disable(logging.CRITICAL)
    expected = {"prompts": prompts(), "scores": scores(), "own": own_scores()}
    parts = [f"{json.dumps(part)}: {lines(of_part)}" for part, of_part in expected.items()]
    Path("expected.json").write_text("{\n" + ",\n".join(parts) + "\n}\n", encoding="utf-8")


def lines(values):
    """JSON with each entry on a line of its own."""
    if isinstance(values, dict):
        found = [f"{json.dumps(key)}: {json.dumps(value)}" for key, value in values.items()]
        return "{\n" + ",\n".join(found) + "\n}"
    return "[\n" + ",\n".join(map(json.dumps, values)) + "\n]"


def prompts():
    """By task, number of solved examples and kind: what models are shown, and the choices after it."""
    import datasets
    from lm_eval.tasks import TaskManager

    manager = TaskManager(include_path="tasks", include_defaults=False)
    found = {}
    for path in sorted(Path("tasks").glob("*.yaml")):
        for shots in SHOTS:
            for kind, multiturn in CHATS.items():
                # As `simple_evaluate` does before it builds tasks, when nothing is in the cache.
                datasets.config.HF_DATASETS_CACHE = tempfile.mkdtemp()
                set_seeds()
                task = manager.load([path.stem])["tasks"][path.stem]
                task.set_config(key="num_fewshot", value=shots)
                task.set_fewshot_seed(seed=1234)
                task.build_all_requests(
                    apply_chat_template=multiturn is not None,
                    fewshot_as_multiturn=bool(multiturn),
                    chat_template=lambda turns, add_generation_prompt=True: json.dumps(turns),
                )
                shown = [[each for each in one.args if isinstance(each, str)] for one in task.instances]
                found[f"{path.stem}/{shots}/{kind}"] = shown
    return found


def set_seeds():
    """The seeds that lm-eval sets where its user names none."""
    import random

    import numpy as np
    from lm_eval.defaults import DEFAULT_OTHER_SEED, DEFAULT_RANDOM_SEED
    from lm_eval.utils import set_torch_seed

    random.seed(DEFAULT_RANDOM_SEED)
    np.random.seed(DEFAULT_OTHER_SEED)  # noqa: NPY002 -- as lm-eval does
    set_torch_seed(DEFAULT_OTHER_SEED)


def scores():
    """Of exact_match: the pipeline, the output, the targets and the score."""
    from lm_eval.api.metrics import exact_match_hf_evaluate
    from lm_eval.filters import build_filter_ensemble

    found = []
    for steps, options in PIPELINES:
        components = [
            (each["function"], {key: value for key, value in each.items() if key != "function"})
            for each in [*steps, {"function": "take_first"}]
        ]
        ensemble = build_filter_ensemble("found", components)
        for output in OUTPUTS:
            one = type("One", (), {"resps": [output], "doc": {}, "filtered_resps": {}})()
            ensemble.apply([one])
            said = one.filtered_resps["found"]
            right = []
            for targets in TARGETS:
                same = exact_match_hf_evaluate([said] * len(targets), targets, **options)["exact_match"]
                right.append(int(same > 0.0))
            found.append(right)
    return found


SAID = [
    *("", "13", " 13 \n", "It is 4.", "0", "so 12 or 13", "thirteen", "Zero", "4.", "nothing", "666", "1e3"),
    *("13. Or 4?", "> 4", "-0", "a b c"),
]
WEIGHED = [(-1.0, -2.5, -0.5, -3.0), (-0.1, -9.0, -30.0, -4.0), (-700.0, -800.0, -650.0, -1.0)]


def own_scores():
    """Of the tasks in `scored`, by name: the metrics of each output and document, by the first filter."""
    import sys

    from lm_eval.tasks import TaskManager

    sys.path.insert(0, str(Path("scored").resolve()))
    manager = TaskManager(include_path="scored", include_defaults=False)
    found = {}
    for path in sorted(Path("scored").glob("*.yaml")):
        task = manager.load([path.stem])["tasks"][path.stem]
        task.build_all_requests()
        found[path.stem] = [of_task(task, said) for said in (SAID if is_asked(task) else WEIGHED)]
    return found


def is_asked(task):
    return task.OUTPUT_TYPE == "generate_until"


def of_task(task, said):
    """The metrics of each document whose output this is, or whose choices have these log-likelihoods."""
    for each in task.instances:
        each.filtered_resps = {}
        if is_asked(task):
            each.resps = [said]
        else:
            each.resps = [said[0] if task.OUTPUT_TYPE == "loglikelihood_rolling" else (said[each.idx], False)]
    task.apply_filters()
    (first, *_) = task.instances[0].filtered_resps
    return [of_document(task, number, first) for number in range(len(task.eval_docs))]


def of_document(task, number, name):
    asked = sorted((each for each in task.instances if each.doc_id == number), key=lambda each: each.idx)
    try:
        found = task.process_results(asked[0].doc, [each.filtered_resps[name] for each in asked])
    except ValueError as error:
        return f"raises {error}"
    return {key: value.item() if hasattr(value, "item") else value for key, value in found.items()}


if __name__ == "__main__":
    main()
