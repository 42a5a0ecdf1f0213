"""Reads rows [judge, output, targets, parameters]; writes for each what the judge's code and its library say.

In a process of its own: what these libraries import takes over the logging of the process.
"""

import json
import sys

import jsonschema
import math_verify
import sacrebleu
from rouge_score.rouge_scorer import RougeScorer

from winnow.tasks.judges.isolated import rouge, translation
from winnow.tasks.judges.isolated.json_schema import validator
from winnow.tasks.judges.isolated.math import verifier
from winnow.tasks.judges.protocol import Sample

SMOOTHED = {"smooth_method": "exp", "use_effective_order": True}


def by_math_verify(output, targets, target_format="expression"):
    marked = [target if target_format == "text" else f"${target}$" for target in targets]
    said = math_verify.parse(output)
    return float(any(math_verify.verify(math_verify.parse(each), said) for each in marked))


def by_jsonschema(output, targets, schema):
    try:
        jsonschema.validate(json.loads(output), schema)
    except (ValueError, jsonschema.ValidationError):
        return 0.0
    return 1.0


def by_rouge_score(output, targets, variant="rougeL", stemmer=False):
    scorer = RougeScorer([variant], use_stemmer=stemmer)
    return max(scorer.score(target, output)[variant].fmeasure for target in targets)


DIRECTLY = {
    "math": by_math_verify,
    "json-schema": by_jsonschema,
    "bleu": lambda o, t, **settings: sacrebleu.sentence_bleu(o, t, **SMOOTHED, **settings).score / 100,
    "chrf": lambda o, t, **settings: sacrebleu.sentence_chrf(o, t, **settings).score / 100,
    "ter": lambda o, t, **settings: max(0.0, 1 - sacrebleu.sentence_ter(o, t, **settings).score / 100),
    "rouge": by_rouge_score,
}
BUILT = {
    "math": lambda target_format="expression": verifier(target_format),
    "json-schema": lambda schema: validator(schema),
    "bleu": lambda **settings: translation.measured("BLEU", settings),
    "chrf": lambda **settings: translation.measured("CHRF", settings),
    "ter": lambda **settings: translation.measured("TER", settings),
    "rouge": lambda variant="rougeL", stemmer=False: rouge.measured(variant, stemmer),
}

if __name__ == "__main__":
    said = [
        (
            BUILT[name](**params)(Sample(output=output, targets=targets)).score or 0.0,
            DIRECTLY[name](output, targets, **params),
        )
        for name, output, targets, params in json.load(sys.stdin)
    ]
    json.dump(said, sys.stdout)
