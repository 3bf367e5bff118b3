"""Ports of this machine that nobody has, and that nobody else is given while this program runs."""

from __future__ import annotations

import random
import socket

# Bound and not listening: a server that reuses addresses, as all do here, may listen on the port all the same.
_kept: dict[int, socket.socket] = {}


def free_port() -> int:
    """A port that no outgoing connection takes while what listens there is away."""
    while True:
        port = random.SystemRandom().randrange(10_000, 30_000)
        if kept := _bound(port, reuses=False):
            kept.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            _kept[port] = kept
            return port


def is_free(port: int) -> bool:
    # As a server does, which may take a port of connections that have just ended.
    tried = _bound(port, reuses=True)
    if tried:
        tried.close()
    return tried is not None


def _bound(port: int, reuses: bool) -> socket.socket | None:
    """A socket at the port; none where somebody listens, and, unless it reuses addresses, where somebody keeps the port."""
    bound = socket.socket()
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, reuses)
    try:
        bound.bind(("127.0.0.1", port))
    except OSError:
        bound.close()
        return None
    return bound
