"""A cluster that Winnow starts listens on 127.0.0.1 alone, with every port of every process."""

import json
import subprocess
import sys

STARTS_ONE = """
import json, os
import psutil
from winnow.tasks.engines.ray import cluster

cluster._settle_token()
import ray

name = "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"
with cluster._local_cluster(1):
    assert ray.get(ray.remote(lambda: 7).remote()) == 7
    processes = [psutil.Process(), *psutil.Process().children(recursive=True)]
    ports = {
        each.name(): [at.laddr.ip for at in each.net_connections("tcp") if at.status == psutil.CONN_LISTEN]
        for each in processes
    }
assert name not in os.environ
print(json.dumps(ports))
"""


def test_no_port_of_it_can_be_reached_from_another_machine(tmp_path):
    ran = subprocess.run(
        [sys.executable, "-c", STARTS_ONE], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr
    listening = json.loads(ran.stdout.splitlines()[-1])
    assert any("gcs_server" in name for name in listening)
    heard = {place.removeprefix("::ffff:") for places in listening.values() for place in places}
    assert heard == {"127.0.0.1"}, listening
