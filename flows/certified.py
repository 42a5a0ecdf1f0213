"""The answer of a campaign that certifies, in a few sentences."""

from tasks.certifying.certificate import Certificate
from tasks.status import CampaignStatus

MOST_KEYS = 8


def certified_lines(status: CampaignStatus, storage: str) -> list[str]:
    """What is certified and how surely, what it took, and what a plain estimate would have said."""
    certificate = status.certificate
    assert certificate is not None
    lines = [_certified(status, certificate)]
    if status.best is not None and status.estimate is not None:
        between = "" if status.lower is None else f", between {status.lower:.3f} and {status.upper:.3f}"
        lines.append(f"  risk      {status.estimate:.3f}{between}: its mean loss against human labels")
    lines.append(f"  sure      {_certainty(status, certificate)}")
    lines.append(f"  plain     {_plain(certificate)}")
    if status.state == "waiting":
        shown = ", ".join(certificate.waits_for[:MOST_KEYS])
        more = len(certificate.waits_for) - MOST_KEYS
        lines.append(
            f"  waiting   for human labels of {len(certificate.waits_for)} examples: "
            f"{shown}{f' and {more} more' if more > 0 else ''}"
        )
        lines.append(f"  go on     winnow label {status.name} [FILE] --storage {storage}")
        lines.append(f"            winnow resume {status.name} --storage {storage}")
    return lines


def _allowed(certificate: Certificate) -> str:
    if certificate.baseline is None:
        return f"a risk of at most {certificate.risk:g}"
    return f"a mean drop of at most {certificate.risk:g} below {certificate.baseline}"


def _certified(status: CampaignStatus, certificate: Certificate) -> str:
    allowed = _allowed(certificate)
    if status.best is not None:
        so_far = "" if status.state == "decided" else " so far"
        cost = certificate.costs[status.best]
        return f"  certified {status.best}, the cheapest candidate{so_far} with {allowed}; cost {cost:g}"
    if status.reason == "none-certified":
        return (
            f"  certified none: {allowed} was shown of no candidate with these labels, "
            "which does not say that their risks are higher"
        )
    if status.reason == "all-dropped":
        return "  certified none: no candidate could be judged"
    return f"  certified none yet: {allowed} is asked for"


def _certainty(status: CampaignStatus, certificate: Certificate) -> str:
    if not certificate.is_reliable:
        return f"heuristic: {certificate.selector} trusts a plain mean and guarantees nothing"
    if status.best is None:
        return "nothing is claimed"
    return (
        f"the chance that any certified candidate has a higher risk is at most {status.delta:g}, "
        "whatever the autoevaluator is worth"
    )


def _plain(certificate: Certificate) -> str:
    if certificate.plain is None:
        return "the plain mean of human losses would certify none"
    return (
        f"the plain mean of human losses would say {certificate.plain} ({certificate.plain_mean:.3f}), "
        "without any guarantee"
    )


def coverage_line(status: CampaignStatus) -> str:
    """How many comparisons lack one of their losses."""
    assert status.certificate is not None
    asked, lacking = status.totals["comparisons"], status.certificate.incomplete
    if not lacking:
        return "  coverage  every loss is known"
    return (
        f"  coverage  {lacking} of {asked} comparisons lack a loss, which counts at its worst; "
        f"winnow query {status.name} comparisons says why"
    )
