"""The sections of the page, by objective, with figures made from queried rows."""

from winnow.flows.reports.html.model import Section
from winnow.flows.reports.html.sections import standard
from winnow.flows.reports.html.sections.standard import ReadOnce, page_of
from winnow.tasks.campaign.look import Look


def sections_of(
    look: Look,
    *,
    with_samples: bool = True,
    read: ReadOnce | None = None,
) -> list[Section]:
    """All sections of a campaign's page that have something to show, in order.

    Args:
        look: The campaign as it is now.
        with_samples: Whether sample comparisons are included.
        read: Data that an earlier call has read, or None.
    """
    page = page_of(look.record.objective)
    own = page.builders_of(look.record, read or ReadOnce())
    samples = [standard.samples(page.SAMPLES)] if with_samples else []
    builders = (*own, *samples, *standard.CLOSING)
    return [section for build in builders if (section := build(look)) is not None]
