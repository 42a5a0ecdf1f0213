"""Ports on this machine for servers of tests."""

import socket


def free_port() -> int:
    """One that nobody serves at, and that the kernel gives to nobody else for a while."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]
