"""selectors, judges: what a spec may name."""

from flows.commands.options import Json


def selectors(json: Json = False) -> None:
    """List the algorithms a campaign can use, with their parameters."""
    from algorithms.registry import describe, selector_names

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
    from tasks.judges.registry import describe, judge_names

    rows = []
    for name in judge_names():
        entry = describe(name)
        parameters = ", ".join(
            each.name if each.required else f"{each.name}={each.default}" for each in entry.parameters
        )
        rows.append({"judge": name, "summary": entry.summary, "parameters": parameters})
    _print(rows, json)


def _print(rows: list[dict[str, str]], json: bool) -> None:
    from flows.output import print_json

    if json:
        print_json(rows)
        return
    for row in rows:
        (_, name), *facts = row.items()
        print(name)
        for key, value in facts:
            if value:
                print(f"  {key:<10} {value}")
