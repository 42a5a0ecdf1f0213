"""What a candidate costs, which is what its user wants less of: the order of the tests follows from it.

* size           bytes of the checkpoint's weights
* prompt-length  mean characters of its prompts over the dataset
* price, custom  a number for each candidate in `certify.costs`
"""

from collections.abc import Sequence
from pathlib import Path

from winnow.tasks.candidates.candidates import Candidate
from winnow.tasks.data.datasets import Dataset
from winnow.tasks.engines.chat.messages import words_of
from winnow.tasks.errors import SpecError
from winnow.tasks.spec.candidate_costs import given_costs
from winnow.tasks.spec.sections.certify import CertifySpec

WEIGHTS = ("*.safetensors", "*.bin", "*")
"""Files that are counted: those of the first pattern that matches any."""


def candidate_costs(spec: CertifySpec, candidates: Sequence[Candidate], dataset: Dataset) -> dict[str, float]:
    """The cost of each candidate by name, in the order in which they are tested: from the dearest on.

    Candidates of the same cost keep the order of the spec.

    Raises:
        SpecError: If a candidate has no cost.
    """
    if spec.cost == "size":
        sizes = {each.model.name: _size(each) for each in candidates}
        costs = {each.name: sizes[each.model.name] for each in candidates}
    elif spec.cost == "prompt-length":
        costs = {each.name: _prompt_length(each, dataset) for each in candidates}
    else:
        costs = given_costs(spec.costs, [each.name for each in candidates], "certify.costs")
    return dict(sorted(costs.items(), key=lambda item: -item[1]))


def _size(candidate: Candidate) -> float:
    folder = Path(candidate.model.model)
    if not folder.is_dir():
        raise SpecError(
            f"size is that of a checkpoint's folder, and model '{candidate.model.name}' is an id on a hub; "
            "use price or custom with certify.costs",
            path="certify.cost",
        )
    found = [sorted(folder.glob(pattern)) for pattern in WEIGHTS]
    weights = next((paths for paths in found if paths), [])
    return float(sum(path.stat().st_size for path in weights if path.is_file()))


def _prompt_length(candidate: Candidate, dataset: Dataset) -> float:
    lengths = [len(words_of(candidate.prompt(each.fields, each.key))) for each in dataset.examples]
    return sum(lengths) / len(lengths)
