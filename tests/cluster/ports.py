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
        if kept := _bound(port):
            kept.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            _kept[port] = kept
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


def _bound(port: int) -> socket.socket | None:
    """A socket that is alone at the port: it does not reuse an address that somebody keeps."""
    alone = socket.socket()
    try:
        alone.bind(("127.0.0.1", port))
    except OSError:
        alone.close()
        return None
    return alone
