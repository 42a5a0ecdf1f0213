"""Engines in Ray actors that are killed, or whose holder is; each fault has a cluster of its own."""

import os
import signal
from collections.abc import Generator
from contextlib import contextmanager
from functools import partial

import yaml
from ray_clusters import actors, ray_cluster, tokens

from tests.faults.kinds import BY_ENGINE
from tests.faults.registry import DONE, fault
from tests.faults.runs import Run
from tests.faults.scenes import Scene
from tests.faults.tampering import At, Tampering, die, hold

Meeting = Generator[Run, None, None]
SETTLED = ("ended",)
REAL = BY_ENGINE["transformers"]


@fault("a Ray actor is killed within a batch", *REAL, codes=DONE, states=SETTLED)
def killed(scene: Scene) -> Meeting:
    with _on_ray(scene) as joined:
        run = scene.run(joined, At("before a batch", 3, hold)).held()
        _kill_actors()
        yield run.go().ended()


@fault("a Ray actor is killed with its answer under way", *REAL, codes=DONE, states=SETTLED)
def killed_at_work(scene: Scene) -> Meeting:
    with _on_ray(scene) as joined:
        yield scene.run(joined, At("before a batch", 3, kill_actors_soon)).ended()


@fault("kill -9 while Ray actors hold its engines", *REAL, codes=DONE, states=SETTLED)
def holder_killed(scene: Scene) -> Meeting:
    with _on_ray(scene) as joined:
        assert scene.run(joined, At("before a batch", 3, die)).code == -signal.SIGKILL
        yield scene.resume(joined).ended()


@contextmanager
def _on_ray(scene: Scene) -> Generator[Tampering, None, None]:
    """Have a campaign's engines run in a cluster; what its processes have to do first."""
    file = scene.folder / "campaign.yaml"
    with ray_cluster() as address:
        spec = yaml.safe_load(file.read_text())
        spec["execution"] |= {"cluster": "ray", "ray_address": address, "max_restarts": 3}
        file.write_text(yaml.safe_dump(spec, sort_keys=False))
        yield partial(os.environ.update, tokens())


def kill_actors_soon() -> None:
    """Kill all actors a moment after a batch has gone to one."""
    import threading

    threading.Timer(0.01, _kill_actors).start()


def _kill_actors() -> None:
    for actor in actors():
        actor.kill()
