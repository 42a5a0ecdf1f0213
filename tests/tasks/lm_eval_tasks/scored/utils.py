"""Scoring functions of the tasks here, in the shapes that tasks of lm-eval have."""

import numpy as np
from answers import last_number


def process_results(doc, results):
    said = last_number(results[0])
    if said == "666":
        raise ValueError("not this number")
    return {
        "right": np.bool_(said == doc["answer"]),
        "near": np.float32(1 / (1 + abs(int(said or 99) - int(doc["answer"])))),
        "parts": [said == each for each in doc["golds"]],
        "wrong": 0 if said == doc["answer"] else 100,
    }


def process_votes(doc, results):
    return {"share": sum(each.strip() == doc["answer"] for each in results[0]) / len(results[0])}


def process_choices(doc, results):
    scores, _ = zip(*results, strict=True)
    probabilities = np.exp(np.array(scores))
    return {"mass": np.sum(probabilities * doc["labels"]) / np.sum(probabilities)}


def process_text(doc, results):
    (loglikelihood,) = results
    return {
        "word_perplexity": (loglikelihood, len(doc["page"].split())),
        "bits_per_byte": (loglikelihood, len(doc["page"].encode())),
    }


def overlap(references, predictions, least=0):
    said, wanted = set(predictions[0].lower().split()), set(references[0].lower().split())
    share = len(said & wanted) / max(len(wanted), 1)
    return {"overlap": share, "words": len(said)} if share >= least else {"overlap": 0.0, "words": 0}


def same_length(items):
    gold, said = items
    return float(len(gold) == len(said))


def cut(resps, docs):
    return [[each.partition(".")[0] for each in of_one] for of_one in resps]


class Prefixed:
    """A filter that reads the document and has an option."""

    def __init__(self, before=""):
        self.before = before

    def apply(self, resps, docs):
        return map(self._of_one, resps, docs)

    def _of_one(self, responses, doc):
        return [f"{self.before}{each.strip()}" if doc["q"] else each for each in responses]
