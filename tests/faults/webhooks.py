"""Webhooks that are to be told of the end, and are not there, never answer, or find nobody to tell them."""

from collections.abc import Generator

import yaml
from free_ports import free_port
from webhook_servers import webhook

from tests.faults.kinds import OBJECTIVES
from tests.faults.registry import DONE, fault
from tests.faults.runs import Run
from tests.faults.scenes import Scene
from tests.faults.tampering import At, die

Meeting = Generator[Run, None, None]
SETTLED = ("ended",)


@fault("no webhook is there", *OBJECTIVES, codes=DONE, states=SETTLED)
def away(scene: Scene) -> Meeting:
    yield _told(scene, f"http://127.0.0.1:{free_port()}/told")


@fault("a webhook's answer has no end", "best-mean", codes=DONE, states=SETTLED)
def endless(scene: Scene) -> Meeting:
    with webhook("drips") as hook:
        yield _told(scene, hook.url)


@fault("a webhook answers 500", "best-mean", "certify", codes=DONE, states=SETTLED)
def failing(scene: Scene) -> Meeting:
    with webhook(500, 500, 500, 500) as hook:
        yield _told(scene, hook.url)


@fault("a webhook sends who tells it elsewhere", "best-mean", codes=DONE, states=SETTLED)
def elsewhere(scene: Scene) -> Meeting:
    with webhook("redirect") as hook:
        run = _told(scene, hook.url)
        assert set(hook.paths) == {"/told"}, "it went where it was sent"
        yield run


@fault("kill -9 right after the last decision, before a webhook is told", *OBJECTIVES, codes=(-9,),
       states=SETTLED)  # fmt: skip
def nobody_tells(scene: Scene) -> Meeting:
    with webhook() as hook:
        yield _told(scene, hook.url, At("the end is told", 1, die))


def _told(scene: Scene, url: str, *tamperings: At) -> Run:
    """Run a campaign that tells a webhook of every end."""
    file = scene.folder / "campaign.yaml"
    spec = yaml.safe_load(file.read_text())
    events = ["decided", "undecided", "failed"]
    spec.setdefault("execution", {})["notify"] = [{"url": url, "events": events}]
    file.write_text(yaml.safe_dump(spec, sort_keys=False))
    return scene.command("run", "campaign.yaml", "--trust", tamperings=tamperings).ended()
