"""Engines in Ray actors that are killed, or whose holder is; each fault has a cluster of its own."""

import os
import signal
from collections.abc import Generator
from contextlib import contextmanager
from functools import partial

import yaml
from ray_clusters import actors, ray_cluster, tokens

from tests.faults.kinds import BY_ENGINE
from tests.faults.registry import DONE, STOPPED, fault
from tests.faults.runs import Run
from tests.faults.scenes import Scene
from tests.faults.tampering import At, Tampering, die, hold, with_environment

Meeting = Generator[Run, None, None]
SETTLED = ("ended",)
TRUSTED = ("--trust",)
"""Nobody is there to be asked whether the cluster may be joined."""
REAL = BY_ENGINE["transformers"]


@fault("a Ray actor is killed within a batch", *REAL, codes=DONE, states=SETTLED)
def killed(scene: Scene) -> Meeting:
    with _on_ray(scene) as joined:
        run = _run(scene, joined, At("before a batch", 3, hold)).held()
        kill_actors(os.getpid())
        yield run.go().ended()


@fault("a Ray actor is killed with its answer under way", *REAL, codes=DONE, states=SETTLED)
def killed_at_work(scene: Scene) -> Meeting:
    with _on_ray(scene) as joined:
        soon = partial(kill_actors_soon, os.getpid())
        yield _run(scene, joined, At("before a batch", 3, soon)).ended()


@fault("kill -9 while Ray actors hold its engines", *REAL, codes=DONE, states=SETTLED)
def holder_killed(scene: Scene) -> Meeting:
    with _on_ray(scene) as joined:
        assert _run(scene, joined, At("before a batch", 3, die)).code == -signal.SIGKILL
        yield scene.command(
            "resume", "survivor", *TRUSTED, "--storage", scene.storage, tamperings=[joined]
        ).ended()


@contextmanager
def _on_ray(scene: Scene) -> Generator[Tampering, None, None]:
    """Have a campaign's engines run in a cluster; what its processes have to do first."""
    file = scene.folder / "campaign.yaml"
    with ray_cluster() as address:
        spec = yaml.safe_load(file.read_text())
        spec["execution"] |= {"cluster": "ray", "ray_address": address, "max_restarts": 3}
        file.write_text(yaml.safe_dump(spec, sort_keys=False))
        yield partial(with_environment, tokens())


@fault("the Ray cluster ends within a batch", "best-mean", "route", codes=(1,), states=STOPPED)
def cluster_gone(scene: Scene) -> Meeting:
    """Another one takes its place, which the campaign is told of when it is run again."""
    with _on_ray(scene) as joined:
        run = _run(scene, joined, At("before a batch", 3, hold)).held()
    yield run.go().ended()
    assert run.sentence.startswith("winnow: the head of the Ray cluster, "), run.said
    _leave_ray(scene)
    again = scene.run().ended()
    assert again.code in DONE, again.said


def _run(scene: Scene, *tamperings: Tampering) -> Run:
    return scene.command("run", "campaign.yaml", *TRUSTED, tamperings=tamperings)


def kill_actors_soon(harness: int) -> None:
    """Kill a harness's actors a moment after a batch has gone to one."""
    import threading

    threading.Timer(0.01, kill_actors, [harness]).start()


def kill_actors(harness: int) -> None:
    """Kill the actors of a harness's clusters, and of nobody else's."""
    for actor in actors():
        if harness in [parent.pid for parent in actor.parents()]:
            actor.kill()


def _leave_ray(scene: Scene) -> None:
    """Have the engines be processes of the campaign's own from now on."""
    file = scene.folder / "campaign.yaml"
    spec = yaml.safe_load(file.read_text())
    del spec["execution"]["cluster"], spec["execution"]["ray_address"]
    file.write_text(yaml.safe_dump(spec, sort_keys=False))
