"""Ports of this machine that nobody has."""

from __future__ import annotations

import random
import socket

_given: set[int] = set()


def free_port() -> int:
    """A port that no outgoing connection takes while what listens there is away."""
    while True:
        port = random.SystemRandom().randrange(10_000, 30_000)
        if port not in _given and is_free(port):
            _given.add(port)
            return port


def is_free(port: int) -> bool:
    with socket.socket() as tried:
        # As a server does, which may take a port of connections that have just ended.
        tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            tried.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True
