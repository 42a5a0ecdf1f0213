"""vLLM imported once for all engine processes of a campaign."""

from contextlib import AbstractContextManager, nullcontext

from winnow.tasks.engines.vllm import WORKER, WORKER_ENVIRONMENT
from winnow.tasks.plugins.extras import missing_for
from winnow.tasks.plugins.own_files import settled_folder
from winnow.tasks.processes.fork_server import forking
from winnow.tasks.spec.campaign import CampaignSpec

LOG = "vllm-imports.log"
"""File name, in a campaign's log folder, for the output of the imports."""


def imports_once(spec: CampaignSpec, *, at_once: bool = False) -> AbstractContextManager[None]:
    """Fork vLLM's processes of a campaign from one that has imported it, until the block ends.

    On a Ray cluster this does nothing, because each engine is the only one of its actor.

    Args:
        spec: The campaign's.
        at_once: Whether to import now, if one of its models runs on vLLM, instead of with the first engine.
    """
    if spec.execution.cluster is not None:
        return nullcontext()
    at_once = (
        at_once
        and any(model.provider == "vllm" for model in spec.models)
        and missing_for("vllm", "vLLM") is None
    )
    log = settled_folder(spec.execution.log_folder) / spec.name / LOG
    return forking(WORKER, log=log, environment=WORKER_ENVIRONMENT, at_once=at_once)
