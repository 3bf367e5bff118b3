"""A certificate authority for one fleet on this machine, thrown away with it."""

from __future__ import annotations

import subprocess
from pathlib import Path

from programs import find

DAYS = "2"


def make(directory: Path) -> None:
    """Makes `ca.pem`, and `server.pem` with `server.key` for loopback."""
    openssl = find("openssl", "openssl", "openssl")
    key = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")
    authority = (
        "req", "-x509", *key, "-keyout", "ca.key", "-out", "ca.pem", "-days", DAYS, "-subj", "/CN=throw-away CA of scripts fleet",
        "-addext", "basicConstraints=critical,CA:TRUE,pathlen:0", "-addext", "keyUsage=critical,keyCertSign",
    )
    request = ("req", "-new", *key, "-keyout", "server.key", "-out", "server.csr", "-subj", "/CN=localhost")
    (directory / "server.ext").write_text(
        "subjectAltName=IP:127.0.0.1,DNS:localhost\nbasicConstraints=CA:FALSE\nextendedKeyUsage=serverAuth\n"
    )
    signature = (
        "x509", "-req", "-in", "server.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-out", "server.pem",
        "-days", DAYS, "-extfile", "server.ext",
    )
    for words in (authority, request, signature):
        done = subprocess.run([openssl, *words], cwd=directory, capture_output=True, text=True, timeout=60)
        if done.returncode != 0:
            raise RuntimeError(f"openssl {words[0]}: {done.stderr.strip()}")
    # Nothing else is signed with it.
    (directory / "ca.key").unlink()
