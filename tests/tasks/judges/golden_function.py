"""What the table of verdicts of the judge `python` calls."""

from winnow.tasks.judges.protocol import Verdict


def score(sample):
    if sample.output == "verdict":
        return Verdict.unscored("no_answer", "nothing")
    if sample.output == "text":
        return "1.0"
    if sample.output == "raise":
        raise ValueError(sample.output)
    if sample.output == "true":
        return sample.output in sample.targets
    return float(sample.output)
