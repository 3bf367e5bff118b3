"""Where the daemon is, and whose its socket is."""

from __future__ import annotations

import os
import stat
from typing import Callable, Optional, Union

from ._problem import Problem, down

_WRITABLE_BY_OTHERS = 0o022


class Address:
    """Where the daemon is: the path of a Unix socket, or a host and a port."""

    def __init__(
        self,
        lines: Optional[str] = None,
        socket: Optional[str] = None,
        url: Optional[str] = None,
        token: Union[str, Callable[[], str], None] = None,
    ) -> None:
        if sum(given is not None for given in (lines, socket, url)) > 1:
            raise TypeError("give one of `lines`, `socket` and `url`")
        if token is not None and url is None:
            raise TypeError("a `token` goes with a `url`")
        self._token = token
        self.host, self.port, self.is_secure = "", 0, False
        self.authority, self.path = "hookyard", "/v1/events"
        self.socket: Optional[str] = None
        if lines is None and socket is None and url is None:
            lines = os.environ.get("HOOKYARD_LISTEN_LINES") or None
            socket = None if lines else _default_socket()
        self.is_lines = lines is not None
        if url is None:
            self.socket = os.fspath(lines or socket or "")
        else:
            self._read_url(url)

    def _read_url(self, url: str) -> None:
        from urllib.parse import urlsplit

        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"{url!r} is not the URL of a daemon, such as http://127.0.0.1:8787")
        self.host, self.is_secure = parts.hostname, parts.scheme == "https"
        self.port = parts.port or (443 if self.is_secure else 80)
        name = f"[{self.host}]" if ":" in self.host else self.host
        self.authority = f"{name}:{self.port}"
        self.path = f"{parts.path.rstrip('/')}/v1/events"

    def token(self) -> Optional[str]:
        """The token of this moment."""
        token = self._token() if callable(self._token) else self._token
        if token is None:
            return None
        token = token.strip()
        if not token.isascii() or not token.isprintable():
            raise Problem("bad_token", "the token has characters that no token has", "correct it", "never")
        return token

    def __str__(self) -> str:
        return self.socket or self.authority

    def check(self) -> None:
        """Raises a `Problem` if another user could have put the socket there: its daemon would decide in the place of ours."""
        if self.socket is None:
            return
        try:
            socket = os.path.realpath(self.socket, strict=True)
            directory = os.path.dirname(socket)
            file, above = os.lstat(socket), os.lstat(directory)
        except OSError as error:
            raise down(self.socket, error.strerror) from None
        trusted = [0, os.geteuid()]
        # As with /run/hookyard: root has made the directory for the daemon's user.
        if _are_of_root(os.path.dirname(directory)):
            trusted.append(file.st_uid if _is_of_root(above) else above.st_uid)
        fault = None
        if file.st_uid not in trusted:
            fault = f"belongs to the user {file.st_uid}"
        if above.st_uid not in trusted:
            fault = f"is in a directory of the user {above.st_uid}"
        if above.st_mode & _WRITABLE_BY_OTHERS and not above.st_mode & stat.S_ISVTX:
            fault = "is in a directory that others can write to"
        if fault is not None:
            hint = "use a socket in a directory of your own, or of root"
            raise Problem("untrusted_socket", f"the socket {self.socket} {fault}", hint, "never")


def _default_socket() -> str:
    """As the daemon itself chooses it."""
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    default = f"{runtime}/hookyard.sock" if runtime else f"/tmp/hookyard-{os.geteuid()}/hookyard.sock"
    return os.environ.get("HOOKYARD_LISTEN_SOCKET") or default


def _is_of_root(status: os.stat_result) -> bool:
    return status.st_uid == 0 and not status.st_mode & _WRITABLE_BY_OTHERS


def _are_of_root(directory: str) -> bool:
    """Whether root alone decides about a directory and all above it."""
    return _is_of_root(os.lstat(directory)) and (directory == "/" or _are_of_root(os.path.dirname(directory)))
