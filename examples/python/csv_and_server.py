"""Compare two prompts on a file of examples, for a model that a server runs; run it beside data.jsonl."""

import winnow

campaign = winnow.compare(
    data="data.jsonl",
    models=["http://127.0.0.1:8000/v1#my-model"],
    prompts=["{{ input }} =", "What is {{ input }}? Answer with the number alone."],
    judge="numeric",
)
print(campaign)
print(campaign.comparisons().query("outcome == 0")[["candidate", "example", "text", "outcome"]])
