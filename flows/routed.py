"""The answer of a campaign that routes, in a few sentences."""

from tasks.status import CampaignStatus


def routed_lines(status: CampaignStatus, storage: str) -> list[str]:
    """How well choosing a candidate for each prompt does, beside the best single one."""
    standing = status.standing
    assert standing is not None
    if standing.mean is None:
        return ["  routes    nothing known yet"]
    lines = [
        f"  routes    {standing.mean:.3f} mean score of {standing.scored} prompts so far; "
        f"{standing.late_mean or 0.0:.3f} of the last {standing.late_scored}"
    ]
    if status.best is not None and status.estimate is not None:
        lines.append(
            f"  single    {status.best} has the best mean of its own, {status.estimate:.3f} of the "
            f"{standing.single_scored} prompts that it was given"
        )
    lines.append(
        "  sure      heuristic: prompts are given to whoever is thought good at them, so that means say "
        "nothing of other prompts"
    )
    lines.append(f"  serve     winnow route {status.name} --export DIR --storage {storage}")
    return lines
