"""What takes seconds to come up begins as soon as it is known that a campaign has texts to generate.

That is a temporary Prefect server, and vLLM's imports. A campaign that is decided needs neither.
"""

from collections.abc import Generator
from contextlib import AbstractContextManager, ExitStack, contextmanager

from winnow.flows.prefect_support.server import early_server
from winnow.flows.reports.open_readonly import reading
from winnow.flows.reports.summary import status_of
from winnow.storage.errors import StorageError
from winnow.storage.records import campaigns as campaign_records
from winnow.tasks.setup.load import Approve
from winnow.tasks.setup.store import stored_spec
from winnow.tasks.spec.campaign import CampaignSpec
from winnow.tasks.spec.yaml_file import SpecFile


@contextmanager
def starting_early(approve: Approve) -> Generator[Approve, None, None]:
    """The same approval, after which both come up beside the checks that follow, until the block ends."""
    with ExitStack() as coming_up:

        def approve_and_start(file: SpecFile, spec: CampaignSpec) -> None:
            approve(file, spec)
            if not _is_settled(spec):
                coming_up.enter_context(early_server())
                coming_up.enter_context(_imports(spec))

        yield approve_and_start


def imports_for(storage: str, name: str) -> AbstractContextManager[None]:
    """Have vLLM imported for a stored campaign that is about to go on, until the block ends."""
    with reading(storage) as session:
        spec = stored_spec(campaign_records.get_campaign(session, name), storage)
    return _imports(spec)


def _imports(spec: CampaignSpec) -> AbstractContextManager[None]:
    from winnow.tasks.engines.vllm.engine import (
        imports_once,  # with what engines need: nothing decided has any
    )

    return imports_once(spec, at_once=True)


def _is_settled(spec: CampaignSpec) -> bool:
    try:
        return status_of(spec.storage, spec.name).is_settled
    except StorageError:  # there is no such campaign yet, or what is wrong is said later
        return False
