"""A campaign to which a generator adds prompts in sight of the results, at the spec's error probability."""

import winnow

IDEAS = ["Sum: {{ input }}", "What is {{ input }}?", "Sum up {{ input }}"]


def better(campaign: winnow.Campaign) -> list[str]:
    """Return prompts to try next; ask a model here, or an optimiser such as GEPA or Optuna."""
    failed = campaign.comparisons().query("outcome == 0")
    return IDEAS[: 1 + len(failed)]


spec = winnow.Spec(
    name="proposed",
    models=["http://127.0.0.1:8000/v1#my-model"],
    prompts=["Sum {{ input }}", "Sum of {{ input }}"],
    dataset=winnow.Dataset(path="data.jsonl", fields=winnow.Fields(id="id")),
    judge=winnow.Judge("numeric"),
)
campaign = winnow.propose(spec, better, times=2)
print(campaign)
