"""selectors, judges: what a spec may name."""

from winnow.flows.cli.options import Json


def selectors(json: Json = False) -> None:
    """List the algorithms a campaign can use, with their parameters."""
    from winnow.algorithms.registry import describe, selector_names

    rows = []
    for name in selector_names():
        entry = describe(name)
        parameters = ", ".join(f"{each.name}={each.default}" for each in entry.parameters)
        rows.append(
            {
                "selector": name,
                "objective": entry.objective,
                "summary": entry.summary,
                "source": entry.source,
                "parameters": parameters,
            }
        )
    _print(rows, json)


def judges(json: Json = False) -> None:
    """List the judges a campaign can use, with their parameters."""
    from winnow.tasks.judges import registry as of_outputs
    from winnow.tasks.judges.pairwise import registry as of_pairs

    entries = [("best-mean, certify, route", of_outputs.describe(name)) for name in of_outputs.judge_names()]
    entries += [("best-duel", of_pairs.describe(name)) for name in of_pairs.pair_judge_names()]
    rows = []
    for objective, entry in entries:
        parameters = ", ".join(
            each.name if each.required else f"{each.name}={each.default}" for each in entry.parameters
        )
        row = {"judge": entry.name, "objective": objective, "summary": entry.summary}
        if entry.scale is not None:
            row |= {"unit": entry.scale.unit, "score": entry.scale.formula}
        rows.append({**row, "parameters": parameters})
    _print(rows, json)


def _print(rows: list[dict[str, str]], json: bool) -> None:
    from winnow.flows.reports.output import print_json

    if json:
        print_json(rows)
        return
    for row in rows:
        (_, name), *facts = row.items()
        print(name)
        for key, value in facts:
            if value:
                print(f"  {key:<10} {value}")
