"""A campaign of typed classes: its forecast, its answer and two figures, which need the extra `report`."""

import winnow

spec = winnow.Spec(
    name="sums",
    models=["http://127.0.0.1:8000/v1#my-model"],
    prompts=[winnow.Prompt(name=each, template=f"{each} {{{{ input }}}} =") for each in ("Add", "Sum")],
    dataset=winnow.Dataset(path="data.jsonl", fields=winnow.Fields(id="id")),
    judge=winnow.Judge("numeric"),
    stopping=winnow.Stopping(delta=0.05, budget=200),
)
print(spec.plan(rate=20, seeds=5))
campaign = spec.run()
campaign.plot_lead().write_html("lead.html")
campaign.plot_curve().write_html("curve.html")
