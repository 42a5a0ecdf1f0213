"""`ray_address: auto` finds clusters of this user and of root, and believes nothing of other users."""

import os
from types import SimpleNamespace

import pytest

from winnow.tasks.engines.ray import cluster

OTHER = 54_321


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """A machine without clusters, on which tests put a note and processes."""
    processes = []
    file = tmp_path / "ray_current_cluster"
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    monkeypatch.setattr("ray._common.utils.get_ray_address_file", lambda folder: str(file))
    monkeypatch.setattr(cluster.psutil, "process_iter", lambda: processes)
    return SimpleNamespace(file=file, processes=processes)


def raylet(address, user=None):
    command = ["/lib/ray/core/src/ray/raylet/raylet", "--x", f"--gcs-address={address}"]
    uids = SimpleNamespace(real=os.getuid() if user is None else user)
    return SimpleNamespace(cmdline=lambda: command, uids=lambda: uids)


def test_a_cluster_of_ones_own_is_found_by_its_note_or_its_process(machine, monkeypatch):
    machine.file.write_text("10.0.0.1:6379\n")
    assert cluster._own_address() == "10.0.0.1:6379"
    machine.processes.append(raylet("10.0.0.2:6379"))  # the note is of one that is gone
    assert cluster._own_address() == "10.0.0.2:6379"
    machine.processes.append(raylet("10.0.0.3:6379"))
    assert cluster._own_address() == "10.0.0.1:6379"
    machine.file.unlink()
    assert cluster._own_address() == "10.0.0.2:6379"
    monkeypatch.setenv("RAY_ADDRESS", "10.0.0.4:6379")
    assert cluster._own_address() == "10.0.0.4:6379"


def test_what_other_users_say_is_not_believed(machine, monkeypatch):
    with pytest.raises(ConnectionError, match="you have no cluster: none runs on this machine"):
        cluster._own_address()
    machine.processes.append(raylet("10.6.6.6:6379", user=OTHER))
    machine.file.write_text("10.6.6.6:6379")
    monkeypatch.setattr(cluster, "_trusted", lambda: (OTHER + 1,))
    with pytest.raises(ConnectionError, match="ray_current_cluster belongs to another user"):
        cluster._own_address()


@pytest.mark.parametrize("make", [os.symlink, lambda _, file: os.mkfifo(file)])
def test_a_note_that_is_no_plain_file_is_not_read(machine, tmp_path, make):
    (tmp_path / "other").write_text("10.6.6.6:6379")
    make(tmp_path / "other", machine.file)
    with pytest.raises(ConnectionError, match="you have no cluster"):
        cluster._own_address()
