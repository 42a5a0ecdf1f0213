"""What the table of verdicts of the judge `lm-eval` calls."""


def process_results(doc, results):
    (said,) = results
    if said == "list":
        return [1.0]
    if said == "raise":
        raise ValueError(said)
    values = {"text": "1.0", "none": None, "huge": 10**1000, "true": True}
    return {"right": values[said] if said in values else float(said), "of": doc["n"]}


def twice(references, predictions, by=1):
    return by * (references[0] == predictions[0])
