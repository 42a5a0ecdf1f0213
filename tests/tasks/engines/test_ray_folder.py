"""What Ray keeps of a cluster of Winnow is for its user alone, although Ray opens its folders to all."""

import stat

import pytest

from winnow.tasks.engines.ray import cluster
from winnow.tasks.plugins.own_files import state_folder


def open_to_all_as_ray_does(folder):
    folder.mkdir(parents=True, exist_ok=True)
    folder.chmod(0o777)


@pytest.mark.parametrize("longest", [0, 1_000])
def test_no_other_user_can_enter_the_folder_of_sessions(tmp_path, monkeypatch, longest):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setattr(cluster, "LONGEST_SESSIONS_PATH", longest)
    if longest:
        open_to_all_as_ray_does(state_folder() / "ray")  # as an earlier Winnow left it
    with cluster._sessions_folder() as folder:
        open_to_all_as_ray_does(folder)
        assert stat.S_IMODE(folder.parent.stat().st_mode) == 0o700
        assert folder.is_relative_to(tmp_path) == bool(longest)


def test_ray_finds_room_for_its_sockets_in_the_folder():
    with cluster._sessions_folder() as folder:
        assert len(str(folder)) <= cluster.LONGEST_SESSIONS_PATH
