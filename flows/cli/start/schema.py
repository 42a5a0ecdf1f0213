"""schema: what editors need to know of a campaign's file."""


def schema() -> None:
    """Print the JSON schema of a campaign's file, for editors that complete and check YAML by it."""
    from winnow.algorithms.registry import selector_names
    from winnow.flows.reports.output import print_json
    from winnow.tasks.engines.providers import provider_names
    from winnow.tasks.judges.pairwise.registry import pair_judge_names
    from winnow.tasks.judges.registry import judge_names
    from winnow.tasks.spec.json_schema import campaign_schema

    judges = sorted({*judge_names(), *pair_judge_names()})
    print_json(campaign_schema(selectors=selector_names(), judges=judges, providers=provider_names()))
